"""One name per mechanism: in comparisons, dry runs, pictures, sentences and plots."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import application
from blowfish_fast.measure.strategies.strategy_choice import NAMES
from blowfish_fast.plotting.canvas import heading
from blowfish_fast.release.guarantee import recipe_name

RUN = CliRunner()
LINE = bf.Domain(16)
POLICIES = [
    bf.policies.Full(LINE),
    bf.policies.Line(LINE),
    bf.policies.Threshold(LINE, 3),
    bf.policies.AddRemove(LINE),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)
def test_a_release_bears_the_name_of_its_comparison(policy):
    found = set()
    for one in bf.compare(policy, bf.workloads.AllRanges(LINE), epsilon=1):
        if one.mechanism is None or one.name == "queries":
            continue
        release = one.mechanism.release([3] * 16, rng=1)
        assert recipe_name(release) == one.name
        assert heading(release).startswith(f"{one.name}, eps")
        found.add(one.name)
    assert len(found & set(NAMES)) >= 3


def test_dry_run_release_explanation_and_answer_agree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["release", "--data", "demo", "--cells", "age=16:91:5", "--policy", "line"]
    words += ["--workload", "prefixes", "--epsilon", "1"]

    def told(*more):
        return json.loads(RUN.invoke(application, [*more, "--json"]).stdout)

    name = told(*words, "--dry-run")["mechanism"]
    assert told(*words)["mechanism"] == name == "ordered"
    assert told("answer", "release.blowfish")["mechanism"] == name
    assert told("explain", "release.blowfish")["mechanism"] == name
    for command in ("answer", "explain"):
        done = RUN.invoke(application, [command, "release.blowfish"])
        said = " ".join(done.output.split())
        assert "transformed" not in said.replace("a strategy of transformed", "")
