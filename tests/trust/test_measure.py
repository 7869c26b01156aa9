"""The measurements of the table, small: each can fail."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import LONG, Report
from blowfish_fast.audit.choices import selector_names
from blowfish_fast.audit.verdicts import Verdict
from blowfish_fast.measure import total_error

from . import bad_inputs, coverage, ledger_stress, measure, populations

pytestmark = pytest.mark.long

LINE = bf.Domain(16)
GOOD = {"goal": "none", "measured": "0", "passed": True}
LAPLACE = bf.Laplace(bf.policies.Full(LINE), bf.workloads.Identity(LINE), epsilon=1)


def test_every_measurement_has_goal_figure_and_verdict():
    with patch.object(bad_inputs, "COUNTS", {"NaN": bad_inputs.COUNTS["NaN"]}):
        entry = measure.measure_inputs()
    assert {"goal", "measured", "passed"} <= entry.keys()
    assert entry["passed"], entry["otherwise"]
    assert set(measure.MEASURES) >= {"mutants", "coverage", "kills", "concurrency"}


def test_an_input_that_is_taken_by_mistake_is_counted():
    good = {"good after all": bad_inputs.GOOD}
    with patch.object(bad_inputs, "COUNTS", good):
        entry = measure.measure_inputs()
    assert not entry["passed"]
    assert {one[2] for one in entry["otherwise"]} == {"accepted"}


def test_intervals_miss_as_rarely_as_they_say():
    data = np.arange(16)
    misses = coverage.missed(LAPLACE, data, 200)
    assert misses.max() <= coverage.allowed(200)


def test_intervals_that_are_too_short_are_seen():
    right = bf.HistogramRelease.intervals

    def short(self, workload, confidence=0.95, *, of):
        return right(self, workload, confidence=0.7, of=of)

    with patch.object(bf.HistogramRelease, "intervals", short):
        misses = coverage.missed(LAPLACE, np.arange(16), 200)
    assert misses.max() > coverage.allowed(200)


def test_the_truth_is_missed_as_rarely_as_is_said():
    entry = measure.measure_truth(4, names=["gaussian", "laplace", "uniform_grid"])
    assert entry["passed"]
    assert {"gaussian, rho, 1-D", "laplace, epsilon, 2-D"} <= entry["misses"].keys()
    with patch.object(coverage, "BETA", 0.9):
        short = measure.measure_truth(6, names=["laplace"])
    assert min(short["misses"].values()) > 0.5


def test_intervals_that_say_truth_and_are_too_short_are_seen():
    right = bf.HistogramRelease.intervals

    def short(self, workload, confidence=0.95, *, of):
        return right(self, workload, confidence=0.5, of=of)

    with patch.object(bf.HistogramRelease, "intervals", short):
        entry = measure.measure_truth(8, names=["laplace"])
    assert not entry["passed"]


def test_misses_of_the_population_are_counted():
    entry = measure.measure_population(200)
    assert entry["passed"], entry["measured"]
    designs = {"simple", "bernoulli", "poisson", "stratified", "weighted", "means"}
    later = {"means of strata", "rates", "raked counts, all cells at once"}
    assert designs | later <= entry["misses"].keys()
    assert "bernoulli, cells of 15" in entry["misses"]


def test_a_sample_that_is_taken_for_everybody_is_seen():
    right = bf.HistogramRelease.intervals

    def scaled(self, workload, confidence=0.95, *, of):
        # The noise is counted, and the draw of the sample is not.
        return right(self, workload, confidence, of="truth") / populations.RATE

    with patch.object(bf.HistogramRelease, "intervals", scaled):
        entry = measure.measure_population(200, ["bernoulli"])
    assert not entry["passed"]


def test_a_variance_that_is_read_off_few_records_is_seen():
    small = ["means of small groups at epsilon 12"]
    assert measure.measure_population(600, small)["passed"]

    def without_steps(spread, variance, miss, _):
        # From the first record on, and without half a step added: Lemma PN18.
        return total_error.small_noise_half_widths(spread, variance, miss)

    # Without the room of Lemma PN20 either, which would hold them.
    sums = "blowfish_fast.release.sampling.drawn_sums.variance_of_few"
    with (
        patch.object(total_error, "many_steps_half_widths", without_steps),
        patch(sums, lambda above, *_: np.maximum(above, 0.0)),
    ):
        entry = measure.measure_population(600, small)
    assert not entry["passed"]


def test_records_that_a_small_group_does_not_show_are_not_forgotten():
    small = ["means of small groups at epsilon 500"]
    assert measure.measure_population(600, small)["passed"]
    sums = "blowfish_fast.release.sampling.drawn_sums.variance_of_few"
    with patch(sums, lambda above, *_: np.maximum(above, 0.0)):
        entry = measure.measure_population(600, small)
    assert not entry["passed"]


def test_people_of_whom_no_record_was_drawn_are_not_forgotten():
    few = ["few people at epsilon 500, weighted"]
    assert measure.measure_population(1_000, few)["passed"]
    numbers = "blowfish_fast.release.sampling.numbers.variance_of_few"
    with patch(numbers, lambda above, seen, steps, miss: np.maximum(above, 0.0)):
        entry = measure.measure_population(1_000, few)
    assert not entry["passed"]


def test_misses_of_means_and_medians_of_groups_are_counted():
    entry = measure.measure_groups(6, names=["laplace", "dawa"])
    assert entry["passed"]
    assert "mean, laplace" in entry["misses"]
    right = bf.HistogramRelease.intervals

    def short(self, workload, confidence=0.95, **how):
        return right(self, workload, confidence=0.1, **how)

    with patch.object(bf.HistogramRelease, "intervals", short):
        entry = measure.measure_groups(12, names=["laplace"])
    assert not entry["passed"]
    assert entry["misses"]["count, laplace"] > 0.5


def test_false_certificates_are_counted_by_kind():
    entry = measure.measure_certificates(20)
    assert entry["passed"]
    assert all(kind in entry["measured"] for kind in ("quantile", "curve", "shape"))
    with patch.object(measure, "certificate_report", lambda _: [("all", 0.3, 0.1)]):
        assert not measure.measure_certificates(20)["passed"]


def test_budgets_in_rho_are_priced_and_drawn():
    entry = measure.measure_rho(2_000, names=["gaussian", "privelet"])
    assert entry["passed"]
    assert "2 mechanisms" in entry["measured"]


def test_a_selector_is_drawn_from_and_an_excess_planted_in_it():
    entry = measure.measure_selections(4_000, names=["k_buckets"])
    assert "1 selectors, at least 4e+03 draws" in entry["measured"]
    # The others were left out.
    assert not entry["passed"]


def selected(samples, seen):
    choices = [
        Verdict("choice", name, "full", "d", 1.0, 0.5, samples, 4, True, "")
        for name in selector_names()
    ]
    power = [one._replace(check="power", found=seen, events=4) for one in choices]
    return (*choices, *(one._replace(passed=seen >= 0.9) for one in power))


@pytest.mark.parametrize(
    ("samples", "seen", "passed"),
    [(10**7, 1.0, True), (10**6, 1.0, False), (10**7, 0.75, False)],
)
def test_a_finished_audit_fills_its_rows(tmp_path, samples, seen, passed):
    path = tmp_path / "audit.json"
    path.write_text(Report(selected(samples, seen), LONG, "long", 60.0, "0").to_json())
    figures = measure.figures_of_audit(path)
    assert figures["selections"]["passed"] is passed
    noted = tmp_path / "figures.json"
    words = ["--audit", str(path), "--figures", str(noted)]
    assert measure.main(words) is passed
    assert json.loads(noted.read_text()).keys() == figures.keys()


def test_a_small_form_is_printed_and_not_noted(tmp_path, capsys):
    noted = tmp_path / "figures.json"
    with patch.dict(measure.MEASURES, kills=lambda number: GOOD | {"measured": number}):
        assert measure.main(["kills", "--number", "3", "--figures", str(noted)])
    assert capsys.readouterr().out == "kills: 3\n"
    assert not noted.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_few_kills_lose_nothing(tmp_path):
    found = ledger_stress.kills(tmp_path, 3, 30)
    assert found["kills"] >= 3
    assert found["uncharged"] == found["lost"] == found["changed"] == 0


def test_analysts_share_one_budget(tmp_path):
    with patch.object(ledger_stress, "ANALYSTS", 4):
        paid, rate, spent = ledger_stress.analysts(tmp_path, budget=12)
    assert (paid, spent) == (12, Fraction(12, 100))
    assert rate > 0
    assert min(ledger_stress.both_rates(tmp_path, rounds=1)) > 0


def test_charges_are_timed_in_tenths(tmp_path):
    first, last = ledger_stress.many_charges(tmp_path, 20)
    assert first > 0
    assert last > 0
