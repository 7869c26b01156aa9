"""At most k records of each person, from the definition."""

from __future__ import annotations

import hashlib
from collections import defaultdict


def tag(key, person, record):
    return hashlib.md5(f"{key}|{person}|{record}".encode()).hexdigest()


def kept_rows(persons, records, at_most, key):
    """Rank from 0 of the first row with a key, plus the rows with it, at most k."""
    rows = defaultdict(list)
    for row, (person, record) in enumerate(zip(persons, records, strict=True)):
        rows[person].append((tag(key, person, record), row))
    kept = []
    for mine in rows.values():
        tags = [one for one, _ in sorted(mine)]
        kept += [
            row for one, row in mine if tags.index(one) + tags.count(one) <= at_most
        ]
    return sorted(kept)
