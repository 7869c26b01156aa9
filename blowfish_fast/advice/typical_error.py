"""How far off a mechanism is on generated histograms: its typical error.

For mechanisms that choose from the data and have no predicted error. The histograms are
public, of the same domain and about as many records; releases are seeded, and therefore
experiments. Nothing is read.

    even      -----------     all cells alike
    bells     .:|!|:.  .|.    a few smooth hills
    steps     --__--==__--    long stretches, or boxes, of one height
    decay     |:...           most records in the first cells
    spikes    .  |  . |       one cell in fifty, with a heavy tail
    tail      .|:.:!.:.|.     every cell its own height, a few very high
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.random import Generator

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.example_data import data_for
from blowfish_fast.workloads import Implicit, Workload

SEEDS_APART = 10**6
LEAST_ERROR = 0.01
"""Records; what is off by less counts as this much. A shape that a few releases happen
to meet exactly would otherwise decide the geometric mean alone."""


def typical_errors(
    mechanism: Mechanism,
    shapes: Mapping[str, IntArray],
    *,
    trials: int,
    rng: int | None = None,
) -> dict[str, float]:
    """Return the root mean square error per query, over so many releases of each shape.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    shapes : Mapping[str, ndarray of int64]
        Made-up counts by name.
    trials : int
        How many releases of each.
    rng : int, optional
        A seed; drawn if left out.

    Returns
    -------
    dict[str, float]
        The error by shape.
    """
    seed = secrets.randbits(32) if rng is None else as_whole(rng, "rng")
    errors = {}
    for shape, counts in shapes.items():
        data, squares = data_for(mechanism.policy, counts), 0.0
        for trial in range(trials):
            release = mechanism.release(data, rng=SEEDS_APART * seed + trial)
            squares += mean_square(mechanism.workload, release.estimate - counts)
        errors[shape] = math.sqrt(squares / trials)
    return errors


def geometric_mean(errors: Iterable[float]) -> float:
    """Return the geometric mean of errors, none of them counted below `LEAST_ERROR`."""
    logs = [math.log(max(error, LEAST_ERROR)) for error in errors]
    return math.exp(math.fsum(logs) / len(logs))


def mean_square(workload: Workload, errors: FloatArray) -> float:
    """Return the mean square of the answers to all queries on errors of cells.

    With running sums d_0 .. d_n, the squares of all ranges add up to (n + 1) sum of d^2
    - (sum of d)^2.

    Parameters
    ----------
    workload : Workload
        The queries.
    errors : ndarray of float64
        The error of each cell.

    Returns
    -------
    float
        The mean square.
    """
    form = workload.form(Buckets.single_cells(errors.size))
    if isinstance(form, Implicit) and form.kind == "all_ranges":
        sums = np.concatenate([[0.0], np.cumsum(errors)])
        total = sums.size * float(sums @ sums) - float(sums.sum()) ** 2
        return total / workload.queries
    answers = workload.answer(errors)
    return float(answers @ answers) / max(answers.size, 1)


KEY = 2014
"""From which all of them are generated, so that they are the same everywhere."""

HILLS = 6
BOXES = 24
MOST_RECORDS = 2**53

Places = list[FloatArray]
Density = Callable[[Places, int, Generator], FloatArray]
"""From the places of the cells along each axis, and their number, to densities."""


def reference_shapes(domain: Domain, records: int) -> dict[str, IntArray]:
    """Return counts of every shape over a domain, each of exactly `records` records.

    Parameters
    ----------
    domain : Domain
        The cells.
    records : int
        How many records.

    Returns
    -------
    dict[str, ndarray of int64]
        The counts by the name of the shape.

    Raises
    ------
    InputError
        If there are too many records.

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
    shapes = {}
    for number, (name, density) in enumerate(DENSITIES.items()):
        generator = np.random.default_rng([KEY, number])
        heights = np.broadcast_to(density(places, domain.size, generator), domain.shape)
        shares = np.ascontiguousarray(heights).reshape(-1)
        counts = generator.multinomial(records, shares / shares.sum())
        shapes[name] = counts.astype(np.int64).reshape(domain.shape)
    return shapes


def _even(places: Places, cells: int, rng: Generator) -> FloatArray:
    return np.ones([1] * len(places))


def _bells(places: Places, cells: int, rng: Generator) -> FloatArray:
    density: FloatArray = np.full([1] * len(places), 1e-3)
    for _ in range(HILLS):
        centres = rng.uniform(0.1, 0.9, size=len(places))
        width = rng.uniform(0.02, 0.15)
        hill: FloatArray = np.full([1] * len(places), rng.exponential())
        for place, centre in zip(places, centres, strict=True):
            hill = hill * np.exp(-0.5 * ((place - centre) / width) ** 2)
        density = density + hill
    return density


def _steps(places: Places, cells: int, rng: Generator) -> FloatArray:
    density: FloatArray = np.full([1] * len(places), 1e-6)
    for _ in range(BOXES):
        inside: FloatArray = np.full([1] * len(places), rng.exponential())
        for place in places:
            low, high = np.sort(rng.uniform(-0.2, 1.2, size=2))
            inside = inside * ((low <= place) & (place < high))
        density = density + inside
    return density


def _decay(places: Places, cells: int, rng: Generator) -> FloatArray:
    density: FloatArray = np.ones([1] * len(places))
    for place in places:
        density = density * np.exp(-place / 0.05)
    return density


def _spikes(places: Places, cells: int, rng: Generator) -> FloatArray:
    density = np.zeros(cells)
    full = rng.choice(cells, size=max(cells // 50, 1), replace=False)
    density[full] = rng.pareto(1.2, size=full.size) + 0.1
    return density.reshape([place.size for place in places])


def _tail(places: Places, cells: int, rng: Generator) -> FloatArray:
    density: FloatArray = rng.pareto(1.2, size=cells) + 0.01
    return density.reshape([place.size for place in places])


DENSITIES: dict[str, Density] = {
    "even": _even,
    "bells": _bells,
    "steps": _steps,
    "decay": _decay,
    "spikes": _spikes,
    "tail": _tail,
}
