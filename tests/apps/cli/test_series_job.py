"""``blowfish release --series``: one week of arrivals after the other."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import run_command
from tests.apps.cli.asking import told

FACTS = [
    *("release", "--data", "visits.csv", "--domain", "age=0:100:10"),
    *("--policy", "add_remove", "--workload", "identity", "--epsilon", "30"),
    *("--mechanism", "laplace", "--overwrite"),
]
BOOK = ["--ledger", "book", "--budget", "40"]


@pytest.fixture(autouse=True)
def visits(tmp_path, monkeypatch):
    """Write 100 visits of patients at 25 in one week, and 300 at 75 in the next."""
    monkeypatch.chdir(tmp_path)
    rows = [(at % 50, at, 25, "2026-11-08") for at in range(100)]
    rows += [(at % 50, 100 + at, 75, "2026-11-09") for at in range(300)]
    lines = ["patient,visit,age,received", *(",".join(map(str, one)) for one in rows)]
    (tmp_path / "visits.csv").write_text("\n".join(lines))


def _estimate():
    return bf.Release.load("release.blowfish").estimate


def test_two_weeks_cost_one():
    first = told(*FACTS, *BOOK, "--series", "received:week:2026-W45")
    assert _estimate()[2] == pytest.approx(100, abs=3)
    assert first["request"] == "received/week/2026-W45"
    second = told(*FACTS, *BOOK, "--series", "received:week:2026-W46")
    assert _estimate()[7] == pytest.approx(300, abs=3)
    assert _estimate()[2] == pytest.approx(0, abs=3)
    assert second["remaining"] == first["remaining"] == 10
    again = told(*FACTS, *BOOK, "--series", "received:week:2026-W46")
    assert again["ledger"]["replayed"]


def test_persons_lose_the_sum():
    people = ["--person", "patient", "--record", "visit", "--at-most", "3"]
    facts = [*FACTS, *people, *BOOK[:2], "--budget", "70"]
    told(*facts, "--series", "received:week:2026-W45")
    assert told(*facts, "--series", "received:week:2026-W46")["remaining"] == 10


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--series", "received:week:2026-W45"], "belong to a ledger"),
        ([*BOOK, "--series", "received:2026-W45"], "received:week:2026-W46"),
        ([*BOOK, "--series", "received:week:2026-46"], "named like"),
        ([*BOOK, "--series", "age:week:2026-W45"], "must differ"),
        ([*BOOK, "--series", "arrived:week:2026-W45"], "no column 'arrived'"),
        (
            [*BOOK, "--series", "received:week:2026-W45", "--workload", "tables:1"],
            "ask for no tables:WAYS",
        ),
    ],
)
def test_what_is_no_series_is_refused(words, reason, capsys):
    assert run_command([*FACTS, *words]) != 0
    assert reason in " ".join(capsys.readouterr().err.split())


def test_a_closed_week_is_refused_before_anything_is_read(capsys):
    told(*FACTS, *BOOK, "--series", "received:week:2026-W46")
    assert run_command([*FACTS, *BOOK, "--series", "received:week:2026-W45"]) != 0
    assert "is closed" in capsys.readouterr().err


@pytest.mark.parametrize("epoch", ["2026-W45", "2026-W46"])
def test_a_certificate_counts_the_epoch_that_it_names(epoch):
    told(*FACTS, *BOOK, "--series", "received:week:2026-W45")
    facts = [*FACTS[1:5], "--workload", "identity", "--epsilon", "9", *BOOK[:2]]
    words = [*facts, "--kind", "all", "--series", f"received:week:{epoch}"]
    found = told("certify", "release.blowfish", *words)
    # The week that was released is near it; the next has 300 records elsewhere.
    assert (found["extra"] < 20) == (epoch == "2026-W45")
