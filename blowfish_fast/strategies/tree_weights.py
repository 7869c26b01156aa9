"""Choose fan-out and weights of a tree: tuned to a workload, or by level alone.

Everything here reads public facts only (buckets, workload, whether the total is
public), so choosing costs nothing.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from .._typing import FloatArray
from ..workloads import Form, Fractions, Implicit
from .weighted_tree import WeightedTree

# The paper's binary tree with its decay towards the root, and wider trees without:
# the exact error of each is predicted and the best is kept.
CANDIDATES = ((2, True), (8, False), (16, False), (32, False), (64, False))


class Candidate(NamedTuple):
    """Weights of one tree and the error they predict, in units of 2 / epsilon^2."""

    branching: int
    node_weights: FloatArray
    objective: float


def tuned_tree(
    form: Form, leaves: int, *, root_exact: bool, sweeps: bool = False
) -> WeightedTree:
    """Return the greedily scaled tree of least predicted error for `form`.

    `sweeps` re-optimises every node given all others, with a safeguard for queries
    that were not declared; it needs ranges.
    """
    if leaves == 1:
        return WeightedTree(1, 2, np.ones(1))
    useful = [one for one in CANDIDATES if one[0] < 2 * leaves]
    with ThreadPoolExecutor(min(len(useful), os.cpu_count() or 1)) as pool:
        candidates = list(
            pool.map(lambda one: _greedy(form, leaves, *one, root_exact), useful)
        )
    best = min(candidates, key=lambda one: one.objective)
    weights = best.node_weights
    if sweeps and isinstance(form, Fractions):
        from ..kernels.weight_sweeps import refine_scaling

        weights = refine_scaling(
            *form, None, leaves, best.branching, weights, root_exact=root_exact
        )
    return WeightedTree(leaves, best.branching, weights)


def _greedy(
    form: Form, leaves: int, branching: int, decay: bool, root_exact: bool
) -> Candidate:
    from ..kernels import greedy_weights, implicit_weights

    if isinstance(form, Implicit):
        scaling = implicit_weights.greedy_scaling_implicit(
            form.kind, form.edges, branching, decay=decay, root_exact=root_exact
        )
    elif isinstance(form, Fractions):
        scaling = greedy_weights.greedy_scaling_fractions(
            *form, None, leaves, branching, decay=decay, root_exact=root_exact
        )
    else:
        scaling = greedy_weights.greedy_scaling_pieces(
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
    from ..kernels.tree_shape import tree_levels

    sizes, _ = tree_levels(leaves, branching)
    ratio = 2.0 ** (-1.0 / 3.0) if geometric else 1.0
    by_level = ratio ** np.arange(sizes.size)
    if root_exact and sizes.size > 1:
        by_level[-1] = 0.0
    by_level /= by_level.sum()
    return WeightedTree(leaves, branching, np.repeat(by_level, sizes))
