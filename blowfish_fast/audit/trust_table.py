"""The table of everything that was measured, from a file of figures.

Each measurement writes its own key into one JSON file; nothing else is kept. The table
of the README is made from that file alone, and a test holds the two equal.

    docs/trust.json   {"audit": {"measured": ..., "goal": ..., "passed": ...}, ...}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from blowfish_fast.errors import InputError

BEGIN = "<!-- trust table: begin -->"
END = "<!-- trust table: end -->"

ROWS = {
    "audit": "audit",
    "power": "power of the audit",
    "mutants": "planted bugs",
    "grey_box": "grey box",
    "coverage": "intervals",
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


def note_figures(path: Path, figures: dict[str, dict[str, Any]]) -> None:
    """Write keys into the file of figures; other keys stay as they are.

    Each entry has `goal` and `measured`, sentences, and `passed`; more is welcome.

    Examples
    --------
    >>> import tempfile
    >>> entry = {"goal": "none lost", "measured": "0 of 1,000", "passed": True}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     note_figures(Path(folder, "trust.json"), {"kills": entry})
    ...     print(sorted(read_figures(Path(folder, "trust.json"))))
    ['kills']
    """
    known = read_figures(path) if path.exists() else {}
    for key, entry in figures.items():
        missing = {"goal", "measured", "passed"} - entry.keys()
        if missing:
            raise InputError(f"{key} lacks {sorted(missing)}; received {entry}")
        known[key] = entry
    text = json.dumps(known, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def read_figures(path: Path) -> dict[str, dict[str, Any]]:
    """Read the file of figures."""
    try:
        found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InputError(
            f"{path} holds no figures ({problem}); blowfish audit --record writes them"
        ) from problem
    return found


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
