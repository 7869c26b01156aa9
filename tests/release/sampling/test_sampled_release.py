"""Intervals of the population: designs, what they miss, and what is refused.

Numbers of people (`release.sampling.numbers`), shares and quantiles
(`release.sampling.shares`) and means (`release.sampling.ratios`) are asked as people
ask them, by way of a release and its groups (`release.sampling.grids`).
"""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError, IntervalError, ReleaseFileError
from blowfish_fast.release.sampling.designs import SamplingDesign, design_from_dict
from blowfish_fast.release.sampling.sampled_release import VarianceParts

AGES = bf.Domain.from_edges(range(0, 81, 10), name="age")
SEXES = bf.Domain.from_levels(["F", "M"], name="sex")
PEOPLE = bf.Domain.product(SEXES, AGES)
COUNTS = np.array([[40, 60, 80, 70, 60, 40, 30, 20], [50, 70, 60, 50, 40, 30, 20, 10]])
SIMPLE = bf.sampling.Simple(population=20_000)
DESIGNS = (
    SIMPLE,
    bf.sampling.Simple(),
    bf.sampling.Simple(20_000, replacement=True),
    bf.sampling.Bernoulli("0.05"),
    bf.sampling.Poisson(),
    bf.sampling.Stratified("sex", population={"F": 9_000, "M": 11_000}),
    bf.sampling.Weighted("sex", values=[8, 4]),
)


FULL = bf.policies.Full(PEOPLE)


def released(policy=FULL, counts=COUNTS, epsilon=1, rng=1):
    return bf.Laplace(policy, epsilon=epsilon).release(counts, rng=rng)


def with_strays():
    """Return a release of two levels and a cell for whatever else was written."""
    sexes = bf.Domain.from_levels(["F", "M"], name="sex").with_extra_cells(outside=True)
    return bf.Laplace(bf.policies.Full(sexes), epsilon=1).release([5, 6, 1], rng=1)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.describe())
def test_a_design_is_kept_in_the_file_and_said(design):
    drawn = released().sampled(design)
    again = bf.Release.from_bytes(drawn.to_bytes())
    assert again.design == design
    assert again.rounded().design == design
    assert design_from_dict(design.to_dict()) == design
    said = drawn.interval_sentence("population")
    assert design.describe() in said
    assert "Nothing here can check that" in said
    assert released().to_bytes().find(b'"design"') < 0


def test_population_is_never_a_default_and_needs_a_design():
    release = released()
    share = release.where(sex="F").relative_count()
    with pytest.raises(IntervalError, match="how these records were drawn"):
        share.interval(of="population")
    with pytest.raises(IntervalError, match="how these records were drawn"):
        release.intervals(bf.workloads.Identity(PEOPLE), of="population")
    with pytest.raises(IntervalError, match="how these records were drawn"):
        release.where().in_population().count()
    drawn = release.sampled(SIMPLE)
    assert drawn.where(sex="F").relative_count().interval() == share.interval()
    with pytest.raises(InputError, match='of="population" alone'):
        share.interval(method="exact")
    with pytest.raises(InputError, match="method must be"):
        drawn.where(sex="F").count().interval(of="population", method="wrong")


@pytest.mark.long
@pytest.mark.parametrize("method", ["exact", "normal"])
@pytest.mark.parametrize("design", DESIGNS[:5], ids=lambda design: design.describe())
def test_shares_lie_around_the_estimate_and_are_wider_than_those_of_the_records(
    design, method
):
    drawn = released().sampled(design)
    women = drawn.where(sex="F")
    young = women.where(age=slice(0, 30))
    for share in (women.relative_count(), young.relative_count(of=women)):
        low, high = share.interval(of="population", method=method)
        inner = share.interval(of="truth")
        assert 0 <= low < inner[0] < share < inner[1] < high <= 1
        parts = share.variance_parts()
        assert parts.sampling > parts.noise > 0
        assert "comes from drawing the records" in str(parts)


def test_an_exact_interval_is_known_by_hand():
    # No noise: a policy under which sexes are no secret.
    policy = bf.policies.Blocks(SEXES, [0, 1])
    release = bf.Laplace(policy, epsilon=1).release([12, 28], rng=1)
    drawn = release.sampled(bf.sampling.Simple())
    low, high = drawn.where(sex="F").relative_count().interval(of="population")
    from scipy.stats import beta

    assert low == pytest.approx(beta.ppf(0.025, 12, 29), rel=0.02)
    assert high == pytest.approx(beta.ppf(0.975, 13, 28), rel=0.02)


