"""Print the oldest supported version of every dependency, as constraints for pip.

    python .ci/oldest_dependencies.py                 what every user gets
    python .ci/oldest_dependencies.py plot frames     and these extras

The lower bounds of ``pyproject.toml`` are the only source: ``numpy>=2.0`` becomes
``numpy==2.0``. A dependency without a lower bound is an error, since nobody could say
with which version it was tried. Used by the part `wheels` of ``.ci/run``:

    pip install blowfish_fast.whl --constraint oldest.txt
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]+)\])?(?P<bounds>.*)")


def oldest(project: dict[str, object], extras: list[str]) -> dict[str, str]:
    """Return the least version of each direct dependency, by name.

    Parameters
    ----------
    project : dict
        The table ``[project]`` of ``pyproject.toml``.
    extras : list of str
        Extras whose dependencies are wanted too; an extra may name others.
    """
    name = project["name"]
    optional = project["optional-dependencies"]
    waiting = list(project["dependencies"])
    waiting += [f"{name}[{extra}]" for extra in extras]
    found: dict[str, str] = {}
    while waiting:
        requirement = waiting.pop().partition(";")[0].strip()
        parts = REQUIREMENT.fullmatch(requirement)
        if parts["name"] == name:
            for extra in parts["extras"].split(","):
                waiting += optional[extra]
            continue
        bound = re.search(r">=\s*([\w.]+)", parts["bounds"])
        if bound is None:
            raise SystemExit(f"{requirement}: no lower bound (>=) in pyproject.toml")
        found[parts["name"]] = bound[1]
    return dict(sorted(found.items()))


def main(extras: list[str]) -> None:
    """Print the constraints."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    for name, version in oldest(project, extras).items():
        sys.stdout.write(f"{name}=={version}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
