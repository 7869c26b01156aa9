"""Questions to a release: values, parts of cells, intervals that hold."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.errors import (
    DomainError,
    InputError,
    IntervalError,
    NoiseOnlyWarning,
    SizeError,
    WorkloadError,
)
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.mechanisms.registry import MECHANISMS
from tests.generated import example_count
from tests.reference.olap import brute_force

AGE_EDGES = [0, 10, 20, 35, 60]
INCOME_EDGES = [0.0, 1.5, 2.0, 8.0]
PEOPLE = bf.Domain.product(
    bf.Domain.from_edges(AGE_EDGES, name="age"),
    bf.Domain.from_levels(["F", "M", "X"], name="sex"),
    bf.Domain.from_edges(INCOME_EDGES, name="income"),
)
AXES = [
    list(itertools.pairwise(AGE_EDGES)),
    [(0, 1), (1, 2), (2, 3)],
    list(itertools.pairwise(INCOME_EDGES)),
]


def released(domain, counts, policy=bf.policies.Full, epsilon=1, rng=1):
    laplace = bf.Laplace(policy(domain), bf.workloads.Identity(domain), epsilon=epsilon)
    return laplace.release(np.asarray(counts).reshape(domain.shape), rng=rng)


@pytest.fixture(scope="module")
def release():
    return released(PEOPLE, np.arange(36) * 5)


NUMBERS = st.integers(-10, 140).map(lambda whole: whole / 2)
RANGES = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=3).map(
    lambda listed: [(min(one), max(one)) for one in listed if one[0] != one[1]]
)


def disjoint(ranges):
    """Cut ranges so that none overlap: the union, as the definition has it."""
    cuts = sorted({end for one in ranges for end in one})
    return [
        (low, high)
        for low, high in itertools.pairwise(cuts)
        if any(one[0] <= low and high <= one[1] for one in ranges)
    ]


def merged(ranges):
    """Join ranges that touch."""
    joined = []
    for low, high in disjoint(ranges):
        if joined and joined[-1][1] == low:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined


@pytest.mark.long
@settings(
    deadline=None,
    max_examples=example_count(40),
    suppress_health_check=[HealthCheck.filter_too_much],
)
@given(RANGES, st.sets(st.sampled_from(["F", "M", "X"]), min_size=1), NUMBERS, NUMBERS)
def test_equals_the_definition(release, ages, sexes, low, high):
    assume(low < high and low < 8 and high > 0)
    assume(any(one[0] < 60 and one[1] > 0 for one in ages))
    chosen = release.where(
        age=[slice(*one) for one in ages],
        sex=list(sexes),
        income=slice(low, high),
    )
    levels = [(at, at + 1) for at, one in enumerate("FMX") if one in sexes]
    conditions = [merged(ages), levels, [(low, high)]]
    count, total, least, largest = brute_force(
        release.estimate, AXES, conditions, value_axis=0
    )
    np.testing.assert_allclose(chosen.count(), count, atol=1e-9)
    np.testing.assert_allclose(chosen.sum("age"), total, atol=1e-7)
    everyone = release.estimate.sum()
    np.testing.assert_allclose(
        chosen.relative_count(), min(max(count / everyone, 0.0), 1.0), atol=1e-12
    )
    centre = least + (largest - least) / 2
    mean = centre + (total - centre * count) / max(count, 1.0)
    np.testing.assert_allclose(
        chosen.mean("age"), np.clip(mean, least, largest), rtol=1e-9
    )


@settings(deadline=None, max_examples=example_count(40))
@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_conditions_on_conditions_intersect(release, a, b, c, d):
    first, second = slice(min(a, b), max(a, b)), slice(min(c, d), max(c, d))
    low, high = max(first.start, second.start), min(first.stop, second.stop)
    assume(max(low, 0) < min(high, 60))
    both = release.where(age=first).where(age=second)
    np.testing.assert_allclose(
        both.count(), release.where(age=slice(low, high)).count(), atol=1e-9
    )


def test_intervals_are_those_of_the_release(release):
    boxes = bf.workloads.Rectangles(PEOPLE, [[0.5, 0, 1]], [[3, 1, 3]])
    count = release.where(age=slice(5, 35), sex="F", income=slice(1.5, 9)).count()
    expected = release.intervals(boxes, 0.9, of="noise")[0]
    np.testing.assert_allclose(count.interval(0.9, of="noise"), expected)
    weights = np.zeros(PEOPLE.shape)
    weights[:, [0, 2], :] = np.array([5, 15, 27.5, 47.5])[:, None, None]
    total = release.where(sex=["F", "X"]).sum("age")
    expected = release.intervals(bf.workloads.Sum(PEOPLE, weights))[0]
    np.testing.assert_allclose(total.interval(of="noise"), expected)


def test_groups_are_the_selections_one_by_one(release):
    chosen = release.where(age=slice(5, 40))
    groups = chosen.group_by("sex", income=[0, 1.75, 8])
    for measure in ("count", "relative_count", "sum", "mean"):
        arguments = ["age"] if measure in ("sum", "mean") else []
        answers = getattr(groups, measure)(*arguments)
        assert list(answers)[:2] == [("F", (0, 1.75)), ("F", (1.75, 8))]
        for (sex, (low, high)), answer in answers.items():
            one = chosen.where(sex=sex, income=slice(low, high))
            alone = getattr(one, measure)(*arguments)
            np.testing.assert_allclose(answer, alone)
            np.testing.assert_allclose(answer.interval(), alone.interval())


def test_groups_by_cell_add_up_to_the_selection(release):
    chosen = release.where(age=slice(5, 40), sex=["F", "X"])
    by_age = chosen.group_by("age").count()
    assert list(by_age) == [(0.0, 10.0), (10.0, 20.0), (20.0, 35.0), (35.0, 60.0)]
    np.testing.assert_allclose(sum(by_age.values()), chosen.count())
    parts = chosen.drill_down("age", {"young": slice(0, 18), "old": slice(18, 99)})
    np.testing.assert_allclose(
        parts["young"].count() + parts["old"].count(), chosen.count()
    )
    swapped = release.where().group_by("income", "sex").count()
    assert list(swapped)[:2] == [((0.0, 1.5), "F"), ((0.0, 1.5), "M")]
    np.testing.assert_allclose(
        swapped[(1.5, 2.0), "M"], release.where(income=slice(1.5, 2), sex="M").count()
    )


def test_dates_are_asked_for_by_day_month_or_range():
    days = bf.Domain.from_dates(
        np.arange("2024-01-01", "2025-01-01", dtype="M8[D]"), name="day"
    )
    counts = np.arange(365)
    release = released(days, counts, epsilon=10**6)
    assert round(release.where(day="2024-02").count()) == counts[31:60].sum()
    assert round(release.where(day=np.datetime64("2024-01-02")).count()) == 1
    half = release.where(day=slice("2024-01-01T12:00", "2024-01-03"))
    assert round(half.count()) == 1
    assert round(release.where(day=["2024-01", "2024-12"]).count()) == (
        counts[:31].sum() + counts[335:].sum()
    )
    by_month = release.where().group_by(
        day=np.arange("2024-01", "2025-02", dtype="M8[M]")
    )
    assert len(by_month.count()) == 12
    table = by_month.count().to_table()
    assert table["day_from"].dtype.kind == "M"
    with pytest.raises(DomainError, match="dates, which have no sum"):
        release.where().sum("day")


def test_a_public_total_leaves_all_the_doubt_to_the_count(release):
    chosen = release.where(sex="F")
    low, high = chosen.relative_count().interval(0.9)
    count = np.array(chosen.count().interval(0.9)) / release.estimate.sum()
    np.testing.assert_allclose([low, high], count, rtol=1e-9)
    of_young = release.where(age=slice(0, 20), sex="F").relative_count(
        of=release.where(age=slice(0, 20))
    )
    assert 0 < of_young < 1
    with pytest.raises(InputError, match="contains it"):
        chosen.relative_count(of=release.where(age=slice(0, 20)))
    with pytest.raises(InputError, match="on sex it does not"):
        release.group_by("sex").relative_count(of=chosen)
    with pytest.raises(InputError, match="one release"):
        chosen.relative_count(of=released(PEOPLE, np.arange(36)).where())


@pytest.mark.long
@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_intervals_hold_as_often_as_they_say(policy, monkeypatch):
    known = {}

    def remembered(spread, miss):
        key = (spread.square.tobytes(), spread.largest.tobytes(), miss)
        if key not in known:
            known[key] = noise_half_widths(spread, miss)
        return known[key]

    # Half-widths do not depend on data, so they are worked out once.
    monkeypatch.setattr(
        "blowfish_fast.measure.linear_strategy.noise_half_widths", remembered
    )
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 12, PEOPLE.shape)
    truth = counts[1:3, 0]
    values = np.array([15.0, 27.5])[:, None]
    exact = {
        "count": truth.sum(),
        "sum": (truth * values).sum(),
        "mean": (truth * values).sum() / truth.sum(),
        "relative_count": truth.sum() / counts.sum(),
    }
    trials, hits = 120, dict.fromkeys(exact, 0)
    for seed in range(trials):
        chosen = released(PEOPLE, counts, policy, epsilon=0.5, rng=seed).where(
            age=slice(10, 35), sex="F"
        )
        for measure in exact:
            arguments = ["age"] if measure in ("sum", "mean") else []
            answer = getattr(chosen, measure)(*arguments)
            low, high = answer.interval(0.8, of="noise")
            hits[measure] += low - 1e-9 <= exact[measure] <= high + 1e-9
    spread = 3 * np.sqrt(0.8 * 0.2 / trials)
    assert all(hit / trials >= 0.8 - spread for hit in hits.values()), hits


@pytest.mark.audit
def test_true_sums_and_means_of_records_inside_their_cells_are_held():
    """Over 1,000 releases and all groups, misses stay within beta and chance."""
    rng = np.random.default_rng(8)
    ages = bf.Domain.from_edges([0, 18, 30, 50, 80], name="age")
    sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    domain = bf.Domain.product(ages, sexes)
    # Most of a cell's records crowd at one of its ends, as 18 and 80 year olds do.
    values = np.concatenate([rng.integers(18, 20, 150), rng.normal(45, 9, 90)])
    values = np.clip(values, 0, 79.5)
    women = rng.random(values.size) < 0.6
    table = np.histogram2d(values, 1.0 - women, bins=[[0, 18, 30, 50, 80], [0, 0.5, 1]])
    counts = table[0].astype(int)
    kept = [values >= 20, values >= 20]
    truth = {"count": [], "sum": [], "mean": [], "variance": []}
    for chosen, of_sex in zip(kept, (women, ~women), strict=True):
        mine = values[chosen & of_sex]
        truth["count"].append(mine.size)
        truth["sum"].append(mine.sum())
        truth["mean"].append(mine.mean())
        truth["variance"].append(mine.var())
    releases, misses = 1000, dict.fromkeys(truth, 0)
    for seed in range(releases):
        release = released(domain, counts, bf.policies.AddRemove, epsilon=0.5, rng=seed)
        groups = release.where(age=slice(20, None)).group_by("sex")
        asked = {
            "count": groups.count(),
            "sum": groups.sum("age"),
            "mean": groups.mean("age"),
            "variance": groups.variance("age"),
        }
        for measure, answers in asked.items():
            low, high = answers.intervals(0.9, of="truth").T
            misses[measure] += ((truth[measure] < low) | (truth[measure] > high)).sum()
    allowed = 0.1 + 3 * np.sqrt(0.1 * 0.9 / releases)
    assert all(one / (2 * releases) <= allowed for one in misses.values()), misses


@pytest.mark.parametrize("values", [None, [5, 15, 60]])
def test_variances_follow_from_the_values_that_records_count_with(values):
    ages = bf.Domain.from_edges([0, 10, 20, 100], name="age")
    counts = np.array([4000, 9000, 2000])
    found = released(ages, counts, epsilon=100).where().variance("age", values)
    records = np.repeat([5.0, 15.0, 60.0], counts)
    assert float(found) == pytest.approx(records.var(), rel=1e-2)
    low, high = found.interval()
    assert 0 <= low <= records.var() <= high <= 50.0**2
    if values is not None:
        assert high - low < 0.02 * records.var()
    root = released(ages, counts, epsilon=100).where().std("age", values)
    assert float(root) == pytest.approx(float(found) ** 0.5)
    assert root.interval() == pytest.approx((low**0.5, high**0.5))


def test_a_cell_that_is_cut_counts_between_nothing_and_all_of_it():
    ages = bf.Domain.from_edges([0, 10, 20], name="age")
    release = released(ages, [100, 400], bf.policies.AddRemove, epsilon=10**5)
    low, high = release.where(age=slice(5, 15)).count().interval()
    assert (round(low), round(high)) == (0, 500)
    low, high = release.where(age=slice(0, 12)).sum("age").interval()
    assert (round(low), round(high)) == (0, 100 * 10 + 400 * 12)


def test_intervals_of_bucketed_releases_say_that_they_hold_the_noise():
    line = bf.Domain(8)
    release = bf.mechanisms.StructureFirst(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=1, buckets=2
    ).release([7] * 4 + [900] * 4, rng=1)
    cut = release.where({0: slice(0, 3)})
    with pytest.warns(NoiseOnlyWarning, match="even inside 2 buckets"):
        cut.count().interval()
    with pytest.raises(IntervalError, match="even inside 2 buckets"):
        cut.count().interval(of="truth")
    whole = release.where({0: slice(0, 4)}).count()
    assert whole.holds_truth
    assert whole.interval() == whole.interval(of="noise")
    columns = release.group_by(0).count().to_table().columns
    assert list(columns)[-2:] == ["noise_low", "noise_high"]


def test_a_mean_of_next_to_nobody_stays_within_the_values():
    release = released(PEOPLE, np.zeros(36), bf.policies.AddRemove, epsilon=0.1)
    mean = release.where(age=slice(10, 35)).mean("age")
    assert 15.0 <= mean <= 27.5
    assert mean.interval(of="noise") == (15.0, 27.5)
    assert mean.interval() == (10.0, 35.0)


def test_cells_of_their_own_are_asked_for_by_name():
    domain = PEOPLE.with_extra_cells(outside="age", missing=["age", "sex"])
    release = released(domain, np.arange(domain.size))
    np.testing.assert_allclose(
        release.where(age="(missing)", sex=["F", "(missing)"]).count(),
        release.estimate[5, [0, 3]].sum(),
    )
    np.testing.assert_allclose(
        release.where(age=slice(None)).count(), release.estimate[:4].sum()
    )
    with pytest.raises(InputError, match="have no value"):
        release.where(age="(missing)").sum("age")
    with pytest.raises(InputError, match="have no value"):
        release.group_by("age").mean("age")
    assert "(outside)" in release.where().group_by("age").count()
    table = release.where().group_by("age").count().to_table()
    assert table["age"][-1] == "(missing)"


MEASURES = {
    "sum": lambda asked: asked.sum("age"),
    "mean": lambda asked: asked.mean("age"),
    "variance": lambda asked: asked.variance("age"),
    "std": lambda asked: asked.std("age"),
    "median": lambda asked: asked.quantile("age"),
}


@pytest.mark.parametrize("measure", MEASURES)
def test_who_has_no_value_is_left_out_and_that_is_said(measure):
    domain = PEOPLE.with_extra_cells(outside="age", missing="age")
    release = released(domain, np.arange(domain.size))
    ask = MEASURES[measure]
    answer, among = ask(release.where()), ask(release.where(age=slice(None)))
    assert answer == among
    assert answer.interval(of="noise") == among.interval(of="noise")
    assert answer.left_out == "Records whose age is missing or outside are left out."
    assert answer.explain().count(answer.left_out) == 1
    assert among.left_out is None
    assert "left out" not in among.explain()
    grouped = ask(release.group_by("sex"))
    assert dict(grouped) == dict(ask(release.where(age=slice(None)).group_by("sex")))
    assert "age is missing or outside are left out" in repr(grouped)
    assert grouped.interval_sentence("noise").endswith(answer.left_out)


def test_shares_of_values_are_of_those_who_have_one():
    domain = PEOPLE.with_extra_cells(outside="age", missing=["age", "sex"])
    release = released(domain, np.arange(domain.size) + 5)
    young = release.where(age=slice(0, 20))
    valued = release.where(age=[slice(None), "(outside)"])
    share = young.relative_count()
    assert (
        share
        == young.relative_count(of=valued)
        > young.count() / release.estimate.sum()
    )
    assert share.left_out == "Records whose age is missing are left out."
    assert young.relative_count(of=release.where()).left_out is None
    for asked in (release.where(age=[slice(0, 20), "(missing)"]), release.where()):
        part = asked.relative_count()
        assert part.left_out is None
        np.testing.assert_allclose(part, asked.count() / release.estimate.sum())
    shares = release.group_by("age").relative_count()
    assert shares.left_out is None
    np.testing.assert_allclose(sum(shares.values()), 1.0)
    both = release.where(age=slice(0, 20), sex="F").relative_count().left_out
    assert both == (
        "Records whose age is missing are left out. "
        "Records whose sex is missing are left out."
    )


def test_values_may_be_given():
    levels = bf.Domain.from_levels(["low", "high"], name="risk")
    release = released(levels, [10, 30], epsilon=10**6)
    assert round(release.where().sum("risk", values=[1, 5])) == 160
    assert round(release.where().mean("risk", values=[1, 5]), 3) == 4
    with pytest.raises(DomainError, match="levels, which have no sum"):
        release.where().mean("risk")
    with pytest.raises(DomainError, match="one finite value"):
        release.where().mean("risk", values=[1])
    with pytest.raises(InputError, match="must be numbers"):
        release.where().mean("risk", values=["a", "b"])
    stars = bf.Domain.from_levels([1, 5], name="stars")
    assert round(released(stars, [10, 30], epsilon=10**6).where().sum("stars")) == 160


def test_attributes_without_names_go_by_number():
    release = released(bf.Domain((4, 5)), np.arange(20))
    chosen = release.where({0: 2, 1: slice(1, 3.5)})
    expected = release.estimate[2, 1:3].sum() + release.estimate[2, 3] / 2
    np.testing.assert_allclose(chosen.count(), expected)
    assert round(chosen.mean(1), 6) == round(
        float(
            np.clip(
                2
                + (release.estimate[2, 3] / 2 - release.estimate[2, 1])
                / max(expected, 1),
                1,
                3,
            )
        ),
        6,
    )
    assert "axis0 in cells [2, 3)" in repr(chosen)


def test_a_release_that_covers_nothing_answers_without_intervals():
    line = bf.Domain(8, names=["x"])
    asked = bf.workloads.Ranges.random(line, 5, rng=1)
    release = bf.mechanisms.Mwem(bf.policies.Full(line), asked, epsilon=1).release(
        np.arange(8), rng=1
    )
    count = release.where(x=slice(2, 5)).count()
    np.testing.assert_allclose(count, release.estimate[2:5].sum())
    with pytest.raises(IntervalError):
        count.interval()


@pytest.mark.long
@pytest.mark.parametrize("shape", [16, (4, 6)])
@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"kmeans"}))
def test_every_mechanism_is_asked_alike(name, shape):
    domain = bf.Domain(shape)
    try:
        mechanism, data = MECHANISMS[name].example(
            domain, bf.policies.AddRemove(domain), "0.7"
        )
    except bf.BlowfishError:
        assert domain.ndim > 1
        return
    release = mechanism.release(data, rng=1)
    chosen = release.where({0: slice(1, 3.5)})
    weights = np.zeros(domain.shape)
    weights[1:3], weights[3] = 1.0, 0.5
    values = weights * np.arange(domain.shape[0]).reshape(
        [-1] + [1] * (domain.ndim - 1)
    )
    for answer, asked in ((chosen.count(), weights), (chosen.sum(0), values)):
        workload = bf.workloads.Sum(domain, asked)
        np.testing.assert_allclose(answer, release.answer(workload)[0], atol=1e-9)
        if release.interval_scope == "noise":
            expected = release.intervals(workload, of="noise")[0]
            found = answer.interval(of="noise")
            np.testing.assert_allclose(found, expected, rtol=1e-6)
            low, high = chosen.mean(0).interval(of="noise")
            assert 1.0 <= low <= high <= 3.0


def test_minimum_and_maximum_are_refused_with_a_reason(release):
    for refused in (release.where().min, release.where().max):
        with pytest.raises(WorkloadError, match="a single record decides"):
            refused("age")
    for refused in (
        release.where().group_by("sex").min,
        release.where().group_by("sex").max,
    ):
        with pytest.raises(WorkloadError, match="a single record decides"):
            refused("age")


def test_empty_conditions_are_refused(release):
    with pytest.raises(InputError, match="nothing is selected"):
        release.where(age=slice(0, 10)).where(age=slice(10, 20))
    with pytest.raises(InputError, match="selects no part"):
        release.where(age=slice(70, 80))


def test_too_many_cells_for_an_interval_are_refused_with_their_number(monkeypatch):
    monkeypatch.setattr("blowfish_fast.release.query_grid.MOST_COEFFICIENTS", 10)
    release = released(PEOPLE, np.arange(36))
    total = release.where().sum("age")
    assert total > 0
    with pytest.raises(SizeError, match="36 cells"):
        total.interval()


def test_conditions_and_names_come_in_the_forms_of_data_frames(release):
    by_list = release.group_by(["age", "sex"]).count()
    assert dict(by_list) == dict(release.where().group_by("age", "sex").count())
    assert list(release.group_by(sex=["X", "F"]).count()) == ["X", "F"]
    for condition in ("age > 20", lambda one: one.age, ["age"]):
        with pytest.raises(InputError, match="conditions name attributes"):
            release.where(condition)
    with pytest.raises(InputError, match="edges in values"):
        release.group_by(age=5)


def test_answers_by_group_survive_pickling(release):
    for answers in (
        release.group_by("sex").count(),
        release.group_by("sex").mean("age"),
        release.group_by("sex").quantile("age"),
    ):
        again = pickle.loads(pickle.dumps(answers))
        assert dict(again) == dict(answers)
        np.testing.assert_allclose(again.intervals(), answers.intervals())
        assert again.seeded


def test_why_intervals_of_means_are_wide_is_said_with_them():
    ages = bf.Domain.from_edges(range(20, 85, 5), name="age")
    sexes = bf.Domain.from_levels(["f", "m"], name="sex")
    counts = np.full((12, 2), 400)
    policy = bf.policies.Full(bf.Domain.product(ages, sexes))
    certain = bf.Laplace(policy, epsilon=50).release(counts, rng=1)
    said = certain.where().mean("age").explain()
    assert "Cells of age that are up to 5 wide make most of the width" in said
    answers = certain.group_by("sex").mean("age")
    assert "narrower cells help" in answers.interval_sentence("truth")
    assert "narrower cells help" not in answers.interval_sentence("noise")
    noisy = bf.Laplace(policy, epsilon=0.01).release(counts, rng=1)
    assert "Noise makes most of its width" in noisy.where().mean("age").explain()
    answers = noisy.group_by("sex").mean("age")
    assert "narrower" not in answers.interval_sentence("truth")
