"""Numbers, dates and blanks are read as an office states that it writes them."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from blowfish_fast.apps.cli.files.data_source import open_source
from blowfish_fast.apps.cli.files.record_files import Needed, RecordsFile
from blowfish_fast.apps.cli.parsing.domain import parse_domain
from blowfish_fast.data.csv_files import TextForm
from blowfish_fast.data.histogram import Counting
from blowfish_fast.errors import BlowfishError, InputError


def counts(path, domain, missing=None, **form):
    counting = Counting.read(parse_domain(domain), missing=missing)
    source = open_source(str(path), form=TextForm(**form))
    source.check(counting)
    return source.histogram(counting, lambda part: None).counts.tolist()


def values(folder, kind, texts, **form):
    """Return the texts of a column as the reader takes them, quoted, in their order."""
    quoted = (text.replace('"', '""') for text in texts)
    path = folder / "values.csv"
    path.write_text("v\n" + "".join(f'"{text}"\n' for text in quoted), "utf-8")
    source = RecordsFile(path, form=TextForm(**form))
    (chunk,) = source._csv_chunks([Needed("v", kind)], lambda part: None)
    return chunk["v"].tolist()


@pytest.mark.parametrize(
    ("decimal", "texts", "numbers"),
    [
        (None, ["3", " 4.5 ", "+5", "1e3", "\u00a07\t"], [3, 4.5, 5, 1000, 7]),
        (",", ["1.234,5", "1'234,5", "-7", ",5", "12,"], [1234.5, 1234.5, -7, 0.5, 12]),
        (".", ["1,234.5", "1 234.5", "1\u202f234", "9"], [1234.5, 1234.5, 1234, 9]),
    ],
)
def test_numbers_are_read_as_stated(decimal, texts, numbers, tmp_path):
    assert values(tmp_path, "number", texts, decimal=decimal) == numbers


@pytest.mark.long
@pytest.mark.parametrize(
    ("decimal", "text"),
    [
        *((None, one) for one in ("1,5", "1'000", "1_000", "-", "x", "0x1A", "1 000")),
        # Groups of thousands have three digits, or the mark means something else.
        *((",", one) for one in ("1.5", "1.23,4", "1,2,3", "1234.567", "12.3456")),
        *((".", one) for one in ("1,5", "1.2.3", "1,23.4")),
    ],
)
def test_what_may_mean_another_number_is_refused(decimal, text, tmp_path):
    with pytest.raises(InputError, match="every value of v must be a number"):
        values(tmp_path, "number", ["1", text], decimal=decimal)


def test_a_stated_blank_is_missing_even_where_it_reads_like_a_number(tmp_path):
    found = values(tmp_path, "number", ["3", " -99 ", "NA"], blanks=("-99",))
    assert found[0] == 3
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize(
    ("form", "texts", "days"),
    [
        (None, ["2024-05-31", "2024-05-31T12:00"], ["2024-05-31", "2024-05-31T12:00"]),
        (
            None,
            ["2024-05-31 00:30+02:00", "2024-05-31T23:30:00-0130", "2024-05-31T00:30Z"],
            ["2024-05-30T22:30", "2024-06-01T01:00", "2024-05-31T00:30"],
        ),
        ("DD.MM.YYYY", ["31.05.2024", " 1.6.2024 "], ["2024-05-31", "2024-06-01"]),
        ("MM/DD/YYYY", ["05/31/2024 9:30"], ["2024-05-31T09:30"]),
        ("YYYYMMDD", ["20240531"], ["2024-05-31"]),
        ("YYYY-MM", ["2024-05"], ["2024-05-01"]),
        (
            "DD.MM.YYYY or YYYY-MM-DD",
            ["31.05.2024", "2024-06-01T09:30", "1.6.2024"],
            ["2024-05-31", "2024-06-01T09:30", "2024-06-01"],
        ),
    ],
)
def test_dates_are_read_as_stated(form, texts, days, tmp_path):
    found = values(tmp_path, "date", [*texts, "", "NA"], dates=form)
    expected = np.array([*days, "NaT", "NaT"], dtype="datetime64[us]").tolist()
    assert found == expected


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (None, "31.05.2024"),
        (None, "20240531"),
        (None, "2024-05-31 (BC)"),
        (None, "infinity"),
        ("DD.MM.YYYY", "05/31/2024"),
        ("DD.MM.YYYY", "31.02.2024"),
        ("DD/MM/YYYY", "05/31/2024"),
        ("YYYYMMDD", "2024531"),
        ("DD.MM.YYYY or YYYY-MM-DD", "05/31/2024"),
    ],
)
def test_a_date_in_another_form_is_refused_without_a_quote(form, text, tmp_path):
    with pytest.raises(InputError) as refused:
        values(tmp_path, "date", ["", text], dates=form)
    assert text not in str(refused.value)
    assert "Nothing was charged" in str(refused.value)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"decimal": ";"}, 'the decimal mark is "," or "."'),
        ({"encoding": "cp12x"}, "no encoding 'cp12x'"),
        ({"encoding": "base64"}, "no encoding 'base64'"),
        ({"encoding": ""}, "no encoding ''"),
        ({"dates": "dd.mm.yy"}, "YYYY, MM and DD"),
        ({"dates": "DD.MM"}, "YYYY, MM and DD"),
        ({"dates": "DD/MM/YYYY or MM/DD/YYYY"}, "01/02/2003 reads as both"),
        ({"dates": "DDMMYYYY or YYYYMMDD"}, "reads as both"),
        ({"dates": "DD.MM.YYYY or"}, "YYYY, MM and DD"),
    ],
)
def test_forms_that_are_none_are_refused(form, message, tmp_path):
    (tmp_path / "few.csv").write_text("age\n3\n")
    with pytest.raises(InputError, match=message):
        counts(tmp_path / "few.csv", ["age=0:10:5"], **form)


def test_only_files_of_texts_have_a_form(tmp_path):
    np.save(tmp_path / "counts.npy", np.ones(4))
    with pytest.raises(InputError, match="leave them out"):
        open_source(str(tmp_path / "counts.npy"), form=TextForm(decimal=","))


OFFICE = "Alter; Einkommen ;Bezirk;Tag\n3;1.234,50;Zürich;31.01.2024\n-;99,5;Genève;-\n"


def test_a_file_as_an_office_writes_it(tmp_path):
    (tmp_path / "office.csv").write_bytes(OFFICE.encode("cp1252"))
    form = {
        "encoding": "cp1252",
        "decimal": ",",
        "dates": "DD.MM.YYYY",
        "blanks": ("-",),
    }
    assert (
        counts(tmp_path / "office.csv", ["Einkommen=0:2000:1000"], **form).count(1) == 2
    )
    towns = ["Bezirk=categories:Zürich,Genève"]
    assert counts(tmp_path / "office.csv", towns, **form) == [1, 1]
    days = ["Tag=2024-01-01:2024-03-01:month"]
    assert counts(tmp_path / "office.csv", days, "cell", **form) == [1, 0, 1]
    with pytest.raises(InputError, match="encoding cp1252 of older Windows"):
        counts(tmp_path / "office.csv", towns)
    with pytest.raises(InputError, match='--decimal ","'):
        counts(tmp_path / "office.csv", ["Einkommen=0:2000:1000"], encoding="cp1252")


def test_spaces_around_values_are_no_part_of_them(tmp_path):
    (tmp_path / "wide.csv").write_text("age ,sex\n 3 ,f  \n   , m\n NA ,   \n")
    assert counts(tmp_path / "wide.csv", ["age=0:10:5"], "cell") == [1, 0, 2]
    assert counts(tmp_path / "wide.csv", ["sex=categories:f,m"], "cell") == [1, 1, 1]


def test_a_blank_line_of_a_single_column_is_a_record(tmp_path):
    (tmp_path / "one.csv").write_text("age\n3\n\n9\n\n")
    assert counts(tmp_path / "one.csv", ["age=0:10:5"], "cell") == [1, 1, 2]
    with pytest.raises(BlowfishError, match="missing values"):
        counts(tmp_path / "one.csv", ["age=0:10:5"])
    # Of several columns, an empty line lacks all the fields of a record.
    (tmp_path / "two.csv").write_text("age,n\n3,1\n\n9,1\n\n")
    assert counts(tmp_path / "two.csv", ["age=0:10:5"]) == [1, 1]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("sep.csv", b"sep=;\r\nage;sex\r\n3;f\r\n9;m\r\n"),
        ("bom.csv", "\ufeffage,sex\n3,f\n9,m\n".encode()),
        ("utf16.csv", "age\tsex\n3\tf\n9\tm\n".encode("utf-16")),
        ("packed.csv.gz", gzip.compress(b"age,sex\n3,f\n9,m\n", mtime=0)),
        ("old.txt", b"age|sex\r3|f\r9|m\r"),
        ("mixed.csv", b"age,sex\r\n3,f\n9,m\r\n"),
        ("breaks.csv", b'"sex\n(f, m)",age\nf,3\nm,9\n'),
        ("same.csv", b"x,age,x,,\n1,3,1,,\n1,9,1,,\n"),
    ],
)
def test_files_are_read_however_they_were_saved(name, written, tmp_path):
    (tmp_path / name).write_bytes(written)
    assert counts(tmp_path / name, ["age=0:10:5"]) == [1, 1]


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("sheet.csv", b"PK\x03\x04rest", "Excel workbook"),
        ("packed.csv", gzip.compress(b"age\n3\n", mtime=0), "end with .gz"),
        ("plain.csv.gz", b"age\n3\n9\n", "cannot be unpacked"),
        (
            "short.csv.gz",
            gzip.compress(b"age\n3\n9\n" * 99, mtime=0)[:-20],
            "cannot be unpacked",
        ),
        ("title.csv", b"People of 2024\n\nage,sex\n3,f\n", "delete titles"),
        ("sheet.xls", b"", "save it as .xlsx or CSV"),
    ],
)
def test_what_is_no_table_is_refused_with_a_way_out(name, written, message, tmp_path):
    (tmp_path / name).write_bytes(written)
    with pytest.raises(InputError, match=message):
        counts(tmp_path / name, ["age=0:10:5"])


def test_what_is_no_workbook_is_refused_with_a_way_out(tmp_path):
    pytest.importorskip("openpyxl")
    (tmp_path / "book.xlsx").write_bytes(b"PK\x03\x04rest")
    with pytest.raises(InputError, match="or as CSV"):
        counts(tmp_path / "book.xlsx", ["age=0:10:5"])


def test_a_pipe_is_refused_with_a_way_out():
    with pytest.raises(InputError, match="write it to a file first"):
        open_source("-")
