"""What a spreadsheet shows is what is counted, and what it does not say is refused."""

from __future__ import annotations

import datetime
import json
import zipfile

import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.files.data_source import open_source
from blowfish_fast.data.csv_files import TextForm
from blowfish_fast.data.histogram import Counting
from blowfish_fast.data.tables import sheets
from blowfish_fast.errors import EngineError, InputError
from tests.apps.cli.asking import refused, run, told

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

NUMBERS = bf.Domain.from_edges([0, 9], "a")
MONTHS = bf.Domain.from_dates([f"2024-0{month}-01" for month in (1, 2, 3, 4)], "day")


def saved(path, rows, change=None):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    if change is not None:
        change(book)
    book.save(path)
    return path


def counts(path, domain, **form):
    source = open_source(str(path), form=TextForm(**form))
    counting = Counting.read(domain, outside="cell", missing="cell")
    source.check(counting)
    return source.histogram(counting, lambda _: None).counts.tolist()


def column(path, *values):
    return saved(path / "one.xlsx", [["a"], *([value] for value in values)])


@pytest.mark.long
@pytest.mark.parametrize(
    ("levels", "values", "wanted"),
    [
        # Numbers are compared as numbers, however they are stored.
        (["1", "2"], [1, 1.0, "1", "1.0", 2.0], [4, 1, 0, 0]),
        (["0.3", "7"], [0.1 + 0.2, 0.3, 3], [2, 0, 1, 0]),
        # Truths are spelled as the categories are; texts are what they are.
        (["true", "false"], [True, False, False, "true"], [2, 2, 0, 0]),
        (["TRUE", "FALSE"], [True, False, "true"], [1, 1, 1, 0]),
        (["yes", "TRUE"], [True, "yes"], [1, 1, 0, 0]),
        # What stands for nothing is missing, other errors are answers of no category.
        (["x", "y"], ["x", "#N/A", "", "  ", "#DIV/0!"], [1, 0, 1, 3]),
        (["two\nlines", "y"], ["two\nlines", "two\r\nlines"], [2, 0, 0, 0]),
        (["é A", "y"], ["é _x0041_"], [1, 0, 0, 0]),
        (["2024-01-31", "12:30:00"], [datetime.date(2024, 1, 31)], [1, 0, 0, 0]),
        (["2024-01-31", "12:30:00"], [datetime.time(12, 30)], [0, 1, 0, 0]),
    ],
)
def test_categories_of_a_sheet(levels, values, wanted, tmp_path):
    path = saved(tmp_path / "c.xlsx", [["a", "b"], *([value, 1] for value in values)])
    assert counts(path, bf.Domain.from_levels(levels, name="a")) == wanted


@pytest.mark.parametrize("mark", [None, ",", "."])
def test_numbers_keep_their_mark(mark, tmp_path):
    path = column(tmp_path, 1.234, 1234, 2.5e3, -1, 1e20)
    domain = bf.Domain.from_edges([0, 100, 2000, 3000], name="a")
    assert counts(path, domain, decimal=mark) == [1, 1, 1, 2, 0]
    text = {None: "1.5", ",": "1.500,5", ".": "1,500.5"}[mark]
    path = column(tmp_path, text)
    assert sum(counts(path, domain, decimal=mark)[:2]) == 1


@pytest.mark.parametrize("dates", [None, "DD.MM.YYYY", "MM/YYYY", "YYYYMMDD"])
def test_dates_are_read_as_they_are_and_as_stated(dates, tmp_path):
    moments = [
        datetime.date(2024, 1, 31),
        datetime.datetime(2024, 2, 3, 23, 59, 59),
        datetime.datetime(2024, 2, 1),
    ]
    texts = {
        None: "2024-03-01",
        "DD.MM.YYYY": "1.3.2024",
        "MM/YYYY": "3/2024",
        "YYYYMMDD": "20240301",
    }
    rows = [["day"], *([day] for day in (*moments, texts[dates]))]
    path = saved(tmp_path / "d.xlsx", rows)
    assert counts(path, MONTHS, dates=dates) == [1, 2, 1, 0, 0]


def test_numbers_are_no_dates_and_dates_no_numbers(tmp_path):
    with pytest.raises(InputError, match="must be a number"):
        counts(
            column(tmp_path, datetime.date(2024, 1, 1)),
            bf.Domain.from_edges([0, 9], "a"),
        )
    path = saved(tmp_path / "d.xlsx", [["day"], [45_000]])
    with pytest.raises(InputError, match="dates must read like"):
        counts(path, MONTHS)


