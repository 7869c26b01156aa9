"""Callables as a stranger would write them: some right, the others each with one fault.

All take data and epsilon; what a person may change is one record.
"""

from __future__ import annotations

import math
import warnings

import numpy as np


def geometric(epsilon, rng, size=None):
    """Two-sided geometric noise: exactly epsilon for a count."""
    stop = 1 - math.exp(-epsilon)
    return rng.geometric(stop, size) - rng.geometric(stop, size)


def right_count(data, epsilon, rng):
    return int(len(data) + geometric(epsilon, rng))


def right_cells(data, epsilon, rng):
    return data + geometric(epsilon, rng, len(data))


def right_choice(data, epsilon, rng):
    """The exponential mechanism over the cells: one of them, by name."""
    weights = np.exp(epsilon / 2 * (data - data.max()))
    return "abc"[rng.choice(3, p=weights / weights.sum())]


def right_or_fails(data, epsilon, rng):
    """Fails by chance, whatever the data are."""
    if rng.random() < 0.1:
        raise ValueError("out of luck")
    return right_count(data, epsilon, rng)


def half_the_noise(data, epsilon, rng):
    return right_count(data, 2 * epsilon, rng)


def sensitivity_of_adding(data, epsilon, rng):
    """Half of what a change of value needs: two cells move."""
    return right_cells(data, epsilon, rng)


def noise_shared(data, epsilon, rng):
    """One draw for all cells: their differences are exact."""
    return data + rng.laplace(scale=1 / epsilon)


def leaky_exception(data, epsilon, rng):
    noisy = right_count(data, epsilon, rng)
    if noisy < 0:
        raise ValueError(f"{noisy} is below 0: {len(data)} records were counted")
    return noisy


def leaky_warning(data, epsilon, rng):
    if len(data) % 2:
        warnings.warn("an odd number of records", stacklevel=1)
    return right_count(data, epsilon, rng)


def seed_repeated(data, epsilon):
    return right_count(data, epsilon, np.random.default_rng(1))


def refuses_nobody(data, epsilon, rng):
    if not len(data):
        raise ValueError("no records")
    return right_count(data, epsilon, rng)


def not_a_number_of_nobody(data, epsilon, rng):
    noisy = right_count(data, epsilon, rng)
    return float("nan") if not len(data) else float(noisy)


def added_doubles(data, epsilon, rng):
    return len(data) + rng.laplace(scale=1 / epsilon)


def lists_what_is_there(data, epsilon, rng):
    """Values of no record are left out: who is alone appears and vanishes."""
    noisy = right_cells(data, epsilon, rng)
    return {cell: int(noisy[cell]) for cell in np.flatnonzero(data).tolist()}


def changes_its_data(data, epsilon, rng):
    """Right in itself, but for writing into what it was handed."""
    noisy = right_cells(data, epsilon, rng)
    data[:] = 0
    return noisy


RIGHT = {
    right_count: "records",
    right_cells: "counts",
    right_choice: "counts",
    right_or_fails: "records",
    changes_its_data: "counts",
}
WRONG = {
    half_the_noise: "records",
    noise_shared: "counts",
    leaky_exception: "records",
    leaky_warning: "records",
    seed_repeated: "records",
    refuses_nobody: "records",
    not_a_number_of_nobody: "records",
    added_doubles: "records",
    lists_what_is_there: "counts",
}
