"""Weaker policies beside stronger ones: the chain, lines and means, in a small form."""

from __future__ import annotations

import re
from itertools import pairwise

import experiments.siblings as siblings
import experiments.weaker_policies as weaker


def test_every_policy_is_implied_by_the_one_before():
    chain = weaker.policy_chain(64)
    assert len(chain) == 6
    for stronger, weak in pairwise(chain.values()):
        assert stronger.implies(weak)
        assert not weak.implies(stronger)


def test_lines_name_every_policy_and_end_with_means(monkeypatch):
    for module in (siblings, weaker):
        monkeypatch.setattr(module, "CELLS", 128)
    monkeypatch.setattr(siblings, "RANGES", 12)
    monkeypatch.setattr(weaker, "EPSILONS", ("0.5",))
    hills = siblings.FreshSet(siblings._hills, 500)
    monkeypatch.setattr(siblings, "GENERATED", {"hills": hills})
    monkeypatch.setattr(weaker, "KINDS", ("ranges", "cells"))
    lines = list(weaker.weaker_report(None, 2))
    ranges = [line for line in lines if re.match("ranges, .*all moves", line)]
    assert [line.split(",")[1].strip() for line in ranges] == [
        "hills",
        "code points",
        "library lines",
    ]
    assert all("1/32 of the line" in line for line in ranges)
    means = [line for line in lines if re.match(r"[a-z, ]+: .* over ", line)]
    assert len(means) == 5 + 5
