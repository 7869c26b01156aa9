"""A release over one attribute: estimate, buckets and noise intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._optional import require
from .._typing import FloatArray
from ..errors import InputError
from ..release import Release
from ..workloads import Ranges

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 1024
ESTIMATE = "#0072B2"
BAND = "#56B4E9"
REFERENCE = "#D55E00"


def histogram(
    release: Release,
    *,
    confidence: float = 0.95,
    reference: Any = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw the estimate of a one-dimensional release with its noise intervals.

    More than 1024 cells are drawn as 1024 ranges of equal width. `reference` is a
    public vector to compare with, such as last year's release.
    """
    if release.domain.ndim != 1:
        raise InputError(
            f"histogram draws one attribute; this release has {release.domain.ndim}. "
            "Use plotting.grid_map for two"
        )
    pyplot = require("matplotlib.pyplot", extra="plot", purpose="Drawing a release")
    cells = release.domain.size
    bars = min(cells, MOST_BARS)
    cuts = np.linspace(0, cells, bars + 1).astype(np.int64)
    ranges = Ranges(release.domain, cuts[:-1], cuts[1:])
    drawn: Axes = axes if axes is not None else pyplot.subplots(figsize=(8, 3.5))[1]
    places = _places(release, cuts)
    drawn.stairs(
        release.answer(ranges), places, color=ESTIMATE, linewidth=1.2, label="estimate"
    )
    if release.covers == "noise":
        low, high = release.intervals(ranges, confidence).T
        drawn.stairs(
            high,
            places,
            baseline=low,
            fill=True,
            color=BAND,
            alpha=0.35,
            label=f"noise interval, {confidence:.0%}",
        )
    if reference is not None:
        drawn.stairs(
            ranges.answer(reference),
            places,
            color=REFERENCE,
            linewidth=1.0,
            linestyle="--",
            label="reference",
        )
    name = release.domain.names[0] or "cell"
    drawn.set_xlabel(name)
    drawn.set_ylabel("records" if bars == cells else "records per range")
    drawn.set_title(
        f"{release.mechanism}, eps = {float(release.guarantee.epsilon):g}"
        + ("" if release.private else " (seeded: an experiment)")
    )
    drawn.legend(frameon=False)
    return drawn


def _places(release: Release, cuts: Any) -> FloatArray:
    edges = release.domain.attributes[0].edges
    if edges is None:
        return np.asarray(cuts, dtype=np.float64)
    places: FloatArray = np.asarray(edges, dtype=np.float64)[cuts]
    return places
