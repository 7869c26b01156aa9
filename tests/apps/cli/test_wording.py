"""Nobody who types commands is told to write Python."""

from __future__ import annotations

import ast
import functools
import json
import re
import string
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli import exit_codes
from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.apps.server import http_guard

pytestmark = pytest.mark.usefixtures("empty_folder")

PYTHON = re.compile(r"slice\(|Domain\.|Histogram\.|policies\.|numpy|\w+=\"|mapping")
PEOPLE = ["release", "--data", "demo", "--workload", "identity", "--epsilon", "1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["income=0:9000:1000", "--policy", "full"], "state --outside clamp"),
        (["income=9000", "--policy", "full"], "--outside clamp"),
        (["district=categories:east", "--policy", "full"], "no category of district"),
        (
            ["district=categories:a,b", "--policy", "threshold:1:value"],
            "LOW:HIGH:WIDTH",
        ),
        (["age=0:99:1", "--policy", "full", "--outside", "drop"], "never dropped"),
    ],
)
def test_refusals_of_a_release(words, message, capsys):
    assert run_command([*PEOPLE, "--cells", *words]) == 2
    said = capsys.readouterr().err
    assert message in " ".join(said.split())
    assert not PYTHON.search(said)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--where", "age=200:300"], "200:300 selects no part"),
        (["--where", "age=20"], "age=LOW:HIGH"),
        (["--mean", "district"], "no sum"),
        (["--quantile", "0.5"], "--quantile 0.5 --of COLUMN"),
    ],
)
def test_refusals_of_a_question(words, message, capsys):
    cells = ["--cells", "age=0:100:10", "--cells"]
    cells.append("district=categories:centre,east,north,south,west")
    made = ["--policy", "full", "--seed", "1", "--out", "two.blowfish"]
    assert run_command([*PEOPLE, *cells, *made]) == 0
    capsys.readouterr()
    assert run_command(["answer", "two.blowfish", *words]) == 2
    said = capsys.readouterr().err
    assert message in " ".join(said.split())
    assert not PYTHON.search(said)


def test_a_difference_below_zero_stays_there(capsys):
    ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    laplace = bf.Laplace(bf.policies.Full(ages), epsilon=1)
    for name, counts in (("small", np.full(10, 5)), ("large", np.full(10, 500))):
        laplace.release(counts, rng=1 + counts[0]).save(f"{name}.blowfish")
    both = ["answer", "small.blowfish", "--with", "large.blowfish"]
    asked = ["--how", "difference", "--workload", "identity", "--json"]
    assert run_command([*both, *asked]) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    # Intervals that were cut at 0 said that nothing had changed.
    for answer in answers:
        assert answer["low"] < answer["count"] < answer["high"] < 0


def test_a_difference_is_asked_as_a_whole(capsys):
    for seed in ("1", "2"):
        made = ["--cells", "age=0:100:10", "--policy", "full", "--seed", seed]
        assert run_command([*PEOPLE, *made, "--out", f"{seed}.blowfish"]) == 0
    both = ["answer", "1.blowfish", "--with", "2.blowfish", "--how", "difference"]
    assert run_command([*both, "--workload", "identity"]) == 0
    assert "holds the true difference of counts with" in capsys.readouterr().out
    assert run_command([*both, "--by", "age"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "ask the difference as a whole, with --workload" in said
    assert not PYTHON.search(said)


GRID = ["compare", "--cells", "4x6", "--workload", "identity", "--epsilon", "1"]


def test_a_line_over_two_columns_is_refused_in_words_that_can_be_typed(capsys):
    assert run_command([*GRID, "--policy", "line"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "orders the cells of one column; received 2 columns" in said
    assert "--policy product:line,full" in said
    assert 'factors = ["line", "full"]' in said
    assert not PYTHON.search(said.replace('kind = "product"', ""))


def test_programs_get_the_fields_of_a_refusal(capsys):
    assert run_command([*GRID, "--policy", "line", "--json"]) == 2
    found = json.loads(capsys.readouterr().err)
    assert found["exit_code"] == 2
    error = found["error"]
    assert (error["kind"], error["code"]) == (
        "PolicyError",
        "policy_needs_one_attribute",
    )
    assert error["received"] == "2 columns"
    assert error["way_out"].startswith("State one policy per column")
    assert error["message"] == (
        f"{error['rule']}; received {error['received']}. {error['way_out']}"
    )


def test_the_same_refusal_speaks_python_in_python():
    with pytest.raises(bf.BlowfishError, match="Line asks for one") as caught:
        bf.policies.Line(bf.Domain((4, 6)))
    assert caught.value.received == "a domain of 2 attributes"
    assert caught.value.way_out.startswith("Use policies.Threshold or Product")
    assert "--policy" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "threshold:2:value"], "product:threshold:A:value"),
        (["--policy", "product:add_remove,full"], "--policy add_remove for all"),
        (["--policy", "full", "--workload", "ranges:5"], "rectangles:NUMBER"),
        (["--policy", "graph:edges.csv"], "the last column fastest"),
        (["--policy", "blocks:labels.csv"], "labels must be whole numbers"),
    ],
)
def test_refusals_of_policies_and_workloads(words, message, capsys):
    Path("edges.csv").write_text("0,1\n5,99\n")
    Path("labels.csv").write_text("\n".join(["0.5"] * 24) + "\n")
    assert run_command([*GRID, *words]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert not PYTHON.search(said)


def test_a_mechanism_that_cannot_measure_the_queries_is_refused(capsys):
    Path("parts.csv").write_text("0,0.5\n")
    asked = ["--cells", "8", "--policy", "full", "--workload", "rectangles:parts.csv"]
    given = ["--data", "counts.npy", "--epsilon", "1", "--mechanism", "queries"]
    np.save("counts.npy", np.ones(8, dtype=np.int64))
    assert run_command(["release", *asked, *given, "--dry-run"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "Choose another --mechanism" in said
    assert not PYTHON.search(said)


@functools.cache
def codes_raised():
    """Return the codes in the package, each with the data of its errors."""
    found = {}
    files = Path(bf.__file__).parent.rglob("*.py")
    sources = (path.read_text(encoding="utf-8") for path in files)
    for source in (source for source in sources if "code=" in source):
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call):
                continue
            given = {one.arg: one.value for one in node.keywords}
            if isinstance(given.get("code"), ast.Constant):
                data = given.get("data")
                facts = data.keys if isinstance(data, ast.Dict) else []
                names = {one.value for one in facts}
                found.setdefault(given["code"].value, []).append(names)
    return found


@pytest.mark.parametrize("table", [exit_codes.wordings(), http_guard.WORDINGS])
def test_every_wording_belongs_to_an_error_and_names_data_that_it_has(table):
    raised = codes_raised()
    assert set(table) <= set(raised)
    for code, worded in table.items():
        for text in worded:
            named = {name for _, name, _, _ in string.Formatter().parse(text or "")}
            for data in raised[code]:
                assert named - {None} <= data, code
