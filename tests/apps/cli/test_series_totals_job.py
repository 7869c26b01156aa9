"""``blowfish release --series ... --totals`` and ``blowfish next``: week after week."""

from __future__ import annotations

import dataclasses
import datetime

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.series_job import next_job
from tests.apps.cli.asking import run, told

JOB = """
[data]
source = "visits.csv"
series = "received:week:2025-W45"
totals = true
frozen = true

[domain]
district = ["north", "east sea"]
age = "0:100:50"

[policy]
kind = "add_remove"

[workload]
kind = "identity"

[mechanism]
name = "gaussian"

[budget]
rho = 200
ledger = "book"
total = 300

[output]
release = "weekly.blowfish"
table = "weekly.csv"
"""
MONDAY = datetime.date(2025, 11, 3)


@pytest.fixture(autouse=True)
def visits(tmp_path, monkeypatch):
    """Write visits of four weeks: 100 in the first, 100 more in each that follows."""
    monkeypatch.chdir(tmp_path)
    lines = ["patient,district,age,received"]
    for week in range(4):
        day = MONDAY + datetime.timedelta(days=7 * week)
        place = "north" if week % 2 else "east sea"
        lines += [
            f"{at % 30},{place},{at % 100},{day}" for at in range(100 * (week + 1))
        ]
    (tmp_path / "visits.csv").write_text("\n".join(lines))
    (tmp_path / "weekly.toml").write_text(JOB)


def _counts(*words):
    answers = told("answer", *words, "--by", "district")["answers"]
    return {one["district"]: one["count"] for one in answers}


@pytest.mark.long
def test_next_continues_a_series_at_one_price():
    first = told("next", "weekly.toml")
    assert first["files"]["release"] == "weekly-2025-W45.blowfish"
    for _ in range(2):
        last = told("next", "weekly.toml")
    assert last["remaining"] == first["remaining"] == 100
    assert "in the running total up to 2025-W47" in last["error"]
    file = last["files"]["release"]
    total = _counts(file)
    assert total["east sea"] == pytest.approx(400, abs=8)
    assert total["north"] == pytest.approx(200, abs=8)
    assert _counts(file, "--last", "2")["east sea"] == pytest.approx(300, abs=8)
    assert _counts(file, "--upto", "2025-W46")["north"] == pytest.approx(200, abs=8)
    assert told("answer", file)["interval"].startswith("Each interval holds the true")
    lines = np.genfromtxt("weekly-2025-W47.csv", delimiter=",", names=True, dtype=None)
    assert lines.dtype.names[3:] == (
        *("week", "week_low", "week_high", "total", "total_low", "total_high"),
    )
    assert lines["week"].sum() == pytest.approx(300, abs=20)
    assert lines["total"].sum() == pytest.approx(600, abs=20)
    with bf.Ledger("book") as ledger:
        assert len(ledger.verify()) == 64
    saved = bf.series.SavedSeries.load(file)
    assert saved.epochs() == ["2025-W45", "2025-W46", "2025-W47"]
    assert "2025-W45 to 2025-W47, from 3 releases of a series" in run("explain", file)


def test_release_names_the_epoch_and_leaves_no_gap(capsys):
    flags = ["--series", "received:week:2025-W46", "--overwrite"]
    assert told("release", "weekly.toml", "--out", "of {epoch}.blowfish")["files"] == {
        "release": "of 2025-W45.blowfish",
        "table": "weekly.csv",
    }
    late = ["--series", "received:week:2025-W48", "--overwrite"]
    assert run_command(["release", "weekly.toml", *late]) != 0
    assert "'2025-W46' has no release yet" in capsys.readouterr().err
    told("release", "weekly.toml", *flags)
    again = told("release", "weekly.toml", *flags)
    assert again["ledger"]["replayed"]


@pytest.mark.long
def test_a_series_is_drawn_with_its_band_and_reported():
    pytest.importorskip("matplotlib")
    file = told("next", "weekly.toml")["files"]["release"]
    told("draw", file, "--out", "total.svg")
    told("draw", file, "--out", "weeks.svg", "--last", "1", "--by", "age")
    for name in ("total.svg", "weeks.svg"):
        with open(name) as picture:
            assert "<svg" in picture.read()
    told("report", file, "--out", "page.html")
    with open("page.html") as page:
        text = page.read()
    assert "Counts by district and age up to 2025-W45" in text
    assert "total low" in text
    assert run_command(["draw", file, "--out", "x.svg", "--by", "age", "--by", "y"])


def test_exponents_bands_and_blocks_are_stated_in_words():
    flags = ["--exponent", "1/2", "--band", "8", "--overwrite"]
    request = told("release", "weekly.toml", *flags)["request"]
    assert request.startswith("received/week/1-2-8-")
    in_epsilon = ["--epsilon", "20", "--budget", "60", "--mechanism", "laplace"]
    other = ["--ledger", "other", "--overwrite", "--out", "eps.blowfish"]
    made = told("release", "weekly.toml", *in_epsilon, *other)
    assert made["request"] == "received/week/blocks-7/2025-W45"
    assert _counts("eps.blowfish")["east sea"] == pytest.approx(100, abs=8)