def test_a_superpopulation_has_no_number_of_people_and_no_estimate_of_one():
    women = released().sampled(bf.sampling.Simple()).where(sex="F")
    with pytest.raises(IntervalError, match="a superpopulation has no number"):
        women.in_population().count()


def test_counts_are_numbers_of_people():
    drawn = released().sampled(SIMPLE)
    women = drawn.where(sex="F")
    people = women.in_population().count()
    share = women.relative_count().interval(of="population")
    assert people.interval() == pytest.approx([20_000 * end for end in share])
    assert women.count().interval(of="population") == people.interval()
    assert people.interval()[0] < people < people.interval()[1]
    table = drawn.group_by("sex").in_population().count().to_table()
    assert list(table.columns)[2:] == ["population_low", "population_high"]
    with pytest.raises(IntervalError, match="no count of these records"):
        people.interval(of="truth")
    asked = bf.workloads.Identity(PEOPLE)
    bounds = drawn.intervals(asked, of="population", method="exact")
    assert bounds.shape == (16, 2)
    wider = drawn.intervals(asked, of="population", together=True)
    assert (wider[:, 0] <= bounds[:, 0]).all()
    assert (wider[:, 1] >= bounds[:, 1]).all()
    events = released().sampled(bf.sampling.Poisson()).where(sex="F").in_population()
    assert 360 < events.count() < 440
    thinned = released().sampled(bf.sampling.Bernoulli("1/20")).where(sex="F")
    assert 7_500 < thinned.in_population().count() < 8_500
    assert thinned.count().variance_parts().sampling > 19 * 8_000 * 0.9
    assert drawn.where(sex="F").count().variance_parts().noise > 0


@pytest.mark.parametrize("method", ["exact", "normal"])
def test_private_sizes_cost_a_part_of_the_probability(method):
    private = released(bf.policies.AddRemove(PEOPLE)).sampled(SIMPLE)
    public = released().sampled(SIMPLE)
    for one in (private, public):
        low, high = (
            one.where(sex="F").relative_count().interval(of="population", method=method)
        )
        assert low < 0.547 < high
    assert private.where(sex="F").mean("age").interval(of="population")[0] < 35


@pytest.mark.long
@pytest.mark.parametrize("design", DESIGNS[:5], ids=lambda design: design.describe())
def test_means_and_quantiles_of_the_population(design):
    women = released(epsilon=4).sampled(design).where(sex="F")
    answers = [women.mean("age"), women.std("age")]
    for answer in answers[: 1 + (design is SIMPLE)]:
        low, high = answer.interval(of="population")
        inner = answer.interval(of="truth")
        assert low <= inner[0] <= answer <= inner[1] <= high
        bounded = answer.interval(of="population", method="exact")
        assert bounded[0] <= low
        assert bounded[1] >= high
    estimate = women.in_population().mean("age")
    assert estimate.interval()[0] < estimate < estimate.interval()[1]
    for q in (0.01, 0.5, 0.99):
        low, high = women.quantile("age", q).interval(of="population")
        inner = women.quantile("age", q).interval(of="truth")
        assert low <= inner[0] < inner[1] <= high
    with pytest.raises(IntervalError, match="counts, shares, means"):
        women.sum("age").interval(of="population")
    with pytest.raises(IntervalError, match="two parts of the variance"):
        women.quantile("age").variance_parts()
    groups = released().sampled(design).group_by("sex").quantile("age", 0.5)
    assert groups.intervals(of="population", method="normal").shape == (2, 2)


def test_quantiles_of_everybody_without_replacement_have_an_exact_law():
    drawn = released(epsilon=4).sampled(SIMPLE)
    exact = drawn.where().quantile("age").interval(of="population", method="exact")
    assert exact == (20.0, 40.0)
    # Of a part nobody stated how many people it has: bounds serve, and are wider.
    part = drawn.where(sex="F").quantile("age")
    bounded = part.interval(of="population", method="exact")
    normal = part.interval(of="population", method="normal")
    assert bounded[0] <= normal[0] < normal[1] <= bounded[1]


