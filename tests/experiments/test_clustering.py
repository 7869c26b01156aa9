"""Clusterings: Lloyd's rounds against the definition, and what each way promises."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.data.domain import Domain
from experiments.blowfish_clusters import policies_of, policy_of
from experiments.clustering import (
    ROUNDS,
    Lattice,
    histogram_centers,
    lattice_of,
    lloyd,
    objective,
    printed_centers,
    random_start,
    safe_centers,
)
from experiments.point_sets import PointSet


@pytest.fixture
def known(generator):
    domain = Domain((20, 30))
    centres = np.array([[4.0, 5.0], [15.0, 25.0], [5.0, 24.0], [14.0, 6.0]])
    points = np.repeat(centres, 500, axis=0) + generator.normal(size=(2000, 2))
    inside = np.clip(points, 0, np.array([19.999, 29.999]))
    return PointSet("test", domain, inside, (20, 30))


def slow_lloyd(places, weights, start):
    centers = start.copy()
    for _ in range(ROUNDS):
        apart = ((places[:, None] - centers[None]) ** 2).sum(axis=2)
        nearest = apart.argmin(axis=1)
        for number in range(len(centers)):
            mine = nearest == number
            if weights[mine].sum() > 0:
                centers[number] = np.average(places[mine], 0, weights[mine])
    return centers


def test_lloyd_equals_the_definition(known):
    start = random_start(known, 3)
    places = np.floor(known.points) + 0.5
    expected = slow_lloyd(places, np.ones(len(places)), start)
    np.testing.assert_allclose(lloyd(lattice_of(known), start), expected)


def test_lloyd_weighs_cells_of_any_width(generator):
    cells = generator.integers(0, 8, size=(40, 2)).astype(np.int32)
    repeats = generator.integers(1, 9, size=40)
    unit = np.array([2.5, 0.5])
    records = Lattice(cells, repeats, (8, 8), unit)
    start = generator.random((4, 2)) * 8 * unit
    expected = slow_lloyd((cells + 0.5) * unit, repeats.astype(float), start)
    np.testing.assert_allclose(lloyd(records, start), expected)


def test_much_epsilon_finds_what_no_noise_finds(known):
    start = random_start(known, 3)
    best = objective(known.points, lloyd(lattice_of(known), start))
    policy, printed = policy_of("tweets", "full", known.domain)
    for centers in (
        safe_centers(known, policy, "1000", start, 1),
        histogram_centers(known, "1000", start, 1),
        printed_centers(known, *printed, "1000", start, 1),
    ):
        assert objective(known.points, centers) == pytest.approx(best, rel=0.02)


def test_every_word_names_a_policy_over_the_map():
    domain = Domain((400, 300))
    for word in policies_of("tweets"):
        policy, printed = policy_of("tweets", word, domain)
        assert policy.domain == domain
        assert printed.sums <= 2 * (400 + 300)
    exact = policy_of("tweets", "districts 120000", domain)[1]
    assert exact == (0.0, 0.0)
