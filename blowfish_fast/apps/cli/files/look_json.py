"""A first look as JSON: the numbers that its page draws, column by column.

For each column:

    {"column": "age", "kind": "numbers", "bars": [{...}], "missing": {...}, ...}
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blowfish_fast.release.wide.look_release import LookRelease


def columns_as_plain(look: LookRelease, confidence: float) -> list[dict[str, Any]]:
    """Return what was published of each column as plain data.

    Parameters
    ----------
    look : LookRelease
        The published look.
    confidence : float
        The probability with which each interval holds.

    Returns
    -------
    list of dict
        For each column its name and kind, its bars, how many answers are missing or
        lie beside the bars, its quantiles and its middle, and whether noise hides so
        much that the page draws it in grey.
    """
    return [
        {
            "column": column.name,
            "kind": column.kind,
            "bars": [bar._asdict() for bar in column.bars(confidence)],
            "missing": column.missing(confidence)._asdict(),
            "other": column.stray(confidence)._asdict(),
            "quantiles": {
                # An end that is infinite is no number of JSON.
                str(part): [None if math.isinf(place) else place for place in places]
                for part, places in column.quantiles(confidence).items()
            },
            "middle": column.middle(),
            "too_noisy": column.too_noisy(confidence),
        }
        for column in look.columns
    ]
