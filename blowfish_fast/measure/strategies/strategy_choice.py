"""Every strategy that a policy admits, and the error that each promises.

Nothing here reads data: choosing by predicted error is free. `MEANINGS` says what each
strategy measures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from blowfish_fast.errors import BlowfishError, EpsilonError, PolicyError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.linear_strategy import LinearStrategy, PreparedStrategy
from blowfish_fast.measure.noise import laplace_variance
from blowfish_fast.measure.strategies.trees.tree_weights import tuned_tree
from blowfish_fast.policies import Line, Policy
from blowfish_fast.workloads import Form, Fractions, Implicit

from .cells import Cells
from .edge_cuts import cut_variance
from .edge_lines import EdgeLines
from .edge_noise import EdgeNoise, SpanningTree, refuse_too_many
from .hierarchy_plan import (
    HTheta,
    best_hierarchy,
)
from .prefix_sums import PrefixSums

Name = Literal[
    "ordered",
    "cells",
    "edges",
    "ordered_hierarchical",
    "h_theta",
    "tree",
    "edge_lines",
    "tuned_tree",
]

NAMES: tuple[Name, ...] = get_args(Name)
"""In the order in which ties are settled."""

MEANINGS: dict[Name, str] = {
    "ordered": "running totals",
    "ordered_hierarchical": "running totals of blocks, a tree inside each",
    "h_theta": "the same with Haney's fixed split",
    "cells": "every cell",
    "edges": "cells, with one draw per policy edge",
    "tree": "totals of subtrees of a spanning tree",
    "edge_lines": "cells of a grid, with draws along lines of edges",
    "tuned_tree": "a tree over the line, tuned to the queries",
}
"""What each strategy measures, as ``blowfish explain`` says it."""

SLOW: tuple[Name, ...] = ("edges", "tree", "tuned_tree")
"""Strategies that follow every query along edges, or improve step by step."""

MOST_WEIGHED = 2**22
"""Most edges that are listed only to predict an error."""

FEW_EDGES = 2**16
"""Up to here a spanning tree is followed along every edge at once."""

FEW_CELLS = 2**12
"""Up to here a tree is tuned even if it can hardly gain."""

SMALL = Fraction(1, 100)
"""An epsilon or rho at which the law of the noise is nearly the continuous one."""


class Choice(NamedTuple):
    """A strategy with its predicted error, or the reason why there is none.

    Attributes
    ----------
    name : Name
        Its name in the table of this file.
    prepared : PreparedStrategy or None
        The strategy with its noise; None where there is a reason.
    variance : float
        The variance summed over all queries; infinite without a strategy.
    reason : str
        Why there is none.
    """

    name: Name
    prepared: PreparedStrategy | None
    variance: float
    reason: str

    @property
    def strategy(self) -> LinearStrategy | None:
        """The strategy; None where there is a reason."""
        return None if self.prepared is None else self.prepared.strategy


def build_strategy(
    name: Name,
    policy: Policy,
    form: Form,
    power: int = 1,
    *,
    public_form: bool = False,
) -> LinearStrategy:
    """Return a strategy by name, tuned for epsilon or rho, or refuse.

    Parameters
    ----------
    name : Name
        One of `NAMES`.
    policy : Policy
        The policy, without constraints.
    form : Form
        The queries over the cells.
    power : int, default 1
        1 for epsilon, 2 for rho.
    public_form : bool, default False
        Whether cells and queries follow from no draw, as `tuned_tree` says.

    Returns
    -------
    LinearStrategy
        The strategy.

    Raises
    ------
    PolicyError
        If the strategy does not fit the policy.
    """
    small = Budget(SMALL, power)
    if name == "cells":
        return Cells.under(policy)
    if name == "edges":
        return EdgeNoise.under(policy)
    if name == "tree":
        return SpanningTree.under(policy)
    if name == "edge_lines":
        return EdgeLines.under(policy, form, power)
    if policy.domain.ndim != 1:
        raise PolicyError(
            f"{name} follows one ordered attribute; this domain has "
            f"{policy.domain.ndim}"
        )
    if name == "tuned_tree":
        return tuned_tree(form, policy, budget=small, public_form=public_form)
    if name == "h_theta":
        return HTheta.under(policy)
    if name == "ordered_hierarchical":
        return best_hierarchy(policy, form, small)
    return PrefixSums(policy.domain.size)


def predicted_variance(
    strategy: LinearStrategy, policy: Policy, form: Form, budget: Budget | Fraction
) -> float:
    """Return the variance summed over all queries, of the noise to be drawn.

    Parameters
    ----------
    strategy : LinearStrategy
        The strategy.
    policy : Policy
        The policy, without constraints.
    form : Form
        The queries over the cells.
    budget : Budget or Fraction
        What the measurement may cost.

    Returns
    -------
    float
        The sum.
    """
    return strategy.total_variance(form, strategy.scales(policy, budget))


def all_choices(
    policy: Policy,
    form: Form,
    budget: Budget | Fraction,
    *,
    names: Iterable[Name] = NAMES,
    hurried: bool = False,
    public_form: bool = False,
) -> list[Choice]:
    """Return every strategy with its predicted error, best first, or why it has none.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.
    form : Form
        The queries over the cells.
    budget : Budget or Fraction
        What the measurement may cost.
    names : Iterable[Name], default NAMES
        Which strategies are tried.
    hurried : bool, default False
        Whether what takes long and is unlikely to win is left out.
    public_form : bool, default False
        Whether cells and queries follow from no draw, as `tuned_tree` says.

    Returns
    -------
    list[Choice]
        The choices.
    """
    choices: list[Choice] = []
    # What takes long comes last, when there is something to hold it against.
    for name in sorted(names, key=lambda choice: choice in SLOW):
        rivals = choices if hurried else None
        choices.append(_choice(name, policy, form, budget, rivals, public_form))
    # Sums of one value in different orders differ in their last digits.
    return sorted(
        choices, key=lambda choice: (_round(choice.variance), NAMES.index(choice.name))
    )


def best_choice(
    policy: Policy,
    form: Form,
    budget: Budget | Fraction,
    *,
    names: Iterable[Name] = NAMES,
) -> PreparedStrategy:
    """Return the strategy of least predicted error. Ties go to the first of `NAMES`.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.
    form : Form
        The queries over the cells.
    budget : Budget or Fraction
        What the measurement may cost.
    names : Iterable[Name], default NAMES
        Which strategies are tried.

    Returns
    -------
    PreparedStrategy
        The strategy with its noise.

    Raises
    ------
    PolicyError
        If none fits the policy.
    """
    best = all_choices(policy, form, budget, names=names, hurried=True)[0]
    if best.prepared is None:
        raise PolicyError(f"no strategy fits this policy: {best.reason}")
    return best.prepared


def mean_difference_size(width: float) -> float:
    """Return E|Y - Z| of two draws of discrete Laplace noise; 1.5 b for large b.

    This is the noise of a bucket between two noisy running totals.
    """
    ratio = math.exp(-1.0 / width)
    rest = -math.expm1(-1.0 / width)
    inner = (1.0 + ratio) / rest + (1.0 + ratio**2) / (rest * (1.0 + ratio))
    return 2.0 * ratio * inner / (1.0 + ratio) ** 2


def _choice(
    name: Name,
    policy: Policy,
    form: Form,
    budget: Budget | Fraction,
    rivals: list[Choice] | None,
    public_form: bool,
) -> Choice:
    try:
        if isinstance(form, Implicit) and form.kind == "identity":
            if name == "tuned_tree":
                raise PolicyError("single cells gain nothing from a tree over them")
        elif name in SLOW and any(
            rival.name == "edge_lines" and rival.strategy for rival in rivals or ()
        ):
            raise PolicyError(
                "noise along the lines of a grid serves listed queries better"
            )
        if name == "tuned_tree" and rivals and _totals_suffice(policy, form):
            raise PolicyError("no tree serves ranges under a line better than totals")
        if name in ("edges", "tree"):
            # To measure, more are listed than to predict an error.
            refuse_too_many(policy, MOST_WEIGHED)
        power = Budget.of(budget).power
        strategy = build_strategy(name, policy, form, power, public_form=public_form)
        if rivals is not None and isinstance(strategy, SpanningTree):
            least = min(rival.variance for rival in rivals)
            _refuse_detours(strategy, policy, form, budget, least)
        prepared = strategy.prepare(policy, budget)
        variance = prepared.total_variance(form)
    except BlowfishError as problem:
        return Choice(name, None, math.inf, str(problem))
    return Choice(name, prepared, variance, "")


def _totals_suffice(policy: Policy, form: Form) -> bool:
    """Return whether no tree gains on running totals, but for single nodes: HI10."""
    if not isinstance(policy, Line) or policy.domain.size <= FEW_CELLS:
        return False
    if not isinstance(form, Fractions):
        return isinstance(form, Implicit) and form.kind in ("prefixes", "all_ranges")
    nodes = form.first % (form.last - form.first + 1) == 0
    return bool(np.count_nonzero(nodes) <= form.first.size // 8)


def _refuse_detours(
    tree: SpanningTree,
    policy: Policy,
    form: Form,
    budget: Budget | Fraction,
    least: float,
) -> None:
    if policy.edge_count <= FEW_EDGES:
        return
    detour = tree.least_stretch(policy)
    price = Budget.of(budget)
    reach = detour / float(price)
    row_variance = float(laplace_variance(reach)) if price.power == 1 else reach / 2.0
    cells, rows = np.arange(tree.cells), np.full(tree.cells, row_variance)
    # Roots may be exact.
    rows[tree.parents < 0] = 0.0
    forms = [form]
    if isinstance(form, Fractions):
        # Some queries alone often err too much.
        some: Any = (part[::32].copy() for part in form)
        forms.insert(0, Fractions(*some))
    errors = (
        cut_variance(form, tree.cells, cells, tree.parents, rows) for form in forms
    )
    if any(error > least for error in errors):
        raise EpsilonError(
            f"some edge of the policy is a detour of {detour:,} edges along the tree, "
            "too long to gain anything"
        )


def _round(variance: float) -> float:
    return float(f"{variance:.9e}")
