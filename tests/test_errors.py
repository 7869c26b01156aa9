"""Errors carry their rule, what was received and the way out as fields."""

from __future__ import annotations

import pickle

import pytest

from blowfish_fast import errors
from blowfish_fast.errors import BlowfishError


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "the rule"),
        ({"received": 3}, "the rule; received 3"),
        ({"way_out": "Go there"}, "the rule. Go there"),
        (
            {"received": "'x'", "way_out": "Go there"},
            "the rule; received 'x'. Go there",
        ),
    ],
)
def test_a_message_is_composed_from_the_fields_that_are_there(fields, message):
    assert str(BlowfishError("the rule", **fields)) == message


def test_a_plain_message_is_its_own_rule_and_is_named_by_its_class():
    problem = errors.PolicyError("a whole message")
    assert problem.rule == str(problem) == "a whole message"
    assert (problem.received, problem.way_out, problem.data) == (None, None, {})
    assert problem.code == "PolicyError"


@pytest.mark.parametrize(
    "kind",
    [
        one
        for one in vars(errors).values()
        if isinstance(one, type)
        and issubclass(one, BlowfishError)
        # Takes no words at all.
        and one is not errors.FailedDrawError
    ],
)
def test_fields_survive_the_way_to_another_process(kind):
    problem = kind(
        "rule", received=2, way_out="out", code="some_rule", data={"attributes": 2}
    )
    copy = pickle.loads(pickle.dumps(problem))
    assert str(copy) == "rule; received 2. out"
    assert vars(copy) == vars(problem)
    assert copy.data == {"attributes": 2}


def test_a_failed_draw_has_the_same_words_everywhere_and_takes_no_others():
    problem = errors.FailedDrawError()
    again = pickle.loads(pickle.dumps(problem))
    assert type(again) is errors.FailedDrawError
    assert again.to_dict() == problem.to_dict()
    with pytest.raises(TypeError):
        errors.FailedDrawError("the rectangles' branch")
