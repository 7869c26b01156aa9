"""Measure exact secure noise beside OpenDP, in one run, and print the ratios.

    pip install opendp
    python asv_benchmarks/compare_noise.py            # a minute
    python asv_benchmarks/compare_noise.py --timing 20000

One core each: CPU seconds of the thread that draws, best of a few rounds in which
both sides take turns. ``--timing`` also draws so many batches and correlates the time
of each with the size of its noise.

    shared    one scale for all draws, as on cells
    own       a scale for each draw, as on the nodes of a tree

Gaussian noise (``--gaussian``) is measured at the squares of these scales as variances.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from time import thread_time
from typing import Any

import numpy as np

from blowfish_fast.audit.black_box import timing_correlation
from blowfish_fast.measure.randomness import Randomness

SCALES = ((1, 10), (1, 1), (5, 2), (20, 1), (1000, 7), (10**6, 1), (10**9, 1))
DRAWS = 2**20
RIVAL_DRAWS = 2**12
GOALS = {"shared": 40.0, "own": 30.0}
GAUSSIAN_SCALES = ((1, 2), (1, 1), (3, 1), (30, 1), (1000, 1), (10**6, 1))
GAUSSIAN_GOALS = {"shared": 30.0, "own": 30.0}
RATIO = 500.0


def main() -> None:
    """Print draws per second of both sides, and whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--timing", type=int, default=0, metavar="BATCHES")
    parser.add_argument("--gaussian", action="store_true")
    options = parser.parse_args()
    gaussian = options.gaussian
    goals = GAUSSIAN_GOALS if gaussian else GOALS
    say("scale            shared    own    OpenDP   ratio    (million draws a second)")
    met = True
    for numerator, denominator in GAUSSIAN_SCALES if gaussian else SCALES:
        power = 2 if gaussian else 1
        scale = numerator**power, denominator**power
        sides = [
            (ours(*scale, own=False, gaussian=gaussian), DRAWS),
            (ours(*scale, own=True, gaussian=gaussian), DRAWS),
            (rival(numerator / denominator, gaussian=gaussian), RIVAL_DRAWS),
        ]
        shared, own, theirs = best_rates(sides, options.rounds)
        ratio = min(shared, own) / theirs
        say(
            f"{numerator:>10}/{denominator:<3} {shared:8.1f} {own:7.1f} {theirs:9.4f} "
            f"{ratio:7.0f}x"
        )
        met &= shared >= goals["shared"] and own >= goals["own"]
        met &= ratio >= RATIO
    wanted = f"shared {goals['shared']:g}, own {goals['own']:g}, 500x OpenDP"
    say(f"goals: {wanted}: {'met' if met else 'NOT met'}")
    if options.timing:
        say(f"timing channel: {timing_correlation(options.timing)}")


def best_rates(
    sides: list[tuple[Callable[[], Any], int]], rounds: int
) -> tuple[float, ...]:
    """Return million draws per CPU second of each side, the best of all rounds."""
    least = [float("inf")] * len(sides)
    for call, _ in sides:
        call()
    for _ in range(rounds):
        for place, (call, _) in enumerate(sides):
            start = thread_time()
            call()
            least[place] = min(least[place], thread_time() - start)
    return tuple(
        draws / seconds / 1e6 for seconds, (_, draws) in zip(least, sides, strict=True)
    )


def ours(
    numerator: int, denominator: int, *, own: bool, gaussian: bool = False
) -> Callable[[], Any]:
    """Return a call that draws secure noise with a new key, its words included."""

    def draw(above: Any, below: Any, **how: Any) -> Any:
        source = Randomness()
        kind = source.gaussian if gaussian else source.laplace
        return kind(above, below, threads=1, **how)

    below = np.full(DRAWS, denominator) if own else denominator
    if own:
        # Scales that differ a little, so that none can be shared.
        above = numerator * 1024 + np.arange(DRAWS) % 1024
        below = below * 1024
        return lambda: draw(above, below)
    return lambda: draw(numerator, below, size=DRAWS)


def rival(scale: float, *, gaussian: bool = False) -> Callable[[], Any]:
    """Return a call that draws OpenDP's discrete noise on a vector."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if gaussian:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)
    else:
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    zeros = [0] * RIVAL_DRAWS
    return lambda: measurement(zeros)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
