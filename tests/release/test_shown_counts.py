"""What people read of counts: nothing below 0, and estimates inside their intervals."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.release.grants import shown_counts

PEOPLE = bf.Domain.product(
    bf.Domain.from_edges(range(13), name="age"),
    bf.Domain.from_levels(["f", "m"], name="sex"),
)


def released(seed=1):
    policy, asked = bf.policies.AddRemove(PEOPLE), bf.workloads.Identity(PEOPLE)
    counts = np.zeros(PEOPLE.shape, int)
    return bf.Laplace(policy, asked, epsilon="0.1").release(counts, rng=seed)


def check(table, name):
    low, high = table["low"], table["high"]
    assert (low >= 0).all()
    assert ((low <= table[name]) & (table[name] <= high)).all()


def test_tables_of_cells_and_groups_show_counts_from_zero_on():
    release = released()
    assert (release.estimate < 0).any(), "noise is below 0 somewhere"
    check(release.to_table(), "estimate")
    check(release.group_by("age").count().to_table(), "count")
    unbiased = release.to_table(None)["estimate"]
    assert np.array_equal(unbiased, release.estimate.reshape(-1))


def test_tables_of_a_survey_show_counts_from_zero_on(tmp_path):
    asked = bf.workloads.Tables(PEOPLE, ways=2)
    policy = bf.policies.AddRemove(PEOPLE)
    survey = bf.Contingency(policy, asked, epsilon="0.1")
    release = survey.release(bf.Histogram(PEOPLE, np.zeros(PEOPLE.shape, int)), rng=1)
    assert (release.table("age", "sex").estimate < 0).any()
    check(release.table("age", "sex").to_table(), "estimate")
    check(release.lines_of(("age", "sex"), {}, 0.95), "estimate")


def test_differences_are_shown_as_they_are():
    table = (released(1) - released(2)).to_table()
    assert (table["low"] < 0).any()
    assert (table["estimate"] < 0).any()


def test_sums_and_means_are_shown_as_they_are():
    sums = released().group_by("sex").sum("age")
    assert np.array_equal(sums.to_table()["sum"], sums.values_array)


@pytest.mark.parametrize(
    ("estimate", "low", "high", "shown"),
    [
        (-33.8, -33.8, 0.4, (0.0, 0.0, 0.4)),
        (-5.0, -5.0, 0.0, (0.0, 0.0, 1.0)),
        (0.0, 0.0, 0.0, (0.0, 0.0, 0.0)),
        (3.0, 1.0, 5.0, (3.0, 1.0, 5.0)),
        (2.0, -1.0, 5.0, (2.0, 0.0, 5.0)),
    ],
)
def test_shown_counts_by_hand(estimate, low, high, shown):
    found, bounds = shown_counts(np.array([estimate]), np.array([[low, high]]))
    assert (found[0], *bounds[0]) == shown


def test_answers_and_pictures_show_counts_from_zero_on(tmp_path):
    from blowfish_fast.apps.cli.options import Question
    from blowfish_fast.apps.cli.release_questions import add_intervals, answer_question

    release = released()
    for asked in (
        Question(workload="identity"),
        Question(by=["age"]),
        Question(where=["age=3"], count=True, mean_of="age"),
    ):
        columns, _ = add_intervals(release, answer_question(release, asked), 0.95)
        name = "count" if "count" in columns else "estimate"
        rows = columns.get("measure", np.full(columns[name].size, "count")) == "count"
        low, high, counts = (columns[one][rows] for one in ("low", "high", name))
        assert (low >= 0).all()
        assert ((low <= counts) & (counts <= high)).all()
    pytest.importorskip("matplotlib")
    line = bf.Domain.from_edges(range(13), name="age")
    policy, cells = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    few = bf.Laplace(policy, cells, epsilon="0.1").release(np.zeros(12, int), rng=1)
    assert bf.plotting.histogram(few).get_ylim()[0] == 0
