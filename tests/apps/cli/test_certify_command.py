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
