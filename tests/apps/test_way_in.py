"""The category that is stated is the one that is counted: every door, any text."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.apps.cli.files import record_files
from blowfish_fast.apps.cli.files.data_source import open_source
from blowfish_fast.apps.cli.parsing.domain import parse_column, parse_table
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.parsing.where import (
    parse_condition,
    parse_queries,
    read_queries,
)
from blowfish_fast.apps.explorer import Database
from blowfish_fast.apps.explorer.catalog import TableSpec
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Counting
from blowfish_fast.data.listed_items import split_items, written_item
from blowfish_fast.errors import BlowfishError, InputError
from tests.generated import example_count

from .cli.asking import run, told

duckdb = pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")

EXTRAS = ("(outside)", "(missing)")
ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")
"""What no workbook holds as it is written."""
AWKWARD = [
    "earth science",
    "Bern, Stadt",
    "a:b",
    "a=b",
    "tea x cups=12",
    '"quoted"',
    '5" pipe',
    "@home",
    " blank ",
    "\u00a0narrow\u202f",
    "01",
    "1",
    "-0",
    "1.0",
    "1e3",
    "edges:1,2",
    "categories",
    "two\nlines",
    "carriage\r\nreturn",
    "form\x0cfeed",
    "line\u2028separator",
    "Zürich",
    "東京",
    "e\u0301",
    "\U0001f41f",
    "a..b",
    "..",
    "#",
    "",
    "x" * 10_000,
    "nan",
    "NaN",
    "None",
    "NA",
    "N/A",
    "NULL",
    "null",
    "inf",
    "true",
    "False",
    "tab\tinside",
    "[",
    "[a]",
    "{a}",
    "it's",
    "`a`",
    "$HOME",
    "%d",
    "back\\slash",
    "\\n",
    "-",
    "--epsilon",
    "=1+1",
    "a;b",
    "a|b",
    "(others)",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u202eleft\u202c",
    "\u00e9",
    "\U0001f469\u200d\U0001f52c",
    "\u0661",
    "\uff11",
    "1_0",
    "0x10",
    "+1",
    "1,5",
    "\ufeffmark",
    "zero\u200bwidth",
]
TEXTS = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.sampled_from(' ,:="x1.0\n\r@;|é東'), max_size=8),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
)


def lists(most):
    found = st.lists(TEXTS, min_size=1, max_size=most, unique=True)
    return found.filter(lambda texts: not {*texts} & {*EXTRAS})


LISTS = lists(8)


@pytest.fixture(scope="module", autouse=True)
def _shared_engine():
    """Read files by cursors of one engine: starting one takes longer than reading."""
    with duckdb.connect() as engine, pytest.MonkeyPatch.context() as patch:
        module = SimpleNamespace(connect=engine.cursor, Error=duckdb.Error)
        patch.setattr(record_files, "duckdb_module", lambda: module)
        yield


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def in_toml(text: str) -> str:
    plain = "".join(
        one if one.isalnum() and one.isascii() else f"\\U{ord(one):08x}" for one in text
    )
    return f'"{plain}"'


def by_flag(texts, folder):
    return parse_table([f"subject=categories:{','.join(map(written_item, texts))}"])


def by_quoted_flag(texts, folder):
    other = ' x "a = b"=categories:"f", "m"'
    words = f"subject = categories: {' , '.join(map(quoted, texts))}{other}"
    return Domain._of(parse_table(words).attributes[:1])


def by_job_file(texts, folder):
    path = folder / "job.toml"
    listed = ", ".join(map(in_toml, texts))
    path.write_text(f"[domain]\nsubject = [{listed}]\n", encoding="utf-8")
    return parse_table(Job.from_file(path).domain)


def by_list_in_a_file(texts, folder):
    listed = "\n".join(map(quoted, texts))
    (folder / "my list.txt").write_text(listed, encoding="utf-8", newline="")
    path = folder / "job.toml"
    path.write_text('[domain]\nsubject = "categories:@my list.txt"\n')
    return parse_table(Job.from_file(path).domain)


def by_explorer(texts, folder):
    spec = {"name": "t", "attributes": [{"name": "subject", "levels": texts}]}
    made = TableSpec.model_validate_json(json.dumps(spec))
    return made.attributes[0].domain().without_extra_cells()


def by_ledger(texts, folder):
    """State them to a new ledger, and read them again from its file."""
    book = folder / "states.ledger"
    written = ",".join(map(written_item, texts))
    stated = ["--domain", f"subject=categories:{written}", "--policy", "full"]
    told("ledger", "create", str(book), *stated, "--epsilon", "1")
    with bf.Ledger(book) as ledger:
        return ledger.policy.domain.without_extra_cells()


def by_python(texts, folder):
    return bf.Domain.from_levels(texts, name="subject")


DOORS = [
    by_flag,
    by_quoted_flag,
    by_job_file,
    by_list_in_a_file,
    by_explorer,
    by_ledger,
    by_python,
]


def records_of(texts):
    """Return a record of the first text, two of the second, and so on."""
    return [one for times, one in enumerate(texts, start=1) for _ in range(times)]


def counted(path, domain):
    source = open_source(str(path))
    counting = Counting.read(domain, outside="cell", missing="cell")
    source.check(counting)
    return source.histogram(counting, lambda _: None).counts.tolist()


def read_by_csv(text):
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def every_list(test):
    test = settings(max_examples=15)(given(LISTS)(test))
    for at in range(0, len(AWKWARD), 8):
        test = example(AWKWARD[at : at + 8])(test)
    for texts in (["1", "2"], ["1", "01"], ["1", "1.0"], ["01", "02"], ["1", "other"]):
        test = example(texts)(test)
    return test


@every_list
def test_every_door_states_the_same_categories(texts):
    with TemporaryDirectory() as name:
        domains = [door(texts, Path(name)) for door in DOORS]
        for door, domain in zip(DOORS, domains, strict=True):
            levels = [str(one) for one in domain.attributes[0].levels]
            assert levels == texts, door.__name__
        for stated in (domains[0], domains[-1]):
            found = bf.Histogram.from_records(
                stated,
                {"subject": records_of(texts)},
                outside="cell",
                missing="cell",
            )
            assert found.counts.tolist() == [*range(1, len(texts) + 1), 0, 0]


@settings(max_examples=6)
@given(lists(16))
@example(AWKWARD[:18])
@example([one for one in AWKWARD[18:36] if one])
@example(AWKWARD[36:54])
@example(AWKWARD[54:])
@example(["1", "2"])
@example(["1", "1.0"])
@example(["01", "02"])
@example(["a", ""])
def test_every_file_counts_the_category_that_was_stated(texts):
    domain, wanted = by_flag(texts, None), [*range(1, len(texts) + 1), 0, 0]
    records = records_of(texts)
    with TemporaryDirectory() as name:
        folder = Path(name)
        parquet = folder / "records.parquet"
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"subject": records}), parquet)
        assert counted(parquet, domain) == wanted
        path = folder / "records.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerows([["subject"], *([one] for one in records)])
        as_read = [read_by_csv(one) for one in texts]
        if "" in as_read or len({*as_read}) < len(texts):
            with pytest.raises(InputError, match="CSV file"):
                counted(path, domain)
        else:
            assert counted(path, domain) == wanted


@settings(max_examples=10)
@given(lists(16))
@example(AWKWARD)
@example(["1", "2"])
@example(["01", "02"])
@example(["=1+1", "@x", "+1"])
@example(["\ufeffmark"])
def test_a_sheet_counts_the_category_that_was_stated(texts):
    openpyxl = pytest.importorskip("openpyxl")
    # A workbook holds no control characters, and its #N/A is missing.
    texts = [one for one in texts if not ILLEGAL.search(one) and one.strip()]
    texts = list({read_by_csv(one): one for one in texts if one != "#N/A"}.values())
    if not texts:
        return
    book = openpyxl.Workbook()
    for at, one in enumerate(["subject", *records_of(texts)], start=1):
        book.active.cell(at, 1, one).data_type = "s"
    with TemporaryDirectory() as name:
        path = Path(name, "records.xlsx")
        book.save(path)
        wanted = [*range(1, len(texts) + 1), 0, 0]
        assert counted(path, by_flag(texts, None)) == wanted


def test_a_mark_without_quotes_belongs_to_the_first_record(tmp_path):
    """The file's own byte order mark does not; an empty file has no records."""
    path = tmp_path / "records.csv"
    domain = by_flag(["\ufeffmark", "mark"], None)
    for head, wanted in (("subject", [1, 2, 0, 0]), ("\ufeffsubject", [1, 2, 0, 0])):
        path.write_text(f"{head}\n\ufeffmark\nmark\nmark\n", encoding="utf-8")
        assert counted(path, domain) == wanted
    path.write_text("subject\n", encoding="utf-8")
    assert counted(path, domain) == [0, 0, 0, 0]


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_blanks_around_a_value_are_no_part_of_it_for_the_explorer_either(
    ending, tmp_path
):
    values = ["Bern", " Bern", "Bern ", "\u00a0Bern\t", "Ber n", "", "  ", "Chur"]
    path = tmp_path / f"records.{ending}"
    if ending == "csv":
        lines = ["number, town", *(f'{at},"{one}"' for at, one in enumerate(values))]
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        book = pytest.importorskip("openpyxl").Workbook()
        for row in [("number", "town"), *enumerate(values)]:
            book.active.append(row)
        book.save(path)
    domain = bf.Domain.from_levels(["Bern", "Chur"], name="town")
    wanted = [4, 1, 1, 2]
    assert counted(path, domain) == wanted
    database = Database.connect(path)
    try:
        described = [{"name": "town", "levels": ["Bern", "Chur"]}]
        (source,) = database.tables()
        spec = TableSpec(name="t", source=source, attributes=described)
        database.check(spec)
        question = {"kind": "histogram", "table": "t", "attribute": "town"}
        asked = read_question({**question, "cost": {"epsilon": 1}})
        assert database.counts(lay_out(spec, asked)).tolist() == wanted
    finally:
        database.close()


