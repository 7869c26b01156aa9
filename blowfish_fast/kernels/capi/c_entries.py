"""The core of DAWA for C: partition, weights and inference behind plain pointers.

Serves programs in C, C++, Rust, Julia or R. Each entry takes pointers and sizes, writes
to memory of the caller, and returns a number, negative for an error.

    blowfish_tree_nodes             how much room a tree needs
    blowfish_least_cost_partition   counts, prices, noise    ->  boundaries of buckets
    blowfish_greedy_weights         ranges of buckets        ->  weight of every node
    blowfish_tree_least_squares     noisy nodes, variances   ->  estimate of every leaf

`entry` compiles one (of `c_prototypes`) as a Numba cfunc and gives its address and a
ctypes function; `write_header` writes ``blowfish_c.h``; `write_shared_library` writes a
library that needs no Python at run time. Entries hold no lock and keep no state: any
thread may call them. They draw nothing and know no epsilon: the caller makes the noise.

For the library the LLVM code that Numba has made of each entry loses what ties it to
Python: its wrapper, which reports errors to the interpreter, and the allocator of
Numba's runtime, in whose place comes malloc.

    entry (LLVM code)   wrapper of cfunc        dropped: it talks to the interpreter
                        function of the entry   kept, hidden; status, result, arguments
                        kernels that it calls   kept, private
    C source            blowfish_...            calls the function, checks the status
                        allocator               malloc and free, counted references

How Numba lays out calls and counted memory is its own affair and may change. So the
linker is told to accept no symbol beyond libc and libm, and the library is tried on
examples, in a process of its own, before it is kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from blowfish_fast.errors import InputError

from .c_prototypes import (
    ENTRIES,
    KINDS,
    c_type,
    compile_entry,
    declaration,
    header,
)
from .into_buffers import OUT_OF_MEMORY

__all__ = [
    "ENTRIES",
    "CEntry",
    "c_type",
    "declaration",
    "entry",
    "header",
    "write_header",
    "write_shared_library",
]

# Reference count, destructor and its argument, data, size: as Numba's code reads them.
RUNTIME = """
#include <stdlib.h>
#include <string.h>
#include "blowfish_c.h"

typedef struct {
    size_t references;
    void (*destroy)(void *, size_t, void *);
    void *destroy_info;
    void *data;
    size_t size;
} memory_info;

__attribute__((visibility("hidden")))
void *NRT_MemInfo_alloc_aligned(size_t size, uint32_t align)
{
    size_t wanted = align < sizeof(void *) ? sizeof(void *) : align;
    memory_info *info = malloc(sizeof *info);
    void *data = NULL;
    if (info == NULL)
        return NULL;
    if (posix_memalign(&data, wanted, size > 0 ? size : 1) != 0) {
        free(info);
        return NULL;
    }
    info->references = 1;
    info->destroy = NULL;
    info->destroy_info = NULL;
    info->data = data;
    info->size = size;
    return info;
}

__attribute__((visibility("hidden")))
void NRT_MemInfo_call_dtor(memory_info *info)
{
    free(info->data);
    free(info);
}
"""

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
    address : int
        Of the machine code, for as long as this process lives.
    call : ctypes function
        Takes pointers and numbers, returns a number; releases the interpreter lock.
    """

    name: str
    address: int
    call: Any


def entry(name: str) -> CEntry:
    """Compile an entry and return its address, and a function to try it from Python.

    Examples
    --------
    >>> from blowfish_fast.kernels import c_entries
    >>> nodes = c_entries.entry("blowfish_tree_nodes")
    >>> nodes.call(5, 2)
    11
    >>> nodes.address > 0
    True
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
    path : path
        Such as ``libblowfish.so``; replaced if it exists.
    compiler : str, optional
        A C compiler that links as gcc and clang do; by default ``$CC``, else ``cc``.
    processor : str
        LLVM's name of the processor to write for; left out, the least of its
        family, so that the library runs on any of them. "native" is this machine.

    Raises
    ------
    InputError
        If there is no compiler, or the library asks for more than libc and libm, or
        its answers differ from those of the kernels (it is tried before it is kept).
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
    for one in module.functions:
        if one.is_declaration:
            continue
        if one.name == inner:
            one.visibility = "hidden"
        else:
            one.linkage = "internal"
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
