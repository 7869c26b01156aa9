"""Independent noise on every cell, policy edge or answer: Laplace or Gaussian."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

from blowfish_fast._support.validation import as_choice
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import EpsilonError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.strategies import Answers, Cells, EdgeNoise, LinearStrategy
from blowfish_fast.measure.strategies.edge_noise import refuse_too_many
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Identity, Linear, Workload

from .base import Mechanism, Outcome
from .example_data import Example, repeated


class Laplace(Mechanism):
    """Release a histogram with discrete Laplace noise.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload, optional
        What will be asked; answers to other queries are possible too. Left out: every
        single cell.
    epsilon : number
        The budget that one release spends, read as the decimals typed.
    rho, delta : number
        Refused here: they mean Gaussian noise, which `Gaussian` adds.
    strategy : {"cells", "edges", "queries"}
        Where the noise goes: on each cell; on the edges of the policy graph, each draw
        added to one end and taken from the other; or on each answer, with intervals for
        the declared queries alone.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: on cells 1 when a record is added or removed, 2 when it moves; on
        edges 1, since a policy edge is undone by a shift of its own draw; on queries
        the policy-specific sensitivity of the workload. Public totals are exact.
    Error: on cells the variance of the noise times the number of cells of a range, less
        the part that public totals remove; on edges times the number of edges it cuts;
        on queries the variance itself, less what the fit gains where some queries are
        combinations of others.
    Complexity: O(n) time and memory; O(n + edges) on edges, the coefficients of the
        workload on queries.
    Source: C. Dwork, F. McSherry, K. Nissim, A. Smith. Calibrating noise to sensitivity
        in private data analysis. TCC 2006; with noise on the integers; proof in
        ``docs/proofs/laplace.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> laplace = bf.Laplace(bf.policies.AddRemove(line), epsilon=1)
    >>> laplace.expected_error().round(4)
    array([1.8413, 1.8413, 1.8413, 1.8413])
    >>> laplace.release([3, 0, 2, 5], rng=7).estimate.shape
    (4,)
    """

    name = "laplace"
    cells_by_default = True
    power: ClassVar[int] = 1
    """Of the currency: 1 for epsilon, 2 for rho."""
    cell_bytes = 96
    example_case = Example(partial(repeated, period=7, height=1), cells=True)

    def __init__(
        self,
        policy: Policy,
        workload: Workload | None = None,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        strategy: str = "cells",
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self._check_budget(self.budget)
        offered = ("cells", "edges", "queries")
        self.strategy = as_choice(strategy, "strategy", offered)

    @classmethod
    def _check_budget(cls, budget: Budget) -> None:
        """Refuse a budget in the other currency, which means other noise."""
        if budget.power != cls.power:
            own, twin = ("Laplace", "Gaussian")[:: 1 if cls.power == 1 else -1]
            takes = "epsilon alone" if cls.power == 1 else "rho, or epsilon with delta"
            raise EpsilonError(
                f"{own} noise takes {takes}",
                received=budget.words(),
                way_out=f"Use bf.{twin} with the same arguments",
            )

    def _run(self, private: Handle) -> Outcome:
        prepared = self._hold(private, lambda: self._strategy(private.policy))
        measurement = private.measure(prepared, budget=private.remaining)
        return Outcome.of(measurement)

    def _strategy(self, policy: Policy) -> LinearStrategy:
        if self.strategy == "edges":
            return EdgeNoise.under(policy)
        if self.strategy == "queries":
            return Answers.under(policy, self.workload)
        return Cells.under(policy)

    def _pieces(self) -> int:
        if self.strategy == "edges":
            refuse_too_many(self.policy.unconstrained)
            return self.policy.edge_count
        if self.strategy == "queries":
            if isinstance(self.workload, Linear):
                return int(self.workload.matrix.nnz)
            cells = min(self.workload.mean_cells(), float(self.domain.size))
            return int(self.workload.queries * cells)
        return 0


class Gaussian(Laplace):
    """Release a histogram with discrete Gaussian noise.

    The twin of `Laplace` for budgets in rho, or in epsilon with delta: many questions
    from one budget cost less, one histogram at a small delta costs more.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload, optional
        What will be asked; answers to other queries are possible too. Left out: every
        single cell.
    epsilon, rho, delta : number
        The budget that one release spends: `rho` alone, or `epsilon` with `delta`.
    strategy : {"cells", "edges", "queries"}
        Where the noise goes, as for `Laplace`.

    Notes
    -----
    Guarantee: rho-zCDP for `policy`.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: on cells the squared moves add up to 1 when a record is added or
        removed, to 2 when it moves; on edges to 1; on queries to the squared
        sensitivity of the workload. Public totals are exact.
    Error: as for `Laplace`, of variance 1 / (2 rho) times the squared sensitivity.
    Complexity: as for `Laplace`.
    Source: C. Canonne, G. Kamath, T. Steinke. The discrete Gaussian for differential
        privacy. NeurIPS 2020; under a policy; proof in ``docs/proofs/zcdp.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> gaussian = bf.Gaussian(bf.policies.AddRemove(line), rho="0.01")
    >>> gaussian.expected_error().round(3)
    array([50., 50., 50., 50.])
    >>> release = gaussian.release([3, 0, 2, 5], rng=7)
    >>> release.guarantee.rho, release.guarantee.epsilon_at("1e-9")
    (Fraction(1, 100), 0.810174468)
    """

    name = "gaussian"
    power = 2

    @classmethod
    def example(
        cls, domain: Domain, policy: Policy, epsilon: Any
    ) -> tuple[Self, Histogram]:
        """Return the mechanism for all cells at rho = epsilon^2 / 2.

        Parameters
        ----------
        domain : Domain
            The cells.
        policy : Policy
            What is secret.
        epsilon : number, str or Fraction
            The epsilon from which rho follows.

        Returns
        -------
        mechanism : Self
            The mechanism.
        data : Histogram
            Made-up counts.
        """
        rho = Budget.stated(epsilon=epsilon).rho
        return cls(policy, Identity(domain), rho=rho), cls.example_case.data(domain)
