"""Arrays of cells of many kinds, for the tests of the partition kernels."""

from __future__ import annotations

import numpy as np


def jumping_mean(cells, rng, jump=10**9):
    """Cells whose window means jump over many of their values at every slide.

    Two thirds of the cells cancel each other in threes, so the mean of a window whose
    length is no multiple of three swings by jump / length; the last third lies
    within the swing, at every magnitude.
    """
    index = np.arange(cells)
    magnitude = jump * 2.0 ** -rng.uniform(3, 20, cells)
    inside = (magnitude * rng.choice([-1, 1], cells)).astype(np.int64)
    return 2 * jump + np.select([index % 3 == 0, index % 3 == 1], [jump, -jump], inside)


def jumping_median(cells, length):
    """Cells whose windows of an even length have a median that jumps at every slide.

    High and low alternate with a period one longer than the window, so that the cell
    left out is high and low in turn. The first cells lie in between, all distinct.
    """
    index = np.arange(cells)
    swinging = np.where(index % (length + 1) % 2 == 0, 10**6, 0)
    return np.where(index < cells // 4, 1 + index, swinging)


def whole_cells(kind, cells, rng):
    index = np.arange(cells)
    return {
        "zero": lambda: np.zeros(cells, dtype=np.int64),
        "constant": lambda: np.full(cells, 7),
        "two values": lambda: rng.integers(0, 2, cells),
        "few values": lambda: rng.integers(0, 5, cells),
        "poisson": lambda: rng.poisson(50 * (1.2 + np.sin(index / 9))),
        "sparse": lambda: np.where(
            rng.random(cells) < 0.05, np.minimum(rng.zipf(1.5, cells), 10**7), 0
        ),
        "steps": lambda: np.repeat(rng.integers(0, 9, cells), 5)[:cells],
        "distinct": lambda: np.exp(rng.normal(8, 1.5, cells)).astype(np.int64),
        "permuted": lambda: rng.permutation(cells).astype(np.int64),
        "sorted": lambda: np.sort(rng.integers(0, 10**6, cells)),
        "alternating": lambda: np.where(index % 2 == 0, 10**6, 0),
        "alternating distinct": lambda: np.where(
            index % 64 == 0, 10**6 + index, index * 7919 % 1000003
        ),
        "saw": lambda: (index % 100) * 1000 + index % 7,
        "spike": lambda: np.where(index == cells // 2, 2**40, index % 5),
        "negative": lambda: rng.integers(-1000, 1000, cells),
        "jumping mean": lambda: jumping_mean(cells, rng, 10**6),
    }[kind]()


WHOLE_KINDS = (
    "zero",
    "constant",
    "two values",
    "few values",
    "poisson",
    "sparse",
    "steps",
    "distinct",
    "permuted",
    "sorted",
    "alternating",
    "alternating distinct",
    "saw",
    "spike",
    "negative",
    "jumping mean",
)
