"""Running totals of a series: variance and coverage of what is drawn, as predicted.

    python -m experiments series --trials 2000

A trial is one series of 52 weeks over 20 cells of generated counts, released by
``bf.Series`` itself. Trials lie side by side in one wide histogram, whose cells have
independent noise, so that all of them are drawn at once. What is predicted is
``Weights.variances``, of totals, of four weeks together and of single weeks.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

import blowfish_fast as bf

WEEKS = 52
CELLS = 20
MISS = 0.05
SCHEMES = ((Fraction(1, 2), 52), (Fraction(3, 8), 1024))
WINDOWS = {"total": None, "last 4": 4, "week": 1}
LOOKED_AT = (12, 26, 52)
"""After how many weeks intervals are compared with the truth."""


class SeriesLine(NamedTuple):
    """What was measured of one kind of answer, beside what was predicted.

    Attributes
    ----------
    exponent : Fraction
        Of the weights.
    asked : str
        "total", "last 4" or "week".
    ratio : float
        The measured variance over the predicted one, on average over the weeks.
    missed, allowed : float
        The share of intervals without the true count, and the most it may be: the
        stated one and three standard deviations of so many cells.
    spent : float
        What the ledger charged for all weeks, in rho.
    """

    exponent: Fraction
    asked: str
    ratio: float
    missed: float
    allowed: float
    spent: float

    def __str__(self) -> str:
        return (
            f"exponent {self.exponent}, {self.asked}: variance {self.ratio:.4f} of the "
            f"predicted one, {self.missed:.4f} of the intervals miss "
            f"({self.allowed:.4f} may); rho = {self.spent:g} for {WEEKS} weeks"
        )


def series_report(trials: int = 2_000, seed: int = 1) -> Iterator[SeriesLine]:
    """Yield a line for each exponent and kind of answer."""
    size = trials * CELLS
    domain = bf.Domain(size)
    policy, cells = bf.policies.AddRemove(domain), bf.workloads.Identity(domain)
    mechanism = bf.Gaussian(policy, cells, rho="0.5")
    counts = np.random.default_rng(seed).poisson(40, (WEEKS, size))
    for exponent, band in SCHEMES:
        ledger = bf.Ledger(None, rho=1, policy=policy)
        weeks = bf.Series(
            ledger,
            column="received",
            every="week",
            totals=exponent,
            band=band,
            frozen=True,
        )
        rows = []
        for week in range(1, WEEKS + 1):
            name = f"2026-W{week:02}"
            data = list(counts[:week])
            rows.append(weeks.release(name, mechanism, data, rng=seed + week).estimate)
        released = np.stack(rows)
        for asked, last in WINDOWS.items():
            ratio = _variance_ratio(weeks, released, counts, last)
            missed = _missed(weeks, counts, last)
            # Answers of several weeks share draws: they count as those of one.
            allowed = MISS + 3 * (MISS * (1 - MISS) / size) ** 0.5
            spent = float(ledger.spent)
            yield SeriesLine(exponent, asked, ratio, missed, allowed, spent)


def _variance_ratio(
    weeks: bf.Series, released: np.ndarray, counts: np.ndarray, last: int | None
) -> float:
    """Return measured over predicted variance, on average over the weeks."""
    scheme = weeks.scheme
    assert isinstance(scheme, bf.series.Weights)
    predicted = scheme.variances(WEEKS, 2, last=last) / 0.5
    measured = np.empty(WEEKS)
    for week in range(1, WEEKS + 1):
        window = week if last is None else min(last, week)
        shares = scheme.window_shares(week, window)[::-1]
        truth = counts[week - window : week].sum(axis=0)
        measured[week - 1] = ((shares @ released[:week] - truth) ** 2).mean()
    return float((measured / predicted).mean())


def _missed(weeks: bf.Series, counts: np.ndarray, last: int | None) -> float:
    """Return the share of intervals of the truth that do not hold it."""
    shares = []
    for week in LOOKED_AT:
        window = week if last is None else last
        answer = weeks.window(f"2026-W{week:02}", window)
        workload = bf.workloads.Identity(answer.domain)
        low, high = answer.intervals(workload, 1 - MISS, of="truth").T
        truth = counts[week - window : week].sum(axis=0)
        shares.append(float(((truth < low) | (truth > high)).mean()))
    return float(np.mean(shares))
