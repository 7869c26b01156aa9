"""Fill docs/performance.md from what asv and the ratio check have measured.

    python asv_benchmarks/performance_page.py --results asv_benchmarks/results
    python asv_benchmarks/performance_page.py            the page alone, anew
    python asv_benchmarks/performance_page.py --check    status 1 if it is out of date

    asv run ---> results/MACHINE/*.json ---> recorded/ARCHITECTURE/performance.json --+
    ratio_check.py --record ---------------> recorded/ARCHITECTURE/ratios.json -------+
    simulate_cores.py --record ------------> recorded/ARCHITECTURE/cores.json --------+
    measure_large.py --record -------------> recorded/ARCHITECTURE/large.json --------+
    measure_limits.py --record ------------> recorded/ARCHITECTURE/limits.json -------+
                                                                                      |
         docs/data/speed/*.csv: every time       docs/performance.md: its tables <-----+

The results of asv are large and belong to one checkout, so the figures are kept here, a
folder for each architecture (``uname -m``); from them everything can be made anew
anywhere. The page names what it shows, as ``docs/fill_figures.py`` says.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import io
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
DATA = DOCS / "data" / "speed"
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

PEOPLE_WAIT_FOR = (
    ("LaplaceRelease", "add_remove", "a release of `Laplace`"),
    ("DawaRelease", "dense, best", "a release of `Dawa`, dense counts"),
    ("DawaRelease", "sparse, best", "the same, sparse counts"),
    ("DawaAllRanges", "greedy", "the same for all ranges"),
    ("DawaGridRelease", "best", "a release of `Dawa` on a map"),
    ("RangeIntervals", "dawa, queries 1", "one interval of it"),
    ("RangeIntervals", "dawa, queries 1000000", "a million intervals of it"),
    ("Recommend", "line", "`bf.recommend` under `Line`"),
    ("Compare", "line, listed", "`bf.compare` under `Line`, listed ranges"),
)
"""Benchmark, setting, and what the page calls it."""

LIMITS = ("12", "14", "16", "20", "22")
BESIDE_LIMITS = {
    "copy": "a plain copy of the counts",
    "numpy": "numpy's own Laplace noise, added (floating point, not secure)",
    "noise": "exact secure noise alone",
    "laplace": "a release of `Laplace`",
    "dawa": "a release of `Dawa`, 2000 ranges",
    "opendp": "OpenDP's discrete Laplace noise on the counts",
}
BESIDE_RECORDS = {
    "bincount": "`numpy.bincount` of cells that are known already",
    "from_records": "`Histogram.from_records` of numbers into 1,000 cells",
}
"""Task of `measure_limits.py`, and what the page calls it."""


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


def figures() -> dict[str, str]:
    """Return what the page of performance names."""
    recorded = read_recorded()
    return {
        "speed.machines": _machines(recorded),
        "speed.ratios": _ratio_table(recorded),
        "speed.waits": _wait_table(recorded),
        "speed.cores": _cores_table(),
        "speed.large": _large_table(),
        "speed.limits": _limits_table(),
        "speed.records": _records_table(),
    }


def read_recorded() -> dict[str, dict[str, Any]]:
    """Return what was recorded: ratios and, where asv ran, times, by architecture."""
    recorded: dict[str, dict[str, Any]] = {}
    for folder in sorted(RECORDED.iterdir()):
        ratios = json.loads((folder / "ratios.json").read_text())
        recorded[folder.name] = {
            "recorded on": ratios["recorded on"],
            "ratios": ratios["kernels"],
        }
        times = folder / "performance.json"
        if times.exists():
            recorded[folder.name] |= json.loads(times.read_text())
    return recorded


def read_kept(name: str) -> dict[str, dict[str, Any]]:
    """Return what a script kept under this name, by architecture, where it ran."""
    files = {folder.name: folder / name for folder in sorted(RECORDED.iterdir())}
    return {
        architecture: json.loads(file.read_text())
        for architecture, file in files.items()
        if file.exists()
    }


def _cores_table() -> str:
    """Return the simulated times on 1 to 16 cores, and how much 2 and 16 gain."""
    rows = []
    heads: tuple[str, ...] = ()
    for architecture, powers in read_kept("cores.json").items():
        for power, releases in powers.items():
            for name, seconds in releases.items():
                cores = sorted(map(int, seconds))
                heads = tuple("1 core" if one == 1 else f"{one}" for one in cores)
                alone = seconds["1"]
                gains = [f"{alone / seconds[str(one)]:.2f}" for one in (2, cores[-1])]
                times = [_time(seconds[str(one)]) for one in cores]
                rows.append((name, f"2^{power}", architecture, *times, *gains))
    last = heads[-1]
    what = ("release", "cells", "machine")
    return _table((*what, *heads, "gain on 2", f"gain on {last}"), rows)


def _large_table() -> str:
    """Return what single releases on very many cells took, and what was declared."""
    rows = [
        (
            f"2^{power}",
            kind,
            f"{found['buckets']:,}",
            architecture,
            _time(found["cpu seconds"]),
            f"{found['peak GiB']:.2f} GiB",
            f"{found['declared GiB']:.2f} GiB",
        )
        for architecture, powers in read_kept("large.json").items()
        for power, kinds in powers.items()
        for kind, found in sorted(kinds.items())
    ]
    heads = ("cells", "counts", "buckets", "machine", "CPU time", "peak", "declared")
    return _table(heads, rows)


def _limits_table() -> str:
    """Return nanoseconds a cell of releases, of their limits and of others."""
    rows = []
    for architecture, found in read_kept("limits.json").items():
        by_cells = found["by cells"]
        for name, called in BESIDE_LIMITS.items():
            if name not in by_cells:  # of others, whatever was installed
                continue
            times = by_cells[name]
            each = [
                _short(times[power]) if power in times else "not run"
                for power in LIMITS
            ]
            # At the most cells on which it was run.
            copies = [times[power] / by_cells["copy"][power] for power in times]
            rows.append((called, architecture, *each, _short(copies[-1])))
    heads = ("what", "machine", *(f"2^{power}" for power in LIMITS), "plain copies")
    return _table(heads, rows)


def _records_table() -> str:
    """Return nanoseconds a record of counting records, and of numpy's own counting."""
    rows = []
    heads: tuple[str, ...] = ()
    for architecture, found in read_kept("limits.json").items():
        for name, called in BESIDE_RECORDS.items():
            times = found["by records"][name]
            heads = tuple(f"10^{power}" for power in times)
            rows.append((called, architecture, *map(_short, times.values())))
    return _table(("what", "machine", *heads), rows)


