"""Lists of cells at or above a threshold: scale, law, and a cut that is total."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
import blowfish_fast.measure.strategies.cells_above as cells_above
from blowfish_fast.audit import policy_families
from blowfish_fast.audit.lists import compare_with_law
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.errors import PolicyError, PrivacyError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.measure.strategies.cells_above import CellsAbove, cell_scales

LINE = bf.Domain(4)
BOTH = [Budget(Fraction(1)), Budget(Fraction(1, 2), 2)]


@pytest.mark.parametrize("budget", BOTH, ids=lambda one: one.currency)
@pytest.mark.parametrize("shape", [5, (3, 4)])
def test_one_row_has_the_scale_that_all_cells_have_on_a_dense_domain(shape, budget):
    for policy in policy_families(bf.Domain(shape)).values():
        single = policy.unconstrained
        wanted = Cells.under(single).scales(single, budget)
        noisy = wanted.rates[: single.domain.size][~wanted.exact[: single.domain.size]]
        found = cell_scales(single, budget)
        assert set(noisy.tolist()) == {int(found.rates[0])}
        assert found.unit == wanted.unit
        lister = CellsAbove(single.domain.size, 3, 9)
        every = Cells.under(single)
        assert lister.cost(single, found) == every.cost(single, wanted)
        bound = every.cost_in_rho(single, wanted)
        exact = lister.cost_in_rho(single, found)
        assert exact <= bound <= exact * (1 + Fraction(1, 2**20))


def test_a_policy_under_which_nothing_moves_is_refused():
    still = bf.policies.Graph(LINE, np.zeros((0, 2), dtype=int))
    with pytest.raises(PolicyError, match="none does"):
        cell_scales(still, Fraction(1))


@pytest.mark.parametrize(("threshold", "most"), [(0, 5), (2.0, 5), (True, 5), (2, 0)])
def test_thresholds_are_whole_and_at_least_one(threshold, most):
    with pytest.raises(PrivacyError, match="a whole count of at least 1"):
        CellsAbove(4, threshold, most)


@pytest.mark.long
@pytest.mark.parametrize("budget", BOTH, ids=lambda one: one.currency)
@pytest.mark.parametrize("counts", [[0, 2, 0, 1], [0, 0, 0, 0], [9, 1, 3, 2]], ids=str)
def test_lists_follow_their_law(counts, budget):
    scales = cell_scales(bf.policies.AddRemove(LINE), budget)
    found = compare_with_law(CellsAbove(4, 2, 9), np.array(counts), scales, 3000, 5)
    assert found.passed, found


@pytest.mark.long
def test_lists_of_five_of_six_cells_are_lists_of_all_with_the_last_left_out():
    # The domain is no power of two: gaps reach beyond it.
    scales = cell_scales(bf.policies.AddRemove(bf.Domain(5)), Fraction(1))
    counts = np.array([0, 3, 0, 0, 1])
    assert compare_with_law(CellsAbove(5, 2, 9), counts, scales, 3000, 3).passed


def test_a_long_list_is_cut_in_the_order_of_the_domain(monkeypatch):
    scales = cell_scales(bf.policies.AddRemove(LINE), Fraction(1))
    filled = FilledCells(np.arange(0, 4000, 2), np.full(2000, 60))
    whole = CellsAbove(10**6, 12, 10**6).draw(filled, scales, Randomness(1))
    assert whole.told == 10**6
    assert whole.keys.size > 2000
    monkeypatch.setattr(cells_above, "FILLED_AT_ONCE", 300)
    short = CellsAbove(10**6, 12, 700).draw(filled, scales, Randomness(1))
    assert short.keys.size == 700
    # Cells are cut off behind the last one listed, filled or not.
    assert short.told == 1400 > short.keys[-1]
    np.testing.assert_array_equal(short.keys, whole.keys[:700])


def test_noise_drawn_in_parts_covers_every_filled_cell(monkeypatch):
    scales = cell_scales(bf.policies.AddRemove(LINE), Fraction(1))
    filled = FilledCells(np.arange(1000) * 2**50, np.full(1000, 10**6))
    monkeypatch.setattr(cells_above, "FILLED_AT_ONCE", 64)
    drawn = CellsAbove(2**60, 60, 10**4).draw(filled, scales, Randomness(1))
    np.testing.assert_array_equal(drawn.keys, filled.keys)
    assert np.unique(drawn.noisy - 10**6).size > 5


def test_excess_of_gaussian_noise_has_its_law(generator):
    scales = cell_scales(bf.policies.AddRemove(LINE), Budget(Fraction(1, 50), 2))
    drawn = cells_above._excess(scales, 4, 20_000, Randomness(3))
    place = np.arange(4, 80)
    law = np.exp(-np.square(place) / 50.0)
    law /= law.sum()
    mean = ((place - 4) * law).sum()
    spread = np.sqrt((np.square(place - 4 - mean) * law).sum() / drawn.size)
    assert abs(drawn.mean() - mean) < 5 * spread
    for height in range(4):
        share = (drawn == height).mean()
        assert abs(share - law[height]) < 5 * np.sqrt(law[height] / drawn.size)


def test_chances_close_to_a_word_are_decided_by_fractions(monkeypatch):
    gaps = np.array([0, 1, 2, 3, 7] * 40)
    words, variance = Randomness(2).stream(), Fraction(9)
    usual = cells_above._with_chances(words, 0, gaps, variance)
    monkeypatch.setattr(cells_above, "DOUBTFUL", 1.0)
    exact = cells_above._with_chances(words, 0, gaps, variance)
    np.testing.assert_array_equal(usual, exact)


def test_a_list_without_noise_is_refused():
    scales = cell_scales(bf.policies.AddRemove(LINE), BOTH[0])
    silent = scales._replace(rates=np.zeros_like(scales.rates))
    filled = FilledCells(np.array([1]), np.array([2]))
    with pytest.raises(PrivacyError, match="needs noise on every cell"):
        CellsAbove(4, 2, 9).draw(filled, silent, Randomness(1))


def test_a_doubtful_word_is_resolved_by_those_that_follow():
    import math

    from blowfish_fast.kernels.sampling.decimal_bounds import exponential_bounds

    exponent = Fraction(1, 3)
    low, _ = exponential_bounds(exponent, 80)
    first = math.floor(low * 2**64)

    def words(following):
        def read(position, count):
            return np.array([first if position == 0 else following], dtype=np.uint64)

        return read

    assert cells_above._keeps(words(0), 0, exponent)
    assert not cells_above._keeps(words(2**64 - 1), 0, exponent)
