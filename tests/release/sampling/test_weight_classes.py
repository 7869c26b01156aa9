"""Weights in public classes: what rounding keeps, what it adds, what it tells: PN21."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, InputError

CLASSES = [64, 32, 16, 8, 4]
KEY = "a key that was drawn before the data"


def rounded(weights, **more):
    size = np.size(weights)
    keys = {"person": np.arange(size), "record": np.zeros(size, dtype=int), "key": KEY}
    return bf.sampling.round_weights(weights, CLASSES, **{**keys, **more})


def test_mean_and_variance_by_enumeration():
    """Lemma PN21: what PN9 reads off classes has both sampling and rounding in it."""
    for weight in map(Fraction, ("4", "5", "7.5", "20", "42.666", "63", "64")):
        low = max(at for at in CLASSES[1:] if at <= weight)
        high = 2 * low
        chance = (weight - low) / (high - low)
        law = [(high, chance), (low, 1 - chance)]
        mean = sum(part * at for at, part in law)
        variance = sum(part * (at - weight) ** 2 for at, part in law)
        assert mean == weight
        assert variance == (weight - low) * (high - weight) <= weight**2 / 8
        # Drawn with the chance 1 / weight, each person adds 1 on average.
        added = sum(part * at**2 for at, part in law) / weight - 1
        assert added == sum(part * at * (at - 1) for at, part in law) / weight


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("weight", [5.0, 20.0, 63.0])
def test_the_mean_stays_and_rounding_to_the_nearest_class_is_caught(weight, keyed):
    size = 20_000
    weights = np.full(size, weight)
    classes = rounded(weights) if keyed else bf.sampling.round_weights(weights, CLASSES)
    low = max(at for at in CLASSES if at <= weight)
    sigma = np.sqrt((weight - low) * (2 * low - weight) / size)
    assert set(classes.tolist()) == {low, 2 * low}
    assert abs(classes.mean() - weight) < 5 * sigma
    # Planted: the nearest class is off by far more.
    nearest = low if weight < 1.5 * low else 2 * low
    assert abs(nearest - weight) > 5 * sigma


def test_a_coin_knows_its_record_alone():
    rng = np.random.default_rng(1)
    weights = rng.uniform(4, 64, 500)
    person, record = rng.integers(0, 200, 500), np.arange(500)
    whole = rounded(weights, person=person, record=record)
    order = rng.permutation(500)[:300]
    part = rounded(weights[order], person=person[order], record=record[order])
    np.testing.assert_array_equal(part, whole[order])
    texts = rounded(weights, person=person.astype(str), record=record.astype(str))
    np.testing.assert_array_equal(texts, whole)
    other = rounded(weights, person=person, record=record, key="another")
    assert (other != whole).any()
    # Whoever is a class already stays there.
    np.testing.assert_array_equal(rounded(np.array(CLASSES)), CLASSES)


def test_weighted_counts_of_classes_hold_the_population():
    """Misses of PN9's intervals with rounded weights, over samples, coins and noise."""
    place = bf.Domain.from_weights(largest=64, classes=5)
    assert place.attributes[0].levels == tuple(CLASSES)
    rng = np.random.default_rng(2)
    people = rng.uniform(4, 64, 6000)
    design = bf.sampling.Weighted("weight", values=CLASSES)
    laplace = bf.Laplace(bf.policies.AddRemove(place), epsilon=1)
    trials, missed = 120, 0
    for seed in range(trials):
        drawn = people[rng.random(people.size) < 1 / people]
        classes = bf.sampling.round_weights(drawn, CLASSES)
        data = bf.Histogram.from_records(place, {"weight": classes})
        release = laplace.release(data, rng=seed).sampled(design)
        low, high = release.where().count().interval(of="population")
        missed += not low <= people.size <= high
    assert missed <= trials * 0.05 + 3 * np.sqrt(trials * 0.05 * 0.95)


@pytest.mark.parametrize(
    ("weights", "more", "reason"),
    [
        ([3.0], {}, "between the least class, 4, and the largest, 64"),
        ([65.0], {}, "between the least class"),
        ([np.nan], {}, "between the least class"),
        (["a"], {}, "lists of numbers"),
        ([5.0], {"person": None}, "stated together"),
        ([5.0], {"person": None, "record": None}, "state both"),
        ([5.0], {"person": [1, 2]}, "a person and a record for each weight"),
        ([5.0], {"person": [1.5]}, "whole numbers or text"),
        ([5.0], {"key": ""}, "key is a text"),
    ],
)
def test_what_is_not_stated_right_is_refused(weights, more, reason):
    with pytest.raises(InputError, match=reason):
        rounded(weights, **more)
    with pytest.raises(InputError, match="two numbers or more"):
        bf.sampling.round_weights([5.0], [5.0])


def test_classes_below_one_are_refused():
    assert bf.Domain.from_weights(10, 3, ratio=1.5).size == 3
    with pytest.raises(DomainError, match="1 or more"):
        bf.Domain.from_weights(largest=8, classes=5)
    with pytest.raises(DomainError, match="1 or more"):
        bf.Domain.from_weights(largest=8, classes=2, ratio=1)
