"""``blowfish certify`` and ``release --certify``: what is known of the truth."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import BlowfishError, BudgetError, InputError

RUN = CliRunner()
SPIKE = np.zeros(64, dtype=np.int64)
SPIKE[20] = 400
RELEASE = [
    *("release", "--data", "counts.npy", "--domain", "64", "--policy", "add_remove"),
    *("--workload", "identity", "--mechanism", "structure_first"),
]


@pytest.fixture
def type_in(tmp_path, monkeypatch):
    """Return what types words in a folder that holds counts with one dense cell."""
    monkeypatch.chdir(tmp_path)
    np.save("counts.npy", SPIKE)

    def run(*words):
        found = RUN.invoke(application, [*words, "--json"])
        if isinstance(found.exception, BlowfishError):
            raise found.exception
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)

    return run


def test_a_share_of_the_budget_buys_a_certificate(type_in):
    ledger = ["--ledger", "book", "--budget", "1"]
    dry = type_in(*RELEASE, "--epsilon", "1", "--certify", "0.2", *ledger, "--dry-run")
    assert dry["certificate_room"] > 0
    assert (dry["epsilon"], dry["ledger"]["after"]) == ("4/5", 0.0)
    made = type_in(*RELEASE, "--epsilon", "1", "--certify", "0.2", *ledger)
    assert "At least 95 % of these 64 answers" in made["intervals"]
    assert made["remaining"] == 0.0
    asked = type_in("answer", "release.blowfish", "--workload", "identity")
    assert asked["interval"] == made["intervals"]
    assert {"certified_low", "certified_high"} <= set(asked["answers"][0])
    other = type_in("answer", "release.blowfish", "--workload", "prefixes")
    assert "Noise only" in other["interval"]


def test_a_ledger_pays_for_both_or_for_none(type_in):
    short = ["--ledger", "book", "--budget", "0.9"]
    with pytest.raises(BudgetError):
        type_in(*RELEASE, "--epsilon", "1", "--certify", "0.2", *short)
    with pytest.raises(BlowfishError, match="certify"):
        type_in(*RELEASE, "--epsilon", "1", "--certify", "2")


def test_a_saved_release_is_certified_afterwards(type_in, tmp_path):
    type_in(*RELEASE, "--epsilon", "1", "--ledger", "book", "--budget", "2")
    asked = ["certify", "release.blowfish", "--workload", "identity"]
    with pytest.raises(InputError, match="may cost"):
        type_in(*asked)
    paid = [*asked, "--epsilon", "0.5", "--ledger", "book", "--request", "sure"]
    assert type_in(*paid, "--dry-run")["predicted_width"] > 0
    with pytest.raises(InputError, match="--data"):
        type_in(*paid)
    found = type_in(*paid, "--data", "counts.npy", "--confidence", "0.999999999")
    assert found["claim"].startswith("At least 95 %")
    release = bf.Release.load(tmp_path / "release.blowfish")
    assert [str(one) for one in release.certificates] == [found["claim"]]
    with bf.Ledger(tmp_path / "book") as ledger:
        assert float(ledger.spent) == 1.5
    low, high = release.intervals(bf.workloads.Identity(release.domain), of="truth").T
    assert ((low <= SPIKE) & (high >= SPIKE)).mean() >= 0.95


def test_a_range_that_cuts_cells_lies_between_those_inside_and_around(type_in):
    words = [*RELEASE, "--mechanism", "laplace", "--epsilon", "1", "--seed", "1"]
    type_in(*words)
    asked = ["answer", "release.blowfish", "--range", "19.5:30", "--range", "20.2:20.4"]
    found = type_in(*asked)
    assert found["interval"].startswith("Each interval holds the true count")
    cut, inside = found["answers"]
    whole = type_in(*asked[:2], "--range", "20:30", "--range", "19:30")["answers"]
    assert (cut["low"], cut["high"]) == (whole[0]["low"], whole[1]["high"])
    assert inside["low"] == 0.0 < 400 <= inside["high"] + 20


PEOPLE = [
    *("release", "--data", "people.npy", "--domain", "age=0:256:1"),
    *("--domain", "sex=categories:f,m", "--policy", "add_remove"),
    *("--workload", "identity", "--mechanism", "dawa", "--epsilon", "0.2"),
]
AGES = np.zeros((256, 2), dtype=np.int64)
AGES[3] = 900, 30
AGES[20] = 10, 800


@pytest.fixture
def people(type_in):
    """Return what types words beside a release of ages and sexes, merged widely."""
    np.save("people.npy", AGES)
    type_in(*PEOPLE, "--ledger", "book", "--budget", "9")
    return type_in


def certify(*words, confidence="0.999999999"):
    return [
        *("certify", "release.blowfish", "--data", "people.npy", "--epsilon", "4"),
        *("--ledger", "book", "--confidence", confidence, *words),
    ]


def test_means_of_groups_are_certified_in_the_words_of_answers(people):
    words = ["--by", "sex", "--mean", "age"]
    before = people("answer", "release.blowfish", *words)
    assert "Noise only" in before["interval"]
    assert "All of these 2 intervals" in people(*certify(*words))["claim"]
    sure = people("answer", "release.blowfish", *words)
    assert sure["interval"].startswith("All of these 2 intervals hold the true answers")
    ages = np.arange(256) + 0.5
    for row, counts in zip(sure["answers"], AGES.T, strict=True):
        assert row["low"] <= ages @ counts / counts.sum() <= row["high"]
    other = people(
        "answer",
        "release.blowfish",
        "--by",
        "sex",
        "--mean",
        "age",
        "--where",
        "age=100:180",
    )
    assert "Noise only" in other["interval"]


def test_what_is_known_of_a_fraction_is_not_shown_as_noise(people):
    words = ["--by", "age", "--where", "sex=f"]
    claim = people(*certify(*words, "--fraction", "0.9"))["claim"]
    assert claim.startswith("At least 90 % of these 256 answers")
    found = people("answer", "release.blowfish", *words)
    assert found["interval"] == claim
    inside = [
        row["certified_low"] <= count <= row["certified_high"]
        for row, count in zip(found["answers"], AGES[:, 0], strict=True)
    ]
    assert np.mean(inside) >= 0.9
    # Beside answers of which nothing is known, the table promises nothing.
    both = people(
        "answer",
        "release.blowfish",
        "--where",
        "age=100:180",
        "--count",
        "--mean",
        "age",
    )
    assert "noise_low" in both["answers"][0]


def test_one_measure_is_certified_at_a_time(people):
    with pytest.raises(InputError, match="one measure at a time"):
        people(*certify("--where", "sex=f", "--mean", "age", "--std", "age"))
    with pytest.raises(InputError, match="whose answers"):
        people(*certify())


def test_a_certificate_of_totals_serves_ranges_and_quantiles(type_in):
    type_in(*RELEASE, "--epsilon", "1", "--seed", "1")
    words = ["--data", "counts.npy", "--epsilon", "5", "--seed", "2"]
    type_in("certify", "release.blowfish", *words, "--quantile", "0.5")
    found = type_in(
        "answer", "release.blowfish", "--quantile", "0.5", "--quantile", "0.9"
    )
    assert found["interval"].startswith("All intervals together hold the true values")
    for row in found["answers"]:
        assert row["low"] <= 20 <= row["high"]
    totals = type_in("answer", "release.blowfish", "--workload", "prefixes")
    assert totals["interval"].startswith("All of these")
    # Nearly sure is not said as sure.
    type_in(*RELEASE, "--mechanism", "laplace", "--epsilon", "1", "--out", "cells")
    sure = ["--confidence", "0.9999999999"]
    said = type_in("answer", "cells", "--workload", "identity", *sure)["interval"]
    assert said.endswith("at least 0.9999999999.")


def test_a_certificate_of_every_range_serves_ranges_in_words(type_in):
    type_in(*RELEASE, "--epsilon", "1", "--seed", "1")
    words = ["--data", "counts.npy", "--epsilon", "5", "--seed", "2"]
    type_in("certify", "release.blowfish", *words, "--workload", "all_ranges")
    found = type_in("answer", "release.blowfish", "--range", "18:25", "--range", "2:19")
    assert found["interval"].startswith("Every range lies within")
    for row, true in zip(found["answers"], (400, 0), strict=True):
        assert row["low"] <= true <= row["high"]
