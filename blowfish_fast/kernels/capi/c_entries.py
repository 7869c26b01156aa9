"""The core of DAWA for C: partition, weights and inference behind plain pointers.

Serves programs in C, C++, Rust, Julia or R. Each entry takes pointers and sizes, writes
to memory of the caller, and returns a number, negative for an error.

    blowfish_tree_nodes             how much room a tree needs
    blowfish_least_cost_partition   counts, prices, noise    ->  boundaries of buckets
    blowfish_greedy_weights         ranges of buckets        ->  weight of every node
    blowfish_tree_least_squares     noisy nodes, variances   ->  estimate of every leaf

`entry` compiles one as a Numba cfunc and gives its address and a ctypes function;
`write_header` writes ``blowfish_c.h``; `write_shared_library` writes a library that
needs no Python at run time. Entries check sizes before anything is read, hold no lock
and keep no state: any thread may call them. They draw nothing and know no epsilon: the
caller makes the noise. The table `ENTRIES` is the source of the machine code, of the
ctypes prototypes and of the header, so that they cannot disagree.

For the library the LLVM code that Numba has made of each entry loses what ties it to
Python: its wrapper, which reports errors to the interpreter, and the allocator of
Numba's runtime, in whose place comes malloc.

    entry (LLVM code)   wrapper of cfunc        dropped: it talks to the interpreter
                        function of the entry   stays, hidden; status, result, arguments
                        kernels that it calls   stay, private
    C source            blowfish_...            calls the function, checks the status
                        allocator               malloc and free, counted references

How Numba lays out calls and counted memory is its own affair and may change. So the
linker is told to accept no symbol beyond libc and libm, and the library is tried on
examples, in a process of its own, before it is put in its place.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from numba import carray

from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import COMPILED

from .into_buffers import (
    BAD_SIZE,
    DECAY,
    ERRORS,
    MOST_CELLS,
    OUT_OF_MEMORY,
    PRUNE,
    ROOT_EXACT,
    leaves_into,
    partition_into,
    tree_nodes,
    weights_into,
)


def _nodes(leaves: Any, fan_out: Any) -> Any:
    return tree_nodes(leaves, fan_out)


def _partition(
    counts: Any,
    cells: Any,
    prices: Any,
    levels: Any,
    noise: Any,
    noises: Any,
    grid: Any,
    boundaries: Any,
    room: Any,
) -> Any:
    if not 1 <= cells <= MOST_CELLS or room < cells + 1:
        return BAD_SIZE
    if not 1 <= levels <= 29 or not 1 << (levels - 1) <= cells < 1 << levels:
        return BAD_SIZE
    if noises not in (0, levels * (cells + 1)):
        return BAD_SIZE
    try:
        return partition_into(
            carray(counts, (cells,)),
            carray(prices, (levels,)),
            carray(noise, (noises,)),
            grid,
            carray(boundaries, (cells + 1,)),
        )
    except Exception:
        return OUT_OF_MEMORY


def _weights(
    starts: Any,
    ends: Any,
    queries: Any,
    weights: Any,
    weighted: Any,
    leaves: Any,
    fan_out: Any,
    flags: Any,
    scaling: Any,
    room: Any,
) -> Any:
    nodes = tree_nodes(leaves, fan_out)
    if nodes < 1 or room != nodes + 1:
        return BAD_SIZE
    if queries < 0 or weighted not in (0, queries):
        return BAD_SIZE
    try:
        return weights_into(
            carray(starts, (queries,)),
            carray(ends, (queries,)),
            carray(weights, (weighted,)),
            leaves,
            fan_out,
            flags,
            carray(scaling, (room,)),
        )
    except Exception:
        return OUT_OF_MEMORY


def _least_squares(
    noisy: Any, variances: Any, nodes: Any, leaves: Any, fan_out: Any, estimate: Any
) -> Any:
    if nodes < 1 or tree_nodes(leaves, fan_out) != nodes:
        return BAD_SIZE
    try:
        return leaves_into(
            carray(noisy, (nodes,)),
            carray(variances, (nodes,)),
            fan_out,
            carray(estimate, (leaves,)),
        )
    except Exception:
        return OUT_OF_MEMORY


class Prototype(NamedTuple):
    """An entry as C sees it; every number is an int64_t.

    Attributes
    ----------
    function : Callable[..., object]
        The Python function that Numba compiles.
    listed : str
        The kinds of its arguments, words of `KINDS`, separated by commas.
    remark : str
        What the header says above the declaration.
    """

    function: Callable[..., Any]
    listed: str
    """Kinds of its arguments, with commas between; see `KINDS`."""
    remark: str

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """Kind and name of each argument."""
        names = signature(self.function).parameters
        return list(zip(self.listed.split(", "), names, strict=True))


KINDS: dict[str, tuple[str, Any]] = {
    "number": ("int64_t ", ctypes.c_int64),
    "ints": ("const int64_t *", ctypes.POINTER(ctypes.c_int64)),
    "doubles": ("const double *", ctypes.POINTER(ctypes.c_double)),
    "ints out": ("int64_t *", ctypes.POINTER(ctypes.c_int64)),
    "doubles out": ("double *", ctypes.POINTER(ctypes.c_double)),
}
"""How an argument is written in C, and its type in ctypes."""

ENTRIES = {
    "blowfish_tree_nodes": Prototype(
        _nodes,
        "number, number",
        "Return how many nodes a tree has: leaves first, level by level, root last.",
    ),
    "blowfish_least_cost_partition": Prototype(
        _partition,
        "ints, number, ints, number, ints, number, number, ints out, number",
        """Cut cells into the cheapest buckets of 1, 2, 4, ... cells, at any offset.

   A bucket of 2^k cells costs, in steps of 2^grid counts, the distances of its
   counts from their mean, rounded down, plus prices[k], minus its noise. levels
   is the bit length of cells. noise holds levels rows of cells + 1 numbers, none
   negative: row k, place e for the bucket that ends before cell e. noises is
   levels * (cells + 1), or 0 for no noise: then the partition is NOT private.
   boundaries has room for at least cells + 1 numbers and receives 0 ... cells.
   Returns the number of buckets.""",
    ),
    "blowfish_greedy_weights": Prototype(
        _weights,
        "ints, ints, number, doubles, number, number, number, number, "
        "doubles out, number",
        """Tune the weights of a tree's nodes to the ranges [start, end) of leaves.

   weighted is queries, or 0 if all queries matter alike. flags is a sum of
   BLOWFISH_DECAY (the rule of the paper), BLOWFISH_ROOT_EXACT (the total is
   known) and BLOWFISH_PRUNE. room is blowfish_tree_nodes(leaves, fan_out) + 1.
   scaling receives a weight for every node; along each path they add up to 1.
   Its last number receives the predicted error. Returns 0.""",
    ),
    "blowfish_tree_least_squares": Prototype(
        _least_squares,
        "doubles, doubles, number, number, number, doubles out",
        """Estimate the leaves of a tree whose nodes were measured with noise.

   A variance of infinity means not measured, 0 means known exactly. estimate
   has room for leaves numbers. Returns 0.""",
    ),
}
"""Every entry, by the name that C calls it by."""


def _prototype(name: str) -> Prototype:
    if name not in ENTRIES:
        raise InputError(f"there is no C entry {name!r}; choose from {list(ENTRIES)}")
    return ENTRIES[name]


@cache
def compile_entry(name: str, *, keep: bool = True) -> Any:
    """Compile an entry, once, and return the Numba cfunc.

    Parameters
    ----------
    name : str
        One of `ENTRIES`.
    keep : bool, default True
        Whether it is cached on disk too; its LLVM code is gone then.

    Returns
    -------
    numba.core.ccallback.CFunc
        The compiled entry.

    Raises
    ------
    InputError
        If there is no such entry, or NUMBA_DISABLE_JIT is set.
    """
    prototype = _prototype(name)
    if not COMPILED:
        raise InputError(
            "C entries are machine code, and NUMBA_DISABLE_JIT keeps Numba from making "
            "any; unset it and start Python again"
        )
    from numba import types
    from numba.core.ccallback import CFunc

    from blowfish_fast.kernels._cache import KernelCache

    pointers = {"d": types.CPointer(types.float64), "i": types.CPointer(types.int64)}
    kinds = (pointers.get(kind[0], types.int64) for kind, _ in prototype.arguments)
    entry: Any = CFunc(prototype.function, (tuple(kinds), types.int64), {}, {})
    if keep:
        entry._cache = KernelCache(prototype.function)
    entry.compile()
    return entry


def c_type(name: str) -> Any:
    """Return the ctypes prototype of an entry."""
    kinds = (KINDS[kind][1] for kind, _ in _prototype(name).arguments)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)


def declaration(name: str, pointer: str = "") -> str:
    """Return the C declaration of an entry.

    Parameters
    ----------
    name : str
        One of `ENTRIES`.
    pointer : str, default ''
        If given, the declaration is that of a function pointer of this name.

    Returns
    -------
    str
        The declaration, with its semicolon.
    """
    parts = [KINDS[kind][0] + word for kind, word in _prototype(name).arguments]
    return f"int64_t {f'(*{pointer})' if pointer else name}({', '.join(parts)});"


def header() -> str:
    """Return ``blowfish_c.h``: declarations, flags, errors, a type for each pointer."""
    lines = [
        "/* C entries of blowfish_fast. Written by kernels.c_entries. */",
        "#ifndef BLOWFISH_C_H",
        "#define BLOWFISH_C_H",
        "#include <stdint.h>",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "/* Flags of blowfish_greedy_weights. */",
        f"#define BLOWFISH_DECAY {DECAY}",
        f"#define BLOWFISH_ROOT_EXACT {ROOT_EXACT}",
        f"#define BLOWFISH_PRUNE {PRUNE}",
        "",
        "/* Negative results. */",
    ]
    for code, (word, meaning) in ERRORS.items():
        lines.append(f"#define BLOWFISH_{word} ({code}) /* {meaning} */")
    for name, prototype in ENTRIES.items():
        lines += [
            "",
            f"/* {prototype.remark} */",
            declaration(name),
            f"typedef {declaration(name, pointer=f'{name}_t')}",
        ]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "#endif", ""]
    return "\n".join(lines)


RUNTIME = Path(__file__).with_name("numba_memory.c").read_text()
"""Memory of arrays: reference count, destructor and its argument, data, size."""

TRIAL = """
import ctypes, sys
import numpy as np
from blowfish_fast.kernels import c_entries, greedy_scaling, regular_tree, tree_fit
from blowfish_fast.kernels import least_cost_partition
library = ctypes.CDLL(sys.argv[1])
calls = {name: c_entries.c_type(name)((name, library)) for name in c_entries.ENTRIES}
def at(array):
    kind = ctypes.c_int64 if array.dtype == np.int64 else ctypes.c_double
    return array.ctypes.data_as(ctypes.POINTER(kind))
