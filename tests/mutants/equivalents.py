"""The mutants that change nothing anyone could see, each with its reason.

``equivalents.toml`` holds one table a mutant: file, rule, the line's text, what it
becomes, and why no test can tell, or why the change is no loss. A test keeps the list
free of mutants that no longer exist.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

LIST = Path(__file__).parent / "equivalents.toml"
Key = tuple[str, str, str, str]


def accepted() -> dict[Key, str]:
    """Return the reason of every accepted mutant, by what names it."""
    stated = tomllib.loads(LIST.read_text()).get("equivalent", [])
    return {
        (one["path"], one["rule"], one["before"], one["after"]): one["why"]
        for one in stated
    }
