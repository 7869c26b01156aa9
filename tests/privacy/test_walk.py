"""The walk in its short form, its report, and the command."""

from __future__ import annotations

import html.parser
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
import blowfish_fast.apps.cli.commands.audit as audit_command
import tests.privacy.mutants_beyond_noise as beyond_noise
from blowfish_fast._support.machine import usable_cores
from blowfish_fast.apps.cli.main import application
from blowfish_fast.audit import LONG, QUICK, Report, Verdict, audit_everything, walk
from blowfish_fast.audit.black_box import EXCESS, detection_power
from blowfish_fast.audit.choices import all_partitions
from blowfish_fast.audit.plan import AuditTask, tasks
from blowfish_fast.audit.verdicts import PROMISED_POWER
from blowfish_fast.audit.walk import examine
from blowfish_fast.audit.witness import watch
from blowfish_fast.mechanisms.registry import (
    LIST_MECHANISMS,
    MECHANISMS,
    RHO_LIST_MECHANISMS,
    RHO_MECHANISMS,
    TABLE_MECHANISMS,
)

from . import mutants

pytestmark = pytest.mark.audit

RUN = CliRunner()
SHORT = QUICK._replace(
    priced=(2,),
    families=("add_remove", "full"),
    seeds=1,
    pairs=16,
    steps=1,
    batch=4000,
    noise=2000,
    runs=10,
    releases=10,
)
"""A part of what `blowfish audit --quick` walks, which CI runs by itself."""
TINY = QUICK._replace(
    priced=(2,), families=("full",), batch=2000, noise=2000, runs=100, releases=20
)


@pytest.fixture(scope="module")
def report():
    verdicts = audit_everything(SHORT, open_ledger=bf.Ledger, workers=usable_cores())
    return Report(tuple(verdicts), SHORT, "quick", 60.0, "0")


def test_the_short_form_finds_no_violation(report):
    assert report.passed, report.violations


def test_every_mechanism_is_audited_without_being_named(report):
    for name in MECHANISMS:
        met = [one for one in report.verdicts if one.subject == name]
        families = {one.family for one in met if one.check == "prices"}
        assert {"add_remove", "full", "blocks", "graph", "constrained"} <= families
        assert {"prices", "sensitivity", "invariants", "budget", "release"} <= {
            one.check for one in met
        }
        priced = {
            (one.family, one.domain)
            for one in met
            if one.check == "sensitivity" and one.events
        }
        # The real walks have these stops and more.
        assert len(priced) * QUICK.pairs >= 1000, name
        sampled = [one for one in met if one.check in ("noise", "choice")]
        assert sampled, name


def test_every_partition_is_audited_without_being_named(report):
    for name in all_partitions():
        met = [one for one in report.verdicts if one.subject == name]
        assert {"add_remove", "full"} <= {one.family for one in met}, name
        assert {"choice", "sensitivity"} <= {one.check for one in met}, name
        batched = [one for one in met if "in batches" in one.note]
        assert batched, f"{name} has no batched path; only runs one by one"


def test_the_long_form_gives_every_choice_ten_million_samples():
    for family in ("add_remove", "full"):
        assert LONG.batch_under(family) == 10**7
    assert LONG.batch_under("blocks") == 10**6
    assert min(LONG.noise, QUICK.batch_under("full")) >= 10**5


def test_a_check_that_cannot_run_is_a_violation(monkeypatch):
    def broken(*_arguments):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(walk, "mechanism_verdicts", broken)
    (found,) = examine(AuditTask("mechanism", "laplace", 4, "full"), TINY)
    assert not found.passed
    assert (found.check, found.subject) == ("run", "laplace")
    assert "ZeroDivisionError: by nothing" in found.note


def test_prices_are_tight_where_mechanisms_are(report):
    laplace = [
        one
        for one in report.verdicts
        if one.subject == "laplace" and one.check == "prices" and one.found > 0
    ]
    assert laplace
    assert all(one.found / one.epsilon > 0.999 for one in laplace)


def test_the_long_form_visits_everything_and_keeps_its_confidence():
    listed = tasks(LONG)
    every = {*MECHANISMS, *TABLE_MECHANISMS, *LIST_MECHANISMS}
    walked = {one.name for one in listed if one.kind == "mechanism"}
    assert walked == {*every, *RHO_MECHANISMS, *RHO_LIST_MECHANISMS}
    assert {one.name for one in listed if one.kind == "power"} == every
    assert listed[0].kind == "selector"
    assert listed[-1].kind == "timing"
    assert LONG.batch >= 10**7
    assert LONG.noise >= 10**5
    # Each audit's miss, times their number, is the miss of all together.
    assert (1 - LONG.each) * 4000 == pytest.approx(0.001)