def test_persons_count_in_their_first_epochs():
    people = ["--person", "patient", "--at-most", "1", "--epochs-at-most", "2"]
    for week in (45, 46, 47):
        epoch = ["--series", f"received:week:2025-W{week}"]
        told("release", "weekly.toml", *people, *epoch, "--overwrite")
    # Thirty patients are in every week: their first two count, one visit each.
    counted = _counts("weekly.blowfish")
    assert counted["east sea"] == pytest.approx(30, abs=10)
    assert counted["north"] == pytest.approx(30, abs=10)
    alone = _counts("weekly.blowfish", "--last", "1")
    assert sum(alone.values()) == pytest.approx(0, abs=10)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--request", "again"], "named by their epochs"),
        (["--certify", "0.2"], "a certificate says nothing"),
        (["--count-column", "age"], "one per line"),
        (["--exponent", "much"], "a fraction from 0 to 1/2"),
        (["--exponent", "2/3"], "between 0, single epochs, and 1/2"),
        (["--epochs-at-most", "2"], "bounds the epochs of a person"),
        (["--alpha", "5", "--beta", "0.1"], "state --rho or --epsilon"),
        (["--person", "patient", "--at-most", "1"], "without epochs_at_most"),
    ],
)
def test_what_totals_cannot_keep_is_refused(words, reason, capsys):
    assert run_command(["release", "weekly.toml", *words, "--json"]) != 0
    said = capsys.readouterr()
    assert reason in said.out + said.err


def test_terms_of_totals_need_a_series_and_totals(capsys):
    facts = ["release", "--data", "visits.csv", "--domain", "age=0:100:50"]
    facts += ["--policy", "add_remove", "--workload", "identity", "--epsilon", "1"]
    for words, reason in (
        (["--totals"], "--totals is about a series"),
        (["--frozen"], "--frozen is about a series"),
        (
            ["--series", "received:week:2025-W45", "--band", "3"],
            "state --totals, too",
        ),
    ):
        assert run_command([*facts, *words]) != 0
        assert reason in " ".join(capsys.readouterr().err.split())


def test_epochs_are_chosen_of_series_only(capsys):
    plain = ["release", "--data", "visits.csv", "--domain", "age=0:100:50", "--policy"]
    plain += ["add_remove", "--workload", "identity", "--epsilon", "1"]
    told(*plain, "--out", "plain.blowfish")
    assert run_command(["answer", "plain.blowfish", "--last", "2"]) != 0
    assert "choose epochs of a series" in capsys.readouterr().err
    assert run_command(["draw", "plain.blowfish", "--out", "a.svg", "--last", "2"]) != 0
    assert "leave it out" in capsys.readouterr().err


def test_next_continues_a_series_under_a_request_of_its_own(tmp_path):
    """Two jobs ask about one series, each under its own name and week by week."""
    plain = JOB.replace("totals = true\nfrozen = true\n", "").replace(
        "gaussian", "laplace"
    )
    plain = plain.replace("rho = 200", "epsilon = 20")
    (tmp_path / "all.toml").write_text(plain.replace('"weekly', '"all'))
    mine = plain.replace("total = 300", 'total = 300\nrequest = "mine"')
    (tmp_path / "mine.toml").write_text(mine)
    weeks = ["2025-W45", "2025-W46"]
    for week in weeks:
        assert told("next", "all.toml")["request"] == f"received/week/{week}"
        own = told("next", "mine.toml")
        # The week that the other job released is still to come for this one.
        assert own["request"] == f"received/week/{week}/mine"
        assert own["files"]["release"] == f"weekly-{week}.blowfish"
        # Questions about one week add up; weeks do not.
        assert own["remaining"] == 260


# --- next, by date -----------------------------------------------------------------

MONTHLY = """
[data]
source = "visits-{epoch}.csv"

[domain]
age = "0:100:50"

[policy]
kind = "add_remove"

[workload]
kind = "identity"

[mechanism]
name = "laplace"

[budget]
epsilon = 5
ledger = "months"
total = 20
"""


def test_next_releases_new_files_by_date(tmp_path, capsys):
    (tmp_path / "monthly.toml").write_text(MONTHLY)
    for name in ("2025-11", "2025-12"):
        (tmp_path / f"visits-{name}.csv").write_text("age\n" + "7\n" * 50)
    assert run_command(["next", "monthly.toml"]) != 0
    told_why = capsys.readouterr().err
    assert "say where it begins, --epoch 2026-11" in told_why
    assert "received" not in told_why
    first = told("next", "monthly.toml", "--epoch", "2025-11")
    assert first["request"] == "monthly/2025-11"
    second = told("next", "monthly.toml")
    assert second["request"] == "monthly/2025-12"
    assert second["files"]["release"] == "monthly-2025-12.blowfish"
    assert (first["remaining"], second["remaining"]) == (15, 10)
    assert run_command(["next", "monthly.toml"]) != 0
    assert "visits-2026-01.csv" in capsys.readouterr().err
    other = told("next", "monthly.toml", "--data", "visits-2025-11.csv", "--dry-run")
    assert other["data"] == "visits-2025-11.csv"
    files = [first["files"]["release"], "--with", second["files"]["release"]]
    counts = {
        how: told("answer", *files, "--how", how, "--workload", "identity")
        for how in ("average", "sum", "disjoint", "difference")
    }
    near = {"average": 50, "sum": 100, "disjoint": 100, "difference": 0}
    for how, told_of in counts.items():
        assert told_of["answers"][0]["count"] == pytest.approx(near[how], abs=6)
    assert counts["sum"]["epsilon"] == "10"
    assert counts["disjoint"]["epsilon"] == "5"
    for words, reason in (
        ([*files], "releases are asked together as --how average"),
        ([*files[:1], "--how", "sum"], "received 1"),
        ([*files, "--how", "sum", "--round"], "leave --round out"),
    ):
        assert run_command(["answer", *words]) != 0
        assert reason in " ".join(capsys.readouterr().err.split())