def test_rows_without_values_and_notes_beside_are_no_records(tmp_path):
    rows = [
        [],
        [None, "a", None, "b"],
        [],
        ["note", 1, None, 2],
        ["only a note", None, "x", None],
        [None, None, None, 2, None, "far note"],
    ]
    path = saved(tmp_path / "n.xlsx", rows)
    domain = bf.Domain.from_levels(["1", "2"], name="a")
    assert counts(path, domain) == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        # A title, with and without an empty row below.
        ([["Survey"], ["a", "b", "c"], ["1", 1, 1], ["2", 1, 1]], [1, 1, 0, 0]),
        ([["Survey"], [], ["a", "b"], ["1", 1], ["2", 1]], [1, 1, 0, 0]),
        # One column, whose first record has a note beside it.
        ([["a"], ["1", "note", "more", "words"], ["2"]], [1, 1, 0, 0]),
        ([["a"], [], ["1", "note"], ["2"]], [1, 1, 0, 0]),
    ],
)
def test_names_may_stand_below_a_title(rows, wanted, tmp_path):
    path = saved(tmp_path / "t.xlsx", rows)
    assert counts(path, bf.Domain.from_levels(["1", "2"], name="a")) == wanted


def test_a_title_above_two_names_is_told_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "t.xlsx", [["Survey"], ["a", "b", "c"], ["1", "2", "3"]])
    assert told("start", "t.xlsx")["open"] == ["a", "b", "c"]
    saved(tmp_path / "t.xlsx", [["name"], ["1", "note"], ["2"]])
    assert told("start", "t.xlsx", "--overwrite")["open"] == ["name"]
    saved(tmp_path / "t.xlsx", [["Survey"], ["a", "b"], ["1", "2"]])
    with pytest.raises(InputError, match="delete titles"):
        counts(tmp_path / "t.xlsx", bf.Domain.from_levels(["1"], name="a"))


def test_a_wrong_size_loses_no_row(tmp_path):
    path = saved(tmp_path / "s.xlsx", [["a"], [1], [2], [2]])
    inside = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    assert b'ref="A1:A4"' in parts[inside]
    parts[inside] = parts[inside].replace(b'ref="A1:A4"', b'ref="A1:A1"')
    with zipfile.ZipFile(path, "w") as book:
        for name, part in parts.items():
            book.writestr(name, part)
    domain = bf.Domain.from_levels(["1", "2"], name="a")
    assert counts(path, domain) == [1, 2, 0, 0]


def in_cells(path, change):
    """Replace a text in the XML of the first sheet."""
    inside = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    for old, new in change.items():
        assert old in parts[inside]
        parts[inside] = parts[inside].replace(old, new)
    with zipfile.ZipFile(path, "w") as book:
        for name, part in parts.items():
            book.writestr(name, part)
    return path


def test_formulas_have_the_value_that_was_stored(tmp_path):
    path = saved(tmp_path / "f.xlsx", [["a", "b"], ["=1+1", 1], ["=1+0", "=B2"]])
    domain = bf.Domain.from_levels(["1", "2"], name="a")
    with pytest.raises(InputError, match="some formulas of a, b have no stored value"):
        counts(path, domain)
    in_cells(
        path,
        {
            b"<f>1+1</f><v />": b"<f>1+1</f><v>2</v>",
            b"<f>1+0</f><v />": b"<f>1+0</f><v>1</v>",
            b'<c r="B3"><f>B2</f>': b'<c r="B3" t="str"><f>B2</f>',
        },
    )
    # An empty text is a value that a formula may have.
    assert counts(path, domain) == [1, 1, 0, 0]


def test_cells_without_places_are_counted_on(tmp_path):
    path = saved(tmp_path / "f.xlsx", [["a", "b"], [1, "=B1"]])
    in_cells(path, {b' r="A2"': b"", b' r="B2"': b"", b'<row r="2"': b"<row"})
    domain = bf.Domain.from_levels(["1", "2"], name="a")
    with pytest.raises(InputError, match="some formulas of b have"):
        counts(path, domain)


