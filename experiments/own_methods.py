"""The default beside the other methods of this library, recorded.

    python -m experiments lines --data FOLDER              docs/data/cells/lines.csv
    python -m experiments lines --data FOLDER --only "AddRemove cells"   one part of it
    python -m experiments lines --data FOLDER --only "Full ranges default"   one method
    python -m experiments pairs                            docs/data/cells/pairs.csv
    python -m experiments neighbours                  docs/data/cells/neighbours.csv

Ranges, prefixes and single cells of lines of 4,096 cells; mean absolute error per query
and its standard error over the releases. `Dawa` as it is by default, as it was before
(buckets of any length for a fifth of epsilon, even inside, no look at the line, cells
shrunk) and without buckets; `Hierarchy` with equal and with greedy levels; `Privelet`.
The given sets come first, on which defaults were chosen; nothing was chosen on the
others. Each set has seeds of its own. Sparse sets, whose errors have long tails, are
released more often.

The second record is of the test for pairs (`Dawa._pairs_differ`), with it and without
it, on those of the judged sets that are mostly found rough, so that it is asked, and
whose neighbours differ about as much as it asks for.
The third is of single cells that are fitted by what their neighbours say, beside the
same noisy cells fitted in a shuffled order, where neighbours say nothing.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.mechanisms.base import Mechanism

from .cells_of_spikes import GIVEN_SETS
from .judged_sets import judged_sets
from .record_files import write_record
from .siblings import (
    CELLS,
    EPSILONS,
    KINDS,
    SPARSE_MASS,
    _any_length,
    asked_of,
    generator_of,
)

DATA = Path("docs/data/cells/lines.csv")
PAIRS_DATA = Path("docs/data/cells/pairs.csv")
NEIGHBOURS_DATA = Path("docs/data/cells/neighbours.csv")
POLICIES: dict[str, Callable[[bf.Domain], Any]] = {
    "AddRemove": bf.policies.AddRemove,
    "Full": bf.policies.Full,
}
PARTS = tuple(f"{policy} {kind}" for policy in POLICIES for kind in KINDS)
GIVEN, JUDGED = "given", "judged"
DEFAULT, FORMER, BARE = "default", "before", "no buckets"
LEAST_DIFFERENCE = 1.6
"""Differences inside pairs, in noise of a count for each cell, of lines to judge by."""


class Releases(NamedTuple):
    """How often a method is released.

    Attributes
    ----------
    dense : int
        On lines whose records times epsilon are not few.
    sparse : int
        On the others, whose errors have long tails.
    """

    dense: int
    sparse: int


RELEASES = {"AddRemove ranges": Releases(30, 100)}
OTHER_RELEASES = Releases(30, 40)
MOST_BARE = 40
"""Of the tree without buckets, which takes a tenth of a second."""
HEAVY_TAILED = {"nettrace": Releases(240, 1000)}
"""Sets of which some releases are off by many times the usual. With 100 releases at
epsilon .01 the same two methods had ratios from 1.1 to 1.4 there."""


class MethodLine(NamedTuple):
    """What was measured of one method on one set at one epsilon.

    Attributes
    ----------
    policy : str
        "AddRemove" or "Full".
    asked : str
        "ranges", "prefixes" or "cells".
    set : str
        Which.
    kind : str
        "given", or "judged" where nothing was chosen on the set.
    epsilon : str
        What a release costs.
    method : str
        Which.
    releases : int
        How many.
    mean : float
        Mean absolute error of a query.
    error : float
        Its standard error, between releases.
    """

    policy: str
    asked: str
    set: str
    kind: str
    epsilon: str
    method: str
    releases: int
    mean: float
    error: float

    @property
    def place(self) -> tuple[str, ...]:
        """What the line is about: a later one of the same place is put in its place."""
        return self.policy, self.asked, self.set, self.epsilon, self.method

    def __str__(self) -> str:
        return (
            f"{self.policy} {self.asked}, {self.set}, epsilon {self.epsilon}: "
            f"{self.method} {self.mean:.4g} ± {self.error:.2g}"
        )


class PairsLine(NamedTuple):
    """What the test for pairs does on one set at one epsilon.

    Attributes
    ----------
    policy : str
        "AddRemove" or "Full".
    asked : str
        "ranges" or "prefixes".
    set : str
        Which.
    epsilon : str
        What a release costs.
    differ : float
        Differences inside pairs, in noise of a count for each cell.
    tested : float
        Mean absolute error of a query with the test, which is the default.
    untested : float
        The same without it.
    ratio : float
        The first over the second.
    error : float
        Standard error of the ratio, between releases of independent noise.
    """

    policy: str
    asked: str
    set: str
    epsilon: str
    differ: float
    tested: float
    untested: float
    ratio: float
    error: float

    def __str__(self) -> str:
        return (
            f"{self.policy} {self.asked}, {self.set}, epsilon {self.epsilon}: "
            f"{self.ratio:.3f} ± {self.error:.3f}"
        )


class NeighboursLine(NamedTuple):
    """What neighbours say of single cells, on one set at one epsilon.

    Attributes
    ----------
    set : str
        Which.
    epsilon : str
        What a release costs.
    concerned : float
        Part of the releases whose single cells are medians or shrunk; others are not
        fitted so.
    default : float
        Mean absolute error of a cell.
    shuffled : float
        The same where no neighbour tells anything; both have the same noise.
    ratio : float
        The first over the second.
    error : float
        Standard error of the ratio, between releases.
    """

    set: str
    epsilon: str
    concerned: float
    default: float
    shuffled: float
    ratio: float
    error: float

    def __str__(self) -> str:
        return (
            f"{self.set}, epsilon {self.epsilon}: {self.ratio:.3f} ± {self.error:.3f}, "
            f"{self.concerned:.0%} of the releases are concerned"
        )


class NoPairs(bf.Dawa):
    """The default without the test for pairs."""

    def _pairs_differ(self, private: Any, rough: Any) -> bool:
        return False


def own_methods(kind: str) -> dict[str, Callable[..., Mechanism]]:
    """Return the default, the default of before, and the other methods, by name.

    Parameters
    ----------
    kind : {"ranges", "prefixes", "cells"}
        What is asked.

    Returns
    -------
    dict from str to callable
        How each is built from policy, workload and epsilon.
    """
    return {
        DEFAULT: bf.Dawa,
        FORMER: _former_cells if kind == "cells" else _any_length,
        BARE: partial(bf.Dawa, partition=None),
        "equal tree": bf.Hierarchy,
        "greedy tree": partial(bf.Hierarchy, strategy="greedy"),
        "privelet": bf.mechanisms.Privelet,
    }


def _former_cells(policy: Any, workload: Any, *, epsilon: Any) -> Mechanism:
    """Return cells as they were: a fifth of epsilon, no look, shrunk where free."""
    shrunk: Any = {}
    if isinstance(policy, bf.policies.AddRemove):
        shrunk = {"strategy": "cells", "fit": "shrink"}
    return bf.Dawa(policy, workload, epsilon=epsilon, share="1/5", **shrunk)


def all_sets(data: Path | None) -> Iterator[tuple[str, str, IntArray]]:
    """Yield name, kind and counts of every set.

    Parameters
    ----------
    data : Path, optional
        A folder with the given lines in ``1d``.

    Yields
    ------
    tuple[str, str, ndarray of int64]
        A set each.
    """
    if data is not None:
        for name in GIVEN_SETS:
            yield name, GIVEN, np.load(data / "1d" / f"{name}.npy")
    for name, counts in judged_sets():
        yield name, JUDGED, counts


def _errors(
    mechanism: Mechanism,
    counts: IntArray,
    asked: Any,
    seeds: IntArray,
    rough: list[bool] | None = None,
    *,
    buckets: list[int] | None = None,
) -> FloatArray:
    """Return the mean absolute error of a query in each release.

    Whether each line was found uneven or rough, and how many buckets it has, are added
    to lists that are passed.
    """
    true, off = asked.answer(counts), np.empty(seeds.size)
    for at, seed in enumerate(seeds):
        release: Any = mechanism.release(counts, rng=int(seed))
        off[at] = np.abs(np.asarray(release.answer(asked)) - true).mean()
        if rough is not None:
            rough.append(release.details["roughness"] in (1, 2))
        if buckets is not None:
            buckets.append(release.details["buckets"])
    return off


def _deviation(errors: FloatArray) -> float:
    """Return the standard error of a mean."""
    return float(np.std(errors, ddof=1) / math.sqrt(errors.size))


def _planned(part: str, set_name: str, method: str, *, sparse: bool) -> int:
    """Return how often a method is released on one line."""
    planned = RELEASES.get(part, OTHER_RELEASES)
    # An error of a single cell has no such tail.
    if set_name in HEAVY_TAILED and not part.endswith("cells"):
        planned = HEAVY_TAILED[set_name]
    times = planned.sparse if sparse else planned.dense
    return min(times, MOST_BARE) if method == BARE else times


def lines_of(part: str, data: Path | None, trials: int | None) -> Iterator[MethodLine]:
    """Yield what was measured of the methods under one policy, for one question.

    Parameters
    ----------
    part : str
        One of `PARTS`; the name of a method may follow, and it alone is measured.
    data : Path, optional
        A folder with the given lines in ``1d``.
    trials : int, optional
        Releases of each, at least 2; without, more of sparse sets and of cheap methods.

    Yields
    ------
    MethodLine
        A line each.
    """
    name, kind, *words_of_method = part.split()
    part, only = f"{name} {kind}", " ".join(words_of_method)
    methods = own_methods(kind)
    if only and only not in methods:
        raise InputError(
            f"a part may name one of the methods {', '.join(methods)}, received "
            f"{only!r}"
        )
    policy = POLICIES[name](bf.Domain(CELLS))
    for set_name, role, counts in all_sets(data):
        asked = asked_of(kind, set_name)
        for epsilon in EPSILONS:
            sparse = counts.sum() * float(epsilon) < SPARSE_MASS
            for method, build in methods.items():
                if only and method != only:
                    continue
                times = trials or _planned(part, set_name, method, sparse=sparse)
                words = ("lines", part, set_name, epsilon, method)
                seeds = generator_of(*words).integers(2**32, size=times)
                mechanism = build(policy, asked, epsilon=epsilon)
                off = _errors(mechanism, counts, asked, seeds)
                measured = (times, float(off.mean()), _deviation(off))
                yield MethodLine(name, kind, set_name, role, epsilon, method, *measured)


def write_lines(
    data: Path | None,
    trials: int | None,
    parts: Sequence[str] = PARTS,
    path: Path = DATA,
) -> Iterator[MethodLine]:
    """Measure the methods, and keep the record; parts left out stay as they are.

    Parameters
    ----------
    data : Path, optional
        A folder with the given lines in ``1d``.
    trials : int, optional
        Releases of each, at least 2; without, more of sparse sets and of cheap methods.
    parts : sequence of str
        Which of `PARTS` are measured; the name of a method may follow.
    path : Path
        The file, written whenever a part is measured.

    Yields
    ------
    MethodLine
        A line each, as it is measured.
    """
    for part in parts:
        lines = list[MethodLine]()
        for line in lines_of(part, data, trials):
            lines.append(line)
            yield line
        others = list[MethodLine]()
        if path.is_file():
            with path.open(newline="") as file:
                rows: Any = csv.reader(file)
                others = [MethodLine(*row) for row in rows if row[0] != "policy"]
        every = {line.place: line for line in (*others, *lines)}
        sets = list(dict.fromkeys(line.set for line in every.values()))
        write_record(path, sorted(every.values(), key=partial(_rank, sets)), digits=4)


def _rank(sets: Sequence[str], line: MethodLine) -> tuple[int, ...]:
    """Return where a line stands in the record."""
    return (
        PARTS.index(f"{line.policy} {line.asked}"),
        sets.index(line.set),
        EPSILONS.index(line.epsilon),
        list(own_methods(line.asked)).index(line.method),
    )


def pairs_report(trials: int) -> Iterator[PairsLine]:
    """Yield what the test for pairs does on lines whose neighbours differ.

    Parameters
    ----------
    trials : int
        Releases with the test, and as many without, at least 2.

    Yields
    ------
    PairsLine
        A line each.
    """
    line = bf.Domain(CELLS)
    for name, counts in judged_sets():
        apart = float(np.abs(counts[::2] - counts[1::2]).sum()) / CELLS
        for epsilon in EPSILONS:
            for policy, build in POLICIES.items():
                differ = apart * float(epsilon) / (1 if policy == "AddRemove" else 2)
                if differ < LEAST_DIFFERENCE:
                    continue
                for kind in ("ranges", "prefixes"):
                    asked = asked_of(kind, name)
                    off, rough = list[FloatArray](), list[bool]()
                    for method in (bf.Dawa, NoPairs):
                        words = ("pairs", name, epsilon, policy, kind, method.__name__)
                        seeds = generator_of(*words).integers(2**32, size=trials)
                        mechanism = method(build(line), asked, epsilon=epsilon)
                        off.append(_errors(mechanism, counts, asked, seeds, rough))
                    # Others have no pairs to cut, and the test is not asked.
                    if np.mean(rough) < 0.5:
                        continue
                    means = [float(each.mean()) for each in off]
                    ratio = means[0] / means[1]
                    parts = [_deviation(each) / each.mean() for each in off]
                    yield PairsLine(
                        policy,
                        kind,
                        name,
                        epsilon,
                        differ,
                        means[0],
                        means[1],
                        ratio,
                        ratio * math.hypot(*parts),
                    )


def write_pairs(trials: int, path: Path = PAIRS_DATA) -> Iterator[PairsLine]:
    """Measure what the test for pairs does, and keep the record.

    Parameters
    ----------
    trials : int
        Releases with the test, and as many without, at least 2.
    path : Path
        The file, written once everything is measured.

    Yields
    ------
    PairsLine
        A line each, as it is measured.
    """
    lines = list[PairsLine]()
    for line in pairs_report(trials):
        lines.append(line)
        yield line
    write_record(path, lines, digits=4)


def _shuffled(release: Any, order: IntArray) -> FloatArray | None:
    """Return the cells of a release fitted out of their order; None where none are."""
    fit = release.details["fit"]
    if fit not in ("medians", "shrink") or release.details["buckets"] < CELLS:
        return None
    measured = release.measurements[-1]
    width = float(measured.scales.widths[0])
    fitted = kernels.median_cells if fit == "medians" else kernels.mean_cells
    cells = np.empty(CELLS)
    cells[order] = fitted(measured.noisy[:CELLS][order], width)
    return cells


def neighbours_report(trials: int) -> Iterator[NeighboursLine]:
    """Yield what neighbours say of single cells, for each judged set and epsilon.

    Parameters
    ----------
    trials : int
        Releases of each, at least 2.

    Yields
    ------
    NeighboursLine
        A line each.
    """
    line = bf.Domain(CELLS)
    policy, asked = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    order = generator_of("shuffled").permutation(CELLS)
    for name, counts in judged_sets():
        for epsilon in EPSILONS:
            mechanism = bf.Dawa(policy, asked, epsilon=epsilon)
            seeds = generator_of("neighbours", name, epsilon).integers(
                2**32, size=trials
            )
            off, concerned = np.empty((trials, 2)), 0
            for at, seed in enumerate(seeds):
                release: Any = mechanism.release(counts, rng=int(seed))
                other = _shuffled(release, order)
                concerned += other is not None
                both = (release.estimate, release.estimate if other is None else other)
                off[at] = [np.abs(each - counts).mean() for each in both]
            means = off.mean(axis=0)
            ratio = float(means[0] / means[1])
            error = _deviation(off[:, 0] - ratio * off[:, 1]) / float(means[1])
            own, without = (float(mean) for mean in means)
            part = concerned / trials
            yield NeighboursLine(name, epsilon, part, own, without, ratio, error)


def write_neighbours(
    trials: int, path: Path = NEIGHBOURS_DATA
) -> Iterator[NeighboursLine]:
    """Measure what neighbours say of single cells, and keep the record.

    Parameters
    ----------
    trials : int
        Releases of each, at least 2.
    path : Path
        The file, written once everything is measured.

    Yields
    ------
    NeighboursLine
        A line each, as it is measured.
    """
    lines = list[NeighboursLine]()
    for line in neighbours_report(trials):
        lines.append(line)
        yield line
    write_record(path, lines, digits=4)