@settings(max_examples=2)
@given(lists(16))
@example(["1", "2"])
@example(AWKWARD)
def test_a_database_counts_the_same(texts):
    with TemporaryDirectory() as name:
        path = Path(name, "records.duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.register(
                "records", pyarrow.table({"subject": records_of(texts)})
            )
            connection.execute("CREATE TABLE t AS FROM records")
        wanted = [*range(1, len(texts) + 1), 0, 0]
        assert counted(path, by_flag(texts, None)) == wanted
        spec = TableSpec(name="t", attributes=[{"name": "subject", "levels": texts}])
        database = Database.connect(path)
        try:
            database.check(spec)
            question = {"kind": "histogram", "table": "t", "attribute": "subject"}
            asked = read_question({**question, "cost": {"epsilon": 1}})
            assert database.counts(lay_out(spec, asked)).tolist() == wanted
        finally:
            database.close()


@every_list
def test_a_condition_names_every_category(texts):
    domain = Domain.product(
        by_flag(texts, None), bf.Domain.from_levels(["f", "m"], name="a = b")
    )
    levels = domain.attributes[0].levels
    more = bf.Domain.from_levels([*texts, "(nobody)"], name="subject")
    for one, level in zip(texts, levels, strict=True):
        assert parse_condition(f"subject={quoted(one)}", domain) == (0, level)
        assert parse_condition(f"subject={written_item(one)}", domain) == (0, level)
        _, values = parse_condition(f'subject={quoted(one)},"(nobody)"', more)
        assert [str(value) for value in values] == [one, "(nobody)"]
        box = parse_queries([f'{quoted(one)},"m"'], domain)
        assert box.starts.tolist() == [[levels.index(level), 1]]
    assert parse_condition('"a = b"=m', domain) == (1, "m")
    with TemporaryDirectory() as name:
        path = Path(name, "queries.csv")
        lines = ["subject", *map(quoted, texts)]
        path.write_text("\n".join(lines), encoding="utf-8", newline="")
        if all(texts):
            boxes, _ = read_queries(path, by_flag(texts, None))
            assert boxes.starts[:, 0].tolist() == [*range(len(texts))]


