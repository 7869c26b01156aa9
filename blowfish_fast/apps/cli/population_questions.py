"""Questions about the population that the records of a release were drawn from.

``--sample`` says how they were drawn, ``--of population`` asks. Answers are read by
`release_questions`; here stands what only samples need.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast._support.validation import as_number, quoted
from blowfish_fast.errors import EpsilonError, InputError, IntervalError
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.release.file import Release
from blowfish_fast.release.grants import BOUND_NAMES, Scope
from blowfish_fast.release.group_answers import POPULATION_COUNT
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.release.sampling.numbers import count_parts, scaled_counts
from blowfish_fast.release.sampling.p_values import p_values_against
from blowfish_fast.release.sampling.sampled_release import (
    VarianceParts,
    counted_exactly,
    equally_weighted,
    lays_out_before,
    sampled_sentence,
    stated_design,
)
from blowfish_fast.workloads import Workload

from .answer_table import AnswerTable
from .options import POPULATION, Question
from .parsing.sample import parse_sample

NOISE_SHARE = "noise_share"
"""The column with the part of each variance that privacy noise makes."""
P_VALUE = "p_value"
"""The column of "there is no difference", or of "it is this number"."""


def drawn_release(release: Release, sample: str, asked: Question | None) -> Release:
    """Return a release with how its records were drawn, as ``--sample`` says it.

    Parameters
    ----------
    release : Release
        A release of all cells.
    sample : str
        The words of ``--sample``.
    asked : Question or None
        What is asked; a design serves questions about the population.

    Returns
    -------
    Release
        The release with its design.

    Raises
    ------
    InputError
        If nobody asks about the population, the release has another design, or it is
        of a kind that has none.
    """
    if asked is not None and not asked.in_population:
        raise InputError(
            "how the records were drawn matters to questions about the population",
            received=f"--sample {sample}",
            way_out="Ask --of population, or leave --sample out",
        )
    if not isinstance(release, HistogramRelease):
        raise InputError(
            "a design is known of one release of all cells; this one lists cells, "
            "holds buckets, or was made of several",
            way_out="Ask a release of counts of all cells",
        )
    design = parse_sample(sample, release.domain)
    if release.design not in (None, design):
        raise InputError(
            f"this release says that its records are {release.design.describe()}",
            received=f"--sample {sample}",
            way_out="Leave --sample out",
        )
    return release.sampled(design)


def check_population(release: Release, asked: Question) -> None:
    """Refuse the population without a design, and words that mean two things.

    Parameters
    ----------
    release : Release
        What is asked.
    asked : Question
        The options of ``blowfish answer``.

    Raises
    ------
    InputError
        If a method or a number to compare with is stated without the population, or a
        column is called so.
    IntervalError
        If nobody said how the records were drawn.
    """
    if not asked.in_population:
        if asked.method is not None:
            raise InputError(
                "a method is chosen for the population",
                received=f"--method {asked.method}",
                way_out="Ask --of population, or leave --method out",
            )
        if asked.against is not None:
            raise InputError(
                "a p-value holds what is true of the population against a number",
                received=f"--against {asked.against}",
                way_out="Ask --of population, or leave --against out",
            )
        return
    stated_design(release)
    named = POPULATION in release.domain.column_names
    if named and asked.quantiles and asked.quantile_of is None:
        at = release.domain.column_names.index(POPULATION)
        raise InputError(
            "--of population asks about the population, and a column has that name",
            way_out=f"Name the column by its number: --of {at}, or --of {at} --of "
            "population for both",
        )


def people_of(
    release: Release, workload: Workload
) -> tuple[FloatArray, Callable[[], list[VarianceParts]]]:
    """Return estimated numbers of people, and what returns the parts of their errors.

    Parameters
    ----------
    release : Release
        A release with a design.
    workload : Workload
        Counts of whole cells.

    Returns
    -------
    people : ndarray of float64, shape (queries,)
        The estimates.
    parts : Callable[[], list[VarianceParts]]
        What their variances are made of.
    """

    def parts() -> list[VarianceParts]:
        pairs = zip(*count_parts(release, workload), strict=True)
        return [VarianceParts(float(drawn), float(noise)) for drawn, noise in pairs]

    return scaled_counts(release, workload), parts


def people_sentence(
    release: Release, asked: Question, kind: Scope, confidence: float
) -> str:
    """Say what intervals of numbers of people hold.

    Parameters
    ----------
    release : Release
        A release with a design.
    asked : Question
        It may choose a method.
    kind : Scope
        It is "population".
    confidence : float
        Over the draw of the sample and the noise.

    Returns
    -------
    str
        The sentence.
    """
    design = stated_design(release)
    exact = counted_exactly(design, POPULATION_COUNT, asked.method)
    return sampled_sentence(design, exact, confidence)


def add_population(
    table: AnswerTable,
    noise_shares: Callable[[], list[VarianceParts]],
    confidence: float,
    against: str | None = None,
) -> tuple[dict[str, AnyArray], str]:
    """Add intervals of the population, and which part of each variance is noise.

    Parameters
    ----------
    table : AnswerTable
        The answers.
    noise_shares : Callable[[], list[VarianceParts]]
        Returns what their variances are made of.
    confidence : float
        Over the draw of the sample and the noise.
    against : str, optional
        A number that each answer is held against, with a p-value.

    Returns
    -------
    tuple of dict and str
        The columns, and a sentence about them.
    """
    low, high = BOUND_NAMES["population"]
    columns = dict(table.columns)
    columns[low], columns[high] = table.bounds(confidence, of="population").T
    sentence = table.sentence("population", confidence)
    if against is not None:
        number = stated_number(against)
        bounds = partial(table.bounds, of="population")
        columns[P_VALUE] = p_values_against(bounds, number)
        lines = len(columns[P_VALUE])
        sentence = f"{sentence} {against_sentence(against, lines)}"
    try:
        parts = noise_shares()
    except IntervalError:
        # Of quantiles and deviations the two parts are not known.
        return columns, sentence
    columns[NOISE_SHARE] = np.array([part.noise_share for part in parts])
    meaning = f"{NOISE_SHARE} is the part of the variance that privacy noise makes"
    about = f"{meaning}, and drawing the records makes the rest."
    return columns, f"{sentence} {parts[0] if len(parts) == 1 else about}"


def stated_number(words: str) -> float:
    """Read ``--against``: a finite number.

    Parameters
    ----------
    words : str
        What was stated.

    Returns
    -------
    float
        The number.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return as_number(words, "--against", least=-math.inf)
    except EpsilonError:
        raise InputError(
            "--against takes a number that was stated before the release",
            received=quoted(words),
            way_out="Write --against 0.08 for 8 %",
        ) from None


