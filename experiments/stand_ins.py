"""Generated data in place of data that cannot be had, always the same for a name.

Each stand-in has the cells, the records, the share of empty cells and the roughness of
what it stands for, and nothing else of it. Whoever shows a result from one says so.

    spikes      |  .   |  . |   few cells hold records, the first holds most
    decay       |:..            hosts in the order of their traffic, then nothing
    series      .:||:.:|||:.    a smooth rate with bursts, rough by Poisson noise
    heaped      |:.|..|:.|..    a falling curve with heaps at round values
    map         :|: . .|. .     towns, roads and empty land
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray


class Shape(NamedTuple):
    """What is known of a set that was published: kind, records, share of empty cells.

    `grain` is the number of neighbouring cells that share one value.
    """

    kind: str
    records: int
    empty: float
    grain: int = 1


LINES = {
    "adult": Shape("spikes", 17_665, 0.98),
    "hepth": Shape("series", 347_414, 0.21),
    "income": Shape("heaped", 20_787_122, 0.45),
    "medcost": Shape("heaped", 9_415, 0.75),
    "nettrace": Shape("decay", 25_714, 0.966),
    "patent": Shape("series", 27_948_226, 0.06, 2),
    "searchlogs": Shape("series", 335_889, 0.51, 8),
}
"""The seven one-dimensional sets of the DAWA evaluation."""

MAPS = {
    "adult": Shape("spikes", 32_561, 0.998),
    "beijing_taxi_start": Shape("map", 4_268_780, 0.84),
    "cabspotting_end": Shape("map", 464_041, 0.989),
    "twitter": Shape("map", 193_563, 0.945),
    "roads": Shape("map", 1_634_165, 0.97),
}
"""Two-dimensional sets; ``roads`` are the road crossings of the western USA."""


def generator_of(name: str) -> np.random.Generator:
    """Return the generator that belongs to a name."""
    digest = hashlib.sha256(f"stand-in {name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def stand_in_line(name: str, cells: int) -> IntArray:
    """Return counts over a line that stand for one of `LINES`."""
    shape = LINES[name]
    generator = generator_of(f"1d/{name}/{cells}")
    rates = _RATES[shape.kind](cells, shape, generator)
    return _draw_counts(rates, shape, generator)


@lru_cache(maxsize=4)
def stand_in_map(name: str, rows: int, columns: int) -> IntArray:
    """Return counts over a map that stand for one of `MAPS`; read-only."""
    shape = MAPS[name]
    generator = generator_of(f"2d/{name}/{rows}x{columns}")
    if shape.kind == "spikes":
        rates = _spikes(rows * columns, shape, generator)
        counts = _draw_counts(rates, shape, generator).reshape(rows, columns)
    else:
        counts = _towns(rows, columns, shape, generator)
    counts.flags.writeable = False
    return counts


def _draw_counts(
    rates: FloatArray, shape: Shape, generator: np.random.Generator
) -> IntArray:
    counts = generator.multinomial(shape.records, rates / rates.sum())
    return counts.astype(np.int64)


def _spikes(cells: int, shape: Shape, generator: np.random.Generator) -> FloatArray:
    rates = np.zeros(cells)
    full = generator.choice(cells, size=_full_cells(cells, shape), replace=False)
    rates[full] = generator.pareto(0.8, size=full.size) + 0.1
    rates[0] = 19 * rates[1:].sum()
    return rates


def _decay(cells: int, shape: Shape, generator: np.random.Generator) -> FloatArray:
    """Return hosts ordered by traffic: a power law that ends."""
    rates = np.zeros(cells)
    full = _full_cells(cells, shape)
    rates[:full] = 1.0 / np.arange(1.0, full + 1.0) ** 1.2
    return rates


def _heaps(cells: int, shape: Shape, generator: np.random.Generator) -> FloatArray:
    places = np.arange(cells) / cells
    rates = np.exp(-8.0 * places) * (0.5 + generator.random(cells))
    rates[:: max(cells // 80, 1)] *= 6.0
    rates[0] = 0.14 * rates.sum()
    empty = generator.random(cells) < shape.empty * np.minimum(2.0 * places, 1.0) * 1.3
    rates[empty] = 0.0
    return rates


def _series(cells: int, shape: Shape, generator: np.random.Generator) -> FloatArray:
    """Return a walk of the logarithm with a few bursts, after a silent beginning."""
    steps = -(-cells // shape.grain)
    walk = np.cumsum(generator.normal(scale=2.0 / np.sqrt(steps), size=steps))
    rough = generator.normal(scale=0.25, size=steps)
    rates = np.exp(walk - walk.mean() + rough)
    for place in generator.integers(steps // 3, max(steps, 2), size=5):
        rates[place : place + max(steps // 100, 1)] *= 6.0
    rates = np.repeat(rates, shape.grain)[:cells]
    rates[: int(shape.empty * cells)] = 0.0
    return rates


def _towns(
    rows: int, columns: int, shape: Shape, generator: np.random.Generator
) -> IntArray:
    towns = 60
    centres = generator.random((towns, 2))
    spreads = generator.gamma(1.5, 0.008, size=towns) + 0.002
    shares = generator.dirichlet(np.full(towns, 0.3))
    scattered = shape.records // 12
    members = generator.multinomial(shape.records - scattered, shares)
    home = np.repeat(np.arange(towns), members)
    places = (
        centres[home] + generator.normal(size=(home.size, 2)) * (spreads[home][:, None])
    )
    ends = centres[generator.integers(0, towns, size=(2, scattered))]
    along = generator.random((scattered, 1))
    roads = ends[0] * along + ends[1] * (1.0 - along)
    points = np.vstack([places, roads]) % 1.0
    sides = np.array([rows, columns])
    cells = np.minimum((points * sides).astype(np.int64), sides - 1)
    flat = np.bincount(cells[:, 0] * columns + cells[:, 1], minlength=rows * columns)
    return flat.reshape(rows, columns).astype(np.int64)


def _full_cells(cells: int, shape: Shape) -> int:
    return max(round(cells * (1.0 - shape.empty)), 2)


_RATES = {"spikes": _spikes, "decay": _decay, "heaped": _heaps, "series": _series}
