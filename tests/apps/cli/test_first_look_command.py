"""``blowfish first-look``: one page about every column, paid for once."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.cli.files import survey_file
from blowfish_fast.apps.cli.files.look_page import write_look
from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.data.tables.answers import SurveyAnswers
from blowfish_fast.errors import BudgetError, InputError, LedgerError, PolicyError
from blowfish_fast.mechanisms.around_releases.first_look import FirstLook
from tests.apps.cli.asking import refused, run, told

LOOK = ["first-look", "survey.csv", "--epsilon", "2"]
BOOK = ["--ledger", "book", "--budget", "3"]


@pytest.fixture(autouse=True)
def survey(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{'f' if at % 3 else 'm'},{20 + at % 50},{at},{'' if at % 4 else '1,5'}"
        for at in range(800)
    ]
    text = "\n".join(["sex;age;<id>;", *(row.replace(",", ";", 3) for row in rows)])
    (tmp_path / "survey.csv").write_text(text)
    return tmp_path


def test_every_column_is_on_one_page(survey):
    report = told(*LOOK, "--decimal", ",", "--save", "look.blowfish")
    assert [look["column"] for look in report["looks"]] == [
        *("sex", "age", "<id>", "column 4")
    ]
    assert [look["kind"] for look in report["looks"]][:2] == ["words", "numbers"]
    assert report["looks"][0]["bars"][0]["label"] == "f"
    assert report["rows"] == 800
    page = (survey / "survey-look.html").read_text()
    assert page.count("<section") == 4
    assert "&lt;id&gt;" in page
    assert "one answer of a person at a time" in page
    again = run("report", "look.blowfish", "--out", "again.html")
    assert "again.html" in again
    assert (survey / "again.html").read_text().count("<section") == 4
    assert "first look at 4 columns of 800 rows" in run("explain", "look.blowfish")
    assert told("explain", "look.blowfish")["columns"][0] == ["sex", "words"]


def test_the_terminal_shows_what_columns_hold():
    shown = run(*LOOK, "--column", "sex", "--persons", "--domain", "sex=categories:f,m")
    assert "sex categories" in shown
    assert "each person with all her answers" in shown


def test_thousands_are_numbers_where_a_decimal_mark_is_stated(survey):
    rows = [f"{'Ja' if at % 2 else 'ja'};1.{at:03},50" for at in range(800)]
    (survey / "pay.csv").write_text("\n".join(["part;pay", *rows]))
    report = told("first-look", "pay.csv", "--epsilon", "5", "--decimal", ",")
    assert [look["kind"] for look in report["looks"]] == ["words", "numbers"]


def test_a_look_says_that_capitals_of_words_are_not_told_apart(survey, capsys):
    rule = "capitals and accents are not told apart"
    assert run_command(LOOK) == 0
    assert rule in (survey / "survey-look.html").read_text()
    assert rule in " ".join(capsys.readouterr().err.split())
    cells = ["--column", "sex", "--domain", "sex=categories:f,m", "--overwrite"]
    assert run_command([*LOOK, *cells]) == 0
    assert rule not in (survey / "survey-look.html").read_text()
    assert rule not in " ".join(capsys.readouterr().err.split())


def test_ordered_categories_have_a_median(survey):
    cells = "sex=categories:f,m"
    run(*LOOK, "--column", "sex", "--domain", cells, "--ordered", "sex")
    assert "median f" in (survey / "survey-look.html").read_text()


def test_a_ledger_pays_once_and_gives_the_look_again():
    first = told(*LOOK, *BOOK, "--request", "look", "--overwrite")
    again = told(*LOOK, "--ledger", "book", "--request", "look", "--overwrite")
    assert first["looks"] == again["looks"]
    assert again["remaining"] == 1
    problem = refused(*LOOK, "--ledger", "book", "--overwrite")
    assert isinstance(problem, BudgetError)
    assert "Nothing was charged" in str(problem)
    other = refused(*LOOK, "--ledger", "book", "--column", "age", "--overwrite")
    assert isinstance(other, BudgetError)


def test_a_ledger_of_other_columns_refuses():
    run("ledger", "create", "people", "--domain", "sex=categories:f,m", *POLICY)
    problem = refused(*LOOK, "--ledger", "people")
    assert isinstance(problem, PolicyError)


POLICY = ["--policy", "full", "--epsilon", "9"]


def test_no_record_is_read_before_all_is_well(monkeypatch):
    def never(*_):
        raise AssertionError("a record was read")

    monkeypatch.setattr(survey_file, "read_answers", never)
    assert "no record was read" in run(*LOOK, "--dry-run")
    assert told(*LOOK, "--dry-run")["columns"] == 4
    assert isinstance(refused(*LOOK, "--ledger", "book"), LedgerError)
    wrong = refused(*LOOK, "--column", "aeg")
    assert isinstance(wrong, InputError)
    assert "'age'" in str(wrong)
    assert "belong to a ledger" in str(refused(*LOOK, "--budget", "3"))
    assert "no ledger pays" in str(refused(*LOOK, *BOOK, "--seed", "1"))
    assert isinstance(refused(*LOOK, "--out", "page.txt"), InputError)


def test_parquet_files_are_looked_at(survey):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table({'a "b"': [1.5, None] * 300, "who": ["x", "y"] * 300})
    parquet.write_table(table, survey / "survey.parquet")
    report = told("first-look", "survey.parquet", "--epsilon", "2")
    assert [look["column"] for look in report["looks"]] == ['a "b"', "who"]
    (survey / "broken.parquet").write_text("none")
    problem = refused("first-look", "broken.parquet", "--epsilon", "2")
    assert "no Parquet file" in str(problem)


def test_the_page_says_what_is_grey_seeded_or_cut_off(survey):
    data = SurveyAnswers(
        {
            "word": [f"word {at % 40}" for at in range(20_000)],
            "rare": [f"word {at}" for at in range(20_000)],
            "none": [None] * 20_000,
        }
    )
    names = list(data.columns)
    look = FirstLook(names, epsilon=4).release(data, rng=1)
    write_look(look, survey / "look.html", 0.95, name="words")
    page = (survey / "look.html").read_text()
    assert "And 8 more, in the release" in page
    assert "no word is frequent enough" in page
    assert "nothing stands out of the noise" in page
    assert "Grey are 2" in page
    assert "it protects nobody" in page


def test_more_columns_than_a_terminal_holds_are_on_the_page(survey):
    names = [f"c{at}" for at in range(45)]
    row = ",".join("1" for _ in names)
    lines = "\n".join([",".join(names), *[row] * 300])
    (survey / "wide.csv").write_text(lines)
    shown = run("first-look", "wide.csv", "--epsilon", "2")
    assert "and 5 more columns, on the page" in shown