def against_sentence(number: str, lines: int) -> str:
    """Say what p-values against a stated number mean.

    Parameters
    ----------
    number : str
        The number, as it was stated.
    lines : int
        How many answers there are.

    Returns
    -------
    str
        The sentence.
    """
    return (
        f'{P_VALUE} is that of "it is {number} in the population", with sampling and '
        f"noise counted as in the interval, {asked_times(lines)}; the number must have "
        "been stated before the release was looked at."
    )


def asked_times(lines: int) -> str:
    """Say how often something was asked, and what to do where it was often.

    Parameters
    ----------
    lines : int
        How many p-values there are.

    Returns
    -------
    str
        A part of a sentence.
    """
    if lines == 1:
        return "of this one, asked once"
    return f"of one line; who looks at all {lines} multiplies it by {lines}"


def asked_with(mechanism: Mechanism) -> str:
    """Say what a release of a sample can be asked about the population.

    Parameters
    ----------
    mechanism : Mechanism
        By which it will be released.

    Returns
    -------
    str
        A part of a sentence.
    """
    if lays_out_before(mechanism):
        return "ask it with --of population"
    return (
        f"{mechanism.name} may follow the data, and then --of population has counts "
        "and shares alone, where intervals of these records hold the truth; "
        "--mechanism laplace has every answer"
    )


def refuse_unequal(release: Release, name: str) -> None:
    """Refuse what has no estimate where records stand for unlike numbers of people.

    Parameters
    ----------
    release : Release
        A release with a design.
    name : str
        What was asked, for the message.

    Raises
    ------
    IntervalError
        If strata or weights make records unequal.
    """
    if not equally_weighted(stated_design(release)):
        raise IntervalError(
            f"a {name} of these records is no estimate of the population's: they stand "
            "for unlike numbers of people",
            way_out="Ask --count, --share or --mean; in Python "
            'quantile(...).interval(of="population") has the interval alone',
        )