@settings(max_examples=example_count(50))
@given(LISTS)
def test_what_is_written_is_read_again(texts):
    read = split_items(" , ".join(map(written_item, texts)))
    assert [one.text for one in read] == texts


def test_a_whole_level_that_is_also_a_list_has_to_be_quoted():
    towns = bf.Domain.from_levels(["a,b", "a", "b", "c,d"], name="town")
    assert parse_condition("town=c,d", towns) == (0, "c,d")
    assert parse_condition('town="a,b"', towns) == (0, "a,b")
    assert parse_condition('town="a",b', towns) == (0, ["a", "b"])
    with pytest.raises(InputError, match='Write "a,b" for the one'):
        parse_condition("town=a,b", towns)


@pytest.mark.parametrize(
    "words",
    [
        't=categories:"a',
        't=categories:"a"b',
        't=categories:a,"b" c,d',
        '"t=categories:a',
    ],
)
def test_an_open_quotation_mark_is_refused(words):
    with pytest.raises(BlowfishError, match="quotation mark"):
        parse_column(words)


def test_a_name_with_an_equals_sign_is_asked_for_in_marks():
    domain = Domain.product(bf.Domain.from_levels(["y", "n"], name="q=03?"))
    with pytest.raises(InputError, match='into quotation marks, as in "q=03'):
        parse_condition("q=03?=y", domain)
    assert parse_condition('"q=03?"=y', domain) == (0, "y")


