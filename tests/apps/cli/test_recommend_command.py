"""``blowfish recommend``, as a person would use it."""

from __future__ import annotations

import json

import numpy as np
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
        "x best",
        "records per query",
        "Not possible under this policy",
    ):
        assert words in said


def test_it_speaks_json():
    done = RUN.invoke(application, [*FACTS, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["best"] == found["mechanisms"][0]["name"]
    assert {one["kind"] for one in found["mechanisms"]} == {
        *("predicted", "typical", "refused")
    }
    assert found["because"]
    assert "chosen" not in found


def test_it_spends_a_part_of_a_ledger_on_the_choice(tmp_path):
    counts, book, out = tmp_path / "c.npy", tmp_path / "book", tmp_path / "made.release"
    np.save(counts, np.repeat([0, 25], 32))
    policy = bf.policies.AddRemove(bf.Domain(64))
    bf.Ledger(book, epsilon=1, policy=policy).close()
    given = ["--counts", str(counts), "--spend", "0.1", "--out", str(out)]
    done = RUN.invoke(application, [*FACTS, *given, "--ledger", str(book), "--json"])
    assert done.exit_code == 0, done.output
    chosen = json.loads(done.stdout)["chosen"]
    assert chosen["epsilon"] == "1/2"
    release = bf.Release.load(out)
    assert release.details["chosen_mechanism"] == chosen["mechanism"]
    assert release.private
    with bf.Ledger(book) as ledger:
        assert float(ledger.spent) == pytest.approx(0.5)
    again = RUN.invoke(application, [*FACTS, *given], env={"COLUMNS": "200"})
    assert again.exit_code == 0, again.output
    assert "since the data resembles" in " ".join(again.output.split())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--cells", "many"], "4096 or 64x64"),
        (["--policy", "none"], "threshold:THETA"),
        (["--policy", "threshold:x"], "threshold:THETA"),
        (["--workload", "ranges:x"], "ranges:NUMBER"),
        (["--counts", "c.npy"], "give all three or none"),
        (["--counts", "c.npy", "--spend", "0.1", "--out", "o"], "as numpy.save writes"),
        (["--records", "-4"], "records must lie"),
        (["--workload", "marginals:x"], "the numbers 0"),
    ],
)
def test_bad_words_are_refused(changed, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.npy").write_text("no counts")
    # Cells may be given several times, so wrong ones take the place of the right ones.
    facts = [*FACTS[:1], *FACTS[3:]] if changed[0] == "--cells" else FACTS
    done = RUN.invoke(application, [*facts, *changed])
    assert isinstance(done.exception, BlowfishError)
    assert message in str(done.exception)


def test_a_table_has_at_least_one_line():
    done = RUN.invoke(application, [*FACTS, "--top", "0"])
    assert done.exit_code == 2
    assert "greater than or equal to 1" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("out", "message"), [("nowhere/o", "no folder"), ("c.npy", "which is read")]
)
def test_nothing_is_charged_for_a_release_with_no_place_to_go(
    out, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    np.save("c.npy", np.repeat([0, 25], 32))
    bf.Ledger("book", epsilon=1, policy=bf.policies.AddRemove(bf.Domain(64))).close()
    given = ["--counts", "c.npy", "--spend", "0.1", "--out", out, "--ledger", "book"]
    done = RUN.invoke(application, [*FACTS, *given])
    assert isinstance(done.exception, BlowfishError)
    assert message in str(done.exception)
    assert np.load("c.npy").sum() == 800
    with bf.Ledger("book") as ledger:
        assert ledger.remaining == 1
    given[-1], given[-3] = "nowhere", "o"
    done = RUN.invoke(application, [*FACTS, *given])
    assert "blowfish ledger create" in str(done.exception)


def test_words_become_public_facts():
    grid = parse_domain("6x7")
    assert grid.shape == (6, 7)
    assert parse_domain("12").shape == (12,)
    assert parse_policy("threshold:3", bf.Domain(9)).theta == 3
    assert parse_policy("full", grid) == bf.policies.Full(grid)
    assert parse_workload("rectangles:5", grid).queries == 5
    assert parse_workload("ranges", bf.Domain(9)).queries == 2000
    assert isinstance(parse_workload("prefixes", bf.Domain(9)), bf.workloads.Prefixes)
