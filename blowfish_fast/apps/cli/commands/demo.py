"""``blowfish demo``: real releases of a million cells, from generated data."""

from __future__ import annotations

import statistics
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import blowfish_fast as bf
from blowfish_fast._support.compiler_watch import COMPILER
from blowfish_fast.apps.cli.kernels_ahead import compiling_beside
from blowfish_fast.apps.cli.options import Json, with_options
from blowfish_fast.apps.cli.printing import Report, show, show_pairs, spinner
from blowfish_fast.errors import InputError

from .ledger import Stated

if TYPE_CHECKING:
    from blowfish_fast._support.typing import IntArray

RECORDS = 2_000_000


@with_options
def run_demo(
    stated: Stated,
    side: Annotated[int, typer.Option(help="Cells per side of the grid.")] = 1024,
    queries: Annotated[int, typer.Option(help="Random rectangles asked.")] = 2000,
    draws: Annotated[int, typer.Option(help="Releases that are compared.")] = 5,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the picture goes.")
    ] = Path("blowfish-demo.png"),
    as_json: Json = False,
) -> None:
    """Release a made-up map of 2^20 cells several times: error, time and promise.

    At epsilon 0.1 unless a budget is stated.
    """
    if not 2 <= side <= 2**13:
        raise InputError(f"side must lie between 2 and 8192 cells; received {side}")
    if not 1 <= draws <= 1000:
        raise InputError(f"draws must lie between 1 and 1000; received {draws}")
    # Before numpy and the package are loaded here, which takes a second the first time.
    with compiling_beside(), spinner("demo") as step:
        from blowfish_fast.apps.cli.files.outputs import write_picture
        from blowfish_fast.measure.budgets import Budget

        named = any(term is not None for term in vars(stated).values())
        spent = Budget.stated(**(vars(stated) if named else {"epsilon": "0.1"}))
        by_cell = bf.Laplace if spent.power == 1 else bf.Gaussian
        grid = bf.Domain((side, side), names=("north", "east"))
        policy = bf.policies.AddRemove(grid)
        counts = generated_city(side)
        rectangles = bf.workloads.Rectangles.random(grid, queries, rng=7)
        data = bf.Histogram(grid, counts)
        (releases, seconds), (plainly_made, _) = (
            _release_often(recipe(policy, rectangles, epsilon=spent), data, draws, step)
            for recipe in (bf.Dawa, by_cell)
        )
        step("drawing")
        release, picture = releases[-1], None
        if find_spec("matplotlib") is not None:
            picture = write_picture(lambda: _maps(counts, releases[-1]), out)
    # As numbers of the same kind as a release's: their sums share a kernel.
    truth = rectangles.answer(counts.astype(float))
    (error, spread), (plain, plain_spread) = (
        _mean_and_spread(
            [abs(release.answer(rectangles) - truth).mean() for release in some]
        )
        for some in (releases, plainly_made)
    )
    facts = {
        "cells": grid.size,
        "records": int(counts.sum()),
        "queries": queries,
        "draws": draws,
        **spent.to_dict(),
        "buckets": int(release.details["buckets"]),
        "seconds": seconds,
        "mean_error": error,
        "mean_error_spread": spread,
        f"mean_error_{by_cell.name}": plain,
        f"mean_error_{by_cell.name}_spread": plain_spread,
        "promise": str(release.guarantee),
        "picture": picture,
    }
    if as_json:
        show(facts)
        return
    show_pairs(
        f"A private map of {grid.size:,} cells (generated city, "
        f"{facts['records']:,} records)",
        [
            ("cost", f"{spent.in_short()} for one release"),
            ("time", f"{seconds:.2f} s for one release, once its kernels are compiled"),
            ("buckets", f"{facts['buckets']:,} chosen privately"),
            (
                "error",
                f"{error:,.1f} records per rectangle on average (standard deviation "
                f"{spread:,.1f} over {draws} releases), over {queries:,} random "
                f"rectangles of {truth.mean():,.0f} records on average",
            ),
            (
                "without DAWA",
                f"{plain:,.1f} (standard deviation {plain_spread:,.1f}; noise on every "
                f"cell): {plain / error:.1f}x",
            ),
            ("promise", str(release.guarantee)),
            ("picture", picture or "install blowfish_fast[plot] to get one"),
        ],
    )


def _release_often(
    mechanism: Any, data: bf.Histogram, draws: int, step: Report
) -> tuple[list[bf.Release], float]:
    """Return some releases, and the median of their seconds without the compiler."""
    releases, spent = [], []
    for number in range(1, draws + 1):
        step(f"{mechanism.name}, release {number} of {draws}")
        start, compiling = time.perf_counter(), COMPILER.seconds
        releases.append(mechanism.release(data))
        waited = COMPILER.seconds - compiling
        spent.append(time.perf_counter() - start - waited)
    return releases, statistics.median(spent)


def _mean_and_spread(errors: list[float]) -> tuple[float, float]:
    return statistics.mean(errors), statistics.stdev(errors) if errors[1:] else 0.0


def generated_city(side: int, *, seed: int = 2014) -> IntArray:
    """Return counts of a made-up city: districts, streets and empty land.

    Parameters
    ----------
    side : int
        Cells of each side of the map.
    seed : int
        Another seed makes another city.

    Returns
    -------
    (side, side) int64
        Records in each cell.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    centres = generator.uniform(0.15, 0.85, size=(12, 2))
    spreads = generator.uniform(0.01, 0.08, size=12)
    shares = generator.dirichlet(np.ones(12) * 2.0)
    members = generator.multinomial(RECORDS * 9 // 10, shares)
    places = [
        generator.normal(centre, spread, size=(count, 2))
        for centre, spread, count in zip(centres, spreads, members, strict=True)
    ]
    along = generator.uniform(0, 1, size=(RECORDS // 10, 1))
    offset = generator.normal(0, 0.002, size=(RECORDS // 10, 1))
    street = np.hstack([along, 0.3 + 0.4 * along + offset])
    points = np.vstack([*places, street])
    cells = np.clip((points * side).astype(np.int64), 0, side - 1)
    flat = np.bincount(cells[:, 0] * side + cells[:, 1], minlength=side * side)
    return flat.reshape(side, side).astype(np.int64)


def _maps(counts: IntArray, release: bf.Release) -> Any:
    """Draw what was made up, and beside it what was released, in the same colours."""
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(
        *(1, 2), figsize=(11, 5), layout="constrained", sharex=True, sharey=True
    )
    # Without room of its own the title is cut off above.
    figure.get_layout_engine().set(h_pad=0.15)
    bf.plotting.density(
        counts, axes=left, title="generated records", labels=("north", "east")
    )
    bf.plotting.grid_map(release, axes=right)
    right.images[0].set_clim(left.images[0].get_clim())
    figure.colorbar(left.images[0], ax=[left, right], label="log(1 + records)")
    return left
