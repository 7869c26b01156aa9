"""More planted bugs: in what is chosen, in budgets and streams, in what leaves."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

import blowfish_fast as bf
import blowfish_fast.audit.many_choices.choice_twins as cheapest
import blowfish_fast.kernels.partition.interval_partition as interval_partition
import blowfish_fast.measure.handle as handle
import blowfish_fast.measure.selectors.partitions.dyadic as dyadic_tree
import blowfish_fast.measure.selectors.partitions.matching_pairs as blossom
import blowfish_fast.measure.selectors.partitions.matching_pairs as matching_pairs
from blowfish_fast import kernels
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.request import draw_parts
from blowfish_fast.errors import EpsilonError
from blowfish_fast.kernels.sampling.word_sources import WordStream
from blowfish_fast.measure.handle import Account, Call, Handle, Measurement
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import (
    DyadicRectangles,
    DyadicTree,
    LeastCost,
)
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.dawa import Dawa
from blowfish_fast.mechanisms.laplace import Laplace
from blowfish_fast.release.guarantee import Guarantee

from .mutants import planted

# What is chosen.


@planted("least_cost", "add_remove", "choice", kind="selector", batch=2_000_000)
def halved_noise_of_candidates():
    right = LeastCost.noise
    with patch.object(
        LeastCost,
        "noise",
        lambda self, cells, epsilon: right(self, cells, 2 * epsilon),
    ):
        yield


@planted("least_cost", "add_remove", "choice", kind="selector")
def unnoised_singleton():
    right = LeastCost.noise

    def bare(self, cells, epsilon):
        noise = right(self, cells, epsilon)
        scales = noise.scales.copy()
        scales[0] = noise.step / 64
        return noise._replace(scales=scales)

    with patch.object(LeastCost, "noise", bare):
        yield


@planted("least_cost", "add_remove", "choice", kind="selector")
def clamped_cost():
    # Public code cuts noisy costs off at the price of a bucket.
    right, genuine = kernels.least_cost_partitions, interval_partition.noisy_costs

    def clamped(counts, prices, scales, words, draws, *, step, quantile):
        def cut(costs, *given):
            floors = np.zeros(len(costs), dtype=np.int64)
            floors[: prices.size] = np.rint(prices / step)
            return np.maximum(genuine(costs, *given), floors[:, None])

        with patch.object(interval_partition, "noisy_costs", cut):
            return right(
                counts, prices, scales, words, draws, step=step, quantile=quantile
            )

    with patch.object(kernels, "least_cost_partitions", clamped):
        yield


@planted("dyadic_tree", "full", "choice", kind="selector")
def dropped_halving():
    with patch.object(dyadic_tree, "record_distance", lambda policy: 1):
        yield


@planted("dyadic_tree", "add_remove", "choice", kind="selector")
def doubled_rate():
    right = DyadicTree.rate
    with patch.object(
        DyadicTree, "rate", lambda self, cells, epsilon: 2 * right(self, cells, epsilon)
    ):
        yield


@planted("matching_pairs", "full", "choice", kind="selector")
def matching_at_the_printed_scales():
    with (
        patch.object(matching_pairs, "record_distance", lambda policy: 1),
        patch.object(cheapest, "record_distance", lambda policy: 1),
    ):
        yield


@planted("matching_pairs", "add_remove", "choice", kind="selector")
def greedy_matching():
    def greedy(alone, first, second, paired):
        savings = alone[first] + alone[second] - paired
        mates = np.arange(alone.size)
        for one in sorted(range(savings.size), key=lambda one: -savings[one]):
            left, right = first[one], second[one]
            if savings[one] > 0 and mates[left] == left and mates[right] == right:
                mates[left], mates[right] = right, left
        return mates

    with patch.object(blossom, "cheapest_mates", greedy):
        yield


# Budgets, streams and what leaves the handle.


@planted("dawa", "add_remove", "invariants", shape=7)
def swapped_budgets():
    def swapped(self, selector, *, budget):
        self._account.charge(Call("select", selector.name, budget, None))
        left = self.remaining.amount
        return selector.select(
            self._counts, policy=self.policy, epsilon=left, rng=self._rng
        )

    with patch.object(Handle, "select", swapped):
        yield


@planted("dawa", "add_remove", "invariants", shape=7)
def reused_stream():
    def same(self):
        return WordStream(self._key, secure=self.secure)

    with patch.object(Randomness, "stream", same):
        yield


@planted("laplace", "full", "invariants")
def charged_after_drawing():
    def late(self, strategy, *, budget):
        prepared = self.prepare(strategy, budget=budget)
        strategy, scales = prepared.strategy, prepared.scales
        counts, noise = np.zeros(self.policy.domain.size, np.int64), 0 * scales.rates
        if self._counts is not None:
            counts, noise = self._counts, handle._draw(scales, self._rng)
        noisy = strategy.published(strategy.rows(counts), noise, scales)
        self._account.charge(Call("measure", strategy.kind, budget, scales))
        return Measurement(strategy.with_noise(scales), noisy, self.buckets)

    with patch.object(Handle, "measure", late):
        yield


@planted("laplace", "full", "budget")
def ledger_charged_after_release():
    right = Ledger._settle

    def late(self, parts, terms, request, rng, progress, *rest, **named):
        draw_parts(parts, rng)
        return right(self, parts, terms, request, rng, None, *rest, **named)

    with patch.object(Ledger, "_settle", late):
        yield


@planted("laplace", "full", "invariants")
def half_of_a_step_charged():
    right = Account.charge

    def cheap(self, call):
        right(self, call._replace(budget=call.budget / 2))

    with patch.object(Account, "charge", cheap):
        yield


@planted("dawa", "full", "prices", shape=7)
def quotient_that_forgets_moves():
    right = Handle.coarsened

    def forgetful(self, buckets):
        made = right(self, buckets)
        made.policy = bf.policies.AddRemove(made.policy.domain)
        return made

    with patch.object(Handle, "coarsened", forgetful):
        yield


@planted("laplace", "line", "invariants")
def a_recipe_that_peeks():
    right = Laplace._run

    def peeking(self, private):
        outcome = right(self, private)
        if private._counts is None:
            return outcome
        clipped = np.minimum(outcome.estimate, private._counts.max())
        return Outcome(clipped, outcome.measurements)

    with patch.object(Laplace, "_run", peeking):
        yield


@planted("laplace", "line", "invariants")
def counts_among_the_details():
    right = Laplace._run

    def leaking(self, private):
        outcome = right(self, private)
        return Outcome(
            outcome.estimate, outcome.measurements, {"cells": private._counts}
        )

    with patch.object(Laplace, "_run", leaking):
        yield


@planted("laplace", "full", "invariants")
def a_seed_that_claims_to_be_secure():
    right = Guarantee.of

    def boasting(*given, **named):
        return right(*given, **{**named, "secure": True})

    with patch.object(Guarantee, "of", boasting):
        yield


@planted("kmeans", "full", "invariants")
def a_stream_for_all_rounds():
    first = {}
    right = Randomness.stream

    def kept(self):
        return first.setdefault(self._key, right(self))

    with patch.object(Randomness, "stream", kept):
        yield


# What is seen from outside.


@planted("dawa", "add_remove", "outside", shape=(2, 2))
def branch_that_fails():
    # Hole 1: the rectangles learnt after the test that their share was too small.
    right = DyadicRectangles.rate

    def too_dear(self, shape, epsilon):
        right(self, shape, epsilon)
        raise EpsilonError("the sampler's rounding needs more of epsilon")

    with (
        patch.object(DyadicRectangles, "rate", too_dear),
        patch.object(Dawa, "_can_divide", lambda *_: True),
    ):
        yield


@planted("dawa", "add_remove", "outside", shape=(2, 2))
def progress_that_names_the_branch():
    # Hole 2: a caller was told which branch was taken before the answer was stored.
    right = Mechanism.release

    def telling(self, data, rng=None, *, progress=None):
        release = right(self, data, rng, progress=progress)
        if progress is not None:
            progress(f"measuring: {release.details.get('chosen')}")
        return release

    with patch.object(Mechanism, "release", telling):
        yield


@planted("laplace", "add_remove", "outside")
def failure_that_is_worded_by_the_draw():
    right = Laplace._run

    def worded(self, private):
        outcome = right(self, private)
        if not private.dry_run and outcome.estimate.sum() < 8:
            raise ValueError(f"{outcome.estimate.sum():g} records are too few")
        return outcome

    with patch.object(Laplace, "_run", worded):
        yield


@planted("laplace", "full", "budget")
def ledger_that_draws_again_after_a_failure():
    def forgotten(_self, pending, _drawn, **_):
        return [True] * len(pending)

    with patch.object(Ledger, "_keep", forgotten):
        yield
