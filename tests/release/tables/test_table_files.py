"""All tables as files."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.data import frames
from blowfish_fast.errors import SizeError


@pytest.fixture(name="out")
def small_release():
    survey = bf.Domain((3, 2), names=["a/b", "sex"])
    asked = bf.workloads.Tables(survey, ways=2)
    mechanism = bf.Contingency(bf.policies.Full(survey), asked, epsilon=1)
    return mechanism.release(bf.Histogram(survey, [[1, 2], [3, 4], [5, 6]]), rng=1)


def test_names_of_files_hold_nothing_strange(out, tmp_path):
    out.save_tables(tmp_path / "all")
    names = sorted(one.name for one in (tmp_path / "all").iterdir())
    assert names == [
        *("001_a-b.csv", "002_sex.csv", "003_a-b_sex.csv"),
        *("contents.csv", "promise.txt"),
    ]


def test_a_sheet_that_is_too_long_is_refused(out, tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    monkeypatch.setattr(frames, "MOST_ROWS", 5)
    with pytest.raises(SizeError, match="a sheet holds at most 5 cells"):
        out.save_tables(tmp_path / "all.xlsx")
