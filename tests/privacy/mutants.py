"""Planted bugs: each a context manager, with the stop of the walk that must catch it.

Bugs are planted at the Python seams (scales, weights, streams, epsilon parts), since
compiled kernels freeze what they call. Several are published: they stand in the papers
or in public code.
"""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from typing import NamedTuple
from unittest.mock import PropertyMock, patch

import numpy as np

import blowfish_fast as bf
import blowfish_fast.measure.handle as handle
import blowfish_fast.mechanisms.ordered as ordered
from blowfish_fast import kernels
from blowfish_fast.audit.plan import QUICK, AuditTask, Shape
from blowfish_fast.audit.walk import examine
from blowfish_fast.kernels.tree.paths import LeafDistances
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies import (
    Cells,
    EdgeNoise,
    LinearStrategy,
    OrderedHierarchy,
    PrefixSums,
    TreeStrategy,
)
from blowfish_fast.measure.strategies.cluster_sums import ClusterSums
from blowfish_fast.measure.strategies.hierarchy_plan import planned_hierarchy
from blowfish_fast.policies.constrained import Constrained

PLAN = QUICK._replace(families=None, noise=20_000, runs=0, releases=0)


class Mutant(NamedTuple):
    """A planted bug, where the walk meets it, and the check that must fail there."""

    plant: object
    kind: str
    subject: str
    shape: Shape
    family: str
    check: str
    batch: int

    def verdicts(self):
        """Return what the walk finds at that stop."""
        task = AuditTask(self.kind, self.subject, self.shape, self.family)
        return examine(task, PLAN._replace(batch=self.batch), bf.Ledger)


MUTANTS: dict[str, Mutant] = {}


def planted(subject, family, check, *, shape=4, kind="mechanism", batch=200_000):
    """Enter a bug into the table under the name of its function."""

    def enter(function):
        plant = contextmanager(function)
        MUTANTS[function.__name__] = Mutant(
            plant, kind, subject, shape, family, check, batch
        )
        return plant

    return enter


def free(kind):
    """Let the handle believe whatever a strategy of this kind draws."""
    return patch.object(kind, "cost", lambda self, policy, scales: Fraction(0))


# Noise on what is measured.


@planted("laplace", "add_remove", "prices")
def halved_noise():
    right = Cells.scales

    def halved(self, policy, epsilon):
        return right(self, policy, 2 * epsilon)

    with free(Cells), patch.object(Cells, "scales", halved):
        yield


