"""What samplers are given: places for draws, positions of words, ratios."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blowfish_fast import kernels
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    POSITION_LIMIT,
    check_start,
    draw_target,
)

pytestmark = pytest.mark.kernel


def test_draws_go_to_a_new_array_of_the_right_size():
    assert draw_target(1, 2, None, None).size == 1
    assert draw_target(np.ones(3), 2, None, None).size == 3
    assert draw_target(1, 2, 5, None).size == 5


def test_draws_go_to_the_array_that_is_given():
    given = np.empty(4, dtype=np.int64)
    assert draw_target(1, 2, None, given) is given
    assert draw_target(1, 2, 4, given) is given


@pytest.mark.parametrize(
    "given",
    [
        np.empty((2, 2), dtype=np.int64),
        np.empty(4),
        np.empty(8, dtype=np.int64)[::2],
    ],
    ids=["grid", "floats", "every second place"],
)
def test_other_arrays_are_refused(given):
    with pytest.raises(InputError, match="contiguous, writable, one-dimensional"):
        draw_target(1, 2, None, given)


def test_another_number_of_places_is_refused():
    with pytest.raises(InputError, match="5 draws need as many places"):
        draw_target(1, 2, 5, np.empty(4, dtype=np.int64))


def test_positions_end_where_those_of_first_words_do():
    check_start(0, 1)
    check_start(POSITION_LIMIT - 7, 7)
    for start, draws in ((-1, 1), (POSITION_LIMIT - 6, 7)):
        with pytest.raises(InputError, match="positions lie between 0 and"):
            check_start(start, draws)


def test_fractions_are_refused_where_whole_numbers_are_taken():
    tree = kernels.regular_tree(3, 2)
    assert kernels.tree_totals([1.0, 2, 3], tree)[-1] == 6
    for wrong in (0.5, math.nan, math.inf, 2.0**63):
        with pytest.raises(InputError, match="cut fractions off"):
            kernels.tree_totals(np.array([wrong, 1, 2]), tree)
        with pytest.raises(InputError, match="cut fractions off"):
            kernels.tree_totals(np.array([1, wrong, 2]), tree)
    with pytest.raises(InputError, match="cut fractions off"):
        kernels.haar_rows(np.array([0.5, 1.0]))


@pytest.mark.parametrize("words", [None, np.arange(5, dtype=np.uint64), 7])
def test_what_is_no_source_of_words_is_told_so(words):
    with pytest.raises(InputError, match="words are a function") as problem:
        kernels.laplace(words, 0, np.array([3]), np.array([1]))
    assert problem.value.code == "words_of_another_kind"
