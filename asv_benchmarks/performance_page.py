"""Write docs/performance.md from what asv and the ratio check have measured.

    python asv_benchmarks/performance_page.py --results asv_benchmarks/results
    python asv_benchmarks/performance_page.py            the page alone, anew
    python asv_benchmarks/performance_page.py --check    status 1 if it is out of date

    asv run ---> results/MACHINE/*.json ---> recorded/ARCHITECTURE/performance.json --+
    ratio_check.py --record ---------------> recorded/ARCHITECTURE/ratios.json -------+
    docs/benchmarks.md: tables beside other code -------------------------------------+
                                                                                      |
                                                          docs/performance.md <-------+

The results of asv are large and belong to one checkout, so the figures that the page
shows are kept here, a folder for each architecture (``uname -m``); from them the page
can be made anew anywhere. Every recorded architecture has its own tables.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
PAGE = DOCS / "performance.md"
RECORDED = HERE / "recorded"
SIZE_NAMES = ("cells", "draws", "leaves", "rows", "buckets")
SHOWN = (2**12, 2**16, 2**20)
WAITS = (
    *("mechanisms.LaplaceRelease", "mechanisms.DawaRelease"),
    *("mechanisms.DawaGridRelease", "mechanisms.DawaAllRanges"),
    *("mechanisms.ReleaseReading", "intervals.RangeIntervals"),
    *("transformed.Translate", "transformed.TranslateAnew"),
    *("transformed.Compare", "transformed.Recommend"),
)
REFERENCES = {
    "sort": "`numpy.sort` of as many floats",
    "log": "`numpy.log` of as many floats",
    "passes": "`numpy.cumsum` and two more passes",
}

OPENING = """\
# Performance

How long the core takes, by size, beside numpy and beside other code. Everything here is
CPU time of one core, unless it is said otherwise; this page is made by
`asv_benchmarks/performance_page.py` from measurements, and not edited by hand. What
each benchmark does is told in [benchmarks.md](benchmarks.md), and how errors compare in
[accuracy.md](accuracy.md).
"""

AGAINST_NUMPY = """\
### Against numpy

Least CPU time of a call over many rounds in which the kernel and fixed numpy work of
the same size take turns in one process. The ratio is what CI watches:
`asv_benchmarks/ratio_check.py` measures it again and names every kernel that takes more
than 1.2 times its recorded ratio, after measuring it several times more. Wall time is
never used. The ratios depend on the processor, on the compiler and on a quiet machine:
elsewhere than where they were recorded, and where numpy itself is more than 15 % from
its recorded time, they are printed and not judged.
"""

BY_SIZE = """\
### By size

Median CPU time of a call as asv measured it. The last column is the time for a cell,
draw or leaf at the largest size; data that is *dense*, *sparse*, *distinct* or
*fractions* is described in [benchmarks.md](benchmarks.md). Times belong to a machine
that others shared, and ratios to its architecture: they do not carry over to another.
"""

WAITED = """\
### What people wait for

Whole releases with exact noise, and questions asked of a release or before one: the
median of two calls and more. Releases and what is read of them are wall time, other
intervals and what advises CPU time, all on two cores.
"""

BESIDE_OTHERS = """\
## Beside other code

Both sides in one process, measured for [benchmarks.md](benchmarks.md), which says how.
The prototypes are what this library grew from; their noise is cheaper, and no proof
covers it.
"""

AGAIN = """\
## Measure again

From a checkout with `pip install -e '.[dev]'`, on an idle machine:

```sh
python asv_benchmarks/ratio_check.py            # has a kernel become slower?
python asv_benchmarks/ratio_check.py --record   # for another machine or other versions
cd asv_benchmarks
asv machine --yes
commit=$(git rev-parse HEAD)
asv run --environment existing:python --set-commit-hash $commit \\
    --bench '^(kernels|mechanisms|intervals|transformed)' \\
    -a 'repeat=(2, 6, 0.25)' -a rounds=1        # half an hour
python performance_page.py --results results    # this page anew
asv publish && asv preview                      # graphs over commits, in html/
```
"""


def figures_of(results: Path) -> dict[str, Any]:
    """Return the times of kernels and waits in a results folder of asv.

    The newest file of the folder counts; a benchmark that did not run is left out.
    """
    benchmarks = json.loads((results / "benchmarks.json").read_text())
    files = [one for one in results.glob("*/*.json") if one.name != "machine.json"]
    if not files:
        raise SystemExit(f"{results}: no results; run asv with --set-commit-hash")
    newest = json.loads(max(files, key=lambda one: one.stat().st_mtime).read_text())
    columns = newest["result_columns"]
    kernels, waits = {}, {}
    for name, values in sorted(newest["results"].items()):
        found = dict(zip(columns, values, strict=False))
        room, label, _ = name.split(".")
        waited = f"{room}.{label}" in WAITS
        if (room != "kernels" and not waited) or not any(found["result"] or []):
            continue
        (waits if waited else kernels)[label] = {
            "names": benchmarks[name]["param_names"],
            "parameters": [[_plain(one) for one in axis] for axis in found["params"]],
            "seconds": [_rounded(one) for one in found["result"]],
        }
    day = datetime.fromtimestamp(newest["date"] / 1000, UTC).date()
    return {"code of": str(day), "kernels": kernels, "waits": waits}


def _plain(parameter: str) -> str:
    return parameter.strip("'")


def _rounded(seconds: float | None) -> float | None:
    missing = seconds is None or math.isnan(seconds)
    return None if missing else float(f"{seconds:.3g}")


def page() -> str:
    """Return the text of the page."""
    measured = []
    for folder in sorted(RECORDED.iterdir()):
        ratios = json.loads((folder / "ratios.json").read_text())
        measured += [
            _recorded_on(folder.name, ratios["recorded on"]),
            AGAINST_NUMPY,
            _ratio_table(ratios["kernels"]),
        ]
        figures = folder / "performance.json"
        if figures.exists():
            kept = json.loads(figures.read_text())
            code = f"The code is that of {kept['code of']}.\n"
            measured += [BY_SIZE, code, _size_table(kept["kernels"])]
            measured += [WAITED, _wait_table(kept["waits"])]
    return "\n".join(
        [
            OPENING,
            *measured,
            BESIDE_OTHERS,
            "The core beside its prototypes:\n",
            _table_below("benchmarks.md", "## Beside the prototypes"),
            "Whole releases, in milliseconds, beside a port of DPBench:\n",
            _table_below("benchmarks.md", "## Beside DPBench"),
            AGAIN,
        ]
    )


def _recorded_on(architecture: str, machine: dict[str, str]) -> str:
    return (
        f"## On {architecture}\n\n"
        f"Measured on one virtual core ({machine['processor']}) with Python "
        f"{machine['python']}, numpy {machine['numpy']} and numba {machine['numba']}.\n"
    )


def _ratio_table(kernels: dict[str, dict[str, Any]]) -> str:
    rows = [
        (
            f"`{name}`",
            _power(one["cells"]),
            _time(one["microseconds"] / 1e6),
            REFERENCES[one["reference"]],
            f"{one['ratio']:.3g}",
        )
        for name, one in kernels.items()
    ]
    return _table(("kernel", "cells", "CPU time", "numpy", "ratio"), rows)


def _size_table(kernels: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name, one in kernels.items():
        for setting, times in _by_setting(one).items():
            if all(size in times for size in SHOWN):
                each = f"{times[SHOWN[-1]] / SHOWN[-1] * 1e9:.3g} ns"
                shown = [_time(times[size]) for size in SHOWN]
                rows.append((f"`{name}`", setting, *shown, each))
    heads = ("benchmark", "data or form", *(_power(size) for size in SHOWN), "each")
    return _table(heads, rows)


def _wait_table(waits: dict[str, dict[str, Any]]) -> str:
    """Return a row for each setting, with a time for each size that was tried."""
    rows = []
    for name, one in waits.items():
        sized = one if "cells" in one["names"] else _at_one_size(one)
        for setting, times in _by_setting(sized).items():
            shown = [_time(times[size]) if size in times else "" for size in SHOWN]
            if any(shown):
                rows.append((f"`{name}`", setting, *shown))
    heads = ("benchmark", "data, policy or question", *(_power(one) for one in SHOWN))
    return _table(heads, rows)


def _at_one_size(one: dict[str, Any]) -> dict[str, Any]:
    """Return a benchmark that has one size with that size among its parameters."""
    return {
        "names": ["cells", *one["names"]],
        "parameters": [[str(SHOWN[-1])], *one["parameters"]],
        "seconds": one["seconds"],
    }


def _by_setting(one: dict[str, Any]) -> dict[str, dict[int, float]]:
    """Return the times of one benchmark by size, for each choice of the rest."""
    names = one["names"]
    size_at = next((i for i, word in enumerate(names) if word in SIZE_NAMES), None)
    found: dict[str, dict[int, float]] = {}
    for place, seconds in enumerate(one["seconds"]):
        if size_at is None or seconds is None:
            continue
        chosen = dict(zip(names, _chosen(one["parameters"], place), strict=True))
        size = int(chosen.pop(names[size_at]))
        words = [
            f"{name} {value}"
            if value.isdigit() or value in ("True", "False")
            else value
            for name, value in chosen.items()
        ]
        found.setdefault(", ".join(words), {})[size] = seconds
    return found


def _chosen(axes: list[list[str]], place: int) -> list[str]:
    """Return the parameters of one result; the last axis changes fastest."""
    chosen = []
    for axis in reversed(axes):
        place, at = divmod(place, len(axis))
        chosen.append(axis[at])
    return chosen[::-1]


def _table_below(name: str, heading: str) -> str:
    """Return the first table below a heading of another page."""
    _, found, rest = (DOCS / name).read_text().partition(f"{heading}\n")
    if not found:
        raise SystemExit(f"docs/{name} has no heading {heading!r}")
    lines: list[str] = []
    for line in rest.splitlines():
        if line.startswith("|"):
            lines.append(line)
        elif lines:
            break
    return "\n".join(lines) + "\n"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _power(size: int) -> str:
    exact = size & (size - 1) == 0
    return f"2^{size.bit_length() - 1}" if exact else f"{size:,}"


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def main(words: list[str]) -> int:
    """Write or check the page; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, help="folder of asv's results")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(words)
    if options.results:
        kept = RECORDED / platform.machine() / "performance.json"
        kept.write_text(json.dumps(figures_of(options.results), indent=1) + "\n")
    text = page()
    if options.check:
        same = PAGE.exists() and PAGE.read_text() == text
        sys.stdout.write("" if same else f"{PAGE.name} is out of date\n")
        return int(not same)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
