"""What an audit says: verdicts, tables, pages, and the strength of its checks."""

from __future__ import annotations

import json
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.commands import audit as audit_command
from blowfish_fast.audit import (
    QUICK,
    Report,
    Verdict,
    audit_everything,
    black_box,
    verdicts,
    walk,
)
from blowfish_fast.audit.black_box import (
    EXCESS,
    Power,
    Timing,
    audit_edge,
    detection_power,
    timing_correlation,
)
from blowfish_fast.audit.confidence import evidence_from_counts
from blowfish_fast.audit.grey_box import edge_cost, observe_choice
from blowfish_fast.audit.neighbours import all_edges, joint_moves
from blowfish_fast.audit.plan import AuditTask
from blowfish_fast.audit.report import COLUMNS
from blowfish_fast.audit.verdicts import MORE, PROMISED_POWER, _power_verdicts
from blowfish_fast.audit.walk import examine
from blowfish_fast.audit.witness import watch
from blowfish_fast.measure.selectors.partitions import DyadicTree

LINE = bf.Domain(4)
FULL = bf.policies.Full(LINE)
TASK = AuditTask("mechanism", "laplace", 4, "full")


def verdict(check, subject="one", family="full", **changed):
    made = Verdict(check, subject, family, "Domain(4 cells)", 1.0, 0.5, 0, 0, True, "")
    return made._replace(**changed)


GOOD = Report(
    (
        verdict("prices", events=6, found=0.75),
        verdict("sensitivity", events=96, found=0.7),
        # A half where 2 is allowed: a quarter.
        verdict("choice", family="line", samples=1000, found=0.5, epsilon=2.0),
        verdict("prices", "two", events=3),
        verdict("power", "two", found=1.0, samples=50, events=10),
    ),
    QUICK,
    "quick",
    61.0,
    "0.1",
)
BAD = replace(
    GOOD,
    verdicts=(
        *GOOD.verdicts,
        verdict("run", passed=False, found=math.inf, note="<x>"),
    ),
)


@pytest.mark.parametrize(
    ("wide", "left_out"), [(119, audit_command.LEFT_OUT), (120, ())]
)
def test_a_narrow_screen_leaves_out_what_sentences_tell(monkeypatch, wide, left_out):
    shown = {}
    monkeypatch.setattr(audit_command, "console", SimpleNamespace(width=wide))
    monkeypatch.setattr(audit_command, "show", lambda line: None)
    monkeypatch.setattr(
        audit_command,
        "show_table",
        lambda heads, rows, *, title, styles: shown.update(heads=heads, first=rows[0]),
    )
    audit_command._show_report(GOOD)
    every = zip(COLUMNS, GOOD.rows()[0], strict=True)
    kept = [one for one in every if one[0] not in left_out]
    assert list(zip(shown["heads"], shown["first"], strict=True)) == kept


def test_a_row_sums_up_a_subject():
    one, two = GOOD.rows()
    passed = "3 checks passed"
    assert one == ("one", "2", "6", "0.750", "96", "2,000", "0.250", "-", passed)
    assert two[2:4] == ("3", "0.500")
    assert two[7:] == ("1.00", "2 checks passed")
    assert BAD.rows()[0][-1] == "1 VIOLATIONS"
    fewer = verdict("choice", samples=10)
    measured = replace(GOOD, verdicts=(*GOOD.verdicts, fewer)).figures()["audit"]
    assert "(up to 1e+03 per side)" in measured["measured"]
    table = GOOD.to_markdown().splitlines()
    assert table[2] == "| " + " | ".join(one) + " |"
    assert any(line.startswith("- Power: an excess of 5 %") for line in table)


def test_a_page_shows_violations_families_and_what_was_not_offered():
    good, bad = GOOD.to_html(), BAD.to_html()
    assert "<title>Audit: no violation</title>" in good
    assert "<h2>Violations</h2>" not in good
    assert "VIOLATIONS FOUND" in bad
    assert '<td class="bad">VIOLATION</td><td>&lt;x&gt;</td>' in bad
    assert '<td class="good">passed: 1 checks, 2,000 samples</td>' in good
    assert '<td class="none">not offered</td>' in good


