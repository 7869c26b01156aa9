"""Single cells under short moves: three mechanisms beside each other.

    python -m experiments short-moves --trials 4    docs/data/cells/short_moves.csv

What `recommend` says of single cells under a short threshold. The sets are the lines of
4,096 cells that ``python -m experiments spikes`` generates anew, most of them with
spikes, which suit `OrderedHierarchical`: mean absolute and root mean squared error of a
cell. The choice was made on the generated histograms of `recommend`, the given ones and
those of ``python -m experiments siblings``, summed to 1,024 cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf

from .cells_of_spikes import ANEW, measured_sets
from .record_files import write_record
from .siblings import CELLS, generator_of

DATA = Path("docs/data/cells/short_moves.csv")
THETAS = (2, 8, 32)
EPSILONS = ("0.01", "0.1", "1")


class MovesLine(NamedTuple):
    """What was measured of one set at one threshold and epsilon.

    Attributes
    ----------
    set : str
        Which.
    theta : int
        Cells that a record may move at most.
    epsilon : str
        What a release costs.
    ordered : float
        Mean absolute error of a cell of `OrderedHierarchical`.
    transformed : float
        Of `Transformed`.
    dawa : float
        Of `Dawa`.
    ordered_rms : float
        Root of the mean squared error of `OrderedHierarchical`.
    transformed_rms : float
        Of `Transformed`.
    dawa_rms : float
        Of `Dawa`.
    """

    set: str
    theta: int
    epsilon: str
    ordered: float
    transformed: float
    dawa: float
    ordered_rms: float
    transformed_rms: float
    dawa_rms: float

    def __str__(self) -> str:
        return (
            f"{self.set}, moves of {self.theta}, epsilon {self.epsilon}: ordered "
            f"{self.ordered:.3g}, transformed {self.transformed:.3g}, dawa "
            f"{self.dawa:.3g}"
        )


def moves_report(trials: int) -> Iterator[MovesLine]:
    """Yield what was measured of each set, threshold and epsilon.

    Parameters
    ----------
    trials : int
        Releases of each.

    Yields
    ------
    MovesLine
        A line each.
    """
    line = bf.Domain(CELLS)
    asked = bf.workloads.Identity(line)
    kinds: tuple[Any, ...] = (
        *(bf.mechanisms.OrderedHierarchical, bf.Transformed, bf.Dawa),
    )
    for name, kind, counts in measured_sets(None):
        if kind != ANEW:
            continue
        for theta in THETAS:
            policy = bf.policies.Threshold(line, theta=theta)
            for epsilon in EPSILONS:
                off, square = [], []
                for mechanism in kinds:
                    built = mechanism(policy, asked, epsilon=epsilon)
                    words = ("short moves", name, theta, epsilon, mechanism.name)
                    seeds = generator_of(*words).integers(2**32, size=trials)
                    errors = np.array(
                        [built.release(counts, rng=int(x)).estimate for x in seeds]
                    )
                    errors -= counts
                    off.append(float(np.abs(errors).mean()))
                    square.append(float(np.sqrt((errors**2).mean())))
                yield MovesLine(name, theta, epsilon, *off, *square)


def write_moves(trials: int, path: Path = DATA) -> Iterator[MovesLine]:
    """Measure cells under short moves, and keep the record.

    Parameters
    ----------
    trials : int
        Releases of each.
    path : Path
        The file, written once everything is measured.

    Yields
    ------
    MovesLine
        A line each, as it is measured.
    """
    lines = list[MovesLine]()
    for line in moves_report(trials):
        lines.append(line)
        yield line
    write_record(path, lines, digits=3)
