"""Every baseline on a million cells; what is too large is refused before any charge."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
import blowfish_fast.measure.selectors.selections as queries
from blowfish_fast.errors import BlowfishError, InputError, SizeError
from blowfish_fast.mechanisms.registry import MECHANISMS

MILLION = 2**20
METHODS = [
    *("ahp", "efpa", "hierarchy", "mwem", "noise_first"),
    *("php", "privelet", "structure_first"),
]


@pytest.fixture(scope="module")
def million():
    generator = np.random.default_rng(1)
    heavy = np.minimum(generator.zipf(1.5, size=MILLION), 10**7)
    return np.where(generator.random(MILLION) < 0.05, heavy, 0)


@pytest.mark.long
@pytest.mark.parametrize("name", METHODS)
def test_a_million_cells_finish(name, million):
    line = bf.Domain(MILLION)
    asked = bf.workloads.Ranges.random(line, 200, rng=1)
    mechanism = MECHANISMS[name](bf.policies.AddRemove(line), asked, epsilon="0.1")
    release = mechanism.release(million, rng=1)
    assert np.isfinite(release.estimate).all()
    error = np.abs(release.answer(asked) - asked.answer(million)).mean()
    # Far better than to answer "nothing"; most of these ranges hold many records.
    assert error < 0.2 * asked.answer(million).mean()


def spent_on(ledger, build, data):
    """Return what a refused request cost."""
    with pytest.raises(BlowfishError):
        ledger.release(build(), data)
    return ledger.spent


def test_counts_whose_squares_overflow_are_refused_before_the_charge():
    line = bf.Domain(4096)
    policy = bf.policies.Full(line)
    cells = bf.workloads.Identity(line)

    def build():
        return bf.mechanisms.StructureFirst(
            policy, cells, epsilon=1, largest_count=2**26
        )

    with pytest.raises(InputError, match="cut the counts at"):
        build()
    ledger = bf.Ledger(None, epsilon=1, policy=policy)
    assert spent_on(ledger, build, np.zeros(4096, int)) == 0


def test_too_many_weights_are_refused_before_the_charge(monkeypatch):
    monkeypatch.setattr(queries, "MOST_COEFFICIENTS", 100)
    line = bf.Domain(64)
    weighted = bf.workloads.Linear(line, np.full((2, 64), 3.0))
    policy = bf.policies.Full(line)

    def build():
        return bf.mechanisms.Mwem(policy, weighted, epsilon=1)

    with pytest.raises(SizeError, match=r"more than 2\^26 cells"):
        build()
    ledger = bf.Ledger(None, epsilon=1, policy=policy)
    assert spent_on(ledger, build, np.zeros(64, int)) == 0


@pytest.mark.parametrize("name", ["efpa", "noise_first", "php", "structure_first"])
def test_grids_are_refused_before_the_charge(name):
    grid = bf.Domain((4, 4))
    policy = bf.policies.Full(grid)
    ledger = bf.Ledger(None, epsilon=1, policy=policy)

    def build():
        return MECHANISMS[name](policy, bf.workloads.Identity(grid), epsilon=1)

    assert spent_on(ledger, build, np.zeros((4, 4), int)) == 0
