"""Generated histograms: the records asked for, every shape what it says, repeatable."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.advice.typical_error import DENSITIES, reference_shapes
from blowfish_fast.errors import InputError


@pytest.mark.parametrize("shape", [1, 2, 100, (8, 9), (3, 4, 5)])
@pytest.mark.parametrize("records", [0, 1, 10_000])
def test_each_has_exactly_the_records_asked_for(shape, records):
    domain = Domain(shape)
    made = reference_shapes(domain, records)
    assert set(made) == set(DENSITIES)
    for counts in made.values():
        assert counts.shape == domain.shape
        assert counts.dtype == np.int64
        assert counts.min() >= 0
        assert counts.sum() == records


def test_shapes_are_what_their_names_say():
    made = reference_shapes(Domain(1000), 100_000)
    assert made["even"].max() < 200
    assert (made["spikes"] > 0).sum() <= 20
    assert made["decay"][:150].sum() > 90_000
    assert np.unique(made["tail"]).size > 100
    assert np.abs(np.diff(made["bells"])).sum() < np.abs(np.diff(made["tail"])).sum()
    assert made["tail"].max() > 20 * np.median(made["tail"])


def test_shapes_are_always_the_same():
    one, two = (reference_shapes(Domain(50), 500) for _ in range(2))
    assert all((one[name] == two[name]).all() for name in one)


def test_impossible_numbers_are_refused():
    for records in (-1, 2**54):
        with pytest.raises(InputError, match="records must lie"):
            reference_shapes(Domain(4), records)
