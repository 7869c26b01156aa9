"""Classes of colours: ends that are estimates, as many cells in each, labels."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.release.places.map_classes import (
    CLASSES,
    class_breaks,
    colour_classes,
)


def labels(*estimates):
    breaks = class_breaks(np.array(estimates, dtype=np.float64))
    return [each.label for each in colour_classes(breaks)]


def test_classes_hold_as_many_cells_each():
    ends = class_breaks(np.random.default_rng(3).permutation(100).astype(float))
    np.testing.assert_array_equal(ends, [0, 20, 40, 60, 80, 99])
    assert [each.colour for each in colour_classes(ends)] == list(CLASSES)


def test_many_empty_cells_are_a_class_and_the_rest_is_shared():
    ends = class_breaks(np.array([0.0] * 80 + list(range(1, 21))))
    np.testing.assert_array_equal(ends, [0, 1, 6, 11, 16, 20])


@pytest.mark.parametrize("seed", range(20))
def test_no_class_is_empty_and_ends_are_estimates(seed):
    rng = np.random.default_rng(seed)
    estimates = rng.poisson(rng.choice([0.2, 2.0, 50.0]), rng.integers(1, 60)) * 1.0
    ends = class_breaks(estimates)
    assert set(ends) <= set(estimates)
    assert (ends[0], ends[-1]) == (estimates.min(), estimates.max())
    inside = np.searchsorted(ends[1:-1], estimates, side="right")
    many = min(len(CLASSES), len(set(estimates.tolist())))
    assert sorted(set(inside.tolist())) == list(range(many))
    assert ends.size == many + 1


def test_labels_have_the_digits_that_tell_ends_apart():
    assert labels(5, 5, 5) == ["5"]
    assert labels(1, 2, 3, 4) == ["1 to 2", "2 to 3", "3 to 4", "4"]
    assert labels(0.11, 0.12, 0.5) == ["0.11 to 0.12", "0.12 to 0.50", "0.50"]
    assert labels(-0.3, 1200, 4321.5) == ["0 to 1,200", "1,200 to 4,322", "4,322"]


def test_fewer_classes_are_spread_over_the_shades():
    two = colour_classes(class_breaks(np.array([1.0, 9.0])))
    assert [each.colour for each in two] == [CLASSES[0], CLASSES[-1]]
    (one,) = colour_classes(class_breaks(np.array([3.0])))
    assert (one.begin, one.end, one.colour) == (3.0, 3.0, CLASSES[2])
