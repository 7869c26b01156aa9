"""``blowfish recommend``, as a person would use it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import application
from blowfish_fast.apps.cli.parsing.domain import parse_domain
from blowfish_fast.apps.cli.parsing.policy import parse_policy
from blowfish_fast.apps.cli.parsing.workload import parse_workload
from blowfish_fast.errors import BlowfishError

RUN = CliRunner()
FACTS = [
    *("recommend", "--cells", "64", "--policy", "add_remove", "--epsilon", "0.5"),
    *("--workload", "ranges:30", "--records", "900", "--trials", "1"),
]


def test_it_ranks_and_says_why():
    done = RUN.invoke(application, [*FACTS, "--top", "5"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    for words in (
        "typical",
        "known",
        "records per query",
        "Use dawa: cells that are alike",
    ):
        assert words in said


def test_it_speaks_json():
    done = RUN.invoke(application, [*FACTS, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["best"] == found["mechanisms"][0]["name"]
    assert {one["kind"] for one in found["mechanisms"]} == {"predicted", "typical"}
    assert found["because"]


def test_both_currencies_stand_side_by_side():
    words = [one for one in FACTS if one not in ("--trials", "1")]
    done = RUN.invoke(application, [*words, "--delta", "1e-9", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    names = {one["name"] for one in found["mechanisms"]}
    assert {"dawa", "dawa (rho)"} <= names
    assert "eps = 0.5, or rho = " in found["question"]
    assert "Laplace noise is better" in found["because"][-1]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--cells", "many"], "4096 or 64x64"),
        (["--policy", "none"], "threshold:THETA"),
        (["--policy", "threshold:x"], "threshold:THETA"),
        (["--workload", "ranges:x"], "ranges:NUMBER"),
        (["--records", "-4"], "records must"),
        (["--workload", "marginals:x"], "the numbers 0"),
    ],
)
def test_bad_words_are_refused(changed, message):
    # Cells may be given several times, so wrong ones take the place of the right ones.
    facts = [*FACTS[:1], *FACTS[3:]] if changed[0] == "--cells" else FACTS
    done = RUN.invoke(application, [*facts, *changed])
    assert isinstance(done.exception, BlowfishError)
    assert message in str(done.exception)


def test_a_table_has_at_least_one_line():
    done = RUN.invoke(application, [*FACTS, "--top", "0"])
    assert done.exit_code == 2
    assert "greater than or equal to 1" in " ".join(done.output.split())


def test_words_become_public_facts():
    grid = parse_domain("6x7")
    assert grid.shape == (6, 7)
    assert parse_domain("12").shape == (12,)
    assert parse_policy("threshold:3", bf.Domain(9)).theta == 3
    assert parse_policy("full", grid) == bf.policies.Full(grid)
    assert parse_workload("rectangles:5", grid).queries == 5
    assert parse_workload("ranges", bf.Domain(9)).queries == 2000
    assert isinstance(parse_workload("prefixes", bf.Domain(9)), bf.workloads.Prefixes)


def test_wide_domains_and_words_are_advised_with_their_threshold():
    time = "time=2000-01-01:2036-01-01:1ns"
    facts = ["--policy", "add_remove", "--workload", "identity", "--epsilon", "1"]
    advised = ["recommend", "--domain", time, *facts, "--records", "1000"]
    done = RUN.invoke(application, advised, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "Use sparse_laplace: it lists what holds about 42" in done.output
    words = ["compare", "--domain", "word=letters:4", *facts]
    done = RUN.invoke(application, words, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "sparse_laplace" in done.output


def test_a_public_guess_of_filled_cells_brings_the_descent_first():
    facts = ["--cells", "65536", "--policy", "add_remove", "--workload", "ranges:20"]
    spent = ["--epsilon", "0.1", "--records", "1000000", "--filled", "0.02"]
    done = RUN.invoke(application, ["recommend", *facts, *spent, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["best"] == "dawa (descent)"
