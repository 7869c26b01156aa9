"""Inputs that are no histograms: each has a documented outcome, nothing is charged."""

from __future__ import annotations

import functools

import numpy as np

import blowfish_fast as bf
from blowfish_fast.errors import BlowfishError
from blowfish_fast.mechanisms.registry import MECHANISMS

LINE = bf.Domain(6)
FULL = bf.policies.Full(LINE)
GOOD = np.array([3, 1, 4, 1, 5, 9])


def with_value(value):
    changed = GOOD.astype(np.float64)
    changed[2] = value
    return changed


COUNTS = {
    "NaN": with_value(np.nan),
    "infinity": with_value(np.inf),
    "minus infinity": with_value(-np.inf),
    "negative": np.array([3, 1, -4, 1, 5, 9]),
    "fraction": with_value(0.5),
    "above 2^53": with_value(2.0**54),
    "above 2^63": np.full(6, 2**63, dtype=np.uint64),
    "objects": np.array([3, 1, None, 1, 5, 9], dtype=object),
    "words": np.array(["3", "1", "4", "1", "5", "9"]),
    "empty": np.array([], dtype=np.int64),
    "too short": GOOD[:5],
    "too long": np.append(GOOD, 1),
    "wrong shape": GOOD.reshape(2, 3),
    "scalar": np.int64(3),
    "nothing": None,
    "another domain": bf.Histogram(bf.Domain(7), np.arange(7)),
}
"""Counts that no mechanism takes, but for whole numbers that fit 64 bits."""

ACCEPTED = {"above 2^53"}
"""A float that holds a whole number is that number."""

RECORDS = {
    "NaN": [1.0, np.nan],
    "infinity": [1.0, np.inf],
    "below the domain": [-1],
    "above the domain": [6],
    "words": ["one"],
    "two columns": np.zeros((3, 2)),
}
"""Records that no histogram of six cells takes."""


def outcomes():
    """Yield (case, mechanism, outcome): "refused", or what else happened."""
    for name in sorted(MECHANISMS):
        domain = LINE
        try:
            made, _ = MECHANISMS[name].example(domain, FULL, 1)
        except BlowfishError:
            continue
        if name == "kmeans":
            continue
        for case, counts in COUNTS.items():
            ledger = bf.Ledger(None, epsilon=2, policy=FULL)
            ask = functools.partial(ledger.release, made, counts)
            yield case, name, _outcome(ask, ledger)
    for case, records in RECORDS.items():
        ask = functools.partial(bf.Histogram.from_records, LINE, records)
        yield case, "records", _outcome(ask)


def _outcome(action, ledger=None):
    try:
        action()
    except BlowfishError:
        spent = 0 if ledger is None else ledger.spent
        return "refused" if spent == 0 else f"charged {spent}"
    except Exception as problem:
        return f"not foreseen: {problem!r}"
    return "accepted"
