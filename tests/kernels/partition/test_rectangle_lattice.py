from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import config

from blowfish_fast.kernels.partition.rectangle_partition import (
    choice_table,
    is_half_empty,
    lattice_totals,
)
from blowfish_fast.kernels.partition.rectangle_prior import (
    Base,
    fixed_point_weights,
)
from blowfish_fast.kernels.sampling.exponential_choice import total_error
from blowfish_fast.kernels.window_costs.rectangle_costs import dyadic_rectangle_costs
from tests.reference import exponential_choice
from tests.reference import rectangle_partition as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 6 if config.DISABLE_JIT else 30
SHAPES = st.sampled_from([(1, 1), (1, 3), (2, 2), (3, 2), (2, 4), (3, 3), (5, 1)])


def lattice_of(counts, weights, quantile=(3, 4)):
    return lattice_totals(dyadic_rectangle_costs(counts, *quantile), weights)


def stored_rows(lattice):
    """Return the stored log-weights of every node that chooses."""
    rows = {}
    for (tall, wide), _ in lattice.weights.choices.items():
        high, broad = lattice.buckets[tall][wide].shape
        for row, column in itertools.product(range(high), range(broad)):
            empty = is_half_empty(row, tall, lattice.shape[0]) or is_half_empty(
                column, wide, lattice.shape[1]
            )
            if not empty:
                node = np.array([row * broad + column])
                table = choice_table(lattice, tall, wide, node)
                rows[(tall, wide), (row, column)] = table[0].tolist()
    return rows


def stored_law(counts, weights, quantile=(3, 4)):
    """Return the exact law of the sampler's output."""
    lattice = lattice_of(counts, weights, quantile)
    kinds = {levels: one.kinds for levels, one in weights.choices.items()}
    rows = stored_rows(lattice)
    return reference.stored_law(counts.shape, rows, kinds, weights.fraction_bits)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    st.data(),
    SHAPES,
    st.sampled_from([0.01, 0.3, 1.0, 5.0]),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.sampled_from([(3, 4), (1, 2), (7, 10)]),
    st.sampled_from([Base(), Base(0.2, 0.3, 0.4, 0.1)]),
    st.booleans(),
)
def test_stored_weights_give_the_intended_law(
    data, shape, rate, penalty, quantile, base, weighted
):
    counts = data.draw(arrays(np.int64, shape, elements=st.integers(0, 12)))
    tall, wide = ((side - 1).bit_length() for side in shape)
    factors = None
    if weighted:
        factors = [
            [(i + j + 1) / (tall + wide + 1) for j in range(wide + 1)]
            for i in range(tall + 1)
        ]
    weights = fixed_point_weights(
        shape,
        rate=rate,
        penalty=penalty,
        quantile=quantile,
        base=base,
        level_weights=factors and tuple(map(tuple, factors)),
    )
    intended = reference.intended_law(counts, rate, penalty, quantile, base, factors)
    stored = stored_law(counts, weights, quantile)
    assert stored.keys() == intended.keys()
    for partition, probability in intended.items():
        assert abs(stored[partition] - probability) < 1e-9


@pytest.mark.long
@settings(deadline=None, max_examples=EXAMPLES)
@given(arrays(np.int64, (3, 5), elements=st.integers(0, 20)))
def test_totals_add_up_the_choices_within_the_stated_error(counts):
    weights = fixed_point_weights(counts.shape, rate=0.7, penalty=1.5)
    lattice = lattice_of(counts, weights)
    bits = weights.fraction_bits
    for (levels, place), row in stored_rows(lattice).items():
        stored = lattice.totals[levels[0]][levels[1]][place]
        exact = exponential_choice.log_total(row, bits)
        error = abs(int(stored) - exact * 2**bits) / 2**bits
        assert error <= float(total_error(len(row), bits))


def test_a_node_with_an_empty_half_stands_for_the_other():
    counts = np.arange(15).reshape(3, 5)
    lattice = lattice_of(counts, fixed_point_weights((3, 5), rate=1, penalty=1))
    assert is_half_empty(1, 1, 3)
    assert not is_half_empty(0, 1, 3)
    assert not is_half_empty(2, 0, 3)
    below, right = lattice.totals[1][0], lattice.totals[0][3]
    assert (below[-1] == lattice.totals[0][0][-1]).all()
    assert right.shape == (3, 1)
    assert (lattice.totals[0][2][:, -1] == lattice.totals[0][1][:, -1]).all()


def test_hopeless_buckets_end_at_the_floor():
    counts = np.zeros((4, 4), dtype=np.int64)
    counts[1, 2] = 2**50
    weights = fixed_point_weights((4, 4), rate=1000, penalty=1e-3)
    lattice = lattice_of(counts, weights)
    floored = lattice.buckets[2][2][0, 0]
    assert floored == weights.floor == lattice.buckets[1][1][0, 1]
    # Three of the four windows are empty and save three buckets each.
    assert lattice.windows[2][2][0, 0, 0] == weights.floor + 9 * weights.penalty
    # The rest of the grid can still be one bucket each: the spike is cut out.
    law = stored_law(counts, weights)
    likely = max(law, key=law.get)
    assert (1, 2, 2, 3) in likely
    assert len(likely) <= 5


def test_blocks_of_nodes_do_not_matter(monkeypatch):
    from blowfish_fast.kernels.partition import rectangle_partition

    counts = np.random.default_rng(3).integers(0, 9, size=(7, 11))
    weights = fixed_point_weights(counts.shape, rate=0.5, penalty=1)
    whole = lattice_of(counts, weights)
    monkeypatch.setattr(rectangle_partition, "_BLOCK", 3)
    pieces = lattice_of(counts, weights)
    for one, other in zip(whole.totals, pieces.totals, strict=True):
        assert all((a == b).all() for a, b in zip(one, other, strict=True))
