"""Trees are kept between processes by public facts, and may be lost at any time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast import Domain
from blowfish_fast._support.machine import cache_folder
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.strategies.trees import kept_trees, tree_weights
from blowfish_fast.measure.strategies.trees.kept_trees import (
    DIGEST_BYTES,
    TunedWeights,
    keep_tree,
    kept_tree,
)
from blowfish_fast.measure.strategies.trees.tree_weights import tuned_tree
from blowfish_fast.policies import AddRemove, Full
from blowfish_fast.workloads import AllRanges, Ranges

LINE = Domain(700)
MAY_BE_ABSENT = AddRemove(LINE)
FORM = Ranges.random(LINE, 50, rng=3).form(Buckets.single_cells(700))
FACTS = ("ranges", 5, b"bytes")
TREE = TunedWeights(2, np.array([0.5, 0.5, 0.5, 0.25, 0.25, 0.25]), 7.5)
"""Three leaves, two nodes above them, and the root."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BLOWFISH_CACHE_DIR", str(tmp_path))
    tree_weights._tuned_to.cache_clear()
    yield tmp_path / "trees"
    tree_weights._tuned_to.cache_clear()


@pytest.fixture
def tunings(monkeypatch):
    """Count how often a tree is tuned."""
    tuned, best_tuned = [], tree_weights._best_tuned

    def counted(*asked, leaves, plainly):
        tuned.append(leaves)
        return best_tuned(*asked, leaves=leaves, plainly=plainly)

    monkeypatch.setattr(tree_weights, "_best_tuned", counted)
    return tuned


def tuned_in_a_new_process(form=FORM, policy=MAY_BE_ABSENT):
    tree_weights._tuned_to.cache_clear()
    return tuned_tree(form, policy, budget=Fraction(1), public_form=True)


def with_digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest() + body


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


@pytest.fixture
def kept(folder):
    """Keep one tree, and return its file."""
    keep_tree(FACTS, TREE)
    return only_file(folder)


def test_another_process_reads_the_same_bits(folder, tunings):
    trees = [tuned_in_a_new_process() for _ in range(3)]
    assert len(tunings) == 1
    fresh = tuned_tree(FORM, AddRemove(LINE), budget=Fraction(1))
    for tree in trees:
        assert tree.fan_out == fresh.fan_out
        assert np.array_equal(tree.node_weights, fresh.node_weights)


@pytest.mark.parametrize(
    ("form", "policy"),
    [
        (FORM._replace(last=np.minimum(FORM.last + 1, 699)), AddRemove(LINE)),
        (FORM, Full(LINE)),
        (AllRanges(LINE).form(Buckets.single_cells(700)), AddRemove(LINE)),
    ],
    ids=["queries", "policy", "kind"],
)
def test_other_facts_are_tuned_to_anew(folder, tunings, form, policy):
    tuned_in_a_new_process()
    tuned_in_a_new_process(form, policy)
    assert len(tunings) == len(list(folder.iterdir())) == 2


def test_an_edit_of_what_tunes_is_noticed(folder, tunings, monkeypatch):
    tuned_in_a_new_process()
    monkeypatch.setattr(kept_trees, "_makers", lambda: b"edited")
    tuned_in_a_new_process()
    assert len(tunings) == 2


@pytest.mark.long
def test_every_kernel_that_tunes_is_part_of_the_name():
    code = (
        "import sys, numpy, blowfish_fast as bf\n"
        "line = bf.Domain(30)\n"
        "asked = bf.workloads.Ranges.random(line, 20, rng=1)\n"
        "from blowfish_fast.data.buckets import Buckets\n"
        "form = asked.form(Buckets.single_cells(30))\n"
        "from blowfish_fast.measure.strategies.trees import tree_weights\n"
        "before = set(sys.modules)\n"
        "tree_weights.tuned_tree(form, bf.policies.AddRemove(line), budget=1)\n"
        "print(*(name for name in set(sys.modules) - before if '.kernels.' in name))"
    )
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True)
    files = [name.split(".")[2:] for name in loaded.stdout.split()]
    rooms = {"".join(file[:-1]) for file in files if len(file) < 3}
    assert rooms
    assert rooms <= {*kept_trees._ROOMS}


def test_a_tree_is_handed_back_as_it_was_kept(kept):
    again = kept_tree(FACTS, 3)
    assert again is not None
    assert (again.fan_out, again.objective) == (2, 7.5)
    assert np.array_equal(again.node_weights, TREE.node_weights)
    assert kept_tree(("other",), 3) is None


