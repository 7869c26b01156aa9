"""Values that nobody should pass, and small changes to values that somebody would.

Everything is drawn from a ``random.Random``: Hypothesis hands in one that it controls
and can shrink, the long form one with a seed.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

NUMBERS = (
    *(-1, 0, 1, 2, 3, 7, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64),
    *(-(2**31), -(2**63), 10**30, -(10**30), 10**400, 0.0, -0.0, 0.5, 1e-300, 1e300),
    *(math.nan, math.inf, -math.inf, 5e-324, 2.0**63, 1.5, -0.5, Fraction(1, 3)),
    *(True, False, 1j),
)
"""Borders of number types; between 2^31 and 2^40 only what fails at once."""

TEXTS = (
    "",
    "x",
    "a" * 300,
    "\x00",
    "../../etc/passwd",
    "é\u202e",
    "1e999",
    "nan",
    "[]",
)

SHAPES = ((0,), (1,), (3,), (), (2, 2), (0, 3), (1, 1, 1), (3, 1))


def scalar(rng):
    """Return a number, a text, or something that is neither."""
    kind = rng.randrange(8)
    if kind < 4:
        return rng.choice(NUMBERS)
    if kind < 6:
        return rng.choice(TEXTS)
    return rng.choice((None, object(), b"\xff\x00", ..., range(3), int, np.float64(2)))


def array(rng):
    """Return a small array of any kind and shape."""
    shape = rng.choice(SHAPES)
    size = math.prod(shape)
    kind = rng.randrange(7)
    if kind == 0:
        return np.array(
            [rng.choice(NUMBERS) for _ in range(size)], dtype=object
        ).reshape(shape)
    if kind == 1:
        return np.array([rng.choice(TEXTS) for _ in range(size)], dtype="U8").reshape(
            shape
        )
    floats = [rng.choice((0.0, 1.0, -1.0, 0.5, 1e300, math.nan)) for _ in range(size)]
    made = np.array(floats).reshape(shape)
    if kind == 2:
        return made
    with np.errstate(all="ignore"):
        dtype = rng.choice(
            ("i8", "u8", "i1", "f4", "?", "c16", "M8[D]", "m8[s]", ">f8")
        )
        return np.nan_to_num(made, posinf=0.0).clip(-9, 9).astype("i4").astype(dtype)


def anything(rng, depth=2):
    """Return any value, nested a little."""
    kind = rng.randrange(10)
    if depth and kind == 0:
        return [anything(rng, depth - 1) for _ in range(rng.randrange(4))]
    if depth and kind == 1:
        return {
            rng.choice(TEXTS): anything(rng, depth - 1) for _ in range(rng.randrange(3))
        }
    if depth and kind == 2:
        return tuple(anything(rng, depth - 1) for _ in range(rng.randrange(3)))
    if kind < 5:
        return array(rng)
    return scalar(rng)


def mutated(rng, value, depth=0):
    """Return a value like the one given, with one or a few things changed."""
    if depth > 6 or rng.random() < 0.08:
        return anything(rng)
    if isinstance(value, dict) and value:
        changed = dict(value)
        key = rng.choice(list(changed))
        kind = rng.randrange(8)
        if kind == 0:
            del changed[key]
        elif kind == 1:
            changed[rng.choice(TEXTS)] = anything(rng)
        elif kind == 2:
            changed[key] = changed[rng.choice(list(changed))]
        else:
            changed[key] = mutated(rng, changed[key], depth + 1)
        return changed
    if isinstance(value, list | tuple) and value:
        items = list(value)
        at = rng.randrange(len(items))
        kind = rng.randrange(7)
        if kind == 0:
            del items[at]
        elif kind == 1:
            items.insert(at, items[rng.randrange(len(items))])
        elif kind == 2:
            items = items[::-1]
        else:
            items[at] = mutated(rng, items[at], depth + 1)
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, np.ndarray):
        return mutated_array(rng, value)
    if isinstance(value, bytes):
        return mutated_bytes(rng, value)
    return scalar(rng)


def mutated_array(rng, value):
    """Return an array with another number, length, shape or type."""
    changed = value.copy()
    kind = rng.randrange(8)
    if kind < 4 and changed.size and changed.dtype.kind in "iuf":
        extremes = np.array([-(2**63), -1, 0, 1, 2**62, 2**63 - 1])
        number = rng.choice(extremes.tolist())
        if changed.dtype.kind == "f":
            number = rng.choice((math.nan, math.inf, -math.inf, -1.0, 0.0, 1e300))
        if changed.dtype.kind == "u":
            number = rng.choice((0, 1, 255))
        changed.flat[rng.randrange(changed.size)] = np.asarray(number).astype(
            changed.dtype
        )
        return changed
    if kind == 4:
        return changed[: rng.randrange(len(changed) + 1)] if changed.ndim else changed
    if kind == 5:
        return np.concatenate([changed, changed]) if changed.ndim else changed
    if kind == 6 and changed.ndim:
        return changed[::-1]
    if kind == 7 and changed.ndim and changed.shape[0]:
        return changed[:0]
    return array(rng)


def mutated_bytes(rng, value):
    """Return bytes with some flipped, cut off, repeated or inserted."""
    data = bytearray(value)
    for _ in range(rng.choice((1, 1, 2, 8))):
        kind = rng.randrange(6)
        at = rng.randrange(len(data)) if data else 0
        if kind < 3 and data:
            data[at] = rng.randrange(256)
        elif kind == 3:
            del data[at : at + rng.choice((1, 4, 100, 10**6))]
        elif kind == 4:
            data[at:at] = data[max(0, at - 50) : at]
        else:
            data[at:at] = rng.choice(
                (b"\x00" * 9, b"PK\x03\x04", b"\xff" * 4, b"{[", b"]")
            )
    return bytes(data)
