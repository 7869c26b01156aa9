"""Tables of three attributes among those that the data choose.

The rule that offers them is ``mechanisms.chosen_tables_run.TablesRun._open_triples``.
"""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.release.chosen_release import read_tables
from blowfish_fast.workloads import Tables
from tests.mechanisms.test_chosen_tables import merged_intervals

P = bf.policies
FOURS = bf.WideDomain.product(*(bf.Domain(4, names=[name]) for name in "abcde"))


@pytest.fixture(name="parity", scope="module")
def cells_that_only_a_triple_shows():
    source = np.random.default_rng(3)
    cells = source.integers(0, 4, (5, 12_000))
    # Whoever knows one of the first two knows nothing of the third; who knows both all.
    cells[2] = (cells[0] // 2 ^ cells[1] // 2) * 2 + cells[2] // 2
    cells[4] = cells[3]
    return cells


def of_fours(people, ways, policy=None, **terms):
    mechanism = bf.ChosenTables(
        P.AddRemove(FOURS) if policy is None else policy,
        Tables(FOURS, ways=ways),
        choose="data",
        **(terms if "rho" in terms else {"epsilon": 1} | terms),
    )
    blocks = [people.astype(np.int32)]
    data = bf.TableCounts.from_cells(FOURS, mechanism.measured_tables, blocks)
    return mechanism.release(data, rng=1)


@pytest.mark.long
@pytest.mark.parametrize("terms", [{"epsilon": 1}, {"rho": "0.01"}])
def test_triples_are_chosen_where_tables_of_three_are_asked(parity, terms):
    true = np.zeros((4, 4, 4))
    np.add.at(true, tuple(parity[:3]), 1)
    pairs, triples = (of_fours(parity, ways, **terms) for ways in (2, 3))
    away = [
        np.abs(out.fitted("a", "b", "c").estimate - true).sum() / 24_000
        for out in (pairs, triples)
    ]
    assert away[0] > 0.4
    assert away[1] < 0.1
    assert "a x b x c" in triples.measured["table"].tolist()
    assert not any(len(axes) == 3 for axes in pairs.measured_cells())
    table = triples.table("a", "b", "c")
    merged = triples._firsts[0, 1, 2].table.sum(true).reshape(-1)
    bounds = merged_intervals(table)
    assert ((bounds[:, 0] <= merged) & (merged <= bounds[:, 1])).mean() > 0.85
    again = read_tables(triples.to_bytes())
    assert (again.fitted("a", "b", "c").estimate >= 0).all()
    assert again.measured["table"].tolist() == triples.measured["table"].tolist()


def test_triples_stay_within_the_size_of_the_model(parity):
    out = of_fours(parity, 3, cells=40)
    assert out.model.tree.cells <= 40
    assert not any(len(axes) == 3 for axes in out.measured_cells())


@pytest.mark.long
def test_triples_of_public_attributes_are_exact_and_screens_have_none(parity):
    still = {
        name: P.Graph(FOURS.marginal([name]), np.zeros((0, 2), dtype=int))
        for name in "abc"
    }
    out = of_fours(parity, 3, P.TablePolicy(FOURS, still))
    true = np.zeros((4, 4, 4))
    np.add.at(true, tuple(parity[:3]), 1)
    assert (out.table("a", "b", "c").estimate == true).all()
    np.testing.assert_allclose(out.fitted("a", "b", "c").estimate, true, atol=40)
    screened = of_fours(parity, 3, P.TablePolicy(FOURS, {}))
    assert "screen" in screened.measured["step"].tolist()
    assert not any(len(axes) == 3 for axes in screened.measured_cells())


@pytest.mark.long
def test_impossible_cells_count_for_triples_as_well(parity):
    mask = np.zeros((4, 4), dtype=bool)
    mask[:2, 2:] = True
    cells = parity.copy()
    cells[1] = np.where(mask[cells[0], cells[1]], cells[0], cells[1])
    out = of_fours(cells, 3, impossible={("a", "b"): mask})
    assert out.fitted("a", "b", "c").estimate[mask].max() < 1e-6
