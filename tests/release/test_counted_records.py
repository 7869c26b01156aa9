"""Intervals of bounded persons hold the counted records, and no sentence says more."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf

KINDS = bf.Domain.from_levels(["a", "b"], name="kind")
VISITS = {"kind": ["a"] * 6 + ["b"] * 3, "who": [1, 1, 1, 1, 1, 1, 2, 2, 3]}


def bounded(count="records", at_most=2):
    policy = bf.policies.AddRemove(KINDS).per_person(at_most, person="who", count=count)
    data = bf.Histogram.from_records(
        KINDS, VISITS, person="who", at_most=at_most, count=count
    )
    return bf.Laplace(policy, epsilon=1).release(data, rng=1)


def test_all_records_count_where_nobody_is_bounded():
    policy = bf.policies.AddRemove(KINDS)
    release = bf.Laplace(policy, epsilon=1).release([6, 3], rng=1)
    wanted = "Each interval holds the true count with probability at least 0.95."
    assert release.interval_sentence("truth") == wanted
    assert release.group_by("kind").count().interval_sentence("truth") == wanted


@pytest.mark.parametrize(
    ("count", "words"),
    [
        ("records", "true count of the records that count (at most 2 of each person)"),
        ("persons", "true count of persons (each counts once, by at most 2 of her"),
    ],
)
def test_the_sentence_says_which_records_count(count, words):
    release = bounded(count)
    assert words in release.interval_sentence("truth")
    groups = release.group_by("kind").count()
    # Parts of persons are measured: their groups claim the noise alone.
    known = {"records": "truth", "persons": "noise"}[count]
    assert groups.interval_kind() == known
    assert (words in groups.interval_sentence("truth")) == (known == "truth")
    loaded = bf.Release.from_bytes(release.to_bytes())
    assert loaded.interval_sentence("truth") == release.interval_sentence("truth")


def test_a_session_and_a_certificate_say_so_too():
    policy = bf.policies.AddRemove(KINDS).per_person(2, person="who")
    data = bf.Histogram.from_records(KINDS, VISITS, person="who", at_most=2)
    session = bf.Session(bf.Ledger(epsilon=3, policy=policy), data)
    answer = session.partition("kind").noisy_count(epsilon=1, rng=1)
    assert "at most 2 of each person" in answer.interval_sentence("truth")
    book = bf.Ledger(epsilon=3, policy=policy)
    cells = bf.workloads.Identity(KINDS)
    release = book.release(bf.Laplace(policy, cells, epsilon=1), data, rng=1)
    bought = book.certify(release, data, cells, epsilon=1, rng=2)
    assert "The truth is that of the records that count (at most 2" in str(bought)


def test_a_series_says_that_the_bound_holds_in_each_epoch():
    policy = bf.policies.AddRemove(KINDS).per_person(1, person="who")
    book = bf.Ledger(rho=1, policy=policy)
    weeks = bf.Series(
        book, column="day", every="week", level="person", epochs_at_most=2,
        totals=True, frozen=True,
    )  # fmt: skip
    days = np.datetime64("2025-09-01") + np.arange(9) % 14
    visits = {**VISITS, "day": days}
    gaussian = bf.Gaussian(policy, rho="0.5")
    for week in ("2025-W36", "2025-W37"):
        weeks.release(week, gaussian, visits, rng=1)
    sentence = weeks.total(upto="2025-W37").interval_sentence("truth")
    assert "at most 1 of each person in each epoch in which she counts" in sentence
