"""Make the notebooks of this folder from their sources, and execute them.

    NAME.py                          NAME.ipynb
    # %% [markdown]                  a cell of text
    # What is released               ...
    # %%                             a cell of code, with what it printed and drew
    release = mechanism.release(...)

    python examples/notebooks/build.py              make and execute all
    python examples/notebooks/build.py city_map     only that one
    python examples/notebooks/build.py --check      execute all, keep nothing

``--check`` fails where a cell fails or warns, or where a kept notebook is not made from
its source. Needs the extras ``notebooks`` and ``sql``. Notebooks that need packages
which are not there (`NEEDS`) are not executed: what they printed before is kept.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MARK = "# %%"
SECONDS = 300
NEEDS = {"audit_of_strangers": ("opendp", "snsql", "diffprivlib")}
"""What a notebook imports beside the extras above: the extra ``rivals``."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class Cell(NamedTuple):
    """One cell: "markdown" or "code", and its text."""

    kind: str
    text: str


def sources() -> dict[str, Path]:
    """Return every source of a notebook, by name."""
    paths = sorted(HERE.glob("*.py"))
    return {path.stem: path for path in paths if path.stem != "build"}


def cells_of(text: str) -> Iterator[Cell]:
    """Cut a source into its cells; what stands before the first mark is left out."""
    kind, lines = "", []
    for line in [*text.splitlines(), MARK]:
        if not line.startswith(MARK):
            lines.append(line)
            continue
        if kind:
            body = "\n".join(map(_uncommented, lines) if kind == "markdown" else lines)
            yield Cell(kind, body.strip("\n"))
        kind, lines = ("markdown" if "[markdown]" in line else "code"), []


def _uncommented(line: str) -> str:
    return line.removeprefix("#").removeprefix(" ")


def made(name: str) -> Any:
    """Return the notebook of a source, not executed."""
    from nbformat import v4

    cells = []
    for number, cell in enumerate(cells_of(sources()[name].read_text())):
        new = v4.new_markdown_cell if cell.kind == "markdown" else v4.new_code_cell
        cells.append(new(cell.text, id=f"cell-{number}"))
    return v4.new_notebook(cells=cells, metadata=METADATA)


def executed(name: str) -> Any:
    """Return the notebook with its outputs; raise where a cell fails or warns."""
    from nbclient import NotebookClient

    notebook = made(name)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=SECONDS,
            kernel_name="python3",
            extra_arguments=["--log-level=ERROR"],
            record_timing=False,
            resources={"metadata": {"path": folder}},
        )
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        client.execute(
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            }
        )
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise RuntimeError(f"{name} wrote a warning:\n{output.text}")
    return notebook


def lacking(name: str) -> list[str]:
    """Return the packages of a notebook that cannot be imported here."""
    absent = []
    for package in NEEDS.get(name, ()):
        try:
            importlib.import_module(package)
        except ImportError:
            absent.append(package)
    return absent


def main() -> int:
    """Make, execute and keep notebooks, or check those that are kept."""
    import nbformat

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="all if left out")
    parser.add_argument("--check", action="store_true", help="keep nothing")
    given = parser.parse_args()
    stale = []
    for name in given.names or sources():
        kept = HERE / f"{name}.ipynb"
        start = time.perf_counter()
        absent = lacking(name)
        if absent:
            notebook = made(name)
            print(f"{name}: not executed, since {', '.join(absent)} cannot be imported")
        else:
            notebook = executed(name)
            seconds = time.perf_counter() - start
            print(f"{name}: executed in {seconds:.1f} s", flush=True)
        if not given.check and not absent:
            nbformat.write(notebook, kept)
        elif not kept.exists() or not same_cells(nbformat.read(kept, 4), notebook):
            stale.append(name)
    if stale:
        print(f"not made from their sources: {', '.join(stale)}; run build.py")
    return 1 if stale else 0


def same_cells(one: Any, other: Any) -> bool:
    """Return whether two notebooks have the same cells, whatever was printed."""
    return [(cell.cell_type, cell.source) for cell in one.cells] == [
        (cell.cell_type, cell.source) for cell in other.cells
    ]


if __name__ == "__main__":
    sys.exit(main())