def test_an_excess_of_five_percent_is_seen_nine_times_in_ten():
    line = bf.Domain(4)
    policy = bf.policies.AddRemove(line)
    step = watch(*bf.Laplace.example(line, policy, 1)).measured[0]
    power = detection_power(
        step.result, policy, (0, -1), samples=250_000, trials=10, confidence=LONG.each
    )
    assert power.excess == EXCESS
    assert power.share >= PROMISED_POWER, str(power)
    assert "an excess of 5 %" in str(power)
    honest = detection_power(
        step.result,
        policy,
        (0, -1),
        samples=250_000,
        trials=3,
        excess=0 * EXCESS,
        confidence=LONG.each,
    )
    assert honest.seen == 0


def test_an_unknown_mechanism_is_refused():
    with pytest.raises(bf.BlowfishError, match="no mechanism 'nothing'"):
        tasks(QUICK, ["nothing"])


def test_a_refusal_on_public_grounds_has_no_verdicts():
    assert examine(AuditTask("mechanism", "ordered", (3, 4), "full"), QUICK) == []


class _Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def broken():
    with mutants.MUTANTS["halved_noise"].plant():
        verdicts = audit_everything(TINY, mechanisms=["laplace"])
    return Report(tuple(verdicts), TINY, "quick", 1.0, "0")


def test_the_page_is_complete_in_itself(report, broken):
    for one in (report, broken):
        text = one.to_html()
        page = _Page()
        page.feed(text)
        assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.tags}
        assert not any(
            {"src", "href"} & attributes.keys() for _, attributes in page.tags
        )
        assert "url(" not in text
        assert "@import" not in text
    assert "no violation" in report.to_html()
    assert "VIOLATION" in broken.to_html()
    for name in MECHANISMS:
        assert f"<th>{name}</th>" in report.to_html()


def test_notes_are_escaped():
    wild = Verdict("prices", "<b>", "full", "d", 1.0, 2.0, 0, 0, False, "<script>")
    text = Report((wild,), QUICK, "quick", 1.0, "0").to_html()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_the_report_states_samples_bounds_and_confidence(report):
    plain = json.loads(report.to_json())
    assert plain["passed"] is True
    assert plain["confidence"] == 0.999
    said = " ".join(plain["statements"])
    assert "Clopper-Pearson" in said
    assert "0 violations" in said
    samples = [one["samples"] for one in plain["verdicts"] if one["check"] == "choice"]
    assert max(samples) == SHORT.batch
    assert all(one["note"] for one in plain["verdicts"] if one["check"] == "choice")
    table = report.to_markdown()
    assert all(f"| {name} |" in table for name in MECHANISMS)


def test_unpayable_prices_survive_json():
    with mutants.MUTANTS["exact_total_leaked"].plant():
        verdicts = mutants.MUTANTS["exact_total_leaked"].verdicts()
    assert any(np.isinf(one.found) for one in verdicts)
    made = Report(tuple(verdicts), QUICK, "quick", 1.0, "0")
    assert json.loads(made.to_json())["passed"] is False


@pytest.fixture
def one_process(monkeypatch):
    monkeypatch.setattr("blowfish_fast._support.machine.usable_cores", lambda: 1)
    monkeypatch.setattr("blowfish_fast.audit.plan.QUICK", TINY)


def test_the_command_writes_its_report(one_process, tmp_path):
    figures = tmp_path / "figures.json"
    arguments = ["audit", "--quick", "--mechanism", "laplace", "--out", str(tmp_path)]
    arguments += ["--record", str(figures), "--workers", "1"]
    done = RUN.invoke(application, arguments, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "0 violations" in done.output
    assert json.loads((tmp_path / "audit.json").read_text())["passed"] is True
    assert not (tmp_path / "progress.jsonl").exists()
    assert json.loads(figures.read_text()).keys() == {"audit", "grey_box"}
    assert (tmp_path / "audit.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "audit.md").read_text().startswith("| subject |")
    again = RUN.invoke(application, arguments).exception
    assert "audit.json exists already" in str(again)


def test_the_command_speaks_json_and_tables(one_process):
    arguments = ["audit", "--quick", "--mechanism", "ordered", "--samples", "1000"]
    done = RUN.invoke(application, [*arguments, "--json"])
    found = json.loads(done.stdout)
    assert {one["subject"] for one in found["verdicts"]} == {"ordered"}
    done = RUN.invoke(application, [*arguments, "--table"])
    assert re.search(r"^\| ordered \|", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("table", "name"),
    [(mutants, "halved_noise"), (beyond_noise, "counts_among_the_details")],
)
def test_a_violation_ends_with_code_1_and_a_name(one_process, table, name):
    with getattr(table, name)():
        done = RUN.invoke(application, ["audit", "--quick", "--mechanism", "laplace"])
    assert done.exit_code == 1
    assert "violation: laplace under" in " ".join(done.stderr.split())


def test_too_few_samples_are_refused():
    with pytest.raises(bf.BlowfishError, match="at least 1000"):
        audit_command.choose_plan(True, 10)
    scaled = audit_command.choose_plan(False, 1_000_000)
    assert (scaled.batch, scaled.noise, scaled.runs) == (1_000_000, 40_000, 1000)
    assert audit_command.choose_plan(False, None) is LONG
