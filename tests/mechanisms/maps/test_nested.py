"""Nested districts: levels that agree, errors known before, exact where no secret."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError, WorkloadError
from blowfish_fast.workloads import Identity, Regions

NAMES = ["state", "county", "block"]


@pytest.fixture(scope="module")
def country():
    rng = np.random.default_rng(3)
    state = np.sort(rng.integers(0, 3, 60))
    county = state * 10 + rng.integers(0, 4, 60)
    table = {"state": state, "county": county, "block": np.arange(60)}
    return bf.Nesting.from_columns(table, NAMES), rng.poisson(6, 60)


def level_sums(nest, cells):
    return {name: nest.level(name).answer(cells) for name in nest.names}


@pytest.mark.parametrize("fit", ["whole", "non_negative", None])
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 0.5}])
def test_all_levels_agree(country, fit, budget):
    nest, counts = country
    asked = nest.workload(state=1, county=1, block=1)
    policy = bf.policies.AddRemove(nest.domain)
    release = bf.Nested(policy, asked, fit=fit, **budget).release(counts, rng=1)
    sums = level_sums(nest, release.estimate)
    for name in nest.names:
        answers = release.level(name)
        np.testing.assert_allclose(answers.values_array, sums[name], atol=1e-9)
        assert list(answers) == list(nest.ids(name))
        bounds = answers.intervals(0.9, of="truth")
        assert (bounds[:, 0] <= answers.values_array + 1e-9).all()
    if fit is not None:
        assert release.estimate.min() >= 0
    if fit == "whole":
        np.testing.assert_array_equal(release.estimate, np.rint(release.estimate))


def test_errors_before_paying_are_those_of_the_release(country):
    nest, counts = country
    mechanism = bf.Nested(
        bf.policies.Full(nest.domain), nest.workload(county=1, block=1), epsilon=1
    )
    stated = mechanism.errors_by_level()
    release = mechanism.release(counts, rng=1)
    for name in nest.names:
        errors = release.standard_errors(nest.level(name))
        assert stated[name] == pytest.approx(np.sqrt((errors**2).mean()), abs=1e-9)
    every = np.sqrt(mechanism.expected_error())
    np.testing.assert_allclose(every, release.standard_errors(mechanism.workload))
    school = Regions(nest.domain, np.arange(60) % 7)
    np.testing.assert_allclose(
        np.sqrt(mechanism.expected_error(school)), release.standard_errors(school)
    )


def test_what_is_more_important_is_more_accurate(country):
    nest, _ = country
    policy = bf.policies.AddRemove(nest.domain)

    def errors(**importance):
        asked = nest.workload(**importance)
        return bf.Nested(policy, asked, epsilon=1).errors_by_level()

    alike = errors(state=1, county=1, block=1)
    blocks, states = errors(block=1), errors(state=1, block=0.01)
    assert blocks["block"] < alike["block"]
    assert states["state"] < alike["state"]
    assert blocks["block"] == pytest.approx(np.sqrt(2 * np.exp(-1)) / (1 - np.exp(-1)))


def test_counties_that_are_no_secret_are_exact_and_free(country):
    nest, counts = country
    policy = bf.policies.Blocks(nest.domain, nest.labels("county"))
    asked = nest.workload(state=1, county=1, block=1)
    mechanism = bf.Nested(policy, asked, epsilon="0.1")
    stated = mechanism.errors_by_level()
    assert (stated["all"], stated["state"], stated["county"]) == (0, 0, 0)
    free = bf.Nested(policy, nest.workload(block=1), epsilon="0.1").errors_by_level()
    assert stated["block"] == pytest.approx(free["block"])
    release = mechanism.release(counts, rng=1)
    truth = nest.level("county").answer(counts)
    np.testing.assert_array_equal(release.level("county").values_array, truth)
    assert np.ptp(release.level("county").intervals(), axis=1).max() == 0
    # With "absent" nothing is exact, not even the nation.
    joined = bf.Nested(
        bf.policies.WithAbsent(policy), asked, epsilon=1
    ).errors_by_level()
    assert min(joined.values()) > 0


def test_only_exact_levels_leave_the_budget_to_cells(country):
    nest, counts = country
    policy = bf.policies.Blocks(nest.domain, nest.labels("county"))
    mechanism = bf.Nested(policy, nest.workload(county=1), epsilon=1)
    release = mechanism.release(counts, rng=1)
    truth = nest.level("county").answer(counts)
    np.testing.assert_array_equal(release.level("county").values_array, truth)
    assert np.isfinite(mechanism.errors_by_level()["block"])


def test_levels_without_importance_are_refused_and_not_guessed(country):
    nest, counts = country
    policy = bf.policies.AddRemove(nest.domain)
    mechanism = bf.Nested(policy, nest.workload(county=1), epsilon=1)
    assert mechanism.errors_by_level()["block"] == np.inf
    release = mechanism.release(counts, rng=1)
    assert len(release.level("county")) == len(nest.ids("county"))
    with pytest.raises(InputError, match="had any importance"):
        release.level("block")
    with pytest.raises(InputError, match="there is no level 'tract'"):
        release.level("tract")
    other = bf.Laplace(policy, Identity(nest.domain), epsilon=1).release(counts, rng=1)
    with pytest.raises(InputError, match="a release by Nested"):
        other.level("county")


def test_off_spine_districts_as_a_level_are_more_accurate(country):
    nest, counts = country
    schools = np.arange(60) // 9
    policy = bf.policies.AddRemove(nest.domain)
    spine = bf.Nested(policy, nest.workload(state=1, county=1, block=1), epsilon=1)
    before = spine.expected_error(Regions(nest.domain, schools)).mean()
    cut = nest.with_level(schools, above="county", name="school")
    asked = cut.workload(state=1, school=1, county=1, block=1)
    mechanism = bf.Nested(policy, asked, epsilon=1)
    assert mechanism.errors_by_level()["school"] ** 2 < before
    release = mechanism.release(counts, rng=1)
    by_level, of = release.level("school"), release.of(schools)
    np.testing.assert_array_equal(by_level.values_array, of.values_array)
    np.testing.assert_allclose(by_level.intervals(), of.intervals())
    # Counties are cut, and still answered whole.
    errors = release.standard_errors(cut.level("county"))
    assert mechanism.errors_by_level()["county"] == pytest.approx(
        np.sqrt((errors**2).mean())
    )


def test_cells_in_any_order_have_the_same_errors_and_sums(country):
    nest, counts = country
    mixed = np.random.default_rng(1).permutation(60)
    place = bf.Domain.from_levels([nest.ids("block")[cell] for cell in mixed])
    moved = nest.over(place)
    importance = {"county": 1, "block": 1}
    here = bf.Nested(
        bf.policies.AddRemove(nest.domain), nest.workload(**importance), epsilon=1
    )
    there = bf.Nested(
        bf.policies.AddRemove(place), moved.workload(**importance), epsilon=1
    )
    assert here.errors_by_level() == pytest.approx(there.errors_by_level())
    large = there.at_epsilon(10**6).release(counts[mixed], rng=1)
    np.testing.assert_array_equal(large.estimate, counts[mixed])
    truth = nest.level("county").answer(counts)
    np.testing.assert_array_equal(large.level("county").values_array, truth)


def test_districts_of_another_order_are_not_taken_for_each_other(country):
    nest, counts = country
    ids = nest.ids("block")
    asked = nest.workload(county=1, block=1)
    alike = bf.Domain.from_levels(ids, name="place")
    mechanism = bf.Nested(bf.policies.AddRemove(alike), asked, nest=nest, epsilon=1)
    assert mechanism.domain == alike
    assert mechanism.release(counts, rng=1).domain == alike
    turned = bf.policies.AddRemove(bf.Domain.from_levels(ids[::-1]))
    with pytest.raises(InputError, match="in another order"):
        bf.Nested(turned, asked, epsilon=1)
    with pytest.raises(InputError, match="in another order"):
        bf.Nested(turned, Identity(turned.domain), nest=nest, epsilon=1)


def test_another_nest_than_the_workloads_is_refused(country):
    nest, _ = country
    policy = bf.policies.AddRemove(nest.domain)
    other = nest.with_level(np.arange(60) // 30, above="county")
    with pytest.raises(InputError, match="different districts"):
        bf.Nested(policy, nest.workload(block=1), nest=other, epsilon=1)
    same = bf.Nested(policy, nest.workload(block=1), nest=nest, epsilon=1)
    assert same.nest == nest
    plain = bf.Nested(policy, Identity(nest.domain), nest=nest, epsilon=1)
    assert plain.errors_by_level().keys() == {"all", *NAMES}


def test_a_file_keeps_the_districts(country, tmp_path):
    nest, counts = country
    policy = bf.policies.AddRemove(nest.domain)
    release = bf.Nested(policy, nest.workload(county=1, block=1), epsilon=1).release(
        counts
    )
    release.save(tmp_path / "country.bf")
    again = bf.Release.load(tmp_path / "country.bf")
    assert dict(again.level("county")) == dict(release.level("county"))
    assert again.level("county").to_pandas().equals(release.level("county").to_pandas())


def test_a_rounding_is_the_same_again(country):
    nest, counts = country
    policy = bf.policies.AddRemove(nest.domain)
    mechanism = bf.Nested(policy, nest.workload(county=1, block=1), epsilon=1)
    first, second = (mechanism.release(counts, rng=5) for _ in range(2))
    np.testing.assert_array_equal(first.estimate, second.estimate)


def test_intervals_hold_the_truth_at_every_level(country):
    nest, counts = country
    policy = bf.policies.AddRemove(nest.domain)
    mechanism = bf.Nested(policy, nest.workload(county=1, block=1), epsilon=1)
    truth, trials = level_sums(nest, counts), 60
    missed = dict.fromkeys(nest.names, 0)
    for seed in range(trials):
        release = mechanism.release(counts, rng=seed)
        for name in nest.names:
            low, high = release.level(name).intervals(0.9, of="truth").T
            missed[name] += ((truth[name] < low) | (truth[name] > high)).mean()
    for name in nest.names:
        # Districts of one release share noise: as if there were one a release.
        assert missed[name] / trials <= 0.1 + 3 * np.sqrt(0.09 / trials)


def test_known_totals_of_secret_counties_cost_twice(country):
    nest, _ = country
    policy = bf.policies.Full(nest.domain)
    counties = [
        (nest.labels("county") == number).astype(int)
        for number in range(len(nest.ids("county")))
    ]
    constraints = bf.policies.CountConstraints(nest.domain, counties)
    known = policy.with_constraints(constraints)
    asked = nest.workload(block=1)
    plain = bf.Nested(policy, asked, epsilon=1).errors_by_level()["block"]
    secret = bf.Nested(known, asked, epsilon=1).errors_by_level()["block"]
    assert secret > 1.5 * plain


def test_compare_weighs_it_where_levels_are_asked(country):
    nest, _ = country
    policy = bf.policies.AddRemove(nest.domain)
    table = bf.compare(policy, nest.workload(county=1, block=1), epsilon=1)
    assert "nested" in [line.name for line in table]
    cells = bf.compare(policy, Identity(nest.domain), epsilon=1)
    assert "nested" not in [line.name for line in cells]


def test_unknown_districts_are_refused_by_of(country):
    nest, counts = country
    policy = bf.policies.AddRemove(nest.domain)
    release = bf.Nested(policy, nest.workload(block=1), epsilon=1).release(
        counts, rng=1
    )
    with pytest.raises(WorkloadError, match="cover the domain"):
        release.of(["north", "south"])
    halves = Regions(nest.domain, np.arange(60) // 30)
    assert list(release.of(halves)) == [0, 1]


def test_errors_of_a_made_up_country_are_those_that_were_designed():
    # Figures of the design, in which a plan by importance was first measured: equal
    # levels had 7.62 at blocks and 6.49 at counties.
    path = Path(__file__).parents[3] / "examples" / "nested_districts.py"
    example = runpy.run_path(str(path))
    nest, _ = example["country"](30_000, np.random.default_rng(1))
    policy = bf.policies.AddRemove(nest.domain)
    two = bf.Nested(policy, nest.workload(block=1, county=1), epsilon=1)
    errors = two.errors_by_level()
    assert errors["block"] <= 2.71 * 1.03
    assert errors["county"] <= 2.76 * 1.03
    levels = example["LEVELS"]
    alike = bf.Nested(policy, nest.workload(**dict.fromkeys(levels, 1.0)), epsilon=1)
    total = sum(error**2 for error in alike.errors_by_level().values())
    assert total <= 253 * 1.03


def test_districts_off_the_tree_are_priced_before_they_are_paid(country):
    nest, counts = country
    mechanism = bf.Nested(
        bf.policies.AddRemove(nest.domain), nest.workload(county=1, block=1), epsilon=1
    )
    release = mechanism.release(counts, rng=1)
    names = ["north", "south", None] * 20
    blocks = nest.ids("block")
    mapped = {
        id: name for id, name in zip(blocks, names, strict=True) if name is not None
    }
    labels = np.array([0, 1, -1] * 20)
    stated = [Regions(nest.domain, labels), names, mapped, release.of(names)]
    expected = release.standard_errors(stated[0])
    for districts in stated:
        errors = np.sqrt(mechanism.expected_error(districts))
        np.testing.assert_allclose(errors, expected)
    assert mechanism.errors_by_district(mapped) == pytest.approx(
        dict(zip(["north", "south"], expected, strict=True))
    )
    # What was asked of one release is priced for another mechanism.
    finer = bf.Nested(mechanism.policy, nest.workload(block=1), epsilon=2)
    assert finer.errors_by_district(release.of(names))["north"] < expected[0]
    assert finer.errors_by_district(release.level("county")) == pytest.approx(
        finer.errors_by_district("county")
    )
    for level in nest.names:
        by_id = mechanism.errors_by_district(level)
        assert tuple(by_id) == nest.ids(level)
        np.testing.assert_allclose(
            list(by_id.values()), release.standard_errors(nest.level(level))
        )
        np.testing.assert_allclose(
            mechanism.expected_error(level), np.square(list(by_id.values()))
        )
    with pytest.raises(InputError, match="no level 'town'"):
        mechanism.expected_error("town")
    with pytest.raises(InputError, match="those of no cell"):
        mechanism.expected_error({"nowhere": "north"})
    ages = _ages()
    laplace = bf.Laplace(bf.policies.AddRemove(ages), epsilon=1)
    means = laplace.release(np.full(ages.shape, 9), rng=1).group_by("sex").mean("age")
    with pytest.raises(InputError, match="counts of districts"):
        means.queries()


def _ages():
    return bf.Domain.product(
        bf.Domain.from_edges([0, 10, 20], name="age"),
        bf.Domain.from_levels(["F", "M"], name="sex"),
    )
