"""Points for the clustering experiments of the Blowfish paper.

    tweets      193,563 places on a map of 400 x 300 cells (about 5 km each)
    skin        245,057 colours, three values from 0 to 255; also a tenth, a hundredth
    synthetic   1000 points of (0, 1)^4 around four centres, drawn as in the paper

Only a map of 256 x 256 cells of the tweets can be had, and the colours cannot: what is
missing is generated, and the label says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.advice.experiments.datasets import GENERATED
from blowfish_fast.data.domain import Domain

from .paper_sets import map_set
from .stand_ins import generator_of

KILOMETRES = (2222.0 / 400 + 1442.0 / 300) / 2
"""Mean side of a cell of the map of tweets."""

SKIN_POINTS = 245_057
UNIT_CELLS = 40
"""Cells per axis of the unit cube: steps of 1/40."""


class PointSet(NamedTuple):
    """Points, the cells they lie in, and how coarse a histogram of them may be."""

    label: str
    domain: Domain
    points: FloatArray
    coarse: tuple[int, ...]


@lru_cache(maxsize=8)
def point_set(name: str, data: Path | None, quick: bool = False) -> PointSet:
    """Return one of the sets by name; the short form has fewer points."""
    found = _SETS[name](data)
    return found._replace(points=found.points[::50]) if quick else found


def _tweets(data: Path | None) -> PointSet:
    """Spread the tweets of each published cell over it, onto the paper's finer map."""
    shape = (400, 300)
    published = map_set("twitter", data)
    generator = generator_of("tweets")
    rows, columns = published.counts.shape
    cells = np.repeat(np.arange(published.counts.size), published.counts.reshape(-1))
    corners = np.stack(np.divmod(cells, columns), axis=1)
    places = (corners + generator.random(corners.shape)) / (rows, columns)
    points = np.minimum(places * shape, np.nextafter(shape, 0.0))
    origin = GENERATED if published.origin else f"{rows} x {columns}, spread"
    return PointSet(f"tweets ({origin})", Domain(shape), _shuffled(points), shape)


def _skin(data: Path | None, *, every: int = 1) -> PointSet:
    """Draw colours: skin, shadows and backgrounds as stretched clouds."""
    generator = generator_of("skin")
    centres = np.array(
        [[110, 140, 200], [60, 70, 90], [170, 175, 170], [140, 110, 60], [20, 25, 30.0]]
    )
    shares = generator.multinomial(SKIN_POINTS, [0.21, 0.24, 0.30, 0.13, 0.12])
    clouds = []
    for centre, count in zip(centres, shares, strict=True):
        bright = generator.normal(scale=28.0, size=(count, 1))
        clouds.append(centre + bright + generator.normal(scale=12.0, size=(count, 3)))
    points = np.clip(np.concatenate(clouds), 0.0, np.nextafter(256.0, 0.0))
    name = {1: "skin", 10: "skin10", 100: "skin01"}[every]
    return PointSet(
        f"{name} ({GENERATED})",
        Domain((256, 256, 256)),
        _shuffled(points)[::every],
        (32, 32, 32),
    )


def _synthetic(data: Path | None) -> PointSet:
    """Draw 1000 points around four centres, deviation .2, inside the unit cube."""
    generator = generator_of("synthetic")
    centres = generator.random((4, 4))
    points = centres[generator.integers(0, 4, size=1000)]
    points = points + generator.normal(scale=0.2, size=points.shape)
    inside = np.clip(points, 0.0, np.nextafter(1.0, 0.0)) * UNIT_CELLS
    return PointSet(
        "synthetic", Domain((UNIT_CELLS,) * 4), np.ascontiguousarray(inside), (8,) * 4
    )


def _shuffled(points: FloatArray) -> FloatArray:
    """Return the points in an order that says nothing, so that parts are samples."""
    mixed: FloatArray = generator_of("order").permutation(points)
    return mixed


_SETS: dict[str, Callable[[Path | None], PointSet]] = {
    "tweets": _tweets,
    "skin": _skin,
    "skin10": lambda data: _skin(data, every=10),
    "skin01": lambda data: _skin(data, every=100),
    "synthetic": _synthetic,
}