@pytest.mark.parametrize("length", [0, 5, DIGEST_BYTES, DIGEST_BYTES + 16, -1, -8])
def test_a_file_that_was_cut_is_tuned_anew(kept, length):
    kept.write_bytes(kept.read_bytes()[:length])
    assert kept_tree(FACTS, 3) is None


def test_a_byte_that_changed_is_noticed_wherever_it_is(kept):
    whole = kept.read_bytes()
    for at in range(len(whole)):
        kept.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert kept_tree(FACTS, 3) is None
    kept.write_bytes(whole)
    assert kept_tree(FACTS, 3) is not None


@pytest.mark.parametrize(
    ("objective", "fan_out", "weights"),
    [
        (np.nan, 2, TREE.node_weights),
        (7.5, 1, TREE.node_weights),
        (7.5, 2**40, TREE.node_weights),
        (7.5, 3, TREE.node_weights),
        (7.5, 2, TREE.node_weights - 1.0),
        (7.5, 2, TREE.node_weights * 4.0),
        (7.5, 2, TREE.node_weights * np.nan),
    ],
)
def test_numbers_that_no_tree_has_are_not_taken(folder, objective, fan_out, weights):
    keep_tree(FACTS, TunedWeights(fan_out, weights, objective))
    assert kept_tree(FACTS, 3) is None


def test_a_damaged_file_is_replaced(folder, tunings):
    first = tuned_in_a_new_process()
    only_file(folder).write_bytes(with_digest(b"another program"))
    assert np.array_equal(tuned_in_a_new_process().node_weights, first.node_weights)
    tuned_in_a_new_process()
    assert len(tunings) == 2


def test_only_the_latest_are_kept(folder, monkeypatch):
    monkeypatch.setattr(kept_trees, "MOST_FILES", 3)
    for number in range(6):
        keep_tree((number,), TREE)
        for path in folder.iterdir():
            state = path.stat()
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns - 10**9))
    assert [kept_tree((number,), 3) is None for number in range(6)] == 3 * [True] + (
        3 * [False]
    )


def test_nothing_is_kept_where_the_folder_is_switched_off(monkeypatch, tunings):
    monkeypatch.setenv("BLOWFISH_CACHE_DIR", "")
    with pytest.raises(FileNotFoundError, match="BLOWFISH_CACHE_DIR is empty"):
        cache_folder()
    for _ in range(2):
        tuned_in_a_new_process()
    assert len(tunings) == 2


def test_a_folder_that_cannot_be_written_costs_time_only(monkeypatch, tunings):
    monkeypatch.setenv("BLOWFISH_CACHE_DIR", "/dev/null/nowhere")
    for _ in range(2):
        tuned_in_a_new_process()
    assert len(tunings) == 2


def test_a_disk_that_is_full_leaves_nothing_behind(folder, monkeypatch):
    def full(self, place):
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    keep_tree(FACTS, TREE)
    assert not list(folder.iterdir())


def test_small_trees_and_trees_of_drawn_buckets_are_not_kept(folder):
    few = Domain(60)
    form = Ranges.random(few, 40, rng=1).form(Buckets.single_cells(60))
    tuned_in_a_new_process(form, AddRemove(few))
    asked = Ranges.random(LINE, 50, rng=1)
    dawa = bf.Dawa(AddRemove(LINE), asked, epsilon=9)
    dawa.release(np.arange(700) * 10**4, rng=1)
    assert not folder.exists()


def test_the_folder_lies_among_the_caches_of_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("BLOWFISH_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "blowfish_fast"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "blowfish_fast"

    def nobody():
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nobody)
    with pytest.raises(FileNotFoundError, match="no home"):
        cache_folder()


@pytest.mark.long
def test_processes_that_keep_at_once_leave_whole_files(folder):
    code = (
        "import numpy as np, sys\n"
        "from blowfish_fast.measure.strategies.trees.kept_trees import *\n"
        "from blowfish_fast.measure.strategies.trees import kept_trees as room\n"
        "room.MOST_FILES = 4\n"
        "tree = room.TunedWeights(2, np.full(6, 0.25), 1.0)\n"
        "for turn in range(300):\n"
        "    room.keep_tree((turn % 6,), tree)\n"
        "    read = room.kept_tree((turn % 5,), 3)\n"
        "    assert read is None or read.objective == 1.0\n"
    )
    command = [sys.executable, "-c", code]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    for path in folder.iterdir():
        content = path.read_bytes()
        assert with_digest(content[DIGEST_BYTES:]) == content
