"""The shared library of the C entries: linked, tried, free of Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from numba.core import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.capi import c_entries

EXAMPLES = Path(__file__).parents[3] / "examples" / "c_backend"
COMPILER = shutil.which("cc")

pytestmark = [
    pytest.mark.skipif(config.DISABLE_JIT, reason="a library is machine code"),
    pytest.mark.skipif(COMPILER is None, reason="no C compiler"),
    pytest.mark.long,
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    c_entries.write_header(folder / "blowfish_c.h")
    c_entries.write_shared_library(folder / "libblowfish.so")
    return folder


def test_the_c_program_of_the_examples_links_and_runs(built):
    program = built / "dawa_core"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    linked = ["-I", built, "-L", built, "-lblowfish", "-lm", f"-Wl,-rpath,{built}"]
    source = EXAMPLES / "dawa_core.c"
    subprocess.run([COMPILER, *strict, source, *linked, "-o", program], check=True)
    done = subprocess.run(
        [program], capture_output=True, text=True, check=True, env={}, cwd="/"
    )
    buckets, estimates, error = done.stdout.splitlines()
    boundaries = [int(word) for word in buckets.split()[1:]]
    assert (boundaries[0], boundaries[-1]) == (0, 16)
    totals = [float(word) for word in estimates.split()[1:]]
    assert len(totals) == len(boundaries) - 1
    assert abs(sum(totals) - 742) < 60
    assert error.startswith("predicted error:")


def test_the_library_shows_its_entries_and_asks_for_libc_alone(built):
    reader = shutil.which("nm")
    if reader is None:
        pytest.skip("no nm")
    done = subprocess.run(
        [reader, "-D", built / "libblowfish.so"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    shown = {line[-1] for line in lines if line[-2] in "TBDR"}
    wanted = {line[-1].split("@")[0] for line in lines if line[-2] == "U"}
    assert shown == set(c_entries.ENTRIES)
    assert not [name for name in wanted if name.startswith(("Py", "numba", "NRT"))]


def test_a_missing_compiler_is_named(tmp_path):
    with pytest.raises(InputError, match="no-such-compiler"):
        c_entries.write_shared_library(tmp_path / "x.so", compiler="no-such-compiler")


def test_a_library_that_errs_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(c_entries, "TRIAL", "raise SystemExit('wrong answers')")
    monkeypatch.setattr(c_entries, "_object_code", lambda *_: (b"", "nothing"))
    monkeypatch.setattr(c_entries, "_shim", lambda *_: "")
    monkeypatch.setattr(c_entries, "ENTRIES", {})
    with pytest.raises(InputError, match="wrong answers"):
        c_entries.write_shared_library(tmp_path / "x.so")
    monkeypatch.setattr(c_entries, "RUNTIME", "int wanted(void);"
                        "int asked(void) { return wanted(); }")  # fmt: skip
    with pytest.raises(InputError, match="without Python"):
        c_entries.write_shared_library(tmp_path / "x.so")
    assert not (tmp_path / "x.so").exists()
