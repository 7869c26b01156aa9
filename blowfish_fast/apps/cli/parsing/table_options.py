"""Options about tables that the data choose: which are demanded, and where they fit."""

from __future__ import annotations

import re

from blowfish_fast.data.domain import Domain, WideDomain
from blowfish_fast.errors import InputError

from .domain import find_column
from .job import Job


def parse_demanded(words: list[str], domain: Domain | WideDomain) -> list[list[int]]:
    """Return the columns of tables that are always measured, ``age x sex``.

    Parameters
    ----------
    words : list of str
        A table each: columns with " x " between, as a release lists what it measured,
        or with "+", as a workload does.
    domain : Domain or WideDomain
        Whose columns are meant.

    Returns
    -------
    list of lists of int
        The columns of each table, by number.

    Examples
    --------
    >>> survey = Domain((4, 3), names=["age", "sex"])
    >>> parse_demanded(["age x sex"], survey) == parse_demanded(["age+sex"], survey)
    True
    """
    return [
        [find_column(column, domain) for column in re.split(r"\s+x\s+|\+", table)]
        for table in words
    ]


def refuse_choice_options(job: Job, beside: str) -> None:
    """Stop where options about chosen tables stand beside something else.

    Parameters
    ----------
    job : Job
        The release as it was stated.
    beside : str
        What they stand beside: "another workload", or "the plan of public sizes".

    Raises
    ------
    InputError
        If one of them was stated.
    """
    stated = {
        "--always": job.always or None,
        "--rounds": job.rounds,
        "--model-cells": job.model_cells,
    }
    way_in = {"another workload": "Ask for tables, --tables 2"}
    for flag, value in stated.items():
        if value is not None:
            asked = way_in.get(beside, "State --choose data or --choose best")
            raise InputError(
                f"{flag} is about tables that the data choose",
                received=f"{flag} beside {beside}",
                way_out=f"{asked}, or leave {flag} out",
            )
