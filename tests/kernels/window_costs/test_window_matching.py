"""Pairs within a window: equal to every pairing tried, ties and noise included."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.kernels.window_costs import window_matching
from blowfish_fast.kernels.window_costs.window_matching import window_mates
from tests.generated import example_count
from tests.reference import window_matching as reference
from tests.reference.interval_partition import hashed_words

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(120)


@st.composite
def problems(draw):
    cells = draw(st.integers(1, 7))
    whole = st.integers(0, draw(st.sampled_from([2, 9, 40])))
    several = {"min_size": cells, "max_size": cells}
    return {
        "totals": draw(st.lists(whole, **several)),
        "sizes": draw(st.lists(st.sampled_from([1, 1, 2, 4]), **several)),
        "parts": draw(st.lists(st.sampled_from([0, 0, 0, 1]), **several)),
        "window": draw(st.sampled_from([1, 2, 3, 6, 8])),
        "grid": draw(st.integers(-3, 1)),
        "price": draw(st.integers(0, 12)),
        "pair_price": draw(st.integers(0, 20)),
    }


def found(problem, **noise):
    arrays = {
        name: np.array(problem[name], dtype=np.int64)
        for name in ("totals", "sizes", "parts")
    }
    return window_mates(**{**problem, **arrays}, **noise).tolist()


@settings(max_examples=EXAMPLES)
@given(problems())
def test_equals_every_pairing_tried_with_ties_by_the_last_cell(problem):
    assert found(problem) == list(reference.window_mates(**problem))


@settings(max_examples=EXAMPLES)
@given(problems(), st.integers(0, 2**32))
def test_noise_goes_on_every_candidate_at_its_own_place(problem, seed):
    noise = {"scales": (Fraction(7, 2), Fraction(7)), "words": hashed_words(seed)}
    assert found(problem, **noise) == list(reference.window_mates(**problem, **noise))


def test_blocks_do_not_show(monkeypatch, generator):
    totals = generator.integers(0, 30, 50)
    settings = {
        "window": 4,
        "grid": -2,
        "price": 40,
        "scales": (Fraction(9), Fraction(18)),
        "words": hashed_words(5),
    }
    whole = window_mates(totals, **settings)
    monkeypatch.setattr(window_matching, "BLOCK", 3)
    assert (window_mates(totals, **settings) == whole).all()


@pytest.mark.parametrize("window", [1, 3, 8])
def test_mates_are_mutual_and_near(window, generator):
    cells = 60 if config.DISABLE_JIT else 20_000
    totals = generator.integers(0, 1000, cells)
    mates = window_mates(totals, window=window, grid=0, price=150)
    assert (mates[mates] == np.arange(cells)).all()
    assert np.abs(mates - np.arange(cells)).max() == window


def test_a_wider_window_never_costs_more(generator):
    totals = generator.integers(0, 50, 40)
    costs = []
    for window in range(1, 9):
        mates = window_mates(totals, window=window, grid=0, price=6)
        gaps = np.abs(totals - totals[mates]).sum() // 2
        buckets = np.unique(np.minimum(mates, np.arange(40))).size
        costs.append(gaps + 6 * buckets)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


def test_large_costs_stay_exact():
    totals = np.array([2**50, 0, 2**50 - 1, 1], dtype=np.int64)
    mates = window_mates(totals, window=2, grid=-4, price=2**40)
    assert mates.tolist() == [2, 3, 0, 1]


def test_bad_shapes_are_refused():
    line = np.zeros(4, dtype=np.int64)
    with pytest.raises(InputError, match="1 to 8 apart"):
        window_mates(line, window=9, grid=0, price=1)
    with pytest.raises(InputError, match="Flatten"):
        window_mates(np.zeros((2, 2), dtype=np.int64), window=1, grid=0, price=1)
    with pytest.raises(InputError, match="as many sizes"):
        window_mates(line, line[:3], window=1, grid=0, price=1)
    with pytest.raises(InputError, match="source of words"):
        window_mates(line, window=1, grid=0, price=1, scales=(Fraction(1), Fraction(2)))
    with pytest.raises(SizeError, match="smaller window"):
        window_mates(np.zeros(2**24 + 1, dtype=np.int64), window=8, grid=0, price=1)
    for options in ({"sizes": line}, {"grid": 63}, {"grid": 2**64}, {"grid": -63}):
        with pytest.raises(InputError, match="one cell at least"):
            window_mates(line, **{"window": 1, "grid": 0, "price": 1, **options})
    with pytest.raises(InputError, match="one for two"):
        window_mates(line, window=1, grid=0, price=1, scales=(), words=print)
