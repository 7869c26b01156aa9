"""What a series says without its ledger: files, and answers after each epoch."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.series.releases import ArrivalSource
from blowfish_fast.errors import BudgetError, InputError, LedgerError, ReleaseFileError
from blowfish_fast.release.file import read_archive, write_archive

AGES = bf.Domain(3, names=["age"])
POLICY = bf.policies.AddRemove(AGES)
CELLS = bf.workloads.Identity(AGES)
COUNTS = np.random.default_rng(3).integers(5, 60, (7, 3))
SCHEMES = [False, True, bf.series.Weights((4, 2, 1)), bf.series.EpochBlocks(3)]


def _week(number):
    return f"2026-W{number:02}"


def _series(totals, *, epochs=7, frozen=True):
    """Return a series of seeded releases, in epsilon where blocks are kept."""
    blocks = isinstance(totals, bf.series.EpochBlocks)
    terms = {"epsilon": 3} if blocks else {"rho": 3}
    weeks = bf.Series(
        bf.Ledger(None, policy=POLICY, **terms),
        column="received",
        every="week",
        totals=totals,
        frozen=frozen,
    )
    kind = bf.Laplace if blocks else bf.Gaussian
    mechanism = kind(POLICY, CELLS, **dict.fromkeys(terms, 1))
    for number in range(1, epochs + 1):
        data = COUNTS[number - 1] if totals is False else list(COUNTS[:number])
        weeks.release(_week(number), mechanism, data, rng=number)
    return weeks


@pytest.mark.parametrize("totals", SCHEMES)
def test_a_history_is_what_totals_and_windows_say_one_by_one(totals):
    weeks = _series(totals)
    for last in (None, 1, 3):
        history = weeks.history(CELLS, last=last, confidence=0.9)
        assert history.epochs == tuple(weeks.epochs())
        assert history.kind == "truth"
        for at, name in enumerate(history.epochs):
            size = at + 1 if last is None else min(last, at + 1)
            single = weeks.window(name, size)
            np.testing.assert_allclose(history.answers[at], single.answer(CELLS))
            expected = single.intervals(CELLS, 0.9)
            np.testing.assert_allclose(history.bounds[at], expected, atol=1e-9)


def test_nothing_is_taken_as_frozen_that_was_not_said_to_be():
    terms = {"column": "received", "every": "week", "totals": True}
    weeks = bf.Series(bf.Ledger(None, policy=POLICY, rho=3), **terms)
    weeks.release(_week(1), bf.Gaussian(POLICY, CELLS, rho=1), [COUNTS[0]], rng=1)
    assert weeks.history(bf.workloads.Total(AGES)).kind == "noise"


def test_a_history_of_what_may_change_holds_the_noise():
    history = _series(True, frozen=False).history(bf.workloads.Total(AGES))
    assert history.kind == "noise"
    assert history.bounds.shape == (7, 1, 2)


@pytest.mark.parametrize("totals", SCHEMES)
def test_a_saved_series_answers_as_the_ledger_does(totals, tmp_path):
    weeks = _series(totals)
    weeks.save(tmp_path / "weeks.blowfish")
    saved = bf.series.SavedSeries.load(tmp_path / "weeks.blowfish")
    assert saved.epochs() == weeks.epochs()
    assert saved.latest == _week(7)
    assert not saved.private
    for mine, theirs in (
        (saved.total(_week(7)), weeks.total(_week(7))),
        (saved.window(_week(6), 2), weeks.window(_week(6), 2)),
        (saved.epoch(_week(5)), weeks.epoch(_week(5))),
    ):
        assert mine.answer(CELLS).tolist() == theirs.answer(CELLS).tolist()
        same = mine.intervals(CELLS) == theirs.intervals(CELLS)
        assert same.all()
        assert mine.guarantee == theirs.guarantee
    assert repr(saved).startswith("SavedSeries(2026-W01 to 2026-W07")
    with pytest.raises(ReleaseFileError, match=r"SavedSeries\.load"):
        bf.Release.load(tmp_path / "weeks.blowfish")


def test_a_series_of_one_epoch_says_its_name_once():
    assert "SavedSeries(2026-W01, " in repr(_series(True, epochs=1).saved())


def _changed(content, **other):
    def rebuild(plain):
        return write_archive("series.json", {**plain, **other})

    return read_archive(content, "series.json", rebuild)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"every": "hour"}, "which epochs"),
        ({"column": 3}, "which epochs"),
        ({"frozen": 1}, "what is promised"),
        ({"note": None}, "what is promised"),
        ({"rows": {}}, "at least one epoch"),
        ({"weights": [3, 2, 1]}, "other weights"),
        ({"weights": [1, 2]}, "not a release file"),
        ({"budget": {"rho": "-1"}}, "not a release file"),
        ({"format": 2}, "format"),
        ({"block": 3}, "blocks of epochs are missing"),
    ],
)
def test_files_that_contradict_themselves_are_refused(other, reason):
    content = _series(SCHEMES[2], epochs=3).saved().to_bytes()
    with pytest.raises(ReleaseFileError, match=reason):
        bf.series.SavedSeries.from_bytes(_changed(content, **other))


def test_a_file_with_a_gap_is_refused(tmp_path):
    saved = _series(SCHEMES[2], epochs=3).saved()
    del saved.rows[_week(2)]
    (tmp_path / "gap").write_bytes(saved.to_bytes())
    with pytest.raises(ReleaseFileError, match="gap: there is nothing to add up"):
        bf.series.SavedSeries.load(tmp_path / "gap")


def test_rows_over_other_cells_are_not_added_up():
    saved = _series(False, epochs=2).saved()
    row = saved.rows[_week(2)]
    wider = bf.Domain(3, names=["years"])
    saved.rows[_week(2)] = dataclasses.replace(row, domain=wider)
    with pytest.raises(InputError, match="different domains"):
        saved.total(_week(2))


def test_nothing_is_saved_or_read_of_a_series_without_releases():
    weeks = _series(True, epochs=0)
    with pytest.raises(LedgerError, match="nothing to save"):
        weeks.saved()
    with pytest.raises(LedgerError, match="nothing to read"):
        weeks.history(CELLS)


def test_a_source_of_records_is_asked_for_weighed_counts():
    class Arrived(ArrivalSource):
        def count_weighed(self, terms):
            assert terms.first is None
            assert terms.arrivals.weights.tolist() == [4, 0]
            return bf.Histogram(AGES, [4, 8, 0])

    weeks = _series(SCHEMES[2], epochs=0)
    mechanism = bf.Gaussian(POLICY, CELLS, rho=3)
    row = weeks.release(_week(1), mechanism, Arrived(), rng=1, vouched=True)
    assert row.details["weights"] == [4, 2, 1]


def test_blocks_that_could_not_be_paid_are_refused_at_the_first_epoch():
    ledger = bf.Ledger(None, epsilon="0.7", policy=POLICY)
    weeks = bf.Series(ledger, column="received", every="week", totals=True)
    laplace = bf.Laplace(POLICY, CELLS, epsilon=1)
    assert "cost eps = 1 together" in str(weeks.preview(_week(1), laplace))
    with pytest.raises(BudgetError, match=r"eps = 0\.7 remains"):
        weeks.release(_week(1), laplace, [[1, 2, 3]])
    assert ledger.spent == 0
    weeks.release(_week(1), laplace.at_epsilon("0.7"), [[1, 2, 3]])
    # What was paid is replayed whatever remains.
    weeks.release(_week(1), laplace.at_epsilon("0.7"), [[1, 2, 3]])
