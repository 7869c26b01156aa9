"""Which values of a column of texts are frequent: a list above a public threshold.

    question --> policy over all words that could occur --> SparseLaplace    public
             --> texts counted where the table is, numbered here             private
             --> words whose noisy counts reach the threshold                published

Nobody lists the words beforehand. The threshold grows with the length of a word and is
known before anything is paid for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast.errors import QuestionError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.sparse import SparseGaussian, SparseLaplace
from blowfish_fast.policies import Policy
from blowfish_fast.release.wide.sparse_release import SparseRelease

from .catalog import TableSpec
from .layout import Layout
from .questions import FrequentQuestion, Spending


def lay_out_words(table: TableSpec, question: FrequentQuestion) -> Layout:
    """Return the layout of a list, which has no bins.

    Parameters
    ----------
    table : TableSpec
        The described table.
    question : FrequentQuestion
        What is asked.

    Returns
    -------
    Layout
        Without axes: words are counted one by one.

    Raises
    ------
    QuestionError
        If the attribute has cells that somebody listed.
    """
    spec = table.attribute(question.attribute)
    if spec.words is None:
        raise QuestionError(
            f"frequent values are listed of a column of words; {spec.name!r} has "
            "stated cells, so ask for its histogram"
        )
    return Layout(table, question, (), 0)


def lister(policy: Policy, question: FrequentQuestion) -> SparseLaplace:
    """Return what lists the frequent words for the budget of a question.

    Parameters
    ----------
    policy : Policy
        The policy of the table, seen through the column of words.
    question : FrequentQuestion
        What is asked, with its budget.

    Returns
    -------
    SparseLaplace
        In rho `SparseGaussian`.

    Raises
    ------
    QuestionError
        If another mechanism is named.
    """
    cost = question.cost
    assert isinstance(cost, Spending)
    budget: Budget = cost.budget
    kind = SparseLaplace if budget.power == 1 else SparseGaussian
    if cost.mechanism not in (None, kind.name):
        raise QuestionError(
            f"frequent values are listed by {kind.name}; leave the mechanism out"
        )
    terms: Any = {"epsilon" if budget.power == 1 else "rho": budget.amount}
    return kind(policy, false_cells=repr(question.false_values), **terms)


def threshold_words(mechanism: Mechanism) -> str:
    """Say which values will be listed, before anything is paid for."""
    assert isinstance(mechanism, SparseLaplace)
    each = mechanism.thresholds
    shown = zip(each["length"], each["threshold"], strict=True)
    # Lengths 1, 5, 9, ..., so that the sentence stays short.
    some = [f"{least:g} at length {name}" for name, least in shown if name.isdigit()]
    return (
        f"{mechanism.name} lists values whose noisy counts reach a threshold that "
        f"grows with their length: {', '.join(some[1::4])}; in the mean "
        f"{float(mechanism.expected_false_cells):.3g} values of which there is no "
        "record are listed too"
    )


def described_list(release: SparseRelease, name: str) -> dict[str, Any]:
    """Return the values of a list as an axis: levels that were published.

    Parameters
    ----------
    release : SparseRelease
        The list.
    name : str
        What the attribute is called.

    Returns
    -------
    dict
        Name, kind, listed values and their number, as `Layout.described` has them.
    """
    cells = release.cells()
    words = cells[name].tolist()
    if f"{name}_cell" in cells:
        strays = cells[f"{name}_cell"].tolist()
        words = [stray or word for word, stray in zip(words, strays, strict=True)]
    return {"attribute": name, "kind": "category", "edges": words, "bins": len(words)}


def listed_numbers(
    release: SparseRelease, confidence: float
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the counts of listed values, and intervals given that they are listed.

    Parameters
    ----------
    release : SparseRelease
        The list.
    confidence : float
        Of each interval to hold the true count.

    Returns
    -------
    tuple of (listed,) and (listed, 2) float64
        Counts, and both ends.
    """
    cells = release.cells(confidence)
    low, high = cells["low"], cells["high"]
    return (
        np.asarray(cells["count"], dtype=np.float64),
        np.stack([low, high], axis=-1).astype(np.float64),
    )


def list_remarks(release: SparseRelease) -> tuple[str, ...]:
    """Say what a list misses, and what may stand on it by chance."""
    whole = () if release.complete else ("the list was cut: longer words are not told",)
    return (
        f"values of fewer than about {release.threshold:g} records may be missing",
        f"{release.expected_false_cells:.3g} of the listed values, in the mean, may "
        "have no record at all",
        *whole,
    )
