"""Answers by district: of any release, by name, with what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError, IntervalError
from blowfish_fast.release.places.level_answers import cell_ids

TOWNS = bf.Domain.from_levels(["a", "b", "c", "d"], name="town")
COUNTS = [50, 10, 70, 20]


def released(policy, **options):
    return bf.Laplace(policy, bf.workloads.Identity(policy.domain), **options).release(
        COUNTS, rng=1
    )


def test_districts_of_any_release_have_names_and_intervals():
    release = released(bf.policies.Full(TOWNS), epsilon=1)
    answers = release.of(["north", "south", None, "north"])
    assert list(answers) == ["north", "south"]
    assert float(answers["south"]) == release.estimate[1]
    low, high = answers["north"].interval(of="truth")
    assert low <= answers["north"] <= high
    assert answers.to_pandas().columns.tolist()[:2] == ["district", "count"]


def test_districts_are_named_by_the_ids_of_cells_in_any_order():
    import pandas as pd

    release = released(bf.policies.Full(TOWNS), epsilon=1)
    stated = {"d": "north", "b": "south", "a": "north"}
    expected = release.of(["north", "south", None, "north"])
    rows = pd.Series(stated)
    for districts in (stated, rows, pd.Series(["north", "south", None, "north"])):
        answers = release.of(districts)
        assert {name: float(answers[name]) for name in answers} == {
            name: float(expected[name]) for name in expected
        }
    with pytest.raises(InputError, match="1 of 2 ids are those of no cell"):
        release.of({"a": "north", "e": "south"})


def test_a_certificate_speaks_of_districts_too():
    line = bf.Domain(64)
    policy, counts = bf.policies.AddRemove(line), np.full(64, 30)
    dawa = bf.Dawa(policy, bf.workloads.Ranges.random(line, 20, rng=1), epsilon=1)
    ledger = bf.Ledger(epsilon=4, policy=policy)
    release = ledger.release(dawa, counts, rng=1)
    quarters = np.arange(64) // 16
    asked = bf.workloads.Regions(line, quarters)
    certificate = ledger.certify(release, counts, asked, epsilon=1, rng=2)
    answers = release.certified(certificate).of(quarters)
    assert answers.interval_kind() in ("truth", "certified")
    assert answers.intervals().shape == (4, 2)


def test_a_sample_speaks_of_the_population_of_districts():
    release = released(bf.policies.Full(TOWNS), epsilon=1)
    with pytest.raises(IntervalError):
        release.of([0, 0, 1, 1]).intervals(of="population")
    drawn = release.sampled(bf.sampling.Simple(population=10_000))
    bounds = drawn.of([0, 0, 1, 1]).intervals(of="population")
    assert (bounds[:, 1] > 1000).all()


def test_cells_are_named_by_levels_or_numbers():
    release = released(bf.policies.Full(TOWNS), epsilon=1)
    assert tuple(cell_ids(release.domain)) == ("a", "b", "c", "d")
    grid = bf.Domain((2, 2))
    other = bf.Nested(
        bf.policies.Full(grid), bf.workloads.Identity(grid), epsilon=1
    ).release([[5, 1], [7, 2]], rng=1)
    last = other.details["levels"][-1]
    assert list(other.level(last)) == [0, 1, 2, 3]
