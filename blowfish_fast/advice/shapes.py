"""Generated histograms that stand for what data may look like; public.

Serves recommendations: the error of a mechanism that chooses from the data is typical
of data like these, of the same domain and about as many records. Nothing is read.

    even      -----------     all cells alike
    bells     .:|!|:.  .|.    a few smooth hills
    steps     --__--==__--    long stretches, or boxes, of one height
    decay     |:...           most records in the first cells
    spikes    .  |  . |       one cell in fifty, with a heavy tail
    tail      .|:.:!.:.|.     every cell its own height, a few very high
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError

KEY = 2014
"""From which all of them are generated, so that they are the same everywhere."""

HILLS = 6
BOXES = 24
MOST_RECORDS = 2**53

Density = Callable[[list[FloatArray], int, np.random.Generator], FloatArray]
"""From the places of the cells along each axis, and their number, to densities."""


def reference_shapes(domain: Domain, records: int) -> dict[str, IntArray]:
    """Return counts of every shape, each of exactly `records` records.

    Parameters
    ----------
    domain : Domain
        Any number of attributes.
    records : int
        At least 0.

    Examples
    --------
    >>> shapes = reference_shapes(Domain(100), 5000)
    >>> sorted(shapes), int(shapes["steps"].sum())
    (['bells', 'decay', 'even', 'spikes', 'steps', 'tail'], 5000)
    """
    if not 0 <= records <= MOST_RECORDS:
        raise InputError(
            f"records must lie between 0 and 2^53; received {records!r}. A rough "
            "number will do"
        )
    places = [
        ((np.arange(side) + 0.5) / side).reshape(
            [-1 if axis == own else 1 for axis in range(domain.ndim)]
        )
        for own, side in enumerate(domain.shape)
    ]
    found = {}
    for number, (name, density) in enumerate(DENSITIES.items()):
        generator = np.random.default_rng([KEY, number])
        heights = np.broadcast_to(density(places, domain.size, generator), domain.shape)
        shares = np.ascontiguousarray(heights).reshape(-1)
        counts = generator.multinomial(records, shares / shares.sum())
        found[name] = counts.astype(np.int64).reshape(domain.shape)
    return found


def _even(
    places: list[FloatArray], cells: int, generator: np.random.Generator
) -> FloatArray:
    return np.ones([1] * len(places))


def _bells(
    places: list[FloatArray], cells: int, generator: np.random.Generator
) -> FloatArray:
    density: FloatArray = np.full([1] * len(places), 1e-3)
    for _ in range(HILLS):
        centres = generator.uniform(0.1, 0.9, size=len(places))
        width = generator.uniform(0.02, 0.15)
        hill: FloatArray = np.full([1] * len(places), generator.exponential())
        for place, centre in zip(places, centres, strict=True):
            hill = hill * np.exp(-0.5 * ((place - centre) / width) ** 2)
        density = density + hill
    return density


def _steps(
    places: list[FloatArray], cells: int, generator: np.random.Generator
) -> FloatArray:
    density: FloatArray = np.full([1] * len(places), 1e-6)
    for _ in range(BOXES):
        inside: FloatArray = np.full([1] * len(places), generator.exponential())
        for place in places:
            low, high = np.sort(generator.uniform(-0.2, 1.2, size=2))
            inside = inside * ((low <= place) & (place < high))
        density = density + inside
    return density


def _decay(
    places: list[FloatArray], cells: int, generator: np.random.Generator
) -> FloatArray:
    density: FloatArray = np.ones([1] * len(places))
    for place in places:
        density = density * np.exp(-place / 0.05)
    return density


def _spikes(
    places: list[FloatArray], cells: int, generator: np.random.Generator
) -> FloatArray:
    density = np.zeros(cells)
    full = generator.choice(cells, size=max(cells // 50, 1), replace=False)
    density[full] = generator.pareto(1.2, size=full.size) + 0.1
    return density.reshape([place.size for place in places])


def _tail(
    places: list[FloatArray], cells: int, generator: np.random.Generator
) -> FloatArray:
    density: FloatArray = generator.pareto(1.2, size=cells) + 0.01
    return density.reshape([place.size for place in places])


DENSITIES: dict[str, Density] = {
    "even": _even,
    "bells": _bells,
    "steps": _steps,
    "decay": _decay,
    "spikes": _spikes,
    "tail": _tail,
}
"""Every shape by name, in the order of a table."""
