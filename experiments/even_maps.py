"""Maps with few records for their epsilon: boxes that seem alike are joined, or not.

    python -m experiments even-maps --trials 8      docs/data/places/even_maps.csv

    even, blocks, slope ..     drawn anew for each trial; nothing was tuned on them
    records times epsilon      30 to 20,000, where coarse boxes hold little but noise

Mean absolute error of random rectangles: `Dawa`, its rectangles, and `AdaptiveGrid`
with and without ``joins``, the same noise in the coarse grids of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray, IntArray

from .record_files import write_record
from .siblings import generator_of

DATA = Path("docs/data/places/even_maps.csv")
SIDE = 256
QUERIES = 500
MASSES = (30, 100, 300, 1_000, 3_000, 20_000)
"""Records times epsilon."""
EPSILONS = ("0.01", "0.1")


class MapLine(NamedTuple):
    """What was measured of one kind of map.

    Attributes
    ----------
    set : str
        Which kind.
    mass : int
        Records times epsilon.
    epsilon : str
        What a release costs.
    dawa : float
        Mean absolute error of a rectangle of `Dawa`.
    dawa_error : float
        Its standard error.
    rectangles : float
        The error of `Dawa` with `DyadicRectangles`.
    grid : float
        That of `AdaptiveGrid`.
    joining : float
        That of `AdaptiveGrid` that joins boxes.
    ratio_error : float
        Standard error of the last over the last but one.
    joined : float
        Part of the releases of `Dawa` in which boxes were joined, or one box divided.
    """

    set: str
    mass: int
    epsilon: str
    dawa: float
    dawa_error: float
    rectangles: float
    grid: float
    joining: float
    ratio_error: float
    joined: float

    def __str__(self) -> str:
        return (
            f"{self.set}, records times epsilon {self.mass:,}, epsilon {self.epsilon}: "
            f"dawa {self.dawa:.3g} +- {self.dawa_error:.2g}, rectangles "
            f"{self.rectangles:.3g}, grid {self.grid:.3g}, joining {self.joining:.3g}"
        )


def densities(rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return how likely a record is in each cell, for every kind of map."""
    steps = (np.arange(SIDE) + 0.5) / SIDE
    x, y = np.meshgrid(steps, steps, indexing="ij")

    def spot(row: float, column: float, width: float) -> FloatArray:
        square = (x - row) ** 2 + (y - column) ** 2
        hill: FloatArray = np.exp(-square / 2 / width**2)
        return hill

    towns: FloatArray = np.full((SIDE, SIDE), 0.02)
    for _ in range(15):
        (row, column), width = rng.random(2), 0.01 + 0.06 * rng.random() ** 2
        towns += spot(row, column, width) * rng.random()
    roads = np.zeros((SIDE, SIDE))
    for _ in range(6):
        place, angle = rng.random(2) * SIDE, rng.random() * 2 * np.pi
        for _ in range(600):
            angle += rng.normal() * 0.08
            place = (place + np.array([np.cos(angle), np.sin(angle)])) % SIDE
            roads[int(place[0]), int(place[1])] += 1.0
    points = np.zeros(SIDE * SIDE)
    points[rng.integers(0, SIDE * SIDE, 500)] = rng.exponential(size=500)
    sides = np.zeros((SIDE, SIDE))
    sides[3, 3] = 9.0
    sides[0] += 0.004 * rng.exponential(size=SIDE)
    sides[:, 0] += 0.004 * rng.exponential(size=SIDE)
    blocks = np.kron(rng.integers(0, 2, (8, 8)), np.ones((SIDE // 8, SIDE // 8)))
    shore = 0.45 + 0.15 * np.sin(5 * x + rng.random() * 6)
    maps = {
        "even": np.ones((SIDE, SIDE)),
        "steep slope": x**4,
        "coast": (y > shore) * (0.3 + x),
        "blocks": 0.1 + blocks,
        "ring": 0.05 + np.exp(-(((np.hypot(x - 0.5, y - 0.45) - 0.3) / 0.06) ** 2) / 2),
        "diagonal": np.exp(-(((x - y) / 0.05) ** 2) / 2) + 0.01,
        "towns": towns,
        "even and a town": 1.0 + 400.0 * spot(0.7, 0.3, 0.01),
        "roads": roads,
        "500 points": points.reshape(SIDE, SIDE),
        "one cell and two sides": sides,
    }
    return {name: density / density.sum() for name, density in maps.items()}


def maps_report(trials: int) -> Iterator[MapLine]:
    """Yield what was measured of each kind, epsilon and number of records.

    Parameters
    ----------
    trials : int
        Maps drawn of each, and releases of each mechanism.

    Yields
    ------
    MapLine
        A line each.
    """
    domain = bf.Domain((SIDE, SIDE))
    policy = bf.policies.AddRemove(domain)
    for epsilon in EPSILONS:
        for mass in MASSES:
            errors: dict[str, list[list[float]]] = {}
            for trial in range(trials):
                drawn = densities(generator_of("even maps", "density", trial))
                for name, density in drawn.items():
                    rng = generator_of("even maps", name, mass, epsilon, trial)
                    records = round(mass / float(epsilon))
                    cells = rng.multinomial(records, density.reshape(-1))
                    counts = cells.reshape(SIDE, SIDE)
                    seed = int(rng.integers(2**32))
                    errors.setdefault(name, []).append(
                        _errors(policy, counts, epsilon, seed)
                    )
            for name, found in errors.items():
                yield _line(name, mass, epsilon, np.array(found))


def _errors(
    policy: bf.policies.Policy, counts: IntArray, epsilon: str, seed: int
) -> list[float]:
    """Return the errors of four releases, and whether the first joined boxes."""
    asked = bf.workloads.Rectangles.random(policy.domain, QUERIES, rng=seed % 2**16)
    truth = asked.answer(counts)
    rectangles = bf.partitions.DyadicRectangles(query_cells=asked.mean_cells())
    releases = [
        mechanism.release(counts, rng=seed)
        for mechanism in (
            bf.Dawa(policy, asked, epsilon=epsilon),
            bf.Dawa(policy, asked, epsilon=epsilon, partition=rectangles),
            bf.AdaptiveGrid(policy, asked, epsilon=epsilon),
            bf.AdaptiveGrid(policy, asked, epsilon=epsilon, joins=True),
        )
    ]
    off = [float(np.abs(one.answer(asked) - truth).mean()) for one in releases]
    return [*off, float("joined" in releases[0].details)]


def _line(name: str, mass: int, epsilon: str, errors: FloatArray) -> MapLine:
    dawa, rectangles, grid, joining, joined = errors.mean(axis=0).tolist()
    root = np.sqrt(max(len(errors) - 1, 1))
    return MapLine(
        name,
        mass,
        epsilon,
        dawa,
        float(errors[:, 0].std() / root),
        rectangles,
        grid,
        joining,
        float((errors[:, 3] - joining / grid * errors[:, 2]).std() / root / grid),
        joined,
    )


def write_maps(trials: int, path: Path = DATA) -> Iterator[MapLine]:
    """Measure maps with few records, and keep the record.

    Parameters
    ----------
    trials : int
        Maps drawn of each kind.
    path : Path
        The file, written once everything is measured.

    Yields
    ------
    MapLine
        A line each, as it is measured.
    """
    lines = list[MapLine]()
    for line in maps_report(trials):
        lines.append(line)
        yield line
    write_record(path, lines, digits=3)