def test_an_email_of_a_job_file_is_no_file(tmp_path):
    (tmp_path / "job.toml").write_text('[domain]\nwho = "categories:a@b.ch,c"\n')
    job = Job.from_file(tmp_path / "job.toml")
    assert parse_table(job.domain).attributes[0].levels == ("a@b.ch", "c")


def test_the_commands_keep_spaces(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("survey.csv").write_text(
        "subject\n" + "biology\n" * 50 + "earth science\n" * 450
    )
    Path("my list.txt").write_text("biology\nearth science\n")
    listed = "subject=categories:biology,earth science"
    for at, cells in enumerate([listed, "subject=categories:@my list.txt"]):
        book, out = f"{at}.ledger", f"{at}.blowfish"
        stated = ["--domain", cells, "--policy", "full"]
        run("ledger", "create", book, *stated, "--epsilon", "100")
        described = told("policy", "describe", *stated)["policy"]["domain"]
        assert described["attributes"][0]["levels"] == ["biology", "earth science"]
        asked = ["--data", "survey.csv", *stated, "--workload", "identity"]
        paid = ["--mechanism", "laplace", "--epsilon", "50", "--ledger", book]
        run("release", *asked, *paid, "--out", out)
        (row,) = told("answer", out, "--where", "subject=earth science")["answers"]
        assert abs(row["estimate"] - 450) < 5
        rows = told("answer", out, "--by", "subject=earth science")["answers"]
        assert [one["subject"] for one in rows] == ["earth science"]


CODES = {
    "text": ["1.0", "2.0", "2", "2.00", "01", "3", "1.5", "-0.0", None],
    "float": [1.0, 2.0, 2.0, 2.0, 3.0, 1.5, 4.5, -0.0, None],
    "whole": [1, 2, 2, 2, 3, 7, 9, 0, None],
}
COUNTED = [1, 3, 0, 1, 3, 1]
"""One of 1, three of 2, none of 4, one of 0; three outside and one missing."""
SPELLINGS = [
    [1, 2, 4, 0],
    ["1", "2", "4", "0"],
    ["1.0", "2.", "4.00", "0"],
    [1.0, 2, "4", 0],
]


def numbers_in_frames(kind, values):
    import pandas
    import polars

    plain = pandas.Series(values, dtype="Int64" if kind == "whole" else None)
    yield {"code": values}
    yield pandas.DataFrame({"code": plain})
    yield pandas.DataFrame({"code": plain.astype("category")})
    yield polars.DataFrame({"code": values})
    yield pyarrow.table({"code": values})
    if kind == "text":
        yield polars.DataFrame({"code": values}).cast(polars.Categorical)
        yield {"code": pandas.array(values, dtype="string")}


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("levels", SPELLINGS, ids=str)
def test_codes_are_compared_as_numbers_in_every_frame(kind, levels):
    domain = bf.Domain.from_levels(levels, name="code")
    for frame in numbers_in_frames(kind, CODES[kind]):
        found = bf.Histogram.from_records(domain, frame, outside="cell", missing="cell")
        assert found.counts.tolist() == COUNTED, type(frame)


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    """Return files of every kind that hold the codes, and their columns."""
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("coded")
    records = pyarrow.table(CODES)
    pyarrow.parquet.write_table(records, folder / "a.parquet")
    rows = zip(*CODES.values(), strict=True)
    with (folder / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*CODES], *rows])
    with duckdb.connect(str(folder / "a.duckdb")) as connection:
        connection.register("records", records)
        exact = "CAST(float AS DECIMAL(9, 3)) AS exact"
        connection.execute(f"CREATE TABLE t AS SELECT *, {exact} FROM records")
    more = {"a.duckdb": [*CODES, "exact"]}
    return {
        folder / name: more.get(name, [*CODES])
        for name in ("a.parquet", "a.csv", "a.duckdb")
    }


