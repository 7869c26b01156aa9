"""``blowfish start``: a draft from public texts alone runs once it is filled in."""

from __future__ import annotations

import csv
import tomllib
from types import SimpleNamespace

import pytest

from blowfish_fast.apps.cli.files import job_draft, survey_file
from blowfish_fast.errors import InputError
from tests.apps.cli.asking import refused, run, told

CODES = """variable;code;label
trust;1;yes
trust;2;no, "never"
;;
town;Zürich West;
weight;;
absent;9;not asked
"""
NUMBERS = "column,low,high,width\nage,0,100,20\ntrust,1,3,\n"
START = ["start", "survey.csv"]


@pytest.fixture(autouse=True)
def survey(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "survey.csv").write_text(
        'trust,town,age,weight,"odd ""name"" = 1"\n'
        + "1,Zürich West,20,3,a\n2.0,Bern,41,,b\n" * 50
    )
    (tmp_path / "codes.csv").write_text(CODES)
    (tmp_path / "numbers.csv").write_text(NUMBERS)
    return tmp_path


def drafted():
    with open("survey.toml", "rb") as file:
        return tomllib.load(file)


def test_a_draft_from_a_code_book_runs_once_epsilon_is_stated(survey, monkeypatch):
    def never(*_):
        raise AssertionError("a record was read")

    with monkeypatch.context() as reading:
        reading.setattr(survey_file, "read_answers", never)
        report = told(*START, "--codebook", "codes.csv")
    assert report["stated"] == ["trust", "town"]
    assert report["open"] == ["age", "weight", 'odd "name" = 1']
    assert report["not_in_file"] == ["absent"]
    assert drafted()["domain"] == {
        "trust": {"levels": ["1", "2"]},
        "town": {"levels": ["Zürich West"]},
    }
    text = (survey / "survey.toml").read_text()
    assert '1: yes, 2: no, "never"' in text
    assert r'# "odd \"name\" = 1" = "0:100:10"' in text
    run("release", "survey.toml", "--epsilon", "9", "--dry-run")
    (survey / "survey.toml").write_text(text.replace("# epsilon = 1 ", "epsilon = 50 "))
    run("release", "survey.toml", "--out", "release.blowfish")


