"""Anybody's callable: each fault of a stranger is seen, and the right ones pass."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast.audit import Subject, audit_subject
from blowfish_fast.audit.outputs import Readings, name_events, observe, read_output
from blowfish_fast.errors import InputError
from tests.apps.cli.asking import RUN, refused, run, told
from tests.privacy import strangers

SAMPLES = 3000


def by_name(functions):
    return pytest.mark.parametrize(
        ("call", "kind"),
        functions.items(),
        ids=lambda one: getattr(one, "__name__", one),
    )


@pytest.mark.long
@by_name(strangers.RIGHT)
def test_right_subjects_pass(call, kind):
    report = audit_subject(Subject.on(kind, call), samples=SAMPLES, trials=0)
    assert report.passed, report.statements()
    assert report.finding.pairs == 12


@pytest.mark.long
@by_name(strangers.WRONG)
def test_every_fault_is_seen(call, kind):
    report = audit_subject(Subject.on(kind, call), samples=SAMPLES)
    assert not report.passed
    assert report.power is None
    assert report.finding.evidence.log_ratio > 1


@pytest.mark.long
def test_a_fault_may_lie_in_the_relation_of_neighbours():
    call = strangers.sensitivity_of_adding
    added, changed = (
        audit_subject(
            Subject.on("counts", call, relation=relation), samples=SAMPLES, trials=0
        )
        for relation in ("add_remove", "full")
    )
    assert added.passed
    assert not changed.passed


@pytest.mark.long
@pytest.mark.parametrize(
    ("call", "event"),
    [
        (strangers.leaky_exception, "records were counted"),
        (strangers.leaky_warning, "an odd number of records"),
        (strangers.refuses_nobody, "number"),
        (strangers.added_doubles, "multiple of 2^-53"),
    ],
)
def test_the_event_tells_what_is_wrong(call, event):
    report = audit_subject(Subject.on("records", call), samples=SAMPLES)
    assert event in report.finding.evidence.event


def test_an_excess_that_is_planted_is_seen():
    subject = Subject(strangers.right_count, [([0], [])])
    report = audit_subject(subject, samples=8000, trials=2)
    assert report.power.share == 1
    assert report.power.excess <= Fraction(1, 2)
    assert "was seen 2 times out of 2" in " ".join(report.statements())


def test_a_callable_that_ignores_epsilon_leaves_the_audit_blind_and_it_says_so():
    def nothing(data, epsilon):
        return 0

    report = audit_subject(Subject(nothing, [([0], [])]), samples=1000, trials=1)
    assert report.passed
    assert report.power.seen == 0
    assert "says little" in report.statements()[-1]


def test_delta_allows_rare_events_and_no_more():
    def shows(chance):
        def call(data, epsilon, rng):
            return len(data) if rng.random() < chance else None

        return Subject(call, [([0], [])], delta="0.05", name="shows")

    assert audit_subject(shows(0.04), samples=10_000, trials=0).passed
    assert not audit_subject(shows(0.08), samples=10_000, trials=0).passed


def test_outputs_are_read_whatever_they_are():
    class Thing:
        pass

    assert read_output(True).numbers == ()
    assert read_output(np.array([[1, 2]])).numbers == (1.0, 2.0)
    assert read_output(np.array([[1, 2]])) != read_output(np.array([1, 2]))
    assert read_output(1 + 2j).numbers == (1.0, 2.0)
    assert read_output({2: "x", 1: 0.5}) == read_output({1: 0.5, 2: "x"})
    assert read_output({3, 1}).form == read_output({1, 3}).form
    assert read_output(float("inf")).form == ("inf",)
    assert read_output(np.array([1.0, np.nan])).form[1:] == ("number", "nan")
    # Two of a kind differ in their place in memory only.
    assert read_output(Thing()) == read_output(Thing())


def test_exits_are_outputs_and_ctrl_c_is_none():
    def leaves():
        raise SystemExit(3)

    def stops():
        raise KeyboardInterrupt

    assert observe(leaves, 2)[0].form == ("raised", "SystemExit", "3")
    with pytest.raises(KeyboardInterrupt):
        observe(stops, 1)


def test_events_are_counted_where_a_form_was_never_seen():
    first, second = (
        Readings.of(observe(lambda: 1, 3)),
        Readings.of(observe(lambda: "x", 3)),
    )
    counts = {event.count(first) for event in name_events(first, second)}
    assert counts == {0, 3}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"call": 3}, "callable of data and epsilon"),
        ({"pairs": []}, "pairs of neighbouring"),
        ({"pairs": [([1], [2], [3])]}, "pairs of neighbouring"),
        ({"delta": 1}, "delta lies between 0 and 1"),
        ({"epsilon": 0}, "epsilon"),
    ],
)
def test_what_is_no_subject_is_refused(arguments, reason):
    stated = {"call": strangers.right_count, "pairs": [([1], [])]} | arguments
    with pytest.raises(InputError, match=reason):
        Subject(**stated)


def test_too_few_samples_and_unknown_words_are_refused():
    with pytest.raises(InputError, match="at least 1000"):
        audit_subject(Subject(strangers.right_count, [([1], [])]), samples=10)
    with pytest.raises(InputError, match="kind of data"):
        Subject.on("rows", strangers.right_count)
    with pytest.raises(InputError, match="relation"):
        Subject.on("counts", strangers.right_cells, relation="line")


STRANGERS = "tests.privacy.strangers"


def test_the_command_audits_a_callable_and_names_the_violation():
    words = ["audit", "--subject", f"{STRANGERS}:half_the_noise", "--samples", "2000"]
    done = RUN.invoke(run.__globals__["application"], [*words, "--data", "records"])
    assert done.exit_code == 1
    assert "violation:" in done.stderr
    report = told(*words, "--data", "records", code=1)
    assert not report["passed"]
    assert report["epsilon_at_least"] > 1
    json.dumps(report)


@pytest.mark.long
def test_the_command_holds_a_callable_against_the_promise_that_is_typed():
    words = ["--samples", "1000", "--data", "records", "--cells", "2"]
    named = ["audit", "--subject", f"{STRANGERS}:right_count", *words]
    report = told(*named, "--epsilon", "2", "--delta", "0.1")
    assert report["passed"]
    assert (report["epsilon"], report["delta"]) == (2, 0.1)
    assert report["power"]["planted"] == 5
    assert "promised epsilon = 2" in run(*named, "--epsilon", "2")


def test_words_that_do_not_go_together_are_refused():
    named = ["audit", "--subject", f"{STRANGERS}:right_cells"]
    assert "--quick" in refused(*named, "--quick").received
    assert "--epsilon" in refused("audit", "--epsilon", "1").received
    assert "can be imported" in refused("audit", "--subject", "no_such:thing").rule
    assert "can be imported" in refused("audit", "--subject", "nothing").rule
