"""Lists of cells: the exact ratio of their laws, and planted bugs that are caught."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf
import blowfish_fast.measure.strategies.cells_above as cells_above
from blowfish_fast.audit import QUICK
from blowfish_fast.audit.lists import _cell_law, compare_with_law, list_law
from blowfish_fast.audit.plan import AuditTask
from blowfish_fast.audit.walk import examine
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.kernels.sampling.gap_digits import GapDigits
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies.cells_above import (
    CellClass,
    CellsAbove,
    ClassesAbove,
    cell_scales,
)

LINE = bf.Domain(3)
PLAN = QUICK._replace(releases=60, noise=2000, pairs=16)


def worst_ratio(law):
    """Return the largest log-ratio over databases of three cells, one record more."""
    worst = 0.0
    for counts in itertools.product(range(4), repeat=3):
        here = law(np.array(counts))
        for cell in range(3):
            more = np.array(counts)
            more[cell] += 1
            there = law(more)
            for heights, chance in here.items():
                other = there[heights]
                if (chance > 0) != (other > 0):
                    return math.inf
                if chance > 0:
                    worst = max(worst, abs(math.log(chance / other)))
    return worst


SCALES = cell_scales(bf.policies.AddRemove(LINE), Fraction(1))


def right(counts):
    return list_law(counts, SCALES, 3)


def product_of(each):
    return {
        heights: math.prod(one[at] for one, at in zip(each, heights, strict=True))
        for heights in itertools.product(range(4), repeat=3)
    }


def with_empty_cells(change):
    """Return a law whose empty cells are listed otherwise."""

    def law(counts):
        each = []
        for count in counts:
            one = cells_above_law(int(count))
            each.append(change(one, counts) if count == 0 else one)
        return product_of(each)

    return law


def cells_above_law(count, threshold=3):
    return _cell_law(count, SCALES, threshold)


def never(one, counts):
    return [1.0, 0.0, 0.0, 0.0]


def half(one, counts):
    return [1.0 - sum(one[1:]) / 2, *(chance / 2 for chance in one[1:])]


def one_higher(one, counts):
    return [one[0], 0.0, one[1], one[2] + one[3]]


def all_on_the_empty(one, counts):
    share = 3 / sum(count == 0 for count in counts)
    lifted = [chance * share for chance in one[1:]]
    return [1.0 - sum(lifted), *lifted]


def by_the_data(counts):
    threshold = 4 if max(counts) > 1 else 3
    each = [cells_above_law(int(count), threshold) for count in counts]
    if threshold == 4:
        each = [[one[0], 0.0, one[1], one[2] + one[3]] for one in each]
    return product_of(each)


def test_lists_tell_one_record_apart_by_at_most_epsilon():
    assert worst_ratio(right) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    "law",
    [
        with_empty_cells(never),
        with_empty_cells(half),
        with_empty_cells(one_higher),
        with_empty_cells(all_on_the_empty),
        by_the_data,
    ],
    ids=["no false cells", "half", "heights from T + 1", "N p on the empty", "by data"],
)
def test_wrong_laws_of_empty_cells_tell_more(law):
    assert worst_ratio(law) > 1.05


def compared(seed=1, power=1):
    budget = Budget(Fraction(1)) if power == 1 else Budget(Fraction(1, 8), 2)
    scales = cell_scales(bf.policies.AddRemove(LINE), budget)
    return compare_with_law(
        CellsAbove(3, 2, 9), np.array([0, 2, 0]), scales, 1500, seed
    )


def halved(tail, bits):
    low, high = tail(bits)
    return low // 2, high // 2


def no_places(words, cells, law, most):
    return np.zeros(0, dtype=np.int64)


right_gap_law = cells_above._gap_law
cells_above_excess = cells_above._excess
PLANTED = {
    "no false cells": ("lifted_places", no_places),
    "half of the tail": (
        "_gap_law",
        lambda *given: GapDigits(partial(halved, right_gap_law(*given).tail), 2),
    ),
    "heights from T + 1": (
        "_excess",
        lambda *given: cells_above_excess(*given) + 1,
    ),
    "places that are filled are kept": (
        "_among",
        lambda places, keys: np.zeros(places.size, dtype=bool),
    ),
    "heights all at T": ("_excess", lambda *given: 0 * cells_above_excess(*given)),
}


@pytest.mark.long
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("bug", [None, *PLANTED], ids=str)
def test_lists_drawn_are_held_beside_their_law(bug, power):
    if bug is None:
        assert compared(power=power).passed
        return
    name, wrong = PLANTED[bug]
    with patch.object(cells_above, name, wrong):
        if bug.startswith("places"):
            # A cell that is listed twice has no law to compare with.
            scales = cell_scales(bf.policies.AddRemove(LINE), Fraction(1, 10))
            drawn = CellsAbove(3, 1, 9).draw(
                FilledCells.of(np.array([5, 5, 5])),
                scales,
                Randomness(1),
            )
            assert np.unique(drawn.keys).size < drawn.keys.size
            return
        assert not compared(power=power).passed


@pytest.mark.audit
@pytest.mark.parametrize("name", ["sparse_laplace", "sparse_gaussian"])
@pytest.mark.parametrize("family", ["add_remove", "full", "line"])
def test_the_audit_finds_nothing_wrong(name, family):
    verdicts = examine(AuditTask("mechanism", name, 4, family), PLAN, bf.Ledger)
    assert verdicts
    assert [one for one in verdicts if not one.passed] == []
    assert {"prices", "law", "invariants", "budget"} <= {one.check for one in verdicts}


BUGS = {
    "scale": (
        "moved_cells",
        lambda policy: 1,
        "prices",
    ),
    "noise of another scale": (
        "_noise",
        lambda scales, size, rng: rng.laplace(
            scales.unit, 2 * int(scales.rates[0]), size=size
        ),
        "invariants",
    ),
    "no false cells": ("lifted_places", no_places, "law"),
    "no noise": (
        "_noise",
        lambda scales, size, rng: np.zeros(size, dtype=np.int64),
        "invariants",
    ),
}


@pytest.mark.audit
@pytest.mark.parametrize("bug", sorted(BUGS))
def test_the_audit_catches_planted_bugs(bug):
    name, wrong, check = BUGS[bug]
    with patch.object(cells_above, name, wrong):
        verdicts = examine(AuditTask("mechanism", "sparse_laplace", 4, "full"), PLAN)
    assert check in {one.check for one in verdicts if not one.passed}


CLASSES = (CellClass(0, 1, 2), CellClass(1, 2, 3))
"""The empty word, listed from 2 on, and two words of one letter, from 3 on."""


def by_class(change=None):
    """Return the law of three words in two classes; `change` plants a bug."""

    def law(counts):
        each = []
        for one in CLASSES:
            own = counts[one.first : one.first + one.cells]
            cells = [cells_above_law(int(count), one.threshold) for count in own]
            each += cells if change is None else change(cells, own)
        return product_of(each)

    return law


def only_filled_classes(cells, own):
    return cells if sum(own) else [[1.0, 0.0, 0.0, 0.0]] * len(cells)


def threshold_by_filled_words(cells, own):
    """List from one higher where more words of a length occur."""
    if sum(count > 0 for count in own) < 2:
        return cells
    return [[one[0] + one[1], 0.0, one[2], one[3]] for one in cells]


def test_thresholds_by_class_tell_no_more():
    assert worst_ratio(by_class()) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("change", [only_filled_classes, threshold_by_filled_words])
def test_classes_that_follow_the_data_tell_more(change):
    assert worst_ratio(by_class(change)) > 1.05


def listed_shares(lister, draws=3000):
    """Return how often each of three words is listed where the first holds 2."""
    filled = FilledCells.of(np.array([2, 0, 0]))
    rng = Randomness(5)
    seen = np.zeros(3)
    for _ in range(draws):
        seen[lister.draw(filled, SCALES, rng).keys] += 1
    return seen / draws


@pytest.mark.long
def test_draws_by_class_have_their_law_and_a_left_out_class_is_seen():
    law = [1 - cells_above_law(2, 2)[0]] + [1 - cells_above_law(0, 3)[0]] * 2
    off = 5 * np.sqrt(np.array(law) / 3000)
    right_lister = ClassesAbove(CLASSES, 9)
    assert (np.abs(listed_shares(right_lister) - law) < off).all()

    class OnlyFilled(ClassesAbove):
        def draw(self, filled, scales, rng):
            own = [one for one in self.classes if one.first in filled.keys.tolist()]
            return ClassesAbove(own, self.most).draw(filled, scales, rng)

    assert not (np.abs(listed_shares(OnlyFilled(CLASSES, 9)) - law) < off).all()