def test_a_draft_keeps_how_the_file_was_saved_and_shows_how_else_it_may_be_written(
    survey,
):
    (survey / "alt.csv").write_text("Bezirk;Größe\nSüd;1,5\n", encoding="cp1252")
    assert "the encoding cp1252" in str(refused("start", "alt.csv"))
    told("start", "alt.csv", "--encoding", "cp1252")
    text = (survey / "alt.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["data"]["encoding"] == "cp1252"
    # What is open is written so that taking the # away is enough.
    for line in (
        '# decimal = ","',
        '# dates = "DD.MM.YYYY"',
        '# blanks = ["-", "n/a"]',
    ):
        assert line in text
    opened = text.replace("# decimal = ", "decimal = ")
    opened = opened.replace('# "Bezirk" = "0:100:10"', '"Bezirk"={levels=["Süd"]}')
    opened = opened.replace("# epsilon = 1 ", "epsilon = 50 ")
    (survey / "alt.toml").write_text(opened, encoding="utf-8")
    run("release", "alt.toml", "--out", "alt.blowfish")


def test_a_table_of_numbers_has_no_spellings(survey):
    from pathlib import Path

    drafts = [
        job_draft.draft_job(Path(name), [], {}, {}, encoding=None, sources="a header")
        for name in ("t.csv", "t.parquet")
    ]
    assert ["decimal" in draft for draft in drafts] == [True, False]


def test_numbers_of_a_code_book_have_a_width(survey):
    told(*START, "--codebook", "numbers.csv")
    assert drafted()["domain"] == {"age": "0:100:20", "trust": "1:3:1"}


def test_values_are_read_only_where_the_curator_says_so(survey):
    shown = run(*START, "--public", "trust", "--public", "town")
    assert "5 columns, 2 with cells, 3 open" in shown
    assert drafted()["domain"] == {
        "trust": {"levels": ["1", "2"]},
        "town": {"levels": ["Bern", "Zürich West"]},
    }
    assert "values of trust, town were read" in (survey / "survey.toml").read_text()


def test_every_public_value_is_counted_by_the_release(survey):
    values = ["NA", "nan", "None", "NULL", "DE", "a\x7fb", "1.0", "1", "1e5", "٣", "(x"]
    rows = [value for times, value in enumerate(values, 1) for _ in range(times)]
    (survey / "lands.csv").write_text("\n".join(["land", *rows, "", ""]))
    run("start", "lands.csv", "--public", "land")
    text = (survey / "lands.toml").read_text()
    assert "NA: if that means missing, move it to blanks" in text
    run("release", "lands.toml", "--epsilon", "900", "--table", "lands")
    (path,) = (survey / "lands").glob("001*")
    with path.open(encoding="utf-8-sig", newline="") as file:
        found = {row["land"]: float(row["estimate"]) for row in csv.DictReader(file)}
    wanted = {value: times for times, value in enumerate(values, 1)}
    assert found == wanted | {"(outside)": 0, "(missing)": found["(missing)"]}


def test_columns_of_one_name_are_called_by_their_places(survey):
    (survey / "twice.csv").write_text("age,answer,,answer\n3,y,1,a\n4,n,2,b\n5,n,2,b\n")
    report = told("start", "twice.csv", "--public", "answer (column 4)")
    assert report["stated"] == ["answer (column 4)"]
    assert report["open"] == ["age", "answer (column 2)", "column 3"]
    assert "by its place, 'answer (column 2)' or" in str(
        refused("start", "twice.csv", "--public", "answer", "--overwrite")
    )
    asked = ["--domain", "column 3=categories:1,2", "--workload", "identity"]
    paid = ["--policy", "full", "--epsilon", "900", "--out", "third.blowfish"]
    run("release", "twice.toml", *asked, *paid, "--mechanism", "laplace")
    rows = told("answer", "third.blowfish", "--by", "column 3")["answers"]
    assert [round(row["count"]) for row in rows][:2] == [1, 2]


def test_a_wrong_name_lists_all_columns_nearest_first():
    problem = str(refused(*START, "--public", "wieght"))
    assert "did you mean 'weight'" in problem
    assert "its columns are weight, trust, town, age, odd" in problem


@pytest.mark.parametrize("path", ["", ".", "/", "nothing.csv"])
def test_what_is_no_file_is_refused(path):
    assert "there is no file" in str(refused("start", path))


def test_a_draft_replaces_nothing():
    run(*START, "--codebook", "codes.csv")
    assert "--overwrite" in str(refused(*START))
    assert "1 more" not in run(*START, "--overwrite")
    assert "in the code book only" not in run(*START, "--out", "other.toml")


def test_labels_of_other_programs_are_read_without_records(survey, monkeypatch):
    def read(path, *, metadataonly):
        assert metadataonly
        if "broken" in path:
            raise ValueError("no such format")
        labels = {"trust": {1e7: "yes", 2.5: "no"}, "town": {"B": "Bern"}}
        meanings = {"trust": "In others?", "town": None, "age": "In years"}
        return None, SimpleNamespace(
            variable_value_labels=labels, column_names_to_labels=meanings
        )

    reader = SimpleNamespace(read_sav=read, read_dta=read)
    monkeypatch.setattr(job_draft, "require", lambda *_, **__: reader)
    monkeypatch.setattr(job_draft, "find_spec", lambda name: reader)
    for name in ("labels.sav", "labels.dta", "broken.sav"):
        (survey / name).write_text("")
    for name in ("labels.sav", "labels.dta"):
        run(*START, "--codebook", name, "--overwrite")
        assert drafted()["domain"] == {
            "trust": {"levels": ["10000000", "2.5"]},
            "town": {"levels": ["B"]},
        }
        text = (survey / "survey.toml").read_text()
        assert '# In others?\n"trust"' in text
        assert '# In years\n# "age"' in text
    problem = refused(*START, "--codebook", "broken.sav", "--overwrite")
    assert "no SPSS or Stata file" in str(problem)


@pytest.mark.parametrize("reader", ["pyreadstat", "pandas"])
def test_labels_of_a_real_stata_file(survey, monkeypatch, reader):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip(reader)
    if reader == "pandas":
        hidden = {"pyreadstat"}
        monkeypatch.setattr(
            job_draft, "find_spec", lambda name: None if name in hidden else name
        )
    frame = pandas.DataFrame({"trust": [1, 2], "age": [30.0, 40.5], "weight": [1, 1]})
    frame.to_stata(
        "labels.dta",
        write_index=False,
        variable_labels={"trust": "In others?"},
        value_labels={"trust": {1: "yes", 2: "no", 9: "no answer"}, "weight": {1: "a"}},
    )
    report = told(*START, "--codebook", "labels.dta")
    assert report["stated"] == ["trust", "weight"]
    assert drafted()["domain"]["trust"] == {"levels": ["1", "2", "9"]}
    text = (survey / "survey.toml").read_text()
    assert '# In others?\n"trust"' in text
    assert "# 1: yes, 2: no, 9: no answer" in text
    (survey / "labels.dta").write_bytes(b"no labels")
    problem = refused(*START, "--codebook", "labels.dta", "--overwrite")
    assert "Stata file" in str(problem)


def test_labels_of_a_real_spss_file(survey):
    reader = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    reader.write_sav(
        pandas.DataFrame({"trust": [1.0, 2.0], "town": ["B", "Z"]}),
        "labels.sav",
        column_labels={"trust": "In others?"},
        variable_value_labels={"trust": {1: "yes", 2: "no"}, "town": {"B": "Bern"}},
    )
    run(*START, "--codebook", "labels.sav")
    assert drafted()["domain"] == {
        "trust": {"levels": ["1", "2"]},
        "town": {"levels": ["B"]},
    }


def test_a_sheet_may_be_the_code_book(survey):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "data"
    sheet = book.create_sheet("codes")
    for line in (
        ["Variable", "Code", "Label"],
        ["trust", 1, "yes"],
        [],
        ["trust", 2.0, "no"],
    ):
        sheet.append(line)
    book.save("survey.xlsx")
    run(*START, "--codebook", "survey.xlsx#codes")
    assert drafted()["domain"] == {"trust": {"levels": ["1", "2"]}}


def test_what_is_no_code_book_is_refused(survey):
    problem = refused(*START, "--codebook", "survey.csv")
    assert isinstance(problem, InputError)
    assert "columns column, value and label" in str(problem)


def test_long_labels_are_cut():
    coded = job_draft.Coded({"1": "very " * 80})
    assert coded.note.endswith("...")
    assert len(coded.note) <= job_draft.LONGEST_NOTE + 4


def test_what_a_column_means_stands_above_its_line(survey):
    (survey / "meanings.csv").write_text(
        'variable,description\ntrust,"DO YOU TRUST,\n1: yes\t2: no"\nage,\n'
    )
    report = told(*START, "--codebook", "meanings.csv")
    assert report["stated"] == []
    text = (survey / "survey.toml").read_text()
    assert '# DO YOU TRUST, 1: yes 2: no\n# "trust" = "0:100:10"' in text
    assert drafted()["domain"] == {}
    (survey / "both.csv").write_text(
        "column,value,label\ntrust,,In others?\ntrust,1,yes\n"
    )
    run(*START, "--codebook", "both.csv", "--overwrite")
    text = (survey / "survey.toml").read_text()
    assert '# In others?\n"trust" = { levels = ["1"] }  # 1: yes\n' in text
    run(*START, "--codebook", "both.csv", "--public", "trust", "--overwrite")
    assert "# In others?\n" in (survey / "survey.toml").read_text()
    assert drafted()["domain"] == {"trust": {"levels": ["1", "2"]}}


def test_a_draft_says_where_persons_are_named(survey):
    run(*START, "--codebook", "codes.csv")
    text = (survey / "survey.toml").read_text()
    draft = text.replace('# person = "COLUMN"', 'person = "age"')
    draft = draft.replace("# at_most = 1 ", "at_most = 2 ")
    draft = draft.replace("# epsilon = 1 ", "epsilon = 1 ")
    (survey / "survey.toml").write_text(draft)
    words = run("release", "survey.toml", "--dry-run")
    assert "(column age) with all her records" in words


def test_quantiles_of_drafted_tables_are_those_of_a_named_column():
    run(*START, "--codebook", "numbers.csv")
    run("release", "survey.toml", "--epsilon", "1")
    problem = refused("answer", "release.blowfish", "--quantile", "0.5")
    assert "say of which column" in str(problem)
    assert "trust, age" in str(problem)
