"""One ledger for several tables of the same people, as a curator keeps it."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import application
from tests.apps.cli.asking import RUN, refused, run, told

pytestmark = pytest.mark.usefixtures("empty_folder")

AGES = bf.Domain.from_edges(range(16, 92), name="age")


COLUMNS = [
    *(
        "--domain",
        "age=16:91:1",
        "--domain",
        "district=categories:centre,east,north,south,west",
    ),
    *("--domain", "income=edges:0,20000,40000,1000000"),
]
ASKED = ["release", "--data", "demo", "--workload", "identity", "--epsilon", "0.25"]


def test_one_ledger_pays_for_releases_over_some_of_its_columns(empty_folder):
    ledger = ["--ledger", "book"]
    run("ledger", "create", "book", "--epsilon", "1", *COLUMNS, "--policy", "full")
    decades = [
        "--domain",
        "age=16:91:15",
        "--domain",
        "district=categories:centre,east,north,south,west",
    ]
    run(*ASKED, *decades, *ledger, "--policy", "full", "--out", "one")
    incomes = ["--domain", "income=edges:0,20000,1000000"]
    found = told(*ASKED, *incomes, *ledger, "--out", "two")
    assert found["ledger"]["before"] == 0.75
    assert found["remaining"] == 0.5
    less = [
        *ASKED,
        "--domain",
        "age=16:91:25",
        *ledger,
        "--policy",
        "line",
        "--out",
        "x",
    ]
    assert "leave --policy out" in str(refused(*less))
    strange = ["--domain", "joined=2020-01-01:2024-01-01:year"]
    problem = str(refused(*ASKED, *strange, *ledger, "--policy", "full", "--out", "x"))
    assert "the ledger is about age, district, income" in problem
    assert "another ledger" not in problem
    with bf.Ledger("book") as book:
        assert isinstance(book.policy, bf.policies.TablePolicy)
        assert float(book.spent) == 0.5


def test_a_job_makes_a_ledger_over_more_columns_than_it_releases(empty_folder):
    (empty_folder / "one.toml").write_text(
        """
        [data]
        source = "demo"
        [domain]
        age = "16:91:1"
        [ledger_domain]
        age = "16:91:1"
        district = ["centre", "east", "north", "south", "west"]
        [policy]
        kind = "threshold"
        theta = 5
        [workload]
        kind = "prefixes"
        [budget]
        epsilon = 0.5
        ledger = "book"
        total = 1.0
        [output]
        release = "one"
        """
    )
    assert told("release", "one.toml")["remaining"] == 0.5
    both = [
        "--domain",
        "district=categories:centre,east,north,south,west",
        "--domain",
        "age=16:91:5",
    ]
    assert told(*ASKED, *both, "--ledger", "book", "--out", "two")["remaining"] == 0.25
    with bf.Ledger("book") as book:
        assert book.policy.through(["age"]) == bf.policies.Threshold(AGES, theta=5)
    stated = [*ASKED, *both, "--policy", "full", "--ledger", "new", "--budget", "1"]
    problem = refused(*stated, "--ledger-domain", "age=16:91:1", "--out", "x")
    assert "among those of its ledger" in str(problem)


def test_a_job_states_a_policy_for_each_column_of_its_ledger(empty_folder):
    job = """
        [data]
        source = "demo"
        [domain]
        age = "16:91:5"
        [ledger_domain]
        age = "16:91:1"
        district = ["centre", "east", "north", "south", "west"]
        [policy]
        kind = "product"
        factors = ["threshold:5", "full"]
        [workload]
        kind = "prefixes"
        [budget]
        epsilon = 0.5
        ledger = "book"
        total = 1.0
        [output]
        release = "one"
        """
    (empty_folder / "one.toml").write_text(job)
    assert told("release", "one.toml")["remaining"] == 0.5
    # The ledger is there by now, and the same words mean the same.
    again = ["--request", "two", "--out", "two"]
    assert told("release", "one.toml", *again)["remaining"] == 0
    with bf.Ledger("book") as book:
        assert book.policy.through(["age"]) == bf.policies.Threshold(AGES, theta=5)
    (empty_folder / "two.toml").write_text(
        job.replace(', "full"]', ', "full", "full"]')
    )
    assert "one policy per column" in str(refused("release", "two.toml"))


def test_status_shows_cells_and_a_new_ledger_says_which_columns_it_covers(tmp_path):
    data = tmp_path / "people.csv"
    data.write_text("age,sex\n20,f\n70,m\n")
    book = tmp_path / "book"
    job = [
        "release",
        "--data",
        str(data),
        "--domain",
        "age=0:100:50",
        "--policy",
        "full",
    ]
    job += ["--workload", "identity", "--epsilon", "1", "--ledger", str(book)]
    done = RUN.invoke(
        application, [*job, "--budget", "3", "--out", str(tmp_path / "first")]
    )
    assert done.exit_code == 0, done.output
    assert "covers age, and no other column" in " ".join(done.stderr.split())
    again = RUN.invoke(application, [*job, "--out", str(tmp_path / "second")])
    assert "no other column" not in again.stderr
    status = told("ledger", "status", str(book))
    assert status["cells"] == {"age": "0 to 100, cut at 50"}
    assert "age 0 to 100, cut at 50" in run("ledger", "status", str(book))
    job[job.index("age=0:100:50")] = "age=0:100:25"
    problem = str(refused(*job, "--out", str(tmp_path / "third")))
    assert "age has 0 to 100, cut at 50 in the ledger" in problem
    assert "cut at 25, 50, 75 in the release" in problem


def test_status_of_many_columns_says_how_many_more(tmp_path):
    book = tmp_path / "book"
    cells = [word for at in range(32) for word in ("--domain", f"c{at}=0:2:1")]
    shown = run(
        "ledger", "create", str(book), *cells, "--policy", "full", "--epsilon", "1"
    )
    assert "and 2 more columns, with --json" in shown
