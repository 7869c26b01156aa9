"""``blowfish persons``: the choice of k, and what it loses, paid for."""

from __future__ import annotations

from fractions import Fraction

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import BudgetError, CountsError, InputError
from tests.apps.cli.asking import refused, run, told

VISITS = [
    *("--data", "visits.csv", "--domain", "age=0:100:10", "--policy", "add_remove"),
    *("--person", "patient", "--record", "visit"),
]
CHOOSE = ["persons", *VISITS, "--epsilon", "2"]
LOST = ["persons", *VISITS, "--at-most", "2", "--up-to", "12"]
BOOK = ["--ledger", "book", "--budget", "90"]


@pytest.fixture(autouse=True)
def visits(tmp_path, monkeypatch):
    """Write visits: 40 patients have 2 each, 30 have 3 and one has 1000."""
    monkeypatch.chdir(tmp_path)
    held = [2] * 40 + [3] * 30 + [1000]
    rows = [
        f"p{who},{who}-{at},{at % 90}" for who, k in enumerate(held) for at in range(k)
    ]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,visit,age", *rows]))
    return tmp_path


def _spent():
    with bf.Ledger("book") as book:
        return book.spent, [one.request for one in book.history()]


def test_the_choice_is_charged_under_a_name_and_given_again():
    first = told(*CHOOSE, "--price", "40", *BOOK, "--request", "visits")
    # 10 cells at 2: at most 5 persons may have more.
    assert first["answers"][0]["at_most"] == 3
    assert first["ledger"]["after"] == 50
    assert _spent() == (40, ["visits, at_most"])
    again = told(*CHOOSE, "--price", "40", *BOOK, "--request", "visits")
    assert again["ledger"]["replayed"]
    assert again["answers"] == first["answers"]
    assert _spent()[0] == 40


@pytest.mark.long
@pytest.mark.parametrize(
    ("terms", "price", "cost"),
    [
        (["--rho", "0.5"], "200", 200),
        (["--epsilon", "2", "--delta", "1e-6"], "40", None),
    ],
)
def test_beside_a_release_in_rho_the_price_is_in_rho(terms, price, cost):
    book = ["--ledger", "book", "--budget", "900"]
    choose = [*("persons", *VISITS, *terms, "--price", price), *book]
    assert told(*choose, "--dry-run")["answers"] == []
    said = told(*choose, "--request", "visits")
    cost = cost or bf.budgets.rho_of(price, "1e-6")
    # 10 cells over sqrt(pi rho): at most 8 persons may have more, or 50.
    assert said["answers"][0]["at_most"] in (2, 3)
    assert Fraction(said["rho"]) == Fraction(said["answers"][0]["rho"]) == cost
    assert said["ledger"]["currency"] == "rho"
    assert _spent()[0] == cost
    assert "rho = " in run(*choose[:-4], "--seed", "3")
    lost = ["--at-most", "2", "--up-to", "12", "--confidence", "0.999999999"]
    (few,) = told(*choose, *lost)["answers"]
    assert few["low"] <= 30 + 10 <= few["high"]
    assert Fraction(few["rho"]) == cost


def test_what_several_bounds_lose_shares_one_price():
    # The intervals are single numbers, which secure noise leaves with e^-80.
    book = ["--ledger", "book", "--budget", "900"]
    said = told(*LOST, "--also", "5", "--price", "800", *book)
    few, more = said["answers"]
    assert few["low"] <= 30 + 10 <= few["high"]
    assert more["low"] <= 7 <= more["high"]
    assert [few["at_most"], more["at_most"]] == [2, 5]
    assert _spent()[0] == 800


@pytest.mark.parametrize("words", [CHOOSE, LOST])
def test_a_dry_run_reads_and_charges_nothing(words, visits):
    words = [*words, "--price", "40", *BOOK, "--dry-run"]
    said = told(*words)
    assert said["answers"] == []
    assert said["ledger"]["after"] == 50
    assert not (visits / "book").exists()
    printed = run(*words)
    assert "nothing was read" in printed
    assert "Would spend: eps = 40; 50 of 90 would remain" in printed


