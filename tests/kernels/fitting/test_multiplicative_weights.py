"""Multiplicative weights on runs of pieces, against dense updates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.fitting.multiplicative_weights import multiplicative_update
from tests.generated import example_count
from tests.reference import multiplicative_weights as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(60)


@st.composite
def problems(draw):
    """Masses, queries of a few disjoint runs, and targets near and far."""
    pieces = draw(st.integers(1, 12))
    masses = draw(
        st.lists(st.floats(0.01, 50), min_size=pieces, max_size=pieces).map(np.array)
    )
    pointers, starts, ends, values, targets = [0], [], [], [], []
    for _ in range(draw(st.integers(1, 4))):
        cuts = draw(
            st.lists(st.integers(0, pieces), unique=True, min_size=2, max_size=6)
        )
        cuts = sorted(cuts)
        for start, end in zip(cuts[::2], cuts[1::2], strict=False):
            starts.append(start)
            ends.append(end)
            values.append(draw(st.sampled_from([1.0, 1.0, -1.0, 0.5])))
        pointers.append(len(starts))
        targets.append(draw(st.floats(-50, 200)))
    total = draw(st.floats(1, 300))
    runs = [np.array(one) for one in (pointers, starts, ends)]
    return masses, *runs, np.array(values), np.array(targets), total


def dense(masses, pointers, starts, ends, values):
    queries = np.zeros((pointers.size - 1, masses.size))
    for query in range(pointers.size - 1):
        for run in range(pointers[query], pointers[query + 1]):
            queries[query, starts[run] : ends[run]] = values[run]
    return queries


@settings(max_examples=EXAMPLES)
@given(problems(), st.sampled_from([0.5, 2.0]), st.integers(1, 8))
def test_equals_the_definition(problem, step, passes):
    *arrays, targets, total = problem
    found = multiplicative_update(
        *arrays, targets, total=total, step=step, passes=passes
    )
    expected = reference.multiplicative_weights(
        arrays[0], dense(*arrays), targets, total, step, passes
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * total)


@pytest.mark.parametrize("total", [1e-6, 1.0, 1e6])
def test_sums_keep_their_digits_where_masses_swing(total):
    # One piece gains nearly all mass and loses it again, before another one is asked.
    masses, ones = np.ones(3), np.ones(3)
    pointers, starts, ends = np.arange(4), np.array([0, 0, 1]), np.array([1, 1, 2])
    arrays = (masses, pointers, starts, ends, ones)
    targets = np.array([9.0, -8.0, 0.7]) * total
    found = multiplicative_update(*arrays, targets, total=total, step=2.0, passes=3)
    expected = reference.multiplicative_weights(
        masses, dense(*arrays), targets, total, 2.0, 3
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_answers_are_reached_and_the_total_kept():
    masses = np.full(5, 20.0)
    pointers, starts, ends = np.array([0, 1, 2]), np.array([0, 2]), np.array([3, 4])
    found = multiplicative_update(
        masses,
        pointers,
        starts,
        ends,
        np.ones(2),
        np.array([70.0, 12.0]),
        total=100.0,
        step=2.0,
        passes=2000,
    )
    assert found.sum() == pytest.approx(100)
    assert found[:3].sum() == pytest.approx(70)
    assert found[2:4].sum() == pytest.approx(12)


def test_impossible_answers_leave_every_piece_alive():
    masses = np.full(3, 10.0)
    one = np.array([1])
    for target in (-1e9, 1e9):
        found = multiplicative_update(
            masses,
            np.array([0, 1]),
            one - 1,
            one,
            one.astype(float),
            np.array([target]),
            total=30.0,
            passes=50,
        )
        assert (found > 0).all()
        assert found.sum() == pytest.approx(30)


def test_a_query_over_everything_changes_nothing():
    masses = np.array([1.0, 2.0, 3.0])
    found = multiplicative_update(
        masses,
        np.array([0, 1]),
        np.array([0]),
        np.array([3]),
        np.ones(1),
        np.array([600.0]),
        total=6.0,
        passes=40,
    )
    np.testing.assert_allclose(found, masses)


def test_a_tolerance_saves_passes_and_little_else():
    masses = np.array([5.0, 5.0])
    one = np.array([1])
    arguments = (masses, np.array([0, 1]), one - 1, one, one * 1.0, np.array([8.0]))
    exact = multiplicative_update(*arguments, total=10.0, step=2.0, passes=10_000)
    quick = multiplicative_update(
        *arguments, total=10.0, step=2.0, passes=10_000, tolerance=1e-6
    )
    np.testing.assert_allclose(quick, exact, rtol=1e-4)


def test_bad_shapes_are_refused():
    one = np.array([1])
    good = {
        "masses": np.ones(2),
        "pointers": np.array([0, 1]),
        "starts": one - 1,
        "ends": one,
        "values": one * 1.0,
        "targets": one * 1.0,
    }
    for name, value, words in (
        ("ends", one + 2, "within"),
        ("starts", one - 2, "within"),
        ("ends", one * 0 - 2**62, "within"),
        ("pointers", np.array([0, 2]), "stretch"),
        ("pointers", np.array([0, 0, 1]), "stretch"),
        ("values", np.ones(2), "stretch"),
        ("masses", np.zeros(2), "positive"),
    ):
        with pytest.raises(InputError, match=words):
            multiplicative_update(**{**good, name: value}, total=1.0)
    with pytest.raises(InputError, match="before those"):
        multiplicative_update(
            good["masses"],
            np.array([0, 2, 1]),
            one - 1,
            one,
            one * 1.0,
            np.ones(2),
            total=1.0,
        )
    with pytest.raises(InputError, match="positive"):
        multiplicative_update(**good, total=0.0)
    three = np.arange(3)
    with pytest.raises(InputError, match="pulled to nothing"):
        multiplicative_update(
            np.array([2.25, 0.25, 1.0, 0.75]),
            np.arange(4),
            three,
            three + 1,
            np.array([0.0, 1.0, 0.75]),
            np.array([1.0, 0.25, 0.5]),
            total=5e-324,
            step=2.0,
            passes=2,
        )
