"""The mutants that change nothing anyone could see, each with its reason.

``equivalents.toml`` holds one table a mutant: file, rule, the line's text, the column
at which it changes, what then stands there, and why no test can tell, or why the change
is no loss. A test keeps the list free of mutants that no longer exist.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from .rules import Key

LIST = Path(__file__).parent / "equivalents.toml"


def accepted() -> dict[Key, str]:
    """Return the reason of every accepted mutant, by what names it."""
    stated = tomllib.loads(LIST.read_text()).get("equivalent", [])
    named = ("path", "rule", "before", "column", "after")
    return {tuple(one[part] for part in named): one["why"] for one in stated}
