"""The table of everything that was measured, from a file of figures.

    python -m tests.trust.table          print the table
    python -m tests.trust.table --write  into docs/trust.md, and five rows into README

Each measurement writes its own key into one JSON file; nothing else is kept. The tables
are made from that file alone, and a test holds them equal. The exit code is 1 where a
goal was missed.

    docs/trust.json   {"audit": {"measured": ..., "goal": ..., "passed": ...}, ...}
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from blowfish_fast.audit.report import read_figures
from blowfish_fast.errors import InputError

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "trust.json"
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "trust.md"

LINK = "docs/trust.md"
BEGIN = "<!-- trust table: begin -->"
END = "<!-- trust table: end -->"

ROWS = {
    "audit": "audit",
    "power": "power of the audit",
    "mutants": "planted bugs",
    "grey_box": "grey box",
    "rho": "budgets in rho",
    "selections": "private choices",
    "coverage": "intervals of the noise",
    "truth": "intervals of the truth",
    "groups": "means and the like of groups",
    "wide": "lists, ranges and maps of wide domains",
    "population": "intervals of the population",
    "certificates": "certificates",
    "kills": "ledger, kill -9",
    "concurrency": "concurrency",
    "noise_speed": "exact secure noise",
    "samplers": "samplers",
    "timing": "timing channel",
    "inputs": "inputs",
    "fuzz": "fuzzing",
    "memory": "memory",
    "start_up": "start-up",
}
"""Keys of the file in the order of the table, and what they are called there."""

FIRST = ("audit", "mutants", "truth", "kills", "fuzz")
"""What the README shows."""

COLUMNS = ("test", "goal", "measured", "result")


def figures_table(figures: dict[str, dict[str, Any]]) -> str:
    """Return the table in Markdown: one row per key, known keys first.

    Examples
    --------
    >>> entry = {"goal": "none lost", "measured": "0 of 1,000", "passed": True}
    >>> print(figures_table({"kills": entry}))
    | test | goal | measured | result |
    |---|---|---|---|
    | ledger, kill -9 | none lost | 0 of 1,000 | passed |
    """
    order = [*(key for key in ROWS if key in figures)]
    order += sorted(figures.keys() - ROWS.keys())
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for key in order:
        entry = figures[key]
        name = ROWS.get(key, key.replace("_", " "))
        result = "passed" if entry["passed"] else "NOT PASSED"
        lines.append(f"| {name} | {entry['goal']} | {entry['measured']} | {result} |")
    return "\n".join(lines)


def short_table(figures: dict[str, dict[str, Any]]) -> str:
    """Return the rows for the README, without goals, and how many goals are met.

    Examples
    --------
    >>> entry = {"goal": "none lost", "measured": "0 of 1,000", "passed": True}
    >>> print(short_table({"kills": entry, "memory": entry}))
    | test | measured |
    |---|---|
    | ledger, kill -9 | 0 of 1,000 |
    <BLANKLINE>
    2 of 2 goals are met: [all of them](docs/trust.md).
    """
    lines = ["| test | measured |", "|---|---|"]
    lines += [
        f"| {ROWS[key]} | {figures[key]['measured']} |"
        for key in FIRST
        if key in figures
    ]
    met = sum(bool(entry["passed"]) for entry in figures.values())
    lines += ["", f"{met} of {len(figures)} goals are met: [all of them]({LINK})."]
    return "\n".join(lines)


def with_table(text: str, table: str) -> str:
    """Return a document with the table between its two marks."""
    if BEGIN not in text or END not in text:
        raise InputError(f"the document has no marks {BEGIN} and {END}")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main(words: list[str] | None = None) -> int:
    """Print the table or write it into a document; 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--figures", type=Path, default=FIGURES)
    parser.add_argument("--write", type=Path, nargs="?", const=PAGE)
    asked = parser.parse_args(words)
    figures = read_figures(asked.figures)
    if asked.write is None:
        sys.stdout.write(figures_table(figures) + "\n")
    else:
        _write(asked.write, figures_table(figures))
    if asked.write == PAGE:
        _write(README, short_table(figures))
    return 0 if all(entry["passed"] for entry in figures.values()) else 1


def _write(document: Path, table: str) -> None:
    text = document.read_text(encoding="utf-8")
    document.write_text(with_table(text, table), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