def test_strata_need_public_sizes():
    design = DESIGNS[5]
    held = bf.policies.Blocks(PEOPLE, np.repeat([0, 1], 8))
    drawn = released(held).sampled(design)
    young = drawn.where(age=slice(0, 30))
    share = young.in_population().relative_count()
    # 180 of 400 women and 180 of 330 men were young.
    true = (9_000 * 180 / 400 + 11_000 * 180 / 330) / 20_000
    assert share == pytest.approx(true, abs=0.02)
    low, high = share.interval()
    assert low < true < high
    assert high - low < 0.1
    # Each stratum has its own share, and its own part of all people.
    women, men = 180 / 400, 180 / 330
    drawing = 9_000**2 * (8_600 / 8_999) * women * (1 - women) / 400
    drawing += 11_000**2 * (10_670 / 10_999) * men * (1 - men) / 330
    parts = young.count().variance_parts()
    assert parts.sampling == pytest.approx(drawing, rel=0.02)
    assert 0 < parts.noise < parts.sampling
    assert share.variance_parts().sampling == pytest.approx(parts.sampling / 20_000**2)
    assert share.variance_parts().noise_share == pytest.approx(parts.noise_share)
    people = young.in_population().count().interval(of="population")
    assert people == pytest.approx([20_000 * low, 20_000 * high])
    with pytest.raises(IntervalError, match="must be public"):
        released().sampled(design).where(age=slice(0, 30)).count().interval(
            of="population"
        )
    bounded = young.count().interval(of="population", method="exact")
    assert bounded[0] < people[0] < people[1] < bounded[1]
    empty = released(held, counts=COUNTS * [[1], [0]]).sampled(design)
    with pytest.raises(IntervalError, match="nobody was drawn"):
        empty.where(age=slice(0, 30)).count().interval(of="population")
    assert empty.where(sex="F").count().interval(of="population")[0] > 0
    few = bf.sampling.Stratified("sex", population={"F": 300, "M": 11_000})
    with pytest.raises(InputError, match="than it has people"):
        released(held).sampled(few).where().count().interval(of="population")


def test_weights_are_coefficients_of_the_query():
    drawn = released().sampled(DESIGNS[6])
    women = drawn.where(sex="F")
    people = women.in_population().count()
    assert people == pytest.approx(8 * 400, rel=0.05)
    assert people.interval()[0] < 8 * 400 < people.interval()[1]
    share = women.in_population().relative_count()
    assert share == pytest.approx(8 * 400 / (8 * 400 + 4 * 330), rel=0.05)
    assert share.interval()[0] < share < share.interval()[1]
    # The records' own share is no estimate of it, so the interval is not widened to it.
    assert women.relative_count() < share.interval()[0]
    assert women.relative_count().interval(of="population")[0] > 0.6
    assert people.variance_parts().sampling == pytest.approx(8 * 7 * 400, rel=0.05)
    low, high = drawn.where().quantile("age").interval(of="population")
    assert low <= 30 <= high
    for asked in (women.count(), women.relative_count(), women.quantile("age")):
        exact, normal = (
            asked.interval(of="population", method=method)
            for method in ("exact", "normal")
        )
        assert exact[0] <= normal[0] < normal[1] <= exact[1]
    by_sex = drawn.group_by("sex").count()
    for method, said in (("exact", "probability at least"), ("normal", "about 95 %")):
        assert said in by_sex.interval_sentence("population", method=method)
    cut = bf.sampling.Weighted("sex", values=[8, 4], trimmed=6)
    with pytest.raises(IntervalError, match='method="normal"'):
        released().sampled(cut).where(sex="F").count().interval(
            of="population", method="exact"
        )


def test_what_followed_the_data_is_split_and_cut_buckets_are_refused():
    line = bf.Domain.from_edges(range(65), name="x")
    policy = bf.policies.AddRemove(line)
    counts = np.repeat([5, 40, 8, 30], 16)
    release = bf.Dawa(
        policy, epsilon=0.5, workload=bf.workloads.Prefixes(line)
    ).release(counts, rng=3)
    assert release.measurements[0].buckets.count < 64
    drawn = release.sampled(bf.sampling.Simple())
    with pytest.raises(IntervalError, match="hold the noise"):
        drawn.where(x=slice(0, 5)).relative_count().interval(of="population")
    edge = float(release.measurements[0].buckets.edges[-2])
    share = drawn.where(x=slice(0, edge)).relative_count()
    low, high = share.interval(of="population", method="exact")
    assert low < share < high
    with pytest.raises(IntervalError, match="laid out before"):
        share.interval(of="population", method="normal")


