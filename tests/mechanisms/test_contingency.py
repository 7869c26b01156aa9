"""Tables of a survey, measured together."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, InputError, IntervalError, WorkloadError
from blowfish_fast.workloads import Identity, Ranges, Tables

SIZES = {"age": 12, "sex": 2, "region": 5, "job": 6, "size": 3}
SURVEY = bf.WideDomain.product(
    *(bf.Domain(size, names=[name]) for name, size in SIZES.items())
)
P = bf.policies


@pytest.fixture(name="people")
def some_people(generator):
    ages = generator.integers(0, 12, 4000)
    return {
        "age": ages,
        "sex": generator.integers(0, 2, 4000),
        "region": (ages + generator.integers(0, 2, 4000)) % 5,
        "job": generator.integers(0, 6, 4000),
        "size": np.minimum(ages // 4, 2),
    }


def truth(people, table):
    counts = np.zeros([SIZES[name] for name in table])
    np.add.at(counts, tuple(people[name] for name in table), 1)
    return counts


@pytest.mark.long
@pytest.mark.parametrize(
    "policy", [P.AddRemove(SURVEY), P.Full(SURVEY), P.TablePolicy(SURVEY, {})]
)
def test_measured_errors_are_those_predicted(policy, people):
    mechanism = bf.Contingency(policy, Tables(SURVEY, ways=2), epsilon=1)
    data = bf.TableCounts.from_records(mechanism, people)
    squares = []
    for seed in range(30):
        out = mechanism.release(data, rng=seed)
        squares.append(
            [
                np.mean((out.table(*one).estimate - truth(people, one)) ** 2)
                for one in out.asked
            ]
        )
    measured = np.sqrt(np.mean(squares))
    assert measured == pytest.approx(mechanism.plan().rms, rel=0.05)


def test_tables_agree_with_each_other(people):
    mechanism = bf.Contingency(P.AddRemove(SURVEY), Tables(SURVEY, ways=3), epsilon=1)
    out = mechanism.release(bf.TableCounts.from_records(mechanism, people), rng=1)
    three = out.table("age", "sex", "job").estimate
    assert np.allclose(three.sum(axis=1), out.table("age", "job").estimate)
    assert np.allclose(three.sum(axis=(0, 2)), out.table("sex").estimate)


def test_the_number_of_records_is_exact_where_it_is_public(people):
    mechanism = bf.Contingency(P.Full(SURVEY), Tables(SURVEY, ways=1), epsilon=0.1)
    out = mechanism.release(bf.TableCounts.from_records(mechanism, people), rng=1)
    assert out.table("age").estimate.sum() == pytest.approx(4000)


def test_public_attributes_are_exact_and_named_in_the_guarantee(people):
    still = P.Graph(bf.Domain(5, names=["region"]), np.zeros((0, 2), dtype=int))
    policy = P.TablePolicy(SURVEY, {"region": still})
    mechanism = bf.Contingency(policy, Tables(SURVEY, ways=2), epsilon=1)
    out = mechanism.release(bf.TableCounts.from_records(mechanism, people), rng=1)
    region = out.table("region")
    assert (region.estimate == truth(people, ["region"])).all()
    cells = Identity(region.domain)
    assert (np.ptp(region.intervals(cells), axis=1) == 0).all()
    assert "public, and tables of them alone exact: region" in str(out.guarantee)
    assert (mechanism.expected_error("region") == 0).all()


def test_intervals_cover_at_least_what_they_promise(people):
    policy = P.TablePolicy(SURVEY, {})
    mechanism = bf.Contingency(policy, Tables(SURVEY, ways=2), epsilon=1)
    data = bf.TableCounts.from_records(mechanism, people)
    inside = []
    for seed in range(40):
        table = mechanism.release(data, rng=seed).table("age", "region")
        bounds = table.intervals(Identity(table.domain), 0.9)
        true = truth(people, ["age", "region"]).reshape(-1)
        inside.append(((bounds[:, 0] <= true) & (true <= bounds[:, 1])).mean())
    assert 0.9 <= np.mean(inside) <= 0.995
    assert table.holds_truth(Identity(table.domain)).all()


def test_expected_errors_are_variances_by_name_by_workload_or_for_all():
    mechanism = bf.Contingency(P.AddRemove(SURVEY), Tables(SURVEY, ways=2), epsilon=1)
    pair = mechanism.expected_error("age", "sex")
    assert pair.shape == (24,)
    assert (mechanism.expected_error(["sex", "age"]) == pair).all()
    asked = Tables(SURVEY, [("age", "sex")])
    assert (mechanism.expected_error(asked) == pair).all()
    marginal = SURVEY.marginal(["age", "sex"])
    assert np.allclose(mechanism.expected_error(Identity(marginal)), pair)
    assert mechanism.expected_error().shape == (mechanism.workload.queries,)
    total = mechanism.expected_total_error(asked)
    assert total == pytest.approx(pair.sum())
    ages = SURVEY.marginal(["age"])
    half = mechanism.expected_error(Ranges(ages, [0], [6]))
    assert half[0] < 6 * mechanism.expected_error("age")[0]
    apart = Tables(SURVEY, ways=1)
    alone = bf.Contingency(P.AddRemove(SURVEY), apart, epsilon=1, plan="maximal")
    with pytest.raises(IntervalError, match="measured apart"):
        alone.expected_error("age", "sex")


def test_errors_of_what_is_no_table_are_refused_and_others_found_by_name():
    mechanism = bf.Contingency(P.AddRemove(SURVEY), Tables(SURVEY, ways=2), epsilon=1)
    for ask in (mechanism.expected_error, mechanism.expected_total_error):
        with pytest.raises(InputError, match=r"those of a table.*received 42"):
            ask(42)
    some = Tables(SURVEY.marginal(["region", "size"]), ways=1)
    expected = [mechanism.expected_error(one) for one in ("region", "size")]
    assert (mechanism.expected_error(some) == np.concatenate(expected)).all()
    other = Tables(bf.WideDomain.product(SURVEY, bf.Domain(2, names=["more"])), ways=1)
    with pytest.raises(DomainError, match="attributes of one table"):
        mechanism.expected_error(other)


def test_presence_some_steps_away_costs_a_census_next_to_nothing():
    sizes = (74, 9, 16, 16, 7, 15, 6, 5, 2, 16, 16, 20, 42, 2)
    survey = bf.WideDomain.product(
        *(bf.Domain(size, names=[f"a{at}"]) for at, size in enumerate(sizes))
    )
    asked = Tables(survey, ways=2)

    def error(policy):
        return bf.Contingency(policy, asked, epsilon=1).plan().rms

    apart = error(P.TablePolicy(survey, {}, presence=4))
    assert apart == error(P.WithAbsent(P.TablePolicy(survey, {}), 4))
    assert apart == pytest.approx(31.4, abs=0.1)
    near = error(P.TablePolicy(survey, {}, presence=True))
    assert near == pytest.approx(109.8, abs=0.1)


def test_a_plan_says_errors_beside_mean_counts():
    mechanism = bf.Contingency(P.AddRemove(SURVEY), Tables(SURVEY, ways=2), epsilon=1)
    text = str(mechanism.plan(records=4000))
    assert "15 tables asked" in text
    assert "mean count by table" in text
    rows = mechanism.plan(records=4000).by_ways()
    assert rows["mean_count_by_cell"][0] == pytest.approx(4000 * 5 / 28)
    assert len(mechanism.plan().to_table()) == 15


def test_a_ledger_charges_keeps_and_replays_the_tables(people, tmp_path):
    policy = P.TablePolicy(SURVEY, {})
    mechanism = bf.Contingency(policy, Tables(SURVEY, ways=2), epsilon="0.4")
    data = bf.TableCounts.from_records(mechanism, people)
    with bf.Ledger(tmp_path / "survey", epsilon=1, policy=policy) as ledger:
        out = ledger.release(mechanism, data, request="tables")
        assert float(ledger.spent) == 0.4
        again = ledger.release(mechanism, data, request="tables")
        assert float(ledger.spent) == 0.4
    pair = ("age", "job")
    assert (out.table(*pair).estimate == again.table(*pair).estimate).all()
    assert isinstance(again, bf.TablesRelease)


def test_a_ledger_of_whole_records_takes_tables_over_the_same_attributes(people):
    mechanism = bf.Contingency(P.Full(SURVEY), Tables(SURVEY, ways=1), epsilon=1)
    ledger = bf.Ledger(None, epsilon=1, policy=P.TablePolicy(SURVEY, {}))
    data = bf.TableCounts.from_records(mechanism, people)
    assert ledger.release(mechanism, data, rng=1).private is False


def test_a_seed_repeats_the_release_and_secure_noise_is_the_default(people):
    mechanism = bf.Contingency(P.AddRemove(SURVEY), Tables(SURVEY, ways=1), epsilon=1)
    data = bf.TableCounts.from_records(mechanism, people)
    first, second = (mechanism.release(data, rng=7) for _ in range(2))
    assert (first.table("job").estimate == second.table("job").estimate).all()
    assert mechanism.release(data).private


def test_large_epsilon_returns_the_counts(people):
    mechanism = bf.Contingency(P.Full(SURVEY), Tables(SURVEY, ways=2), epsilon=10**6)
    out = mechanism.release(bf.TableCounts.from_records(mechanism, people), rng=1)
    for one in out.asked:
        assert np.allclose(out.table(*one).estimate, truth(people, one), atol=1e-6)


def test_gaussian_noise_is_paid_in_rho(people):
    asked = Tables(SURVEY, ways=2)
    mechanism = bf.Contingency(P.AddRemove(SURVEY), asked, rho=0.1)
    data = bf.TableCounts.from_records(mechanism, people)
    out = mechanism.release(data, rng=1)
    assert out.guarantee.rho == mechanism.budget.amount
    errors = [
        np.mean((out.table(*one).estimate - truth(people, one)) ** 2)
        for one in out.asked
    ]
    assert np.sqrt(np.mean(errors)) == pytest.approx(mechanism.plan().rms, rel=0.3)
    table = out.table("age")
    assert (np.ptp(table.intervals(Identity(table.domain)), axis=1) > 0).all()


def test_wide_domains_are_taken_by_the_policies_of_whole_records():
    for policy in (P.AddRemove(SURVEY), P.Full(SURVEY), P.TablePolicy(SURVEY)):
        assert P.from_dict(policy.to_dict()) == policy
    assert P.Full(SURVEY).implies(P.TablePolicy(SURVEY, {}))
    assert not P.AddRemove(SURVEY).implies(P.Full(SURVEY))
    with pytest.raises(bf.BlowfishError, match="stated in cells of one attribute"):
        P.Line(SURVEY)
    with pytest.raises(bf.BlowfishError, match="stated over a Domain"):
        P.Attribute(SURVEY)


def test_what_is_no_question_about_tables_is_refused():
    with pytest.raises(WorkloadError, match="which tables are asked"):
        bf.Contingency(P.AddRemove(SURVEY), "all", epsilon=1)
    other = bf.WideDomain.product(SURVEY, bf.Domain(2, names=["more"]))
    with pytest.raises(DomainError, match="share one domain"):
        bf.Contingency(P.AddRemove(other), Tables(SURVEY, ways=1), epsilon=1)
    with pytest.raises(bf.BlowfishError, match="plan"):
        bf.Contingency(P.AddRemove(SURVEY), Tables(SURVEY, ways=1), epsilon=1, plan="x")


def test_the_example_runs_under_every_family():
    domain = bf.Domain((4, 3), names=["x", "y"])
    for policy in (P.Full(domain), P.Threshold(domain, theta=2), P.AddRemove(domain)):
        mechanism, data = bf.Contingency.example(domain, policy, 1)
        out = mechanism.release(data, rng=1)
        assert out.table("x", "y").estimate.shape == (4, 3)


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "0.1"}])
@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_an_attribute_of_one_cell_is_in_some_measured_table(policy, budget):
    sides = [bf.Domain(3, names=["a"]), bf.Domain(1, names=["b"])]
    survey = bf.WideDomain.product(*sides, bf.Domain(4, names=["c"]))
    mechanism = bf.Contingency(
        policy(survey), bf.workloads.Tables(survey, ways=2), **budget
    )
    people = {"a": np.arange(60) % 3, "b": np.zeros(60, dtype=int)}
    people["c"] = np.arange(60) % 4
    # No residual is about it, so that no measured table held it, and asking failed.
    assert mechanism.plan().variances.size == 6
    out = mechanism.release(bf.TableCounts.from_records(mechanism, people), rng=1)
    assert out.table("a", "b").estimate.shape == (3, 1)
    alike = [out.table(*names).estimate.sum() for names in (("b",), ("b", "c"))]
    assert alike[0] == pytest.approx(alike[1])
