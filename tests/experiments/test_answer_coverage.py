"""Answers of groups against records, in their short form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments import answer_coverage
from experiments.answer_coverage import (
    MEASURES,
    counted,
    made_up_records,
    write_answers,
)


def test_records_lie_in_the_cells_that_count_them():
    records = made_up_records()
    counts = counted(records)
    assert counts.sum(axis=0).tolist() == [one.size for one in records]
    assert counts[7 - 1, 2] == 1
    assert records[1].max() > 20 * np.median(records[1])


@pytest.mark.long
def test_the_table_says_what_is_held_of_groups_and_what_is_bought(
    tmp_path, monkeypatch
):
    chosen = {name: answer_coverage.MECHANISMS[name] for name in ("laplace", "dawa")}
    monkeypatch.setattr(answer_coverage, "MECHANISMS", chosen)
    path = tmp_path / "answers.csv"
    rows = write_answers(path, trials=3)
    assert len(rows) == 2 * len(MEASURES)
    text = path.read_text()
    assert text.startswith("mechanism,measure,said,held,error,width,bought\n")
    assert "\nlaplace,mean,1.000," in text
    for one in rows:
        if one.mechanism == "laplace":
            assert (one.said, math.isnan(one.bought)) == (1.0, True)
            assert one.held > 0.7
        if one.said == 0.0:
            assert one.bought > 0.5
