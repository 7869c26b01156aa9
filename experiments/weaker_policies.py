"""A weaker policy beside a stronger one: the same mechanism, the same data.

    python -m experiments weaker --trials 12
    python -m experiments weaker --data FOLDER          thinned sets of the folder, too

What is private under a stronger policy is private under a weaker one, so a mechanism
should never be less accurate under the weaker. `OrderedHierarchical` is released under
`Full`, under thresholds of a quarter, an eighth, a sixteenth and a thirty-second of the
line and under `Line`; mean squared error per query, each policy over the next stronger
one, in geometric mean over sets and epsilons. The sets are those of ``experiments
siblings``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import blowfish_fast as bf
from blowfish_fast.mechanisms.ordered import OrderedHierarchical

from .siblings import CELLS, KINDS, asked_of, fresh_sets, generator_of

EPSILONS = ("0.1", "1")
TRIALS = 12
PARTS = (4, 8, 16, 32)
"""Thresholds, as parts of the line."""


def policy_chain(cells: int) -> dict[str, Any]:
    """Return policies by name, each implied by the one before."""
    line = bf.Domain(cells)
    chain: dict[str, Any] = {"all moves": bf.policies.Full(line)}
    for part in PARTS:
        theta = max(cells // part, 1)
        chain[f"1/{part} of the line"] = bf.policies.Threshold(line, theta=theta)
    chain["neighbours"] = bf.policies.Line(line)
    return chain


def weaker_report(data: Path | None, trials: int | None) -> Iterator[str]:
    """Yield the quotients of each set and epsilon, then their means."""
    times = trials or TRIALS
    chain = policy_chain(CELLS)
    for kind in KINDS:
        logs: dict[str, list[float]] = {}
        for name, counts in fresh_sets(data):
            asked = asked_of(kind, name)
            true = asked.answer(counts)
            for epsilon in EPSILONS:
                # The same seeds under every policy: the same plan is the same release.
                seeds = generator_of(kind, name, epsilon).integers(2**32, size=times)
                errors = {}
                for weaker, policy in chain.items():
                    mechanism = OrderedHierarchical(policy, asked, epsilon=epsilon)
                    releases = [mechanism.release(counts, rng=int(x)) for x in seeds]
                    squares = [(each.answer(asked) - true) ** 2 for each in releases]
                    errors[weaker] = float(np.mean(squares))
                told = ", ".join(
                    f"{weaker} {error:.4g}" for weaker, error in errors.items()
                )
                yield f"{kind}, {name}, epsilon {epsilon}: {told}"
                for stronger, weaker in pairwise(errors):
                    quotient = np.log(errors[weaker] / errors[stronger])
                    logs.setdefault(f"{weaker} over {stronger}", []).append(quotient)
        for pair, found in logs.items():
            off = np.std(found) / len(found) ** 0.5
            yield (
                f"{kind}: {pair} {np.exp(np.mean(found)):.3f} (standard error "
                f"{off:.3f} of the mean logarithm), worst {np.exp(np.max(found)):.2f}"
            )
