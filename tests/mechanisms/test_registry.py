"""Mechanisms from outside: found by name, compared, audited, and vouched for."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast import errors
from blowfish_fast.apps.cli.exit_codes import FAULT
from blowfish_fast.apps.cli.main import application, run_command
from blowfish_fast.audit import plan
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.mechanisms import registry
from blowfish_fast.mechanisms.base import Outcome
from blowfish_fast.mechanisms.baselines.bucketed import Ahp
from examples.outside_mechanism.equal_widths import EqualWidths

FOLDER = Path(__file__).parents[2] / "examples" / "outside_mechanism"
README = (FOLDER / "README.md").read_text()
PATH = "examples.outside_mechanism.equal_widths:EqualWidths"
LINE = bf.Domain(16)
POLICY = bf.policies.AddRemove(LINE)
CELLS = bf.workloads.Identity(LINE)
COUNTS = np.arange(16) % 5


class ShadowsLaplace(EqualWidths):
    name = "laplace"


class ShadowsGaussian(EqualWidths):
    name = "gaussian"


class LeaksWithEpsilon(EqualWidths):
    """Planted: spends its budget and measures the same cells again, beside it."""

    name = "leaks"

    def _run(self, private):
        outcome = super()._run(private)
        true = private._counts
        estimate = outcome.estimate if true is None else true.astype(float)
        return type(outcome)(estimate, outcome.measurements)


def test_a_mechanism_is_found_by_every_kind_of_name(monkeypatch):
    entry = EntryPoint("equal_widths", PATH, registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    for named in (EqualWidths, PATH, "equal_widths"):
        assert registry.find_mechanism(named) is EqualWidths
    assert registry.find_mechanism("dawa") is bf.Dawa


def test_a_package_that_is_broken_is_said_to_be_with_its_reason(monkeypatch, tmp_path):
    (tmp_path / "broken_mechanism.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("broken", "broken_mechanism:Mine", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    for named in ("broken", "broken_mechanism:Mine"):
        with pytest.raises(errors.PlugInError, match="ZeroDivisionError"):
            registry.find_mechanism(named)


def test_the_command_line_explains_it_and_says_who_vouched(monkeypatch, tmp_path):
    entry = EntryPoint("equal_widths", PATH, registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    monkeypatch.chdir(tmp_path)
    EqualWidths(POLICY, CELLS, epsilon=1).release(COUNTS).save("mine.blowfish")
    for subject in ("equal_widths", PATH, "mine.blowfish"):
        done = CliRunner().invoke(application, ["explain", subject])
        said = " ".join(done.output.split())
        assert "outside blowfish_fast, which has not proved its privacy" in said
        assert ("vouched for it" in said) == (subject == "mine.blowfish")


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("daw", "did you mean 'dawa'"),
        (
            "no_such_package:Mine",
            "ModuleNotFoundError, No module named 'no_such_package'",
        ),
        ("examples.outside_mechanism.equal_widths:Mine", "has no attribute 'Mine'"),
        (":Mine", "can be imported"),
        ("blowfish_fast:Domain", "is a subclass of Mechanism"),
        (3, "is a subclass of Mechanism"),
        (ShadowsLaplace, "needs a name of its own"),
        (ShadowsGaussian, "needs a name of its own"),
        (bf.mechanisms.Mechanism, "needs a name of its own"),
    ],
    ids=str,
)
def test_what_is_no_mechanism_is_refused_with_the_reason(named, reason):
    with pytest.raises(InputError, match=reason):
        registry.find_mechanism(named)


def test_it_is_compared_and_recommended_beside_those_of_the_package():
    chosen = [EqualWidths, "dawa", "cells", "queries"]
    table = bf.compare(POLICY, CELLS, epsilon=1, mechanisms=chosen)
    assert {one.name for one in table} == {"equal_widths", "dawa", "cells", "queries"}
    assert table["equal_widths"].data_dependent
    everything = bf.compare(POLICY, CELLS, epsilon=1)
    assert table["cells"].total == everything["cells"].total
    advice = bf.recommend(
        POLICY,
        CELLS,
        epsilon=1,
        records=100,
        mechanisms=[PATH, "dawa", "ordered"],
        trials=1,
    )
    assert {one.name for one in advice} == {"equal_widths", "dawa", "ordered"}
    assert advice["equal_widths"].kind == "typical"
    for wrong, reason in (([], "nothing to compare"), ("dawa", "a list of names")):
        with pytest.raises(InputError, match=reason):
            bf.compare(POLICY, CELLS, epsilon=1, mechanisms=wrong)


def test_a_ledger_takes_it_only_from_a_curator_who_vouches_for_it(tmp_path):
    own = EqualWidths(POLICY, CELLS, epsilon=0.5)

    class OwnPartition(type(bf.Dawa(POLICY, CELLS, epsilon=1).partition)):
        name = "own"

    wrapped = bf.Dawa(POLICY, CELLS, epsilon=0.25, partition=OwnPartition())
    with bf.Ledger(tmp_path / "book", epsilon=2, policy=POLICY) as ledger:
        for one in (own, wrapped):
            with pytest.raises(InputError, match="defined outside blowfish_fast"):
                ledger.release(one, COUNTS)
            with pytest.raises(InputError, match="vouched=True"):
                ledger.release_disjoint([(one, COUNTS)])
        assert ledger.spent == 0
        ledger.release(own, COUNTS, vouched=True)
        ledger.release_disjoint([(wrapped, COUNTS)], vouched=True)
        assert float(ledger.spent) == 0.75
        kept = [one.content["parts"][0] for one in ledger._journal.history()]
        assert kept[0]["vouched"] == [f"{EqualWidths.__module__}:EqualWidths"]
        assert "OwnPartition" in kept[1]["vouched"][0]
        ledger.release(Ahp(POLICY, CELLS, epsilon=0.25), COUNTS)


@pytest.mark.long
def test_the_audit_passes_it_and_catches_one_that_leaks():
    from blowfish_fast.audit.walk import audit_everything

    short = plan.QUICK._replace(sampled=(), priced=(4,), families=("add_remove",))
    found = audit_everything(short, mechanisms=[PATH], open_ledger=bf.Ledger)
    assert found
    assert all(one.passed for one in found), [one for one in found if not one.passed]
    leak = f"{LeaksWithEpsilon.__module__}:LeaksWithEpsilon"
    caught = audit_everything(short, mechanisms=[leak], open_ledger=bf.Ledger)
    assert not all(one.passed for one in caught)


def test_the_command_line_compares_and_audits_a_class_of_the_folder(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(sys, "path", [*sys.path])
    asked = ["--cells", "16", "--policy", "line", "--workload", "identity"]
    named = ["--mechanism", "equal_widths:EqualWidths", "--mechanism", "dawa"]
    done = CliRunner().invoke(
        application,
        ["recommend", *asked, "--epsilon", "1", "--records", "99", *named, "--json"],
    )
    assert done.exit_code == 0, (done.output, done.exception)
    assert "equal_widths" in json.dumps(json.loads(done.stdout))
    few = ["--quick", "--samples", "1000", *named[:2]]
    monkeypatch.setattr(plan, "QUICK", plan.QUICK._replace(sampled=(), priced=(2,)))
    done = CliRunner().invoke(application, ["audit", *few, "--workers", "1", "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "equal_widths:EqualWidths" in done.stdout


def test_an_experiment_sets_it_beside_the_baselines(tmp_path):
    from blowfish_fast.advice.experiments.experiment import Settings
    from blowfish_fast.advice.experiments.mechanism_grid import MechanismGrid

    grid = MechanismGrid(
        [PATH, "laplace"],
        ["1d/steps"],
        ["1"],
        bf.policies.AddRemove,
        bf.workloads.Prefixes,
        max_cells=32,
    )
    settings = Settings(trials=1, seed=1)
    rows = grid.run(grid.tasks(settings)[0], settings)
    summary = grid.summary(rows, settings)
    assert summary.columns == ("set", "epsilon", PATH, "laplace", "lowest")
    assert all(isinstance(one, float) for one in summary.lines[0][2:4])
    # Two panels stand in a row; the last may stay empty.
    many = [one | {"epsilon": epsilon} for epsilon in "12345" for one in rows]
    figure = Figure()
    grid.draw(many, figure)
    shown = [one for one in figure.axes if one.get_visible()]
    assert (len(shown), len(figure.axes)) == (5, 6)


@pytest.mark.long
def test_one_file_of_forty_lines_defines_it_and_compares_it_with_dawa():
    path = FOLDER / "equal_widths.py"
    assert len(path.read_text().splitlines()) <= 40
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "equal_widths" in done.stdout
    assert "dawa" in done.stdout


def test_its_buckets_are_equal_and_its_noise_is_priced():
    mechanism = EqualWidths(POLICY, CELLS, epsilon=1, buckets=4)
    release = mechanism.release(np.full(16, 1000), rng=1)
    estimate = release.estimate.reshape(4, 4)
    assert (estimate == estimate[:, :1]).all()
    assert float(release.guarantee.epsilon) == 1
    assert release.measurements[0].buckets.edges.tolist() == [0, 4, 8, 12, 16]
    assert isinstance(release.measurements[0].buckets, Buckets)


@pytest.fixture(name="site")
def folder_with_the_package(tmp_path):
    """Install the example as pip would: its module, and what its metadata offer."""
    stated = tomllib.loads((FOLDER / "pyproject.toml").read_text())
    project, modules = stated["project"], stated["tool"]["setuptools"]["py-modules"]
    site = tmp_path / "site"
    about = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    for module in modules:
        shutil.copy(FOLDER / f"{module}.py", site)
    named = f"Name: {project['name']}\nVersion: {project['version']}\n"
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\n{named}")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {at}" for name, at in entries.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return site


@pytest.mark.long
def test_an_installed_package_is_found_by_its_entry_point(site, tmp_path):
    (shown,) = re.findall(r"^blowfish recommend (.*)$", README, re.MULTILINE)
    release = (
        "release --data demo --cells age=16:91:5 --policy add_remove --workload "
        "identity --epsilon 1 --mechanism equal_widths --ledger book --budget 2"
    )
    code = (
        "import shlex, sys\n"
        "from blowfish_fast.apps.cli.main import run_command\n"
        "for words in sys.argv[1:]:\n"
        "    print('code', run_command(shlex.split(words)), flush=True)\n"
    )
    asked = [
        f"recommend {shown}",
        release,
        f"{release} --vouched",
        "ledger status book",
    ]
    root = str(FOLDER.parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code, *asked],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), root])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.findall("code [0-9]", done.stdout) == [
        f"code {at}" for at in (0, 2, 0, 0)
    ]
    assert "State --vouched" in " ".join(done.stderr.split())
    assert "equal_widths" in done.stdout
    assert "1, in 1 charge" in done.stdout


class FailsBeforeData(EqualWidths):
    name = "fails_before_data"

    def _run(self, private):
        raise KeyError("no such width")


class FailsOnData(EqualWidths):
    name = "fails_on_data"

    def _run(self, private):
        outcome = super()._run(private)
        raise KeyError(f"estimates {outcome.estimate.sum()}")


class HandsBackTooFew(EqualWidths):
    name = "hands_back_too_few"
    handed_back = "three cells"

    def _run(self, private):
        noisy = private.measure(Cells.under(private.policy), budget=private.remaining)
        given = {"three cells": np.zeros(3), "texts": np.full(self.domain.size, "a")}
        if self.handed_back in given:
            return Outcome(given[self.handed_back], [noisy])
        return 7


@pytest.mark.parametrize("handed_back", ["three cells", "texts", "a number"])
def test_an_outcome_that_makes_no_release_is_refused_before_the_charge(handed_back):
    own = HandsBackTooFew(POLICY, CELLS, epsilon=1)
    own.handed_back = handed_back
    ledger = bf.Ledger(epsilon=2, policy=POLICY)
    for asked in (
        lambda: own.release(COUNTS),
        lambda: ledger.release(own, COUNTS, vouched=True),
    ):
        with pytest.raises(errors.PlugInError, match="HandsBackTooFew, defined"):
            asked()
    assert ledger.spent == 0


class FailsAtOnce(EqualWidths):
    name = "fails_at_once"

    def __init__(self, policy, workload, **budget):
        raise TypeError("no widths")


@pytest.mark.parametrize(
    "asked",
    [
        lambda own: own.release(COUNTS),
        lambda own: own.check_feasible(),
        lambda own: own.expected_error(),
        lambda own: bf.Ledger(epsilon=2, policy=POLICY).release(
            own, COUNTS, vouched=True
        ),
    ],
    ids=["release", "check", "prediction", "ledger"],
)
def test_a_fault_of_a_plug_in_is_said_to_be_its_own(asked):
    own = FailsBeforeData(POLICY, CELLS, epsilon=1)
    with pytest.raises(errors.PlugInError, match="FailsBeforeData, defined") as fault:
        asked(own)
    assert "KeyError: 'no such width'" in str(fault.value)
    assert isinstance(fault.value.__cause__, KeyError)


def test_a_fault_on_data_stays_untold_but_under_a_seed(tmp_path):
    own = FailsOnData(POLICY, CELLS, epsilon=1)
    with pytest.raises(errors.FailedDrawError) as secret:
        own.release(COUNTS)
    assert "estimates" not in str(secret.value)
    assert secret.value.__cause__ is secret.value.__context__ is None
    with pytest.raises(errors.PlugInError, match="KeyError: 'estimates"):
        own.release(COUNTS, rng=1)
    with bf.Ledger(tmp_path / "book", epsilon=2, policy=POLICY) as ledger:
        for _ in range(2):
            with pytest.raises(errors.FailedDrawError):
                ledger.release(own, COUNTS, "asked", vouched=True)
        assert ledger.spent == 1


def test_a_fault_of_the_package_is_not_blamed_on_others(monkeypatch):
    own = bf.Laplace(POLICY, CELLS, epsilon=1)
    monkeypatch.setattr(bf.Laplace, "_run", BROKEN)
    with pytest.raises(ZeroDivisionError):
        own.check_feasible()


def _divide(self, private):
    return 1 // 0


_divide.__module__ = "blowfish_fast.mechanisms.laplace"
BROKEN = _divide


def test_a_class_that_cannot_be_made_is_named_by_every_door():
    with pytest.raises(errors.PlugInError, match=r"FailsAtOnce.*TypeError"):
        registry.built(FailsAtOnce, POLICY, CELLS, epsilon=1)
    named = [FailsAtOnce, "dawa"]
    compared = bf.compare(POLICY, CELLS, epsilon=1, mechanisms=named)
    assert "FailsAtOnce, defined outside" in compared["fails_at_once"].reason
    advice = bf.recommend(
        POLICY, CELLS, epsilon=1, records=100, mechanisms=named, trials=1
    )
    assert "FailsAtOnce, defined outside" in advice["fails_at_once"].reason


def test_the_command_line_says_whose_fault_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    broken = "from examples.outside_mechanism.equal_widths import EqualWidths\n\n\n"
    broken += 'class Mine(EqualWidths):\n    name = "mine"\n\n'
    broken += '    def _run(self, private):\n        raise KeyError("no widths")\n'
    (tmp_path / "broken_widths.py").write_text(broken)
    np.save("counts.npy", COUNTS)
    words = ["release", "--data", "counts.npy", "--domain", str(len(COUNTS))]
    words += ["--policy", "add_remove", "--workload", "identity", "--epsilon", "1"]
    words += ["--mechanism", "broken_widths:Mine", "--vouched", "--ledger", "book"]
    assert run_command([*words, "--budget", "2"]) == FAULT
    told = " ".join(capsys.readouterr().err.split())
    assert "broken_widths:Mine, defined outside blowfish_fast, failed" in told
    assert "This is a fault of blowfish_fast" not in told
    if (tmp_path / "book").exists():
        with bf.Ledger(tmp_path / "book") as ledger:
            assert ledger.spent == 0


FAULTY = """
import sys

