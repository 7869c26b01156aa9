"""Multiplicative weights: pull a histogram towards noisy answers, one at a time.

The histogram stays constant between the ends of the queries, so a few pieces hold it
all (Lemma MW6, ``docs/proofs/mwem.md``). The factor that keeps the total is carried
along as a number and applied once in a while.
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import as_input
from blowfish_fast.kernels._jit import kernel

LARGEST_EXPONENT = 30.0
SMALLEST_PART = 1e-200


@kernel
def _scale_to(masses: FloatArray, total: float) -> None:
    held = 0.0
    for piece in range(masses.size):
        held += masses[piece]
    scale = total / held
    for piece in range(masses.size):
        masses[piece] *= scale


@kernel
def _pull(
    masses: FloatArray,
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    targets: FloatArray,
    total: float,
    step: float,
    passes: int,
    tolerance: float,
) -> int:
    """Update `masses` in place; return the number of passes made."""
    for done in range(passes):
        # Within a pass the masses stand for total / held times what they are.
        _scale_to(masses, total)
        held = total
        largest = 0.0
        for query in range(targets.size):
            answer = 0.0
            for run in range(pointers[query], pointers[query + 1]):
                inside = 0.0
                for piece in range(starts[run], ends[run]):
                    inside += masses[piece]
                answer += values[run] * inside
            pull = step * (targets[query] / total - answer / held)
            pull = min(max(pull, -LARGEST_EXPONENT), LARGEST_EXPONENT)
            largest = max(largest, abs(pull))
            for run in range(pointers[query], pointers[query + 1]):
                factor = math.exp(values[run] * pull)
                inside = 0.0
                for piece in range(starts[run], ends[run]):
                    inside += masses[piece]
                    masses[piece] *= factor
                held += (factor - 1.0) * inside
            # A sum kept by differences is renewed before it has lost its digits.
            if held < 1e-3 * total or held > 1e3 * total:
                _scale_to(masses, total)
                held = total
        if largest <= tolerance:
            return done + 1
    return passes


def multiplicative_update(
    masses: FloatArray,
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    targets: FloatArray,
    *,
    total: float,
    step: float = 0.5,
    passes: int = 1,
    tolerance: float = 0.0,
) -> FloatArray:
    """Return the masses after some passes of multiplicative weights over all queries.

    The update for a query q with target t multiplies piece j by exp(step q_j (t -
    q(masses)) / total), then all pieces so that they add up to `total`. To first order
    it moves the answer of a query that counts by at most step / 4 of what it is off.
    Passes end early once no exponent exceeds `tolerance`.

    All `masses` are positive. Query i owns the disjoint runs [start, end) of pieces
    from ``pointers[i]`` up to ``pointers[i + 1]``; `values` are its coefficients, at
    most 1 in size. O(passes * (pieces + pieces of all queries)).

    >>> one = np.array([1])
    >>> pulled = multiplicative_update(
    ...     np.array([5.0, 5.0]), np.array([0, 1]), one - 1, one, one.astype(float),
    ...     np.array([8.0]), total=10.0, passes=200)
    >>> pulled.round(3)
    array([8., 2.])
    """
    masses, values, targets = (
        as_input(one, np.float64) for one in (masses, values, targets)
    )
    pointers, starts, ends = (
        as_input(one, np.int64) for one in (pointers, starts, ends)
    )
    runs = starts.size
    flat = pointers.ndim == starts.ndim == targets.ndim == masses.ndim == 1
    fit = (
        flat
        and starts.shape == ends.shape == values.shape
        and pointers.size == targets.size + 1
    )
    if not fit or pointers[0] != 0 or pointers[-1] != runs:
        raise InputError("each query owns a stretch of the runs, each run two ends")
    if (np.diff(pointers) < 0).any():
        raise InputError("the runs of a query come before those of the next")
    inside = not runs or (starts.min() >= 0 and ends.max() <= masses.size)
    if not inside or (ends < starts).any():
        raise InputError(f"runs lie within the {masses.size} pieces")
    if masses.size == 0 or not masses.min() > 0 or not total > 0:
        raise InputError("masses and their total must be positive")
    pulled = np.array(masses, dtype=np.float64)
    lost = False
    # As plain Python, what overflows would warn.
    with np.errstate(all="ignore"):
        try:
            queries = pointers, starts, ends, values, targets
            steps = float(step), int(passes), float(tolerance)
            _pull(pulled, *queries, float(total), *steps)
            _scale_to(pulled, float(total))
        except (ZeroDivisionError, OverflowError):
            lost = True
    if lost or not np.isfinite(pulled).all():
        raise InputError(
            "all masses were pulled to nothing: the total is too small, or values and "
            "targets too large, for floating point. Count in other units"
        )
    # A piece pulled to nothing could never come back.
    kept: FloatArray = np.maximum(pulled, float(total) * SMALLEST_PART)
    return kept
