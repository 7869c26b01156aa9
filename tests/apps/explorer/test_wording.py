"""What is wrong is told field by field, in the words of whoever filled in a form."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from blowfish_fast.apps.explorer.catalog import TableSpec, as_table
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.apps.explorer.wording import field_messages
from blowfish_fast.errors import BlowfishError

AGE = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 5}}
ASKED = {"kind": "histogram", "table": "p", "attribute": "age", "cost": {"alpha": 20}}
STRETCHES = {**ASKED, "kind": "ranges"}
VALIDATOR = ("Input", "Value error", "Extra inputs", "Field required", "items", "tag")


def told(reader, data):
    with pytest.raises(BlowfishError) as caught:
        reader(data)
    message = str(caught.value)
    assert not any(word in message for word in VALIDATOR)
    return message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost": {"alpha": -1}}, "the largest error (alpha) must be above 0"),
        ({"cost": {"alpha": "much"}}, "the largest error (alpha) must be a number"),
        ({"cost": {"alpha": 1, "beta": 2}}, "the probability of more (beta) must be"),
        ({"cost": {"epsilon": 0}}, "epsilon must be above 0"),
        ({"cost": {}}, "state the largest error (alpha), or a cost: epsilon"),
        ({"cost": 3}, "the error or the cost must be an object with fields"),
        ({"width": 2.5}, "cells per bin must be a whole number"),
        ({"kind": "median"}, "the kind must be one of 'histogram', 'cumulative'"),
        ({"surprise": 1}, "surprise is not known here"),
        ({"filters": [{"attribute": "b", "low": [1]}]}, "low of 'b' must be a number"),
        ({"filters": [{"attribute": "b", "low": 1}] * 2}, "filter each attribute once"),
        ({"kind": "quantiles", "q": []}, "the parts must list at least 1"),
        ({"kind": "quantiles", "q": [0.5, 2]}, "the parts must be at most 1"),
    ],
    ids=str,
)
def test_questions_are_told_by_their_fields(change, message):
    assert told(read_question, {**ASKED, **change}).startswith(message)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"ranges": [[5]]}, "stretches must be pairs of values, such as [20, 40]"),
        ({"ranges": []}, "stretches must list at least 1"),
        ({}, "stretches must be stated"),
        ({"ranges": [[0, 5]], "width": 0}, "cells per bin must be at least 1"),
    ],
    ids=str,
)
def test_a_kind_that_is_a_field_too_is_not_taken_for_it(ranges, message):
    assert told(read_question, {**STRETCHES, **ranges}) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": {"start": 0, "stop": 100, "width": 0}}, "the width of a cell of"),
        ({"cells": {"start": 0, "stop": 100, "width": 7}}, "'age': 0 to 100 is no"),
        ({"cells": {"start": 0, "width": 7}}, "stop of 'age' must be stated"),
        ({"cells": None, "levels": []}, "'age': levels must not be empty"),
        ({"cells": None, "levels": [None]}, "levels of 'age' must be texts or whole"),
        ({"cells": None, "dates": ["soon"]}, "dates of 'age' must be dates, such as"),
    ],
    ids=str,
)
def test_descriptions_name_the_attribute_that_is_wrong(change, message):
    attributes = [{"name": "town", "levels": ["a"]}, {**AGE, **change}]
    assert told(as_table, {"name": "p", "attributes": attributes}).startswith(message)


def test_a_field_says_whose_it_is():
    wrong = {"attributes": [{"name": "town", "levels": "a"}, {**AGE, "unit": ""}]}
    with pytest.raises(ValidationError) as caught:
        TableSpec.model_validate({"name": "p", **wrong})
    found = field_messages(caught.value.errors(), wrong)
    assert [(one["of"], one["field"]) for one in found] == [
        ("town", "levels"),
        ("age", "unit"),
    ]


@pytest.mark.parametrize("data", [None, 3, [], "histogram"])
def test_what_is_no_question_at_all_is_told(data):
    assert told(read_question, data) == "this must be an object with fields"


@pytest.mark.parametrize(
    "table",
    [
        {"name": "\ud800", "attributes": [AGE]},
        {"name": "p", "attributes": [{"name": "sex", "levels": ["f", "a\udc00"]}]},
        {"name": "p", "attributes": [AGE], "policies": {"\ud800": {"kind": "line"}}},
    ],
)
def test_half_a_sign_is_refused_before_anything_is_written(table):
    assert "half of a sign" in told(as_table, table)


def test_half_a_sign_in_a_question_is_refused():
    assert "half of a sign" in told(read_question, {**ASKED, "attribute": "\ud83d"})
