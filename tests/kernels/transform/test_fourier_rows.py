"""Cosine and sine sums in whole numbers, and their sensitivity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.transform.fourier_rows import (
    STEP_BITS,
    circle_sums,
    circle_table,
    heaviest_column,
    largest_turn,
)
from tests.generated import example_count
from tests.reference import fourier_rows as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(40)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=24))
def test_sums_equal_the_definition(values):
    cells = len(values)
    expected = reference.waves(cells, cells // 2) @ np.array(values)
    sums = circle_sums(np.array(values), cells // 2)
    assert sums.reshape(-1).tolist() == expected.tolist()


@pytest.mark.parametrize("cells", [1, 2, 3, 4, 7, 64, 101])
def test_tables_are_symmetric(cells):
    cosines, sines = circle_table(cells).T.astype(int)
    mirrored = -np.arange(cells) % cells
    assert (cosines == cosines[mirrored]).all()
    if cells > 2:
        keep = 2 * np.arange(cells) != cells
        assert (sines[keep] == -sines[mirrored][keep]).all()
    assert cosines[0] == 2**STEP_BITS
    assert np.abs(sines).max() <= 2**STEP_BITS


@pytest.mark.long
@pytest.mark.parametrize("cells", [2, 3, 8, 13, 40])
def test_the_heaviest_column_is_that_of_the_matrix(cells):
    for frequencies in range(cells // 2 + 1):
        matrix = np.abs(reference.waves(cells, frequencies))
        expected = matrix.sum(axis=0).max() if frequencies else 0
        assert heaviest_column(cells, frequencies) == expected


def test_the_heaviest_column_is_far_below_the_root():
    # 65 coefficients of unit length on 4096 cells: .94, not the root of 65.
    unit = np.sqrt(2 / 4096) / 2**STEP_BITS
    assert heaviest_column(4096, 32) * unit + 1 / 64 == pytest.approx(0.944, abs=5e-4)


@pytest.mark.long
@pytest.mark.parametrize("cells", [2, 3, 8, 13, 40])
def test_no_move_exceeds_the_turn(cells):
    for frequencies in range(1, cells // 2 + 1):
        matrix = reference.waves(cells, frequencies)
        for longest in (1, 2, cells - 1):
            turn = largest_turn(cells, frequencies, longest)
            bound = 2**1.5 * 2**STEP_BITS * turn + 2 * frequencies
            for start in range(cells):
                for end in range(start + 1, min(start + longest, cells - 1) + 1):
                    moved = np.abs(matrix[:, start] - matrix[:, end]).sum()
                    assert moved <= bound * (1 + 1e-9)


def test_turns_follow_their_formula():
    distances = np.arange(1, 6)[:, None]
    expected = np.abs(np.sin(np.pi * distances * np.arange(1, 5) / 20)).sum(axis=1)
    assert largest_turn(20, 4, 5) == pytest.approx(expected.max())
    assert largest_turn(20, 4, 19) >= expected.max()


def test_sums_wrap_around_instead_of_failing():
    sums = circle_sums(np.array([2**61, 0, 0, 0]), 2)
    assert sums[0, 0] == ((2**61 << STEP_BITS) + 2**63) % 2**64 - 2**63


def test_bad_input_is_refused():
    for counts, frequencies in ((np.zeros((2, 2)), 1), (np.zeros(4), 3)):
        with pytest.raises(InputError, match="n / 2"):
            circle_sums(counts.astype(np.int64), frequencies)
    with pytest.raises(InputError, match="at least one cell"):
        circle_table(0)
