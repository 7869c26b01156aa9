"""Statistical bounds for audits: what a sample proves about a likelihood ratio."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from blowfish_fast._support.typing import IntArray

Sides: TypeAlias = tuple[Counter[Hashable], Counter[Hashable]]
"""How often each outcome was seen, on two neighbours."""

TESTED = 4
"""Events whose probabilities are bounded: each one more weakens all bounds a little."""

BOUND_ERRORS = 6.0
"""Standard errors that a bound lies off, at the confidence of a whole walk."""


class Evidence(NamedTuple):
    """The strongest lower bound seen on a log-likelihood ratio, and its event.

    Attributes
    ----------
    log_ratio : float
        The bound.
    event : Hashable or None
        The event.
    events : int
        How many events were tested.
    observed : float, default 0.0
        The ratio that was seen.
    """

    log_ratio: float
    event: Hashable | None
    events: int
    observed: float = 0.0
    """The ratio of frequencies of that event: what the bound lies below."""


class Finding(NamedTuple):
    """The result of one audit, with the statement it was held against.

    Attributes
    ----------
    subject : str
        What was audited.
    epsilon : Fraction
        What it promises.
    evidence : Evidence
        What was seen.
    samples : int
        Samples per side.
    pairs : int, default 1
        How many pairs were tried.
    """

    subject: str
    epsilon: Fraction
    evidence: Evidence
    samples: int
    pairs: int = 1
    """Neighbouring pairs that were tried, of which the most telling was sampled."""

    @property
    def passed(self) -> bool:
        """Whether the evidence stays within epsilon."""
        return self.evidence.log_ratio <= float(self.epsilon)

    def __str__(self) -> str:
        verdict = "within" if self.passed else "ABOVE"
        seen = f" (observed {self.evidence.observed:.3f})" if self.samples else ""
        return (
            f"{self.subject}: log-ratio at least {self.evidence.log_ratio:.3f}{seen}, "
            f"{verdict} eps = {float(self.epsilon):g} "
            f"({self.samples:,} samples per side, {self.evidence.events} events, "
            f"{self.pairs} pairs tried)"
        )


def clopper_pearson(
    successes: int, trials: int, confidence: float
) -> tuple[float, float]:
    """Return an exact interval that holds the success probability with `confidence`.

    Parameters
    ----------
    successes : int
        How many.
    trials : int
        Of how many.
    confidence : float
        How surely.

    Returns
    -------
    low : float
        The lower end.
    high : float
        The upper end.
    """
    from scipy.stats import beta

    side, failures = (1.0 - confidence) / 2.0, trials - successes
    low = beta.ppf(side, successes, failures + 1) if successes else 0.0
    high = beta.ppf(1.0 - side, successes + 1, failures) if failures else 1.0
    return float(low), float(high)


def strongest_evidence(
    first: Iterable[Hashable], second: Iterable[Hashable], *, confidence: float = 0.999
) -> Evidence:
    """Bound the largest |log P(event) - log Q(event)| from below.

    The first quarter of both samples names the events and the rest is counted.

    Parameters
    ----------
    first : Iterable[Hashable]
        Outcomes on one side.
    second : Iterable[Hashable]
        Outcomes on the other.
    confidence : float, default 0.999
        How surely the bound holds.

    Returns
    -------
    Evidence
        The bound.
    """
    pilots, counted = [], []
    for sample in (list(first), list(second)):
        named = pilot_size(len(sample))
        pilots.append(Counter(sample[:named]))
        counted.append(Counter(sample[named:]))
    return evidence_from_counts(
        (pilots[0], pilots[1]), (counted[0], counted[1]), confidence=confidence
    )


def evidence_from_counts(
    pilots: Sides, counted: Sides, *, confidence: float = 0.999
) -> Evidence:
    """Bound a log-likelihood ratio from below, from counts of outcomes on both sides.

    Bonferroni over events, directions and probabilities keeps the whole statement at
    `confidence`.

    Parameters
    ----------
    pilots : Sides
        Counts that name the events.
    counted : Sides
        Counts that are independent of them.
    confidence : float, default 0.999
        How surely the bound holds.

    Returns
    -------
    Evidence
        The bound.
    """
    trials = [sum(side.values()) for side in counted]
    promised = [sum(side.values()) for side in pilots]
    if not all(promised) or not all(trials):
        return Evidence(0.0, None, 0)
    # Those that should give the strongest bounds on so many trials.
    events = sorted({*pilots[0], *pilots[1]}, key=repr)
    events.sort(key=lambda event: promise(pilots, event, trials[0]), reverse=True)
    events = events[:TESTED]
    each = 1.0 - (1.0 - confidence) / (2 * len(events))
    best = Evidence(0.0, None, len(events))
    for event in events:
        low_p, high_p = clopper_pearson(counted[0][event], trials[0], each)
        low_q, high_q = clopper_pearson(counted[1][event], trials[1], each)
        bound = max(_log_ratio(low_p, high_q), _log_ratio(low_q, high_p))
        if bound > best.log_ratio:
            seen = [counted[side][event] / trials[side] for side in (0, 1)]
            best = Evidence(bound, event, len(events), abs(_log_ratio(*seen)))
    return best


def tail_evidence(
    pilots: tuple[IntArray, IntArray],
    counted: tuple[IntArray, IntArray],
    *,
    delta: float,
    confidence: float = 0.999,
) -> Evidence:
    """Bound the epsilon that a mechanism has at `delta` from below, by its tails.

    For every event epsilon >= ln((P(E) - delta) / Q(E)). The two tails of the privacy
    loss are cut where the pilots promise most.

    Parameters
    ----------
    pilots : tuple[ndarray of int64, ndarray of int64]
        Counts in the order of the privacy loss, which decide where to cut.
    counted : tuple[ndarray of int64, ndarray of int64]
        Counts that are independent of them.
    delta : float
        The delta.
    confidence : float, default 0.999
        How surely the bound holds.

    Returns
    -------
    Evidence
        The bound.
    """
    trials = [int(side.sum()) for side in counted]
    each = 1.0 - (1.0 - confidence) / 4
    best = Evidence(0.0, None, 2)
    for likelier, other, name in ((0, 1, "upper"), (1, 0, "lower")):
        order = slice(None, None, -1 if likelier == 0 else 1)
        tails = [np.cumsum(side[order]) for side in pilots]
        shares = [(tail + 0.5) / (tail[-1] + 1.0) for tail in tails]
        errors = np.sqrt(1 / (tails[likelier] + 0.5) + 1 / (tails[other] + 0.5))
        above = np.maximum(shares[likelier] - delta, 1e-300) / shares[other]
        cut = int(np.argmax(np.log(above) - BOUND_ERRORS / 2 * errors))
        seen = [int(side[order][: cut + 1].sum()) for side in counted]
        low, _ = clopper_pearson(seen[likelier], trials[likelier], each)
        _, high = clopper_pearson(seen[other], trials[other], each)
        bound = _log_ratio(max(low - delta, 0.0), high)
        if bound > best.log_ratio:
            best = Evidence(bound, f"{name} tail, {cut + 1} blocks", 2)
    return best


def promise(pilots: Sides, event: Hashable, trials: int) -> float:
    """Return a log-ratio less what a bound on so many trials, and the pilot, lose.

    Parameters
    ----------
    pilots : Sides
        Counts of the pilots.
    event : Hashable
        The event.
    trials : int
        How many trials will be counted.

    Returns
    -------
    float
        The log-ratio.
    """
    often, other = (side[event] + 0.5 for side in pilots)
    sizes = [sum(side.values()) + 1.0 for side in pilots]
    ratio = abs(math.log(often / sizes[0]) - math.log(other / sizes[1]))
    own = math.sqrt(1 / often + 1 / other)
    later = math.sqrt(sizes[0] / (often * trials) + sizes[1] / (other * trials))
    return ratio - own - BOUND_ERRORS * later


def pilot_size(samples: int) -> int:
    """Return how many of so many samples name events; the others are counted."""
    return samples // 4


def _log_ratio(low: float, high: float) -> float:
    if low == 0 or high == 0:
        return -math.inf if low == 0 else math.inf
    return math.log(low / high)
