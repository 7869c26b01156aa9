"""``blowfish demo``: a real release on a million cells, from generated data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import blowfish_fast as bf
from blowfish_fast._support.optional import require
from blowfish_fast.apps.cli.options import Json
from blowfish_fast.apps.cli.printing import show, show_pairs, spinner
from blowfish_fast.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from blowfish_fast._support.typing import IntArray

RECORDS = 2_000_000


def run_demo(
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="What the release may spend.")
    ] = "0.1",
    side: Annotated[int, typer.Option(help="Cells per side of the grid.")] = 1024,
    queries: Annotated[int, typer.Option(help="Random rectangles asked.")] = 2000,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the picture goes.")
    ] = Path("blowfish-demo.png"),
    as_json: Json = False,
) -> None:
    """Release a made-up map of 2^20 cells, and say what it cost."""
    if not 2 <= side <= 2**13:
        raise InputError(f"side must lie between 2 and 8192 cells; received {side}")
    grid = bf.Domain((side, side), names=("north", "east"))
    counts = generated_city(side)
    rectangles = bf.workloads.Rectangles.random(grid, queries, rng=7)
    policy = bf.policies.AddRemove(grid)
    dawa = bf.Dawa(policy, rectangles, epsilon=epsilon)
    data = bf.Histogram(grid, counts)
    with spinner("demo") as step:
        step("compiling kernels, on the first run only")
        _compile(epsilon)
        step("releasing")
        start = time.perf_counter()
        release = dawa.release(data)
        seconds = time.perf_counter() - start
        step("measuring its error")
        truth = rectangles.answer(counts)
        laplace = bf.Laplace(policy, rectangles, epsilon=epsilon).release(data)
        error = _mean_error(release, rectangles, truth)
        plain = _mean_error(laplace, rectangles, truth)
        step("drawing")
        picture = _draw(counts, release, out)
    if as_json:
        show(
            {
                "cells": grid.size,
                "records": int(counts.sum()),
                "queries": queries,
                "epsilon": str(release.guarantee.epsilon),
                "buckets": int(release.details["buckets"]),
                "seconds": seconds,
                "mean_error": error,
                "mean_error_laplace": plain,
                "promise": str(release.guarantee),
                "picture": picture,
            }
        )
        return
    show_pairs(
        f"A private map of {grid.size:,} cells (generated city, "
        f"{int(counts.sum()):,} records)",
        [
            ("cost", f"eps = {float(release.guarantee.epsilon):g}, spent once"),
            ("time", f"{seconds:.2f} s for the release"),
            ("buckets", f"{int(release.details['buckets']):,} chosen privately"),
            (
                "error",
                f"{error:,.1f} records per rectangle on average, over {queries:,} "
                f"random rectangles of {truth.mean():,.0f} records on average",
            ),
            (
                "without DAWA",
                f"{plain:,.1f} (noise on every cell): {plain / error:.1f}x",
            ),
            ("promise", str(release.guarantee)),
            ("picture", picture or "install blowfish_fast[plot] to get one"),
        ],
    )


def generated_city(side: int, *, seed: int = 2014) -> IntArray:
    """Return counts of a made-up city: districts, streets and empty land."""
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


def _compile(epsilon: str) -> None:
    """Run the same recipe on a small grid, so that the clock sees no compilation."""
    small = bf.Domain((32, 32))
    rectangles = bf.workloads.Rectangles.random(small, 16, rng=1)
    data = bf.Histogram(small, [[1] * 32] * 32)
    for mechanism in (bf.Dawa, bf.Laplace):
        made = mechanism(bf.policies.AddRemove(small), rectangles, epsilon=epsilon)
        made.release(data).answer(rectangles)


def _mean_error(release: bf.Release, asked: bf.workloads.Workload, truth: Any) -> float:
    return float(abs(release.answer(asked) - truth).mean())


def _draw(counts: IntArray, release: bf.Release, out: Path) -> str | None:
    try:
        matplotlib = require("matplotlib", extra="plot", purpose="The demo's picture")
    except MissingExtraError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
    bf.plotting.density(
        counts, axes=left, title="generated records", labels=("north", "east")
    )
    bf.plotting.grid_map(release, axes=right)
    right.images[0].set_clim(left.images[0].get_clim())
    figure.colorbar(left.images[0], ax=[left, right], label="log(1 + records)")
    figure.savefig(out, dpi=120)
    pyplot.close(figure)
    return str(out)
