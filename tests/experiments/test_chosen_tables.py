"""Tables by plan and by choice are compared with the truth, survey by survey."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from experiments import census_tables, chosen_tables
from experiments.__main__ import application
from experiments.chosen_surveys import CELLS, JUDGED_ON, LOOKED_AT, _coded
from experiments.survey_tables import Survey

pd = pytest.importorskip("pandas")


@pytest.fixture(name="survey")
def small_survey():
    source = np.random.default_rng(2)
    first = source.integers(0, 3, 900)
    columns = {"a": first, "b": first, "c": source.integers(0, 2, 900)}
    sides = [
        bf.Domain(size, names=[name])
        for name, size in zip("abc", (3, 3, 2), strict=True)
    ]
    return Survey("generated", bf.WideDomain.product(*sides), columns, "a")


@pytest.mark.long
def test_a_line_for_each_policy_and_budget_and_how_far_behind(
    survey, monkeypatch, tmp_path
):
    monkeypatch.setattr(chosen_tables, "chosen_surveys", lambda folder: [survey])
    monkeypatch.setattr(chosen_tables, "CASES", chosen_tables.CASES[:1])
    path = tmp_path / "tables" / "judged.csv"
    head, line, last = chosen_tables.chosen_report(None, 1, path=path)
    assert head.split()[:3] == ["survey", "policy", "budget"]
    assert line.split()[:4] == ["generated", "add_remove", "epsilon", "1"]
    assert "best over the better of both" in last
    assert not path.exists()
    assert len(list(chosen_tables.chosen_report(None, 1, ["judged"], path))) == 1
    monkeypatch.setattr(chosen_tables, "JUDGED_ON", ("generated",))
    assert len(list(chosen_tables.chosen_report(None, 1, ["judged"], path))) == 3
    header, row = path.read_text().splitlines()
    assert header.split(",") == [*chosen_tables.ChosenRow._fields]
    assert row.startswith("generated,add_remove,epsilon 1,0.")
    # Of another policy nothing is measured, and what was recorded stays.
    others = ["judged", "full"]
    assert len(list(chosen_tables.chosen_report(None, 1, others, path))) == 1
    assert path.read_text().splitlines() == [header, row]


def test_exact_tables_misplace_nothing_and_independence_something(survey):
    truth = chosen_tables.Truth(survey)
    assert truth.misplaced(truth.tables.__getitem__) == 0
    assert 0.05 < truth.misplaced(truth.independent) < 0.2


def test_values_are_put_into_stated_cells_and_missing_ones_into_their_own():
    codes, count, texts = _coded(pd.Series([0.0, 4.9, 5.0, 99.0, None]), (0, 10, 2))
    assert (codes.tolist(), count, texts) == ([0, 0, 1, 1, 2], 3, False)
    codes, count, texts = _coded(pd.Series(["b", "a", None, "b"]), None)
    assert (codes.tolist(), count, texts) == ([1, 0, 2, 1], 3, True)
    assert {*CELLS} <= {*LOOKED_AT, *JUDGED_ON}
    assert not {*LOOKED_AT} & {*JUDGED_ON}


def test_the_census_has_a_row_for_each_case(survey, monkeypatch, tmp_path):
    monkeypatch.setattr(census_tables, "adult", lambda folder: survey)
    cases = census_tables.CENSUS_CASES
    monkeypatch.setattr(census_tables, "CENSUS_CASES", (cases[2], cases[-1]))
    path = tmp_path / "census.csv"
    rows = list(census_tables.write_census(tmp_path, 1, path=path))
    assert [row.asked for row in rows] == [3, 2]
    assert 0 < rows[0].model < rows[0].three_model < 0.1
    assert 0 < rows[1].model < 0.1
    head, first, last = path.read_text().splitlines()
    (again,) = census_tables.write_census(tmp_path, 1, ["line"], path)
    assert again.model == rows[1].model
    header, *lines = path.read_text().splitlines()
    assert (header, lines[0]) == (head, first)
    assert lines[1].split(",")[:5] == last.split(",")[:5]


def test_a_prior_is_a_part_of_the_survey_and_the_rest_is_released(
    survey, monkeypatch, tmp_path
):
    for how in ("random", "lowest"):
        other, rest = census_tables.parted(survey, 0.3, how)
        sizes = [len(part.columns["a"]) for part in (other, rest)]
        assert sum(sizes) == 900
        assert 0.2 < sizes[0] / 900 < 0.4
    assert (other.columns["a"] == 0).all()
    monkeypatch.setattr(census_tables, "chosen_surveys", lambda folder: [survey])
    cases = (("generated", 0.3, "random"), ("elsewhere", 0.3, "random"))
    monkeypatch.setattr(census_tables, "PRIOR_CASES", cases)
    path = tmp_path / "prior.csv"
    (row,) = census_tables.write_priors(None, path=path)
    assert (row.role, row.drawn) == ("looked at", "random")
    assert row.ratio < 1.2
    assert path.read_text().startswith("survey,role,records,prior,drawn,without")
    assert list(census_tables.write_priors(None, ["another"], path)) == []


def test_the_census_needs_its_file():
    done = CliRunner().invoke(application, ["census"])
    assert "State --data FOLDER" in str(done.exception)
