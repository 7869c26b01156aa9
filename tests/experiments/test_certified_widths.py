"""Half-widths of certified intervals: what the report says of small histograms."""

import re

import numpy as np
import pytest

from blowfish_fast.errors import InputError
from experiments.certified_widths import width_report


def test_every_histogram_has_a_line_and_certified_intervals_hold(tmp_path):
    for folder, shape in (("1d", 256), ("2d", (16, 16))):
        (tmp_path / folder).mkdir()
        counts = np.random.default_rng(4).integers(0, 40, shape)
        np.save(tmp_path / folder / "counts.npy", counts)
    lines = list(width_report(tmp_path, trials=1))
    assert [line.split(":")[0] for line in lines] == [
        "counts, epsilon 0.1",
        "map counts, epsilon 0.1",
        "counts, epsilon 1.0",
        "map counts, epsilon 1.0",
    ]
    for line in lines:
        entries = re.findall(r"(\S+) ([\d.e+]+) / ([\d.]+)", line)
        assert len(entries) == (4 if line.startswith("map") else 6)
        for name, width, share in entries:
            assert float(width) > 0
            # At epsilon 1 no cells are joined, and intervals need no certificate.
            claimed = name in {"quantile", "curve"} and "epsilon 0.1" in line
            assert float(share) >= (0.95 if claimed else 0)


def test_without_a_folder_the_report_is_refused():
    with pytest.raises(InputError, match="measured on given histograms"):
        next(width_report(None))
