"""Raking: published counts that agree with known margins, and what is refused.

Intervals of these counts are those of `release.sampling.raked_intervals`.
"""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError, IntervalError, SizeError
from blowfish_fast.release.sampling import raked_intervals

SURVEY = bf.Domain.product(
    bf.Domain.from_levels(["F", "M"], name="sex"),
    bf.Domain.from_levels(["north", "south"], name="region"),
)
SEXES, REGIONS = {"F": 600, "M": 400}, {"south": 500, "north": 500}


def published(counts, domain=SURVEY):
    # No secret, so no noise: the counts come out as they are.
    blocks = bf.policies.Blocks(domain, np.arange(domain.size))
    return bf.Laplace(blocks, epsilon=1).release(counts, rng=1)


def test_raked_counts_have_the_margins_and_the_odds_that_were_published():
    release = published([[40, 10], [20, 30]])
    raked = bf.sampling.rake(release, {"sex": SEXES, "region": REGIONS})
    # By hand: odds 6, and these margins.
    assert raked["people"].tolist() == pytest.approx([400, 200, 100, 300])
    assert raked["region"].tolist() == ["north", "south"] * 2


def test_margins_that_a_register_rounded_differ_a_little():
    release = published([[40, 10], [20, 30]])
    rounded = {"F": 600.0002, "M": 400.0}
    raked = bf.sampling.rake(release, {"sex": rounded, "region": REGIONS})
    assert raked["people"].sum() == pytest.approx(1000.0002)


def test_one_margin_is_post_stratification():
    release = published([[40, 10], [20, 30]])
    raked = bf.sampling.rake(release, {0: [600, 400]})
    assert raked["people"].tolist() == pytest.approx([480, 120, 160, 240])


def test_nobody_is_where_no_margin_tells_how_many():
    ages = bf.Domain.from_edges([0, 18, 65, 120], name="age")
    sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    both = bf.Domain.product(ages, sexes).with_extra_cells(missing=True)
    counts = np.full(both.shape, 10)
    raked = bf.sampling.rake(published(counts, both), {"age": [100, 200, 50]})
    people = raked["people"].reshape(both.shape)
    assert people.sum(axis=1) == pytest.approx([100, 200, 50, 0])
    assert people[:, 2].tolist() == [0, 0, 0, 0]


def test_negative_counts_are_taken_as_none():
    release = bf.Laplace(bf.policies.Full(SURVEY), epsilon="0.01").release(
        [[0, 0], [0, 0]], rng=3
    )
    assert release.estimate.min() < 0 < release.estimate.max()
    with pytest.raises(InputError, match=r"no count above 0 there|still .* off"):
        bf.sampling.rake(release, {"sex": SEXES, "region": REGIONS})


@pytest.mark.parametrize(
    ("margins", "reason"),
    [
        ({}, "stated by attribute"),
        ([1, 2], "stated by attribute"),
        ({"sex": {"F": 1}}, "every level, and no other"),
        ({"sex": {"F": 1, "M": 2, "X": 3}}, "The levels are 'F', 'M'"),
        ({"sex": [1]}, "for each of 2 cells"),
        ({"sex": [-1, 2]}, "0 or more"),
        ({"sex": ["a", "b"]}, "consists of numbers"),
        ({"sex": [0, 0]}, "is of people"),
        ({"sex": [np.inf, 1]}, "is of people"),
        ({"sex": SEXES, "region": {"north": 1, "south": 2}}, "add up to one number"),
    ],
)
def test_margins_that_cannot_be_are_refused(margins, reason):
    with pytest.raises(InputError, match=reason):
        bf.sampling.rake(published([[40, 10], [20, 30]]), margins)


def test_cells_between_edges_are_stated_in_their_order():
    ages = bf.Domain.from_edges([0, 18, 120], name="age")
    with pytest.raises(InputError, match="in the order of the cells"):
        bf.sampling.rake(published([1, 2], ages), {"age": {"young": 1, "old": 2}})


def test_people_are_not_made_of_nothing():
    with pytest.raises(InputError, match="no count above 0 there"):
        bf.sampling.rake(published([[0, 0], [20, 30]]), {"sex": SEXES})
    with pytest.raises(InputError, match="passes"):
        # All women in the north, all men in the south: 600 cannot be 500.
        bf.sampling.rake(
            published([[40, 0], [0, 30]]), {"sex": SEXES, "region": REGIONS}
        )


