"""The price of tables of three attributes among those that data choose: Lemma DC10."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from blowfish_fast.audit.invariants import audit_testimony
from blowfish_fast.data.tables.merged_tables import CountedTables
from blowfish_fast.errors import InputError
from blowfish_fast.measure.selectors.worst_table import UNIT, WorstTable
from blowfish_fast.mechanisms.chosen_tables_run import TablesRun
from tests.privacy.test_chosen_tables import (
    POLICIES,
    SMALL,
    largest_loss,
    selectors_seen,
    sides_of,
    some_choices,
    transcript_losses,
    watched,
)

WITH_TRIPLES = CountedTables((2, 3, 2), [*combinations(range(3), 2), (0, 1, 2)])


class PairsOfATriple(WorstTable):
    """A planted bug: the score of a triple is the sum of those of its three pairs."""

    def _costs_of(self, choice, counts):
        axes = choice.table.axes
        if len(axes) < 3:
            yield from super()._costs_of(choice, counts)
            return
        true = self.counted.table(counts, axes)
        surplus = sum(
            int(np.maximum(UNIT * table - guess, 0).sum())
            for table, guess in (
                (true.sum(axis=at), choice.estimate.sum(axis=at)) for at in range(3)
            )
        )
        yield from (penalty - surplus for penalty in choice.penalties)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_triples_change_scores_within_the_interval_of_pairs(name, generator):
    policy, widest = POLICIES[name], Fraction(0)
    for _ in range(3):
        choices = some_choices(generator, (64, 16), most=3)
        selector = WorstTable(WITH_TRIPLES, choices)
        triple = slice(len(selector.candidates()) - 8, None)
        background = generator.integers(0, 5, 12)
        for first, second, steps in sides_of(policy, background):
            change = selector.costs(WITH_TRIPLES.of_cells(first))
            change = change - selector.costs(WITH_TRIPLES.of_cells(second))
            assert np.abs(change[triple]).max() <= UNIT
            span = Fraction(int(change.max()) - int(change.min()))
            widest = max(widest, span / steps)
    assert 0 < widest <= selector.interval(policy)


def test_a_candidate_by_its_number_is_that_of_the_list(generator):
    selector = WorstTable(WITH_TRIPLES, some_choices(generator, (64, 16), most=3))
    listed = selector.candidates()
    for number, table in enumerate(listed):
        alone = selector.candidate(number)
        assert alone.axes == table.axes
        for own, other in zip(alone.groupings, table.groupings, strict=True):
            assert np.array_equal(own.labels, other.labels)
    with pytest.raises(InputError, match="no candidate"):
        selector.candidate(len(listed))


def test_a_triple_that_is_scored_by_its_pairs_is_caught(generator):
    policy = POLICIES["full"]
    terms = policy, generator, (64,), WITH_TRIPLES, 3
    assert largest_loss(WorstTable, *terms) <= 1
    assert largest_loss(PairsOfATriple, *terms) > 1


def triples_offered(testimony):
    """Return how many triples each choice of a release was offered."""
    return [
        sum(len(choice.table.axes) == 3 for choice in step.asked.choices)
        for step in testimony.selected
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", ["add_remove", "full", "public", "full_absent"])
def test_whole_transcripts_with_triples_cost_at_most_what_was_granted(name):
    policy = POLICIES[name]
    testimony, told = watched(policy, 2, ways=3)
    assert max(triples_offered(testimony)) == 1
    measured = [
        table.axes
        for step in testimony.measured
        for table in step.result.strategy.tables
    ]
    assert (0, 1, 2) in measured
    assert 0.5 < max(transcript_losses(told, policy)) <= 4
    assert audit_testimony(testimony) == []
    truth = told.cells.reshape(SMALL.shape)
    moved = truth[::-1].copy()
    assert selectors_seen(testimony, truth) == selectors_seen(testimony, moved)


@pytest.mark.long
def test_triples_that_the_truth_lets_in_are_caught(monkeypatch):
    # A candidate that one neighbour has and the other has not: an infinite loss.
    genuine = TablesRun._open_triples

    def that_depend(self, number):
        counted, counts = self.plan.counted, self.private._counts
        depend = [
            axes
            for axes in self.rules.triples
            if counted.table(counts, axes)[0, 2, 1] > 800
        ]
        return list(dict.fromkeys([*genuine(self, number), *depend]))

    testimony, told = watched(POLICIES["add_remove"], 2, ways=3)
    truth = told.cells.reshape(SMALL.shape)
    fewer = truth.copy()
    fewer[0, 2, 1] = 800
    assert truth[0, 2, 1] > 800
    assert selectors_seen(testimony, truth) == selectors_seen(testimony, fewer)
    monkeypatch.setattr(TablesRun, "_open_triples", that_depend)
    assert selectors_seen(testimony, truth) != selectors_seen(testimony, fewer)
