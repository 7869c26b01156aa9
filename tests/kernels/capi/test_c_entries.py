"""C entries: addresses that C can call, their header, and what they refuse."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numba.core import config

from blowfish_fast import kernels
from blowfish_fast.errors import InputError
from blowfish_fast.kernels.capi import c_entries
from blowfish_fast.kernels.capi.into_buffers import BAD_SIZE, BAD_VALUE

EXAMPLES = Path(__file__).parents[3] / "examples" / "c_backend"
COMPILER = shutil.which("cc")
NONE = np.zeros(0, dtype=np.int64)

compiled_only = pytest.mark.skipif(
    config.DISABLE_JIT, reason="C entries are machine code"
)


def at(array):
    """Return a ctypes pointer to an array's first number."""
    kind = ctypes.c_int64 if array.dtype == np.int64 else ctypes.c_double
    return array.ctypes.data_as(ctypes.POINTER(kind))


def partition(counts, prices, boundaries, **changes):
    sizes = {
        "cells": counts.size,
        "levels": prices.size,
        "noises": 0,
        "room": boundaries.size,
        **changes,
    }
    return c_entries.entry("blowfish_least_cost_partition").call(
        at(counts),
        sizes["cells"],
        at(prices),
        sizes["levels"],
        at(NONE),
        sizes["noises"],
        0,
        at(boundaries),
        sizes["room"],
    )


@pytest.mark.long
@compiled_only
def test_an_address_called_through_ctypes_partitions_as_the_kernel_does():
    counts = np.random.default_rng(2).poisson(30, size=500)
    prices, boundaries = np.full(9, 60), np.zeros(501, dtype=np.int64)
    buckets = partition(counts, prices, boundaries)
    expected = kernels.least_cost_partition(counts, prices.astype(float), step=1.0)
    np.testing.assert_array_equal(boundaries[: buckets + 1], expected)


@pytest.mark.long
@compiled_only
def test_weights_and_leaves_through_addresses():
    starts, ends = np.array([0, 2]), np.array([5, 4])
    nodes = c_entries.entry("blowfish_tree_nodes").call(5, 2)
    assert nodes == 11
    weights, none = np.empty(nodes + 1), np.zeros(0)
    assert (
        c_entries.entry("blowfish_greedy_weights").call(
            at(starts),
            at(ends),
            2,
            at(none),
            0,
            5,
            2,
            1,
            at(weights),
            nodes + 1,
        )
        == 0
    )
    expected = kernels.greedy_scaling(starts, ends, None, 5, 2)
    np.testing.assert_allclose(weights[:-1], expected, rtol=1e-9)
    noisy, estimate = np.arange(11.0), np.empty(5)
    solve = c_entries.entry("blowfish_tree_least_squares").call
    assert solve(at(noisy), at(np.ones(11)), 11, 5, 2, at(estimate)) == 0
    tree = kernels.regular_tree(5, 2)
    expected = kernels.tree_fit(noisy, np.ones(11), tree)[:5]
    np.testing.assert_array_equal(estimate, expected)
    assert solve(at(noisy), at(np.ones(11)), 10, 5, 2, at(estimate)) == BAD_SIZE
    assert solve(at(noisy), at(-np.ones(11)), 11, 5, 2, at(estimate)) == BAD_VALUE


@compiled_only
@pytest.mark.parametrize(
    "changes",
    [{"cells": 0}, {"levels": 1}, {"levels": 40}, {"noises": 3}, {"room": 2}],
    ids=str,
)
def test_sizes_that_do_not_fit_are_refused_before_anything_is_read(changes):
    boundaries = np.zeros(4, dtype=np.int64)
    result = partition(np.array([1, 2, 3]), np.array([1, 1]), boundaries, **changes)
    assert result == BAD_SIZE
    assert not boundaries.any()


@compiled_only
def test_entries_run_in_several_threads():
    counts = np.random.default_rng(3).poisson(9, size=(16, 300))
    prices = np.full(9, 25)

    def buckets(row):
        return partition(row, prices, np.zeros(301, dtype=np.int64))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(buckets, counts)) == [buckets(row) for row in counts]


def test_there_are_no_other_entries():
    with pytest.raises(InputError, match="choose from"):
        c_entries.entry("blowfish_magic")


@pytest.mark.long
def test_without_the_compiler_the_error_says_why():
    code = (
        "from blowfish_fast.errors import InputError\n"
        "from blowfish_fast.kernels import c_entries\n"
        "c_entries.header()\n"
        "try: c_entries.entry('blowfish_tree_nodes')\n"
        "except InputError as problem: print(problem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(EXAMPLES.parent.parent)},
    )
    assert "unset it" in done.stdout


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("standard", ["c99", "c11", "c++"])
def test_the_header_compiles(tmp_path, standard):
    c_entries.write_header(tmp_path / "blowfish_c.h")
    language = "c++" if standard == "c++" else "c"
    if language == "c++" and shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    source = tmp_path / "only.c"
    source.write_text('#include "blowfish_c.h"\nint64_t used = BLOWFISH_BAD_SIZE;\n')
    flags = [] if language == "c++" else [f"-std={standard}"]
    command = ["c++" if language == "c++" else COMPILER, "-x", language, *flags]
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    made = ["-c", source, "-o", tmp_path / "only.o"]
    subprocess.run([*command, *strict, *made], check=True)


@pytest.mark.long
@compiled_only
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_a_c_library_calls_the_address_that_python_hands_over(tmp_path):
    c_entries.write_header(tmp_path / "blowfish_c.h")
    library = tmp_path / "with_address.so"
    flags = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", tmp_path]
    source = EXAMPLES / "with_address.c"
    subprocess.run([COMPILER, *flags, source, "-o", library], check=True)
    done = subprocess.run(
        [sys.executable, EXAMPLES / "with_address.py", library],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "C returned 0" in done.stdout
    assert "the kernel agrees" in done.stdout
