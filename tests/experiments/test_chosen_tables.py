"""Tables by plan and by choice are compared with the truth, survey by survey."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from experiments import chosen_tables
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


def test_a_line_for_each_policy_and_budget_and_how_far_behind(survey, monkeypatch):
    monkeypatch.setattr(chosen_tables, "chosen_surveys", lambda folder: [survey])
    monkeypatch.setattr(chosen_tables, "CASES", chosen_tables.CASES[:1])
    head, line, last = chosen_tables.chosen_report(None, 1)
    assert head.split()[:3] == ["survey", "policy", "budget"]
    assert line.split()[:4] == ["generated", "add_remove", "epsilon", "1"]
    assert "best over the better of both" in last
    assert len(list(chosen_tables.chosen_report(None, 1, ["judged"]))) == 1


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
