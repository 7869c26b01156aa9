"""``blowfish translate``: budgets for an accuracy, of tables and of anything else."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import application
from tests.apps.cli.asking import refused

RUN = CliRunner()
COLUMNS = ("--cells", "age=0:60:10", "--cells", "job=categories:a,b,c")
SURVEY = (*COLUMNS, "--policy", "add_remove", "--tables", "2")
LINE = ("--cells", "100", "--policy", "line", "--workload", "prefixes")
JOB = """
[data]
source = "nobody_reads_it.csv"
[domain]
age = "0:60:10"
job = "categories:a,b,c"
[policy]
kind = "attribute"
[workload]
kind = "tables:2"
[mechanism]
records = 2000
"""


def told(*words):
    done = RUN.invoke(application, ["translate", *words, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


@pytest.mark.long
def test_tables_are_tried_at_the_budgets_that_were_typed():
    words = (*SURVEY, "--records", "3000", "--epsilon", "2", "--epsilon", "0.005")
    found = told(*words, "--misplaced", "0.1")
    few, many = found["budgets"]
    assert (few["amount"], many["amount"]) == (0.005, 2.0)
    assert many["plan"] < few["plan"]
    assert many["misplaced"] == many[many["best"]]
    assert (found["currency"], found["records"]) == ("epsilon", 3000)
    assert (found["wanted"], found["least"]) == (0.1, 2.0)
    assert told(*words)["least"] is None
    shown = RUN.invoke(application, ["translate", *words, "--misplaced", "0.1"]).output
    assert "For at most 0.1: epsilon 2" in " ".join(shown.split())
    shown = RUN.invoke(application, ["translate", *words, "--misplaced", "0"]).output
    assert "None of these puts all but 0 right" in " ".join(shown.split())


@pytest.mark.long
@pytest.mark.parametrize(
    ("budget", "currency", "amounts"),
    [
        ("", "epsilon", [0.1, 0.3, 1.0, 3.0]),
        ("epsilon = 0.5", "epsilon", [0.05, 0.15, 0.5, 1.5]),
        ("rho = 0.02", "rho", [0.002, 0.006, 0.02, 0.06]),
    ],
)
def test_a_job_says_the_rest_and_no_data_is_read(budget, currency, amounts, tmp_path):
    (tmp_path / "job.toml").write_text(f"{JOB}[budget]\n{budget}\n")
    found = told(str(tmp_path / "job.toml"))
    assert (found["currency"], found["records"]) == (currency, 2000)
    assert [row["amount"] for row in found["budgets"]] == pytest.approx(amounts)
    typed = told(str(tmp_path / "job.toml"), "--rho", "0.01", "--records", "50000")
    assert (typed["currency"], typed["records"]) == ("rho", 50_000)
    assert [row["amount"] for row in typed["budgets"]] == [0.01]


@pytest.mark.long
def test_other_answers_have_a_least_budget_that_promises_them():
    words = (*LINE, "--alpha", "50", "--beta", "0.05")
    found = told(*words)
    line = bf.Domain(100)
    asked = bf.workloads.Prefixes(line)
    same = bf.translate(bf.policies.Line(line), asked, alpha=50, beta=0.05)
    assert found["epsilon"][0]["name"] == same.best.name
    assert found["epsilon"][0]["epsilon"] == float(same.epsilon)
    assert not found["free"]
    both = told(*words, "--delta", "1e-9")
    assert both["rho"][0]["rho"] > 0
    shown = RUN.invoke(application, ["translate", *words]).output
    assert "all answers within 50, but for a probability of 0.05" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*SURVEY,), "roughly how many records"),
        ((*SURVEY, "--records", "9", "--alpha", "5"), "nobody promises an error"),
        (
            (*SURVEY, "--records", "9", "--rho", "1", "--epsilon", "1"),
            "in one currency",
        ),
        ((*LINE, "--alpha", "50"), "--beta must be a number"),
        ((*LINE, "--alpha", "much", "--beta", "0.1"), "--alpha must be a number"),
        ((*LINE, "--misplaced", "0.1"), "are counted of tables"),
        ((*LINE, "--epsilon", "1"), "budgets are tried of tables"),
        (("--tables", "2"), "2 parts are missing"),
    ],
)
def test_what_is_asked_wrongly_is_refused_with_a_way_out(words, message):
    assert message in str(refused("translate", *words))
