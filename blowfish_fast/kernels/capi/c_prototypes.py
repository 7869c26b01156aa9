"""What C sees of the core of DAWA: four functions, their types and their header.

Serves `c_entries`, where people meet it. Each function takes pointers
and sizes, checks the sizes before anything is read, and hands arrays over the caller's
memory to a kernel of `into_buffers`.

    Prototype   function     compiled with the types of `KINDS`
                kinds        "ints", "number", ... of its arguments
                remark       what the header says above the declaration

One table, `ENTRIES`, is the source of the machine code, of the ctypes prototypes and of
the header, so that they cannot disagree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from inspect import signature
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
    """An entry as C sees it; every number is an int64_t."""

    function: Callable[..., Any]
    listed: str
    """Kinds of its arguments, with commas between; see `KINDS`."""
    remark: str

    @property
    def kinds(self) -> list[str]:
        """Kind of each argument."""
        return self.listed.split(", ")

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """Kind and name of each."""
        return list(zip(self.kinds, signature(self.function).parameters, strict=True))


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

    With `keep` it is cached on disk too; its LLVM code is then gone.
    """
    prototype = _prototype(name)
    if not COMPILED:
        raise InputError(
            "C entries are machine code, and NUMBA_DISABLE_JIT keeps Numba from making "
            "any; unset it and start Python again"
        )
    from numba import cfunc, types

    numba_types = {
        "number": types.int64,
        "ints": types.CPointer(types.int64),
        "doubles": types.CPointer(types.float64),
        "ints out": types.CPointer(types.int64),
        "doubles out": types.CPointer(types.float64),
    }
    typed = types.int64(*(numba_types[kind] for kind in prototype.kinds))
    try:
        return cfunc(typed, cache=keep)(prototype.function)
    except RuntimeError:
        # No folder to cache in; see `_jit`.
        return cfunc(typed)(prototype.function)


def c_type(name: str) -> Any:
    """Return the ctypes prototype of an entry."""
    kinds = _prototype(name).kinds
    return ctypes.CFUNCTYPE(ctypes.c_int64, *(KINDS[kind][1] for kind in kinds))


def declaration(name: str, pointer: str = "") -> str:
    """Return the C declaration of an entry; as a pointer of that name if given."""
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
