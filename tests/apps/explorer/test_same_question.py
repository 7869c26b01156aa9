"""The same question in other words is the same question: one name, one answer."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.explorer import exploration
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.apps.explorer.same_question import canonical, request_name
from blowfish_fast.errors import CatalogError, LedgerError, QuestionError

from .test_past_answers import (
    LINE,
    SEX,
    TABLE,
    asked,
    database,  # noqa: F401  a fixture
    exploring,
    levels,
    line_question,
    stretch,
)


@pytest.fixture
def explorer(database):  # noqa: F811
    return exploring(database)


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "others"),
    [
        (asked(), asked("marginal", attributes=["age"])),
        (asked(), asked("marginal", attributes=["age"], granularity=[1])),
        (
            asked("marginal", attributes=["age", "ward"]),
            asked("histogram2d", attributes=["ward", "age"], granularity=[1, 1]),
        ),
        (
            asked("marginal", attributes=["age", "ward"], granularity=[2, 1]),
            asked("marginal", attributes=["ward", "age"], granularity=[1, 2]),
        ),
        (
            asked(attribute="sex", filters=[stretch(20, 60), levels("ward", "a", "b")]),
            asked(
                attribute="sex",
                filters=[
                    levels("ward", "b", "a", "b"),
                    {"attribute": "age", "low": "20"},
                ],
            ),
        ),
    ],
)
def test_other_words_for_a_question_have_its_name_and_its_answer(
    explorer, words, others
):
    forms = [canonical(TABLE, read_question(each)) for each in (words, others)]
    assert request_name(forms[0]) == request_name(forms[1])
    first, second = explorer.ask(words), explorer.ask(others)
    assert second.replayed
    assert explorer.ledger.spent == first.budget.amount
    assert second.question == read_question(others).model_dump(mode="json")
    names = [axis["attribute"] for axis in second.axes]
    assert names == read_question(others).axes
    turned = second.values if len(names) == 1 or names[0] == "age" else second.values.T
    assert (turned == first.values).all()
    told = explorer.explain(others)
    assert [axis["attribute"] for axis in told["axes"]] == names
    assert told["how"] == "stored"


def test_a_filter_that_lets_everything_pass_is_none():
    table = as_table(LINE)
    everything = {"attribute": "day", "low": 0}
    form = canonical(table, line_question("histogram", filters=[everything]))
    assert form == line_question("histogram")
    levels_too = {**LINE, "attributes": [*LINE["attributes"], SEX], "policies": {}}
    some = line_question("histogram", filters=[levels("sex", "m", "f")])
    # Those of neither level fail it.
    assert canonical(as_table(levels_too), some).filters[0].values == ["f", "m"]


def test_a_turned_table_is_returned_with_its_intervals_turned(explorer):
    first = explorer.ask(asked("marginal", attributes=["age", "ward"]))
    second = explorer.ask(asked("marginal", attributes=["ward", "age"]))
    assert (second.intervals == first.intervals.transpose(1, 0, 2)).all()


def test_filters_that_do_not_fit_are_refused_as_they_were_stated(explorer):
    for wrong, reason in (
        (levels("ward", "z"), "none of its levels"),
        (levels("age", "a"), "filter it by low and high"),
        ({"attribute": "ward", "low": "a"}, "filter it by values"),
        (stretch(40, 20), "must end after it begins"),
        (stretch(3, 20), "edges of its cells"),
    ):
        with pytest.raises(QuestionError, match=reason):
            explorer.ask(asked(attribute="sex", filters=[wrong]))
    with pytest.raises(CatalogError, match="has no attribute 'height'"):
        explorer.ask(asked(attribute="height"))


def test_an_answer_stored_under_its_own_words_is_still_found(explorer, monkeypatch):
    words = asked("histogram2d", attributes=["ward", "age"])
    with monkeypatch.context() as before:
        # As ledgers were written when each wording had a name of its own.
        before.setattr(exploration, "canonical", lambda _table, question: question)
        first = explorer.ask(words)
    assert first.request != request_name(canonical(TABLE, read_question(words)))
    again = explorer.ask(words)
    assert again.replayed
    assert again.request == first.request


def test_a_name_that_stands_for_another_question_is_refused(explorer):
    explorer.ask(asked(), request="mine")
    explorer.ask(asked("marginal", attributes=["age"]), request="mine")
    with pytest.raises(LedgerError, match="made for another question"):
        explorer.ask(asked(width=2), request="mine")


def test_whoever_has_no_allotment_leaves_a_ledger_that_verifies(explorer):
    explorer.ask(asked())
    again = explorer.ask(asked(), analyst="ann")
    assert again.replayed
    assert [entry.analyst for entry in explorer.ledger.history()] == [None, "ann"]
    explorer.ledger.verify()
