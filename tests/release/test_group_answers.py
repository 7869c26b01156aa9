"""Answers that carry their intervals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.errors import InputError, IntervalError, NoiseOnlyWarning
from blowfish_fast.release.group_answers import (
    Claim,
    Estimate,
    GroupedAnswers,
    Quotient,
)
from tests.generated import example_count


def claim(bounds, kind="truth"):
    return Claim(bounds, lambda: kind, lambda found: f"They hold the {found}.")


def grouped(asked, kind="truth"):
    def bounds(confidence, of):
        asked.append(confidence)
        return np.array([[0.0, 2.0], [3.0, 9.0]])

    return GroupedAnswers(
        ["town"], [["Bern", "Chur"]], "count", np.array([1.0, 6.0]), claim(bounds, kind)
    )


def test_an_answer_is_a_number():
    held = claim(lambda confidence, of: np.array([[confidence, 9.0]]))
    answer = GroupedAnswers([], [], "count", np.array([2.5]), held)[()]
    assert isinstance(answer, Estimate)
    assert answer.holds_truth
    assert answer + 1 == 3.5
    assert f"{answer:.1f}" == str(answer) == "2.5"
    assert answer.interval(0.5) == (0.5, 9.0)
    assert repr(answer) == "Estimate(2.5)"
    assert type(pickle.loads(pickle.dumps(answer))) is float


def test_groups_share_one_computation_of_intervals():
    asked = []
    answers = grouped(asked)
    assert dict(answers) == {"Bern": 1.0, "Chur": 6.0}
    assert answers["Chur"].interval() == (3.0, 9.0)
    assert answers["Bern"].interval() == (0.0, 2.0)
    assert asked == [0.95]
    answers.intervals(0.9, together=True)
    np.testing.assert_allclose(asked[-1], 0.95)
    assert "Genf" not in answers
    with pytest.raises(InputError, match="no group 'Genf'"):
        answers["Genf"]
    assert repr(answers) == "GroupedAnswers(count by town: 2 groups)"


def test_printing_shows_the_answers_with_their_intervals(monkeypatch):
    assert str(grouped([])).splitlines() == [
        "town  count  low  high",
        "Bern      1    0     2",
        "Chur      6    3     9",
    ]
    assert "<td" in grouped([])._repr_html_()

    def unknown(confidence, of):
        raise IntervalError("not linear")

    bare = GroupedAnswers(
        ["a"], [["<b>"]], "mean", np.array([0.5]), claim(unknown), of="pay"
    )
    assert str(bare) == "a    mean\n<b>   0.5"
    assert repr(bare) == "GroupedAnswers(mean of pay by a: 1 groups)"
    assert "&lt;b&gt;" in bare._repr_html_()
    monkeypatch.setattr("blowfish_fast.release.group_answers.MOST_PRINTED", 1)
    asked = []
    assert "low" not in str(grouped(asked))
    assert asked == []


def test_groups_whose_intervals_hold_the_noise_say_so():
    answers = grouped([], "noise")
    assert answers.interval_kind() == "noise"
    assert list(answers.to_table().columns)[2:] == ["noise_low", "noise_high"]
    with pytest.warns(NoiseOnlyWarning, match="They hold the noise"):
        assert answers["Chur"].interval() == (3.0, 9.0)
    assert answers["Chur"].interval(of="noise") == (3.0, 9.0)
    assert not answers["Chur"].holds_truth
    with pytest.raises(IntervalError, match="They hold the noise"):
        answers.intervals(of="truth")
    with pytest.raises(InputError, match='of must be "truth", "noise"'):
        answers.intervals(of="both")


def test_groups_become_a_table():
    table = grouped([]).to_table()
    assert list(table.columns) == ["town", "count", "low", "high"]
    assert list(grouped([]).to_table(confidence=None).columns) == ["town", "count"]
    pytest.importorskip("pandas")
    assert grouped([]).to_pandas().shape == (2, 4)
    pytest.importorskip("pyarrow")
    assert grouped([]).to_arrow().num_rows == 2
    pytest.importorskip("polars")
    assert grouped([]).to_polars(None).columns == ["town", "count"]


NUMBERS = st.floats(-50, 50)


@settings(deadline=None, max_examples=example_count(100))
@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.floats(0, 1), st.floats(0, 1))
def test_every_quotient_of_two_covered_numbers_is_covered(a, b, c, d, over, under):
    low, high = min(a, b), max(a, b)
    least, most = min(c, d), max(c, d)
    quotient = Quotient(
        lambda confidence, of: np.array([[low, high]]),
        lambda confidence, of: np.array([[least, most]]),
        (-1000.0, 1000.0),
        centre=2.0,
    )
    start, end = quotient.bounds(0.9, "noise")[0]
    first = low + over * (high - low)
    second = least + under * (most - least)
    if second > 1e-3:
        value = min(max(2.0 + first / second, -1000.0), 1000.0)
        assert start - 1e-6 * (1 + abs(value)) <= value
        assert value <= end + 1e-6 * (1 + abs(value))
    assert -1000.0 <= start <= end <= 1000.0


def test_an_exact_count_leaves_all_the_doubt_to_the_sum():
    asked = []

    def dividend(confidence, of):
        asked.append(confidence)
        return np.array([[1.0, 3.0]])

    exact = Quotient(
        dividend,
        lambda confidence, of: np.array([[2.0, 2.0]]),
        (0.0, 9.0),
    )
    assert exact.bounds(0.9, "noise").tolist() == [[0.5, 1.5]]
    assert asked == [0.9]


def test_what_clamped_values_count_as_is_said_with_every_interval_of_them():
    """The mean of the clamped table is held, and that of the file need not be."""
    pay = bf.Domain.from_edges(range(0, 1001, 10), name="pay")
    day = bf.Domain.from_dates(["2024-01-01", "2024-02-01", "2024-03-01"], name="day")
    sex = bf.Domain.from_levels(["F", "M"], name="sex")
    table = bf.Domain.product(pay, day, sex)
    records = {
        "pay": [-50.0, 500.0, 4000.0] * 200,
        "day": ["2023-01-01", "2024-01-05", "2024-02-05"] * 200,
        "sex": ["F", "M", "M"] * 200,
    }

    def released(data):
        policy = bf.policies.AddRemove(data.domain)
        cells = bf.workloads.Identity(data.domain)
        return bf.Laplace(policy, cells, epsilon=1000).release(data, rng=1)

    clamp = {"pay": "clamp", "day": "clamp", "sex": "refuse"}
    release = released(bf.Histogram.from_records(table, records, outside=clamp))
    said = "outside 0 to 1,000, where they were clamped, count as lying in the cell"
    groups, everybody = release.group_by("sex"), release.where()
    for measure in ("sum", "mean", "variance", "std", "quantile"):
        answers = getattr(groups, measure)("pay")
        assert said in answers.interval_sentence("truth")
        assert said in getattr(everybody, measure)("pay").explain()
        assert said not in answers.interval_sentence("noise")
    low, high = everybody.mean("pay").interval()
    assert high < np.mean(records["pay"])
    assert low <= np.clip(records["pay"], 0, 1000).mean() <= high
    dates = groups.quantile("day").interval_sentence("truth")
    assert "outside 2024-01-01 to 2024-03-01, where" in dates
    assert "clamped" not in groups.count().interval_sentence("truth")
    apart = released(bf.Histogram.from_records(table, records, outside="cell"))
    assert "clamped" not in apart.group_by("sex").mean("pay").interval_sentence("truth")
