"""Check that text files end with one newline and no line ends with blanks.

    python .ci/whitespace.py              the whole tree
    python .ci/whitespace.py FILE ...     some files, as pre-commit passes them

Exit status 1 names what does not. Pictures and other files that are no text are passed
over, and so is what tools leave in the tree.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (".ci", "asv_benchmarks", "blowfish_fast", "docs", "examples", "tests")
LEFT_BY_TOOLS = {"__pycache__", "env", "html", "results"}
# Markdown breaks a line at two blanks; the tools of notebooks write their own files.
BLANKS_ALLOWED = (".md", ".ipynb")


def complaints(path: Path) -> list[str]:
    """Return what is wrong with one file, a line each."""
    content = path.read_bytes()
    if b"\0" in content or not content:
        return []
    found = []
    if b"\r" in content:
        found.append(f"{path}: lines end with a carriage return")
    if not content.endswith(b"\n"):
        found.append(f"{path}: the last line has no end")
    elif content.endswith(b"\n\n"):
        found.append(f"{path}: empty lines at the end")
    if path.suffix not in BLANKS_ALLOWED:
        found += [
            f"{path}:{number}: blanks at the end of the line"
            for number, line in enumerate(content.splitlines(), start=1)
            if line != line.rstrip()
        ]
    return found


def whole_tree() -> list[Path]:
    """Return the files of the project's folders and those beside them."""
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    every = [*ROOT.glob("*"), *inside]
    return [path for path in every if not LEFT_BY_TOOLS & set(path.parts)]


def main(names: list[str]) -> int:
    """Print every complaint; return the exit status."""
    paths = [Path(name) for name in names] or whole_tree()
    found = [
        complaint for path in paths if path.is_file() for complaint in complaints(path)
    ]
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
