"""Statistical bounds for audits: what a sample proves about a likelihood ratio."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import NamedTuple


class Evidence(NamedTuple):
    """The strongest lower bound found on a log-likelihood ratio, and its event."""

    log_ratio: float
    event: Hashable | None
    events: int


def clopper_pearson(
    successes: int, trials: int, confidence: float
) -> tuple[float, float]:
    """Return an interval that holds the success probability with `confidence`.

    Exact for the binomial law: each side misses with at most half of the rest.
    """
    from scipy.stats import beta

    side = (1.0 - confidence) / 2.0
    low = 0.0 if successes == 0 else beta.ppf(side, successes, trials - successes + 1)
    high = (
        1.0
        if successes == trials
        else beta.ppf(1.0 - side, successes + 1, trials - successes)
    )
    return float(low), float(high)


def strongest_evidence(
    first: Iterable[Hashable], second: Iterable[Hashable], *, confidence: float = 0.999
) -> Evidence:
    """Bound the largest |log P(event) - log Q(event)| from below, over all events seen.

    Both samples are split: the first half names the events, the second half is counted,
    so choosing them does not bias the bounds; Bonferroni over the events, both
    directions and both probabilities keeps the whole statement at `confidence`.
    """
    chosen_p, counted_p = _halves(list(first))
    chosen_q, counted_q = _halves(list(second))
    events = sorted(set(chosen_p) | set(chosen_q), key=repr)
    if not events:
        return Evidence(0.0, None, 0)
    each = 1.0 - (1.0 - confidence) / (2 * len(events))
    trials_p, trials_q = sum(counted_p.values()), sum(counted_q.values())
    best = Evidence(0.0, None, len(events))
    for event in events:
        low_p, high_p = clopper_pearson(counted_p[event], trials_p, each)
        low_q, high_q = clopper_pearson(counted_q[event], trials_q, each)
        bound = max(_log_ratio(low_p, high_q), _log_ratio(low_q, high_p))
        if bound > best.log_ratio:
            best = Evidence(bound, event, len(events))
    return best


def _halves(sample: list[Hashable]) -> tuple[Counter[Hashable], Counter[Hashable]]:
    middle = len(sample) // 2
    return Counter(sample[:middle]), Counter(sample[middle:])


def _log_ratio(low: float, high: float) -> float:
    return math.log(low / high) if low > 0 else -math.inf
