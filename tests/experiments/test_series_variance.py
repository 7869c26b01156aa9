"""Variance and coverage of running totals, as the experiment measures them."""

from __future__ import annotations

import pytest

import experiments.series_variance as series


def test_what_is_drawn_has_the_predicted_variance_and_coverage(monkeypatch):
    monkeypatch.setattr(series, "WEEKS", 8)
    monkeypatch.setattr(series, "LOOKED_AT", (4, 8))
    lines = list(series.series_report(trials=100))
    assert len(lines) == len(series.SCHEMES) * len(series.WINDOWS)
    for line in lines:
        # 2,000 cells of nearly normal noise: three standard errors of a variance.
        assert line.ratio == pytest.approx(1, abs=3 * (2 / 2000) ** 0.5)
        assert line.missed <= line.allowed
        assert line.spent == 0.5
        assert f"exponent {line.exponent}, {line.asked}: variance" in str(line)
