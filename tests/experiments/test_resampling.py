"""Standard errors of tables, and how sure a verdict is."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.advice.experiments.experiment import (
    Experiment,
    PaperVerdict,
    Settings,
    Summary,
    means,
)
from blowfish_fast.advice.experiments.result_files import DRAWS, with_errors

SETTINGS = Settings(trials=40, seed=3)


class Mean(Experiment):
    """One mean, claimed to be above 10."""

    name = title = protocol = "mean"

    def tasks(self, settings):
        return []

    def run(self, task, settings):
        return []

    def summary(self, rows, settings):
        found = means(rows, "method")[("one",)]
        above = "reproduced" if found > 10 else "not reproduced"
        line = ["one", found, 0.1]
        return Summary(["method", "error", "eps"], [line], PaperVerdict(above, "x"))

    def draw(self, rows, figure):
        return None


def judged(centre, trials=40, width=1.0):
    noise = np.random.default_rng(1).normal(scale=width, size=trials)
    rows = [
        {"method": "one", "trial": trial, "error": centre + float(off)}
        for trial, off in enumerate(noise)
    ]
    return with_errors(Mean(), rows, SETTINGS, Mean().summary(rows, SETTINGS))


def test_a_mean_has_the_error_of_the_mean():
    number, error = str(judged(100.0).lines[0][1]).split(" ± ")
    assert float(number) == pytest.approx(100.0, abs=1.0)
    # The noise has a deviation of about 1: 1 / sqrt(40) = .16.
    assert 0.08 < float(error) < 0.28


def test_a_clear_verdict_holds_always_and_a_close_one_does_not():
    clear, close = judged(100.0).verdict, judged(10.0).verdict
    assert f"in {DRAWS} of {DRAWS} redrawings" in clear.by
    assert f"in {DRAWS} of {DRAWS}" not in close.by


def test_two_trials_tell_nothing():
    assert isinstance(judged(100.0, trials=2).lines[0][1], float)


def test_what_never_changes_has_no_error_and_large_errors_no_exponent():
    line = judged(10_000.0, width=1_000.0).lines[0]
    assert line[2] == 0.1
    assert "e" not in line[1]
    assert 80 < float(line[1].split(" ± ")[1]) < 280