def test_what_is_no_release_of_a_histogram_is_refused():
    with pytest.raises(InputError, match="counts of a release of a histogram"):
        bf.sampling.rake([[40, 10], [20, 30]], {"sex": SEXES})


def drawn_table(counts, population, *, epsilon=1, seed=1):
    """Release a table and say that its records are a sample of so many people."""
    laplace = bf.Laplace(bf.policies.Full(SURVEY), epsilon=epsilon)
    release = laplace.release(counts, rng=seed)
    return release.sampled(bf.sampling.Simple(population))


MARGINS = {"sex": {"F": 6_000, "M": 4_000}, "region": {"north": 5_000, "south": 5_000}}


def test_raked_counts_of_a_sample_have_intervals_that_margins_shorten():
    release = drawn_table([[400, 200], [100, 300]], 10_000)
    raked = bf.sampling.rake(release, MARGINS, confidence=0.95)
    low, high = raked["population_low"], raked["population_high"]
    assert (low <= raked["people"]).all()
    assert (raked["people"] <= high).all()
    # In a table of two by two one cell decides all others.
    assert (high - low).tolist() == pytest.approx([high[0] - low[0]] * 4, abs=0.1)
    alone = release.intervals(
        bf.workloads.Identity(SURVEY), 1 - 0.05 / 4, of="population"
    )
    assert high[0] - low[0] < np.diff(alone, axis=1).min() * 1.01
    assert "population_low" not in bf.sampling.rake(release, MARGINS).columns


def test_tables_without_an_interval_are_refused(monkeypatch):
    uneven = drawn_table([[400, 100], [200, 300]], 10_000)
    with pytest.raises(IntervalError, match="missing from it unevenly"):
        bf.sampling.rake(uneven, MARGINS, confidence=0.95)
    other = drawn_table([[400, 200], [100, 300]], 9_000)
    with pytest.raises(InputError, match="of the same people"):
        bf.sampling.rake(other, MARGINS, confidence=0.95)
    plain = published([[40, 10], [20, 30]])
    with pytest.raises(IntervalError, match="how these records were drawn"):
        bf.sampling.rake(plain, MARGINS, confidence=0.95)
    monkeypatch.setattr(raked_intervals, "MOST_CELLS", 3)
    with pytest.raises(SizeError, match="at most 3 cells"):
        bf.sampling.rake(other, MARGINS, confidence=0.95)
    monkeypatch.undo()
    gaps = SURVEY.with_extra_cells(missing=True)
    laplace = bf.Laplace(bf.policies.Full(gaps), epsilon=1)
    some = laplace.release([[400, 200, 1], [100, 300, 1], [1, 1, 1]], rng=1)
    with pytest.raises(IntervalError, match="without a value"):
        bf.sampling.rake(
            some.sampled(bf.sampling.Simple(10_000)), MARGINS, confidence=0.95
        )


PEOPLE = np.array([[1_300, 1_700], [700, 1_300]])


def joint_misses(trials):
    """Return the part of samples in which any cell of four is missed."""
    rng = np.random.default_rng(3)
    known = {
        "sex": dict(zip("FM", PEOPLE.sum(axis=1).tolist(), strict=True)),
        "region": dict(
            zip(["north", "south"], PEOPLE.sum(axis=0).tolist(), strict=True)
        ),
    }
    missed = 0
    for seed in range(trials):
        flat = rng.multivariate_hypergeometric(PEOPLE.reshape(-1), 300)
        release = drawn_table(flat.reshape(2, 2), 5_000, epsilon="0.5", seed=seed)
        try:
            raked = bf.sampling.rake(release, known, confidence=0.8)
        except IntervalError:
            missed += 1
            continue
        low, high = raked["population_low"], raked["population_high"]
        truth = PEOPLE.reshape(-1)
        missed += not ((low <= truth) & (truth <= high)).all()
    return missed / trials


@pytest.mark.long
def test_intervals_of_raked_counts_hold_at_once():
    assert joint_misses(120) <= 0.2 + 3 * np.sqrt(0.16 / 120)


@pytest.mark.long
def test_a_beta_that_is_not_divided_among_cells_is_caught(monkeypatch):
    counts = raked_intervals.population_counts

    def undivided(release, workload, confidence, method):
        return counts(release, workload, 1 - 4 * (1 - confidence), method)

    monkeypatch.setattr(raked_intervals, "population_counts", undivided)
    assert joint_misses(120) > 0.2 + 3 * np.sqrt(0.16 / 120)