@pytest.mark.parametrize("words", [CHOOSE, LOST])
def test_where_their_number_is_no_secret_it_is_free_and_said_so(words):
    words = [*words, "--price", "40", *BOOK, "--policy", "full"]
    assert told(*words, "--dry-run")["ledger"]["after"] == 90
    said = told(*words)
    assert said["epsilon"] == "0"
    assert "no secret of the policy" in said["answers"][0]["sentence"]
    assert _spent()[0] == 0
    assert "Free: how many records a person has" in run(*words)


def test_files_and_databases_tell_the_same_numbers(visits):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(visits / "visits.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS FROM 'visits.csv'")
        connection.execute("COPY visits TO 'visits.parquet'")
    words = [*LOST, "--price", "1", "--policy", "line"]
    found = [
        told(*words, "--data", name)["answers"]
        for name in ("visits.csv", "visits.parquet", "visits.duckdb")
    ]
    assert found[0] == found[1] == found[2]
    assert found[0][0]["estimate"] == 30 + 10


def test_a_job_file_is_read_and_a_seed_marks_an_experiment(visits):
    (visits / "job.toml").write_text(
        '[data]\nsource = "visits.csv"\nperson = "patient"\nrecord = "visit"\n'
        '[domain]\nage = "0:100:10"\n[policy]\nkind = "add_remove"\n'
        "[budget]\nepsilon = 2\n"
    )
    words = ["persons", "job.toml", "--price", "1/2", "--seed", "5"]
    one, two = told(*words), told(*words)
    assert one == two
    assert not one["private"]
    assert Fraction(one["epsilon"]) == Fraction(1, 2)


@pytest.mark.parametrize(
    ("words", "error", "reason"),
    [
        ([*CHOOSE, "--count", "persons"], InputError, "each person counts once"),
        (["persons", *VISITS], InputError, "release that follows"),
        ([*LOST, "--at-most", "12"], InputError, "below up_to"),
        ([*CHOOSE, "--seed", "1"], InputError, "no ledger pays"),
        ([*CHOOSE, "--person", "nobody"], InputError, "nobody"),
        ([*CHOOSE, "--budget", "0.5"], BudgetError, "costs eps = 1"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_charged(
    words, error, reason, visits
):
    problem = refused(*words[:1], *BOOK, *words[1:], "--price", "1")
    assert isinstance(problem, error)
    assert reason in str(problem)
    assert not (visits / "book").exists()


def test_a_price_beyond_what_remains_is_refused_before_the_data_is_read(visits):
    told(*CHOOSE, "--price", "60", *BOOK)
    (visits / "visits.csv").write_text("patient,visit,age\n,1,2\n")
    problem = refused(*CHOOSE, "--price", "60", *BOOK)
    assert isinstance(problem, BudgetError)
    assert "it costs eps = 60, and 30 remains" in str(problem)


@pytest.mark.parametrize("name", ["visits.csv", "visits.duckdb"])
def test_records_of_nobody_are_refused(name, visits):
    (visits / "visits.csv").write_text("patient,visit,age\np1,1,5\n,2,7\n")
    if name.endswith("duckdb"):
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(name) as connection:
            connection.execute("CREATE TABLE visits AS FROM 'visits.csv'")
    problem = refused(*CHOOSE, "--price", "1", "--data", name)
    assert isinstance(problem, CountsError)
    assert problem.code == "missing_keys"


def test_a_ledger_of_single_records_cannot_pay():
    told(
        *("ledger", "create", "book", "--cells", "age=0:100:10", "--epsilon", "2"),
        *("--policy", "add_remove"),
    )
    problem = refused(*CHOOSE, "--price", "1", "--ledger", "book")
    assert "a ledger of single records cannot pay" in str(problem)