def test_next_follows_a_release_that_was_named_by_its_month(tmp_path):
    stated = MONTHLY.replace("{epoch}", "2025-11") + 'request = "visits/2025-11"\n'
    (tmp_path / "monthly.toml").write_text(stated)
    for name in ("2025-11", "2025-12"):
        (tmp_path / f"visits-{name}.csv").write_text("age\n" + "7\n" * 50)
    told("release", "monthly.toml", "--out", "first.blowfish")
    second = told("next", "monthly.toml", "--data", "visits-2025-12.csv")
    assert second["request"] == "visits/2025-12"
    assert second["remaining"] == 10


def _next(tmp_path, today, **more):
    path = tmp_path / "weekly.toml"
    job = Job.from_file(path).overridden(Job(**more))
    epoch = more.get("epoch")
    return next_job(job, path, epoch=epoch, today=today)[1]


def test_an_epoch_that_is_not_over_is_refused(tmp_path):
    week = datetime.date(2025, 11, 10)
    assert _next(tmp_path, week) == "2025-W45"
    with pytest.raises(bf.errors.InputError, match="is over on 2025-11-10"):
        _next(tmp_path, week - datetime.timedelta(days=1))


def test_a_series_without_an_epoch_is_told_where_to_begin(tmp_path):
    path = tmp_path / "weekly.toml"
    job = Job.from_file(path).overridden(Job(series="received:week"))
    today = datetime.date(2026, 1, 1)
    with pytest.raises(bf.errors.InputError, match="say where it begins"):
        next_job(job, path, epoch=None, today=today)
    dated, name = next_job(job, path, epoch="2025-W46", today=today)
    assert (dated.series, name) == ("received:week:2025-W46", "2025-W46")


def test_tables_of_two_months_are_added_up_table_by_table(tmp_path):
    stated = MONTHLY.replace('kind = "identity"', 'kind = "tables:1"')
    stated = stated.replace('[mechanism]\nname = "laplace"\n', "")
    (tmp_path / "monthly.toml").write_text(stated)
    for name, lines in (("2025-11", 40), ("2025-12", 60)):
        (tmp_path / f"visits-{name}.csv").write_text("age\n" + "7\n" * lines)
    first = told("next", "monthly.toml", "--epoch", "2025-11")["files"]
    second = told("next", "monthly.toml")["files"]
    assert second["table"] == "tables-2025-12"
    both = [first["release"], "--with", second["release"], "--by", "age"]
    summed = told("answer", *both, "--how", "disjoint")
    assert summed["answers"][0]["count"] == pytest.approx(100, abs=6)
    assert summed["epsilon"] == "5"
    assert told("answer", *both, "--how", "sum")["epsilon"] == "10"


def test_next_names_by_date_what_is_written_unasked_and_what_is_made_up(tmp_path):
    job = Job(ledger=str(tmp_path / "ages.ledger"), workload="tables:1", map="a.gpkg")
    path = tmp_path / "monthly.toml"
    today = datetime.date(2026, 2, 1)
    dated, _ = next_job(job, path, epoch="2025-11", today=today)
    assert (dated.table, dated.map) == ("tables-2025-11", "a-2025-11.gpkg")
    named = Job(ledger=job.ledger, synthetic="made-up.csv", workload="identity")
    dated, _ = next_job(named, path, epoch="2025-11", today=today)
    assert (dated.table, dated.synthetic) == (None, "made-up-2025-11.csv")


def test_next_needs_a_ledger(tmp_path):
    path = tmp_path / "weekly.toml"
    with pytest.raises(bf.errors.InputError, match="follows those that a ledger holds"):
        next_job(Job(), path, epoch=None, today=MONDAY)


def test_a_charge_without_an_answer_is_continued(tmp_path, monkeypatch):
    told("next", "weekly.toml")
    told("next", "weekly.toml")
    today = datetime.date(2026, 1, 1)
    assert _next(tmp_path, today) == "2025-W47"
    entry = bf.Ledger.entry

    def unanswered(ledger, request):
        return dataclasses.replace(entry(ledger, request), state="reserved")

    monkeypatch.setattr(bf.Ledger, "entry", unanswered)
    assert _next(tmp_path, today) == "2025-W46"
