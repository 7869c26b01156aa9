"""A first look: what it finds in columns of which nothing was stated, and its price."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.tables.answers import (
    ColumnAnswers,
    SurveyAnswers,
    as_number,
    as_text,
    plain_word,
)
from blowfish_fast.errors import (
    DataDependentError,
    DomainError,
    InputError,
    PolicyError,
    PrivacyError,
)
from blowfish_fast.mechanisms.around_releases import first_look
from blowfish_fast.mechanisms.around_releases.first_look import (
    FirstLook,
    even_steps,
    magnitude_edges,
    what_to_ask,
)
from blowfish_fast.release.file import Release
from blowfish_fast.release.wide.look_release import ColumnLook

ROWS = 2000
COLUMNS = {
    "trust": ["Yes", "No", "", "No"] * 500,
    "rating": [1, 2, 3, 4, 5] * 400,
    "born": list(range(1930, 2010)) * 25,
    "name": [f"person {at}" for at in range(ROWS)],
    "height": [f"{1.5 + at % 40 / 100:.2f}" for at in range(ROWS)],
    "grade": ["low", "mid", "mid", "top"] * 500,
}
STATED = {"grade": bf.Domain.from_levels(["low", "mid", "top"], name="grade")}


@pytest.fixture(scope="module")
def look():
    mechanism = FirstLook(list(COLUMNS), stated=STATED, ordered=["grade"], epsilon=2)
    return mechanism.release(SurveyAnswers(COLUMNS), rng=7)


def test_columns_are_told_apart_by_their_noisy_counts(look):
    kinds = [column.kind for column in look.columns]
    assert kinds == ["words", "numbers", "numbers", "words", "numbers", "categories"]


def test_counts_lie_near_the_truth_and_inside_their_intervals(look):
    true = {"no": 1000, "yes": 500}
    assert {bar.label for bar in look["trust"].bars(0.999999)} == {*true}
    for bar in look["trust"].bars(0.999999):
        assert bar.low <= true[bar.label] <= bar.high
        assert bar.low <= bar.noisy <= bar.high
    missing = look["trust"].missing(0.999999)
    assert missing.low <= 500 <= missing.high
    assert look["trust"].stray().label == "texts in all"
    for bar in look["rating"].bars(0.999999):
        assert bar.low <= 400 <= bar.high
    assert [bar.label for bar in look["rating"].bars()] == ["1", "2", "3", "4", "5"]
    assert [bar.label for bar in look["grade"].bars()] == ["low", "mid", "top"]


def test_quantiles_of_numbers_lie_in_their_intervals(look):
    for name in ("rating", "born", "height"):
        values = np.array(COLUMNS[name], dtype=float)
        for part, (place, low, high) in look[name].quantiles(0.999999).items():
            assert low <= np.quantile(values, part, method="inverted_cdf") <= high
            assert low <= place <= high
    assert look["rating"].quantiles()[0.5][0] == 3
    assert look["trust"].quantiles() == {}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_numbers_beyond_the_bars_count_in_quantiles(seed):
    rng = np.random.default_rng(seed)
    pay = np.round(rng.lognormal(8, 1, 3000), 2)
    answers = SurveyAnswers({"pay": [*pay.tolist(), *["none of your business"] * 50]})
    column = FirstLook(["pay"], epsilon=1).release(answers, rng=seed)["pay"]
    stray = column.stray()
    assert stray.label == "beyond the bars, or no number"
    assert stray.low > 100
    for part, (place, low, high) in column.quantiles(0.999).items():
        assert low <= np.quantile(pay, part, method="inverted_cdf") <= high
        assert low <= place <= high
    # Of the numbers within the bars the upper quartile is lower.
    assert column.quantiles()[0.75][0] > np.quantile(pay[pay < 10000], 0.75)


@pytest.mark.parametrize(
    ("part", "signs"), [(0.75, "upper"), (0.25, "lower")], ids=["above", "below"]
)
def test_a_quantile_that_may_lie_beyond_the_bars_has_no_end_there(part, signs):
    side = 1 if signs == "upper" else -1
    # A third of the numbers spreads so thinly that no magnitude of it stands out.
    thin = side * np.geomspace(1e4, 9e11, 1500)
    answers = SurveyAnswers({"x": [*(side * (np.arange(3000) % 9)), *thin]})
    column = FirstLook(["x"], epsilon=0.5).release(answers, rng=3)["x"]
    place, low, high = column.quantiles()[part]
    end, other = (high, low) if side == 1 else (low, high)
    assert end == side * np.inf
    assert np.isfinite(other)
    assert low <= place <= high


def test_the_median_of_ordered_categories_is_a_category(look):
    assert look["grade"].middle() == "mid"
    assert look["rating"].middle() is None


def test_names_that_nobody_shares_are_not_listed_and_grey(look):
    assert look["name"].bars() == []
    assert look["name"].too_noisy()
    assert not look["rating"].too_noisy()


def test_a_look_is_kept_in_a_file(look):
    again = Release.from_bytes(look.to_bytes())
    assert again.to_bytes() == look.to_bytes()
    assert repr(again) == "LookRelease(6 columns, eps = 2)"
    with pytest.raises(DomainError, match="there is no attribute 'age'"):
        look["age"]


def test_one_answer_costs_the_budget_of_its_column(look):
    for column in look.columns:
        spent = sum(part.guarantee.budget.amount for part in column.parts)
        assert spent == 2
    assert look.guarantee.budget.amount == 2


def test_persons_share_the_budget_among_the_columns():
    mechanism = FirstLook(["a", "b", "c"], persons=True, epsilon=3)
    data = SurveyAnswers({"a": [1] * 900, "b": ["x"] * 900, "c": [None] * 900})
    look = mechanism.release(data, rng=1)
    spent = [
        sum(part.guarantee.budget.amount for part in column.parts)
        for column in look.columns
    ]
    assert spent[:2] == [1, 1]
    assert spent[2] < 1
    assert look["c"].kind == "unclear"
    assert look["c"].bars() == []
    # Less was drawn of the third; what is promised holds for every draw.
    assert look.guarantee.budget.amount == 3
    assert "one person, with all her answers" in str(look.guarantee)


@pytest.mark.parametrize("persons", [False, True])
def test_a_look_that_would_cost_more_is_dropped(persons, monkeypatch):
    mechanism = FirstLook(["a", "b"], persons=persons, epsilon=2)
    if persons:
        whole = property(lambda self: self.budget)
        monkeypatch.setattr(FirstLook, "column_budget", whole)
    else:
        # The second step forgets what the first has cost.
        monkeypatch.setattr(
            FirstLook,
            "_steps",
            lambda self, name, edges: bf.Laplace(
                bf.policies.Full(
                    bf.Domain.from_edges(edges, name=name).with_extra_cells(
                        outside=True, missing=True
                    )
                ),
                epsilon=self.column_budget,
            ),
        )
    with pytest.raises(PrivacyError, match="it was dropped"):
        mechanism.release(SurveyAnswers({"a": [1] * 900, "b": [2] * 900}), rng=1)


def test_a_ledger_charges_a_look_once_and_replays_it(tmp_path):
    mechanism = FirstLook(["a"], epsilon=1)
    data = SurveyAnswers({"a": [1, 2] * 50})
    policy = mechanism.policy
    with bf.Ledger(tmp_path / "looks.ledger", epsilon=3, policy=policy) as ledger:
        first = ledger.release(mechanism, data, "look")
        again = ledger.release(mechanism, data, "look")
        assert first.to_bytes() == again.to_bytes()
        assert ledger.spent == 1
        persons = FirstLook(["a"], persons=True, epsilon=1)
        ledger.release(persons, data, "persons")
        assert ledger.spent == 2
    with bf.Ledger(rho=3, policy=policy) as ledger:
        ledger.release(mechanism, data)
        assert float(ledger.spent) == pytest.approx(0.5)
    with (
        bf.Ledger(epsilon=3, policy=FirstLook(["b"], epsilon=1).policy) as ledger,
        pytest.raises(PolicyError, match="Nothing was charged"),
    ):
        ledger.release(mechanism, data)


def test_what_a_look_costs_is_known_and_what_it_asks_is_not():
    mechanism = FirstLook(["a"], epsilon=1)
    with pytest.raises(DataDependentError, match="drew first"):
        mechanism.expected_error()
    assert mechanism.memory_needed() > 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"columns": []}, "at least one column"),
        ({"stated": {"b": STATED["grade"]}}, "no column 'b'"),
        ({"ordered": ["a"]}, "order is that of stated categories"),
        ({"stated": {"a": STATED["grade"]}}, "those of one column"),
    ],
)
def test_what_is_stated_must_fit(options, reason):
    with pytest.raises(InputError, match=reason):
        FirstLook(**{"columns": ["a"], "epsilon": 1, **options})


def test_other_data_is_refused():
    mechanism = FirstLook(["a"], epsilon=1)
    with pytest.raises(InputError, match="takes a table of answers"):
        mechanism.release({"a": [1]}, rng=1)
    with pytest.raises(InputError, match="columns that were stated"):
        mechanism.release(SurveyAnswers({"b": [1]}), rng=1)
    with pytest.raises(InputError, match="all of one length"):
        SurveyAnswers({"a": [1], "b": [1, 2]})


def test_stated_numbers_and_cells_are_counted_as_stated():
    stated = {
        "age": bf.Domain.from_edges([0, 50, 100], name="age"),
        "floor": bf.Domain(3, names="floor"),
    }
    mechanism = FirstLook(["age", "floor"], stated=stated, epsilon=50)
    data = SurveyAnswers({"age": [20, 30, 70, 400], "floor": [0, 1, 2, 2]})
    look = mechanism.release(data, rng=1)
    assert [round(bar.noisy) for bar in look["age"].bars()] == [2, 1]
    assert round(look["age"].stray().noisy) == 1
    assert [bar.label for bar in look["floor"].bars()] == ["0", "1", "2"]
    assert [round(bar.noisy) for bar in look["floor"].bars()] == [1, 1, 2]


def test_stated_categories_are_counted_whatever_they_read():
    values = ["nan", "None", "NA", " g", "g", "1,0", "two\nlines", "0x10", "\u0663"]
    column = [value for times, value in enumerate(values, 1) for _ in range(times)]
    column += ["NULL", "", None, float("nan"), "other"]
    stated = bf.Domain.from_levels(values, name="a")
    mechanism = FirstLook(["a"], stated={"a": stated}, epsilon=500)
    found = mechanism.release(SurveyAnswers({"a": column}, ","), rng=1).columns[0]
    noisy = {bar.label: round(bar.noisy) for bar in found.bars(0.95)}
    assert noisy == {value: times for times, value in enumerate(values, 1)}
    assert round(found.missing(0.95).noisy) == 4
    assert round(found.stray(0.95).noisy) == 1


def test_stated_codes_are_numbers_with_the_decimal_mark():
    column = ["1,0", "1.0", "1", "2,50", "1.000", 1, 2.5, "NA"]
    stated = bf.Domain.from_levels([1, 2.5, 1000], name="a")
    mechanism = FirstLook(["a"], stated={"a": stated}, epsilon=500)
    found = mechanism.release(SurveyAnswers({"a": column}, ","), rng=1).columns[0]
    assert [round(bar.noisy) for bar in found.bars(0.95)] == [4, 2, 1]
    assert round(found.missing(0.95).noisy) == 1


def test_texts_are_read_by_public_rules():
    assert as_text(" NA ") is None
    assert as_text(float("nan")) is None
    assert as_text(3) == "3"
    assert as_number("1_000") == as_number("inf") == np.inf
    assert as_number("-.5e1") == -5
    assert as_number("1e999") == np.inf
    assert as_number("1.234.567,5", ",") == as_number("1,234,567.5", ".") == 1234567.5
    assert (
        as_number("1.5", ",") == as_number("12.34,5", ",") == as_number("1,5") == np.inf
    )
    assert (
        plain_word("  Zürich   West ", "abcdefghijklmnopqrstuvwxyz ?") == "zurich west"
    )
    assert plain_word("ñandú", "añndu?") == "ñandu"
    assert plain_word("x" * 50, "x?") == "x" * 24
    numbers = ColumnAnswers(["2.500,5", 2.5, "x", None], decimal=",")._numbers
    np.testing.assert_array_equal(numbers, [2500.5, 2.5, np.inf, np.nan])
    answers = ColumnAnswers(["1,5", "x"], decimal=",")
    assert len(answers) == 2
    assert "hidden" in repr(answers)
    assert "hidden" in repr(SurveyAnswers({"a": [1]}))


def test_letters_of_other_scripts_are_stated():
    data = SurveyAnswers({"town": ["Łódź"] * 900})
    plain = FirstLook(["town"], epsilon=2).release(data, rng=1)
    stated = FirstLook(["town"], letters="łóźä-ö", epsilon=2).release(data, rng=1)
    assert [bar.label for bar in plain["town"].bars()] == ["?odz"]
    assert [bar.label for bar in stated["town"].bars()] == ["łódź"]


def test_even_steps_cover_every_pair_of_magnitudes():
    edges = np.array(magnitude_edges())
    assert (np.diff(edges) > 0).all()
    rng = np.random.default_rng(1)
    for _ in range(300):
        heavy = np.sort(rng.choice(edges.size - 1, 2))
        steps = np.array(even_steps(heavy))
        assert 2 <= steps.size <= first_look.MOST_STEPS + 1
        assert (np.diff(steps) > 0).all()
        low, high = edges[heavy[0]], edges[heavy[1] + 1]
        assert steps[0] <= low
        assert steps[-1] >= high


def test_a_column_whose_counts_drown_is_unclear():
    noisy = np.zeros(len(magnitude_edges()) + 1)
    assert what_to_ask(noisy, 1.0) == ("unclear", [])
    noisy[-2] = 10.0
    assert what_to_ask(noisy, 1.0) == ("unclear", [])


def test_a_file_of_a_look_holds_what_a_look_holds(look):
    column = look.columns[0]
    odd = [column._replace(name="other"), *look.columns[1:]]
    parts = {name: getattr(look, name) for name in ("domain", "rows", "mechanism")}
    parts |= {"guarantee": look.guarantee, "details": {}, "version": look.version}
    renamed = type(look)(columns=odd, **parts)
    with pytest.raises(bf.errors.ReleaseFileError, match="those of its domain"):
        Release.from_bytes(renamed.to_bytes())
    strange = ColumnLook("trust", "poems", column.first, None)
    unknown = type(look)(columns=[strange, *look.columns[1:]], **parts)
    with pytest.raises(bf.errors.ReleaseFileError, match="one or two releases"):
        Release.from_bytes(unknown.to_bytes())
