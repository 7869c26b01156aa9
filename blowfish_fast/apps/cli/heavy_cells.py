"""Questions to a list of heavy cells of a domain that nobody could list."""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.apps.cli.answer_table import AnswerTable
from blowfish_fast.apps.cli.options import Question
from blowfish_fast.apps.cli.parsing.where import parse_condition
from blowfish_fast.data.axes import Axis
from blowfish_fast.errors import InputError
from blowfish_fast.release.wide.sparse_release import SparseRelease

CONFIDENCE = 0.95
"""Of the table whose counts are shown before intervals are asked for."""


def answer_list(release: SparseRelease, asked: Question) -> AnswerTable:
    """Return the listed cells, or cells that are named: one value for each column.

    Parameters
    ----------
    release : SparseRelease
        A list of heavy cells.
    asked : Question
        The options of ``blowfish answer``.

    Returns
    -------
    AnswerTable
        The counts, and how their intervals are found.

    Raises
    ------
    InputError
        If anything else is asked than the list, or single cells.
    """
    refuse_others(asked, "lists heavy cells", "--where COLUMN=VALUE for each column")
    if asked.ranges or asked.file or asked.workload:
        raise InputError(
            "this release lists heavy cells; ask it without words for the list, or "
            "name a cell, --where COLUMN=VALUE for each column"
        )
    domain: Any = release.domain
    named = dict(parse_condition(words, domain) for words in asked.where)
    if named and (len(named) < domain.ndim or len(named) < len(asked.where)):
        raise InputError(
            "a cell is named by one value of each column",
            received=" ".join(asked.where),
            way_out=f"Columns are {', '.join(domain.column_names)}",
        )
    if any(isinstance(condition, slice | list) for condition in named.values()):
        raise InputError(
            "a list of heavy cells misses nearly all of a range; name one value of "
            "each column"
        )
    cells = [
        _values_of(condition, domain.attributes[axis])
        for axis, condition in named.items()
    ]
    places = dict(
        zip((domain.column_names[axis] for axis in named), cells, strict=True)
    )

    def table(confidence: float) -> Any:
        return release.at(places, confidence) if named else release.cells(confidence)

    columns = dict(table(CONFIDENCE).columns)
    del columns["low"], columns["high"]
    told = "named before the list was seen" if named else "given that it is listed"
    counted = release.guarantee.counted_records()
    return AnswerTable(
        columns,
        lambda confidence, of: np.stack(
            [table(confidence)["low"], table(confidence)["high"]], axis=1
        ),
        lambda _: "truth",
        lambda _, confidence: (
            f"Each interval holds the true count{counted} in its cell with probability "
            f"at least {confidence:.15g}, {told}."
        ),
        (),
    )


def _values_of(value: Any, attribute: Axis) -> AnyArray:
    """Return a column of one value, as records hold it."""
    if attribute.rule.unit is not None and attribute.steps is not None:
        return np.array([str(value)])
    return np.array([value], dtype=None if isinstance(value, str) else object)


def refuse_others(asked: Question, holds: str, takes: str) -> None:
    """Refuse questions that a release of a wide domain does not answer.

    Parameters
    ----------
    asked : Question
        The options of ``blowfish answer``.
    holds : str
        What the release has, for the message.
    takes : str
        What it is asked by.

    Raises
    ------
    InputError
        If anything but counts is asked.
    """
    others = [asked.sum_of, asked.mean_of, asked.std_of, asked.quantile_of]
    if asked.by or asked.quantiles or asked.share or any(others):
        raise InputError(
            f"this release {holds}, and answers counts: {takes}",
            way_out="Leave --by, --share, --sum, --mean, --std and --quantile out",
        )