@planted("laplace", "add_remove", "invariants")
def half_of_what_was_declared():
    right = handle._draw
    with patch.object(handle, "_draw", lambda scales, rng: right(scales, rng) // 2):
        yield


@planted("laplace", "full", "noise")
def a_sampler_at_half_its_scale():
    right = Randomness.laplace

    def halved(self, numerators, denominators, size=None, threads=None):
        return right(self, numerators, 2 * denominators, size, threads)

    with patch.object(Randomness, "laplace", halved):
        yield


@planted("ordered", "threshold", "prices", shape=7)
def wrong_sensitivity():
    with patch.object(
        PrefixSums,
        "worst_edge",
        lambda self, weights, policy, power=1: int(weights.max()),
    ):
        yield


@planted("ordered", "graph_absent", "prices", shape=7)
def absent_counts_as_one_row():
    right = PrefixSums.worst_edge

    def moves_only(self, weights, policy, power=1):
        if policy.has_bottom and policy.has_moves:
            length = policy.longest_edge()
            return length * int(weights.max())
        return right(self, weights, policy, power)

    with patch.object(PrefixSums, "worst_edge", moves_only):
        yield


@planted("hierarchy", "add_remove", "prices", shape=7)
def off_by_one_level():
    right = TreeStrategy.worst_edge

    def without_leaves(self, weights, policy, power=1):
        shortened = weights.copy()
        shortened[: self.leaves] = 0
        return right(self, shortened, policy, power)

    with patch.object(TreeStrategy, "worst_edge", without_leaves):
        yield


@planted("hierarchy", "full", "prices", shape=7)
def a_move_that_changes_one_path():
    right = TreeStrategy.worst_edge

    def one_path(self, weights, policy, power=1):
        return right(self, weights, bf.policies.AddRemove(policy.domain), power)

    with patch.object(TreeStrategy, "worst_edge", one_path):
        yield


@planted("hierarchy", "graph_absent", "invariants", shape=7)
def exact_nodes_that_forget_absent():
    def exact_rows(self, policy):
        labels, private = policy.components()
        return kernels.uncrossed_nodes(self.tree, labels, np.zeros_like(private))

    with free(TreeStrategy), patch.object(TreeStrategy, "exact_rows", exact_rows):
        yield


@planted("nested", "full", "prices", shape=(3, 4))
def districts_that_are_left_and_not_entered():
    right = TreeStrategy.worst_edge

    def left_alone(self, weights, policy, power=1):
        return right(self, weights, bf.policies.AddRemove(policy.domain), power)

    with patch.object(TreeStrategy, "worst_edge", left_alone):
        yield


@planted("nested", "add_remove", "invariants", shape=(3, 4))
def a_nation_whose_total_is_exact():
    def exact_rows(self, policy):
        exact = np.zeros(self.tree.nodes, dtype=bool)
        exact[-1] = True
        return exact

    with free(TreeStrategy), patch.object(TreeStrategy, "exact_rows", exact_rows):
        yield


@planted("hierarchy", "line", "prices", shape=7)
def windows_one_cell_too_short():
    right = LeafDistances.within_reach

    def shorter(self, lines, far):
        return right(self, lines, np.maximum(far - 1, np.arange(far.size)))

    def some_price(self, weights, policy, power=1):
        # A price of 0 would measure nothing; the shorter window must be seen as such.
        return max(worst(self, weights, policy, power), 1)

    worst = TreeStrategy.worst_edge
    with (
        patch.object(LeafDistances, "within_reach", shorter),
        patch.object(TreeStrategy, "worst_edge", some_price),
    ):
        yield


@planted("ordered", "line", "invariants", shape=7)
def last_prefix_without_noise():
    right = PrefixSums.published

    def published(self, rows, noise, scales):
        shown = right(self, rows, noise, scales)
        last = np.flatnonzero(scales.measured)[-1:]
        shown[last] = rows[last]
        return shown

    with patch.object(PrefixSums, "published", published):
        yield


@planted("ordered", "line", "prices", shape=7)
def last_prefix_declared_exact():
    right = PrefixSums.exact_rows

    def exact(self, policy):
        rows = right(self, policy).copy()
        rows[-2:] = True
        return rows

    with patch.object(PrefixSums, "exact_rows", exact):
        yield


@planted("ordered_hierarchical", "threshold", "prices", shape=12)
def printed_hierarchy_noise():
    # The paper gives the first block and its border scale 2 h / epsilon in full, as if
    # a move could touch nothing else; h = 1 costs up to 1.25 epsilon.
    right = OrderedHierarchy.scales

    def printed(self, policy, epsilon):
        scales = right(self, policy, epsilon)
        levels = max(tree_depth(self), 1)
        rates = scales.rates.copy()
        full = int(epsilon.amount * scales.unit) // (2 * levels)
        outside = (np.arange(self.cells) >= self.edges[1]).astype(np.int64)
        first = self.rows(outside) == 0
        rates[first & scales.measured] = full
        return scales._replace(rates=rates)

    with free(OrderedHierarchy), patch.object(OrderedHierarchy, "scales", printed):
        yield


@planted("ordered_hierarchical", "threshold", "prices", shape=12)
def a_plan_priced_under_a_weaker_policy():
    # Plans of stronger policies serve weaker ones, never the other way round: here a
    # threshold gets the plan of a line, with the noise that it has under a line.
    right = OrderedHierarchy.scales

    def weaker(self, policy, epsilon):
        return right(self, bf.policies.Line(policy.domain), epsilon)

    def planned(policy, *given, **named):
        return planned_hierarchy(bf.policies.Line(policy.domain))

    with (
        free(OrderedHierarchy),
        patch.object(OrderedHierarchy, "scales", weaker),
        patch.object(ordered, "best_hierarchy", planned),
    ):
        yield


def tree_depth(strategy):
    """Levels below the root of a block, the first one."""
    from blowfish_fast.measure.strategies.hierarchy_plan import (
        tree_depth as depth,
    )

    return depth(int(strategy.edges[1]), int(strategy.fan_outs[0]))


@planted("laplace", "constrained", "constraints")
def printed_corollary_8_3():
    printed = PropertyMock(return_value=1)
    with patch.object(Constrained, "group_size", printed):
        yield


@planted("laplace", "constrained", "prices")
def constraints_ignored():
    right = Handle.__init__

    def careless(self, *given, **named):
        right(self, *given, **{**named, "group_size": 1})

    with patch.object(Handle, "__init__", careless):
        yield


@planted("kmeans", "line", "prices", shape=12)
def printed_lemma_6_1():
    def printed(self, weights, policy, power=1):
        size, total = self._heaviest(weights)
        return 2 * size + total * 2 * self.grid.longest_move(policy)

    with patch.object(ClusterSums, "worst_edge", printed):
        yield


@planted("laplace", "add_remove", "prices")
def exact_total_leaked():
    def leaking(self, policy):
        exact = np.zeros(self.cells + self.part_sizes.size, dtype=bool)
        exact[-1] = True
        return exact

    with patch.object(Cells, "exact_rows", leaking):
        yield


@planted("laplace", "full", "prices")
def an_excess_of_five_percent():
    right = LinearStrategy.scales

    def generous(self, policy, epsilon):
        return right(self, policy, epsilon * Fraction(105, 100))

    with free(Cells), patch.object(LinearStrategy, "scales", generous):
        yield


@planted("transformed", "graph", "prices", shape=7)
def noise_at_one_end_of_an_edge():
    def one_ended(self, rows, noise, scales):
        cells = rows.copy()
        np.add.at(cells, self.heads, noise)
        return cells

    with patch.object(EdgeNoise, "published", one_ended):
        yield


@planted("laplace", "line", "invariants")
def float_noise():
    def floating(scales, rng):
        generator = np.random.default_rng(int(rng.stream()(0, 1)[0]))
        return generator.laplace(scale=np.where(scales.measured, scales.widths, 0))

    with patch.object(handle, "_draw", floating):
        yield


@planted("laplace", "line", "invariants")
def noise_that_is_never_negative():
    right = handle._draw
    with patch.object(
        handle, "_draw", lambda scales, rng: np.maximum(right(scales, rng), 0)
    ):
        yield


@planted("laplace", "full", "invariants")
def one_draw_for_every_row():
    right = handle._draw

    def repeated(scales, rng):
        noise = right(scales, rng)
        return np.where(scales.measured, noise[scales.measured.argmax()], 0)

    with patch.object(handle, "_draw", repeated):
        yield
