"""Ordered end to end: error as predicted, fits that help, totals that are public."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError, PrivacyError
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.strategies import PrefixSums
from blowfish_fast.release.grants import with_answers

CELLS = 64
LINE = bf.Domain(CELLS)
RANGES = bf.workloads.Ranges.random(LINE, 100, rng=1)
COUNTS = np.repeat([3, 0, 40, 1], 16)
POLICIES = {
    "line": bf.policies.Line(LINE),
    "threshold": bf.policies.Threshold(LINE, theta=5),
    "full": bf.policies.Full(LINE),
    "blocks": bf.policies.Blocks(LINE, np.repeat(np.arange(4), 16)),
    "add_remove": bf.policies.AddRemove(LINE),
}


@pytest.mark.parametrize(
    ("name", "fit"),
    [(name, "isotonic") for name in POLICIES]
    + [(name, "piecewise") for name in POLICIES if name != "add_remove"],
)
def test_fits_are_free_monotone_and_bounded(name, fit):
    policy = POLICIES[name]
    raw = bf.Ordered(policy, RANGES, epsilon=0.1, fit=None).release(COUNTS, rng=3)
    release = bf.Ordered(policy, RANGES, epsilon=0.1, fit=fit).release(COUNTS, rng=3)
    assert release.estimate.min() >= 0
    assert (release.unfitted == raw.estimate).all()
    # Intervals are centred before the fit, and hold the answer after it as well.
    held = with_answers(raw.intervals(RANGES), release.answer(RANGES))
    assert (with_answers(release.intervals(RANGES), raw.answer(RANGES)) == held).all()
    if not policy.has_bottom:
        assert release.estimate.sum() == pytest.approx(COUNTS.sum())


def test_totals_of_separate_stretches_stay_exact():
    policy = bf.policies.Blocks(LINE, np.repeat([2, 0, 1], [10, 30, 24]))
    for fit in (None, "isotonic", "piecewise"):
        estimate = (
            bf.Ordered(policy, RANGES, epsilon=0.1, fit=fit)
            .release(COUNTS, rng=2)
            .estimate
        )
        for part in (slice(10), slice(10, 40), slice(40, 64)):
            assert estimate[part].sum() == pytest.approx(COUNTS[part].sum())


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_fits_lower_the_error_on_flat_stretches(epsilon):
    line = bf.Domain(1024)
    counts = np.repeat([0, 7, 0, 0, 2, 0, 0, 30], 128)
    asked = bf.workloads.Identity(line)
    error = {}
    for fit in (None, "isotonic", "piecewise"):
        mechanism = bf.Ordered(bf.policies.Line(line), asked, epsilon=epsilon, fit=fit)
        error[fit] = np.mean(
            [
                np.square(mechanism.release(counts, rng=seed).estimate - counts)
                for seed in range(5)
            ]
        )
    assert error["isotonic"] < 0.6 * error[None]
    assert error["piecewise"] < 0.2 * error["isotonic"]


def test_absent_is_measured_and_never_read():
    policy = POLICIES["add_remove"]
    mechanism = bf.Ordered(policy, RANGES, epsilon=1)
    release = mechanism.release(COUNTS, rng=1)
    (measured,) = release.measurements
    assert not measured.scales.exact.any()
    # An edge from the first cell to absent changes every total.
    assert float(measured.scales.widths[0]) == pytest.approx(CELLS)
    assert release.estimate.min() >= 0
    sums = [mechanism.release(COUNTS, rng=seed).estimate.sum() for seed in range(30)]
    assert max(sums) > COUNTS.sum() > min(sums)


def test_piecewise_is_refused_where_the_total_is_private():
    with pytest.raises(InputError, match="total is private"):
        bf.Ordered(POLICIES["add_remove"], RANGES, epsilon=1, fit="piecewise")


def test_noise_that_pays_for_no_long_edge_is_refused():
    class Cheap(PrefixSums):
        def worst_edge(self, weights, policy, power=1):
            return int(weights.max())

    class Planted(PrefixSums):
        def scales(self, policy, epsilon):
            scales = super().scales(policy, epsilon)
            return Scales(scales.rates * 2, scales.unit, scales.exact)

    policy = POLICIES["threshold"]
    mechanism = bf.Ordered(policy, RANGES, epsilon=1)
    from blowfish_fast.audit.grey_box import edge_cost
    from blowfish_fast.measure.handle import Account
    from blowfish_fast.measure.randomness import Randomness

    def handle():
        return mechanism._handle(COUNTS, Account(mechanism.epsilon), Randomness(1))

    with pytest.raises(PrivacyError, match="scales are wrong"):
        handle().measure(Planted(CELLS), budget=mechanism.epsilon)
    # A strategy that is wrong about its own cost is found edge by edge.
    measured = handle().measure(Cheap(CELLS), budget=mechanism.epsilon)
    assert edge_cost(measured, 3, 4) <= 1
    assert edge_cost(measured, 3, 8) > 4


def test_noise_shifts_with_the_counts_and_vanishes_for_large_epsilon():
    mechanism = bf.Ordered(POLICIES["line"], RANGES, epsilon=0.3, fit=None)
    one = mechanism.release(COUNTS, rng=5).estimate
    other = mechanism.release(COUNTS + 1, rng=5).estimate
    np.testing.assert_allclose(other - one, 1.0)
    for fit in (None, "isotonic", "piecewise"):
        exact = bf.Ordered(POLICIES["threshold"], RANGES, epsilon=1e6, fit=fit)
        np.testing.assert_allclose(exact.release(COUNTS).estimate, COUNTS, atol=1e-9)


@pytest.mark.parametrize("fit", [None, "isotonic", "piecewise"])
@pytest.mark.parametrize("cells", [1, 2])
def test_tiny_lines_work(cells, fit):
    domain = bf.Domain(cells)
    asked = bf.workloads.Identity(domain)
    for policy in (bf.policies.Line(domain), bf.policies.Full(domain)):
        release = bf.Ordered(policy, asked, epsilon=1, fit=fit).release([5] * cells)
        assert release.estimate.sum() == 5 * cells
        assert release.intervals(asked).shape == (cells, 2)


def test_all_ranges_are_predicted_at_any_size():
    cells = 2**18
    line = bf.Domain(cells)
    ordered = bf.Ordered(
        bf.policies.Line(line), bf.workloads.AllRanges(line), epsilon=1
    )
    variance = ordered.expected_error(bf.workloads.Ranges(line, [0], [1]))[0]
    # Each of the n - 1 inner totals is an end of n ranges, the last total exact.
    expected = variance * (cells - 1.0) * cells
    assert ordered.expected_total_error() == pytest.approx(expected)