def test_certificates_of_each_answer_serve_and_those_of_a_fraction_do_not():
    line = bf.Domain(64)
    cells, policy = bf.workloads.Identity(line), bf.policies.AddRemove(line)
    counts = [0] * 30 + [40] * 4 + [0] * 30
    ledger = bf.Ledger(epsilon=4, policy=policy)
    release = ledger.release(bf.Dawa(policy, cells, epsilon=1), counts, rng=1)
    found = ledger.certify(release, counts, cells, epsilon=1, confidence=0.99, rng=2)
    drawn = release.certified(found).sampled(bf.sampling.Poisson())
    with pytest.raises(IntervalError, match="says nothing of a single one"):
        drawn.intervals(cells, of="population")
    asked = bf.workloads.Ranges(line, [0, 20], [32, 64])
    each = ledger.certify(
        release, counts, asked, epsilon=1, kind="all", confidence=0.99, rng=3
    )
    known = release.certified(each).sampled(bf.sampling.Poisson())
    bounds = known.intervals(asked, of="population")
    true = known.intervals(asked, of="truth", confidence=0.975)
    assert (bounds[:, 0] <= true[:, 0]).all()
    assert (bounds[:, 1] > true[:, 1]).all()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: bf.sampling.Simple(population=0), "population must"),
        (lambda: bf.sampling.Simple(10, replacement="no"), "True or False"),
        (lambda: bf.sampling.Bernoulli(rate=1), "between 0 and 1"),
        (lambda: bf.sampling.Bernoulli(rate="often"), "a rate is a number"),
        (lambda: bf.sampling.Stratified("sex", population={}), "number of people"),
        (lambda: bf.sampling.Weighted("sex", values=[0.5]), "numbers of 1 or more"),
        (lambda: bf.sampling.Weighted("sex", values="x"), "numbers of 1 or more"),
        (lambda: released().sampled("simple"), "one of bf.sampling"),
        (
            lambda: released().sampled(bf.sampling.Stratified("age", {"x": 1})),
            "cells of another kind",
        ),
        (
            lambda: with_strays().sampled(bf.sampling.Stratified("sex", {"F": 1})),
            r"sex has a cell for \(outside\).*Spell sex alike",
        ),
        (
            lambda: released().sampled(bf.sampling.Stratified("sex", {"F": 1})),
            "every level of sex",
        ),
        (
            lambda: released().sampled(bf.sampling.Weighted("sex", values=[2, 3, 4])),
            "one weight for each",
        ),
        (lambda: design_from_dict({"kind": "cluster"}), "unknown here"),
    ],
)
def test_designs_that_are_none_are_refused(ask, words):
    with pytest.raises((InputError, ReleaseFileError), match=words):
        ask()


def test_questions_without_an_interval_are_refused():
    drawn = released().sampled(bf.sampling.Simple(population=100))
    with pytest.raises(InputError, match="the records are more"):
        drawn.where(sex="F").relative_count().interval(of="population")
    drawn = released().sampled(bf.sampling.Simple())
    with pytest.raises(IntervalError, match="no number of people"):
        drawn.where(sex="F").count().interval(of="population")
    with pytest.raises(IntervalError, match="a condition cuts some"):
        drawn.where(age=slice(0, 15)).relative_count().interval(of="population")
    asked = bf.workloads.Linear(PEOPLE, np.full((1, 16), 0.5))
    with pytest.raises(IntervalError, match="counts of whole cells"):
        released().sampled(SIMPLE).intervals(asked, of="population")
    other = released(rng=2)
    with pytest.raises(IntervalError, match="of one release"):
        (released() + other).intervals(bf.workloads.Identity(PEOPLE), of="population")
    with pytest.raises(IntervalError, match="how these records were drawn"):
        (released() + other).where(sex="F").count().interval(of="population")
    mechanism = bf.Laplace(
        bf.policies.AddRemove(SEXES).per_person(2, count="persons"), epsilon=1
    )
    data = bf.Histogram.from_records(
        SEXES,
        {"sex": ["F", "M", "F"], "who": [1, 1, 2]},
        person="who",
        at_most=2,
        count="persons",
    )
    with pytest.raises(InputError, match="records that all count"):
        mechanism.release(data, rng=1).sampled(SIMPLE)


def test_every_group_has_its_two_parts():
    groups = released().sampled(SIMPLE).group_by("sex").relative_count()
    first, second = groups.variance_parts()
    assert first == groups["F"].variance_parts()
    assert 0 < second.noise_share < 1
    assert VarianceParts(0.0, 0.0).noise_share == 0.0


def test_designs_without_a_law_are_refused_by_their_reason():
    for name in ("cluster", "two-stage", "raking", "quota"):
        with pytest.raises(InputError) as problem:
            released().sampled(name)
        assert problem.value.way_out
        assert "bf.sampling" not in str(problem.value)