def test_a_report_is_written_in_three_forms(tmp_path):
    paths = BAD.write(tmp_path / "new" / "folder")
    assert [one.name for one in paths] == ["audit.json", "audit.html", "audit.md"]
    plain = json.loads(paths[0].read_text())
    assert plain["passed"] is False
    assert [one["found"] for one in plain["verdicts"]][-1] is None
    assert paths[1].read_text() == BAD.to_html()
    assert paths[2].read_text() == BAD.to_markdown()


@pytest.mark.long
def test_whole_releases_are_compared_around_an_edge():
    mechanism, _ = bf.Laplace.example(LINE, FULL, 1)
    finding = audit_edge(mechanism, (0, 3), samples=60, confidence=0.999)
    assert finding.passed
    assert finding.samples == 60
    loud = bf.Laplace(FULL, bf.workloads.Identity(LINE), epsilon=4)
    found = audit_edge(loud, (0, 3), samples=400, confidence=0.999)
    assert 0.5 < found.evidence.log_ratio <= 4
    tables, _ = bf.Contingency.example(LINE, FULL, 1)
    assert audit_edge(tables, (0, -1), samples=8, confidence=0.999).passed
    clusters, _ = bf.KMeans.example(LINE, FULL, 1)
    assert audit_edge(clusters, (0, 1), samples=8, confidence=0.999).passed


def test_a_large_excess_is_seen_and_none_where_there_is_none():
    policy = bf.policies.AddRemove(LINE)
    step = watch(*bf.Laplace.example(LINE, policy, 1)).measured[0]
    seen = detection_power(
        step.result, policy, (0, -1), samples=4000, trials=2, excess=Fraction(2)
    )
    assert seen == Power(2, 2, 4000, Fraction(2))
    none = detection_power(
        step.result, policy, (0, -1), samples=4000, trials=2, excess=0 * EXCESS
    )
    assert none.seen == 0
    assert none.share == 0
    assert (seen.share, Power(1, 4, 10, EXCESS).share) == (1, 0.25)


def test_plants_are_looked_for_in_noise_that_no_other_one_has_seen(monkeypatch):
    # An audit draws its two sides from its seed and the next one.
    seeds: list[int] = []

    def audit(*given, seed, **more):
        seeds.extend([seed, seed + 1])
        return SimpleNamespace(passed=False)

    monkeypatch.setattr(black_box, "audit_noise", audit)
    policy = bf.policies.AddRemove(LINE)
    step = watch(*bf.Laplace.example(LINE, policy, 1)).measured[0]
    power = detection_power(step.result, policy, (0, -1), samples=9, trials=5)
    assert (power.seen, len(set(seeds))) == (5, 10)


