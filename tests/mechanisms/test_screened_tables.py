"""Where attributes move one at a time: all pairs are screened, and batches follow.

Attributes of which no pair is worth its noise are measured alone.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.mechanisms.chosen_tables_run import TablesRun
from blowfish_fast.mechanisms.tables.table_merging import coarser_levels

NAMES = ["age", "sex", "region", "job", "pay"]
SURVEY = bf.WideDomain.product(
    *(
        bf.Domain(size, names=[name])
        for name, size in zip(NAMES, (18, 2, 3, 4, 8), strict=True)
    )
)


@pytest.fixture(name="people", scope="module")
def people_of_a_survey():
    source = np.random.default_rng(8)
    age = source.binomial(17, 0.4, 6000)
    job = np.minimum(age // 4, 3)
    return {
        "age": age,
        "sex": source.integers(0, 2, 6000),
        "region": source.integers(0, 3, 6000),
        "job": job,
        "pay": np.minimum(job * 2 + source.integers(0, 2, 6000), 7),
    }


def released(people):
    mechanism = bf.ChosenTables(
        bf.policies.TablePolicy(SURVEY, {}),
        bf.workloads.Tables(SURVEY, ways=2),
        choose="data",
        epsilon=1,
    )
    out = mechanism.release(bf.TableCounts.from_records(mechanism, people), rng=1)
    assert out.guarantee.budget <= mechanism.budget
    return out


def test_screens_have_their_own_door(people):
    out = released(people)
    assert "screen" in out.measured["step"].tolist()
    pair = out.screen("age", "pay")
    assert pair.details["step"] == "screen"
    assert max(pair.details["cells"]) <= 4


def test_attributes_that_no_pair_needs_are_measured_again(people):
    source = np.random.default_rng(2)
    out = released({name: source.permutation(own) for name, own in people.items()})
    later = out.measured["table"][out.measured["step"] == "chosen"].tolist()
    # Nothing depends: no pair is measured only because its attributes are free.
    assert len({*later} & {*NAMES}) > 2


def test_a_single_table_without_any_budget_changes_nothing():
    assert TablesRun._improve_single(SimpleNamespace(), 0, np.zeros(3), np.inf) is None


@pytest.mark.parametrize("moves", [True, False])
def test_where_records_move_fewer_levels_are_candidates(moves):
    own = SimpleNamespace(levels=coarser_levels(np.full(24, 10.0), True))
    every = [level.count for level in own.levels]
    assert (every[0], every[-1]) == (24, 2)
    run = SimpleNamespace(rules=SimpleNamespace(moves=moves), attributes=[own, own])
    levels = TablesRun._levels(run, (0, 1))
    expected = [count for count in every if count == 24 or 2 < count <= 8]
    sides = [[level.count for level in each] for each in levels]
    assert sides == [expected if moves else every] * 2
