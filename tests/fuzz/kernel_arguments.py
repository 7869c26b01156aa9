"""Arguments of kernels, by the annotation and the name of each parameter.

One call has one small plan: how many cells, queries and axes there are, and the fan-out
of a tree. Arrays follow it, so that most calls fit together; then some arguments are
spoiled, and the call misses by one thing or two.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from blowfish_fast.errors import BlowfishError

from .values import mutated_array

SORTED = ("pointers", "edges", "boundaries", "stretches")
PERMUTED = ("order", "position")
BEGINNINGS = ("starts", "first", "lows")
ENDS = ("ends", "second", "last", "highs")
OF_QUERIES = (*BEGINNINGS, *ENDS, "first_fraction", "last_fraction", "targets")
OF_NODES = ("rates", "variances", "scales", "noisy", "start")
EFFORT = ("threads", "sweeps", "passes")
KINDS = ("identity", "total", "prefixes", "all_ranges", "ranges", "nothing")
SPOILED = 0.1


class Plan(NamedTuple):
    """The sizes of one call."""

    cells: int
    queries: int
    shape: tuple[int, ...]
    branching: int
    tree: bool
    boxes: bool

    @property
    def nodes(self):
        """Nodes of a tree over the cells; the cells themselves where there is none."""
        if not self.tree:
            return self.cells
        total = level = self.cells
        while level > 1:
            level = -(-level // self.branching)
            total += level
        return total


@functools.cache
def parameters(call):
    return tuple(inspect.signature(call).parameters.values())


@functools.cache
def maker(call, annotation):
    """Return the function beside a class of kernels that makes its instances."""
    home = inspect.unwrap(call).__globals__
    wanted = home.get(annotation)
    if not inspect.isclass(wanted) or not wanted.__module__.startswith("blowfish_fast"):
        return None
    for name, one in vars(sys.modules[wanted.__module__]).items():
        made = inspect.isfunction(one) and one.__annotations__.get("return")
        if made == annotation and not name.startswith("_"):
            return one
    return None


def built(rng, make):
    """Make an instance from values that are accepted."""
    for _ in range(50):
        given, named = kernel_arguments(rng, make)
        with contextlib.suppress(BlowfishError, ValueError, TypeError, OverflowError):
            return make(*given, **named)
    raise AssertionError(f"{make.__name__} accepts nothing")


def kernel_arguments(rng, call):
    """Return positional and named arguments for one call."""
    wanted = parameters(call)
    names = {one.name for one in wanted}
    shape = tuple(rng.randrange(1, 5) for _ in range(rng.randrange(1, 4)))
    boxes = "shape" in names or "table" in names
    plan = Plan(
        int(np.prod(shape)) if boxes else rng.choice((1, 2, 3, 4, 5, 8, 13)),
        rng.choice((1, 2, 3, 5)),
        shape,
        rng.choice((2, 2, 3, 4)),
        "leaves" in names or "branching" in names,
        boxes,
    )
    given, named = [], {}
    for one in wanted:
        if one.default is not one.empty and rng.random() < 0.5:
            made = one.default
        elif (make := maker(call, one.annotation)) is not None:
            made = built(rng, make)
        else:
            made = _argument(rng, one, plan)
            if rng.random() < SPOILED:
                made = _spoiled(rng, one, made)
        if one.kind is one.KEYWORD_ONLY:
            named[one.name] = made
        else:
            given.append(made)
    return given, named


def _argument(rng, parameter, plan):
    name, wanted = parameter.name, str(parameter.annotation)
    if "Array" in wanted or wanted == "Values":
        return _array(rng, name, wanted, plan)
    if "Word" in wanted:
        return functools.partial(words, rng.randrange(2**32))
    if "bool" in wanted:
        return rng.random() < 0.5
    if name == "shape":
        return plan.shape
    if "tuple" in wanted and "Fraction" in wanted:
        return Fraction(rng.randrange(1, 9), 3), Fraction(rng.randrange(1, 9), 2)
    if "tuple" in wanted:
        return rng.choice(((1, 2), (3, 4), (1, 3)))
    if "Fraction" in wanted or wanted == "Number":
        return Fraction(rng.randrange(1, 9), rng.randrange(1, 9))
    if name == "kind" or "Kind" in wanted:
        return rng.choice(KINDS)
    if "Base" in wanted or "Sequence" in wanted:
        return parameter.default
    if "float" in wanted:
        return rng.choice((0.5, 1.0, 2.0, 0.125, 0.0))
    sizes = {"leaves": plan.cells, "cells": plan.cells, "branching": plan.branching}
    return sizes.get(name, rng.choice((1, 2, 3)))


def _array(rng, name, wanted, plan):
    queries = plan.queries
    if name in SORTED:
        last = plan.cells if name != "pointers" else queries
        inner = sorted(rng.randrange(last + 1) for _ in range(queries - 1))
        made = np.array([0, *inner, last])
        if name == "pointers" and rng.random() < 0.5:
            return np.arange(queries + 1)
        return np.unique(made) if name != "pointers" else made
    if name in PERMUTED:
        return np.argsort([rng.random() for _ in range(plan.cells)])
    if name == "parents" and rng.random() < 0.3:
        # All below the last node; otherwise each below an earlier one.
        return np.array([plan.cells - 1] * (plan.cells - 1) + [-1])
    if name == "parents":
        return np.array([rng.randrange(-1, max(at, 1)) for at in range(plan.cells)])
    if name in OF_QUERIES:
        return _of_queries(rng, name, plan)
    length = plan.nodes if name in OF_NODES else plan.cells
    if name == "values" and rng.random() < 0.7:
        length = queries
    rows: tuple[int, ...] = (length,)
    if name == "table":
        rows = tuple(side + 1 for side in plan.shape)
    elif name in ("costs", "log_weights"):
        rows = (queries, plan.cells)
    if "Bool" in wanted:
        return np.array([rng.random() < 0.5 for _ in range(length)])
    total = int(np.prod(rows))
    if "Int" in wanted or (wanted == "AnyArray" and rng.random() < 0.5):
        made = [rng.randrange(0, plan.cells + 1) for _ in range(total)]
        return np.array(made, dtype=np.int64).reshape(rows)
    floats = [rng.choice((1.0, 0.5, 2.25, rng.random(), 0.0)) for _ in range(total)]
    return np.array(floats).reshape(rows)


def _of_queries(rng, name, plan):
    """Return begins and ends of ranges or boxes, whose begins lie before their ends."""
    if name.endswith("fraction") or name == "targets":
        return np.array([rng.choice((1.0, 0.5, 0.25)) for _ in range(plan.queries)])
    sides = plan.shape if name in ("lows", "highs") else (plan.cells,)
    rows = []
    for _ in range(plan.queries):
        if name in BEGINNINGS:
            rows.append([rng.randrange(side // 2 + 1) for side in sides])
        else:
            rows.append([rng.randrange(side // 2, side + 1) for side in sides])
    made = np.array(rows, dtype=np.int64)
    if name in ("first", "last", "second"):
        made = np.minimum(made, plan.cells - 1)
    return made if name in ("lows", "highs") else made[:, 0]


def _spoiled(rng, parameter, made):
    """Return a value of the same type that breaks some rule."""
    if isinstance(made, np.ndarray):
        changed = mutated_array(rng, made)
        kinds = "iufb" if changed.dtype.isnative else ""
        return changed if changed.dtype.kind in kinds else made[:0]
    if isinstance(made, bool) or callable(made) or made is None:
        return made
    if isinstance(made, tuple):
        return rng.choice(((), (0, 0), (-1, 2), (2, 1), (0,), (1, 2, 3), (2**62, 2)))
    if isinstance(made, str):
        return rng.choice(("", "x"))
    if isinstance(made, float):
        return rng.choice((-1.0, float("nan"), float("inf"), 1e300, 5e-324, 2.0**62))
    if isinstance(made, Fraction):
        return rng.choice((Fraction(0), Fraction(-1, 2), Fraction(1, 10**40)))
    large = () if parameter.name in EFFORT else (2**62, 2**63 - 1, 2**64)
    return rng.choice((-1, 0, -(2**63), *large))


def words(seed, position, count):
    """Return random words that depend on their places alone."""
    place = [seed, position % 2**32, (position >> 32) % 2**32, position >> 64]
    generator = np.random.default_rng(place)
    return generator.integers(0, 2**64, size=count, dtype=np.uint64)
