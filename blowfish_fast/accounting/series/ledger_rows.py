"""Series that a ledger holds, read off its log: nobody has to say how they were kept.

::

    received/week/3-8-1024-8543da9de878/2026-W46     name of the series, and an epoch
    received/week/blocks-7/2026-W46                  epochs beside blocks of seven
    received/week/2026-W46                           every epoch by itself

Weights stand in the details of each row. Whether closed epochs ever change does not
stand in a ledger, so intervals hold the noise alone where rows are weighed.
"""

from __future__ import annotations

from typing import Any

from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.release.file import Release

from ..ledger import Ledger
from .blocks import EpochBlocks
from .epochs import FORMS
from .readings import SINGLE, Promise
from .saved import SavedSeries
from .weights import Weights


def stored_series(ledger: Ledger) -> dict[str, SavedSeries]:
    """Return the series of a ledger whose stored rows can be added up. Free.

    Parameters
    ----------
    ledger : Ledger
        It is only read.

    Returns
    -------
    dict from str to SavedSeries
        By the name that charges are filed under. A series without a stored row is left
        out, and so is one whose rows leave a gap or lie over different cells.
    """
    prices: dict[str, dict[str, int]] = {}
    added: set[str] = set()
    for charge in ledger._journal.history():
        note = charge.content.get("note") or {}
        if "series" not in note or "epoch" not in note:
            continue
        name, epoch = str(note["series"]), str(note["epoch"])
        series_note = charge.content.get("series")
        if series_note is None:
            added.add(name)
        spent = prices.setdefault(name, {})
        price = charge.cost if series_note is None else series_note["price"]
        spent[epoch] = spent.get(epoch, 0) + price
    stored = {}
    for name, spent in prices.items():
        if name.endswith("/sums"):
            continue
        units = sum(spent.values()) if name in added else max(spent.values())
        sums = prices.get(f"{name}/sums", {})
        units += max(sums.values(), default=0)
        try:
            stored[name] = _saved(ledger, name, list(spent), list(sums), units)
        except BlowfishError:
            # A gap, other cells, or an epoch that was charged and not stored yet.
            continue
    return stored


def _saved(
    ledger: Ledger, name: str, epochs: list[str], ends: list[str], units: int
) -> SavedSeries:
    """Return one series of a ledger; refuse rows that cannot be added up."""
    column, every, scheme = _read_name(name)
    rows = {epoch: _row(ledger, f"{name}/{epoch}") for epoch in epochs}
    blocks = {epoch: _row(ledger, f"{name}/sums/{epoch}") for epoch in ends}
    weights = next(iter(rows.values())).details.get("weights")
    if weights is not None:
        scheme = Weights(tuple(weights))
    currency = ledger.currency
    series = SavedSeries(
        rows,
        blocks,
        column=column,
        every=every,
        scheme=scheme,
        frozen=False,
        promise=Promise(
            Budget(currency.amount(units), currency.power),
            f"The series {name} has cost {currency.words(units)} so far.",
        ),
    )
    series._check_rows()
    return series


def _row(ledger: Ledger, request: str) -> Release:
    row: Any = ledger.replay(request)
    if not isinstance(row, Release):
        raise BlowfishError(f"{request} is no stored histogram")
    return row


def _read_name(name: str) -> tuple[str, str, Weights | EpochBlocks]:
    """Return the column, the length of epochs and the blocks that a name tells of."""
    parts = name.split("/")
    # From the right: a column may be called like a length, or hold a slash.
    at = next(
        (at for at in range(len(parts) - 1, 0, -1) if parts[at] in FORMS), len(parts)
    )
    if at == len(parts):
        raise BlowfishError(f"{name} names no length of epochs")
    scheme: Weights | EpochBlocks = SINGLE
    for part in parts[at + 1 :]:
        if part.startswith("blocks-"):
            scheme = EpochBlocks(int(part.removeprefix("blocks-")))
    return "/".join(parts[:at]), parts[at], scheme
