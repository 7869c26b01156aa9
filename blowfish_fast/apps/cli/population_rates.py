"""Rates in the population on the command line: ``--per``.

    blowfish answer FILE --where work=looking --per work=looking,employed --by region
    --of population

Both numbers may carry noise. Conditions of ``--where`` on columns that ``--per`` does
not name hold for both. With ``--minus``, or with two waves, rates are compared.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, cast

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.apps.cli.options import Question
from blowfish_fast.apps.cli.parsing.domain import names_polygons
from blowfish_fast.apps.cli.parsing.where import parse_condition
from blowfish_fast.errors import InputError
from blowfish_fast.release.file import Release
from blowfish_fast.release.grants import BOUND_NAMES
from blowfish_fast.release.olap import Selection
from blowfish_fast.release.sampling.rates import Rate
from blowfish_fast.release.sampling.sampled_release import Method

from .answer_table import group_columns
from .population_questions import (
    NOISE_SHARE,
    P_VALUE,
    against_sentence,
    check_population,
    stated_number,
)
from .release_questions import select_records

RATE = "population_rate"
"""What the column ``measure`` calls a rate."""


def check_rate(asked: Question, *, rounded: bool) -> None:
    """Refuse what is no question about a rate in the population.

    Parameters
    ----------
    asked : Question
        The options of ``blowfish answer``.
    rounded : bool
        Whether whole counts are asked for.

    Raises
    ------
    InputError
        If nobody asks about the population, or something else is measured.
    """
    if not asked.in_population:
        raise InputError(
            "a rate is one of the population that the records were drawn from",
            received=f"--per {' --per '.join(asked.per)}",
            way_out="Ask --of population",
        )
    columns = [asked.sum_of, asked.mean_of, asked.std_of, asked.quantile_of]
    others = [*columns, asked.workload, asked.file, asked.ranges, asked.quantiles]
    places = any(map(names_polygons, asked.by))
    if any(others) or asked.count or asked.share or places or rounded:
        raise InputError(
            "a rate divides the number of --where by that of --per; nothing else is "
            "measured with it, and --by names columns"
        )


def other_group(asked: Question, conditions: list[str], release: Release) -> Question:
    """Return a question whose conditions take the place of those on the same columns.

    Parameters
    ----------
    asked : Question
        What is asked.
    conditions : list of str
        They hold instead; conditions on other columns stay.
    release : Release
        Whose columns are meant.

    Returns
    -------
    Question
        The question about the other group.
    """
    domain = release.domain
    named = {parse_condition(words, domain)[0] for words in conditions}
    common = [
        words for words in asked.where if parse_condition(words, domain)[0] not in named
    ]
    return replace(asked, where=[*common, *conditions])


def selections_of(release: Release, asked: Question) -> list[Selection]:
    """Return the selected records, or those of each group in the order of answers.

    Parameters
    ----------
    release : Release
        What is asked.
    asked : Question
        Its conditions and groups.

    Returns
    -------
    list of Selection
        At least one.
    """
    selection, grouped, _ = select_records(release, asked)
    if grouped is None:
        return [selection]
    groups = grouped(selection)
    along, named = groups._groups, groups._named
    selections = []
    for parts in itertools.product(*(along[axis] for axis in named)):
        # Attributes that are not broken down have one cover.
        covers = {axis: listed[0][1] for axis, listed in along.items()}
        covers |= {axis: part for axis, (_, part) in zip(named, parts, strict=True)}
        selections.append(Selection(release, [covers[at] for at in sorted(covers)]))
    return selections


def rates_of(release: Release, asked: Question) -> list[Rate]:
    """Return the rate of all that is selected, or that of each group.

    Parameters
    ----------
    release : Release
        A release with a design.
    asked : Question
        What `check_rate` let pass.

    Returns
    -------
    list of Rate
        In the order of answers.
    """
    below = other_group(asked, asked.per, release)
    pairs = zip(
        selections_of(release, asked), selections_of(release, below), strict=True
    )
    return [above.ratio(whole) for above, whole in pairs]


def naming_columns(
    release: Release, asked: Question, measure: str
) -> dict[str, AnyArray]:
    """Return columns that say what each line is about.

    Parameters
    ----------
    release : Release
        What is asked.
    asked : Question
        Its conditions and groups.
    measure : str
        What the column ``measure`` says.

    Returns
    -------
    dict of ndarray
        The groups; without any, the conditions.
    """
    selection, grouped, _ = select_records(release, asked)
    if grouped is not None:
        columns = group_columns([grouped(selection).count()])
        columns.popitem()
        return columns
    words: dict[str, list[str]] = {
        "where": asked.where or ["all records"],
        "per": asked.per,
        "minus": asked.minus,
        "measure": [measure],
    }
    return {
        name: np.array([" and ".join(texts)], dtype=object)
        for name, texts in words.items()
        if texts
    }


def against_columns(rates: list[Rate], asked: Question) -> dict[str, AnyArray]:
    """Return the p-value of each rate against a stated number, if there is one.

    Parameters
    ----------
    rates : list of Rate
        The rates.
    asked : Question
        It may state a number.

    Returns
    -------
    dict of ndarray
        One column, or none.
    """
    if asked.against is None:
        return {}
    number, method = stated_number(asked.against), cast("Method | None", asked.method)
    return {P_VALUE: np.array([rate.p_value(number, method=method) for rate in rates])}


def answer_rates(
    release: Release, asked: Question, confidence: float
) -> tuple[dict[str, AnyArray], str]:
    """Return rates in the population, and what their intervals hold.

    Parameters
    ----------
    release : Release
        A release with a design.
    asked : Question
        What `check_rate` let pass.
    confidence : float
        Of each interval.

    Returns
    -------
    tuple of dict and str
        The columns, and a sentence about them.
    """
    check_population(release, asked)
    rates = rates_of(release, asked)
    method = cast("Method | None", asked.method)
    bounds = np.array([rate.interval(confidence, method=method) for rate in rates])
    low, high = BOUND_NAMES["population"]
    parts: Any = [rate.variance_parts() for rate in rates]
    columns = {
        **naming_columns(release, asked, RATE),
        "rate": np.array([float(rate) for rate in rates]),
        low: bounds[:, 0],
        high: bounds[:, 1],
        **against_columns(rates, asked),
        NOISE_SHARE: np.array([part.noise_share for part in parts]),
    }
    about = rates[0].sentence(confidence, method)
    if asked.against is not None:
        about = f"{about} {against_sentence(asked.against, len(rates))}"
    return columns, f"{about} {parts[0]}" if len(parts) == 1 else about
