"""Fill the figures of the documentation in from recorded data.

    python docs/fill_figures.py             write every page anew
    python docs/fill_figures.py --check     status 1 if a page says something else

A page names a figure, and the comments stay where they are:

    in <!-- figure maps.dawa_first -->57 of 75<!-- end --> settings

    docs/data/papers/*.csv, verdicts.json ------+
    docs/data/coverage/*.csv, wide/*.csv -------+
    docs/data/cells/*.csv, tables/*.csv --------+
    docs/data/places/*.csv ---------------------+
    asv_benchmarks/recorded/ARCHITECTURE/ ------+--> every page that names them

So a figure stands in one place, in the data, and no page contradicts another.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
PAPERS = HERE / "data" / "papers"
COVERAGE = HERE / "data" / "coverage"
WIDE = HERE / "data" / "wide"
CELLS = HERE / "data" / "cells"
TABLES = HERE / "data" / "tables"
PLACES = HERE / "data" / "places"
PLACE = re.compile(r"(<!-- figure ([\w.]+) -->)(.*?)(<!-- end -->)", re.DOTALL)
MECHANISMS = {
    "DAWA": "`Dawa`",
    "DAWA, least cost": "`Dawa`, least cost",
    "Identity": "`Laplace` on cells",
    "Privelet": "`Privelet`",
    "HB": "`Hierarchy`",
    "MWEM": "`Mwem`",
    "EFPA": "`Efpa`",
    "P-HP": "`Php`",
    "S.First": "`StructureFirst`",
    "AHP": "`Ahp`",
    "QuadTree": "`QuadTree`",
    "HybridTree": "`HybridTree`",
    "AdaptiveGrid": "`AdaptiveGrid`",
    "UniformGrid": "`UniformGrid`",
    "KdTree": "`KdTree`",
}
"""What the papers call a method, and what it is called here."""

Row = dict[str, str]

MOST_OVER_BEST = 1.3
"""Lines on which the default has more than this over the best method are listed."""
SMALL_GAIN = 0.98
SMALL_LOSS = 1.02


class _Ratio(NamedTuple):
    """One mean error over another, and the standard error of that."""

    ratio: float
    error: float

    @classmethod
    def of(cls, one: Row, other: Row) -> _Ratio:
        ratio = float(one["mean"]) / float(other["mean"])
        parts = [float(row["error"]) / float(row["mean"]) for row in (one, other)]
        return cls(ratio, ratio * math.hypot(*parts))

    def __str__(self) -> str:
        return f"{self.ratio:.2f} ± {self.error:.2f}"


def figures() -> dict[str, str]:
    """Return every figure that a page may name."""
    return {
        **_paper_figures(),
        **_histogram_figures(),
        **_map_figures(),
        **_speed_figures(),
        **_coverage_figures(),
        **_wide_figures(),
        **_cells_figures(),
        **_tables_figures(),
        **_spikes_figures(),
        **_lines_figures(),
        **_pairs_figures(),
        **_neighbours_figures(),
        **_smooth_figures(),
        **_moves_figures(),
        **_joins_figures(),
        **_places_figures(),
    }


def fill(text: str, known: dict[str, str]) -> str:
    """Return the text of a page with the figures that it names.

    Parameters
    ----------
    text : str
        The page.
    known : dict from str to str
        The figures by name.

    Returns
    -------
    str
        The page, filled.

    Raises
    ------
    KeyError
        If the page names a figure that is not there.
    """
    return PLACE.sub(lambda place: place[1] + known[place[2]] + place[4], text)


def pages() -> list[Path]:
    """Return everything that may name figures: the site, and the first page."""
    return [HERE.parent / "README.md", *sorted(HERE.rglob("*.md"))]


def read_table(name: str) -> list[Row]:
    """Return the table of an experiment, as it was recorded."""
    return _rows(PAPERS / f"{name}.csv")


def _rows(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def read_verdicts() -> list[dict[str, Any]]:
    """Return what came out of every experiment, and under which protocol."""
    told: list[dict[str, Any]] = json.loads((PAPERS / "verdicts.json").read_text())
    return told


def _paper_figures() -> dict[str, str]:
    told = read_verdicts()
    missed = [one for one in told if one["outcome"] == "not reproduced"]
    rows = [(_link(one["title"], one["name"]), one["verdict"]) for one in told]
    ours = [
        _number(row["ours"])
        for row in read_table("transformed-fig4")
        if row["set"] != "geometric mean"
    ]
    return {
        "papers.count": str(len(told)),
        "papers.reproduced": str(len(told) - len(missed)),
        "papers.missed": str(len(missed)),
        "papers.missed_dpcube": str(sum("kdtree" in one["name"] for one in missed)),
        "papers.verdicts": _table(("what", "verdict"), rows),
        "kmeans.histogram_below": _told(r"line in (\d+ of \d+)", "blowfish-fig1"),
        "maps.dawa_first_named": _told(r"in (\d+ of \d+) settings", "space"),
        "maps.dawa_first": _told(r"grids too in (\d+)", "space")
        + _told(r"in \d+( of \d+) settings", "space"),
        "transformed.below": f"{sum(one < 1 for one in ours)} of {len(ours)}",
        "transformed.worst": f"{max(ours):.2f}",
    }


def _told(pattern: str, name: str) -> str:
    """Return what the verdict of an experiment says at some place."""
    (verdict,) = [one["verdict"] for one in read_verdicts() if one["name"] == name]
    match = re.search(pattern, verdict)
    assert match is not None, f"the verdict on {name} is worded otherwise: {verdict}"
    return match[1]


def _histogram_figures() -> dict[str, str]:
    """Return the seven histograms: all methods at 0.1, and means at each epsilon."""
    rows = read_table("dawa-fig3")
    methods = [name for name in rows[0] if name in MECHANISMS]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    at = {(row["set"], row["epsilon"]): row for row in rows}
    lines = []
    for method in methods:
        each = [_whole(_number(at[name, "0.1"][method])) for name in sets]
        means = [
            _whole(_mean(_number(at[name, epsilon][method]) for name in sets))
            for epsilon in ("0.01", "0.1", "0.5")
        ]
        lines.append((MECHANISMS[method], *each, *means))
    heads = ("method", *sets, "mean at .01", "mean at .1", "mean at .5")
    tenth = [at[name, "0.1"] for name in sets]
    return {
        "histograms.table": _table(heads, lines),
        "histograms.dawa_first": _ahead(tenth, "DAWA", methods),
        "histograms.hierarchy_below_dawa": _below(tenth, "HB", "DAWA"),
        "histograms.mwem_below_dawa": _below(tenth, "MWEM", "DAWA"),
        "histograms.php_below_dawa": _below(tenth, "P-HP", "DAWA"),
        "histograms.noise_below_efpa": _below(tenth, "Identity", "EFPA"),
        "histograms.noise_below_ahp": _below(tenth, "Identity", "AHP"),
        "histograms.hierarchy_means": _ratios(rows, "HB", "DAWA"),
    }


def _map_figures() -> dict[str, str]:
    """Return the maps: geometric means over shapes, by map and epsilon."""
    rows = read_table("space")
    methods = [name for name in rows[0] if name in MECHANISMS]
    maps = list(dict.fromkeys(row["map"] for row in rows))
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))

    def mean(name: str, epsilon: str, method: str) -> float | None:
        shapes = [
            row[method]
            for row in rows
            if (row["map"], row["epsilon"]) == (name, epsilon)
        ]
        return None if "-" in shapes else _mean(map(_number, shapes))

    def cell(name: str, method: str) -> str:
        means = [mean(name, epsilon, method) for epsilon in epsilons]
        if None in means:
            return "-"
        return " / ".join(_whole(one) for one in means if one is not None)

    lines = [(name, *(cell(name, method) for method in methods)) for name in maps]
    over_grid = {
        (name, epsilon): (mean(name, epsilon, "DAWA") or math.nan)
        / (mean(name, epsilon, "AdaptiveGrid") or math.nan)
        for name in maps
        for epsilon in epsilons
    }
    ahead = [
        name
        for name in maps
        if all(
            (mean(name, one, "DAWA") or 0) < (mean(name, one, "QuadTree") or 0)
            for one in epsilons
        )
    ]
    return {
        "maps.table": _table(("map", *(MECHANISMS[one] for one in methods)), lines),
        "maps.dawa_over_grid_most": f"{max(over_grid.values()):.2f}",
        "maps.dawa_over_grid_least": f"{min(over_grid.values()):.2f}",
        "maps.dawa_below_quad_tree": f"{len(ahead)} of {len(maps)}",
        "maps.grid_best_at_hundredth": _grid_best(maps, mean, methods),
    }


def _grid_best(
    maps: list[str],
    mean: Callable[[str, str, str], float | None],
    methods: list[str],
) -> str:
    """Return on how many maps the adaptive grid has the least error at 0.01."""
    best = []
    for name in maps:
        errors = {method: mean(name, "0.01", method) for method in methods}
        tried = {method: error for method, error in errors.items() if error is not None}
        best.append(min(tried, key=lambda method: tried[method]) == "AdaptiveGrid")
    return f"{sum(best)} of {len(maps)}"


def _coverage_figures() -> dict[str, str]:
    """Return, for each mechanism, the worst of all its rows."""
    intervals: dict[str, list[Row]] = {}
    answers: dict[str, list[Row]] = {}
    for row in _rows(COVERAGE / "intervals.csv"):
        intervals.setdefault(row["mechanism"], []).append(row)
    for row in _rows(COVERAGE / "answers.csv"):
        answers.setdefault(row["mechanism"], []).append(row)
    lines = [
        (
            name,
            ", ".join(dict.fromkeys(row["said"] for row in rows)),
            _worst(rows, "noise"),
            _worst(rows, "truth"),
            _span(rows, "width"),
            _worst(rows, "certified"),
        )
        for name, rows in intervals.items()
    ]
    groups = [
        (name, _span(rows, "said"), _worst(rows, "held"), _worst(rows, "bought"))
        for name, rows in answers.items()
    ]
    heads = ("mechanism", "said", "noise", "truth", "width", "certified")
    return {
        "coverage.intervals": _table(heads, lines),
        "coverage.answers": _table(("mechanism", "said", "held", "bought"), groups),
        "coverage.wide": _table(
            ("release", "asked", "budget", "intervals", "held"),
            [
                (
                    row["release"],
                    row["asked"],
                    row["budget"],
                    f"{int(row['intervals']):,}",
                    f"{row['held']} ± {row['error']}",
                )
                for row in _rows(COVERAGE / "wide.csv")
            ],
        ),
    }


def _wide_figures() -> dict[str, str]:
    """Return errors, times and memory of wide domains, and of clustered lines."""
    errors, costs = _rows(WIDE / "errors.csv"), _rows(WIDE / "costs.csv")
    clustered = _rows(WIDE / "clustered.csv")
    heads = ("records", "cells", "descent", "by unevenness", "2^16 coarse cells")
    lines = [
        (
            row["records"],
            row["cells"].removesuffix(" cells"),
            *(
                _whole(float(row[name]))
                for name in ("descent", "unevenness", "coarse_16", "coarse_20")
            ),
            f"{float(row['ratio']):.3f} ± {float(row['ratio_error']):.3f}",
            f"{float(row['missed']):.2%} ± {float(row['missed_error']):.2%}",
        )
        for row in errors
    ]
    told = [(row["what"], f"{row['amount']} {row['unit']}") for row in costs]
    wanted = [f"{row['wanted']} {row['unit']}" for row in costs]
    amounts = {row["what"].split(" of ")[0] + row["unit"]: row for row in costs}
    return {
        "wide.errors": _table((*heads, "2^20 coarse cells", "ratio", "missed"), lines),
        "wide.costs": _table(
            ("what", "measured", "at most"),
            [(*row, most) for row, most in zip(told, wanted, strict=True)],
        ),
        "wide.clustered": _table(
            (
                *("records", "used", "cells", "ranges", "filled"),
                *("default", "descent", "ratio", "advised"),
            ),
            [
                (
                    row["records"],
                    row["role"],
                    row["cells"],
                    row["ranges"],
                    f"{float(row['filled']):.1%}",
                    _whole(float(row["default"])),
                    _whole(float(row["descent"])),
                    f"{float(row['ratio']):.2f} ± {float(row['error']):.2f}",
                    row["advised"],
                )
                for row in clustered
            ],
        ),
        "wide.saved_buckets": costs[-1]["what"].split()[1],
        "wide.saving": costs[-2]["amount"],
        "wide.loading": costs[-1]["amount"],
        "wide.list_seconds": amounts["listCPU s"]["amount"],
        "wide.ranges_seconds": amounts["10,000 rangesCPU s"]["amount"],
        "wide.ranges_bytes": amounts["10,000 rangesbytes for each filled cell"][
            "amount"
        ],
    }


def _line_name(row: dict[str, str]) -> str:
    """Return set and epsilon of a recorded line, in words."""
    return f"{row['set']} at {row['epsilon']}"


def _cells_figures() -> dict[str, str]:
    """Return errors of single cells that are fitted in runs."""
    rows = _rows(CELLS / "runs.csv")
    heads = ("set", "kind", "epsilon", "in runs", "default", "shrunk", "ratio")
    means = {}
    for name, kind in (("level", "exactly level"), ("other", "other")):
        some = [row for row in rows if row["kind"] == kind]
        for over in ("shrunk", "least_cost", "sibling"):
            ratios = [float(row["default"]) / float(row[over]) for row in some]
            means[f"cells.{name}_over_{over}"] = f"{_mean(ratios):.2f}"
            means[f"cells.{name}_over_{over}_worst"] = f"{max(ratios):.2f}"
    bare = {_line_name(row): float(row["bare_ratio"]) for row in rows}
    others = [row for row in rows if row["kind"] == "other"]
    worst = max(others, key=lambda row: float(row["default"]) / float(row["sibling"]))
    # Lines that a test keeps in single cells are fitted by medians, not in runs.
    for name, mostly in (("joined", True), ("alone", False)):
        ratios = [
            float(row["ratio"])
            for row in others
            if (float(row["in_runs"]) >= 0.5) is mostly
        ]
        means[f"cells.{name}"] = f"{_mean(ratios):.2f}"
        means[f"cells.{name}_worst"] = f"{max(ratios):.2f}"
        means[f"cells.{name}_lines"] = str(len(ratios))
    return {
        **means,
        "cells.other_over_sibling_worst_line": _line_name(worst),
        "cells.bare_worst_line": max(bare, key=lambda line: bare[line]),
        "cells.bare": f"{_mean([*bare.values()]):.2f}",
        "cells.bare_worst": f"{max(bare.values()):.2f}",
        "cells.runs": _table(
            (*heads, "least cost", "best sibling", "ratio without buckets"),
            [
                (
                    *(row["set"], row["kind"], row["epsilon"]),
                    f"{float(row['in_runs']):.0%}",
                    *(f"{float(row[name]):.3g}" for name in ("default", "shrunk")),
                    f"{float(row['ratio']):.3f} ± {float(row['error']):.3f}",
                    *(f"{float(row[name]):.3g}" for name in ("least_cost", "sibling")),
                    f"{float(row['bare_ratio']):.2f}",
                )
                for row in rows
            ],
        ),
    }


def _spikes_figures() -> dict[str, str]:
    """Return errors of single cells after a test for spikes."""
    rows = _rows(CELLS / "spikes.csv")
    means = {}
    for name, kind in (
        ("anew", "generated anew"),
        ("siblings", "siblings"),
        ("given", "chosen on"),
    ):
        some = [row for row in rows if row["kind"] == kind]
        for over in ("before", "sibling"):
            ratios = [float(row["default"]) / float(row[over]) for row in some]
            place = ratios.index(max(ratios))
            logs = [math.log(ratio) for ratio in ratios]
            means[f"spikes.{name}_over_{over}"] = f"{_mean(ratios):.2f}"
            means[f"spikes.{name}_over_{over}_error"] = (
                f"{statistics.pstdev(logs) / math.sqrt(len(logs)):.2f}"
            )
            means[f"spikes.{name}_over_{over}_worst"] = f"{max(ratios):.2f}"
            means[f"spikes.{name}_over_{over}_worst_line"] = _line_name(some[place])
    heads = ("set", "kind", "epsilon", "single cells", "default", "before", "ratio")
    return {
        **means,
        "spikes.table": _table(
            (*heads, "best sibling", "over it"),
            [
                (
                    *(row["set"], row["kind"], row["epsilon"]),
                    f"{float(row['kept']):.0%}",
                    *(f"{float(row[name]):.3g}" for name in ("default", "before")),
                    f"{float(row['ratio']):.3f} ± {float(row['error']):.3f}",
                    f"{float(row['sibling']):.3g}",
                    f"{float(row['default']) / float(row['sibling']):.2f}",
                )
                for row in rows
            ],
        ),
        "spikes.time": _table(
            ("line", "default", "without the test", "and shrunk", "first over last"),
            [
                (
                    row["set"],
                    *(row[name] for name in ("default", "untested", "shrunk")),
                    f"{float(row['default']) / float(row['shrunk']):.2f}",
                )
                for row in _rows(CELLS / "spikes_time.csv")
            ],
        ),
    }


def _lines_figures() -> dict[str, str]:
    """Return errors of the default over other methods on lines, recorded."""
    lines: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in _rows(CELLS / "lines.csv"):
        key = tuple(row[name] for name in ("policy", "asked", "kind", "set", "epsilon"))
        lines.setdefault(key, {})[row["method"]] = row
    parts: dict[tuple[str, ...], list[tuple[str, str, _Ratio, _Ratio]]] = {}
    for (policy, asked, kind, *where), methods in lines.items():
        others = [row for name, row in methods.items() if name != "default"]
        best = min(others, key=lambda row: float(row["mean"]))
        ratios = [
            _Ratio.of(methods["default"], other) for other in (methods["before"], best)
        ]
        line = (" at ".join(where), best["method"], ratios[0], ratios[1])
        parts.setdefault((policy, asked, kind), []).append(line)
    told, above, named = [], [], {}
    for (policy, asked, kind), some in parts.items():
        cells = [policy, asked, f"{kind}, {len(some)}"]
        for over, place in (("before", 2), ("best", 3)):
            ratios = [line[place] for line in some]
            worst = max(some, key=lambda line: line[place].ratio)
            logs = [math.log(each.ratio) for each in ratios]
            off = statistics.pstdev(logs) / math.sqrt(len(logs))
            mean = f"{_mean(each.ratio for each in ratios):.2f}"
            name = f"lines.{policy}_{asked}_{kind}_{over}"
            named[name], named[f"{name}_error"] = mean, f"{off:.2f}"
            named[f"{name}_worst"] = f"{worst[place].ratio:.2f}"
            cells += [f"{mean} ({off:.2f})", f"{worst[place]}, {worst[0]}"]
        told.append(cells)
        above += [
            (policy, asked, kind, where, method, str(ratio))
            for where, method, _, ratio in some
            if ratio.ratio > MOST_OVER_BEST
        ]
    heads = ("policy", "asked", "sets and lines", "over before", "worst line")
    return {
        **named,
        "lines.table": _table((*heads, "over the best of five", "worst line"), told),
        "lines.above": _table(
            ("policy", "asked", "sets", "line", "best of five", "default over it"),
            above,
        ),
    }


def _pairs_figures() -> dict[str, str]:
    """Return errors with the test for pairs over those without it."""
    rows = _rows(CELLS / "pairs.csv")
    told, named = [], {}
    for policy, asked in dict.fromkeys((row["policy"], row["asked"]) for row in rows):
        some = [row for row in rows if (row["policy"], row["asked"]) == (policy, asked)]
        ratios = [float(row["ratio"]) for row in some]
        off = math.hypot(*(float(row["error"]) / float(row["ratio"]) for row in some))
        ends = [
            f"{float(row['ratio']):.2f} ± {float(row['error']):.2f}, {_line_name(row)}"
            for row in (some[ratios.index(choose(ratios))] for choose in (min, max))
        ]
        mean = f"{_mean(ratios):.2f}"
        named[f"pairs.{policy}_{asked}"] = mean
        shown = f"{mean} ± {off / len(some):.2f}"
        told.append((policy, asked, str(len(some)), shown, *ends))
    heads = ("policy", "asked", "lines", "with the test over without", "least line")
    return {**named, "pairs.table": _table((*heads, "largest line"), told)}


def _smooth_figures() -> dict[str, str]:
    """Return errors of ranges whose cells follow buckets, over those of even ones."""
    rows = _rows(CELLS / "smooth.csv")
    told, named = [], {}
    for policy, kind in dict.fromkeys((row["policy"], row["kind"]) for row in rows):
        some = [row for row in rows if (row["policy"], row["kind"]) == (policy, kind)]
        ratios = [float(row["ratio"]) for row in some]
        logs = [math.log(ratio) for ratio in ratios]
        off = statistics.pstdev(logs) / math.sqrt(len(logs))
        ends = [
            f"{float(row['ratio']):.2f} ± {float(row['error']):.2f}, {_line_name(row)}"
            for row in (some[ratios.index(choose(ratios))] for choose in (min, max))
        ]
        mean = f"{_mean(ratios):.3f}"
        named[f"smooth.{policy}_{kind}"] = mean
        named[f"smooth.{policy}_{kind}_worst"] = f"{max(ratios):.2f}"
        counted = (
            str(sum(ratio < SMALL_GAIN for ratio in ratios)),
            str(sum(ratio > SMALL_LOSS for ratio in ratios)),
        )
        shown = f"{mean} ({off:.3f})"
        told.append((policy, f"{kind}, {len(some)}", shown, *counted, *ends))
    heads = ("policy", "sets and lines", "over even buckets", "below .98", "above 1.02")
    return {
        **named,
        "smooth.table": _table((*heads, "least line", "largest line"), told),
    }


def _neighbours_figures() -> dict[str, str]:
    """Return errors of cells by what neighbours say, over those without."""
    rows = _rows(CELLS / "neighbours.csv")
    concerned = [row for row in rows if float(row["concerned"]) > 0]
    ratios = [float(row["ratio"]) for row in concerned]
    logs = [math.log(ratio) for ratio in ratios]
    ends = {
        name: concerned[ratios.index(choose(ratios))]
        for name, choose in (("least", min), ("worst", max))
    }
    return {
        "neighbours.lines": str(len(rows)),
        "neighbours.concerned": str(len(concerned)),
        "neighbours.mean": f"{_mean(ratios):.2f}",
        "neighbours.error": f"{statistics.pstdev(logs) / math.sqrt(len(logs)):.2f}",
        **{
            f"neighbours.{name}": f"{float(row['ratio']):.3f} ± "
            f"{float(row['error']):.3f} ({_line_name(row)})"
            for name, row in ends.items()
        },
        "neighbours.table": _table(
            ("set", "epsilon", "concerned", "by neighbours", "without", "ratio"),
            [
                (
                    *(row["set"], row["epsilon"], f"{float(row['concerned']):.0%}"),
                    *(row["default"], row["shuffled"]),
                    f"{float(row['ratio']):.3f} ± {float(row['error']):.3f}",
                )
                for row in concerned
            ],
        ),
    }


def _moves_figures() -> dict[str, str]:
    """Return errors of single cells under short moves, over `OrderedHierarchical`."""
    rows = _rows(CELLS / "short_moves.csv")
    lines = []
    for theta in sorted({int(row["theta"]) for row in rows}):
        some = [row for row in rows if int(row["theta"]) == theta]
        line = [str(theta)]
        for name in ("transformed", "dawa"):
            for kind in ("", "_rms"):
                over = [
                    float(row[name + kind]) / float(row["ordered" + kind])
                    for row in some
                ]
                logs = [math.log(ratio) for ratio in over]
                error = statistics.pstdev(logs) / math.sqrt(len(logs))
                line.append(
                    f"{_mean(over):.2f} ({error:.2f}), {min(over):.2f} to "
                    f"{max(over):.2f}"
                )
        lines.append(tuple(line))
    heads = ("`Transformed`", "its root mean square", "`Dawa`", "its root mean square")
    return {"moves.table": _table(("moves of at most", *heads), lines)}


def _joins_figures() -> dict[str, str]:
    """Return errors of maps whose boxes are joined where they seem alike."""
    rows = _rows(PLACES / "even_maps.csv")
    masses = sorted({int(row["mass"]) for row in rows})
    over = {
        (row["set"], int(row["mass"]), row["epsilon"]): float(row["joining"])
        / float(row["grid"])
        for row in rows
    }
    others = {line: ratio for line, ratio in over.items() if line[0] != "even"}
    logs = [math.log(ratio) for ratio in others.values()]
    worst = max(others, key=lambda line: others[line])
    errors = {
        (row["set"], int(row["mass"]), row["epsilon"]): float(row["ratio_error"])
        for row in rows
    }
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        line = [name]
        for mass in masses:
            some = [over[key] for key in over if key[:2] == (name, mass)]
            line.append(f"{_mean(some):.2f}")
        lines.append(line)
    even = [row for row in rows if row["set"] == "even"]
    return {
        "joins.table": _table(("map", *(f"{mass:,}" for mass in masses)), lines),
        "joins.even": _table(
            ("records times epsilon", "epsilon", "`Dawa`", "rectangles", "grid"),
            [
                (
                    f"{int(row['mass']):,}",
                    row["epsilon"],
                    f"{_whole(float(row['dawa']))} ± {float(row['dawa_error']):.2g}",
                    _whole(float(row["rectangles"])),
                    _whole(float(row["grid"])),
                )
                for row in even
            ],
        ),
        "joins.even_over_grid": _ends(
            [float(r["dawa"]) / float(r["grid"]) for r in even]
        ),
        "joins.even_over_rectangles": _ends(
            [float(row["dawa"]) / float(row["rectangles"]) for row in even]
        ),
        "joins.others": f"{_mean(list(others.values())):.2f}",
        "joins.others_error": (f"{statistics.pstdev(logs) / math.sqrt(len(logs)):.2f}"),
        "joins.lines": str(len(others)),
        "joins.least_mass": f"{masses[0]:,}",
        "joins.most_mass": f"{masses[-1]:,}",
        "joins.worst": f"{others[worst]:.2f} ± {errors[worst]:.2f}",
        "joins.worst_line": f"{worst[0]} at {worst[1]:,} and epsilon {worst[2]}",
    }


def _ends(ratios: list[float]) -> str:
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


NEIGHBOURS = {
    "add_remove": "one record more or less",
    "full": "any record to any other",
    "attribute": "one attribute at a time",
    "line": "one attribute at a time, ordered ones to the next cell",
}
"""Policies of the judged surveys, in words."""


DISTRICTS = ("block", "group", "tract", "county", "state", "nation")
NEAR = 1.03
"""Figures of districts are met up to this ratio."""


def _places_figures() -> dict[str, str]:
    """Return errors of nested districts beside those of their first design."""
    rows = _rows(PLACES / "geography.csv")
    ratios = [
        float(row["measured"]) / float(row["designed"])
        for row in rows
        if float(row["designed"]) and row["part"] != "fits"
    ]
    counted = {row["level"]: row for row in rows if row["part"] == "points"}
    shipped = {
        (row["case"], row["level"]): row
        for row in rows
        if row["part"] == "plans" and row["plan"] == "Nested"
    }
    cases = list(dict.fromkeys(case for case, _ in shipped))
    return {
        "places.met": f"{sum(ratio <= NEAR for ratio in ratios)} of {len(ratios)}",
        "places.worst": f"{max(ratios):.3f}",
        **{
            f"places.equal_{row['level']}": f"{float(row['measured']):.2f}"
            for row in rows
            if row["case"] == "blocks and counties" and row["plan"] == "equal levels"
        },
        "places.points_seconds": f"{float(counted['CPU seconds']['measured']):.2f}",
        "places.importance": _table(
            ("what matters", *reversed(DISTRICTS)),
            [
                (
                    case,
                    *(
                        f"{float(shipped[case, level]['measured']):.2f}"
                        for level in reversed(DISTRICTS)
                    ),
                )
                for case in cases
            ],
        ),
        "places.plans": _by_level(rows, "plans", "what matters", "sum"),
        "places.policies": _by_level(rows, "policies", "policy"),
        "places.fits": _by_level(rows, "fits", "measured over"),
        **_nation_figures(),
        "places.schools": _by_level(rows, "off the spine", "policy", "school"),
    }


def _nation_figures() -> dict[str, str]:
    """Return what the nation pays, and what all levels gain, over several countries."""
    rows = _rows(PLACES / "nations.csv")
    ratios = {
        level: [
            float(row["measured"]) / float(row["designed"])
            for row in rows
            if row["level"] == level
        ]
        for level in ("nation", "sum")
    }
    pays, gains = ratios["nation"], [2.0 - ratio for ratio in ratios["sum"]]
    return {
        "places.countries": f"{len(pays)}",
        **{
            f"places.nation_{name}": f"{100 * (min(parts) - 1):.1f} to "
            f"{100 * (max(parts) - 1):.1f} %"
            for name, parts in (("pays", pays), ("gains", gains))
        },
    }


def _by_level(rows: list[Row], part: str, head: str, *more: str) -> str:
    """Return a line for each plan and a column for each level, ratios in brackets."""
    own = [row for row in rows if row["part"] == part]
    levels = [
        level
        for level in (*more, *DISTRICTS)
        if any(row["level"] == level for row in own)
    ]
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in own:
        value, designed = float(row["measured"]), float(row["designed"])
        beside = f" ({value / designed:.2f})" if designed else ""
        line = lines.setdefault((row["case"], row["plan"]), {})
        line[row["level"]] = f"{value:.3g}{beside}"
    return _table(
        (head, "plan" if part != "fits" else "fit", *levels),
        [
            (*names, *(line.get(level, "") for level in levels))
            for names, line in lines.items()
        ],
    )


DRAWN = {"random": "at random", "lowest": "the lowest values"}
"""Which records of a survey serve as a prior, in words."""


def _rivals(rows: list[Row]) -> str:
    """Return what several packages make of one survey, in the order of the runs."""

    def shown(row: Row, column: str, digits: int) -> str:
        value = float(row[column])
        return "" if math.isnan(value) else f"{value:.{digits}f}"

    return _table(
        (
            *("survey", "tables from", "versions", "tables misplace"),
            *("records misplace", "CPU s"),
        ),
        [
            (
                row["survey"].replace("adult", "Adult"),
                row["package"],
                _foreign(row["version"]),
                *(
                    (shown(row, "misplaced", 4), shown(row, "drawn", 4))
                    if int(row["trials"])
                    else (row["error"], "")
                ),
                shown(row, "seconds", 0),
            )
            for row in rows
        ],
    )


def _foreign(version: str) -> str:
    """Return a version of another package; that of this one stands in one place."""
    return "this one" if version.startswith("blowfish_fast") else version


def _tables_figures() -> dict[str, str]:
    """Return tables that the data choose, of surveys that played no part."""
    judged = _rows(TABLES / "judged.csv")
    behind = [
        float(row["best"]) / min(float(row["plan"]), float(row["data"]))
        for row in judged
    ]
    beside = [
        float(row["best"]) / max(float(row["independent"]), float(row["singles"]))
        for row in judged
    ]
    singles = [float(row["best"]) / float(row["independent"]) for row in judged]
    words = {"d": "data", "p": "plan"}
    asked = {"2": "", "3": ", tables of three asked"}
    return {
        "tables.prior": _table(
            ("survey", "role", "records", "prior", "without", "with", "ratio"),
            [
                (
                    row["survey"].replace("adult", "Adult"),
                    row["role"],
                    f"{int(row['records']):,}",
                    f"{int(row['prior']):,}, {DRAWN[row['drawn']]}",
                    row["without"],
                    row["with_prior"],
                    f"{float(row['with_prior']) / float(row['without']):.2f}",
                )
                for row in _rows(TABLES / "prior.csv")
            ],
        ),
        "tables.census": _table(
            (
                *("neighbours and budget", "tables of the model", "synthetic records"),
                *("all 364 tables of three, model", "the same, records", "CPU s"),
            ),
            [
                (
                    f"{row['neighbours']}, {row['budget']}{asked[row['asked']]}",
                    *(
                        row[name]
                        for name in ("model", "records", "three_model", "three_records")
                    ),
                    f"{float(row['seconds']):.0f}",
                )
                for row in _rows(TABLES / "census.csv")
            ],
        ),
        "tables.judged": _table(
            (
                *("survey", "neighbours and budget", "exact independence"),
                *("noisy single tables", "plan", "data", '"best", and what it took'),
            ),
            [
                (
                    row["survey"],
                    f"{NEIGHBOURS[row['policy']]}, {row['budget']}",
                    *(
                        f"{float(row[name]):.3f}"
                        for name in ("independent", "singles", "plan", "data")
                    ),
                    f"{float(row['best']):.3f} {words[row['took'][0]]}",
                )
                for row in judged
            ],
        ),
        "tables.rivals": _rivals(_rows(TABLES / "rivals.csv")),
        "tables.behind": f"{_mean(behind) - 1:.0%}",
        "tables.behind_worst": f"{max(behind) - 1:.0%}",
        "tables.beside_worst": f"{max(beside) - 1:.0%}",
        "tables.beyond_independence": f"{sum(one > 1.2 for one in singles)} of "
        f"{len(judged)}",
    }


def _worst(rows: list[Row], column: str) -> str:
    """Return the least share of a column; nothing where no row has one."""
    shown = [row[column] for row in rows if row[column]]
    return min(shown, key=float) if shown else ""


def _span(rows: list[Row], column: str) -> str:
    """Return the least and the largest number of a column."""
    numbers = sorted({float(row[column]) for row in rows if row[column]})
    ends = [f"{number:.2f}" for number in (numbers[0], numbers[-1])]
    return " to ".join(dict.fromkeys(ends))


def _speed_figures() -> dict[str, str]:
    """Return what the benchmarks recorded, from the script that reads it."""
    script = HERE.parent / "asv_benchmarks" / "performance_page.py"
    spec = importlib.util.spec_from_file_location("performance_page", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    recorded: dict[str, str] = module.figures()
    return recorded


def _ahead(rows: list[Row], method: str, methods: Iterable[str]) -> str:
    """Return on how many rows a method has the least error of all."""
    first = [
        row
        for row in rows
        if min(methods, key=lambda name: _number(row[name])) == method
    ]
    return f"{len(first)} of {len(rows)}"


def _below(rows: list[Row], method: str, other: str) -> str:
    """Return on how many rows a method has less error than another."""
    lower = [row for row in rows if _number(row[method]) < _number(row[other])]
    return f"{len(lower)} of {len(rows)}"


def _ratios(rows: list[Row], method: str, other: str) -> str:
    """Return the error of a method over that of another, by epsilon."""
    parts = []
    for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
        ratio = _mean(
            _number(row[method]) / _number(row[other])
            for row in rows
            if row["epsilon"] == epsilon
        )
        parts.append(f"{ratio:.2f} at {epsilon}")
    return ", ".join(parts)


def _number(shown: str) -> float:
    """Return the number of a cell, without its standard error."""
    return float(shown.partition("±")[0].replace(",", ""))


def _mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.3g}"


def _link(words: str, name: str) -> str:
    return f"[{words}](data/papers/{name}.csv)"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [tuple(heads), *map(tuple, rows)]
    lines.insert(1, ("---",) * len(lines[0]))
    body = "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n"
        for line in lines
    )
    return f"\n\n{body}\n"


def main(words: list[str]) -> int:
    """Write the pages, or check them; return the exit status."""
    known = figures()
    stale = []
    for page in pages():
        text = page.read_text()
        filled = fill(text, known)
        if filled != text:
            stale.append(page)
            if "--check" not in words:
                page.write_text(filled)
    if "--check" in words and stale:
        names = ", ".join(str(page.relative_to(HERE.parent)) for page in stale)
        sys.stdout.write(f"{names}: run python docs/fill_figures.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
