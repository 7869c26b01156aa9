"""Lists on disk, and intervals of listed and named cells, by exact sums over counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, InputError, ReleaseFileError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.strategies.cells_above import cell_scales
from blowfish_fast.release.file import write_archive
from blowfish_fast.release.wide.listed_intervals import (
    NoiseTail,
    beforehand_bounds,
    listed_bounds,
)
from tests.reference.gap_digits import gaussian_upper, laplace_upper

LINE = bf.Domain(2**20, names=["port"])
POLICY = bf.policies.AddRemove(LINE)
CASES = [
    (Budget(Fraction(1)), 20),
    (Budget(Fraction(1, 10)), 200),
    (Budget(Fraction(4)), 3),
    (Budget(Fraction(1, 100), 2), 40),
    (Budget(Fraction(1, 2), 2), 9),
]


def heavy(seed=3, **options):
    counts = np.zeros(2**20, dtype=int)
    counts[[80, 443]] = [500, 2000]
    made = bf.SparseLaplace(POLICY, epsilon=1, **options)
    return made.release(counts, rng=seed)


@pytest.mark.parametrize(("budget", "threshold"), CASES, ids=str)
def test_tails_are_those_of_the_definition(budget, threshold):
    scales = cell_scales(POLICY, budget)
    tail = NoiseTail(scales, threshold)
    for k in (-20, -1, 0, 1, 2, 7, threshold):
        wanted = (
            laplace_upper(k, np.exp(-1.0 / tail.width))
            if budget.power == 1
            else gaussian_upper(k, tail.width**2)
        )
        found = float(np.exp(tail.log_upper(np.array(k))))
        assert found == pytest.approx(wanted, rel=1e-9)
    half = tail.half_width(0.05)
    assert 2 * np.exp(tail.log_upper(np.array(half + 1))) <= 0.05
    if half:
        assert 2 * np.exp(tail.log_upper(np.array(half))) > 0.05 * (1 - 1e-6)


@pytest.mark.parametrize("miss", [0.05, 0.3])
@pytest.mark.parametrize(("budget", "threshold"), CASES, ids=str)
def test_intervals_hold_every_count_as_often_as_they_say(budget, threshold, miss):
    scales = cell_scales(POLICY, budget)
    tail = NoiseTail(scales, threshold)
    reach = threshold + int(20 * tail.width) + 5
    noisy = np.arange(threshold, reach + int(20 * tail.width) + 5)
    taken = listed_bounds(noisy, threshold, tail, miss)
    half = tail.half_width(miss)
    everywhere = np.ones(noisy.size, dtype=bool)
    named = beforehand_bounds(noisy, everywhere, threshold, half)
    plain_held = []
    for count in range(0, reach, max(1, int(tail.width / 2))):
        law = np.exp(tail.log_upper(noisy - count))
        law -= np.exp(tail.log_upper(noisy + 1 - count))
        listed = float(np.exp(tail.log_upper(np.array(threshold - count))))
        held = law[(taken.low <= count) & (count <= taken.high)].sum() / listed
        assert held >= 1 - miss - 1e-6
        inside = law[(named.low <= count) & (count <= named.high)].sum()
        plain_held.append(inside / listed)
        inside += (1 - listed) * (count <= threshold - 1 + half)
        assert inside >= 1 - miss - 1e-6
    # The trap: plain intervals never hold an empty cell that is listed.
    if threshold > half:
        assert plain_held[0] == 0.0


def test_lower_ends_are_0_and_then_jump_above_the_threshold():
    scales = cell_scales(POLICY, Budget(Fraction(1, 10)))
    tail = NoiseTail(scales, 410)
    found = listed_bounds(np.array([410, 440, 450, 510]), 410, tail, 0.05)
    assert found.low.tolist() == [0, 0, 417, 480]
    assert found.high.tolist() == [419, 469, 480, 540]


def test_all_listed_cells_hold_together_in_wider_intervals():
    release = heavy()
    each, every = release.cells(0.9), release.cells(0.9, together=True)
    assert (every["low"] <= each["low"]).all()
    assert (every["high"] > each["high"]).any()
    alone, both = release.at([80, 5], 0.9), release.at([80, 5], 0.9, together=True)
    assert (both["high"] > alone["high"]).all()


def test_a_list_is_saved_and_loaded(tmp_path):
    release = bf.SparseLaplace(POLICY, epsilon=1, false_cells=30).release(
        np.zeros(2**20, dtype=int)
    )
    release.save(tmp_path / "heavy.blowfish")
    loaded = bf.SparseRelease.load(tmp_path / "heavy.blowfish")
    assert loaded.to_bytes() == release.to_bytes()
    assert str(loaded.cells()) == str(release.cells())
    assert loaded.threshold == release.threshold
    assert loaded.expected_false_cells == release.expected_false_cells <= 30
    assert repr(loaded).startswith("SparseRelease(")
    assert loaded.to_dict()["cells"] == loaded.listed.keys.tolist()
    with pytest.raises(ReleaseFileError, match=r"SparseRelease\.load"):
        bf.HistogramRelease.load(tmp_path / "heavy.blowfish")


def test_frames_say_that_a_seeded_list_is_an_experiment():
    release = heavy()
    assert "seeded" in str(release.cells().to_dict())
    assert list(release.to_table(None)) == ["port", "count"]
    assert "experiment" in release._repr_html_()


def test_a_gaussian_list_on_a_wide_domain_is_loaded():
    wide = bf.WideDomain.product(
        bf.Domain.from_levels(["a", "b"], name="kind"), bf.Domain(2**28, names=["at"])
    )
    data = bf.SparseHistogram.from_records(wide, {"kind": ["b"] * 99, "at": [5] * 99})
    made = bf.SparseGaussian(bf.policies.AddRemove(wide), rho="0.1", false_cells="1e-6")
    release = made.release(data, rng=1)
    again = bf.SparseRelease.from_bytes(release.to_bytes())
    assert again.cells()["kind"].tolist() == ["b"]
    assert again.at({"kind": ["a", "b"], "at": [5, 5]})["listed"].tolist() == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keys", np.array([5, 4])),
        ("keys", np.array([4, 2**20])),
        ("keys", np.array([-1, 4])),
        ("noisy", np.array([1, 99])),
        ("noisy", np.array([99])),
        ("threshold", 0),
        ("told", 2**21),
        ("rates", np.array([0])),
        ("unit", 0),
        ("units", 0),
        ("details", []),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(name, value, monkeypatch):
    import blowfish_fast.release.wide.sparse_release as module

    release = heavy(false_cells="1e-6")
    kept = {}
    monkeypatch.setattr(module, "write_archive", lambda _, plain: kept.update(plain))
    release.to_bytes()
    broken = write_archive(module.MEMBER, {**kept, name: value})
    with pytest.raises(ReleaseFileError):
        bf.SparseRelease.from_bytes(broken)


@pytest.mark.parametrize("cells", [[-1], [2**20], "x", [1.5], {"other": [3]}], ids=str)
def test_cells_outside_the_domain_are_refused(cells):
    with pytest.raises((DomainError, InputError)):
        heavy().at(cells)


def test_no_cells_named_is_an_empty_table():
    assert len(heavy().at([])) == 0
