"""``blowfish demo``: a real release on a million cells, from generated data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.apps.cli.printing import show, show_pairs, waiting
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import InputError, MissingExtraError
from blowfish_fast.mechanisms.dawa import Dawa
from blowfish_fast.mechanisms.laplace import Laplace
from blowfish_fast.policies import AddRemove
from blowfish_fast.release.release import Release
from blowfish_fast.workloads import Rectangles

RECORDS = 2_000_000


def generated_city(side: int, *, seed: int = 2014) -> IntArray:
    """Return counts of a made-up city: districts, streets and empty land."""
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


def run_demo(
    epsilon: str, side: int, queries: int, out: Path, *, as_json: bool = False
) -> None:
    """Release, measure, print and draw."""
    if not 2 <= side <= 2**13:
        raise InputError(f"side must lie between 2 and 8192 cells; received {side}")
    grid = Domain((side, side), names=("north", "east"))
    counts = generated_city(side)
    rectangles = Rectangles.random(grid, queries, rng=7)
    policy = AddRemove(grid)
    dawa = Dawa(policy, rectangles, epsilon=epsilon)
    data = Histogram(grid, counts)
    with waiting("demo") as step:
        step("compiling kernels, on the first run only")
        _compile(epsilon)
        step("releasing")
        start = time.perf_counter()
        release = dawa.release(data)
        seconds = time.perf_counter() - start
        step("measuring its error")
        truth = rectangles.answer(counts)
        laplace = Laplace(policy, rectangles, epsilon=epsilon).release(data)
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


def _compile(epsilon: str) -> None:
    """Run the same recipe on a small grid, so that the clock sees no compilation."""
    small = Domain((32, 32))
    rectangles = Rectangles.random(small, 16, rng=1)
    for mechanism in (Dawa, Laplace):
        mechanism(AddRemove(small), rectangles, epsilon=epsilon).release(
            np.ones(small.shape, dtype=np.int64)
        ).answer(rectangles)


def _mean_error(release: Release, asked: Rectangles, truth: Any) -> float:
    errors: FloatArray = np.abs(release.answer(asked) - truth)
    return float(errors.mean())


def _draw(counts: IntArray, release: Release, out: Path) -> str | None:
    try:
        from blowfish_fast._support.optional import require

        matplotlib = require("matplotlib", extra="plot", purpose="The demo's picture")
    except MissingExtraError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from blowfish_fast.plotting import density, grid_map

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
    density(counts, axes=left, title="generated records", labels=("north", "east"))
    grid_map(release, axes=right)
    right.images[0].set_clim(left.images[0].get_clim())
    figure.colorbar(left.images[0], ax=[left, right], label="log(1 + records)")
    figure.savefig(out, dpi=120)
    pyplot.close(figure)
    return str(out)
