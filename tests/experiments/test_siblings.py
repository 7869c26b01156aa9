"""The default beside its siblings: sets, lines and means, in a small form."""

from __future__ import annotations

import re

import numpy as np
import pytest

import experiments.siblings as siblings


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(siblings, "CELLS", 128)
    monkeypatch.setattr(siblings, "RANGES", 12)
    monkeypatch.setattr(siblings, "EPSILONS", ("0.5",))
    monkeypatch.setattr(siblings, "THINNED", {"made": 4})
    hills = siblings.FreshSet(siblings._hills, 500)
    monkeypatch.setattr(siblings, "GENERATED", {"hills": hills})


def test_every_generated_set_has_its_records_and_is_the_same_again():
    for name, made in siblings.GENERATED.items():
        counts = made.counts(name)
        assert counts.shape == (siblings.CELLS,)
        assert counts.sum() == made.records
        assert np.array_equal(counts, made.counts(name))


def test_lines_name_every_method_and_end_with_means(small, tmp_path):
    (tmp_path / "1d").mkdir()
    np.save(tmp_path / "1d" / "made.npy", np.full(128, 40))
    lines = list(siblings.sibling_report(tmp_path, 2, ("ranges", "cells")))
    ranges = [line for line in lines if re.match("ranges, .*2 releases", line)]
    assert [line.split(",")[1].strip() for line in ranges] == [
        "hills",
        "code points",
        "library lines",
        "made / 4",
    ]
    assert all("any length" in line and "greedy tree" in line for line in ranges)
    means = [line for line in lines if line.startswith("ranges: default over")]
    assert len(means) == 7
    assert not any("any length" in line for line in lines if line.startswith("cells"))


def test_sparse_sets_have_more_releases(small, monkeypatch):
    monkeypatch.setattr(siblings, "TRIALS", 1)
    monkeypatch.setattr(siblings, "SPARSE_TRIALS", 2)
    monkeypatch.setattr(siblings, "SPARSE_MASS", 300)
    lines = list(siblings.sibling_report(None, None, ("prefixes",)))
    assert "hills, epsilon 0.5, 2 releases" in lines[0]
    assert "code points, epsilon 0.5, 1 releases" in lines[1]
