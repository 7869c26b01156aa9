"""The compiler is told of once, and its time can be taken off."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numba
import pytest

from blowfish_fast._support import compiler_watch
from blowfish_fast._support.compiler_watch import COMPILER, PLAIN_WORK, CompilerWatch
from blowfish_fast._support.source_stamps import KERNELS, source_stamp
from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.kernels import _jit


def test_compiling_is_told_once_however_deep_it_goes():
    told = []
    watch = CompilerWatch()
    watch.tell = lambda: told.append("now")
    for _ in range(2):
        watch.begin()
        watch.begin()
        watch.end()
        watch.end()
    assert told == ["now"]
    before = watch.seconds
    watch.begin()
    assert watch.seconds > before
    watch.end()


def test_seconds_run_from_the_first_beginning_to_the_last_end(monkeypatch):
    now = [5.0]
    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(compiler_watch, "time", clock)
    watch, seen = CompilerWatch(), []
    for step in (watch.begin, watch.begin, watch.end, watch.end, watch.begin):
        now[0] += 1.0
        step()
        seen.append(watch.seconds)
    now[0] += 0.5
    assert [*seen, watch.seconds] == [0.0, 1.0, 2.0, 3.0, 3.0, 3.5]


@pytest.mark.skipif(not _jit.COMPILED, reason="nothing is compiled")
def test_the_compiler_reports_what_it_compiles():
    before = COMPILER.seconds
    compiled = numba.njit(lambda value: value + 1)
    assert compiled(1) == 2
    spent = COMPILER.seconds
    assert spent > before
    assert compiled(2) == 3
    assert COMPILER.seconds == spent


@pytest.mark.parametrize(("words", "said"), [([], True), (["--json"], False)])
def test_a_command_says_why_it_takes_longer_but_not_to_programs(capsys, words, said):
    assert run_command(["version", *words]) == 0
    COMPILER.begin()
    COMPILER.end()
    assert ("compiling kernels, once: 10 to" in capsys.readouterr().err) is said
    COMPILER.tell = None


def test_the_command_that_compiles_everything_says_how_long_and_offers_nothing(capsys):
    assert run_command(["warmup", "--help"]) == 0
    COMPILER.begin()
    COMPILER.end()
    said = capsys.readouterr().err
    assert "compiling every kernel, once: " in said
    assert "blowfish warmup" not in said
    COMPILER.tell = None


def test_compiled_kernels_are_looked_for_where_numba_keeps_them(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "named"))
    monkeypatch.setenv("HOME", str(tmp_path))
    usual = tmp_path / ".cache" / "numba"
    for place in (usual, tmp_path / "named"):
        place.mkdir(parents=True)
    module = "tree_scaling.weight_sweeps"
    stamp = source_stamp(f"blowfish_fast.kernels.{module}")
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    name = f"weight_sweeps.loop-1.{python}.nbi"
    (usual / name).write_text(stamp)
    assert not compiler_watch.compiled_before(module)
    (usual / name).rename(tmp_path / "named" / name)
    assert compiler_watch.compiled_before(module)
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(compiler_watch, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    assert not compiler_watch.compiled_before(module)
    (usual / name).write_text(stamp)
    assert compiler_watch.compiled_before(module)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("weight_sweeps.loop-1.{}.nbi", "a stamp of other sources"),
        ("weight_sweeps.loop-1.py27.nbi", "{}"),
        ("unheard_of.loop-1.{}.nbi", "{}"),
    ],
)
def test_files_of_other_sources_and_pythons_are_not_compiled_kernels(
    name, content, tmp_path, monkeypatch
):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    module = "tree_scaling.weight_sweeps"
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    stamp = source_stamp(f"blowfish_fast.kernels.{module}")
    (tmp_path / name.format(python)).write_text(content.format(stamp))
    assert not compiler_watch.compiled_before(module)


def test_a_file_that_is_gone_before_it_is_read_is_no_compiled_kernel(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    (tmp_path / f"weight_sweeps.loop-1.{python}.nbi").symlink_to(tmp_path / "gone")
    assert not compiler_watch.compiled_before("tree_scaling.weight_sweeps")


def test_stamps_need_no_compiler_and_no_loaded_kernels(monkeypatch):
    name = "blowfish_fast.kernels.tree_scaling.weight_sweeps"
    source_stamp.cache_clear()
    before = source_stamp(name)
    source_stamp.cache_clear()
    for module in [each for each in sys.modules if each.startswith(KERNELS)]:
        monkeypatch.delitem(sys.modules, module)
    assert source_stamp(name) == before
    source_stamp.cache_clear()


def test_small_pieces_of_work_are_plain_until_compiling_would_have_paid():
    watch = CompilerWatch()
    assert not watch.forgoes(PLAIN_WORK + 1)
    assert watch.forgoes(PLAIN_WORK // 2)
    with watch.for_everything():
        assert not watch.forgoes(1)
    assert watch.forgoes(PLAIN_WORK // 2)
    assert not watch.forgoes(1)