def test_parts_of_no_error_are_said():
    assert "no error" in str(VarianceParts(0.0, 0.0))
    assert "inf times" in str(VarianceParts(0.0, 1.0))


def test_designs_say_how_many_people_there_are():
    assert [design.everybody for design in DESIGNS] == [
        20_000,
        None,
        20_000,
        None,
        None,
        20_000,
        None,
    ]
    assert all(isinstance(design, SamplingDesign) for design in DESIGNS)


@pytest.mark.long
def test_the_mean_and_the_median_of_the_population_are_held():
    rng, draws, size = np.random.default_rng(5), 16, 500
    population = np.repeat(np.arange(8), [900, 1500, 1800, 1200, 900, 700, 600, 400])
    policy = bf.policies.Full(AGES)
    mechanism = bf.Hierarchy(policy, bf.workloads.Prefixes(AGES), epsilon=0.5)
    design = bf.sampling.Simple(population=population.size)
    cell = int(np.median(population))
    mean = 10 * population.mean() + 5
    missed = np.zeros(2)
    for turn in range(draws):
        sample = np.bincount(rng.choice(population, size, replace=False), minlength=8)
        drawn = mechanism.release(sample, rng=turn).sampled(design).where()
        low, high = drawn.quantile("age").interval(0.8, of="population")
        missed[0] += not (low <= 10 * cell and 10 * cell + 10 <= high)
        values = 10 * np.arange(8) + 5
        low, high = drawn.mean("age", values).interval(0.8, of="population")
        missed[1] += not low <= mean <= high
    assert (missed / draws <= 0.2 + 3 * (0.16 / draws) ** 0.5).all()


def test_counts_of_everybody_are_worked_out_in_parts_that_memory_holds(monkeypatch):
    """A share of everybody lists all cells: as many at a time as are allowed."""
    from blowfish_fast.release.sampling import numbers

    drawn, cells = released().sampled(SIMPLE), bf.workloads.Identity(PEOPLE)
    whole = drawn.intervals(cells, of="population", method="normal")
    parts = numbers.count_parts(drawn, cells)
    listed = []
    ratio = numbers.Ratio

    def noted(source, rows, everything, limits):
        listed.append(everything.nnz)
        return ratio(source, rows, everything, limits)

    monkeypatch.setattr(numbers, "Ratio", noted)
    monkeypatch.setattr(numbers, "MOST_LISTED", 3 * PEOPLE.size)
    again = drawn.intervals(cells, of="population", method="normal")
    assert max(listed) == 3 * PEOPLE.size
    assert len(listed) == 6
    assert again == pytest.approx(whole, rel=1e-9)
    for one, other in zip(numbers.count_parts(drawn, cells), parts, strict=True):
        assert one == pytest.approx(other)


def test_strategies_that_public_values_chose_are_laid_out_before_the_data():
    held = bf.policies.Blocks(PEOPLE, np.repeat([0, 1], 8))
    asked = bf.workloads.Identity(PEOPLE)
    design = bf.sampling.Stratified("sex", population={"F": 9_000, "M": 11_000})
    chosen = bf.Transformed(held, asked, partition=None, strategy="cells", epsilon=1)
    release = chosen.release(COUNTS, rng=1)
    assert release.details["laid_out"] == "before the data"
    people = release.sampled(design).where(age=slice(0, 30)).count()
    assert people.interval(of="population")[0] > 0
    line = bf.Domain.from_edges(range(65), name="x")
    divided = bf.Transformed(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=1
    ).release(np.full(64, 9), rng=1)
    assert "laid_out" not in divided.details


def test_numbers_of_people_take_a_method_without_saying_population_again():
    domain = bf.Domain.from_levels(["yes", "no"], name="said")
    release = bf.Laplace(bf.policies.Full(domain), epsilon=1).release([60, 40], rng=1)
    drawn = release.sampled(bf.sampling.Simple(population=1000))
    people = drawn.where(said="yes").in_population().count()
    for method in ("exact", "normal"):
        asked = people.interval(of="population", method=method)
        assert people.interval(method=method) == asked
    groups = drawn.group_by("said").in_population().count()
    asked = groups.intervals(of="population", method="exact")
    np.testing.assert_array_equal(groups.intervals(method="exact"), asked)
    with pytest.raises(InputError, match='a method is chosen for of="population"'):
        drawn.where(said="yes").count().interval(method="exact")
