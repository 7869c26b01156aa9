"""How far off a mechanism is on generated histograms: its typical error.

Serves recommendations, for mechanisms that choose from the data and have no predicted
error. Releases are seeded: they are experiments on public data.

    shape    release 1   release 2   release 3        root of the mean square
    steps       812         905         633      ->   28.0 records per query
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.mechanisms.base import Mechanism, made_up
from blowfish_fast.workloads import Implicit, Workload

SEEDS_APART = 10**6
LEAST_ERROR = 1e-9


def typical_errors(
    mechanism: Mechanism,
    shapes: Mapping[str, IntArray],
    *,
    trials: int,
    rng: int | None = None,
) -> dict[str, float]:
    """Return the root mean square error per query on each histogram.

    Parameters
    ----------
    mechanism : Mechanism
        Asked its own workload.
    shapes : mapping of str to counts
        Public histograms over its domain.
    trials : int
        Releases per histogram.
    rng : int, optional
        Their seeds follow from it; drawn, if left out.
    """
    seed = secrets.randbits(32) if rng is None else as_whole(rng, "rng")
    return {
        shape: _root_mean_square(mechanism, counts, trials, seed)
        for shape, counts in shapes.items()
    }


def _root_mean_square(
    mechanism: Mechanism, counts: IntArray, trials: int, seed: int
) -> float:
    data = made_up(mechanism.policy, counts)
    squares = [
        mean_square(
            mechanism.workload,
            mechanism.release(data, rng=SEEDS_APART * seed + trial).estimate - counts,
        )
        for trial in range(trials)
    ]
    return math.sqrt(sum(squares) / trials)


def geometric_mean(errors: Iterable[float]) -> float:
    """Return the geometric mean of errors, none of them counted as less than 1e-9.

    Examples
    --------
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    logs = [math.log(max(one, LEAST_ERROR)) for one in errors]
    return math.exp(math.fsum(logs) / len(logs))


def mean_square(workload: Workload, errors: FloatArray) -> float:
    """Return the mean square of the answers to all queries on errors of cells.

    All ranges are never listed: with running sums d_0 .. d_n their squares add up to
    (n + 1) sum of d^2 - (sum of d)^2.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> mean_square(bf.workloads.AllRanges(bf.Domain(2)), np.array([1.0, 2.0]))
    4.666666666666667
    """
    form = workload.form(Buckets.single_cells(errors.size))
    if isinstance(form, Implicit) and form.kind == "all_ranges":
        sums = np.concatenate([[0.0], np.cumsum(errors)])
        total = sums.size * float(sums @ sums) - float(sums.sum()) ** 2
        return total / workload.queries
    answers = workload.answer(errors)
    return float(answers @ answers) / max(answers.size, 1)
