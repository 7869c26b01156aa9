"""Made-up counts, and the examples that every mechanism builds from them."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.mechanisms.example_data import repeated, stepped, striped
from blowfish_fast.mechanisms.registry import MECHANISMS

LINE = bf.Domain(6)


def test_made_up_counts_are_as_drawn():
    assert stepped(LINE, 3, height=5).counts.tolist() == [0, 0, 5, 5, 10, 10]
    assert striped(LINE, 3, height=5).counts.tolist() == [0, 0, 5, 5, 0, 0]
    assert repeated(LINE, 3, height=5).counts.tolist() == [0, 5, 10, 0, 5, 10]
    assert stepped(bf.Domain((2, 3)), 2, height=1).counts.shape == (2, 3)


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"kmeans"}))
def test_examples_take_the_options_that_they_state(name):
    kind = MECHANISMS[name]
    mechanism, data = kind.example(LINE, bf.policies.AddRemove(LINE), 1)
    for option, value in kind.example_case.options.items():
        assert getattr(mechanism, option, value) == value
    asks_cells = isinstance(mechanism.workload, bf.workloads.Identity)
    assert asks_cells == kind.example_case.cells
    assert np.asarray(data.counts).sum() > 0