import numpy as np

from blowfish_fast.measure.strategies import Cells
from blowfish_fast.mechanisms.base import Outcome
from examples.outside_mechanism.equal_widths import EqualWidths


class Number(EqualWidths):
    name = "number"

    def _run(self, private):
        return 7


class TooFew(EqualWidths):
    name = "too_few"

    def _run(self, private):
        noisy = private.measure(Cells.under(private.policy), budget=private.remaining)
        return Outcome(np.zeros(3), [noisy])


class Ends(EqualWidths):
    name = "ends"

    def _run(self, private):
        sys.exit("no widths")


class Deep(EqualWidths):
    name = "deep"

    def _run(self, private):
        return self._run(private)


class Unmade(EqualWidths):
    name = "unmade"

    def __init__(self, policy, workload, **budget):
        raise RuntimeError("no widths")
"""
FAULTS = ["Number", "TooFew", "Ends", "Deep", "Unmade"]


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faulty_widths.py").write_text(FAULTY)
    (tmp_path / "no_module.py").write_text('raise ValueError("no widths")\n')
    np.save("counts.npy", COUNTS)
    asked = ["--domain", str(len(COUNTS)), "--policy", "add_remove", "--workload"]
    return [*asked, "identity", "--epsilon", "1"]


def told_by(capsys):
    shown = capsys.readouterr()
    return " ".join(shown.out.split()), " ".join(shown.err.split())


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("how", ["ledger", "no ledger", "job", "dry run"])
def test_a_release_says_whose_fault_it_is_in_every_form(faulty, capsys, fault, how):
    named = ["--mechanism", f"faulty_widths:{fault}", "--data", "counts.npy"]
    words = ["release", *faulty, *named]
    paid = ["--vouched", "--ledger", "book", "--budget", "2"]
    if how == "job":
        Path("job.toml").write_text(
            '[data]\nsource = "counts.npy"\n'
            f'[domain]\ncells = "{len(COUNTS)}"\n[policy]\nkind = "add_remove"\n'
            '[workload]\nkind = "identity"\n'
            f'[mechanism]\nname = "faulty_widths:{fault}"\nvouched = true\n'
            '[budget]\nepsilon = 1\nledger = "book"\ntotal = 2\n'
        )
        words = ["release", "job.toml"]
    elif how != "no ledger":
        words += paid
    words += ["--dry-run"] if how == "dry run" else []
    assert run_command(words) == FAULT
    _, told = told_by(capsys)
    assert f"faulty_widths:{fault}, defined outside blowfish_fast, failed" in told
    assert "fault of blowfish_fast" not in told
    if Path("book").exists():
        with bf.Ledger("book") as ledger:
            assert ledger.spent == 0


@pytest.mark.parametrize("command", ["compare", "recommend"])
def test_advice_says_that_a_mechanism_is_broken_not_that_a_policy_forbids_it(
    faulty, capsys, command
):
    named = ["--mechanism", "faulty_widths:Number", "--mechanism", "laplace"]
    tried = ["--records", "100", "--trials", "1"] if command == "recommend" else []
    assert run_command([command, *faulty, *named, *tried]) == 0
    told, _ = told_by(capsys)
    assert "number is broken: faulty_widths:Number, defined outside" in told
    assert "TypeError: _run hands back an Outcome" in told
    assert "Not possible under this policy" not in told


def test_a_file_that_fails_while_it_is_imported_is_at_fault_itself(faulty, capsys):
    words = ["compare", *faulty, "--mechanism", "no_module:Any"]
    assert run_command(words) == FAULT
    _, told = told_by(capsys)
    assert "failed while it was imported" in told
    assert "ValueError: no widths" in told
    assert run_command([*words[:-1], "no_such_module:Any"]) == 2
    assert "Install its package" in told_by(capsys)[1]


class StoppedOnTheWay(EqualWidths):
    name = "stopped"

    def _run(self, private):
        signal.raise_signal(signal.SIGTERM)
        return super()._run(private)


class EndsItsDraw(EqualWidths):
    name = "ends_draw"

    def _run(self, private):
        if private._counts is not None:
            sys.exit(int(private._counts.sum()))
        return super()._run(private)


def test_whoever_stops_the_program_stops_a_mechanism_from_outside():
    def stop(_number, _frame):
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(SystemExit) as left:
            StoppedOnTheWay(POLICY, CELLS, epsilon=1).check_feasible()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert left.value.code == 143


def test_a_draw_that_ends_the_program_is_the_outcome_of_its_charge():
    ends = EndsItsDraw(POLICY, CELLS, epsilon=1)
    with pytest.raises(errors.FailedDrawError):
        ends.release(COUNTS)
    with pytest.raises(errors.PlugInError, match=f"SystemExit: {COUNTS.sum()}"):
        ends.release(COUNTS, rng=1)
    ledger = bf.Ledger(epsilon=2, policy=POLICY)
    for _ in range(2):
        # A retry draws nothing: no second look at what the counts made of it.
        with pytest.raises(errors.FailedDrawError):
            ledger.release(ends, COUNTS, "mine", vouched=True)
    assert ledger.spent == 1
