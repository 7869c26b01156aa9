"""Comparison on space: every method for maps, on rectangles of the paper's shapes.

maps       four published sets of 256 x 256 cells, and the world in 1024 x 1024
shapes     the four of the DAWA paper, in proportion to its map, and random ones
methods    DAWA on rectangles, trees, grids, kd-tree, MWEM
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blowfish_fast.advice.experiments.datasets import DataSet
from blowfish_fast.advice.experiments.experiment import (
    Experiment,
    Key,
    PaperVerdict,
    Row,
    Settings,
    Summary,
    Task,
    distinct,
    means,
    seed_of,
    skipped_notes,
)
from blowfish_fast.advice.experiments.result_files import grouped_bars, legend_above
from blowfish_fast.data.domain import Domain
from blowfish_fast.policies import AddRemove
from blowfish_fast.workloads import Rectangles

from .contenders import Contender, contender_errors
from .dawa_maps import MAPS as PAPER_MAPS
from .dawa_maps import SHAPES, sides_of
from .paper_sets import map_set
from .row_statistics import by_method, geometric_mean
from .space_maps import draw_world_maps
from .world_places import NAME as WORLD
from .world_places import missing_note, world_set

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

SETS = ("twitter", "cabspotting_end", "beijing_taxi_start", "adult")
EPSILONS = (0.01, 0.1, 0.5)
SIDE, WORLD_SIDE = 256, 1024
QUERIES = 1000
ANY = "random"
BARS = ("map", "epsilon", "method")
OURS = "DAWA"
RIVALS = ("QuadTree", "HybridTree", "KdTree", "MWEM")
"""The methods that the paper measures itself against."""

CLOSE = 1.1
"""DAWA is as good as another where its error is at most this many times it."""

MOST_MWEM_CELLS = 2**16
"""MWEM reads every cell in every round; above, a table would wait for it alone."""

CONTENDERS = (
    Contender(OURS, "dawa"),
    Contender("QuadTree", "quad_tree"),
    Contender("HybridTree", "hybrid_tree"),
    Contender("AdaptiveGrid", "adaptive_grid"),
    Contender("UniformGrid", "uniform_grid"),
    Contender("KdTree", "kd_tree"),
    Contender("MWEM", "mwem"),
)


class Space(Experiment):
    """Mean error of rectangles on five maps, and what the releases look like."""

    name = "space"
    title = "Comparison on space, after section 5.4 of DAWA"
    claim = (
        "On a map DAWA does as well as or better than methods made for rectangles "
        "(QuadTree, HybridTree, kd-tree) and MWEM."
    )
    protocol = (
        "1000 random rectangles of each of the paper's four shapes, in the proportion "
        "they have to its map, and 1000 with two uniform ends per axis; add or remove "
        "one record; mean absolute error. Four sets of 256 x 256 cells and the world's "
        "places in 1024 x 1024."
    )
    needs = tuple(f"2d/{name}" for name in SETS)
    trials = 3
    size = (14.0, 9.0)

    def tasks(self, settings: Settings) -> list[Task]:
        """Return every map, shape and epsilon."""
        shapes: Sequence[tuple[float, float] | None] = (None, *SHAPES)
        epsilons = EPSILONS[1:2] if settings.quick else EPSILONS
        return [
            Task(
                f"{name}/{shape_name(shape)}/{epsilon}",
                {"map": name, "shape": shape, "epsilon": epsilon},
            )
            for name in ((SETS[0], WORLD) if settings.quick else (*SETS, WORLD))
            for shape in (shapes[:2] if settings.quick else shapes)
            for epsilon in epsilons
        ]

    def run(self, task: Task, settings: Settings) -> list[Row]:
        """Release every method for one batch of rectangles."""
        name, shape = task.arguments["map"], task.arguments["shape"]
        data = the_map(name, settings)
        domain = Domain(data.counts.shape)
        asked = rectangles(
            domain,
            shape,
            50 if settings.quick else QUERIES,
            seed_of(settings, "rectangles", name, shape_name(shape)),
        )
        common: Row = {
            "map": data.label,
            "cells": domain.size,
            "shape": shape_name(shape),
            "epsilon": task.arguments["epsilon"],
        }
        rows: list[Row] = []
        for contender in CONTENDERS:
            if contender.mechanism == "mwem" and domain.size > MOST_MWEM_CELLS:
                refusal = f"it reads all {domain.size:,} cells in each round"
                rows.append({**common, "method": contender.label, "skipped": refusal})
                continue
            seeds = [
                seed_of(settings, task.key, contender.label, trial)
                for trial in range(settings.trials)
            ]
            found = contender_errors(
                contender,
                AddRemove(domain),
                asked,
                str(task.arguments["epsilon"]),
                data.counts,
                seeds,
            )
            rows += [{**common, **row} for row in found]
        return rows

    def summary(self, rows: Sequence[Row], settings: Settings) -> Summary:
        """Return mean errors, and the best competitor's relative to DAWA's."""
        errors, methods, lines = by_method(rows, "map", "shape", "epsilon")
        places = [tuple(line[:3]) for line in lines]
        notes = skipped_notes(rows)
        if any(str(row.get("map")).startswith(f"{WORLD} (") for row in rows):
            notes.append(missing_note())
        return Summary(
            ["map", "shape", "epsilon", *methods],
            lines,
            _verdict(errors, places, methods),
            [note for note in notes if note],
        )

    def draw(self, rows: Sequence[Row], figure: FigureBase) -> None:
        """Draw errors as bars, and below them the world: true, released, error."""
        halves = figure.add_gridspec(2, 1)
        above, below = (figure.add_subfigure(half) for half in (halves[0], halves[1]))
        _draw_bars(rows, above)
        world = [row for row in rows if str(row.get("map")).startswith(WORLD)]
        draw_world_maps(world, CONTENDERS, below)


def the_map(name: str, settings: Settings) -> DataSet:
    """Return a map by name, small in the short form."""
    if name == WORLD:
        return world_set(64 if settings.quick else WORLD_SIDE)
    side = 32 if settings.quick else SIDE
    return map_set(name, settings.data, (side, side))


def shape_name(shape: tuple[float, float] | None) -> str:
    """Return a shape as it is written: degrees of longitude and latitude."""
    return ANY if shape is None else f"({shape[0]:g}, {shape[1]:g})"


def rectangles(
    domain: Domain, shape: tuple[float, float] | None, count: int, seed: int
) -> Rectangles:
    """Return rectangles of one shape, as large a part as on the paper's map."""
    if shape is None:
        return Rectangles.random(domain, count, rng=seed)
    sides = sides_of(PAPER_MAPS["roads"], domain, *shape)
    return Rectangles.of_shape(domain, sides, count, rng=seed)


