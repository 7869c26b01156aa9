"""Two currencies side by side: which budgets are ranked, and how they are named.

Serves ``recommendation``. With epsilon and delta, Laplace noise at epsilon alone stands
beside Gaussian noise at the largest rho that implies both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.budgets import Budget, BudgetTerms
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.gaussian import Gaussian
from blowfish_fast.mechanisms.laplace import Laplace
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Identity, Workload


def both_budgets(granted: Budget, terms: BudgetTerms) -> list[Budget]:
    """Return the budgets to rank: with delta, epsilon alone and the rho of both."""
    if granted.delta is None:
        return [granted]
    return [Budget.stated(epsilon=terms["epsilon"]), granted]


def currency_mark(one: Budget, granted: Budget) -> str:
    """Return what marks a name where two currencies stand side by side."""
    return " (rho)" if one.power == 2 and granted.delta is not None else ""


def heading_of(
    policy: Policy, workload: Workload, granted: Budget, terms: BudgetTerms
) -> str:
    """Return the first line of a table: what is asked, under what, for how much."""
    spent = granted.words().replace("epsilon", "eps")
    if granted.delta is not None:
        epsilon = float(Budget.stated(epsilon=terms["epsilon"]))
        spent = f"eps = {epsilon:g}, or delta = {float(granted.delta):g}: {spent}"
    return f"{workload!r} under {policy!r}, {spent}"


class RankedBest(NamedTuple):
    """The best mechanism of a currency: its name, its error per query, its budget."""

    name: str
    error: float
    budget: Budget


def currency_sentence(
    pure: RankedBest, concentrated: RankedBest, delta: Fraction
) -> str:
    """Say which noise is better here, and where the other one would be."""
    rows = float(pure.budget) ** 2 / (4 * float(concentrated.budget))
    times = (concentrated.error / pure.error) ** 2
    better, factor = ("Laplace", times) if times >= 1 else ("Gaussian", 1 / times)
    return (
        f"{better} noise is better for this one release: at delta = {float(delta):g} "
        f"the best of each, {pure.name} and {concentrated.name}, differ by "
        f"{factor:,.3g} times in squared error. Gaussian noise wins where one edge "
        f"moves more than about {rows:.3g} rows alike: many questions or tables from "
        "one ledger in rho, long edges, deep trees."
    )


def compare_noise_with_counts(
    mechanism: Mechanism, cells: int, records: int
) -> Iterator[str]:
    """Compare the noise on one cell with what a cell holds."""
    budget = mechanism.budget
    kind = Laplace if budget.power == 1 else Gaussian
    on_cells = kind(mechanism.policy, Identity(mechanism.domain), epsilon=budget)
    try:
        noise = math.sqrt(on_cells.expected_total_error() / cells)
    except BlowfishError:
        return
    held = records / cells
    if noise > 2 * held:
        yield (
            f"Noise on a single cell ({noise:,.3g}) is well above the {held:,.3g} "
            "records that a cell holds on average: what merges cells, or measures sums "
            "of many, gains most."
        )
    elif noise < held / 2:
        yield (
            f"A cell holds {held:,.3g} records on average, well above the noise on it "
            f"({noise:,.3g}): merging cells gains little unless they are alike."
        )
