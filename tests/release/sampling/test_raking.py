"""Raking: published counts that agree with known margins, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError

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
