"""Ranges whose cells follow neighbouring buckets, beside even buckets, recorded.

    python -m experiments smooth --data FOLDER              docs/data/cells/smooth.csv

Default `Dawa` for ranges of lines of 4,096 cells, and the same releases with even
buckets: the same noise, the same totals of buckets, and another way to put records
inside of them. Mean absolute error per query. The given sets come first, on which the
two constants of the fit were chosen; nothing was chosen on the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import blowfish_fast as bf

from .own_methods import POLICIES, _deviation, _errors, all_sets
from .record_files import write_record
from .siblings import CELLS, EPSILONS, asked_of, generator_of

SMOOTH_DATA = Path("docs/data/cells/smooth.csv")


class SmoothLine(NamedTuple):
    """What neighbouring buckets say of cells, on one set at one epsilon.

    Attributes
    ----------
    policy : str
        "AddRemove" or "Full".
    set : str
        Which.
    kind : str
        "given", or "judged" where nothing was chosen on the set.
    epsilon : str
        What a release costs.
    buckets : int
        The median number of buckets of a release.
    smooth : float
        Mean absolute error of a range.
    even : float
        The same with even buckets; both have the same noise.
    ratio : float
        The first over the second.
    error : float
        Standard error of the ratio, between releases.
    """

    policy: str
    set: str
    kind: str
    epsilon: str
    buckets: int
    smooth: float
    even: float
    ratio: float
    error: float

    def __str__(self) -> str:
        return (
            f"{self.policy}, {self.set}, epsilon {self.epsilon}: "
            f"{self.ratio:.3f} ± {self.error:.3f}"
        )


def smooth_report(data: Path | None, trials: int) -> Iterator[SmoothLine]:
    """Yield what neighbouring buckets say of cells, for each set, epsilon and policy.

    Parameters
    ----------
    data : Path, optional
        A folder with the given lines in ``1d``.
    trials : int
        Releases of each, at least 2.

    Yields
    ------
    SmoothLine
        A line each.
    """
    line = bf.Domain(CELLS)
    for policy, build in POLICIES.items():
        for name, kind, counts in all_sets(data):
            asked = asked_of("ranges", name)
            for epsilon in EPSILONS:
                smooth = bf.Dawa(build(line), asked, epsilon=epsilon)
                even = bf.Dawa(build(line), asked, epsilon=epsilon, fit="non_negative")
                words = ("smooth", name, epsilon, policy)
                seeds = generator_of(*words).integers(2**32, size=trials)
                buckets = list[int]()
                off = _errors(smooth, counts, asked, seeds, buckets=buckets)
                evenly = _errors(even, counts, asked, seeds)
                ratio = float(off.mean() / evenly.mean())
                yield SmoothLine(
                    policy,
                    name,
                    kind,
                    epsilon,
                    int(np.median(buckets)),
                    float(off.mean()),
                    float(evenly.mean()),
                    ratio,
                    _deviation(off - ratio * evenly) / float(evenly.mean()),
                )


def write_smooth(
    data: Path | None, trials: int, path: Path = SMOOTH_DATA
) -> Iterator[SmoothLine]:
    """Measure what neighbouring buckets say of cells, and keep the record.

    Parameters
    ----------
    data : Path, optional
        A folder with the given lines in ``1d``.
    trials : int
        Releases of each, at least 2.
    path : Path
        The file, written once everything is measured.

    Yields
    ------
    SmoothLine
        A line each, as it is measured.
    """
    lines = list[SmoothLine]()
    for line in smooth_report(data, trials):
        lines.append(line)
        yield line
    write_record(path, lines, digits=4)