def _draw_bars(rows: Sequence[Row], figure: FigureBase) -> None:
    """Draw a panel per map: each method's error, geometric mean over the shapes."""
    by_shape: dict[Key, list[float]] = {}
    for (*place, _), error in means(rows, *BARS, "shape").items():
        if error > 0:
            by_shape.setdefault(tuple(place), []).append(error)
    errors = {key: geometric_mean(each) for key, each in by_shape.items()}
    names, epsilons = distinct(rows, "map"), distinct(rows, "epsilon")
    panels = figure.subplots(1, max(len(names), 1), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=False):
        grouped_bars(axes, errors, epsilons, distinct(rows, "method"), at=(name,))
        axes.set_title(str(name), fontsize=9)
        axes.set_xlabel("epsilon")
    legend_above(figure, panels[0], columns=7)


def _verdict(
    errors: dict[Key, float], places: Sequence[Key], methods: Sequence[str]
) -> PaperVerdict:
    """Say how often DAWA is as good as the paper's rivals, and how far off all are."""
    ratios: dict[str, list[float]] = {}
    good = first = total = 0
    for place in places:
        ours = errors.get((*place, OURS))
        others = {
            one: errors[(*place, one)]
            for one in methods
            if one != OURS and (*place, one) in errors
        }
        rivals = [error for one, error in others.items() if one in RIVALS]
        if not ours or not rivals:
            continue
        total += 1
        good += ours <= CLOSE * min(rivals)
        first += ours <= CLOSE * min(others.values())
        for one, error in others.items():
            ratios.setdefault(one, []).append(max(error, 1e-9) / ours)
    if not total:
        return PaperVerdict("not reproduced", "no error was measured")
    shown = ", ".join(
        f"{method} {geometric_mean(values):.2f}" for method, values in ratios.items()
    )
    return PaperVerdict(
        "reproduced" if 3 * good >= 2 * total else "not reproduced",
        f"DAWA is below or within 10 % of all of {', '.join(RIVALS)} in {good} of "
        f"{total} settings (of the grids too in {first}); error over DAWA's, geometric "
        f"mean: {shown}",
    )


EXPERIMENTS = (Space(),)
