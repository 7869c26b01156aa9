"""Single tables of ordered attributes as running totals, where edges are short.

The rule is ``mechanisms.tables.table_rules.TableRules.running``, the price
``tests/privacy/test_running_totals``.
"""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import ReleaseFileError
from blowfish_fast.measure.strategies.tables.merged_tables import MergedTables
from blowfish_fast.measure.strategies.tables.table_strategy import EdgeKind
from blowfish_fast.mechanisms.tables.table_rules import TableRules
from blowfish_fast.release.chosen_release import read_tables
from blowfish_fast.workloads import Ranges, Tables

P = bf.policies
AGES, PAYS = bf.Domain(60, names=["age"]), bf.Domain(20, names=["pay"])
SEXES = bf.Domain.from_levels(["f", "m"], name="sex")
TOWNS = bf.Domain.from_levels(["x", "y", "z"], name="town")
SURVEY = bf.WideDomain.product(AGES, PAYS, SEXES, TOWNS)
NEAR = P.TablePolicy(SURVEY, {"age": P.Line(AGES), "pay": P.Threshold(PAYS, theta=9)})


@pytest.fixture(name="cells", scope="module")
def cells_of_people():
    source = np.random.default_rng(4)
    age = source.binomial(59, 0.3, 5000)
    pay = np.minimum(age // 3 + source.integers(0, 4, 5000), 19)
    return np.array([age, pay, source.integers(0, 2, 5000), age % 3])


def released(cells, seed, policy=NEAR, **terms):
    mechanism = bf.ChosenTables(
        policy, Tables(SURVEY, ways=2), choose="data", **(terms or {"epsilon": "0.3"})
    )
    blocks = [cells.astype(np.int32)]
    data = bf.TableCounts.from_cells(SURVEY, mechanism.measured_tables, blocks)
    return mechanism.release(data, rng=seed)


def off(out, cells, name, axis):
    true = np.bincount(cells[axis], minlength=SURVEY.shape[axis])
    return np.abs(out.fitted(name).estimate - true).sum() / 10_000


@pytest.mark.long
@pytest.mark.parametrize("terms", [{"epsilon": "0.3"}, {"rho": "0.005"}])
def test_running_totals_say_more_where_edges_are_short(cells, terms, monkeypatch):
    totals = [released(cells, seed, **terms) for seed in range(3)]
    monkeypatch.setattr(bf.ChosenTables, "_spans", lambda self: {})
    by_cells = [released(cells, seed, **terms) for seed in range(3)]
    away = [
        np.mean([off(out, cells, "age", 0) for out in releases])
        for releases in (totals, by_cells)
    ]
    assert away[0] < 0.8 * away[1]


@pytest.mark.long
def test_intervals_of_ranges_are_those_of_two_totals(cells):
    held = []
    for seed in range(20):
        out = released(cells, seed)
        age = out.table("age")
        ranges = Ranges(age.domain, [0, 5, 10, 20, 0], [10, 40, 30, 21, 60])
        true = np.bincount(cells[0], minlength=60)
        wanted = [true[low:high].sum() for low, high in zip(*ENDS, strict=True)]
        bounds = age.intervals(ranges, 0.9, of="truth")
        held.append((bounds[:, 0] <= wanted) & (wanted <= bounds[:, 1]))
        errors = age.standard_errors(ranges)
        # However long a range is, two totals say it; the last one is exact.
        np.testing.assert_allclose(errors[1:4], errors[1])
        assert errors[0] < errors[1]
        assert errors[4] == 0
    assert np.mean(held) > 0.85
    first = out.measured["step"] == "single"
    names, noise = out.measured["table"][first], out.measured["noise"][first]
    listed = dict(zip(names, noise, strict=True))
    assert listed["age"] == pytest.approx(errors[1])
    assert listed["age"] < listed["pay"]
    # Of two cells one total says all: half the noise of a cell among several.
    assert listed["sex"] < 0.75 * listed["age"]


ENDS = [0, 5, 10, 20, 0], [10, 40, 30, 21, 60]


def test_totals_are_kept_in_a_file_and_checked_when_read(cells, monkeypatch):
    out = released(cells, 1)
    again = read_tables(out.to_bytes())
    ranges = Ranges(AGES, *ENDS)
    assert (
        again.table("age").intervals(ranges) == out.table("age").intervals(ranges)
    ).all()
    for damage in ([0], [99], [1, -1]):
        genuine = MergedTables.pack

        def damaged(self, damage=damage, genuine=genuine):
            packed = genuine(self)
            return {**packed, "running": damage} if self.running else packed

        with monkeypatch.context() as patched:
            patched.setattr(MergedTables, "pack", damaged)
            broken = out.to_bytes()
        with pytest.raises(ReleaseFileError, match="running totals are of tables"):
            read_tables(broken)
    records = released(cells, 1, P.AddRemove(SURVEY), epsilon=1)

    def on_noisy_records(self, genuine=genuine):
        packed = genuine(self)
        several = len(self.tables) > 1
        return {**packed, "running": [1]} if several else packed

    with monkeypatch.context() as patched:
        patched.setattr(MergedTables, "pack", on_noisy_records)
        broken = records.to_bytes()
    with pytest.raises(ReleaseFileError, match="exact number of records"):
        read_tables(broken)


def test_attributes_that_no_pair_needs_are_measured_again_as_totals(cells):
    shuffled = np.random.default_rng(1).permuted(cells, axis=1)
    out = released(shuffled, 1, epsilon=1)
    later = out.measured["table"][out.measured["step"] == "chosen"]
    assert {"age", "sex", "town"} <= {*later}
    again = read_tables(out.to_bytes())
    assert again.to_bytes() == out.to_bytes()
    # The first measurement has the intervals, the model follows all of them.
    true = np.bincount(cells[0], minlength=60).cumsum()
    first, fitted = (
        np.abs(np.cumsum(estimate) - true).mean()
        for estimate in (out.table("age").estimate, again.fitted("age").estimate)
    )
    assert fitted < first


def test_totals_are_taken_where_their_noise_is_less():
    moves = tuple(EdgeKind(frozenset({axis})) for axis in range(4))
    terms = (24, 96, 96, 2), [(0, 1)], [0, 1, 2, 3], moves
    spans = {0: 1, 1: 2, 2: 3, 3: 1}
    assert TableRules(*terms, spans=spans).running == {0, 1, 3}
    assert TableRules(*terms, power=2, spans=spans).running == {0, 1, 3}
    assert TableRules(*terms).running == frozenset()
    shares = TableRules(*terms, spans=spans).single_shares()
    # Each attribute moves alone: what it pays a row is one over the rows that move.
    np.testing.assert_allclose(shares, [1, 0.5, 0.5, 1])


def test_choices_have_twice_the_share_where_records_move():
    terms = (9, 9), [(0, 1)], [0, 1]
    appearing, moving = EdgeKind(None), EdgeKind(frozenset({0, 1}))
    shares = [
        TableRules(*terms, kinds).choice_share
        for kinds in ((appearing,), (moving,), (moving, appearing))
    ]
    assert [float(share) for share in shares] == [0.1, 0.2, 0.2]