generator = np.random.default_rng(5)
none = np.zeros(0, dtype=np.int64)
for cells, most in ((1, 3), (100, 9), (3000, 10**6), (70000, 50)):
    counts = generator.integers(0, most, size=cells)
    prices = np.full(cells.bit_length(), 5 * most)
    boundaries = np.empty(cells + 1, dtype=np.int64)
    buckets = calls["blowfish_least_cost_partition"](
        at(counts), cells, at(prices), prices.size, at(none), 0, 0,
        at(boundaries), boundaries.size)
    expected = least_cost_partition(counts, prices.astype(float), step=1.0)
    assert np.array_equal(boundaries[: buckets + 1], expected), cells
    nodes = calls["blowfish_tree_nodes"](cells, 3)
    ends = np.sort(generator.integers(0, cells + 1, size=(2, 50)), axis=0)
    weights, ones = np.empty(nodes + 1), np.ones(1)
    assert calls["blowfish_greedy_weights"](
        at(ends[0]), at(ends[1]), 50, at(ones), 0, cells, 3, 1,
        at(weights), nodes + 1) == 0
    expected = greedy_scaling(ends[0], ends[1], None, cells, 3)
    np.testing.assert_allclose(weights[:-1], expected, rtol=1e-9, atol=1e-12)
    noisy, estimate = generator.normal(size=nodes), np.empty(cells)
    variances = generator.uniform(0.5, 2.0, size=nodes)
    assert calls["blowfish_tree_least_squares"](
        at(noisy), at(variances), nodes, cells, 3, at(estimate)) == 0
    expected = tree_fit(noisy, variances, regular_tree(cells, 3))[:cells]
    np.testing.assert_allclose(estimate, expected, rtol=1e-9, atol=1e-9)
