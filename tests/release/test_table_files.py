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


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_tables_of_one_attribute_keep_the_order_of_its_values(tmp_path, form):
    # Neither the order of letters, nor that of counts.
    sizes = bf.Domain.from_levels(["small", "large", "huge"], name="size")
    ages = bf.Domain.from_edges([0, 9, 10, 100], name="age")
    survey = bf.Domain.product(ages, sizes)
    asked = bf.workloads.Tables(survey, ways=1)
    mechanism = bf.Contingency(bf.policies.AddRemove(survey), asked, epsilon=100)
    counts = [[40, 0, 0], [0, 900, 0], [0, 0, 7]]
    out = mechanism.release(bf.Histogram(survey, counts), rng=1)
    if form == "csv":
        out.save_tables(tmp_path / "all")
        rows = [
            [line.split(",") for line in one.read_text().splitlines()]
            for one in sorted((tmp_path / "all").glob("00*.csv"))
        ]
    else:
        openpyxl = pytest.importorskip("openpyxl")
        out.save_tables(tmp_path / "all.xlsx")
        book = openpyxl.load_workbook(tmp_path / "all.xlsx")
        titles = [one for one in book.sheetnames if one.startswith("00")]
        rows = [[*book[one].values] for one in titles]
    found = []
    for table in rows:
        start = next(at for at, row in enumerate(table) if "estimate" in row)
        value = table[start].index("estimate")
        found.append([(one[0], float(one[value])) for one in table[start + 1 :]])
    by_age, by_size = found
    assert [name for name, _ in by_size] == ["small", "large", "huge"]
    assert [float(name) for name, _ in by_age] == [0, 9, 10]
    for table in found:
        assert [count for _, count in table] == pytest.approx([40, 900, 7], abs=2)
