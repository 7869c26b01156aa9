"""Differences in the population on the command line, each with its p-value.

    blowfish answer now.blowfish --with before.blowfish --how difference --of population
    blowfish answer survey.blowfish --where sex=F --minus sex=M --share --of population

The first compares two waves of different people, the second two groups of one release.
With ``--by`` every group has a line. What is computed is ``Selection.difference``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.apps.cli.options import Question
from blowfish_fast.apps.cli.parsing.domain import find_column, names_polygons
from blowfish_fast.errors import InputError
from blowfish_fast.release.file import Release
from blowfish_fast.release.grants import BOUND_NAMES
from blowfish_fast.release.sampling.differences import Compared, Difference
from blowfish_fast.release.sampling.sampled_release import stated_design

from .population_questions import (
    NOISE_SHARE,
    P_VALUE,
    asked_times,
    check_population,
    stated_number,
)
from .population_rates import (
    RATE,
    check_rate,
    naming_columns,
    other_group,
    rates_of,
    selections_of,
)

MEASURES: dict[Compared, str] = {
    "count": "population_count",
    "share": "population_share",
    "mean": "population_mean",
}
"""What is compared, as the column ``measure`` calls it."""
INSIDE_CELLS = (
    "The difference of two means counts every record with the middle of its cell; its "
    "interval counts that records may lie anywhere inside."
)


def check_difference(asked: Question, *, waves: bool, rounded: bool) -> None:
    """Refuse options that do not state a difference in the population.

    Parameters
    ----------
    asked : Question
        The options of ``blowfish answer``.
    waves : bool
        Whether two releases are compared, ``--with`` and ``--how difference``.
    rounded : bool
        Whether whole counts are asked for, ``--round``.

    Raises
    ------
    InputError
        If the question is about the records alone, or about something other than one
        count, share, mean or rate.
    """
    if not asked.in_population:
        raise InputError(
            "groups are compared in the population that they were drawn from",
            received=f"--minus {' --minus '.join(asked.minus)}",
            way_out="Ask --of population, or each group by itself, --where",
        )
    if waves and asked.minus:
        raise InputError(
            "two waves are compared, --how difference, or two groups of one release, "
            "--minus",
            received="both",
            way_out="Leave one of them out",
        )
    if asked.per:
        check_rate(asked, rounded=rounded)
    others = [asked.sum_of, asked.std_of, asked.workload, asked.file, asked.quantile_of]
    places = any(map(names_polygons, asked.by))
    if any(others) or asked.ranges or asked.quantiles or places:
        raise InputError(
            "differences in the population are those of --count, --share or --mean, "
            "with --where and --by COLUMN"
        )
    if asked.count + asked.share + (asked.mean_of is not None) > 1:
        raise InputError("ask for the difference of one of --count, --share and --mean")
    if rounded:
        raise InputError(
            "differences in the population are estimated from counts with their noise",
            received="--round",
            way_out="Leave --round out",
        )
    if asked.method == "exact":
        raise InputError(
            "no exact law is known for a difference",
            received="--method exact",
            way_out="Leave --method out",
        )


def answer_differences(
    releases: Sequence[Release], asked: Question, confidence: float
) -> tuple[dict[str, AnyArray], str]:
    """Return differences in the population, and what their intervals hold.

    Parameters
    ----------
    releases : sequence of Release
        One release with a design, whose groups are compared, or two waves of
        different people, the second of which is taken off.
    asked : Question
        What `check_difference` let pass.
    confidence : float
        The probability with which each interval holds its difference.

    Returns
    -------
    columns : dict from str to ndarray
        One row for each group of ``--by``: which group it is, the difference, its
        interval and p-value, and the part of the variance that privacy noise makes.
    sentence : str
        What intervals and p-values hold, and on whose word.

    Raises
    ------
    InputError
        If nobody said how the records were drawn, or a column is not there.
    """
    for release in releases:
        check_population(release, asked)
    first, second = releases[0], releases[-1]
    taken_off = other_group(asked, asked.minus, second) if asked.minus else asked
    measure, words = (RATE, {}) if asked.per else _measure(asked, first)
    sides: Any = rates_of if asked.per else selections_of
    differences = [
        own.difference(other, **words)
        for own, other in zip(
            sides(first, asked), sides(second, taken_off), strict=True
        )
    ]
    return (
        {
            **naming_columns(first, asked, measure),
            "difference": np.array([float(difference) for difference in differences]),
            **_errors(differences, confidence, asked.against),
        },
        _sentence(releases, asked.against, len(differences), confidence)
        + (f" {INSIDE_CELLS}" if _has_width(asked, first) else ""),
    )


def _measure(asked: Question, release: Release) -> tuple[str, dict[str, Any]]:
    """Return what the comparison is called, and what ``difference`` takes for it."""
    if asked.mean_of is None:
        compared: Compared = "share" if asked.share else "count"
        return MEASURES[compared], {"of": compared}
    axis = find_column(asked.mean_of, release.domain)
    return MEASURES["mean"], {"of": "mean", "name": axis}


def _has_width(asked: Question, release: Release) -> bool:
    """Return whether records may lie anywhere inside the cells of a mean."""
    if asked.mean_of is None:
        return False
    axis = find_column(asked.mean_of, release.domain)
    return release.domain.attributes[axis].cuts is not None


def _errors(
    differences: list[Difference], confidence: float, against: str | None
) -> dict[str, AnyArray]:
    """Return the columns of intervals, p-values and shares of the noise.

    A p-value is that of the difference `against`, or of no difference.
    """
    doubted = 0.0 if against is None else stated_number(against)
    low, high = BOUND_NAMES["population"]
    bounds = np.array([difference.interval(confidence) for difference in differences])
    parts = [difference.variance_parts() for difference in differences]
    return {
        low: bounds[:, 0],
        high: bounds[:, 1],
        P_VALUE: np.array([difference.p_value(doubted) for difference in differences]),
        NOISE_SHARE: np.array([part.noise_share for part in parts]),
    }


def _sentence(
    releases: Sequence[Release], against: str | None, lines: int, confidence: float
) -> str:
    """Say what intervals and p-values hold, and on whose word."""
    waves = len(releases) > 1
    designs = [stated_design(release).describe() for release in releases]
    drawn = (
        f"The first records were said to be {designs[0]}, the second {designs[-1]}, "
        "and nobody to be in both."
        if waves
        else f"These records were said to be {designs[0]}."
    )
    doubted = "no difference" if against is None else f"the difference is {against}"
    return " ".join(
        [
            f"With about {100.0 * confidence:.15g} %, over the draw of "
            f"{'both samples' if waves else 'the sample'} and the noise (the sampling "
            "is taken as normal, the noise exactly), each interval holds the "
            "difference in the population.",
            f'{P_VALUE} is that of "{doubted}", with the noise counted, '
            f"{asked_times(lines)}.",
            f"{drawn} Nothing here can check that.",
        ]
    )
