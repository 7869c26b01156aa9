"""Intervals over many releases: how often they miss what they say they hold.

Noise intervals are compared with the answer on the bucketed data, and intervals that
say "truth" with the true answer.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast.advice.experiments.datasets import data_set, sets_in
from blowfish_fast.errors import BlowfishError
from blowfish_fast.mechanisms.registry import MECHANISMS, RHO_MECHANISMS

LINE = bf.Domain(16)
GRID = bf.Domain((4, 4))
BETA = 0.05


def asked(domain):
    """A cell, a half, a middle: few queries, so that none misses by chance."""
    if domain.ndim == 1:
        return bf.workloads.Ranges(domain, [3, 0, 4], [4, 8, 13])
    lows, highs = [[1, 1], [0, 0], [1, 0]], [[2, 2], [2, 4], [3, 3]]
    return bf.workloads.Rectangles(domain, lows, highs)


def offered(name):
    """Return a mechanism with intervals and its data, or None."""
    for domain in (LINE, GRID):
        policy = bf.policies.Full(domain)
        try:
            made, data = MECHANISMS[name].example(domain, policy, 1)
            release = made.release(data, rng=1)
            release.intervals(asked(domain), of="noise")
        except (BlowfishError, AttributeError):
            continue
        return made, data
    return None


def missed(made, data, releases, seed=0):
    """Return how often each query's interval misses, as a part of all releases."""
    queries = asked(made.domain)
    counts = made._counts(data)
    misses = np.zeros(queries.queries)
    for number in range(releases):
        release = made.release(data, rng=seed + number)
        buckets = release._linear().buckets
        truth = buckets.expand(buckets.sum(counts).astype(float))
        answers = queries.answer(truth.reshape(made.domain.shape))
        low, high = release.intervals(queries, 1 - BETA, of="noise").T
        misses += (answers < low - 1e-9) | (answers > high + 1e-9)
    return misses / releases


def allowed(releases):
    """Beta and three standard errors."""
    return BETA + 3 * math.sqrt(BETA * (1 - BETA) / releases)


SIDES = {"1d": 128, "2d": 16}
"""Cells along each axis of the sets on which intervals must hold the truth."""

ASKED = 40
TRIED = 5
"""Releases after which a case that was never granted the truth is left."""

BUDGETS = ({"epsilon": "0.5"}, {"rho": "0.1"})


class TruthCase(NamedTuple):
    """A mechanism on a data set."""

    name: str
    mechanism: Any
    counts: Any


def truth_cases(data=None, names=None):
    """Yield every mechanism that takes a set, in either currency, under two policies.

    The sets are generated, or those of a folder, in 128 cells or 16 x 16.
    """
    known = {**MECHANISMS, **RHO_MECHANISMS}
    for name in sorted(known if names is None else names):
        for need in sets_in(data):
            counts = data_set(need, data, SIDES[need[:2]]).counts
            domain = bf.Domain(counts.shape)
            asked = boxes(domain, *random_corners(domain))
            far = bf.policies.Line if domain.ndim == 1 else bf.policies.Full
            for policy in (bf.policies.AddRemove(domain), far(domain)):
                for budget in BUDGETS:
                    try:
                        made = known[name](policy, asked, **budget)
                    except (BlowfishError, TypeError):
                        continue
                    yield TruthCase(name, made, counts)


def random_corners(domain):
    """Corners of boxes: a quarter of them cells, one of them all of the domain."""
    rng = np.random.default_rng(3)
    shape = np.array(domain.shape)
    lows = rng.integers(0, shape, (ASKED, shape.size))
    highs = rng.integers(lows, shape) + 1
    highs[: ASKED // 4] = lows[: ASKED // 4] + 1
    lows[-1], highs[-1] = 0, shape
    return lows, highs


def boxes(domain, lows, highs):
    """Return the queries between corners."""
    if domain.ndim == 1:
        return bf.workloads.Ranges(domain, lows[:, 0], highs[:, 0])
    return bf.workloads.Rectangles(domain, lows, highs)


def untrue(case, releases):
    """Return in how many releases the truth was said of a query, and its misses.

    The share is that of the queries granted, on the average of such releases, so that
    a release counts once and the standard error is at most that of so many tosses.
    """
    granted, missed = 0, 0.0
    domain = case.mechanism.domain
    lows, highs = random_corners(domain)
    asked = boxes(domain, lows, highs)
    true = np.asarray(asked.answer(case.counts))
    for number in range(releases):
        if number == TRIED and not granted:
            break
        try:
            release = case.mechanism.release(case.counts, rng=number)
            said = release.holds_truth(asked)
        except (BlowfishError, AttributeError):
            return 0, 0.0
        if said.any():
            part = asked if said.all() else boxes(domain, lows[said], highs[said])
            low, high = release.intervals(part, 1 - BETA, of="truth").T
            wrong = (true[said] < low - 1e-9) | (true[said] > high + 1e-9)
            granted, missed = granted + 1, missed + wrong.mean()
    return granted, missed / max(granted, 1)
