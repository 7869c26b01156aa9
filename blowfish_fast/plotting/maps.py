"""A release over two attributes, as a map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._optional import require
from ..errors import InputError
from ..release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def grid_map(release: Release, *, axes: Axes | None = None) -> Axes:
    """Draw the estimate of a two-dimensional release on a logarithmic colour scale."""
    if release.domain.ndim != 2:
        raise InputError(
            f"grid_map draws two attributes; this release has {release.domain.ndim}"
        )
    names = release.domain.names
    return density(
        release.estimate,
        axes=axes,
        title=f"{release.mechanism}, eps = {float(release.guarantee.epsilon):g}",
        labels=(names[0] or "row", names[1] or "column"),
    )


def density(
    values: Any,
    *,
    axes: Axes | None = None,
    title: str = "",
    labels: tuple[str, str] = ("row", "column"),
    largest: float | None = None,
) -> Axes:
    """Draw non-negative values as log(1 + value); negative ones are drawn as 0."""
    pyplot = require("matplotlib.pyplot", extra="plot", purpose="Drawing a map")
    drawn: Axes = axes if axes is not None else pyplot.subplots(figsize=(5, 5))[1]
    shown = np.log1p(np.maximum(np.asarray(values, dtype=np.float64), 0.0))
    top = float(shown.max()) if largest is None else float(np.log1p(largest))
    drawn.imshow(
        shown,
        origin="lower",
        cmap="cividis",
        vmin=0.0,
        vmax=max(top, 1e-9),
        interpolation="nearest",
    )
    drawn.set_title(title)
    drawn.set_ylabel(labels[0])
    drawn.set_xlabel(labels[1])
    return drawn
