"""The law of a descent from its definition: every tree, and its probability."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


def upper(t: int, a: float) -> float:
    """Return P(Z >= t) for P(Z = z) proportional to a^|z|."""
    return a**t / (1 + a) if t >= 1 else 1 - a ** (1 - t) / (1 + a)


def tree_law(
    counts: Sequence[int],
    scale: float,
    bias: int,
    fan_out: int = 2,
    bug: str = "",
    score: Callable[[Sequence[int]], int] = sum,
) -> dict[tuple[int, ...], float]:
    """Return the probability of each set of places where buckets begin."""
    a = math.exp(-1.0 / scale)

    def visit(low: int, high: int, depth: int) -> dict[tuple[int, ...], float]:
        if high - low == 1:
            return {(low,): 1.0}
        weight = score(counts[low:high])
        if bug != "no bias by depth":
            weight -= depth * bias
        if bug != "no clamp":
            weight = max(-bias, weight)
        divided = upper(-weight + (bug == "strict"), a)
        step = (high - low) // min(fan_out, high - low)
        trees: dict[tuple[int, ...], float] = {(): divided}
        for start in range(low, high, step):
            below = visit(start, start + step, depth + 1)
            trees = {
                left + right: chance * other
                for left, chance in trees.items()
                for right, other in below.items()
            }
        trees[(low,)] = trees.get((low,), 0.0) + 1.0 - divided
        return trees

    return visit(0, len(counts), 0)


def ratio(first: dict[tuple[int, ...], float], second: dict) -> float:
    """Return the largest log-ratio of two laws."""
    return max(abs(math.log(chance / second[tree])) for tree, chance in first.items())
