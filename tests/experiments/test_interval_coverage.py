"""The coverage of intervals and of certificates, in their short forms."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from experiments import interval_coverage
from experiments.interval_coverage import (
    CoverageRow,
    false_claims,
    made_up_counts,
    write_coverage,
)


def test_the_table_is_written_as_data_and_holds_what_it_says(tmp_path, monkeypatch):
    from blowfish_fast.mechanisms.registry import MECHANISMS

    chosen = {name: MECHANISMS[name] for name in ("laplace", "structure_first")}
    monkeypatch.setattr(interval_coverage, "MECHANISMS", chosen)
    monkeypatch.setattr(interval_coverage, "DRAWS", 60)
    path = tmp_path / "intervals.csv"
    rows = write_coverage(path, trials=1)
    written = list(csv.DictReader(path.read_text().splitlines()))
    assert sum(one["mechanism"] == "laplace" for one in written) == 9
    assert [float(one["truth"]) for one in written] == pytest.approx(
        [one.truth for one in rows], abs=5e-4
    )
    for one in rows:
        assert isinstance(one, CoverageRow)
        if one.said == "truth":
            assert one.truth == one.noise
        assert 0.5 < one.width < 2.5
    bucketed = [one for one in rows if one.mechanism == "structure_first"]
    assert min(one.truth for one in bucketed) < 0.9


@pytest.mark.parametrize("kind", ["quantile", "curve", "all", "shape"])
def test_few_claims_are_false(kind):
    assert false_claims(kind, 40) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
    assert made_up_counts()["spike"].max() == 2000
