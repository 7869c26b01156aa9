"""Every sampler by its statistics: the law, its order, other words, other threads.

Keys are seeded, so that a result is the same every time; secure keys go through the
same cipher. Draws fall into a few classes of known probability, and pairs of draws
into pairs of classes, whose probabilities are products if the draws are independent.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import warnings
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import NamedTuple

import mpmath
import numpy as np
import pytest
from scipy import stats

import blowfish_fast as bf
from blowfish_fast.kernels._arguments import RESOLVER_BASE
from blowfish_fast.kernels.partition.dyadic_partition import sample_dyadic_partition
from blowfish_fast.kernels.sampling import discrete_laplace as kernels
from blowfish_fast.kernels.sampling.discrete_laplace import (
    BLOCK,
    CHUNK,
    subtract_geometric,
)
from blowfish_fast.kernels.sampling.exponential_choice import choose, choose_by_cost
from blowfish_fast.measure import randomness
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.mechanisms.registry import MECHANISMS

pytestmark = pytest.mark.audit

DRAWS = 1 << 18
LEAST = 1e-4
LAGS = (1, 2, BLOCK, CHUNK)
SCALES = ((1, 3), (5, 2), (1000, 7))


class Sampler(NamedTuple):
    """Draws by class, with the probabilities of the classes."""

    classes: object
    law: object


def tail(size, scale, signed):
    """P(|Z| >= size) of the law with or without a sign."""
    weight = 2 / (1 + math.exp(-1 / scale)) if signed else 1.0
    return 1.0 if size <= 0 else weight * math.exp(-size / scale)


def sized(numerator, denominator, signed):
    """Return cuts of the sizes into classes, and the law of the classes."""
    scale = numerator / denominator
    cuts = np.unique(np.ceil(scale * np.array([0.05, 0.3, 0.7, 1.2, 2.0]))).clip(1)
    cuts = np.unique(cuts)
    tails = [1.0, *(tail(cut, scale, signed) for cut in cuts), 0.0]
    return cuts, -np.diff(tails)


def noise(kind, numerator, denominator, own):
    """One shared scale, or the same scale stated for every draw."""
    signed = kind == "laplace"
    cuts, law = sized(numerator, denominator, signed)

    def classes(rng, count, threads=1):
        below = np.full(count, denominator) if own else denominator
        size = None if own else count
        drawn = getattr(rng, kind)(numerator, below, size=size, threads=threads)
        return np.searchsorted(cuts, np.abs(drawn), side="right")

    return Sampler(classes, law)


def subtracted(scale):
    cuts, law = sized(*float(scale).as_integer_ratio(), False)

    def classes(rng, count):
        costs = np.zeros(count, dtype=np.int64)
        subtract_geometric(costs, rng.stream(), 0, scale)
        return np.searchsorted(cuts, -costs, side="right")

    return Sampler(classes, law)


def signs():
    """The sign of noise and whether it is large, which have nothing to do with it."""
    large = tail(4, 3, True) / tail(1, 3, True)

    def classes(rng, count):
        drawn = rng.laplace(3, 1, size=2 * count)
        drawn = drawn[drawn != 0][:count]
        return 2 * (np.abs(drawn) >= 4) + (drawn > 0)

    halves = [(1 - large) / 2] * 2 + [large / 2] * 2
    return Sampler(classes, np.array(halves))


def weighed(nats):
    row = np.round(np.array(nats) * 2**44).astype(np.int64)
    weights = np.exp(np.array(nats))

    def classes(rng, count):
        return choose(rng.stream(), 0, np.tile(row, (count, 1)), 44)

    return Sampler(classes, weights / weights.sum())


def by_cost(costs, rate, prior=None):
    weights = np.exp(
        -np.array(costs) * float(rate) + (prior if prior is not None else 0)
    )

    def classes(rng, count):
        rows = np.tile(np.array(costs), (count, 1))
        return choose_by_cost(rng.stream(), 0, rows, rate, prior)

    return Sampler(classes, weights / weights.sum())


def pair_of_cells():
    """Two cells with counts 1 and 3, together or apart: one choice of the tree."""
    rate, counts = Fraction(1, 5), np.array([1, 3])

    def together(rng):
        parts = sample_dyadic_partition(counts, rng.stream(), rate=rate, penalty=1)
        return int(parts.size == 2)

    from tests.kernels.partition.test_dyadic_partition import stored_law, tree_weights

    law = stored_law((1, 3), tree_weights(2, rate=rate, penalty=1))
    joined = float(sum(p for parts, p in law.items() if len(parts) == 1))

    def classes(rng, count):
        return np.array([together(rng) for _ in range(count // 64)])

    return Sampler(classes, np.array([1 - joined, joined]))


SAMPLERS = {
    **{
        f"{kind} {a}/{b}{' own' if own else ''}": noise(kind, a, b, own)
        for kind in ("laplace", "geometric")
        for a, b in SCALES
        for own in (False, True)
    },
    "subtract_geometric": subtracted(2.5),
    "sign of laplace": signs(),
    "choose": weighed([0.0, 0.5, -1.0, 0.25]),
    "choose_by_cost": by_cost([7, 5, 9, 5], Fraction(1, 4)),
    "choose_by_cost with a prior": by_cost(
        [2, 0, 1], Fraction(1, 2), np.log([0.5, 0.25, 0.25])
    ),
    "sample_dyadic_partition": pair_of_cells(),
}


def independent(first, second, law):
    """Return the p-value of pairs of draws, if each follows `law` by itself."""
    classes = law.size
    seen = np.bincount(first * classes + second, minlength=classes**2)
    expected = np.outer(law, law).ravel() * first.size
    assert expected.min() > 5, "classes are too rare to be judged"
    return stats.chisquare(seen, expected).pvalue


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_follow_their_law_whatever_came_before(name):
    sampler = SAMPLERS[name]
    law = np.asarray(sampler.law)
    drawn = sampler.classes(Randomness(11), DRAWS)
    seen = np.bincount(drawn, minlength=law.size)
    assert stats.chisquare(seen, law * drawn.size).pvalue > LEAST
    for lag in LAGS:
        if lag < drawn.size // 4:
            assert independent(drawn[:-lag], drawn[lag:], law) > LEAST, lag


@pytest.mark.parametrize("name", SAMPLERS)
def test_streams_and_keys_are_strangers(name):
    sampler = SAMPLERS[name]
    law = np.asarray(sampler.law)
    rng = Randomness(5)
    first, second = (sampler.classes(rng, DRAWS // 2) for _ in range(2))
    other = sampler.classes(Randomness(6), DRAWS // 2)
    size = min(first.size, second.size, other.size)
    assert independent(first[:size], second[:size], law) > LEAST
    assert independent(first[:size], other[:size], law) > LEAST


def test_a_sampler_that_repeats_itself_is_caught():
    sampler = SAMPLERS["laplace 5/2"]
    drawn = sampler.classes(Randomness(3), DRAWS)
    repeated = drawn.copy()
    repeated[1::2] = drawn[::2]
    assert independent(repeated[:-1], repeated[1:], sampler.law) < 1e-12
    narrow = noise("laplace", 24, 10, False).classes(Randomness(3), DRAWS)
    seen = np.bincount(narrow, minlength=sampler.law.size)
    assert stats.chisquare(seen, sampler.law * DRAWS).pvalue < 1e-12


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("kind", ["laplace", "geometric"])
def test_parts_drawn_by_threads_fit_together(kind, own):
    sampler = noise(kind, 5, 2, own)
    alone = sampler.classes(Randomness(9), DRAWS, threads=1)
    together = sampler.classes(Randomness(9), DRAWS, threads=3)
    assert np.array_equal(alone, together)
    third = DRAWS // 3
    assert (
        independent(together[:third], together[third : 2 * third], sampler.law) > LEAST
    )


def test_threads_that_share_a_source_draw_independent_noise():
    sampler = SAMPLERS["laplace 5/2"]
    rng, barrier = Randomness(4), threading.Barrier(4)

    def draw(_):
        barrier.wait()
        return sampler.classes(rng, DRAWS // 4)

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(draw, range(4)))
    for first in range(4):
        for second in range(first):
            assert independent(parts[first], parts[second], sampler.law) > LEAST


def laplace(cells=64, epsilon=Fraction(1, 10**6)):
    line = bf.Domain(cells)
    policy = bf.policies.AddRemove(line)
    return bf.Laplace(policy, bf.workloads.Identity(line), epsilon=epsilon)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_never_draw_the_same_noise():
    made, counts = laplace(), np.zeros(64, dtype=np.int64)
    seen = [made.release(counts).estimate]
    for _ in range(3):
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                os.write(writing, made.release(counts).estimate.tobytes())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            seen.append(np.frombuffer(pipe.read(), dtype=np.float64))
        os.waitpid(child, 0)
        seen.append(made.release(counts).estimate)
    assert all(one.size == 64 for one in seen)
    every = np.concatenate(seen)
    # The scale is a million: equal values are a rare accident, equal runs are none.
    assert np.unique(every).size > every.size - 5


class Reads:
    """Notes which words of which keys are read."""

    def __init__(self, monkeypatch):
        self.keys, self.places = [], defaultdict(list)
        made, called = randomness.WordStream.__init__, randomness.WordStream.__call__
        names = {}

        def make(stream, key, *, secure):
            made(stream, key, secure=secure)
            names[id(stream)] = (len(self.keys), stream)
            self.keys.append(key)

        def call(stream, position, count):
            number, _ = names[id(stream)]
            self.places[number].append((position, position + count))
            return called(stream, position, count)

        monkeypatch.setattr(randomness.WordStream, "__init__", make)
        monkeypatch.setattr(randomness.WordStream, "__call__", call)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_no_word_of_any_key_is_read_for_two_purposes(name, monkeypatch):
    reads = Reads(monkeypatch)
    line = bf.Domain(40)
    made, data = MECHANISMS[name].example(line, bf.policies.Full(line), 1)
    for _ in range(2):
        made.release(data)
    assert len(reads.keys) >= 2
    assert len(set(reads.keys)) == len(reads.keys)
    for places in reads.places.values():
        ordered = sorted(one for one in places if one[0] < RESOLVER_BASE)
        for (_, end), (start, _) in itertools.pairwise(ordered):
            assert end <= start, "a word was read twice"


def test_a_reused_stream_is_caught(monkeypatch):
    reads = Reads(monkeypatch)
    stream = randomness.WordStream(b"k" * 32, secure=False)
    monkeypatch.setattr(Randomness, "stream", lambda _self: stream)
    laplace().release(np.zeros(64))
    laplace().release(np.zeros(64))
    places = sorted(reads.places[0])
    assert any(start < end for (_, end), (start, _) in itertools.pairwise(places))


@pytest.mark.parametrize("scale", [1 / 50, 0.4, 1.0, 7.99, 8.0, 1e3, 2.0**20, 2.0**40])
@pytest.mark.parametrize("signed", [True, False])
def test_the_argument_of_the_floor_keeps_the_bound_of_the_proof(scale, signed):
    generator = np.random.default_rng(17)
    borders = [(1 << power) + step for power in range(8, 64, 5) for step in (-1, 1)]
    cells = [
        ((256 + cell) << 55) + step for cell in range(0, 256, 25) for step in (-1, 1)
    ]
    words = np.array([*borders, *cells], dtype=np.uint64)
    words = np.append(words, generator.integers(1, 2**64, 30, dtype=np.uint64))
    width, offset = np.array([scale]), np.full(1, -0.5)
    if signed:
        kernels._fill_offsets(width, offset)
    for word in words:
        value = np.float64(word | np.uint64(1))
        cell = kernels._cell(value)
        surprise = kernels._minus_log(
            value, kernels._RECIPROCALS[cell], kernels._LOGARITHMS[cell]
        )
        middle = max(scale * surprise + offset[0], -0.25)
        stated = scale * kernels._ERROR_OF_LOG + (
            middle * kernels._ERROR_PER_SIZE + kernels._ERROR_OF_OFFSET
        )
        with mpmath.workprec(300):
            exact = 64 * mpmath.log(2) - mpmath.log(int(word) | 1)
            shift = mpmath.log(2 / (1 + mpmath.exp(-1 / mpmath.mpf(scale))))
            true = scale * (exact + (shift if signed else 0)) - mpmath.mpf(1) / 2
            assert abs(mpmath.mpf(float(middle)) - max(true, -0.25)) <= stated