def test_partitions_inside_a_mechanism_are_audited_in_a_tenth(monkeypatch):
    asked: list[tuple[int, int, int]] = []

    def audit(*given, samples, runs, steps, **more):
        asked.append((samples, runs, steps))
        return []

    monkeypatch.setattr(verdicts, "audit_selector", audit)
    plan = QUICK._replace(batch=500_000, runs=7_000, steps=50)
    for less in (False, True):
        which = DyadicTree(), FULL, Fraction(1)
        assert list(verdicts.choice_verdicts(TASK, plan, which, less)) == []
    whole, less = asked
    assert whole == (plan.batch_under("full"), 7_000, 50)
    assert less == (whole[0] // 10, 700, 5)


def test_time_that_follows_noise_does_not_pass():
    assert Timing(0.0, 101).passed
    assert Timing(0.3, 101).passed
    late = Timing(-0.31, 101)
    assert late.standard_errors == pytest.approx(3.1)
    assert not late.passed
    assert "-0.3100, 3.1 standard errors from 0 (101 batches" in str(late)
    measured = timing_correlation(40)
    assert measured.batches == 40
    assert -1 <= measured.correlation <= 1


def test_a_timing_task_gives_one_verdict(monkeypatch):
    task = AuditTask("timing", "discrete noise", 1, "any")
    monkeypatch.setattr(
        "blowfish_fast.audit.verdicts.timing_correlation", lambda n: Timing(1.0, n)
    )
    (found,) = examine(task, QUICK._replace(timing=50))
    assert (found.check, found.passed, found.found) == ("timing", False, 7.0)


def test_a_check_that_fails_or_is_refused(monkeypatch):
    refused = AuditTask("mechanism", "ordered", (3, 4), "full")
    assert examine(refused, QUICK) == []

    def broken(*_given):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(walk, "mechanism_verdicts", broken)
    (found,) = examine(TASK, QUICK)
    assert (found.check, found.passed, found.found) == ("run", False, math.inf)
    assert found.note == "laplace: ZeroDivisionError: by nothing"


def test_a_power_task_plants_an_excess_in_the_first_measurement_that_costs():
    task = AuditTask("power", "laplace", 4, "add_remove")
    (found,) = examine(task, QUICK._replace(noise=500, trials=2))
    assert (found.check, found.events) == ("power", 2)
    assert found.samples in (500 // 16, 500, MORE * 500)


@pytest.mark.parametrize(
    ("shares", "asked", "passed"),
    [
        ([1.0], [100], [True]),
        ([0.5, 0.9], [100, 1600], [True]),
        ([0.5, 0.5, 0.9], [100, 1600, 1600 * MORE], [True]),
        ([0.5, 0.5, 0.5], [100, 1600, 1600 * MORE], [False]),
        ([None], [100], []),
    ],
)
def test_power_is_found_with_as_few_samples_as_show_it(shares, asked, passed):
    given, waiting = [], iter(shares)

    def plant(*, samples, trials, confidence):
        given.append(samples)
        share = next(waiting)
        return None if share is None else Power(int(share * 10), 10, samples, EXCESS)

    found = list(_power_verdicts(TASK, QUICK, 1600, 10, plant))
    assert given == asked
    assert [one.passed for one in found] == passed
    assert all(one.epsilon == PROMISED_POWER for one in found)


def test_several_workers_find_what_one_finds(monkeypatch):
    plan = QUICK._replace(sampled=(), priced=(2,))
    alone = audit_everything(plan, mechanisms=["ordered"])
    monkeypatch.setattr(walk, "worker_processes", ThreadPoolExecutor)
    told = []
    both = audit_everything(
        plan,
        mechanisms=["ordered"],
        workers=2,
        progress=lambda done, every, _name: told.append((done, every)),
    )
    assert both == alone
    assert told[-1] == (len(told), len(told))


def test_sides_without_samples_say_nothing():
    empty, some = (Counter(), Counter()), (Counter("aab"), Counter("abbb"))
    for pilots, counted in ((empty, some), (some, empty), ((some[0], empty[0]), some)):
        assert evidence_from_counts(pilots, counted)[:3] == (0.0, None, 0)
    assert evidence_from_counts(some, some).events > 0


def test_the_ratio_that_was_seen_is_that_of_both_sides():
    sides = (Counter(a=9000, b=1000), Counter(a=1000, b=9000))
    bound, _, events, seen = evidence_from_counts(sides, sides)
    assert seen == pytest.approx(np.log(9))
    assert (events, 2.0 < bound < seen) == (2, True)


def test_an_edge_that_moves_an_exact_row_has_no_price():
    mechanism, data = bf.Laplace.example(
        LINE, bf.policies.Blocks(LINE, [0, 0, 1, 1]), 1
    )
    kept = mechanism.release(data, rng=1).measurements[0]
    assert edge_cost(kept, 0, 1) == 1
    with pytest.raises(AssertionError, match=r"edge \(0, 2\) moves a row"):
        edge_cost(kept, 0, 2)


def test_neighbours_without_known_counts_differ_in_one_edge():
    assert list(joint_moves(FULL)) == [[one] for one in all_edges(FULL)]


def test_a_choice_that_nothing_moves_is_not_priced():
    generator = np.random.default_rng(1)
    still = bf.policies.Graph(LINE, np.zeros((0, 2), dtype=np.int64))
    for policy in (still, bf.policies.AddRemove(bf.Domain(1))):
        found = observe_choice(
            DyadicTree(), policy, charged=Fraction(1), pairs=4, generator=generator
        )
        assert found is None
