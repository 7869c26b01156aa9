"""The README's table of everything that was measured, from a file of figures.

    python -m tests.trust.table          print the table
    python -m tests.trust.table --write  put it into the README

Each measurement writes its own key into one JSON file; nothing else is kept. The table
is made from that file alone, and a test holds the two equal. The exit code is 1 where a
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
    parser.add_argument("--write", type=Path, nargs="?", const=README)
    asked = parser.parse_args(words)
    found = read_figures(asked.figures)
    table = figures_table(found)
    if asked.write is None:
        sys.stdout.write(table + "\n")
    else:
        asked.write.write_text(
            with_table(asked.write.read_text(encoding="utf-8"), table), encoding="utf-8"
        )
    return 0 if all(entry["passed"] for entry in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
