"""What counting at most k records of a person leaves out: for the curator, and for all.

    records of a person   1  2  3  4  5        k = 3 leaves out two of her records
                          *  *  *  .  .

The curator sees the true numbers, for several k side by side. Analysts read what was
measured of them, once, at a price that the curator pays (`truncation_loss`, Lemma PE7);
where the policy does not hide how many records a person has, it is exact and free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.accounting.contributions import LostRecords

USUAL = (1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000)
"""Numbers of records of a person that are held side by side."""
LITTLE = 0.01
"""The part of all records that may be left out and is still little."""
LOSS = "lost-records"
"""The name under which a ledger keeps what was measured, for everybody."""


def true_losses(held: IntArray, at_most: int) -> dict[str, Any]:
    """Return what each k leaves out, by true numbers: for the curator alone.

    Parameters
    ----------
    held : (persons,) int64
        How many records each person has.
    at_most : int
        The k of the table, which is listed with the usual ones.

    Returns
    -------
    dict
        "records" and "persons" in all; "losses", which have "at_most", "records" and
        "persons" that are cut, and the "part" of all records; and "little", the least
        listed k that leaves out at most 1 % of them.

    Examples
    --------
    >>> table = true_losses(np.array([1] * 90 + [2] * 9 + [12]), 1)
    >>> table["records"], table["persons"], table["little"]
    (120, 100, 15)
    >>> [(row["at_most"], row["records"], row["persons"]) for row in table["losses"]]
    [(1, 20, 10), (2, 10, 1), (3, 9, 1), (5, 7, 1), (8, 4, 1), (10, 2, 1), (15, 0, 0)]
    """
    largest, total = int(held.max(initial=0)), int(held.sum())
    # The first k that leaves out nothing ends the list.
    beyond = next((k for k in USUAL if k >= largest), largest)
    numbers = sorted({at_most, beyond, *(k for k in USUAL if k < largest)})
    losses: list[dict[str, Any]] = [
        {
            "at_most": k,
            "records": int(np.maximum(held - k, 0).sum()),
            "persons": int((held > k).sum()),
        }
        for k in numbers
    ]
    for row in losses:
        row["part"] = row["records"] / total if total else 0.0
    little = min(row["at_most"] for row in losses if row["part"] <= LITTLE)
    return {
        "records": total,
        "persons": int(held.size),
        "losses": losses,
        "little": little,
    }


def plain_loss(lost: LostRecords) -> dict[str, Any]:
    """Return a measured loss as plain data, for everybody.

    Parameters
    ----------
    lost : LostRecords
        What `truncation_loss` returned for the k of the table.

    Returns
    -------
    dict
        The "estimate", its interval "low" to "high" and "confidence", the numbers
        "at_most" and "up_to", and a "sentence".
    """
    return {
        "at_most": lost.at_most,
        "up_to": lost.up_to,
        "estimate": lost.estimate,
        "low": lost.low,
        "high": lost.high,
        "confidence": lost.confidence,
        "sentence": lost.sentence,
    }


def loss_name(at_most: int, up_to: int, price: str, confidence: float) -> str:
    """Return the name of a measured loss in the ledger: other terms, another name.

    Parameters
    ----------
    at_most : int
        How many records of a person are counted.
    up_to : int
        The last record of a person that is looked at.
    price : str
        What is paid, in words.
    confidence : float
        How surely the interval holds.

    Returns
    -------
    str
        The name.
    """
    return f"{LOSS}/{at_most}/{up_to}/{price}/{confidence:g}"


def from_groups(held: Sequence[int], persons: Sequence[int]) -> IntArray:
    """Return how many records each person has, from persons of each number.

    Parameters
    ----------
    held : sequence of int
        Numbers of records.
    persons : sequence of int
        How many persons have each.

    Returns
    -------
    (persons,) int64
        In ascending order.
    """
    repeated: IntArray = np.sort(
        np.repeat(np.array(held, np.int64), np.array(persons, np.int64))
    )
    return repeated
