"""Intervals of raked counts: what known margins and a stated design allow together.

Each cell has an interval of its people by the design of the sample, and the register
tells what rows and columns add up to. A table that fits both has in each cell a least
and a largest number, which two linear programs find:

    intervals           margins          what is left of the first cell
    300..500  80..220   600   500        at least 600 - 220 = 380, at most 500
     90..210 250..380   400   500        at least 500 - 210 = 290, at most 410

Nothing is asked of raking itself, which may be any function of what was published:
Lemma PN14.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.errors import InputError, IntervalError, SizeError
from blowfish_fast.release.grants import with_answers
from blowfish_fast.workloads import Identity

from .numbers import population_counts
from .sampled_release import stated_design

MOST_CELLS = 512
"""Cells of a table whose raked counts get intervals: two linear programs each."""

SLACK = 1e-6
"""Margins may be off by this part of all people; ends are rounded outwards by it."""


def intervals_with_margins(
    release: Any,
    people_along: Mapping[int, FloatArray],
    raked: FloatArray,
    confidence: float,
) -> FloatArray:
    """Return intervals of the people of all cells, which hold together: Lemma PN14.

    Parameters
    ----------
    release : HistogramRelease
        A release with a design.
    people_along : mapping from axis to ndarray of float64
        The people of each cell along the axes that have a margin.
    raked : ndarray of float64
        The raked counts, which the intervals are widened to.
    confidence : float
        How surely all intervals hold at once.

    Returns
    -------
    ndarray of float64, shape (cells, 2)
        The intervals.

    Raises
    ------
    IntervalError
        If there is no design, or no table fits both it and the margins.
    InputError
        If the design is of another number of people than the margins.
    SizeError
        If there are too many cells.
    """
    design, domain = stated_design(release), release.domain
    miss, cells = 1.0 - as_confidence(confidence), domain.size
    everybody = float(next(iter(people_along.values())).sum())
    if cells > MOST_CELLS:
        raise SizeError(
            f"raked counts of at most {MOST_CELLS} cells have intervals",
            received=f"{cells:,} cells",
            way_out="Rake a table of fewer columns, or leave confidence out",
        )
    if any(attribute.extras for attribute in domain.attributes):
        raise IntervalError(
            "to which level records without a value belong is not known, so that their "
            "people are in no margin",
            way_out="Leave confidence out, or release without cells of their own for "
            "missing values",
        )
    if design.everybody not in (None, round(everybody)):
        raise InputError(
            "margins and design are of the same people",
            received=f"{everybody:,.0f} people in the margins, "
            f"{design.everybody:,} in the design",
        )
    bounds = population_counts(release, Identity(domain), 1.0 - miss / cells, None)
    ends = _with_margins(bounds, people_along, domain.shape, everybody)
    return with_answers(ends, raked.reshape(-1))


def _with_margins(
    bounds: FloatArray,
    people_along: Mapping[int, FloatArray],
    shape: tuple[int, ...],
    everybody: float,
) -> FloatArray:
    """Return the least and the largest number of each cell, in parts of everybody."""
    from scipy.optimize import linprog

    numbers = np.indices(shape).reshape(len(shape), -1)
    rows = np.concatenate(
        [
            numbers[axis][None, :] == np.arange(shape[axis])[:, None]
            for axis in people_along
        ]
    ).astype(np.float64)
    sums = np.concatenate(list(people_along.values())) / everybody
    within: Any = {
        "A_ub": np.concatenate([rows, -rows]),
        "b_ub": np.concatenate([sums, -sums]) + SLACK,
        "bounds": np.clip(bounds / everybody, 0.0, 1.0),
    }
    ends = np.empty_like(bounds)
    for cell in range(bounds.shape[0]):
        for side, sign in enumerate((1.0, -1.0)):
            wanted = np.zeros(bounds.shape[0])
            wanted[cell] = sign
            best = linprog(wanted, method="highs", **within)
            if best.status != 0 or best.fun is None:
                raise IntervalError(
                    "no table has these margins and fits what was released of the "
                    "sample: people are missing from it unevenly, or this is one of "
                    "the rare misses",
                    way_out="Rake without confidence; what comes out has no interval",
                )
            ends[cell, side] = sign * best.fun - sign * SLACK
    return np.clip(ends, 0.0, 1.0) * everybody