@pytest.mark.parametrize("levels", SPELLINGS, ids=str)
def test_codes_are_compared_as_numbers_in_every_file_and_table(coded, levels):
    for path, columns in coded.items():
        axes = [bf.Domain.from_levels(levels, name=column) for column in columns]
        # One count of all columns together holds the counts of each.
        found = np.reshape(counted(path, Domain.product(*axes)), [6] * len(axes))
        for axis, column in enumerate(columns):
            others = tuple({*range(len(axes))} - {axis})
            assert found.sum(axis=others).tolist() == COUNTED, (path.name, column)


@pytest.mark.parametrize("column", CODES)
def test_codes_are_compared_as_numbers_in_a_column_alone(coded, column):
    domain = bf.Domain.from_levels(SPELLINGS[2], name=column)
    for path in coded:
        assert counted(path, domain) == COUNTED, path.name


def test_leading_zeros_and_double_spellings_are_texts(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("code\n01\n1\n1\n1.0\n")
    for levels, found in (
        (["01", "1"], [1, 2, 1, 0]),
        (["1", "1.0"], [2, 1, 1, 0]),
        (["01", "02"], [1, 0, 3, 0]),
        (["1", "other"], [2, 0, 2, 0]),
    ):
        assert counted(path, bf.Domain.from_levels(levels, name="code")) == found


@pytest.mark.parametrize(
    ("mark", "texts"), [(",", ["1,0", "2,50", "1.000"]), (".", ["1.0", "2.5", "1,000"])]
)
def test_the_stated_decimal_mark_holds_for_codes(tmp_path, mark, texts):
    from blowfish_fast.data.csv_files import TextForm

    path = tmp_path / "a.csv"
    path.write_text("\n".join(["code", *map(quoted, texts)]))
    domain = bf.Domain.from_levels([1, 2.5, 1000], name="code")
    counting = Counting.read(domain, outside="cell")
    source = open_source(str(path), form=TextForm(decimal=mark))
    assert source.histogram(counting, lambda _: None).counts.tolist() == [1, 1, 1, 0]


def test_conditions_take_numbers_as_they_are_written():
    codes = bf.Domain.from_levels([1, 2], name="code")
    assert parse_condition("code=1.0", codes) == (0, 1)
    counts = bf.Histogram(codes, [5, 7])
    release = bf.Laplace(
        bf.policies.Full(codes), bf.workloads.Identity(codes), epsilon=1
    ).release(counts)
    assert float(release.where(code="2.0").count()) == float(
        release.where(code=2).count()
    )


def test_the_refusal_names_what_may_be_spelt_otherwise():
    towns = bf.Domain.from_levels(["1", "other"], name="code")
    with pytest.raises(BlowfishError, match=r"leading zeros and a \.0 behind"):
        bf.Histogram.from_records(towns, {"code": ["1.0"]})


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_lists_that_are_typed_into_pages_are_read_alike(tmp_path):
    import blowfish_fast.apps.server

    home = Path(blowfish_fast.apps.server.__file__).parent / "static"
    shutil.copy(home / "items.js", tmp_path / "items.mjs")
    texts = [one for one in AWKWARD if len(one) < 100]
    script = tmp_path / "run.mjs"
    script.write_text(
        'import { splitItems, splitLists, writtenItem } from "./items.mjs";\n'
        f"const texts = {json.dumps(texts)};\n"
        'const written = texts.map(writtenItem).join(", ");\n'
        'const lists = splitLists(`${written}; "a;b", c\\n d`);\n'
        "console.log(JSON.stringify([splitItems(written), lists]));\n"
    )
    done = subprocess.run(
        ["node", str(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout) == [texts, [texts, ["a;b", "c"], ["d"]]]
