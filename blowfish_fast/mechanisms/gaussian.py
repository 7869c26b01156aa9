"""Discrete Gaussian noise on cells, policy edges or answers, paid in rho."""

from __future__ import annotations

from typing import Any, Self

from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Identity

from .laplace import Laplace


class Gaussian(Laplace):
    """Release a histogram with discrete Gaussian noise.

    The twin of `Laplace` for budgets in rho, or in epsilon with delta: many questions
    from one budget cost less, one histogram at a small delta costs more.

    Parameters
    ----------
    policy, workload, rho, epsilon, delta
        See `Mechanism`: `rho`, or `epsilon` with `delta`.
    strategy : {"cells", "edges", "queries"}
        Where the noise goes, see `Laplace`.

    Notes
    -----
    Guarantee: rho-zCDP for `policy`.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: on cells the squared moves add up to 1 when a record is added or
        removed, to 2 when it moves; on edges to 1; on queries to the squared
        sensitivity of the workload. Public totals are exact.
    Error: as for `Laplace`, with the variance 1 / (2 rho) times the squared
        sensitivity.
    Complexity: as for `Laplace`.
    Source: [1]_, under a policy; proof in ``docs/proofs/zcdp.md``.

    References
    ----------
    .. [1] C. Canonne, G. Kamath, T. Steinke. The discrete Gaussian for differential
       privacy. NeurIPS 2020.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> policy, cells = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    >>> gaussian = bf.Gaussian(policy, cells, rho="0.01")
    >>> gaussian.expected_error().round(3)
    array([50., 50., 50., 50.])
    >>> release = gaussian.release([3, 0, 2, 5], rng=7)
    >>> release.guarantee.rho, release.guarantee.epsilon_at("1e-9")
    (Fraction(1, 100), 0.810174468)
    """

    name = "gaussian"

    @classmethod
    def _check_budget(cls, budget: Budget) -> None:
        if budget.power != 2:
            cls._refuse_currency(
                budget, "Gaussian noise", "rho, or epsilon with delta", "Laplace"
            )

    @classmethod
    def example(
        cls, domain: Domain, policy: Policy, epsilon: Any
    ) -> tuple[Self, Histogram]:
        """Return the mechanism for all cells at rho = epsilon^2 / 2."""
        rho = Budget.stated(epsilon=epsilon).rho
        return cls(policy, Identity(domain), rho=rho), cls.example_case.data(domain)