"""


class CEntry(NamedTuple):
    """A compiled entry.

    Attributes
    ----------
    name : str
        Its name in C.
    address : int
        Where the machine code lies, for as long as this process lives.
    call : object
        A ctypes function that takes pointers and numbers and returns a number. It
        releases the interpreter lock.
    """

    name: str
    address: int
    call: Any


def entry(name: str) -> CEntry:
    """Compile an entry and return its address, and a function to try it from Python.

    Examples
    --------
    >>> from blowfish_fast.kernels import c_entries
    >>> c_entries.entry("blowfish_tree_nodes").call(5, 2)
    11
    """
    address = int(compile_entry(name).address)
    return CEntry(name, address, c_type(name)(address))


def write_header(path: str | PathLike[str]) -> Path:
    """Write `header` to a file, such as ``blowfish_c.h``."""
    target = Path(path)
    target.write_text(header(), encoding="utf-8")
    return target


def write_shared_library(
    path: str | PathLike[str], *, compiler: str | None = None, processor: str = ""
) -> Path:
    """Write the entries as a shared library that needs neither Python nor Numba.

    Parameters
    ----------
    path : str or PathLike[str]
        Where to, such as ``libblowfish.so``; a file there is replaced.
    compiler : str, optional
        A C compiler that links as gcc and clang do; by default ``$CC``, else ``cc``.
    processor : str, default ''
        LLVM's name of the processor to write for. Left out, it is the least of its
        family, so that the library runs on any of them; "native" is this machine.

    Returns
    -------
    Path
        The path of the library.

    Raises
    ------
    InputError
        If there is no compiler, or the library asks for more than libc and libm, or its
        answers differ from those of the kernels.
    """
    chosen = shutil.which(compiler or os.environ.get("CC") or "cc")
    if chosen is None:
        raise InputError(
            "a shared library needs a C compiler to link it; none was found as "
            f"{compiler or os.environ.get('CC') or 'cc'!r}. Install gcc or clang, or "
            "name one"
        )
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        source = RUNTIME
        objects = []
        for number, name in enumerate(ENTRIES):
            code, inner = _object_code(name, processor)
            objects.append(room / f"entry_{number}.o")
            objects[-1].write_bytes(code)
            source += _shim(name, inner)
        (room / "blowfish_c.h").write_text(header())
        (room / "entries.c").write_text(source)
        built = room / "library"
        strict = [] if sys.platform == "darwin" else ["-Wl,--no-undefined"]
        flags = ["-std=gnu11", "-O2", "-fPIC", "-shared", *strict]
        _run(
            [chosen, *flags, "-o", built, room / "entries.c", *objects, "-lm"],
            "the library could not be linked without Python",
        )
        _run(
            [sys.executable, "-c", TRIAL, built],
            "the library gave other answers than the kernels",
        )
        target = Path(path)
        shutil.copyfile(built, target)
        target.chmod(0o755)
    return target


def _object_code(name: str, processor: str) -> tuple[bytes, str]:
    """Return relocatable machine code of an entry, and the name of its function."""
    import llvmlite.binding as llvm

    function = compile_entry(name, keep=False)
    library = function._library
    if library.has_dynamic_globals:
        raise InputError(
            f"Numba put addresses of this process into {name}; a library cannot "
            "hold them. Use the address of c_entries.entry in this process"
        )
    wrapper = function._wrapper_name
    inner = wrapper.removeprefix("cfunc.")
    module = llvm.parse_assembly(library.get_llvm_str())
    for symbol in module.functions:
        if symbol.is_declaration:
            continue
        if symbol.name == inner:
            symbol.visibility = "hidden"
        else:
            symbol.linkage = "internal"
    for variable in module.global_variables:
        if variable.linkage == llvm.Linkage.common:
            variable.visibility = "hidden"
    target = llvm.Target.from_triple(module.triple)
    chosen = llvm.get_host_cpu_name() if processor == "native" else processor
    machine = target.create_target_machine(
        cpu=chosen, opt=3, reloc="pic", codemodel="default"
    )
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes.run(module, builder)
    return machine.emit_object(module), inner


def _shim(name: str, inner: str) -> str:
    """Return the C function that calls an entry's function and checks its status."""
    arguments = ENTRIES[name].arguments
    typed = ", ".join(KINDS[kind][0].strip() for kind, _ in arguments)
    words = ", ".join(word for _, word in arguments)
    return f"""
int32_t inner_{name}(int64_t *, void **, {typed}) __asm__("{inner}");
{declaration(name)[:-1]}
{{
    int64_t result = 0;
    void *problem = NULL;
    return inner_{name}(&result, &problem, {words}) == 0 ? result : {OUT_OF_MEMORY};
}}
"""


def _run(command: list[Any], complaint: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(
            f"{complaint}, so it was not written; this version of Numba may differ "
            "from those that were tried. Use the address of c_entries.entry in a "
            f"process with Python. The tool said: {done.stderr.strip()[-800:]}"
        )
