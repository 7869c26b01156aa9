"""Half-widths of the noise beside the quantiles of drawn noise."""

from __future__ import annotations

import re

import pytest

import experiments.sharp_widths as sharp
from blowfish_fast.measure.linear_strategy import LinearStrategy


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(sharp, "CELLS", 32)
    monkeypatch.setattr(sharp, "RANGES", 12)
    monkeypatch.setattr(sharp, "EPSILONS", ("0.1",))


def read(lines):
    """Return the ratio at a miss of 0.05 by mechanism and kind of query."""
    found = {}
    for line in lines:
        name, _, rest = line.partition(", epsilon")
        kind = rest.partition("), ")[2].partition(":")[0]
        found[name, kind] = float(re.search(r": (\d\.\d+) at 0.05", rest).group(1))
    return found


def test_half_widths_are_within_a_few_percent_of_the_drawn_ones(small):
    ratios = read(sharp.sharpness_report(4000))
    assert len(ratios) == 9
    assert all(0.97 < one < 1.08 for one in ratios.values())


def test_half_widths_that_are_too_short_are_seen(small, monkeypatch):
    right = LinearStrategy.half_widths
    monkeypatch.setattr(
        LinearStrategy,
        "half_widths",
        lambda self, *asked: 0.7 * right(self, *asked),
    )
    lines = [*sharp.sharpness_report(2000)]
    assert max(read(lines).values()) < 0.8
    assert "misses with 0." not in lines[0]
