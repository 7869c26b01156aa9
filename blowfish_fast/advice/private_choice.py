"""Private choice of a mechanism: a part of epsilon decides which one measures.

    epsilon    [ share ][ the rest ............................ ]
               which public     the mechanism that is best on such data
               shape is near

Pieces: the look ``selections.nearest_shape``; whatever mechanism follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self, Unpack

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_share
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.selections.nearest_shape import NearestShape
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.baselines.noise_first import NoiseFirst
from blowfish_fast.mechanisms.laplace import Laplace
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Identity, Workload


class ChosenPrivately(Mechanism):
    """Spend a part of epsilon on choosing a mechanism, and the rest on its release.

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`.
    shapes : mapping of str to counts
        Public histograms over the domain that data may resemble.
    candidates : mapping of str to Mechanism
        The mechanism to use for each shape; over the same policy and workload.
    share : number in (0, 1)
        Part of epsilon spent on the choice. Nothing is spent where all candidates are
        one and the same.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the choice and the release share epsilon
        (sequential composition).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: of the choice, 4 when a record is added or removed and 8 when it moves
        (`NearestShape`); then that of the mechanism chosen.
    Error: that of the mechanism chosen, at the epsilon that is left.
    Complexity: O(n log n) for the choice, then that of the mechanism chosen.
    Source: this project; proof in ``docs/proofs/recommendation.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> advice = bf.recommend(
    ...     bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=1,
    ...     records=1000, trials=1, rng=1)
    >>> mechanism = advice.choose_privately(share="0.1")
    >>> release = mechanism.release([0] * 60 + [250] * 4, rng=1)
    >>> release.guarantee.epsilon, release.details["resembles"] in advice.shapes
    (Fraction(1, 1), True)
    """

    name = "chosen_privately"
    cell_bytes = 1024

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        shapes: Mapping[str, IntArray],
        candidates: Mapping[str, Mechanism],
        share: Any = Fraction(1, 20),
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        if not shapes or shapes.keys() != candidates.keys():
            raise InputError(
                "every shape needs one candidate; received shapes "
                f"{sorted(shapes)} and candidates for {sorted(candidates)}"
            )
        for shape, one in candidates.items():
            if one.policy != policy or one.domain != self.domain:
                raise InputError(
                    f"the candidate for {shape} is made for {one.policy!r}; all of "
                    f"them must be for {policy!r}"
                )
        self.share = as_share(share, "share")
        self.shape_names = tuple(shapes)
        self.candidates = tuple(candidates[name] for name in self.shape_names)
        rows = [np.asarray(shapes[name]).reshape(-1) for name in self.shape_names]
        self.selector = NearestShape(np.stack(rows).astype(np.int64))
        if self.selector.shapes.shape[1] != self.domain.size:
            raise InputError(
                f"the shapes have {self.selector.shapes.shape[1]} cells and the domain "
                f"{self.domain.size}"
            )

    def _run(self, private: Handle) -> Outcome:
        number, resembles = 0, "any"
        if len({id(one) for one in self.candidates}) > 1:
            share = self.share * self.budget
            number = private.select(self.selector, budget=share)
            resembles = self.shape_names[number]
        chosen = self.candidates[number].at(private.remaining)
        outcome = chosen._run(private)
        details = {
            **outcome.details,
            "resembles": resembles,
            "chosen_mechanism": chosen.name,
        }
        return Outcome(
            outcome.estimate,
            outcome.measurements,
            details,
            unfitted=outcome.unfitted,
            interval_scope=outcome.interval_scope,
            stacked=outcome.stacked,
        )

    @classmethod
    def example(
        cls, domain: Domain, policy: Policy, epsilon: Any
    ) -> tuple[Self, Histogram]:
        """Return a choice between even and uneven cells, with a step in the counts."""
        cells = Identity(domain)
        place = np.arange(domain.size).reshape(domain.shape)
        shapes = {"even": 0 * place + 4, "uneven": place % 2 * 9}
        smooth = NoiseFirst if domain.ndim == 1 else Laplace
        candidates: dict[str, Mechanism] = {
            "even": smooth(policy, cells, epsilon=epsilon),
            "uneven": Laplace(policy, cells, epsilon=epsilon),
        }
        mechanism = cls(
            policy, cells, epsilon=epsilon, shapes=shapes, candidates=candidates
        )
        return mechanism, Histogram(domain, place * 2 // max(domain.size, 1) * 9)
