"""The last kernels of a first map are compiled by a second process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from blowfish_fast._support import compiler_watch
from blowfish_fast._support.compiler_watch import is_ready
from blowfish_fast.apps.cli import kernels_ahead as ahead
from blowfish_fast.kernels.space import hilbert
from blowfish_fast.kernels.tree import fit

SIGNATURES = """
import importlib, json
from blowfish_fast.apps.cli.kernels_ahead import compile_last_kernels
from blowfish_fast.apps.cli.main import run_command

NAMES = {
    "space.box_buckets": "_divide _list_cells",
    "space.hilbert": "_plane_walk",
    "space.summed_area": "_accumulate _whole_sums",
    "tree.fit": "fill_variances fit_upward fit_downward _bounds _settle",
    "tree.shape": "_leaf_first _leaf_runs _node_numbers",
}

def signatures():
    return {
        f"{module}.{name}": [str(one) for one in kernel.signatures]
        for module, names in NAMES.items()
        for name in names.split()
        for kernel in [getattr(importlib.import_module(
            "blowfish_fast.kernels." + module), name)]
    }

compile_last_kernels()
before = signatures()
words = ["demo", "--side", "64", "--draws", "1", "--queries", "50", "--json"]
assert run_command([*words, "--epsilon", "4"]) == 0
print("\\n" + json.dumps([before, signatures()]))
"""


class Started:
    """A process that only notes how it was started and whether it was ended."""

    def __init__(self, words, **streams):
        self.words, self.streams, self.calls = words, streams, []

    def terminate(self):
        self.calls.append("terminate")

    def wait(self):
        self.calls.append("wait")


@pytest.fixture
def started(monkeypatch):
    processes = []

    def start(words, **streams):
        processes.append(Started(words, **streams))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(ahead.COMPILER, "alone", True)
    monkeypatch.setattr(ahead, "usable_cores", lambda: 2)
    monkeypatch.setattr(ahead, "compiled_before", lambda module: False)
    monkeypatch.setattr(ahead, "can_keep_kernels", lambda: True)
    return processes


def test_a_second_process_is_started_silently_and_ended(started):
    def fail():
        with ahead.compiling_beside():
            assert started[0].calls == []
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    (process,) = started
    assert process.words[1:] == ["-P", "-m", ahead.__name__]
    assert set(process.streams.values()) == {subprocess.DEVNULL}
    assert process.calls == ["terminate", "wait"]


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (ahead.COMPILER, "alone", False),
        (ahead, "usable_cores", lambda: 1),
        (ahead, "compiled_before", lambda module: True),
        (ahead, "can_keep_kernels", lambda: False),
        (sys, "executable", None),
    ],
    ids=[
        "one call of many",
        "one core",
        "compiled before",
        "read-only",
        "within a program",
    ],
)
def test_none_is_started_where_it_would_not_help(
    started, monkeypatch, owner, name, value
):
    monkeypatch.setattr(owner, name, value)
    with ahead.compiling_beside():
        pass
    assert started == []


def test_where_no_process_can_be_started_the_command_goes_on(started, monkeypatch):
    def refuse(words, **streams):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    ran = []
    with ahead.compiling_beside():
        ran.append(True)
    assert ran == [True]


def test_a_cache_that_cannot_be_written_to_keeps_no_kernels(monkeypatch, tmp_path):
    held = tmp_path / "held"
    held.mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(held / "not" / "there" / "yet"))
    assert compiler_watch.can_keep_kernels()
    # Whoever runs these tests may write everywhere, so the answer is made up here.
    asked = []

    def refuse(place, mode):
        asked.append(place)
        return False

    monkeypatch.setattr(compiler_watch.os, "access", refuse)
    assert not compiler_watch.can_keep_kernels()
    assert asked == [held]
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert not compiler_watch.can_keep_kernels()
    assert asked[1] == compiler_watch.KERNEL_FILES


def test_what_it_runs_is_ready_afterwards():
    ahead.compile_last_kernels()
    assert all(map(is_ready, (fit._settle, fit.fit_downward, hilbert._plane_walk)))


@pytest.mark.long
def test_a_map_needs_none_of_these_kernels_for_other_arguments(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SIGNATURES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout.splitlines()[-1])
    assert all(before.values())
    assert after == before
