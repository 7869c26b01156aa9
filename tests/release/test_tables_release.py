"""What a release of tables gives: tables, fits, records, files."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import (
    DomainError,
    InputError,
    IntervalError,
    ReleaseFileError,
)
from blowfish_fast.release.synthetic import coins_of
from blowfish_fast.workloads import Identity, Prefixes, Tables

SURVEY = bf.WideDomain.product(
    bf.Domain.from_edges(range(0, 101, 10), name="age"),
    bf.Domain.from_levels(["F", "M"], name="sex"),
    bf.Domain.from_levels(["north", "south", "west"], name="region"),
    bf.Domain.from_levels(["yes", "no"], name="works"),
)


@pytest.fixture(name="out", scope="module")
def released():
    source = np.random.default_rng(4)
    ages = source.integers(0, 90, 6000)
    people = {
        "age": ages,
        "sex": source.choice(["F", "M"], 6000),
        "region": source.choice(["north", "south", "west"], 6000, p=[0.6, 0.3, 0.1]),
        "works": np.where((ages > 20) & (ages < 65), "yes", "no"),
    }
    mechanism = bf.Contingency(
        bf.policies.AddRemove(SURVEY), Tables(SURVEY, ways=2), epsilon=1
    )
    return mechanism.release(bf.TableCounts.from_records(mechanism, people), rng=1)


def test_a_table_is_an_ordinary_release(out):
    table = out.table("works", "age")
    assert table.domain.names == ("age", "works")
    frame = table.to_table()
    assert list(frame) == ["age_from", "age_to", "works", "estimate", "low", "high"]
    adults = table.where(age=slice(20, 60), works="yes").count()
    assert adults == pytest.approx(table.estimate[2:6, 0].sum())
    same = bf.HistogramRelease.from_bytes(table.to_bytes())
    cells = Identity(table.domain)
    assert (same.intervals(cells) == table.intervals(cells)).all()
    with pytest.raises(IntervalError, match="estimated from several"):
        table.measurements[0].estimate()


def test_what_a_plan_measured_is_listed_as_what_a_choice_measured(out):
    listed = out.measured
    pairs = [str(name).split(" x ") for name in listed["table"]]
    assert ["age", "sex"] in pairs
    assert set(listed["step"]) == {"plan"}
    for names, cells, noise in zip(
        pairs, listed["cells"], listed["noise"], strict=True
    ):
        shape = out.table(*names).estimate.shape
        assert sorted(map(int, str(cells).split(" x "))) == sorted(shape)
        # Other tables help: the fitted cell is no worse than its own measurement.
        fitted = out.table(*names).standard_errors(Identity(out.table(*names).domain))
        assert fitted.max() <= noise * (1 + 1e-9)


def test_questions_find_their_table(out):
    assert out.where(age=slice(20, 60), works="yes").count() == pytest.approx(
        out.table("age", "works").estimate[2:6, 0].sum()
    )
    by_region = out.group_by("region").count()
    assert len(by_region.to_table()) == 3
    ages = SURVEY.marginal(["age"])
    asked = Prefixes(ages)
    assert out.answer(asked).shape == out.standard_errors(asked).shape == (10,)
    assert out.intervals(asked).shape == (10, 2)
    assert out.answer(Tables(SURVEY, ways=1)).shape == (17,)
    with pytest.raises(DomainError, match="attributes of one table"):
        out.answer(Prefixes(bf.Domain(3)))


def test_all_asked_tables_have_errors_and_intervals_at_once(out):
    asked = Tables(SURVEY, ways=2)
    single = [out.table(*one) for one in out.asked]
    errors = [one.standard_errors(Identity(one.domain)) for one in single]
    assert np.allclose(out.standard_errors(asked), np.concatenate(errors))
    bounds = [one.intervals(Identity(one.domain), 0.9) for one in single]
    assert (out.intervals(asked, 0.9) == np.concatenate(bounds)).all()
    # All at once: a tenth is shared by all cells of all tables, not of each.
    at_once = out.intervals(asked, 0.9, together=True, of="noise")
    each = out.intervals(asked, 1 - 0.1 / asked.queries, of="noise")
    assert np.allclose(at_once, each)
    assert at_once.shape == (out.answer(asked).size, 2)
    with pytest.raises(bf.BlowfishError, match="confidence"):
        out.intervals(asked, 2)


def test_tables_of_other_attributes_are_found_by_name_or_refused(out):
    some = Tables(SURVEY.marginal(["sex", "works"]), ways=1)
    expected = [out.table(one).estimate for one in ("sex", "works")]
    assert (out.answer(some) == np.concatenate(expected)).all()
    assert out.intervals(some).shape == (4, 2)
    other = Tables(bf.WideDomain.product(SURVEY, bf.Domain(2, names=["more"])), ways=1)
    for ask in (out.answer, out.intervals, out.standard_errors):
        with pytest.raises(DomainError, match="attributes of one table"):
            ask(other)


def test_there_is_no_single_estimate(out):
    assert not hasattr(out, "estimate")
    with pytest.raises(AttributeError, match="Take one table"):
        _ = out.estimate
    with pytest.raises(IntervalError, match="before the release"):
        out.table("age", "sex", "region")
    assert "10 tables" in repr(out)
    assert out._repr_html_()
    with pytest.raises(ValueError, match="read-only"):
        out.measurements[0].noisy[0] = 0


def test_fitted_tables_have_no_negatives_and_keep_their_margins(out):
    pair = out.fitted("age", "works")
    assert (pair.estimate >= 0).all()
    margin = out.fitted("age").estimate
    assert np.allclose(pair.estimate.sum(axis=1), margin, atol=0.5)
    assert pair.unfitted is not None
    cells = Identity(pair.domain)
    linear = out.table("age", "works").intervals(cells, of="noise")
    assert np.allclose(pair.intervals(cells, of="noise"), linear)


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_fitted_tables_are_no_further_off_than_noise_puts_linear_ones(epsilon):
    # Two attributes that are nearly the same: mixing in independence would be a bias.
    source = np.random.default_rng(5)
    first = source.integers(0, 8, 40000)
    moved = source.random(40000) < 0.1
    people = {"one": first, "two": np.where(moved, 7 - first, first)}
    survey = bf.WideDomain.product(*(bf.Domain(8, names=[name]) for name in people))
    asked = Tables(survey, ways=2)
    mechanism = bf.Contingency(bf.policies.AddRemove(survey), asked, epsilon=epsilon)
    data = bf.TableCounts.from_records(mechanism, people)
    true = np.zeros((8, 8))
    np.add.at(true, (people["one"], people["two"]), 1)
    outs = (mechanism.release(data, rng=seed) for seed in range(10))
    errors = [out.fitted("one", "two").estimate - true for out in outs]
    predicted = mechanism.expected_error("one", "two")[0]
    assert np.mean(np.square(errors)) <= 1.05 * predicted


def test_whole_tables_are_whole_and_agree_exactly(out):
    pair = out.fitted("age", "works", whole=True).estimate
    assert (pair == np.rint(pair)).all()
    assert (pair >= 0).all()
    assert (pair.sum(axis=0) == out.fitted("works", whole=True).estimate).all()


@pytest.mark.parametrize("epsilon", [0.3, 3])
def test_whole_tables_are_no_further_off_than_noise_puts_linear_ones(epsilon):
    source = np.random.default_rng(2)
    hidden = source.integers(0, 4, 8000)
    likely = source.dirichlet(np.full(5, 0.5), (6, 4)).cumsum(axis=2)
    drawn = source.random((6, 8000, 1))
    people = {
        f"a{at}": np.minimum((drawn[at] > likely[at, hidden]).sum(axis=1), 4)
        for at in range(6)
    }
    survey = bf.WideDomain.product(*(bf.Domain(5, names=[name]) for name in people))
    asked = Tables(survey, ways=2)
    mechanism = bf.Contingency(bf.policies.AddRemove(survey), asked, epsilon=epsilon)
    data = bf.TableCounts.from_records(mechanism, people)
    outs = [mechanism.release(data, rng=seed) for seed in range(3)]
    linear, whole = [], []
    for pair in (one for one in outs[0].asked if len(one) == 2):
        true = np.zeros((5, 5))
        np.add.at(true, tuple(people[name] for name in pair), 1)
        for out in outs:
            linear.append(out.table(*pair).estimate - true)
            whole.append(out.fitted(*pair, whole=True).estimate - true)
    assert np.mean(np.square(whole)) <= 1.05 * np.mean(np.square(linear))


def test_whole_tables_are_the_same_whenever_a_file_is_read(out, tmp_path):
    out.save(tmp_path / "tables.release")
    first, second = (
        bf.TablesRelease.load(tmp_path / "tables.release") for _ in range(2)
    )
    for table in out.asked:
        whole = out.fitted(*table, whole=True).estimate
        assert (first.fitted(*table, whole=True).estimate == whole).all()
        assert (second.fitted(*table, whole=True).estimate == whole).all()
    # Another draw of the noise is rounded by coins of its own.
    noisy = out.measurements[0].noisy
    coins = [coins_of(one).random() for one in (noisy, noisy.copy(), noisy + 1)]
    assert coins[0] == coins[1] != coins[2]


def test_synthetic_records_follow_the_fitted_tables(out):
    records = out.sample(5000, rng=1)
    assert len(records) == 5000
    assert set(records["region"]) <= {"north", "south", "west"}
    shares = out.misplaced(records)
    assert shares["misplaced"].max() < 0.05
    again = out.sample(5000, rng=1)
    assert (again["age"] == records["age"]).all()
    assert len(out.sample(0)) == 0
    # What depends on age stays so: nobody below 20 works but for noise.
    young = records["age"] < 20
    assert (records["works"][young] == "yes").mean() < 0.1


def test_attributes_that_no_table_holds_are_drawn_evenly():
    mechanism = bf.Contingency(
        bf.policies.AddRemove(SURVEY), Tables(SURVEY, [("sex", "works")]), epsilon=1
    )
    people = {"age": [5] * 900, "sex": ["F"] * 900, "region": ["north"] * 900}
    data = bf.TableCounts.from_records(mechanism, people | {"works": ["no"] * 900})
    records = mechanism.release(data, rng=1).sample(rng=1)
    regions = [(records["region"] == one).mean() for one in ("north", "south", "west")]
    assert regions == pytest.approx([1 / 3] * 3, abs=0.1)
    assert records["age"].max() > 80


def test_files_bring_back_the_same_tables(out, tmp_path):
    out.save(tmp_path / "tables.release")
    same = bf.TablesRelease.load(tmp_path / "tables.release")
    assert (same.table("age", "sex").estimate == out.table("age", "sex").estimate).all()
    assert same.asked == out.asked
    assert str(same.guarantee) == str(out.guarantee)
    with pytest.raises(ReleaseFileError):
        bf.HistogramRelease.load(tmp_path / "tables.release")
    with pytest.raises(ReleaseFileError):
        bf.TablesRelease.from_bytes(out.to_bytes()[:-50])


def test_all_tables_are_written_to_a_folder(out, tmp_path):
    out.save_tables(tmp_path / "all", fitted=True)
    with open(tmp_path / "all" / "contents.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    with open(tmp_path / "all" / rows[4]["file"], newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == int(rows[4]["cells"])
    assert {"estimate", "low", "high", "fitted"} <= set(cells[0])
    assert "eps = 1" in (tmp_path / "all" / "promise.txt").read_text()


def test_what_the_promise_says_of_a_folder_of_tables_is_so(out, tmp_path):
    # Counts under estimate are cut at 0, so they do not agree; those under fitted do.
    out.save_tables(tmp_path / "all", fitted=True)
    promise = (tmp_path / "all" / "promise.txt").read_text()
    assert "below 0 are shown as 0, so that they add up to more" in promise
    assert "under fitted are not negative, and agree" in promise
    assert "under whole" not in promise
    out.save_tables(tmp_path / "whole", whole=True)
    whole = (tmp_path / "whole" / "promise.txt").read_text()
    assert "under whole are those of one set of made-up records" in whole
    assert "under fitted" not in whole
    totals = {"estimate": [], "fitted": []}
    for path in sorted((tmp_path / "all").glob("0*.csv")):
        with open(path, newline="") as file:
            lines = list(csv.DictReader(file))
        for column, sums in totals.items():
            counts = [float(line[column]) for line in lines]
            assert min(counts) >= 0
            sums.append(sum(counts))
    np.testing.assert_allclose(totals["fitted"], totals["fitted"][0])
    assert max(totals["estimate"]) > totals["fitted"][0] + 1


def test_all_tables_are_written_to_a_workbook(out, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    out.save_tables(tmp_path / "all.xlsx")
    book = openpyxl.load_workbook(tmp_path / "all.xlsx", read_only=True)
    assert book.sheetnames[:2] == ["promise", "contents"]
    assert len(book.sheetnames) == 12 + 6
    assert len([name for name in book.sheetnames if name.startswith("cross 0")]) == 6
    assert "eps = 1" in next(book["promise"].values)[0]


def test_files_that_are_there_are_kept_unless_that_is_allowed(out, tmp_path):
    pytest.importorskip("openpyxl")
    for target in (tmp_path / "all", tmp_path / "all.xlsx"):
        out.save_tables(target)
        with pytest.raises(InputError, match="exists already"):
            out.save_tables(target)
        out.save_tables(target, overwrite=True)
    mine = tmp_path / "all" / "notes.txt"
    mine.write_text("mine")
    out.save_tables(tmp_path / "all", confidence=0.5, overwrite=True)
    assert mine.read_text() == "mine"
    assert "at least 50 %" in (tmp_path / "all" / "promise.txt").read_text()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("years")
    with pytest.raises(InputError, match="holds other files"):
        out.save_tables(tmp_path / "work", overwrite=True)
    with pytest.raises(bf.BlowfishError, match="confidence"):
        out.save_tables(tmp_path / "never", confidence=2)
    assert not (tmp_path / "never").exists()


def test_spreadsheets_are_told_of_letters_beyond_ascii(tmp_path):
    towns = bf.Domain.from_levels(["Bern", "Zürich"], name="town")
    survey = bf.WideDomain.product(towns, bf.Domain(2, names=["sex"]))
    asked = Tables(survey, ways=1)
    mechanism = bf.Contingency(bf.policies.AddRemove(survey), asked, epsilon=1)
    people = {"town": ["Bern", "Zürich"] * 50, "sex": [0, 1] * 50}
    out = mechanism.release(bf.TableCounts.from_records(mechanism, people), rng=1)
    out.save_tables(tmp_path / "all")
    mark = b"\xef\xbb\xbf"
    assert (tmp_path / "all" / "001_town.csv").read_bytes().startswith(mark)
    assert not (tmp_path / "all" / "002_sex.csv").read_bytes().startswith(mark)


def test_accuracy_stands_beside_mean_counts(out):
    table = out.accuracy()
    assert list(table) == ["table", "cells", "rms_error", "mean_count"]
    assert (table["rms_error"] > 0).all()
