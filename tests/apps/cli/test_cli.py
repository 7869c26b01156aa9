"""The command line, as a person would use it."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from blowfish_fast._support.compiler_watch import in_plain_python
from blowfish_fast.apps.cli import main
from blowfish_fast.apps.cli.main import application
from blowfish_fast.kernels.tree_scaling import weight_sweeps

RUN = CliRunner()


@pytest.mark.long
def test_the_demo_prints_error_cost_time_and_promise(tmp_path):
    picture = tmp_path / "map.png"
    arguments = ["demo", "--side", "64", "--queries", "50", "--out", str(picture)]
    done = RUN.invoke(application, arguments, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    for word in ("cost", "time", "error", "promise", "one record is added or removed"):
        assert word in " ".join(done.output.split())
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_the_demo_is_paid_in_rho_too(tmp_path):
    arguments = [
        *("demo", "--side", "32", "--queries", "20", "--json", "--draws", "2"),
        *("--epsilon", "1", "--delta", "1e-9", "--out", str(tmp_path / "map.png")),
    ]
    found = json.loads(RUN.invoke(application, arguments).stdout)
    assert Fraction(found["rho"]) == Fraction("0.014973057673")
    assert "rho = 0.0149731" in found["promise"]
    assert min(found["mean_error_gaussian"], found["mean_error"]) > 0


@pytest.mark.long
def test_the_demo_speaks_json(tmp_path):
    arguments = [
        *("demo", "--side", "32", "--queries", "20", "--json"),
        *("--out", str(tmp_path / "map.png")),
    ]
    done = RUN.invoke(application, arguments)
    found = json.loads(done.stdout)
    assert found["cells"] == 1024
    assert found["epsilon"] == "1/10"
    assert found["mean_error"] > 0
    assert found["draws"] == 5
    assert found["mean_error_spread"] > 0


def test_the_version_is_printed():
    done = RUN.invoke(application, ["version"])
    assert done.exit_code == 0
    assert done.output.strip()[0].isdigit()
    found = json.loads(RUN.invoke(application, ["version", "--json"]).output)
    assert found["version"] == done.output.strip()
    assert found["python"].startswith(f"{sys.version_info.major}.")
    assert {"numpy", "numba", "scipy"} <= set(found["packages"])


@pytest.mark.long
def test_warmup_says_that_kernels_are_ready(monkeypatch):
    plain_runs = []

    def noted(kernel):
        plain_runs.append(kernel)
        return in_plain_python(kernel)

    monkeypatch.setattr(weight_sweeps, "in_plain_python", noted)
    monkeypatch.setattr(weight_sweeps, "is_ready", lambda kernel: False)
    done = RUN.invoke(application, ["warmup"])
    assert done.exit_code == 0, done.output
    assert plain_runs == []
    assert "kernels are ready" in done.output
    found = json.loads(RUN.invoke(application, ["warmup", "--json"]).stdout)
    assert found["ready"]
    assert "dawa" in found["mechanisms"]


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [["demo", "--epsilon", "0"], ["demo", "--draws", "0"], ["demo", "--delta", "1e-9"]],
)
def test_refusals_come_without_a_traceback(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "blowfish_fast", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "refused:" in done.stderr
    assert "Traceback" not in done.stderr


def test_imports_are_not_searched_for_garbage(monkeypatch):
    seen, threshold = [], gc.get_threshold()

    def command(words):
        seen.append(gc.get_threshold()[0])
        return 0

    monkeypatch.setattr(main, "run_command", command)
    monkeypatch.setattr(main.COMPILER, "alone", False)
    monkeypatch.setattr(gc, "freeze", lambda: seen.append("frozen"))
    try:
        with pytest.raises(SystemExit):
            main.run()
    finally:
        gc.set_threshold(*threshold)
    assert seen == [main.YOUNG_OBJECTS, "frozen"]
