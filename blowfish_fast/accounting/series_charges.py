"""What a release adds to the price of its series, and which releases it refuses.

The journal asks here inside the transaction that charges, so that two processes agree
on every rule. Only the public contents of the log are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from blowfish_fast.errors import LedgerError


def series_due(
    contents: Iterable[Mapping[str, Any]], series: Mapping[str, Any], cost: int
) -> int:
    """Return by how much a release raises the dearest epoch of its series.

    Lemma SR1, and Lemma SW1 for records that are weighed by their age.

    Parameters
    ----------
    contents : iterable of mapping
        What the log holds of every charge so far.
    series : mapping
        What the release says of itself: ``name``, ``epoch``, ``start``, and where
        records are weighed ``number``, ``weights`` and ``cells``.
    cost : int
        The full price of the release, in the ledger's units.

    Returns
    -------
    int
        Units that are due now: 0 while no epoch is dearer than the dearest so far.

    Raises
    ------
    LedgerError
        For a series that was ended, an epoch that is closed, a gap between rows, and
        rows of other weights or cells. Nothing is charged then.
    """
    spent: dict[str, int] = {}
    rows: dict[int, Mapping[str, Any]] = {}
    latest = series["start"]
    for content in contents:
        if content.get("ended_series") == series["name"]:
            raise LedgerError(
                f"the series {series['name']} was ended: {content.get('why', '')}. "
                "Nothing was charged"
            )
        other = content.get("series")
        if other is None or other["name"] != series["name"]:
            continue
        spent[other["start"]] = spent.get(other["start"], 0) + other["price"]
        latest = max(latest, other["start"])
        if "number" in other:
            rows[other["number"]] = other
    if "number" in series:
        _refuse_row(series, rows)
    elif latest > series["start"]:
        raise LedgerError(
            f"the epoch {series['epoch']!r} is closed: a later one was released, and "
            "records that came in since would be read a second time. Release them in "
            "the epoch in which they arrived, or outside the series at their own "
            "price; nothing was charged"
        )
    dearest = max(spent.values(), default=0)
    epoch = spent.get(series["start"], 0) + cost
    return max(dearest, epoch) - dearest


def _refuse_row(
    series: Mapping[str, Any], rows: Mapping[int, Mapping[str, Any]]
) -> None:
    """Refuse a row of other weights or cells, and one that would leave a gap.

    `rows` are those that were charged before, by the number of their epoch. Rows need
    no order: one that was left out may be drawn later, at its own price (Lemma SW1).
    """
    for other in rows.values():
        if other["weights"] != series["weights"] or other["cells"] != series["cells"]:
            raise LedgerError(
                f"the series {series['name']} was begun with other weights, or over "
                "other cells; rows that differ do not add up. Nothing was charged"
            )
    number = series["number"]
    # The series NAME/sums holds totals of whole blocks of epochs beside the rows of the
    # series NAME. A block may be released without the one before it.
    if not rows or number in rows or series["name"].endswith("/sums"):
        return
    if number < min(rows):
        raise LedgerError(
            f"the epoch {series['epoch']!r} lies before the first one of the series, "
            "whose releases count nothing earlier. Nothing was charged"
        )
    if number - 1 not in rows:
        raise LedgerError(
            f"the epoch before {series['epoch']!r} has no release, without which "
            "nothing from there on is determined. Release it first: it may be drawn "
            "now, from the arrivals up to its end. Nothing was charged"
        )
