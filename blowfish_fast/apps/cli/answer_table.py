"""A table of answers, with what finds its intervals and says what these hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast.data.frames import cell_columns
from blowfish_fast.release.grants import Scope
from blowfish_fast.release.group_answers import GroupedAnswers
from blowfish_fast.release.sampling.sampled_release import VarianceParts
from blowfish_fast.workloads import Identity, Prefixes, Ranges, Rectangles, Workload


@dataclass(frozen=True)
class AnswerTable:
    """A table of answers; its intervals are worked out once a confidence is known.

    Attributes
    ----------
    columns : dict of str to ndarray, shape (answers,)
        What is printed, by the headings of the columns: what was asked, and the
        answers.
    bounds : callable
        Takes a confidence and, as `of`, the scope that the intervals must have;
        returns float64 of shape (answers, 2), the lower and upper ends.
    kind : callable
        Takes a confidence; returns what all intervals hold there, such as "truth" or
        "noise".
    sentence : callable
        Takes a scope and a confidence; returns the sentence that says what the
        intervals hold.
    asked : tuple of Workload or GroupedAnswers
        The queries whose errors a certificate is about; empty where none can be.
    cuts_cells : bool, default False
        Whether some query covers a cell in part. A sentence about intervals of the
        noise alone then says that records are taken to lie evenly in a cell.
    counts : (str, ndarray of bool), optional
        The heading of the column that holds counts of records, and in which of its
        rows it does. Where intervals hold the truth, these counts and their intervals
        are shown no lower than 0.
    noise_shares : callable, optional
        For answers about the population: takes nothing, and returns how much of each
        variance is sampling and how much is noise.
    """

    columns: dict[str, AnyArray]
    bounds: Callable[..., FloatArray]
    kind: Callable[[float], Scope]
    sentence: Callable[[Scope, float], str]
    asked: tuple[Workload | GroupedAnswers, ...]
    cuts_cells: bool = False
    counts: tuple[str, AnyArray] | None = None
    noise_shares: Callable[[], list[VarianceParts]] | None = None


def query_columns(workload: Workload) -> dict[str, AnyArray]:
    """Return columns that say what each query of a workload is."""
    domain = workload.domain
    if isinstance(workload, Identity):
        places = np.unravel_index(np.arange(domain.size), domain.shape)
        return cell_columns(domain, list(places))
    if isinstance(workload, Ranges):
        return {"from_cell": workload.starts, "to_cell": workload.ends}
    if isinstance(workload, Prefixes):
        return {"to_cell": np.arange(1, domain.size + 1)}
    if isinstance(workload, Rectangles):
        return {
            f"{name}_{end}_cell": corner[:, axis]
            for axis, name in enumerate(domain.column_names)
            for end, corner in (("from", workload.starts), ("to", workload.ends))
        }
    return {"query": np.arange(workload.queries)}


def group_columns(answers: list[GroupedAnswers]) -> dict[str, AnyArray]:
    """Return columns that name the groups of answers, and the answers."""
    tables = [answer.to_table(None).columns for answer in answers]
    return {
        name: np.concatenate([_join_pairs(table[name]) for table in tables])
        for name in tables[0]
    }


def _join_pairs(column: AnyArray) -> AnyArray:
    """Write pairs of edges, which stand beside single names, as one text."""
    if column.dtype != object:
        return column
    words = [group_text(name) if isinstance(name, tuple) else name for name in column]
    return np.array(words, dtype=object)


def group_text(name: Any) -> str:
    """Return the name of a group as ``--where`` reads it: 0..25 for a pair of edges.

    Parameters
    ----------
    name : object
        A level, or a pair of edges: numbers, dates or moments.

    Returns
    -------
    str
        Its text; whole numbers have no decimals.

    Examples
    --------
    >>> group_text((0.0, 2.5)), group_text("f")
    ('0..2.5', 'f')
    """
    if not isinstance(name, tuple):
        return str(name)
    return "..".join(
        f"{end:.15g}" if isinstance(end, float) else str(end) for end in name
    )


def counting_rows(
    columns: dict[str, AnyArray], answers: list[GroupedAnswers]
) -> tuple[str, AnyArray] | None:
    """Return the column that counts records and the rows in which it does.

    Parameters
    ----------
    columns : dict of ndarray
        The columns of a table.
    answers : list of GroupedAnswers
        The answers in it, one after the other.

    Returns
    -------
    tuple of str and ndarray of bool, or None
        The name and the rows; None where nothing is counted.
    """
    name = "count" if "count" in columns else "estimate"
    rows = np.repeat(
        [answer.measure == "count" for answer in answers], list(map(len, answers))
    )
    return (name, rows) if rows.any() else None
