"""``blowfish compare``: predicted errors, side by side, and their picture."""

from __future__ import annotations

import json
import math

import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import BlowfishError

RUN = CliRunner()
FACTS = ["--cells", "40", "--workload", "all_ranges"]


def typed(*words):
    return RUN.invoke(application, ["compare", *FACTS, *words], env={"COLUMNS": "100"})


def test_the_table_is_that_of_the_library():
    done = typed("--policy", "threshold:4", "--epsilon", "0.5", "--json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["comparisons"]
    line = bf.Domain(40)
    direct = bf.compare(
        bf.policies.Threshold(line, 4), bf.workloads.AllRanges(line), epsilon=0.5
    )
    assert found["best"] == direct.best.name
    assert found["epsilon"] == "1/2"
    best = found["mechanisms"][0]
    assert best["mean"] == pytest.approx(direct.best.mean)


def test_people_see_errors_in_records_and_what_has_none():
    done = typed("--policy", "line", "--epsilon", "0.5", "--top", "3")
    said = " ".join(done.output.split())
    for words in ("error per query", "x best", "depends on the data", "Not possible"):
        assert words in said
    best = bf.compare(
        bf.policies.Line(bf.Domain(40)),
        bf.workloads.AllRanges(bf.Domain(40)),
        epsilon=0.5,
    ).best
    assert f"{math.sqrt(best.mean):.3f}" in said


@pytest.mark.long
def test_epsilons_and_policies_are_set_side_by_side(tmp_path):
    out = tmp_path / "errors.png"
    done = typed(
        *("--policy", "line", "--epsilon", "0.5", "--epsilon", "1"),
        *("--picture", str(out)),
    )
    assert done.exit_code == 0, done.output
    assert "eps = 0.5" in done.output
    assert "Best: " in done.output
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "written:" in done.stderr
    done = typed(
        *("--policy", "threshold:1", "--policy", "threshold:8", "--epsilon", "1"),
        *("--picture", str(tmp_path / "thetas.svg")),
    )
    assert done.exit_code == 0, done.output
    assert "threshold:8" in done.output
    assert "<svg" in (tmp_path / "thetas.svg").read_text()


def test_both_currencies_are_set_side_by_side():
    done = typed("--policy", "line", "--epsilon", "1", "--delta", "1e-9", "--json")
    assert done.exit_code == 0, done.output
    pure, both = json.loads(done.stdout)["comparisons"]
    assert (pure["epsilon"], "rho" in pure) == ("1", False)
    assert both["rho"] == "14973057673/1000000000000"
    assert both["delta"] == "1/1000000000"
    done = typed("--policy", "line", "--epsilon", "1", "--rho", "0.01")
    assert "rho = 0.01" in done.output


def test_a_single_epsilon_is_drawn_with_its_surroundings(tmp_path):
    out = tmp_path / "errors.svg"
    words = ("--policy", "line", "--epsilon", "1", "--picture", str(out), "--json")
    done = typed(*words)
    assert json.loads(done.stdout)["picture"] == str(out)
    assert out.exists()
    out.write_text("mine")
    done = typed(*words)
    assert "exists already" in str(done.exception)
    assert out.read_text() == "mine"
    assert typed(*words, "--overwrite").exit_code == 0
    assert "<svg" in out.read_text()


def test_only_what_was_named_is_drawn(tmp_path, monkeypatch):
    drawn = []
    original = bf.plotting.error_against_epsilon

    def draw(*given):
        axes = original(*given)
        drawn.extend(one.get_label() for one in axes.lines)
        return axes

    monkeypatch.setattr(bf.plotting, "error_against_epsilon", draw)
    words = ["--mechanism", "laplace", "--mechanism", "dawa"]
    words += ["--picture", str(tmp_path / "errors.png")]
    assert typed("--policy", "full", "--epsilon", "1", *words).exit_code == 0
    assert drawn == ["laplace"]


@pytest.mark.parametrize("epsilons", [["1"], ["1", "2"]], ids=["one", "several"])
def test_where_all_errors_depend_on_data_it_is_said_and_no_table_is_empty(epsilons):
    words = [word for one in epsilons for word in ("--epsilon", one)]
    words += ["--policy", "full", "--mechanism", "dawa"]
    said = " ".join(typed(*words).output.split())
    assert "no error is known before data are read" in said
    assert "recommend`, with --records" in said
    assert "Best:" not in said
    assert "error per query" not in said
    assert "not drawn" in str(typed(*words, "--picture", "never.png").exception)
    found = json.loads(typed(*words, "--json").stdout)["comparisons"]
    assert [one["best"] for one in found] == [None] * len(epsilons)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "line", "--policy", "full", "--epsilon", "1", "--epsilon", "2"],
         "not both"),
        (["--policy", "line", "--epsilon", "0"], "epsilon"),
        (["--policy", "line", "--epsilon", "1", "--picture", "p.bmp"], ".png"),
        (["--policy", "line", "--epsilon", "1", "--picture", "no/p.png"], "no folder"),
        (["--policy", "line", "--policy", "full", "--epsilon", "1",
          "--picture", "p.png"], "all are thresholds"),
        (["--policy", "lines", "--epsilon", "1"], "did you mean 'line'"),
        (["--policy", "line", "--rho", "1", "--picture", "p.png"], "along epsilon"),
        (["--policy", "line", "--delta", "1e-9"], "received none"),
        (["--policy", "line"], "state the budget"),
    ],
    ids=["both", "epsilon", "suffix", "folder", "policies", "name", "rho", "delta",
         "none"],
)  # fmt: skip
def test_bad_words_are_refused(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    done = typed(*words)
    assert isinstance(done.exception, BlowfishError), done.output
    assert message in str(done.exception)
