"""The core of DAWA for C: partition, weights and inference behind plain pointers.

Serves programs in C, C++, Rust, Julia or R. Each entry takes pointers and sizes, writes
to memory of the caller, and returns a number, negative for an error.

    blowfish_tree_nodes             how much room a tree needs
    blowfish_least_cost_partition   counts, prices, noise    ->  boundaries of buckets
    blowfish_greedy_weights         ranges of buckets        ->  weight of every node
    blowfish_tree_least_squares     noisy nodes, variances   ->  estimate of every leaf

`entry` compiles one as a Numba cfunc and gives its address and a ctypes function;
`write_header` writes ``blowfish_c.h``; `write_shared_library` writes a library that
needs no Python at run time. Entries hold no lock and keep no state: any thread may call
them. They draw nothing and know no epsilon: noise is made by the caller.

This is the door; the entries themselves are in `c_prototypes`, the linking is in
`c_library`, and both are reached through here.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from .c_library import link_entries
from .c_prototypes import (
    ENTRIES,
    KINDS,
    Prototype,
    c_type,
    compile_entry,
    declaration,
    header,
)


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
    return link_entries(Path(path), compiler, processor)


__all__ = [
    "ENTRIES",
    "KINDS",
    "CEntry",
    "Prototype",
    "c_type",
    "compile_entry",
    "declaration",
    "entry",
    "header",
    "write_header",
    "write_shared_library",
]
