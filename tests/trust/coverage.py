"""Intervals over many releases: how often they miss the answer on the bucketed data."""

from __future__ import annotations

import math

import numpy as np

import blowfish_fast as bf
from blowfish_fast.errors import BlowfishError
from blowfish_fast.mechanisms.registry import MECHANISMS

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
