"""Cross tables of workbooks: one count per cell, rounded to what the noise allows."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.files.data_source import open_source
from blowfish_fast.data.frames import Table
from blowfish_fast.data.histogram import Counting
from blowfish_fast.data.tables.cross_tables import LONGEST, WIDEST, cross_table

AGES = bf.Domain.from_edges(range(0, 31, 10), name="age").with_extra_cells(missing=True)
SEXES = bf.Domain.from_levels(["F", "M"], name="sex")
PEOPLE = bf.Domain.product(AGES, SEXES)
ROWS = ["0 to 10", "10 to 20", "20 to 30", "(missing)"]


def released(epsilon, counts=((1234, 987),) * 4):
    mechanism = bf.Laplace(bf.policies.Full(PEOPLE), epsilon=epsilon)
    return mechanism.release(np.array(counts), rng=1)


@pytest.mark.parametrize(
    ("epsilon", "unit"), [(10, 1), (1, 1), ("0.1", 10), ("0.01", 100), ("0.001", 1000)]
)
def test_counts_are_rounded_to_what_the_noise_allows(epsilon, unit):
    lines = released(epsilon).to_table().columns
    crossed = cross_table(lines)
    assert crossed.unit == unit
    assert list(crossed.columns) == ["age / sex", "F", "M"]
    assert crossed.columns["age / sex"].tolist() == ROWS
    shown = np.stack([crossed.columns["F"], crossed.columns["M"]], axis=1).reshape(-1)
    assert (shown >= 0).all()
    assert (shown % unit == 0).all()
    widest = (lines["high"] - lines["low"]).max()
    off = np.abs(shown - np.maximum(lines["estimate"], 0))
    assert (off <= max(widest / 8, 0.5)).all()


def test_whole_counts_and_groups_are_crossed_too():
    release = released("0.01")
    lines = release.to_table().columns
    whole = release.rounded().estimate.reshape(-1).astype(np.int64)
    crossed = cross_table({**lines, "count": whole})
    assert crossed.unit == 1
    assert crossed.columns["F"].tolist() == whole.reshape(4, 2)[:, 0].tolist()
    grouped = release.group_by("sex", age=[0, 10, 20]).count().to_table().columns
    assert list(cross_table(grouped).columns) == ["sex / age", "0 to 10", "10 to 20"]
    by_cell = release.group_by("age", "sex").count().to_table().columns
    assert cross_table(by_cell).columns["age / sex"].tolist() == ROWS
    alone = {name: column for name, column in lines.items() if "high" not in name}
    assert cross_table(alone).unit == 1


def test_what_is_no_cross_table_stays_lines():
    release = released(1)
    lines = release.to_table().columns
    assert cross_table(release.group_by("sex").count().to_table().columns) is None
    assert cross_table(release.group_by("sex").mean("age").to_table().columns) is None
    assert cross_table({name: column[:-1] for name, column in lines.items()}) is None
    for rows, columns in ((2, WIDEST + 1), (LONGEST + 1, 1)):
        wide = {
            "a": np.repeat(np.arange(rows), columns),
            "b": np.tile(np.arange(columns), rows),
            "count": np.ones(rows * columns),
        }
        assert cross_table(wide) is None
    # A column that is called like the names of the rows leaves them as lines.
    same = {"a": np.array(["x"]), "b": np.array(["a / b"]), "count": np.array([1.0])}
    assert cross_table(same) is None


def test_a_workbook_shows_the_cross_table_before_the_lines(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    table: Table = released("0.01").to_table()
    table.to_xlsx(tmp_path / "people.xlsx", about="promised")
    book = openpyxl.load_workbook(tmp_path / "people.xlsx")
    assert book.sheetnames == ["promise", "cross table", "table"]
    values = list(book["cross table"].values)
    assert values[0] == ("age / sex", "F", "M")
    assert [row[0] for row in values[1:5]] == ROWS
    assert all(count % 100 == 0 for row in values[1:5] for count in row[1:])
    notes = [row[0] for row in values[5:] if row[0]]
    assert notes == [
        "Rounded to multiples of 100: noise allows no more.",
        "The next sheet has every count with its interval.",
        "Seeded: an experiment, which protects nobody.",
    ]
    assert len(list(book["table"].values)) == 9


def test_a_workbook_keeps_texts_as_they_are(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    texts = ["=1+1", "#N/A", "_x000D_", "a\x01b", "+1", "@x", "01", "nan", "x_x"]
    count = np.arange(1.0, 1 + len(texts))
    ends = np.where(count < 3, -np.inf, count)
    path = tmp_path / "texts.xlsx"
    Table({"=town": np.array(texts, object), "count": count, "low": ends}).to_xlsx(path)
    head, *rows = openpyxl.load_workbook(path)["table"].iter_rows()
    assert [cell.data_type for cell in head] == ["s"] * 3
    assert {row[0].data_type for row in rows} == {"s"}
    assert rows[0][0].value == "=1+1"
    assert [row[2].value for row in rows][:3] == ["-inf", "-inf", 3]
    # A workbook that we write is read again, letter by letter.
    towns = bf.Domain.from_levels(texts[:1] + texts[2:], name="=town")
    counted = bf.Domain.product(towns)
    source = open_source(f"{path}#table")
    counting = Counting.read(counted, outside="cell", missing="cell")
    found = source.histogram(counting, lambda _: None)
    assert found.counts.tolist() == [1, *[1] * 7, 0, 1]
