"""Bugs of public implementations of the baselines, planted in ours.

Each is a context manager. `STOPS` says at which stop of the walk over all mechanisms a
bug must be caught; `LAWS` on which two neighbours the exact law of a choice must break
its promise. A comment says where the bug stands in public, or which step of a proof it
leaves out.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import blowfish_fast as bf
import blowfish_fast.measure.selectors.partitions.bisection as bisection
import blowfish_fast.measure.selectors.partitions.bisection as k_buckets
import blowfish_fast.measure.selectors.partitions.noisy_sort as thresholded_sort
from blowfish_fast import kernels
from blowfish_fast.audit.plan import AuditTask
from blowfish_fast.audit.walk import examine
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import (
    Bisection,
    KBuckets,
)
from blowfish_fast.measure.selectors.selections import WorstQuery
from blowfish_fast.measure.strategies import Fourier
from blowfish_fast.mechanisms.baselines.by_cost import Mwem, _Total

from .mutants import PLAN, Mutant

STOPS: dict[str, Mutant] = {}


def caught_at(subject, family, check, *, shape=4):
    """Enter a bug that the walk meets at a mechanism under a policy."""

    def enter(function):
        plant = contextmanager(function)
        STOPS[function.__name__] = Mutant(
            plant, "mechanism", subject, shape, family, check, 20_000
        )
        return plant

    return enter


def verdicts(mutant):
    """Return what the walk finds at the stop of a bug."""
    task = AuditTask("mechanism", mutant.subject, mutant.shape, mutant.family)
    plan = PLAN._replace(
        batch=mutant.batch, noise=4000, runs=300, seeds=1, sampled=(mutant.shape,)
    )
    return examine(task, plan)


@caught_at("efpa", "add_remove", "choice", shape=16)
def transform_that_is_not_of_unit_length():
    # The authors' EFPA: numpy's plain transform, with the sensitivity of a unit one.
    right = np.fft.rfft

    def plain(values, *given, **named):
        return right(values)

    with patch.object(np.fft, "rfft", plain):
        yield


@caught_at("efpa", "add_remove", "prices", shape=16)
def noise_for_rows_of_unit_length():
    # The same on what is measured: wrong by root(cells / 2 + 1), 45.3 at 4096 cells.
    right = Fourier.worst_edge

    def too_small(self, weights, policy, power=1):
        return math.ceil(
            right(self, weights, policy, power) / math.sqrt(self.cells / 2 + 1)
        )

    with patch.object(Fourier, "worst_edge", too_small):
        yield


@caught_at("efpa", "full", "noise", shape=7)
def phases_as_they_are():
    # The authors' EFPA: noise on magnitudes, phases published.
    def scaled(self, rows, noise, scales):
        shown = rows.astype(np.float64)
        shown[0] += noise[0]
        for first in range(1, rows.size - 1, 2):
            pair = shown[first : first + 2]
            size = math.hypot(*pair)
            pair *= (size + noise[first]) / size if size else 0.0
        return np.rint(shown).astype(np.int64)

    with patch.object(Fourier, "published", scaled):
        yield


@caught_at("mwem", "add_remove", "invariants")
def exact_number_of_records():
    # dpcomp's MWEM starts from x.sum(), private where records come and go.
    def read(self, private):
        # A rehearsal before the draw has no counts to look at.
        held = 0.0 if private.dry_run else float(private._counts.sum())
        return _Total(held, math.inf), []

    with patch.object(Mwem, "_total", read):
        yield


@caught_at("ahp", "add_remove", "choice")
def clusters_of_true_counts():
    # Sorting first, noise afterwards: the order of the counts is published.
    with patch.object(
        thresholded_sort, "noisy_counts", lambda counts, noise, rng: counts
    ):
        yield


@caught_at("ahp", "add_remove", "invariants", shape=2)
def clusters_with_the_epsilon_of_both_steps():
    # The whole epsilon twice: once for the clusters, once for their counts.
    right = Handle.select

    def generous(self, selector, *, budget):
        class Whole:
            name = selector.name

            def select(_, counts, **given):
                whole = {**given, "epsilon": self._account.granted.amount}
                return selector.select(counts, **whole)

        return right(self, Whole(), budget=budget)

    with patch.object(Handle, "select", generous):
        yield


# Bugs in choices, on the pair of neighbours that shows them.


class Doubtful(NamedTuple):
    """A private choice on two neighbours, and the bug that makes it break epsilon."""

    plant: Any
    mechanism: str
    selector: Any
    policy: Any
    epsilon: Fraction
    pair: tuple[list[int], list[int]]


LAWS: dict[str, Doubtful] = {}


def broken_law(mechanism, selector, policy, pair, *, epsilon=4):
    """Enter a bug that the exact law of one choice must show."""

    def enter(function):
        plant = contextmanager(function)
        LAWS[function.__name__] = Doubtful(
            plant, mechanism, selector, policy, Fraction(epsilon), pair
        )
        return plant

    return enter


def one_level():
    """P-HP with one level, which has nearly all of epsilon."""
    return Bisection(1, share=Fraction(1, 1000)).priced(1.0)


def two_levels():
    return Bisection(2, share=Fraction(1, 1000)).priced(1.0)


def one_border(largest):
    return KBuckets(2, largest_count=largest)


def two_prefixes():
    """MWEM where a record in cell 0 helps one query and harms the other."""
    line = bf.Domain(4)
    prefixes = WorstQuery(bf.workloads.Ranges(line, [0, 0], [1, 2]))
    return prefixes.against(np.array([30.0, 0.0]), np.zeros(2, dtype=bool))


ADDED_AT_A_STEP = ([0, 0, 0, 8, 8, 8], [0, 0, 1, 8, 8, 8])


@broken_law("php", one_level, bf.policies.AddRemove, ADDED_AT_A_STEP)
def cuts_without_the_factor_two():
    right = Bisection.rates

    def doubled(self, cells, epsilon):
        return tuple(2 * rate for rate in right(self, cells, epsilon))

    with patch.object(Bisection, "rates", doubled):
        yield


@broken_law(
    "php",
    two_levels,
    bf.policies.AddRemove,
    ([8, 8, 0, 0, 0, 0], [8, 8, 1, 0, 0, 0]),
)
def every_level_with_the_whole_share():
    # A record lies in a cluster of every level: levels add up, they are not parallel.
    right = Bisection.rates

    def whole(self, cells, epsilon):
        for_split, for_number = right(self, cells, epsilon)
        return self.levels_over(cells) * for_split, for_number

    with patch.object(Bisection, "rates", whole):
        yield


@broken_law(
    "php",
    one_level,
    bf.policies.Full,
    ([0, 1, 9, 9, 9, 0, 0, 0], [0, 0, 9, 9, 9, 0, 0, 1]),
)
def cuts_for_one_record_where_records_move():
    with patch.object(bisection, "record_distance", lambda policy: 1):
        yield


@broken_law(
    "structure_first",
    partial(one_border, 4),
    bf.policies.AddRemove,
    ([0, 0, 0, 0, 3, 4], [0, 0, 0, 0, 4, 4]),
)
def borders_with_half_of_the_reach():
    half = property(lambda self: self.largest_count)
    with patch.object(KBuckets, "reach", half):
        yield


@broken_law(
    "structure_first",
    partial(one_border, 9),
    bf.policies.Full,
    ([9, 0, 0, 0, 0, 0, 8, 8], [8, 0, 0, 0, 0, 0, 8, 9]),
)
def borders_for_one_record_where_records_move():
    with patch.object(k_buckets, "record_distance", lambda policy: 1):
        yield


@broken_law(
    "structure_first",
    partial(one_border, 9),
    bf.policies.AddRemove,
    ([0] * 8 + [8] * 8, [0] * 8 + [8] * 7 + [9]),
)
def largest_count_read_off_the_data():
    # The authors' StructureFirst computes F from the exact data.
    right = KBuckets.select

    def read(self, counts, **given):
        mine = KBuckets(self.buckets, largest_count=max(int(counts.max()), 1))
        return right(mine, counts, **given)

    with patch.object(KBuckets, "select", read):
        yield


@broken_law("mwem", two_prefixes, bf.policies.AddRemove, ([0, 19, 0, 0], [1, 19, 0, 0]))
def query_without_the_factor_two():
    right = WorstQuery.rate
    with patch.object(
        WorstQuery, "rate", lambda self, policy, eps: 2 * right(self, policy, eps)
    ):
        yield


@contextmanager
def noisy_maximum_with_half_of_the_noise():
    """Plant ektelo's noisyMax: scale D / epsilon on scores that rise and fall."""
    steps = 256

    def noisiest(self, counts, *, policy, epsilon, rng):
        scale = self.sensitivity(policy) * steps / epsilon
        errors = self.errors(counts)
        noise = rng.laplace(scale.numerator, scale.denominator, errors.size)
        return int((errors * steps + noise).argmax())

    with patch.object(WorstQuery, "select", noisiest):
        yield


@contextmanager
def choice_that_ignores_the_seed():
    """Draw as the authors' ExpMechanism does: from a generator of its own."""
    right = kernels.choose_by_cost

    def unseeded(words, start, costs, rate, prior=None):
        return right(Randomness(None).stream(), start, costs, rate, prior)

    with patch.object(kernels, "choose_by_cost", unseeded):
        yield
