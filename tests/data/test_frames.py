"""Tables of public values, for every kind of reader."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from blowfish_fast import Domain, Laplace
from blowfish_fast._support import optional as _optional
from blowfish_fast.data.axes import as_array, cut_values, representatives
from blowfish_fast.data.frames import ROWS_AT_ONCE, Table, cell_columns
from blowfish_fast.errors import DomainError, MissingExtraError
from blowfish_fast.policies import AddRemove
from blowfish_fast.workloads import Identity

TOWNS = np.array(["Bern", None, "Ch,ur"], dtype=object)


@pytest.fixture
def table():
    return Table(
        {
            "age": np.array([1.5, np.nan, np.inf]),
            "town": TOWNS,
            "day": np.array(["2024-01-01", "NaT", "2024-01-03"], dtype="M8[D]"),
            "hour": np.array([1, 2, 3], dtype="M8[h]"),
            "count": np.array([1, 2, 3]),
        }
    )


def test_columns_are_kept_by_name(table):
    assert len(table) == 3
    assert table["count"].tolist() == [1, 2, 3]
    assert table.to_dict()["town"] == ["Bern", None, "Ch,ur"]
    assert repr(table) == "Table(3 rows: age, town, day, hour, count)"
    assert list(table) == list(dict(table)) == ["age", "town", "day", "hour", "count"]
    assert "town" in table
    assert 0 not in table
    with pytest.raises(DomainError, match="no column 'size'"):
        table["size"]
    with pytest.raises(DomainError, match="one length"):
        Table({"a": np.zeros(2), "b": np.zeros(3)})


def test_printing_shows_rows(table):
    assert str(table).splitlines() == [
        "age  town          day           hour  count",
        "1.5  Bern   2024-01-01  1970-01-01T01      1",
        "                        1970-01-01T02      2",
        "inf  Ch,ur  2024-01-03  1970-01-01T03      3",
    ]
    assert table._repr_html_().count("<tr>") == 4
    long = Table({"n": np.arange(1000), "x": np.arange(1000) * 1234.5678})
    lines = str(long).splitlines()
    assert len(lines) == 23
    assert lines[11].split() == ["...", "..."]
    assert lines[-2:] == ["999  1233333.2", "1,000 rows"]
    assert "1,000 rows" in long._repr_html_()
    assert "&lt;i&gt;" in Table({"<i>": np.arange(2)})._repr_html_()
    assert str(Table({})) == ""


def test_arrow_streams_hand_a_table_over(table):
    arrow = pytest.importorskip("pyarrow")
    assert arrow.table(table).num_rows == 3
    polars = pytest.importorskip("polars")
    if tuple(map(int, polars.__version__.split(".")[:2])) < (1, 3):
        # It knows no streams yet.
        table = arrow.table(table)
    assert polars.DataFrame(table)["count"].to_list() == [1, 2, 3]


def test_a_csv_file_reads_back(table, tmp_path):
    table.to_csv(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["age", "town", "day", "hour", "count"],
        ["1.5", "Bern", "2024-01-01", "1970-01-01T01", "1"],
        ["", "", "", "1970-01-01T02", "2"],
        ["inf", "Ch,ur", "2024-01-03", "1970-01-01T03", "3"],
    ]


def test_a_csv_file_of_several_blocks_has_every_row_once(tmp_path):
    rows = 2 * ROWS_AT_ONCE + 3
    Table({"cell": np.arange(rows)}).to_csv(tmp_path / "long.csv")
    written = (tmp_path / "long.csv").read_text(encoding="utf-8").split()
    assert written == ["cell", *map(str, range(rows))]


def test_frames_hold_the_same_values(table, tmp_path):
    pandas = pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("polars")
    frame = table.to_pandas()
    assert frame["town"].isna().tolist() == [False, True, False]
    assert frame["day"][0] == pandas.Timestamp("2024-01-01")
    polars = table.to_polars()
    assert polars["town"].to_list() == ["Bern", None, "Ch,ur"]
    assert polars["count"].to_list() == [1, 2, 3]
    arrow = table.to_arrow()
    assert arrow["day"].null_count == 1
    table.to_parquet(tmp_path / "table.parquet")
    again = parquet.read_table(tmp_path / "table.parquet")
    assert again["town"].to_pylist() == ["Bern", None, "Ch,ur"]


def test_a_missing_library_is_named_with_its_extra(table, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(_optional.importlib, "import_module", absent)
    with pytest.raises(MissingExtraError, match=r"blowfish_fast\[frames\]"):
        table.to_pandas()


DOMAIN = Domain.product(
    Domain.from_edges([0, 10, 30], name="age"),
    Domain.from_levels(["F", "M"], name="sex"),
    Domain.from_dates(["2024-01-01", "2024-02-01"], name="day"),
    Domain(2),
).with_extra_cells(missing=[0, 2])


def test_cells_are_described_by_columns():
    places = [np.array([1, 2]), np.array([0, 1]), np.array([0, 1]), np.array([1, 0])]
    columns = cell_columns(DOMAIN, places)
    assert list(columns) == [
        "age_from",
        "age_to",
        "age_cell",
        "sex",
        "day_from",
        "day_to",
        "day_cell",
        "axis3",
    ]
    np.testing.assert_array_equal(columns["age_from"], [10.0, np.nan])
    assert columns["age_cell"].tolist() == ["", "(missing)"]
    assert columns["sex"].tolist() == ["F", "M"]
    assert columns["day_to"].astype(str).tolist() == ["2024-02-01", "NaT"]
    assert columns["axis3"].tolist() == [1, 0]
    assert DOMAIN.column_names[3] == "axis3"


def test_a_column_called_like_a_number_keeps_its_values(tmp_path):
    """The ends of intervals were written over the categories of a column ``low``."""
    names = ["low", "age", "age_from", "high"]
    parts = [
        Domain.from_levels(["deep", "flat"], name="low"),
        Domain.from_edges([0, 10], name="age"),
        Domain.from_levels(["birth"], name="age_from"),
        Domain(2, names=["high"]),
    ]
    domain = Domain.product(*parts)
    shown = ["low (column)", "age_from", "age_to", "age_from (column)", "high (column)"]
    assert list(domain.column_names) == names
    places = np.unravel_index(np.arange(domain.size), domain.shape)
    columns = cell_columns(domain, list(places))
    assert list(columns) == shown
    assert columns["low (column)"].tolist() == ["deep", "deep", "flat", "flat"]
    assert columns["age_from (column)"].tolist() == ["birth"] * 4
    release = Laplace(AddRemove(domain), Identity(domain), epsilon=5000).release(
        np.array([3, 0, 5, 2]).reshape(domain.shape), rng=1
    )
    table = release.to_table().columns
    assert list(table) == [*shown, "estimate", "low", "high"]
    assert table["low (column)"].tolist() == ["deep", "deep", "flat", "flat"]
    release.to_csv(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        assert next(csv.reader(file)) == [*table, "experiment"]
    groups = release.group_by("low", "high").count().to_table().columns
    assert list(groups) == ["low (column)", "high (column)", "count", "low", "high"]
    assert groups["low (column)"].tolist() == ["deep", "deep", "flat", "flat"]


def test_numbers_stand_for_cells_where_they_can():
    age, sex, day, plain = DOMAIN.attributes
    assert representatives(age).tolist() == [5.0, 20.0]
    assert representatives(plain).tolist() == [0.0, 1.0]
    stars = Domain.from_levels([1, 5]).attributes[0]
    assert representatives(stars).tolist() == [1.0, 5.0]
    for other, words in ((sex, "values="), (day, "dates")):
        with pytest.raises(DomainError, match=words):
            representatives(other)
    assert cut_values(day).astype(str).tolist() == ["2024-01-01", "2024-02-01"]


def test_levels_keep_their_type():
    assert as_array((1, 2)).dtype.kind == "i"
    assert as_array((0.5, 2.0)).dtype.kind == "f"
    assert as_array(("a", 1)).tolist() == ["a", 1]
