"""``blowfish trust``: the table of everything that was measured."""

from __future__ import annotations

import sys
from pathlib import Path

from blowfish_fast.apps.cli.printing import show
from blowfish_fast.audit.trust_table import figures_table, read_figures, with_table


def run_trust(figures: Path, write: Path | None, *, as_json: bool) -> bool:
    """Print the table, or put it into a document; return whether all goals are met."""
    found = read_figures(figures)
    table = figures_table(found)
    if write is not None:
        text = with_table(write.read_text(encoding="utf-8"), table)
        write.write_text(text, encoding="utf-8")
    if as_json:
        show(found)
    elif write is None:
        sys.stdout.write(table + "\n")
    return all(entry["passed"] for entry in found.values())
