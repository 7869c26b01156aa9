"""Tables that the data choose: what is measured, answered, refused and kept.

The recipe is in ``mechanisms.chosen_tables_run``, cells in which nobody can be in
``mechanisms.tables.impossible_cells``, tables of another survey in
``mechanisms.tables.prior_tables``; what it costs, in ``privacy/test_chosen_tables``.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.tables.merged_tables import Grouping
from blowfish_fast.errors import (
    DataDependentError,
    EpsilonError,
    InputError,
    IntervalError,
    PolicyError,
    ReleaseFileError,
    SizeError,
    WorkloadError,
)
from blowfish_fast.mechanisms.tables.prior_tables import PriorTables
from blowfish_fast.release.chosen_release import read_tables
from blowfish_fast.release.tables_certificate import check_certificate
from blowfish_fast.workloads import Identity, Tables

P = bf.policies
NAMES = ["age", "sex", "region", "job", "pay"]
SIZES = (18, 2, 3, 4, 8)
SURVEY = bf.WideDomain.product(
    *(
        bf.Domain.from_levels([f"{name}{level}" for level in range(size)], name=name)
        if name in ("sex", "region", "job")
        else bf.Domain(size, names=[name])
        for name, size in zip(NAMES, SIZES, strict=True)
    )
)
ASKED = Tables(SURVEY, ways=2)


@pytest.fixture(name="cells", scope="module")
def cells_of_people():
    source = np.random.default_rng(8)
    age = source.binomial(17, 0.4, 6000)
    sex, region = source.integers(0, 2, 6000), source.integers(0, 3, 6000)
    job = np.minimum(age // 4, 3)
    pay = np.minimum(job * 2 + source.integers(0, 2, 6000), 7)
    return np.array([age, sex, region, job, pay])


def chosen(policy=None, choose="data", **terms):
    budget = terms if {"epsilon", "rho"} & set(terms) else {"epsilon": 1, **terms}
    return bf.ChosenTables(
        P.AddRemove(SURVEY) if policy is None else policy,
        ASKED,
        choose=choose,
        **budget,
    )


def counts_of(mechanism, cells):
    blocks = [cells.astype(np.int32)]
    return bf.TableCounts.from_cells(SURVEY, mechanism.measured_tables, blocks)


def truth(cells, axes):
    counts = np.zeros([SIZES[axis] for axis in axes])
    np.add.at(counts, tuple(cells[axis] for axis in axes), 1)
    return counts


def misplaced(out, cells):
    pairs = list(combinations(range(5), 2))
    shares = [
        np.abs(out.fitted(*axes).estimate - truth(cells, axes)).sum() / 12_000
        for axes in pairs
    ]
    return float(np.mean(shares))


POLICIES = {
    "add_remove": P.AddRemove(SURVEY),
    "full": P.TablePolicy(SURVEY),
    "attribute": P.TablePolicy(SURVEY, {}),
    "presence": P.TablePolicy(SURVEY, {}, presence=4),
    "public": P.TablePolicy(
        SURVEY,
        {"region": P.Graph(SURVEY.marginal(["region"]), np.zeros((0, 2), dtype=int))},
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "budget"),
    [(name, {"epsilon": 1}) for name in sorted(POLICIES)]
    + [("add_remove", {"rho": "0.02"}), ("attribute", {"rho": "0.02"})],
)
def test_what_depends_is_measured_and_the_model_is_close(name, budget, cells):
    mechanism = chosen(POLICIES[name], **budget)
    out = mechanism.release(counts_of(mechanism, cells), rng=1)
    assert out.guarantee.budget <= mechanism.budget
    measured = out.measured["table"].tolist()
    assert {"age x job", "age x pay", "job x pay"} & set(measured)
    independent = np.mean(
        [
            np.abs(
                np.multiply.outer(truth(cells, axes[:1]), truth(cells, axes[1:])) / 6000
                - truth(cells, axes)
            ).sum()
            / 12_000
            for axes in combinations(range(5), 2)
        ]
    )
    assert misplaced(out, cells) < 0.75 * independent


def test_a_seed_gives_the_same_bytes_again(cells):
    mechanism = chosen()
    data = counts_of(mechanism, cells)
    first, again = (mechanism.release(data, rng=1) for _ in range(2))
    assert again.to_bytes() == first.to_bytes()


def test_public_attributes_are_exact_unless_presence_is_secret(cells):
    mechanism = chosen(POLICIES["public"])
    out = mechanism.release(counts_of(mechanism, cells), rng=1)
    region = out.table("region")
    assert (region.estimate == truth(cells, (2,))).all()
    assert "exact: region" in str(out.guarantee)
    np.testing.assert_allclose(out.fitted("region").estimate.sum(), 6000)


@pytest.mark.long
def test_intervals_of_measured_tables_hold_the_truth(cells):
    mechanism = chosen(epsilon=2)
    data, held = counts_of(mechanism, cells), []
    for seed in range(3):
        out = mechanism.release(data, rng=seed)
        for axes, measured in out._firsts.items():
            if len(axes) == 2 and measured.table.cells > 4:
                pair = out.table(*axes)
                queries = Identity(pair.domain)
                merged = measured.table.sum(truth(cells, axes)).reshape(-1)
                bounds = merged_intervals(pair)
                held.append((bounds[:, 0] <= merged) & (merged <= bounds[:, 1]))
                assert pair.standard_errors(queries).shape == (pair.domain.size,)
    inside = np.concatenate(held)
    assert inside.size > 50
    assert inside.mean() > 0.9


def merged_intervals(pair):
    """Return intervals of all merged cells of a measured table."""
    (measurement,) = pair.measurements
    rows = np.zeros((measurement.buckets.count, pair.domain.size))
    rows[measurement.buckets.labels, np.arange(pair.domain.size)] = 1
    asked = bf.workloads.Linear(pair.domain, rows)
    assert pair.holds_truth(asked).all()
    return pair.intervals(asked, 0.95, of="truth")


def test_tables_that_were_not_measured_have_no_intervals(cells):
    mechanism = chosen()
    out = mechanism.release(counts_of(mechanism, cells), rng=2)
    lacking = next(
        axes for axes in combinations(range(5), 2) if axes not in out._firsts
    )
    with pytest.raises(IntervalError, match=r"not measured.*release\.measured"):
        out.table(*lacking)
    table = out.fitted(*lacking)
    assert table.estimate.min() >= 0
    for ask in (table.intervals, table.standard_errors, table.holds_truth):
        with pytest.raises(IntervalError, match=r"release\.measured"):
            ask(Identity(table.domain))
    for ask in (out.intervals, out.holds_truth, out.standard_errors):
        with pytest.raises(IntervalError, match=r"release\.measured"):
            ask(ASKED)
    assert "low" not in table.to_table()
    again = bf.Release.from_bytes(table.to_bytes())
    with pytest.raises(IntervalError, match=r"release\.measured"):
        again.intervals(Identity(again.domain))
    with pytest.raises(IntervalError, match="was not screened"):
        out.screen("age", "job")


def test_files_answer_as_before_and_damage_is_refused(cells, tmp_path):
    mechanism = chosen()
    out = mechanism.release(counts_of(mechanism, cells), rng=3)
    again = read_tables(out.to_bytes())
    assert isinstance(again, bf.ChosenTablesRelease)
    assert again.to_bytes() == out.to_bytes()
    assert repr(again) == repr(out)
    same = [one.fitted("age", "sex", whole=True).estimate for one in (out, again)]
    assert (same[0] == same[1]).all()
    assert (again.answer(ASKED) == out.answer(ASKED)).all()
    out.save_tables(tmp_path / "tables", whole=True)
    lines = (tmp_path / "tables" / "contents.csv").read_text().splitlines()
    assert len(lines) == 16
    assert lines[0].startswith("table,cells,measured,noise")
    planned = chosen(choose="plan")
    plain = planned.release(counts_of(planned, cells), rng=3)
    assert type(read_tables(plain.to_bytes())) is bf.TablesRelease
    with pytest.raises(ReleaseFileError, match=r"ChosenTablesRelease\.load"):
        bf.TablesRelease.from_bytes(out.to_bytes())
    with pytest.raises(ReleaseFileError, match="planned, not chosen"):
        bf.ChosenTablesRelease.from_bytes(plain.to_bytes())


@pytest.mark.parametrize("terms", [{"epsilon": 1}, {"rho": "0.02"}])
def test_certificates_bound_what_the_model_misplaces(cells, terms):
    mechanism = chosen(certify="0.1", **terms)
    out = mechanism.release(counts_of(mechanism, cells), rng=3)
    found = out.certificate(0.999)
    off = [
        np.abs(out.fitted(*axes).estimate - truth(cells, axes)).sum() / 2
        for axes in ASKED.tables
    ]
    assert np.mean(off) <= found.mean <= np.mean(off) + 400
    assert max(off) <= found.worst <= max(off) + 400
    assert found.mean < out.certificate(0.99999).mean
    assert (found.tables, found.records) == (15, out.model.total)
    assert found.mean_share < found.worst_share < 0.2
    assert "in the mean over 15 tables" in str(found)
    assert "certificate" not in out.details["steps"]
    again = read_tables(out.to_bytes())
    assert again.certificate() == out.certificate()
    assert "This is false with" in again._promise(0.95, {})
    for damage in (
        {"noisy": [1]},
        {"rates": [0, 1]},
        {"power": 3},
        {"rounding": [0.0]},
        {"more": 1},
    ):
        broken = {**out.details["certificate"], **damage}
        with pytest.raises(ReleaseFileError, match="certificate of the tables"):
            check_certificate(broken)


def test_certificates_are_refused_where_there_is_no_model(cells):
    with pytest.raises(InputError, match="about tables of a model"):
        chosen(choose="plan", certify="0.1")
    with pytest.raises(EpsilonError, match="between 0 and 1"):
        chosen(certify=1)
    small = chosen(certify="1e-30", epsilon=1)
    data = counts_of(small, cells)
    with pytest.raises(EpsilonError, match="more than can be drawn"):
        small.release(data, rng=1)
    plain = chosen()
    out = plain.release(counts_of(plain, cells), rng=1)
    assert not out.has_certificate
    with pytest.raises(IntervalError, match="State certify"):
        out.certificate()
    triples = Tables(SURVEY, [("age", "sex", "region")])
    larger = bf.ChosenTables(P.AddRemove(SURVEY), triples, certify="0.1", epsilon=1)
    assert larger._certified == ((0, 1), (0, 2), (1, 2))


def test_errors_are_those_of_tables_that_were_measured_cell_by_cell(cells):
    mechanism = chosen()
    out = mechanism.release(counts_of(mechanism, cells), rng=2)
    errors = out.errors()
    assert errors.tables[:5] == ((0,), (1,), (2,), (3,), (4,))
    for axes, variance in zip(errors.tables, errors.variances, strict=True):
        own = out.table(*axes).standard_errors(Identity(out.table(*axes).domain))
        np.testing.assert_allclose(own, np.sqrt(variance))
        assert out._firsts[axes].table.shape == tuple(SIZES[axis] for axis in axes)
    merged = [
        axes
        for axes, measured in out._firsts.items()
        if measured.table.cells < np.prod([SIZES[axis] for axis in axes])
    ]
    assert merged
    assert not {*errors.tables} & {*merged}
    pairs = Tables(SURVEY, [("age", "pay")])
    coarse = bf.ChosenTables(P.AddRemove(SURVEY), pairs, choose="data", epsilon="0.1")
    few = coarse.release(counts_of(coarse, cells), rng=1)
    with pytest.raises(IntervalError, match=r"release\.measured lists the noise"):
        few.errors()


def test_records_and_whole_tables_come_from_the_model(cells):
    mechanism = chosen()
    out = mechanism.release(counts_of(mechanism, cells), rng=1)
    drawn = out.sample(500, rng=1)
    assert list(drawn) == NAMES
    assert len(drawn) == 500
    assert float(np.mean(out.misplaced(drawn)["misplaced"])) < 0.2
    whole = out.fitted("age", "pay", whole=True).estimate
    assert (whole == np.rint(whole)).all()
    job = out.fitted("job", whole=True).estimate
    assert (out.fitted("job", "pay", whole=True).estimate.sum(axis=1) == job).all()
    assert out.where(sex="sex1").count() > 2000
    assert len(out.group_by("region").count()) == 3
    assert "chosen" in repr(out)


def test_plans_and_the_better_of_both(cells):
    planned = chosen(choose="plan")
    out = planned.release(counts_of(planned, cells), rng=4)
    contingency = bf.Contingency(P.AddRemove(SURVEY), ASKED, epsilon=1)
    assert planned.measured_tables == contingency.measured_tables
    same = contingency.release(counts_of(contingency, cells), rng=4)
    assert (out.answer(ASKED) == same.answer(ASKED)).all()
    assert (planned.expected_error() == contingency.expected_error()).all()
    few, many = chosen(choose="best", records=100), chosen(choose="best", records=10**6)
    assert few.planned_misplaced(100) > 0.3 > few.planned_misplaced(10**6)
    assert few.decided == "data"
    assert many.decided == "plan"
    assert many.expected_total_error() == pytest.approx(
        contingency.expected_total_error()
    )
    for epsilon, kind in ((0.02, bf.ChosenTablesRelease), (30, bf.TablesRelease)):
        either = chosen(choose="best", epsilon=epsilon)
        found = either.release(counts_of(either, cells), rng=1)
        assert type(found) is kind
        assert found.guarantee.budget <= either.budget
    with pytest.raises(DataDependentError, match="cannot be predicted"):
        few.expected_error()


def test_with_few_records_attributes_stay_independent(cells):
    mechanism = chosen(epsilon="0.05")
    out = mechanism.release(counts_of(mechanism, cells[:, :200]), rng=1)
    assert set(out.measured["step"].tolist()) == {"single"}
    pair = out.fitted("age", "job").estimate
    product = np.multiply.outer(pair.sum(axis=1), pair.sum(axis=0)) / pair.sum()
    np.testing.assert_allclose(pair, product, atol=1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
@pytest.mark.parametrize("name", ["add_remove", "attribute"])
def test_extreme_data_and_budgets_never_fail_after_a_draw(name, epsilon):
    mechanism = chosen(POLICIES[name], epsilon=epsilon)
    nobody, one = np.zeros((5, 0), dtype=int), np.zeros((5, 1), dtype=int)
    for people in (nobody, np.zeros((5, 3000), dtype=int)):
        out = mechanism.release(counts_of(mechanism, people), rng=1)
        assert np.isfinite(out.answer(ASKED)).all()
    tiny = chosen(POLICIES[name], rho="1e-12")
    assert np.isfinite(tiny.release(counts_of(tiny, one), rng=1).answer(ASKED)).all()


def test_odd_surveys_are_released():
    for shape, ways in (((1, 1), 2), ((4,), 1), ((1, 5, 1), 3), ((3, 3, 3), 3)):
        domain = bf.Domain(shape)
        asked = Tables(domain, ways=ways)
        mechanism = bf.ChosenTables(
            P.AddRemove(domain), asked, choose="data", epsilon=1
        )
        data = bf.Histogram(domain, np.arange(domain.size).reshape(shape) * 9)
        out = mechanism.release(data, rng=1)
        assert out.fitted(*range(len(shape))).estimate.shape == shape
    some = Tables(SURVEY, ["age", ("sex", "region")], weights=[1, 4])
    mechanism = bf.ChosenTables(P.AddRemove(SURVEY), some, choose="data", epsilon=1)
    assert mechanism.measured_tables == ((1, 2), (0,))


def test_a_release_pays_from_a_ledger_in_either_currency(cells):
    policy = P.AddRemove(SURVEY)
    for terms in ({"epsilon": 1}, {"rho": "0.5"}):
        ledger = bf.Ledger(None, policy=policy, **terms)
        mechanism = chosen(policy)
        ledger.release(mechanism, counts_of(mechanism, cells), rng=1)
        assert ledger.spent > 0


def test_what_cannot_be_released_is_refused_before_anything_is_drawn():
    policy = P.AddRemove(SURVEY)
    with pytest.raises(WorkloadError, match="which tables"):
        bf.ChosenTables(policy, Identity(bf.Domain(3)), epsilon=1)
    with pytest.raises(InputError, match="choose must be"):
        bf.ChosenTables(policy, ASKED, choose="well", epsilon=1)
    with pytest.raises(InputError, match="records"):
        bf.ChosenTables(policy, ASKED, records=-1, epsilon=1)
    with pytest.raises(InputError, match="TableCounts"):
        chosen().release([1, 2, 3])
    huge = bf.WideDomain.product(*(bf.Domain(9000, names=[name]) for name in "abc"))
    asked = Tables(huge, ways=2)
    with pytest.raises(SizeError, match=r"2\^26"):
        bf.ChosenTables(P.AddRemove(huge), asked, choose="data", epsilon=1)
    once = P.AddRemove(SURVEY).per_person(2, count="persons")
    with pytest.raises(PolicyError, match="tables count records"):
        bf.ChosenTables(once, ASKED, epsilon=1)


OF_AGE_AND_JOB = np.minimum(np.arange(18) // 4, 3)[:, None] != np.arange(4)
"""Cells of age and job in which nobody of the fixture is."""


@pytest.mark.long
@pytest.mark.parametrize(
    "terms",
    [{"epsilon": 1}, {"rho": "0.01"}, {"epsilon": "0.05"}],
    ids=["epsilon", "rho", "few records"],
)
@pytest.mark.parametrize("policy", [P.AddRemove(SURVEY), P.TablePolicy(SURVEY, {})])
def test_nobody_is_where_nobody_can_be(cells, policy, terms):
    stated = {
        ("job", "age"): OF_AGE_AND_JOB.T,
        ("sex", "region"): np.zeros((2, 3), bool),
    }
    mechanism = chosen(policy, impossible=stated, **terms)
    out = mechanism.release(counts_of(mechanism, cells), rng=3)
    fitted = out.fitted("age", "job").estimate.reshape(18, 4)
    assert fitted[OF_AGE_AND_JOB].max() < 1e-9
    records = out._fitted.cells(5000, np.random.default_rng(1))
    assert not OF_AGE_AND_JOB[records[0], records[3]].any()
    plain = chosen(policy, **terms)
    other = plain.release(counts_of(plain, cells), rng=3)
    away = np.abs(fitted - truth(cells, (0, 3))).sum()
    assert (
        away
        < np.abs(
            other.fitted("age", "job").estimate.reshape(18, 4) - truth(cells, (0, 3))
        ).sum()
    )


def test_records_where_nobody_can_be_are_counted_and_not_refused(cells):
    strays = cells.copy()
    strays[3] = 0
    mechanism = chosen(impossible={(0, 3): OF_AGE_AND_JOB})
    out = mechanism.release(counts_of(mechanism, strays), rng=1)
    assert out.fitted("age", "job").estimate.reshape(18, 4)[OF_AGE_AND_JOB].max() < 1e-9
    singles = out.table("age").estimate
    assert np.abs(singles - truth(cells, (0,))).max() < 300


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ([OF_AGE_AND_JOB], "mapping from pairs"),
        ({("age", "job"): OF_AGE_AND_JOB.T}, "two attributes"),
        ({("age", "job"): OF_AGE_AND_JOB.astype(int)}, "array of bool"),
        ({"sex": np.array([True, False])}, "two attributes"),
        ({("sex", "region"): np.ones((2, 3), bool)}, "some cell of it is possible"),
        ({(0, 3): OF_AGE_AND_JOB, (3, 0): OF_AGE_AND_JOB.T}, "stated once"),
    ],
)
def test_impossible_cells_are_stated_for_pairs(stated, reason):
    with pytest.raises(InputError, match=reason):
        chosen(impossible=stated)


def test_impossible_cells_are_of_a_model_and_must_fit_into_it():
    with pytest.raises(InputError, match="model of tables that the data choose"):
        chosen(choose="plan", impossible={(0, 3): OF_AGE_AND_JOB})
    wide = bf.WideDomain.product(*(bf.Domain(600, names=[name]) for name in "ab"))
    diagonal = {("a", "b"): np.eye(600, dtype=bool)}
    with pytest.raises(SizeError, match="impossible cells included"):
        bf.ChosenTables(
            P.AddRemove(wide),
            Tables(wide, ways=2),
            choose="data",
            impossible=diagonal,
            epsilon=1,
        )


def counts_of_pairs(cells):
    return {axes: truth(cells, axes) for axes in combinations(range(5), 2)}


@pytest.mark.parametrize("name", ["add_remove", "attribute"])
def test_dependences_of_another_survey_help_where_the_budget_is_small(name, cells):
    # The other survey has other shares of ages and jobs, and the same dependences.
    older = cells[:, cells[0] >= 7]
    terms = {"epsilon": "0.05", "records": 6000}
    away = {}
    for prior in (None, counts_of_pairs(older)):
        mechanism = chosen(POLICIES[name], prior=prior, **terms)
        away[prior is None] = np.mean(
            [
                misplaced(
                    mechanism.release(counts_of(mechanism, cells), rng=seed), cells
                )
                for seed in range(3)
            ]
        )
    assert away[False] < 0.8 * away[True]


def test_a_prior_that_is_wrong_is_replaced_by_what_the_data_say(cells):
    # Ages run backwards there, so that everything that hangs on them does too.
    wrong = cells.copy()
    wrong[0] = 17 - wrong[0]
    away = {}
    for prior in (None, counts_of_pairs(wrong)):
        mechanism = chosen(prior=prior, epsilon=2)
        out = mechanism.release(counts_of(mechanism, cells), rng=2)
        away[prior is None] = misplaced(out, cells)
    assert away[False] < 1.5 * away[True]


def test_a_release_of_tables_serves_as_a_prior(cells):
    plan = bf.Contingency(
        P.AddRemove(SURVEY), Tables(SURVEY, [("age", "job")]), epsilon=4
    )
    last_year = plan.release(counts_of(plan, cells), rng=1)
    mechanism = chosen(prior=last_year, epsilon="0.05", records=6000)
    assert list(mechanism.prior.tables) == [(0, 3)]
    before = chosen(epsilon="0.05", records=6000)
    away = [
        np.abs(
            each.release(counts_of(each, cells), rng=1).fitted("age", "job").estimate
            - truth(cells, (0, 3))
        ).sum()
        for each in (mechanism, before)
    ]
    assert away[0] < 0.6 * away[1]


def test_a_prior_has_the_strongest_pairs_and_no_ring(cells):
    prior = PriorTables(SURVEY, [], counts_of_pairs(cells))
    single = [Grouping.single_cells(size) for size in SIZES]
    ratios = prior.log_ratios(single, 10_000)
    # Age, job and pay hang together, and two edges lead from each to each.
    assert len(ratios) == 2
    assert {axis for pair in ratios for axis in pair} == {0, 3, 4}
    # Cells that never meet there may meet here.
    assert all(np.isfinite(logs).all() for logs in ratios.values())
    small = prior.log_ratios(single, 80)
    assert list(small) == [(3, 4)]


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ([1, 2], "a release of tables, or a mapping"),
        ({("age", "job"): np.ones((4, 18))}, "with one axis for each"),
        ({("age", "job"): "many"}, "with one axis for each"),
        ({"age": np.ones(18)}, "counts of two attributes"),
        ({("age", "job"): np.zeros((18, 4))}, "some of them more"),
        ({("age", "job"): -np.ones((18, 4))}, "0 and more"),
        ({("age", "job"): np.full((18, 4), np.nan)}, "0 and more"),
        ({(0, 3): np.ones((18, 4)), (3, 0): np.ones((4, 18))}, "stated once"),
    ],
    ids=lambda value: value if isinstance(value, str) else "stated",
)
def test_a_prior_is_of_pairs_and_holds_counts(stated, reason):
    with pytest.raises(InputError, match=reason):
        chosen(prior=stated)


def test_a_prior_has_the_same_attributes_and_is_of_a_model(cells):
    other = bf.Domain((2, 2), names=["a", "b"])
    plan = bf.Contingency(P.AddRemove(other), Tables(other, ways=2), epsilon=1)
    release = plan.release(bf.Histogram(other, [[5, 1], [1, 5]]), rng=1)
    with pytest.raises(InputError, match="same attributes and cells"):
        chosen(prior=release)
    with pytest.raises(InputError, match="model of tables that the data choose begins"):
        chosen(choose="plan", prior=counts_of_pairs(cells))


def test_a_prior_of_nobody_says_nothing():
    plan = bf.Contingency(
        P.AddRemove(SURVEY), Tables(SURVEY, [("age", "job")]), epsilon=4
    )
    nobody = counts_of(plan, np.zeros((5, 0), dtype=int))
    release = plan.release(nobody, rng=7)
    mechanism = chosen(prior=release)
    fitted = release.fitted("age", "job").estimate.sum()
    assert bool(mechanism.prior.tables) == bool(fitted > 0)
