"""Sources of words: what kernels refuse of strangers' ones, and the secure one."""

from __future__ import annotations

import copy
import os
import pickle

import numpy as np
import pytest

from blowfish_fast import kernels
from blowfish_fast.errors import InputError, RandomnessError
from tests.kernels.public_calls import words as placed_words

CELLS = np.array([2, 3, 8, 1, 0, 2, 0, 4])


def choose(words):
    return kernels.choose(words, 0, np.zeros((3, 3), dtype=np.int64), 4)


DRAWS = {
    "laplace": lambda words: kernels.laplace(words, 0, 5, 2, size=5),
    "geometric": lambda words: kernels.geometric(words, 0, 5, 2, size=5),
    "gaussian": lambda words: kernels.gaussian(words, 0, 50, 2, size=5),
    "narrow gaussian": lambda words: kernels.gaussian(words, 0, 1, 2, size=5),
    "choose": choose,
    "subtract_geometric": lambda words: kernels.subtract_geometric(
        np.zeros(5, dtype=np.int64), words, 0, 2.5
    ),
    "least_cost_partition": lambda words: kernels.least_cost_partition(
        CELLS, np.ones(4), np.ones(4), words, step=2.0**-8
    ),
    "sample_dyadic_partition": lambda words: kernels.sample_dyadic_partition(
        CELLS, words, rate=1, penalty=1
    ),
}


def counting_on(_, count, state=np.random.default_rng(1)):  # noqa: B008
    """Give the next words of a generator, whatever the place."""
    return state.integers(0, 2**64, size=count, dtype=np.uint64)


def beginning_anew(_, count):
    """Give the first words of a generator, whatever the place."""
    return np.random.default_rng(1).integers(0, 2**64, size=count, dtype=np.uint64)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize(
    ("source", "received"),
    [
        (lambda _, count: np.random.default_rng(1).random(count), "float64"),
        (lambda _, count: np.ones(count, dtype=np.int64), "int64"),
        (lambda _, count: [7] * count, "list"),
        (lambda _, count: np.ones(count + 1, dtype=np.uint64), "of shape"),
        (lambda _, count: np.ones(count - 1, dtype=np.uint64), "of shape"),
    ],
)
def test_words_of_another_kind_or_number_are_refused(name, source, received):
    with pytest.raises(InputError, match=f"words of uint64.*received.*{received}"):
        DRAWS[name](source)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("source", [counting_on, beginning_anew])
def test_words_that_do_not_follow_from_their_place_are_refused(name, source):
    with pytest.raises(InputError, match="two different ones for place"):
        DRAWS[name](source)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["laplace", "geometric", "gaussian", "narrow gaussian"]
)
def test_words_that_leave_a_draw_open_for_ever_end_in_an_error(name):
    with pytest.raises(InputError, match="source repeats itself"):
        DRAWS[name](lambda _, count: np.zeros(count, dtype=np.uint64))


def test_points_that_are_rejected_for_ever_end_in_an_error(monkeypatch):
    from blowfish_fast.kernels.sampling import discrete_gaussian as module

    monkeypatch.setattr(module, "_MOST_LOOKS", 0)
    with pytest.raises(InputError, match="0 looks left a draw undecided"):
        kernels.gaussian(placed_words, 0, 10**9, 1, size=20_000)


def test_a_secure_source_serves_every_kernel_and_keeps_its_words():
    words = kernels.secure_words()
    for draw in DRAWS.values():
        draw(words)
    assert words(3, 4).dtype == np.uint64
    np.testing.assert_array_equal(words(3, 4)[2:], words(5, 2))
    assert words(0, 0).shape == (0,)
    assert not np.array_equal(words(0, 8), kernels.secure_words()(0, 8))
    with pytest.raises(InputError, match="not negative"):
        words(-1, 2)


def test_a_secure_source_is_never_doubled():
    words = kernels.secure_words()
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(RandomnessError, match="would repeat its noise"):
            double(words)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            words(0, 1)
            os.write(writing, b"drawn")
        except RandomnessError:
            os.write(writing, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert os.read(reading, 10) == b"refused"
    os.close(reading)