def tables() -> dict[Path, str]:
    """Return the files of all times, with a row for each setting and architecture."""
    heads = ["benchmark", "setting", "architecture"]
    return {
        DATA / f"{kind}.csv": _csv(
            [*heads, *(f"seconds at {_power(size)}" for size in SHOWN)],
            [
                (name, setting, architecture, *(times.get(size) for size in SHOWN))
                for architecture, figures in read_recorded().items()
                for name, benchmark in figures.get(kind, {}).items()
                for setting, times in _by_setting(_with_size(benchmark)).items()
            ],
        )
        for kind in ("kernels", "waits")
    }


def _csv(heads: list[str], rows: list[tuple[Any, ...]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    return text.getvalue()


def _machines(recorded: dict[str, dict[str, Any]]) -> str:
    lines = []
    for architecture, figures in recorded.items():
        machine = figures["recorded on"]
        code = f"; the code is that of {figures['code of']}" * ("code of" in figures)
        lines.append(
            f"- **{architecture}**: one virtual core ({machine['processor']}), Python "
            f"{machine['python']}, numpy {machine['numpy']}, numba "
            f"{machine['numba']}{code}.\n"
        )
    return "\n\n" + "".join(lines) + "\n"


def _ratio_table(recorded: dict[str, dict[str, Any]]) -> str:
    kernels = [figures["ratios"] for figures in recorded.values()]
    rows = []
    for name, first in kernels[0].items():
        cells = [f"`{name}`", _power(first["cells"]), REFERENCES[first["reference"]]]
        for measured in kernels:
            cells.append(_time(measured[name]["microseconds"] / 1e6))
            cells.append(f"{measured[name]['ratio']:.3g}")
        rows.append(tuple(cells))
    heads = ["kernel", "cells", "beside"]
    for architecture in recorded:
        heads += [f"on {architecture}", "ratio"]
    return _table(tuple(heads), rows)


def _wait_table(recorded: dict[str, dict[str, Any]]) -> str:
    """Return the least times on 2^20 cells that people wait for, by architecture."""
    rows = []
    for name, setting, called in PEOPLE_WAIT_FOR:
        times = [
            _by_setting(_with_size(figures["waits"][name]))[setting][SHOWN[-1]]
            for figures in recorded.values()
        ]
        rows.append((called, *map(_time, times)))
    return _table(("what", *(f"on {one}" for one in recorded)), rows)


def _with_size(benchmark: dict[str, Any]) -> dict[str, Any]:
    """Return a benchmark that has one size with that size among its parameters."""
    if set(SIZE_NAMES) & {*benchmark["names"]}:
        return benchmark
    return {
        "names": ["cells", *benchmark["names"]],
        "parameters": [[str(SHOWN[-1])], *benchmark["parameters"]],
        "seconds": benchmark["seconds"],
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


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    body = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"\n\n{body}\n"


def _power(size: int) -> str:
    exact = size & (size - 1) == 0
    return f"2^{size.bit_length() - 1}" if exact else f"{size:,}"


def _short(number: float) -> str:
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 1000 else f"{number:.3g}"


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def main(words: list[str]) -> int:
    """Write or check page and data; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, help="folder of asv's results")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(words)
    if options.results:
        kept = RECORDED / platform.machine() / "performance.json"
        kept.write_text(json.dumps(figures_of(options.results), indent=1) + "\n")
    pages = filler()
    filled = {PAGE: pages.fill(PAGE.read_text(), pages.figures()), **tables()}
    stale = [
        path
        for path, text in filled.items()
        if not path.exists() or path.read_text() != text
    ]
    if options.check:
        for path in stale:
            sys.stdout.write(f"{path.name} is out of date\n")
        return int(bool(stale))
    for path in stale:
        path.write_text(filled[path])
    return 0


def filler() -> Any:
    """Return the module that fills figures into pages."""
    spec = importlib.util.spec_from_file_location("fill", DOCS / "fill_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
