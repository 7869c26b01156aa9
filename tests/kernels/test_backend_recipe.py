"""The recipe of `docs/backend.md`: the noise of its DAWA is what the lemmas ask for."""

from __future__ import annotations

import doctest
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from blowfish_fast import kernels, partitions

PAGE = Path(__file__).parents[2] / "docs" / "backend.md"


@pytest.fixture(scope="module")
def recipe():
    """Return what the page defines."""
    text = PAGE.read_text().split("## From C, C++")[0]
    names: dict = {}
    for example in doctest.DocTestParser().get_examples(text):
        if example.source.startswith(("def ", "import ", "from ")):
            exec(example.source, names)
    return names


@pytest.mark.parametrize("cells", [2, 3, 64, 1000, 4096])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(7)])
def test_candidates_have_at_least_the_noise_of_the_proof(recipe, cells, epsilon):
    ours = partitions.LeastCost().noise(cells, epsilon)
    scales, step, cap = recipe["candidate_noise"](cells, epsilon)
    assert (step, cap) == (ours.step, ours.cap)
    # Both round the same fractions up; the page by at most one more float.
    assert (scales >= ours.scales).all()
    np.testing.assert_allclose(scales, ours.scales, rtol=1e-15)


@pytest.mark.parametrize("leaves", [1, 2, 7, 33])
@pytest.mark.parametrize("fan_out", [2, 3])
def test_no_path_of_nodes_costs_more_than_epsilon(recipe, leaves, fan_out):
    generator = np.random.default_rng(leaves)
    tree = kernels.regular_tree(leaves, fan_out)
    starts = generator.integers(0, leaves, 40)
    ends = generator.integers(starts + 1, leaves + 1)
    for epsilon in (Fraction(1, 1000), Fraction(3, 4), Fraction(20)):
        weights = kernels.greedy_scaling(starts, ends, None, leaves, fan_out)
        units = recipe["node_scales"](weights, epsilon)
        prices = [Fraction(2**20, int(unit)) if unit else Fraction(0) for unit in units]
        assert max(path_prices(prices, tree, leaves)) <= epsilon


def path_prices(prices, tree, leaves):
    """Yield the exact price of one record in each leaf, along its path to the root."""
    totals = [
        kernels.tree_totals(np.eye(leaves, dtype=np.int64)[leaf], tree)
        for leaf in range(leaves)
    ]
    for held in totals:
        yield sum(price for price, inside in zip(prices, held, strict=True) if inside)


def test_its_error_is_that_of_a_mechanism_and_not_of_noise_on_every_cell(recipe):
    steps = np.repeat([0, 500, 20, 900], 64)
    starts, ends = np.arange(0, 224), np.arange(32, 256)
    sums = np.concatenate(([0], steps.cumsum()))
    errors = []
    for _ in range(5):
        cells = recipe["dawa"](steps, starts, ends, Fraction(1))
        found = np.concatenate(([0], cells.cumsum()))
        errors.append(np.abs((found - sums)[ends] - (found - sums)[starts]).mean())
    # 0.6 in the mean of 20 runs, 1.4 at most; a wrong unit of scales would be off by a
    # factor of 2^20.
    assert np.mean(errors) < 15
