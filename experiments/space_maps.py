"""What a release of the world looks like: true counts, released counts, error.

    true     released by each method
             error of each method          red: too many records, blue: too few

Cells are summed into blocks for the eye: a grid of 1024 x 1024 has more cells than the
picture has points. The releases are made anew from the seeds that belong to the rows'
epsilon, so that drawing needs nothing but rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast.advice.experiments.experiment import Row, distinct
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import BlowfishError
from blowfish_fast.policies import AddRemove
from blowfish_fast.workloads import Rectangles

from .contenders import Contender, seeded_release
from .world_places import world_set

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

SEED = 20_140_500
SHOWN = 128
"""Blocks per side of a drawn map."""

CLOSE_TO = 0.1
"""Epsilon of the releases that are drawn, or the nearest that was asked for."""


def draw_world_maps(
    rows: Sequence[Row], contenders: Sequence[Contender], figure: FigureBase
) -> None:
    """Draw the world as it is, as each method releases it, and the difference."""
    epsilons = [one for one in distinct(rows, "epsilon") if isinstance(one, float)]
    sides = [one for one in distinct(rows, "cells") if isinstance(one, int)]
    if not epsilons or not sides:
        return
    epsilon = min(epsilons, key=lambda one: abs(one - CLOSE_TO))
    skipped = {row.get("method") for row in rows if row.get("skipped")}
    shown = [one for one in contenders if one.label not in skipped]
    data = world_set(round(sides[0] ** 0.5))
    truth = blocks(data.counts)
    panels = figure.subplots(2, len(shown) + 1, squeeze=False)
    figure.suptitle(
        f"{data.label}, epsilon = {epsilon}: above, records per block (logarithmic); "
        "below, released less true (red: too many)",
        fontsize=9,
    )
    top = float(np.log1p(truth.max()))
    _show(panels[0, 0], np.log1p(truth), "true", "cividis", 0.0, top)
    panels[1, 0].axis("off")
    for column, contender in enumerate(shown, 1):
        released = _released(contender, data.counts, str(epsilon))
        if released is None:
            panels[0, column].axis("off")
            panels[1, column].axis("off")
            continue
        seen = np.log1p(np.maximum(released, 0.0))
        _show(panels[0, column], seen, contender.label, "cividis", 0.0, top)
        error = released - truth
        reach = max(float(np.quantile(np.abs(error), 0.995)), 1.0)
        title = f"error, scale {reach:.0f}"
        _show(panels[1, column], error, title, "RdBu_r", -reach, reach)


def blocks(counts: AnyArray, most: int = SHOWN) -> FloatArray:
    """Return sums of equal blocks, at most `most` per side of a square grid.

    Examples
    --------
    >>> blocks(np.ones((4, 4)), 2)
    array([[4., 4.],
           [4., 4.]])
    """
    starts = [
        np.linspace(0, side, min(side, most) + 1).astype(np.int64)[:-1]
        for side in counts.shape
    ]
    rows = np.add.reduceat(np.asarray(counts, dtype=np.float64), starts[0], axis=0)
    summed: FloatArray = np.add.reduceat(rows, starts[1], axis=1)
    return summed


def _released(
    contender: Contender, counts: AnyArray, epsilon: str
) -> FloatArray | None:
    domain = Domain(counts.shape)
    asked = Rectangles.random(domain, 200, rng=SEED)
    try:
        mechanism = contender.build(AddRemove(domain), asked, epsilon)
        return blocks(seeded_release(mechanism, counts, SEED).estimate)
    except BlowfishError:
        return None


def _show(
    axes: Axes, values: FloatArray, title: str, colours: str, low: float, high: float
) -> None:
    axes.imshow(
        values,
        origin="lower",
        cmap=colours,
        vmin=low,
        vmax=max(high, low + 1e-9),
        interpolation="nearest",
    )
    axes.set_title(title, fontsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