def test_merged_cells_hold_their_value_in_every_row(tmp_path):
    def merge(book):
        book.active.merge_cells("A2:A4")
        book.active.merge_cells("A6:A7")
        book.active.merge_cells("A9:A10")
        book.active.merge_cells("E3:F4")

    rows = [["a", "b"], ["1", 1], [None, 2], [None, 3], ["2", 4], ["2", 5], [None, 6]]
    rows += [["2", 1], [], [None, 1]]
    path = saved(tmp_path / "m.xlsx", rows, merge)
    domain = bf.Domain.from_levels(["1", "2"], name="a")
    # The last two are one empty cell.
    assert counts(path, domain) == [3, 4, 0, 1]
    saved(path, rows, lambda book: book.active.merge_cells("A2:B2"))
    with pytest.raises(InputError, match="merged over columns"):
        counts(path, domain)
    saved(path, rows, lambda book: book.active.merge_cells("A1:B1"))
    # The second column has no name now.
    assert counts(path, domain) == [1, 3, 0, 0]


def test_a_sheet_is_chosen_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def more(book):
        book.active.title = "wave 1"
        book.create_sheet("wave 2").append(["a"])
        book["wave 2"].append([2])

    path = saved(tmp_path / "w.xlsx", [["a"], [1]], more)
    domain = bf.Domain.from_levels(["1", "2"], name="a")
    assert counts(f"{path}#wave 1", domain) == [1, 0, 0, 0]
    assert counts(f"{path}#wave 2", domain) == [0, 1, 0, 0]
    with pytest.raises(InputError, match=r"w.xlsx#wave 1"):
        counts(path, domain)
    with pytest.raises(InputError, match="did you mean 'wave 1'"):
        counts(f"{path}#wave1", domain)
    with pytest.raises(InputError, match="no column 'b'"):
        counts(f"{path}#wave 1", bf.Domain.from_levels(["1", "2"], name="b"))
    with pytest.raises(InputError, match="a workbook says so itself"):
        counts(f"{path}#wave 1", domain, encoding="cp1252")
    run("start", "w.xlsx#wave 1")
    assert 'source = "w.xlsx#wave 1"' in (tmp_path / "w.toml").read_text()
    assert "more than one sheet" in str(refused("start", "w.xlsx", "--overwrite"))


def test_a_torn_workbook_is_refused(tmp_path):
    path = in_cells(column(tmp_path, 1, 2), {b"</sheetData>": b""})
    with pytest.raises(InputError, match="cannot be read to its end"):
        counts(path, bf.Domain.from_levels(["1", "2"], name="a"))
    with pytest.raises(InputError, match="no sheet"), zipfile.ZipFile(path) as book:
        sheets._part_of(book, "another")


@pytest.mark.long
def test_commands_read_workbooks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [["age", "sex"], *([20 + at % 60, "fm"[at % 2]] for at in range(3000))]
    saved(tmp_path / "people.xlsx", rows)
    look = told("first-look", "people.xlsx", "--epsilon", "10", "--persons")
    assert (look["rows"], look["page"]) == (3000, "people-look.html")
    bars = {bar["label"]: bar["noisy"] for bar in look["looks"][1]["bars"]}
    assert abs(bars["f"] - 1500) < 30
    (tmp_path / "job.toml").write_text(
        '[data]\nsource = "people.xlsx"\ntable = "Sheet"\n[domain]\nage = "0:100:50"\n'
        'sex = ["f", "m"]\n[policy]\nkind = "full"\n[workload]\nkind = "identity"\n'
        '[budget]\nepsilon = 20\n[output]\nrelease = "people.blowfish"\n'
    )
    run("release", "job.toml")
    (row,) = told("answer", "people.blowfish", "--where", "sex=f")["answers"]
    assert abs(row["estimate"] - 1500) < 20


def test_the_explorer_reads_a_sheet(tmp_path):
    pytest.importorskip("ibis")
    from blowfish_fast.apps.explorer import Database

    rows = [["age", "born"], [3, datetime.date(2020, 1, 2)], [4, None], [], [5.0, None]]
    path = saved(tmp_path / "visits.xlsx", rows)
    engine = Database.connect(f"{path}#Sheet")
    assert engine.tables() == ["visits"]
    kinds = engine.columns("visits")
    assert json.dumps(kinds) == json.dumps({"age": "int64", "born": "date"})
    with pytest.raises(EngineError, match="no sheet"):
        Database.connect(f"{path}#East").tables()
