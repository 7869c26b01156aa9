"""Linear queries with whole coefficients, paid from a ledger as one mechanism.

Serves the interactive session. Conditions select whole cells, and values are rounded
to a public step, so every row has whole coefficients and its noise is discrete:

    count   sex = F              1  0  1  0  1  0
    sum     age, in steps of .5  10 0  30 0  50 0     times step after the noise
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_fraction
from blowfish_fast.data.axes import representatives
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.predicates import Cover
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.tails import gaussian_draw_half_widths
from blowfish_fast.mechanisms.laplace import Gaussian, Laplace
from blowfish_fast.policies import PerPerson, refuse_units
from blowfish_fast.release.group_answers import Claim, GroupedAnswers
from blowfish_fast.release.query_grid import SparseRows, coverage_rows, product_rows
from blowfish_fast.release.release import Release

from .ledger import Ledger
from .request import RandomLike

STEP_BITS = 16
"""Sums are taken in steps of at most the largest value over 2^15."""

MOST_STEPS = 2**24
"""Largest value in steps: sums over a hundred billion records stay exact."""


class IntegerRows:
    """Rows that are products of whole cells: `axes` has the groups of each axis."""

    def __init__(self, domain: Domain, axes: Sequence[Sequence[Cover]]) -> None:
        self.domain = domain
        for groups in axes:
            for cover in groups:
                whole_cells(cover)
        self.axes = axes
        self.measure, self.step = "count", 1.0
        self.rows = [
            coverage_rows(groups, size)
            for groups, size in zip(axes, domain.shape, strict=True)
        ]

    def weigh(
        self, axis: int, low: float | None, high: float | None, step: Any
    ) -> None:
        """Weight the rows of an axis by its values, in steps."""
        attribute = self.domain.attributes[axis]
        if any(cover[-1][1] > attribute.regular for cover in self.axes[axis]):
            raise InputError(
                f"the question holds the cells {list(attribute.extras)} of "
                f"{attribute.name or 'the attribute'}, which have no value; select its "
                f"values first: {attribute.name or 'attribute'}=slice(None)"
            )
        values = _clamp(representatives(attribute), low, high)
        self.measure, self.step = "sum", _step(values, step)
        weights = np.zeros(attribute.size)
        weights[: attribute.regular] = np.rint(values / self.step)
        self.rows[axis] = self.rows[axis] * weights[None]

    def ask(
        self,
        ledger: Ledger,
        data: Histogram,
        budget: Budget,
        request: str | None,
        rng: RandomLike | None,
        groups: Sequence[tuple[int, list[Any]]] = (),
    ) -> GroupedAnswers:
        """Charge, draw, and name the answers by the groups of some axes."""
        workload = SparseRows(self.domain, product_rows(self.rows))
        policy = ledger.policy
        if isinstance(policy, PerPerson) and data.at_most is not None:
            # The ledger's policy leaves open what each body of data states.
            policy = policy.with_at_most(data.at_most)
            refuse_units(policy, "the answer to one question")
        kind = Laplace if budget.power == 1 else Gaussian
        recipe = kind(policy, workload, epsilon=budget, strategy="queries")
        release = ledger.release(recipe, data, request, rng)
        (measurement,) = release.measurements
        return GroupedAnswers(
            [self.domain.column_names[axis] for axis, _ in groups],
            [names for _, names in groups],
            self.measure,
            measurement.noisy.astype(np.float64) * self.step,
            Claim(
                lambda confidence, _: _noise_intervals(release, confidence) * self.step,
                # Cells are whole, and values are those of cells by definition.
                lambda: "truth",
                release.interval_sentence,
            ),
        )


def _noise_intervals(release: Release, confidence: float) -> FloatArray:
    """Return intervals around the noisy rows, each of which carries one draw."""
    (measurement,) = release.measurements
    scales, miss = measurement.scales, 1.0 - confidence
    widths = scales.widths
    if scales.power == 1:
        half = np.array([single_draw_half_width(one, miss) for one in widths])
    else:
        half = gaussian_draw_half_widths(widths, miss)
    return np.stack([measurement.noisy - half, measurement.noisy + half], axis=-1)


def single_draw_half_width(width: float, miss: float) -> float:
    """Return the least h with P(|Z| > h) <= miss for one discrete Laplace draw.

    P(|Z| > h) = 2 q^(h + 1) / (1 + q) with q = exp(-1 / width), for whole h.
    """
    if width == 0.0:
        return 0.0
    decay = math.exp(-1.0 / width)
    reach = -width * math.log(0.5 * miss * (1.0 + decay))
    # Rounding is far below this margin, which at worst costs one unit.
    return max(math.ceil(reach * (1.0 + 2.0**-40)) - 1.0, 0.0)


def whole_cells(cover: Cover) -> IntArray:
    """Return the cells of a cover; refuse parts of cells."""
    if any(end != math.floor(end) for interval in cover for end in interval):
        raise InputError(
            "a session answers along borders of cells, since it knows nothing finer; "
            "choose values at the edges of the domain, or finer edges"
        )
    return np.concatenate([np.arange(int(low), int(high)) for low, high in cover])


def _clamp(values: FloatArray, low: float | None, high: float | None) -> FloatArray:
    least = -np.inf if low is None else float(as_fraction(low, "low"))
    most = np.inf if high is None else float(as_fraction(high, "high"))
    if least > most:
        raise InputError(f"low must not exceed high; received {low!r} and {high!r}")
    return np.clip(values, least, most)


def _step(values: FloatArray, step: Any) -> float:
    if step is None:
        largest = float(np.abs(values).max())
        return 2.0 ** (math.frexp(largest)[1] - STEP_BITS) if largest > 0 else 1.0
    unit = float(as_fraction(step, "step"))
    if unit <= 0 or float(np.abs(values).max()) / unit > MOST_STEPS:
        raise InputError(
            "step must be greater than 0, and the largest value at most 2^24 steps; "
            f"received {step!r}"
        )
    return unit
