"""Means that hold whatever the law of the values (Lemma PN12): misses and refusals."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError
from blowfish_fast.release.sampling import bounded_means, drawn_sums

RARE = np.array([0.98, *np.zeros(48), 0.02])
"""Nearly all values are 0 and a few are 49: no normal law at a hundred draws."""
MEAN = 0.02 * 49
LEVELS = bf.Domain.from_levels(range(50), name="value")
VALUES = np.arange(50.0)
DRAWS = 300


def means(drawn, epsilon="2", design=None, law=RARE):
    rng = np.random.default_rng(3)
    laplace = bf.Laplace(bf.policies.Full(LEVELS), epsilon=epsilon)
    for seed in range(DRAWS):
        release = laplace.release(rng.multinomial(drawn, law), rng=seed)
        yield (
            release.sampled(design or bf.sampling.Simple())
            .where()
            .mean("value", VALUES)
        )


def missed(answers, truth=MEAN):
    ends = [answer.interval(of="population", method="exact") for answer in answers]
    return np.mean([not low <= truth <= high for low, high in ends])


@pytest.mark.long
def test_a_mean_of_rare_values_is_held_and_a_normal_law_would_miss_it(monkeypatch):
    assert missed(means(100)) <= 0.05
    # Planted: the variance that the sample shows, without the room of Lemma PN20.
    monkeypatch.setattr(
        drawn_sums, "variance_of_few", lambda above, *_: np.maximum(above, 0.0)
    )
    normal = [
        answer.interval(of="population", method="normal")
        for answer in means(100, epsilon="100")
    ]
    assert np.mean([not low <= MEAN <= high for low, high in normal]) > 0.08


@pytest.mark.long
def test_a_bound_without_its_second_term_is_caught(monkeypatch):
    """Plant a bug: the variance is taken from the sample as if it were known."""

    def forgotten(number):
        return np.log(number) * 0.0 + 0.5

    # In this file alone: others take logarithms, too.
    planted = SimpleNamespace(**{**vars(np), "log": forgotten})
    monkeypatch.setattr(bounded_means, "np", planted)
    few = [*means(100, epsilon="100")]
    short = [answer.interval(of="population", method="exact") for answer in few]
    monkeypatch.undo()
    whole = [answer.interval(of="population", method="exact") for answer in few]
    assert np.mean([not low <= MEAN <= high for low, high in short]) > 0.08
    assert np.mean([not low <= MEAN <= high for low, high in whole]) <= 0.05


@pytest.mark.long
def test_it_is_wider_than_a_normal_law_and_says_so():
    (first, *_) = means(5_000)
    exact = first.interval(of="population", method="exact")
    normal = first.interval(of="population", method="normal")
    assert exact[0] < normal[0] < normal[1] < exact[1]
    again = bf.sampling.Simple(90_000, replacement=True)
    (other, *_) = means(5_000, design=again)
    assert other.interval(of="population", method="exact") == exact


def test_values_inside_cells_reach_from_edge_to_edge():
    ages = bf.Domain.from_edges(range(0, 81, 10), name="age")
    release = bf.Laplace(bf.policies.Full(ages), epsilon=5).release(
        np.full(8, 500), rng=1
    )
    mean = release.sampled(bf.sampling.Simple()).where().mean("age")
    low, high = mean.interval(of="population", method="exact")
    inner = mean.interval(of="truth")
    assert low < inner[0] < inner[1] < high


def test_an_empty_group_may_be_anything():
    policy = bf.policies.Full(LEVELS)
    release = bf.Laplace(policy, epsilon=1).release(np.zeros(50, dtype=int), rng=1)
    mean = release.sampled(bf.sampling.Simple()).where().mean("value", VALUES)
    assert mean.interval(of="population", method="exact") == (0.0, 49.0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("design", "policy"),
    [
        (bf.sampling.Simple(9_000), bf.policies.Full),
        (bf.sampling.Simple(9_000), bf.policies.AddRemove),
        (bf.sampling.Bernoulli("0.1"), bf.policies.Full),
        (bf.sampling.Poisson(), bf.policies.AddRemove),
        (bf.sampling.Simple(), bf.policies.AddRemove),
    ],
)
def test_draws_that_depend_and_private_numbers_have_bounds_of_their_own(design, policy):
    release = bf.Laplace(policy(LEVELS), epsilon=1).release(np.full(50, 40), rng=1)
    mean = release.sampled(design).where().mean("value", VALUES)
    exact, normal = (
        mean.interval(of="population", method=method) for method in ("exact", "normal")
    )
    assert 0.0 < exact[0] < normal[0] < 24.5 < normal[1] < exact[1] < 49.0
    with pytest.raises(InputError, match="method must be"):
        mean.interval(of="population", method="bounded")


def test_nearly_everybody_drawn_leaves_little_to_be_bounded():
    release = bf.Laplace(bf.policies.Full(LEVELS), epsilon=50).release(
        np.full(50, 40), rng=1
    )
    widths = []
    for people in (2_010, 4_000, 90_000):
        mean = release.sampled(bf.sampling.Simple(people)).where().mean("value", VALUES)
        low, high = mean.interval(of="population", method="exact")
        widths.append(high - low)
    assert widths[0] < 0.3 * widths[1]
    assert widths[1] == pytest.approx(widths[2])
