"""Choose fan-out and weights of a tree: tuned to a workload, or by level alone.

Everything here reads public facts only (buckets, workload, whether the total is
public), so choosing costs nothing.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray
from blowfish_fast.workloads import Form, Fractions, Implicit

from .weighted_tree import WeightedTree

# The paper's binary tree with its decay towards the root, and wider trees without:
# the exact error of each is predicted and the best is kept. Small problems, where a
# try costs a millisecond, have more to choose from.
CANDIDATES = ((2, True), (8, False), (16, False), (32, False), (64, False))
MORE_CANDIDATES = ((3, False), (4, False), (12, False), (24, False), (48, False))
SMALL = 2**15
# Sweeps cost several greedy passes; above, only the best greedy tree is swept, and
# far above none.
LARGE = 2**18


class Candidate(NamedTuple):
    """Weights of one tree and the error they predict, in units of 2 / epsilon^2."""

    branching: int
    node_weights: FloatArray
    objective: float


def tuned_tree(
    form: Form,
    leaves: int,
    *,
    root_exact: bool,
    sweeps: bool = True,
    fan_out: int | None = None,
) -> WeightedTree:
    """Return the tree of least predicted error for `form`, or that of one `fan_out`.

    Each fan-out is scaled greedily; `sweeps` then re-optimises every node given all
    others (ranges only), with a safeguard for queries that were not declared.
    """
    if leaves == 1:
        return WeightedTree(1, 2, np.ones(1))
    work = leaves + _listed(form)
    offered = (*CANDIDATES, *MORE_CANDIDATES) if work <= SMALL else CANDIDATES
    useful = [one for one in offered if one[0] < 2 * leaves]
    if fan_out is not None:
        useful = [(fan_out, fan_out == 2)]
    sweep_all = sweeps and work <= SMALL
    with ThreadPoolExecutor(min(len(useful), os.cpu_count() or 1)) as pool:
        candidates = list(
            pool.map(
                lambda one: _scaled(form, leaves, one, root_exact, sweep_all), useful
            )
        )
    best = min(candidates, key=lambda one: one.objective)
    if sweeps and SMALL < work <= LARGE:
        best = _swept(form, leaves, best, root_exact)
    return WeightedTree(leaves, best.branching, best.node_weights)


def _listed(form: Form) -> int:
    """Return how many queries or pieces a form lists."""
    if isinstance(form, Implicit):
        return 0
    return form.first.size if isinstance(form, Fractions) else form.starts.size


def _scaled(
    form: Form, leaves: int, choice: tuple[int, bool], root_exact: bool, sweeps: bool
) -> Candidate:
    branching, decay = choice
    greedy = _greedy(form, leaves, branching, decay, root_exact)
    return _swept(form, leaves, greedy, root_exact) if sweeps else greedy


def _swept(form: Form, leaves: int, start: Candidate, root_exact: bool) -> Candidate:
    """Improve weights by sweeps; only ranges have them."""
    if not isinstance(form, Fractions):
        return start
    swept = kernels.refine_scaling(
        *form,
        None,
        leaves,
        start.branching,
        start=start.node_weights,
        root_exact=root_exact,
    )
    return Candidate(start.branching, swept.weights, swept.objective)


def _greedy(
    form: Form, leaves: int, branching: int, decay: bool, root_exact: bool
) -> Candidate:
    from blowfish_fast.kernels.tree_scaling import (
        greedy_weights,
        implicit_weights,
        piece_weights,
    )

    if isinstance(form, Implicit):
        scaling = implicit_weights.greedy_scaling_implicit(
            form.kind, form.edges, branching, decay=decay, root_exact=root_exact
        )
    elif isinstance(form, Fractions):
        scaling = greedy_weights.greedy_scaling_fractions(
            *form, None, leaves, branching, decay=decay, root_exact=root_exact
        )
    else:
        scaling = piece_weights.greedy_scaling_pieces(
            *form, None, leaves, branching, decay=decay, root_exact=root_exact
        )
    return Candidate(branching, scaling.weights, scaling.objective)


def level_tree(
    leaves: int, branching: int, *, root_exact: bool, geometric: bool
) -> WeightedTree:
    """Return a tree whose nodes of one level share one weight.

    Uniform weights, or geometric ones that grow by the cube root of two from each
    level to the one below it.
    """
    sizes, _ = kernels.tree_levels(leaves, branching)
    ratio = 2.0 ** (-1.0 / 3.0) if geometric else 1.0
    by_level = ratio ** np.arange(sizes.size)
    if root_exact and sizes.size > 1:
        by_level[-1] = 0.0
    by_level /= by_level.sum()
    return WeightedTree(leaves, branching, np.repeat(by_level, sizes))
