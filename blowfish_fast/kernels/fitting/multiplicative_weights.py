"""Multiplicative weights: pull a histogram towards noisy answers, one at a time.

A histogram that starts uniform and is only ever multiplied on runs of cells stays
constant between the ends of these runs, so a few pieces hold all of it (Lemma MW6,
``docs/proofs/fits_of_the_literature.md``). An update multiplies the pieces of one query
by one factor and all pieces by another, which keeps the total:

    masses    5  5      the query counts the first piece, target 8, total 10, step 1/2
    factor              exp(0.5 * (8 - 5) / 10) = 1.162
    then      5.81  5   scaled to 10:   5.37  4.63

The second factor is carried along as a number and applied once in a while, so an update
touches only the pieces of its query.
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import as_input, refuse_infinite
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
    it moves the answer of a query that counts by at most step / 4 of what it is off. It
    takes O(passes * (pieces + pieces of all queries)).

    Parameters
    ----------
    masses : ndarray of float64, shape (pieces,)
        Positive masses.
    pointers : ndarray of int64, shape (queries + 1,)
        Query i owns the runs ``pointers[i]`` up to ``pointers[i + 1]``.
    starts : ndarray of int64, shape (runs,)
        The first piece of each run; runs of one query are disjoint.
    ends : ndarray of int64, shape (runs,)
        The piece after the last one of each run.
    values : ndarray of float64, shape (runs,)
        Coefficient of the query on the run, at most 1 in size.
    targets : ndarray of float64, shape (queries,)
        Noisy answers.
    total : float
        What the masses add up to; positive.
    step : float, default 0.5
        How far an update goes; the paper's step is 1/2.
    passes : int, default 1
        How often each query has its turn.
    tolerance : float, default 0.0
        Passes end early once no exponent exceeds it.

    Returns
    -------
    ndarray of float64, shape (pieces,)
        The masses after the last pass, positive.

    Raises
    ------
    InputError
        If shapes do not fit, runs leave the pieces, or a number is out of range.

    Examples
    --------
    >>> one = np.array([1])
    >>> pulled = multiplicative_update(
    ...     np.array([5.0, 5.0]), np.array([0, 1]), one - 1, one, one.astype(float),
    ...     np.array([8.0]), total=10.0, passes=200)
    >>> pulled.round(3)
    array([8., 2.])
    """
    masses, values, targets = (
        as_input(array, np.float64) for array in (masses, values, targets)
    )
    pointers, starts, ends = (
        as_input(array, np.int64) for array in (pointers, starts, ends)
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
    refuse_infinite(values, "values")
    refuse_infinite(targets, "targets")
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
    positive: FloatArray = np.maximum(pulled, float(total) * SMALLEST_PART)
    return positive
