"""What the shell offers after Tab: names of mechanisms, policies, workloads.

Read from texts, so that nothing heavy is imported while
someone waits for a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

POLICIES = (
    ("add_remove", "whether someone is in the data"),
    ("full", "any two values; the number of people is public"),
    ("line", "neighbouring values"),
    ("attribute", "records that differ in one column"),
    ("threshold:", "values at most so many cells apart"),
    ("blocks:", "values inside one block"),
    ("graph:", "pairs of cells from a file"),
    ("product:", "one policy per column"),
)
WORKLOADS = (
    ("identity", "every cell"),
    ("prefixes", "running totals"),
    ("all_ranges", "every range"),
    ("total", "the number of people"),
    ("ranges:", "random ranges, or those of a file"),
    ("rectangles:", "random rectangles, or those of a file"),
    ("marginals:", "the table over some columns"),
)
Offers = list[tuple[str, str]]


def policies(incomplete: str) -> Offers:
    """Return the policies that begin so."""
    return _offers_that_begin(POLICIES, incomplete)


def workloads(incomplete: str) -> Offers:
    """Return the workloads that begin so."""
    return _offers_that_begin(WORKLOADS, incomplete)


def mechanisms(incomplete: str) -> Offers:
    """Return the mechanisms that begin so: modules that their room imports."""
    spec = find_spec("blowfish_fast")
    folder = Path(next(iter(spec.submodule_search_locations or []))) if spec else Path()
    text = (folder / "mechanisms" / "__init__.py").read_text(encoding="utf-8")
    found = re.findall(r"^from \S*\.(\w+) import", text, re.MULTILINE)
    names = sorted(one for one in found if one != "base")
    return _offers_that_begin([(one, "") for one in names], incomplete)


def _offers_that_begin(offers: Iterable[tuple[str, str]], incomplete: str) -> Offers:
    return [one for one in offers if one[0].startswith(incomplete)]
