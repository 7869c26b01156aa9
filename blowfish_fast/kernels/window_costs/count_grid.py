"""Whole numbers for the partition: counts in fixed point, costs on a public grid.

A private partition needs an exact minimum: costs, noise and their sums are integers, in
units of a public power of two.

    counts      0 ......................... cap         clipped there by the caller
    cost        |----|----|----|----|----|----|         floor(cost / step)
                step = 2^exponent, fine against the noise and against one record
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError

SUM_BITS = 61
"""Every quantity below stays under 2^61 in magnitude."""

IMPOSSIBLE = 1 << 62
"""Above every sum of costs, and still below 2^63 when a cost is added to it."""

DATA_BITS = 59
"""All counts together, in units of the grid, stay below 2^59: a quarter of the room.

Penalties and noise have the rest.
"""

VALUE_BITS = 51
"""One value stays below 2^51: floats of 53 bits hold it, and four times it, exactly."""

FINEST_BITS = 42
"""A grid is at most 2^42 times finer than the unit of the values.

Then 2^17 of these units, at least, still fit into `DATA_BITS`.
"""

LARGEST_DENOMINATOR = 1024
"""Of a pinball level: costs are multiplied by it."""


def fixed_point(values: AnyArray, cells: int) -> tuple[IntArray, int]:
    """Return non-negative integers and an exponent that stand for `values`.

    ``values - values.min()`` equals ``whole * 2.0**exponent``: exactly, with exponent
    0, for integers (floats included) as long as `cells` of them have a sum below about
    2^60; else rounded to 51 bits, fewer if `cells` is above 2^9. Sums of such values
    are exact in any order, so a sliding sum never drifts.

    Parameters
    ----------
    values : ndarray
        Whole numbers or finite floats.
    cells : int
        How many of them are added up at most.

    Returns
    -------
    whole : ndarray of int64
        The integers.
    exponent : int
        Their unit is 2.0**exponent.

    Raises
    ------
    InputError
        If a value is infinite or not a number.

    Examples
    --------
    >>> fixed_point(np.array([7, 5, 9]), 3)
    (array([2, 0, 4]), 0)
    """
    if values.size == 0:
        return np.zeros(0, dtype=np.int64), 0
    if values.dtype.kind == "f":
        floats = np.asarray(values, dtype=np.float64)
        if not np.isfinite(floats).all():
            raise InputError(
                "values must be finite: got an infinity or not-a-number. "
                "Remove such cells, or clip them to a public bound."
            )
        if np.abs(floats).max() <= 2.0**53 and (floats == np.rint(floats)).all():
            values = floats.astype(np.int64)
    if values.dtype.kind != "f":
        low = values.min()
        span = int(values.max()) - int(low)
        if span < 1 << SUM_BITS:
            above_low = (
                (values - low).astype(np.int64)
                if values.dtype == np.uint64
                else np.subtract(values, low, dtype=np.int64)
            )
            # A few large values among small ones: their own sum may still fit.
            total = float(above_low.sum(dtype=np.float64))
            if span * cells < 1 << SUM_BITS or total < 2.0 ** (SUM_BITS - 1):
                return above_low, 0
        floats = values.astype(np.float64)
    return _round(floats, cells)


def _round(floats: FloatArray, cells: int) -> tuple[IntArray, int]:
    _, magnitude = math.frexp(float(np.abs(floats).max()))
    small = np.ldexp(floats, -magnitude)
    small -= small.min()
    largest = float(small.max())
    if largest == 0.0:
        return np.zeros(floats.size, dtype=np.int64), 0
    _, top = math.frexp(largest)
    bits = min(VALUE_BITS, DATA_BITS - cells.bit_length())
    whole = np.rint(np.ldexp(small, bits - top)).astype(np.int64)
    return whole, magnitude + top - bits


def step_exponent(step: float) -> int:
    """Return the binary logarithm of `step`, which must be a power of two."""
    mantissa, exponent = math.frexp(step)
    if mantissa != 0.5:
        raise InputError(
            f"step must be a power of two: got {step!r}. "
            "Take it from partition_grid(cells, scale)."
        )
    return exponent - 1


def partition_grid(cells: int, scale: float) -> tuple[float, int]:
    """Return the grid step and the largest admissible count per cell.

    Both depend on public numbers alone. With every count in 0 .. cap, noise scales
    between `scale` and ``8 * scale``, and penalties from 0 to ``2**20 * scale``, no
    integer of the partition overflows: costs of all buckets together stay below 2^58
    steps, penalties along the best partition below 2^56, noise below 2^60 even if each
    of `cells` draws reached 128 scales (the chance that one does is below e^-128).

    Parameters
    ----------
    cells : int
        Number of cells, at most 2^28.
    scale : float
        Smallest noise scale, in counts, between 1e-9 and 1e12.

    Returns
    -------
    step : float
        A power of two: at most 2^-8 counts, so that rounding a sensitivity up to whole
        steps costs little, and at most a 1024th of the noise; coarser only where 64
        bits demand it, above a scale of about 2^20 counts.
    cap : int
        At least 2^20; clipping every cell here keeps all sensitivities.

    Raises
    ------
    InputError
        If there are more cells, or the scale is outside its limits.

    Examples
    --------
    >>> partition_grid(2**20, 4.0)
    (0.00390625, 2147483648)
    """
    if not 1 <= cells <= 1 << 28 or not 1e-9 <= scale <= 1e12:
        raise InputError(
            "a partition needs 1 to 2^28 cells and a noise scale from 1e-9 to 1e12: "
            f"got {cells} cells, scale {scale!r}. Use a coarser domain or another "
            "epsilon."
        )
    cell_bits = (cells - 1).bit_length()
    magnitude = math.frexp(scale)[1]  # scale < 2^magnitude
    wanted = min(-8, magnitude - 11)
    coarse_enough_for_noise = magnitude - min(30, 50 - cell_bits)
    coarse_enough_for_counts = cell_bits + 20 - DATA_BITS
    exponent = max(wanted, coarse_enough_for_noise, coarse_enough_for_counts)
    cap_bits = min(DATA_BITS + min(exponent, 1) - cell_bits, VALUE_BITS)
    return math.ldexp(1.0, exponent), 1 << cap_bits


def grid_units(
    values: IntArray,
    exponent: int,
    penalties: FloatArray,
    scales: FloatArray | None,
    step: float,
) -> tuple[int, IntArray, FloatArray | None]:
    """Return grid exponent, whole penalties and noise scales for fixed-point `values`.

    Parameters
    ----------
    values : ndarray of int64
        Counts in fixed point.
    exponent : int
        Their unit is 2.0**exponent.
    penalties : ndarray of float64
        Prices, in counts.
    scales : ndarray of float64, optional
        Noise scales, in counts.
    step : float
        The public grid, a power of two.

    Returns
    -------
    grid : int
        Binary logarithm of the step in units of the values.
    penalties : ndarray of int64
        The prices, rounded to whole steps.
    scales : ndarray of float64 or None
        The scales in steps, which is exact.

    Raises
    ------
    InputError
        If a sum could leave 62 bits, or a scale is not positive: every candidate of a
        private partition is noisy.
    """
    largest = int(values.max(initial=0))
    grid = min(step_exponent(step) - exponent, SUM_BITS + 1)
    if largest == 0:
        # All costs are zero: any grid does, and this one keeps the shifts small.
        grid = 0
    fits = (
        largest <= 1 << VALUE_BITS
        and grid >= -FINEST_BITS
        and largest * values.size <= 1 << (DATA_BITS + min(grid, 1))
    )
    if not fits:
        raise InputError(
            f"counts up to {math.ldexp(largest, exponent)} above the smallest, in "
            f"{values.size} cells, do not fit 64 bits on a grid of {step!r}. Take the "
            "step, and the cap to clip at, from partition_grid(cells, scale)."
        )
    in_steps = np.rint(penalties / step)
    if not (
        np.abs(in_steps).max() <= 2.0**55
        and in_steps.min() * values.size >= -(2.0**DATA_BITS)
    ):
        raise InputError(
            f"penalties up to {np.abs(penalties).max()!r} do not fit 64 bits on a grid "
            f"of {step!r}. Take the step from partition_grid(cells, scale)."
        )
    if scales is None:
        return grid, in_steps.astype(np.int64), None
    scales_in_steps = scales / step
    if not (
        scales_in_steps.min() > 0
        and scales_in_steps.max() * values.size * 128 <= 2.0 ** (SUM_BITS - 1)
    ):
        raise InputError(
            "noise scales must be positive, and small enough for sums in 64 bits: got "
            f"{scales.min()!r} to {scales.max()!r} on a grid of {step!r}. Take the "
            "step from partition_grid(cells, scale)."
        )
    return grid, in_steps.astype(np.int64), scales_in_steps


def check_quantile(numerator: int, denominator: int) -> None:
    """Refuse a pinball level outside 0 .. 1, or with a large denominator.

    Parameters
    ----------
    numerator : int
        Not negative, at most the denominator.
    denominator : int
        From 1 to 1024.

    Raises
    ------
    InputError
        If the level is outside these limits.
    """
    if not (0 <= numerator <= denominator and 1 <= denominator <= LARGEST_DENOMINATOR):
        raise InputError(
            f"a quantile is a fraction from 0 to 1 in parts of at most "
            f"{LARGEST_DENOMINATOR}: got {numerator}/{denominator}. "
            "Round it to a smaller denominator."
        )


def counts_on_grid(
    x: AnyArray,
    penalties: FloatArray,
    scales: FloatArray | None,
    step: float,
    quantile: tuple[int, int] | None,
) -> tuple[IntArray, int, IntArray, FloatArray | None]:
    """Check what a partition is asked of; return whole counts and `grid_units`.

    Parameters
    ----------
    x : ndarray, shape (cells,)
        Counts.
    penalties : ndarray of float64
        Prices, in counts.
    scales : ndarray of float64, optional
        Noise scales, in counts.
    step : float
        The public grid, a power of two.
    quantile : tuple[int, int] or None
        Numerator and denominator of a pinball cost; None for the deviation.

    Returns
    -------
    values : ndarray of int64, shape (cells,)
        The counts above the smallest.
    grid : int
        Binary logarithm of the step in units of the values.
    penalties : ndarray of int64
        The prices, in steps.
    scales : ndarray of float64 or None
        The scales, in steps.

    Raises
    ------
    InputError
        If the counts are no row, or do not fit the grid.
    """
    if x.ndim != 1 or x.size == 0:
        raise InputError(
            "a partition needs one axis of at least one cell: got shape "
            f"{x.shape}. Flatten the cells in some order."
        )
    if quantile is not None:
        check_quantile(*quantile)
    values, exponent = fixed_point(x, x.size)
    if scales is not None and exponent != 0:
        raise InputError(
            "a noisy partition needs whole counts within the cap of partition_grid: "
            "got fractions or larger values. Round and clip the cells."
        )
    return values, *grid_units(values, exponent, penalties, scales, step)
