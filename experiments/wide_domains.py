"""Ranges of 2^32 to 2^60 cells and rectangles of maps, beside coarser cells.

    python -m experiments wide --trials 4

Records are generated: addresses of networks of uneven size, moments of two years to the
nanosecond, metres of towns along streets. Half of the queries lie around records, sides
and lengths are spread over many doublings. What is told is the mean absolute error at
epsilon 0.1 and one record more or less, how many intervals of 95 % miss the truth, and
what a release takes: CPU seconds, and bytes for each filled cell beside the data.

The queries follow the records so that short ones have something to find. That is for
measuring alone: a workload is public, and nobody may take it from the data.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray, IntArray

RECORDS = 10**6
QUERIES = 2000
EPSILON = Fraction(1, 10)
COARSE_BITS = (16, 20)
"""Bits of the coarser cells that are compared."""
MAP_BITS = 30
"""Bits of a side of the map."""
FILLED = 10**7
"""Filled cells of the releases that are timed."""
MANY_RANGES = 10**4
"""Ranges of the release that is timed."""


class WideLine(NamedTuple):
    """What was measured of one kind of records.

    Attributes
    ----------
    records : str
        Which.
    cells : str
        How many cells there are.
    errors : dict
        The mean absolute error of each method.
    missed : float
        The share of intervals of 95 % that miss the truth, of the first method.
    """

    records: str
    cells: str
    errors: dict[str, float]
    missed: float

    def __str__(self) -> str:
        told = ", ".join(f"{name} {error:.0f}" for name, error in self.errors.items())
        return f"{self.records}, {self.cells}: {told}; {self.missed:.2%} missed"


class TimedLine(NamedTuple):
    """What a release takes.

    Attributes
    ----------
    what : str
        The release.
    seconds : float
        CPU seconds, the least of the trials.
    bytes_each : float
        The most bytes that are held at a time, for each filled cell.
    """

    what: str
    seconds: float
    bytes_each: float

    def __str__(self) -> str:
        return (
            f"{self.what}: {self.seconds:.2f} CPU s, {self.bytes_each:.0f} bytes for "
            "each filled cell"
        )


def addresses(rng: np.random.Generator, size: int) -> IntArray:
    """Return addresses of 32 bits: few networks hold most of the hosts."""
    networks = rng.choice(2**16, 3000, replace=False)
    weights = 1.0 / np.arange(1, 3001) ** 1.1
    network = rng.choice(networks, size, p=weights / weights.sum())
    part = np.minimum(rng.zipf(1.3, size) - 1, 255) * 37 % 256
    host = np.minimum(rng.geometric(0.03, size), 254)
    return (network.astype(np.int64) << 16) | (part << 8) | host


def moments(rng: np.random.Generator, size: int) -> IntArray:
    """Return nanoseconds of 730 days, by day, with a tenth in twenty bursts."""
    day = 86_400 * 10**9
    start = 17_000 * day % 2**60
    hour = np.clip(rng.normal(13.0, 3.0, size), 0.0, 23.999) / 24.0
    places = rng.integers(0, 730, size) * day + (hour * day).astype(np.int64)
    bursts = rng.integers(0, 730 * day, 20)
    often = size // 10
    near = rng.exponential(30e9, often).astype(np.int64)
    places[:often] = bursts[rng.integers(0, 20, often)] + near
    return start + places + rng.integers(0, 10**9, size)


def metres(rng: np.random.Generator, size: int, bits: int) -> IntArray:
    """Return places of a map of 2^bits metres a side: towns, half along streets."""
    towns, side = 400, 2**bits
    weights = 1.0 / np.arange(1, towns + 1)
    town = rng.choice(towns, size, p=weights / weights.sum())
    spread = (300.0 + 6000.0 * weights[town])[:, None] * side / 2**20
    places = (
        rng.integers(0, side, (towns, 2))[town] + rng.normal(size=(size, 2)) * spread
    )
    street = rng.random(size) < 0.5
    block = 100.0 * side / 2**20
    places[street, 0] = np.round(places[street, 0] / block) * block
    inside: IntArray = np.clip(places, 0, side - 1).astype(np.int64)
    return inside


def ranges_around(
    rng: np.random.Generator, records: IntArray, bits: int, queries: int
) -> tuple[IntArray, IntArray]:
    """Return ranges of 2^bits cells, every second one around a record.

    Parameters
    ----------
    rng : numpy Generator
        What they are drawn from.
    records : ndarray of int64
        Cells of records.
    bits : int
        Of the number of cells.
    queries : int
        How many ranges.

    Returns
    -------
    starts, ends : ndarray of int64, shape (queries,)
        Lengths are spread over up to 35 doublings.
    """
    lengths = (2.0 ** rng.uniform(max(bits - 36, 2), bits - 1, queries)).astype(int)
    centres = rng.integers(0, 2**bits, queries)
    centres[::2] = rng.choice(records, (queries + 1) // 2)
    starts = np.maximum(centres - (rng.random(queries) * lengths).astype(int), 0)
    return starts, np.minimum(starts + lengths, 2**bits)


def coarse_answers(
    records: IntArray, starts: IntArray, ends: IntArray, bits: int, coarse: int
) -> Callable[[int], FloatArray]:
    """Return what answers ranges from a release of coarser cells, given a seed.

    Parameters
    ----------
    records : ndarray of int64
        Cells of records.
    starts, ends : ndarray of int64
        The ranges.
    bits : int
        Of the number of cells.
    coarse : int
        Bits of the coarser cells.

    Returns
    -------
    callable
        From a seed to answers; parts of a coarse cell count in proportion.
    """
    shift = bits - coarse
    line = bf.Domain(2**coarse)
    counts = np.bincount(records >> shift, minlength=2**coarse)
    last = -(-ends >> shift)
    asked = bf.workloads.Ranges(line, starts >> shift, np.maximum(last, 1))
    mechanism = bf.Dawa(bf.policies.AddRemove(line), asked, epsilon=EPSILON)

    def answer(seed: int) -> FloatArray:
        estimate = mechanism.release(counts, rng=seed).estimate
        running = np.concatenate([[0.0], np.cumsum(estimate)])

        def below(places: IntArray) -> FloatArray:
            cell = np.minimum(places >> shift, 2**coarse - 1)
            part = (places - (cell << shift)) / 2.0**shift
            return np.asarray(running[cell] + part * estimate[cell])

        return below(ends) - below(starts)

    return answer


def line_report(kind: str, trials: int, seed: int = 0) -> WideLine:
    """Compare ways to answer ranges of one kind of records.

    Parameters
    ----------
    kind : {"addresses", "moments", "metres"}
        Which records.
    trials : int
        Releases of each method.
    seed : int
        Of records and ranges.

    Returns
    -------
    WideLine
        The errors.
    """
    rng = np.random.default_rng(seed)
    bits = {"addresses": 32, "moments": 60, "metres": 40}[kind]
    if kind == "metres":
        from blowfish_fast.data.wide.map_curve import MapCurve

        places = metres(rng, RECORDS, 20)
        records = MapCurve(2**20, 2**20).numbers(*places.T)
    else:
        records = {"addresses": addresses, "moments": moments}[kind](rng, RECORDS)
    ordered = np.sort(records)
    starts, ends = ranges_around(rng, ordered, bits, QUERIES)
    true = np.searchsorted(ordered, ends) - np.searchsorted(ordered, starts)
    line: Any = bf.WideDomain(2**bits, names="place")
    data = bf.SparseHistogram.from_records(line, {"place": records})
    asked: Any = bf.workloads.Ranges(line, starts, ends)
    errors, missed = wide_errors(line, asked, data, true, trials)
    for coarse in COARSE_BITS:
        answer = coarse_answers(ordered, starts, ends, bits, coarse)
        found = [np.abs(answer(seed) - true).mean() for seed in range(trials)]
        errors[f"2^{coarse} coarse cells"] = float(np.mean(found))
    return WideLine(kind, f"2^{bits} cells", errors, missed)


def wide_errors(
    domain: Any, asked: Any, data: Any, true: IntArray, trials: int
) -> tuple[dict[str, float], float]:
    """Return the errors of both descents, and how often intervals of the first miss.

    Parameters
    ----------
    domain : WideDomain
        The cells.
    asked : Ranges or Rectangles
        The queries.
    data : SparseHistogram
        The records.
    true : ndarray of int64
        The true answers.
    trials : int
        Releases of each.

    Returns
    -------
    errors : dict
        By score.
    missed : float
        The share of intervals of 95 % without the truth.
    """
    errors, missed = dict[str, float](), list[float]()
    policy = bf.policies.AddRemove(domain)
    for score in ("records", "unevenness"):
        partition = bf.partitions.Descent(score=score)
        mechanism = bf.Dawa(policy, asked, epsilon=EPSILON, partition=partition)
        off = []
        for seed in range(trials):
            release: Any = mechanism.release(data, rng=seed)
            off.append(np.abs(release.answer(asked) - true).mean())
            if score == "records":
                low, high = release.intervals(asked, of="truth").T
                missed.append(float(((true < low) | (true > high)).mean()))
        errors[f"descent by {score}"] = float(np.mean(off))
    return errors, float(np.mean(missed))


def map_report(trials: int, seed: int = 0) -> WideLine:
    """Compare rectangles of a wide map with those of 1024 x 1024 coarser cells.

    Parameters
    ----------
    trials : int
        Releases of each method.
    seed : int
        Of records and rectangles.

    Returns
    -------
    WideLine
        The errors.
    """
    rng, side = np.random.default_rng(seed), 2**MAP_BITS
    places = metres(rng, RECORDS, MAP_BITS)
    queries = QUERIES // 4
    sides = (2.0 ** rng.uniform(MAP_BITS - 13, MAP_BITS - 1, (queries, 2))).astype(int)
    centres = rng.integers(0, side, (queries, 2))
    centres[::2] = places[rng.integers(0, len(places), (queries + 1) // 2)]
    lows = np.maximum(centres - sides // 2, 0)
    highs = np.minimum(lows + sides, side)
    true = np.array(
        [
            ((places >= low) & (places < high)).all(axis=1).sum()
            for low, high in zip(lows, highs, strict=True)
        ]
    )
    names = ("east", "north")
    wide: Any = bf.WideDomain((side, side), names=names)
    data = bf.SparseHistogram.from_records(
        wide, dict(zip(names, places.T, strict=True))
    )
    asked: Any = bf.workloads.Rectangles(wide, lows, highs)
    errors, missed = wide_errors(wide, asked, data, true, trials)
    grid, shift = bf.Domain((1024, 1024)), 2.0 ** (MAP_BITS - 10)
    rows, columns = (places >> (MAP_BITS - 10)).T
    counts = np.bincount(rows * 1024 + columns, minlength=2**20).reshape(1024, 1024)
    coarse = bf.workloads.Rectangles(grid, lows / shift, highs / shift)
    mechanism = bf.Dawa(bf.policies.AddRemove(grid), coarse, epsilon=EPSILON)
    off = [
        np.abs(mechanism.release(counts, rng=one).answer(coarse) - true)
        for one in range(trials)
    ]
    errors["1024 x 1024 coarse cells"] = float(np.mean(off))
    return WideLine("a map", f"2^{MAP_BITS} x 2^{MAP_BITS} cells", errors, missed)


def timed(what: str, filled: int, release: Callable[[], Any], trials: int) -> TimedLine:
    """Return the least CPU time of some releases, and the memory of one more.

    Parameters
    ----------
    what : str
        What is released, in words.
    filled : int
        How many cells hold records.
    release : callable
        Makes one release.
    trials : int
        How often it is timed.

    Returns
    -------
    TimedLine
        Seconds, and bytes for each filled cell.
    """
    release()
    spent = []
    for _ in range(trials):
        begin = time.process_time()
        release()
        spent.append(time.process_time() - begin)
    tracemalloc.start()
    release()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return TimedLine(what, min(spent), most / filled)


def cost_report(trials: int, seed: int = 0) -> Iterator[TimedLine]:
    """Time a list and a release of ranges on 2^60 cells.

    Parameters
    ----------
    trials : int
        How often each is timed.
    seed : int
        Of the records.

    Yields
    ------
    TimedLine
        What each took.
    """
    rng = np.random.default_rng(seed)
    line: Any = bf.WideDomain(2**60, names="place")
    clusters = rng.integers(0, 2**60 - 2**40, 10_000)
    near = clusters[rng.integers(0, 10_000, FILLED)] + rng.integers(0, 2**40, FILLED)
    data = bf.SparseHistogram.from_records(line, {"place": near})
    filled, policy = data.keys.size, bf.policies.AddRemove(line)
    lister = bf.SparseLaplace(policy, epsilon=EPSILON, false_cells=1000)
    what = f"list of {filled:,} filled cells of 2^60"
    yield timed(what, filled, lambda: lister.release(data, rng=1), trials)
    starts, ends = ranges_around(rng, near, 60, MANY_RANGES)
    asked: Any = bf.workloads.Ranges(line, starts, ends)
    dawa = bf.Dawa(policy, asked, epsilon=EPSILON)
    what = f"{MANY_RANGES:,} ranges of {filled:,} filled cells of 2^60"
    yield timed(what, filled, lambda: dawa.release(data, rng=1), trials)


def wide_report(trials: int) -> Iterator[WideLine | TimedLine]:
    """Yield what is told of wide domains: errors first, then times and memory.

    Parameters
    ----------
    trials : int
        Releases of each method.

    Yields
    ------
    WideLine or TimedLine
        A line each.
    """
    for kind in ("addresses", "moments", "metres"):
        yield line_report(kind, trials)
    yield map_report(trials)
    yield from cost_report(trials)
