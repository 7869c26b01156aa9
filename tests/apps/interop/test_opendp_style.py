"""Measurements: the privacy map, and the real OpenDP where it is installed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.apps import interop
from blowfish_fast.audit import audit_measurements
from blowfish_fast.errors import InputError, PolicyError
from tests.generated import example_count

LINE = bf.Domain(8)


def _laplace(policy, epsilon=0.5):
    return bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=epsilon)


@pytest.fixture
def dp():
    prelude = pytest.importorskip("opendp.prelude")
    prelude.enable_features("contrib", "honest-but-curious")
    yield prelude
    prelude.disable_features("contrib", "honest-but-curious")


def test_the_map_multiplies_epsilon_by_the_steps():
    own = interop.as_measurement(_laplace(bf.policies.Line(LINE), epsilon=0.1))
    # The double below 3/10 would promise more than holds: the next one is returned.
    assert [own.map(steps) for steps in range(3)] == [0.0, 0.1, 0.2]
    assert own.map(3) == np.nextafter(0.3, 1)
    assert own.check(3, 0.3)
    assert not own.check(4, 0.3)
    assert own.output_measure == "MaxDivergence"
    assert own.input_domain == LINE
    assert bf.policies.Line(LINE).neighbours in own.input_metric
    assert "Laplace" in repr(own)


@settings(deadline=None, max_examples=example_count(50))
@given(st.decimals("0.001", "9", places=3), st.integers(0, 10**6))
def test_the_map_is_never_below_the_exact_loss(epsilon, steps):
    own = interop.as_measurement(_laplace(bf.policies.Full(LINE), epsilon))
    exact = steps * Fraction(str(epsilon))
    assert Fraction(own.map(steps)) >= exact
    assert own.check(steps, exact)
    assert float(exact) <= own.map(steps) <= float(exact) * (1 + 2**-50)


@pytest.mark.parametrize("mechanism", [bf.Laplace, bf.Ordered, bf.Hierarchy])
def test_group_privacy_holds_between_the_ends_of_a_chain(mechanism):
    # One record that moves d steps along the policy costs at most what the map says:
    # the exact loss of the noise that is drawn, from the rows before and after.
    domain = bf.Domain(6)
    policy = bf.policies.Line(domain)
    chosen = mechanism(policy, bf.workloads.AllRanges(domain), epsilon=0.5)
    assert all(price.passed for price in audit_measurements(chosen, [2] * 6))
    own = interop.as_measurement(chosen)
    (measured,) = chosen.release([2] * 6, rng=1).measurements
    scales = measured.scales
    for first in range(6):
        for second in range(6):
            moved = np.full(6, 2)
            moved[first] -= 1
            moved[second] += 1
            rows = measured.strategy.rows(np.full(6, 2)), measured.strategy.rows(moved)
            apart = np.abs(rows[0] - rows[1])
            loss = float((apart * scales.rates).sum() / scales.unit)
            steps = int(policy.distance(first, second))
            assert loss <= own.map(steps) * (1 + 1e-12)


@pytest.mark.parametrize("d_in", [-1, 0.5, "two", [1, 2]])
def test_steps_are_whole_and_not_negative(d_in):
    own = interop.as_measurement(_laplace(bf.policies.Full(LINE)))
    with pytest.raises(InputError):
        own.map(d_in)


def test_only_mechanisms_become_measurements():
    with pytest.raises(InputError, match="mechanism"):
        interop.as_measurement("dawa")


def test_a_measurement_releases_with_secure_noise():
    release = interop.as_measurement(_laplace(bf.policies.Full(LINE)))(np.arange(8))
    assert release.private
    assert release.estimate.shape == (8,)


def test_opendp_accepts_records_under_add_remove(dp):
    ranges = bf.workloads.AllRanges(LINE)
    dawa = bf.Dawa(bf.policies.AddRemove(LINE), ranges, epsilon=0.5)
    measurement = interop.as_opendp(dawa, whole_release=True)
    assert measurement.map(3) == 1.5
    assert measurement.check(1, 0.5)
    assert not measurement.check(2, 0.9)
    release = measurement([1, 2, 2, 7] * 50)
    assert release.private
    assert abs(release.estimate.sum() - 200) < 150


def test_opendp_gets_plain_numbers_and_takes_arrays_of_64_bits(dp):
    measurement = interop.as_opendp(_laplace(bf.policies.AddRemove(LINE), 50))
    for records in ([1, 2, 2], np.array([1, 2, 2])):
        found = measurement(records)
        assert isinstance(found, list)
        assert all(isinstance(one, float) for one in found)
        np.testing.assert_allclose(found, [0, 1, 2, 0, 0, 0, 0, 0], atol=0.9)
    narrow = interop.as_opendp(_laplace(bf.policies.AddRemove(LINE), 50), T="i32")
    assert len(narrow(np.array([1, 2, 2], dtype=np.int32))) == 8
    with pytest.raises(InputError, match='T is "i64" or "i32"'):
        interop.as_opendp(_laplace(bf.policies.AddRemove(LINE)), T="f64")


def test_opendp_chains_its_own_transformations_with_ours(dp):
    clamp = dp.t.make_clamp(
        dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance(), (0, 7)
    )
    own = interop.as_opendp(_laplace(bf.policies.AddRemove(LINE), 50), T="i32")
    chained = clamp >> own
    estimate = chained([-5, 3, 3, 99])
    assert chained.map(2) == 100.0
    np.testing.assert_allclose(estimate, [1, 0, 0, 2, 0, 0, 0, 1], atol=0.9)


def test_opendp_chains_counts_by_category(dp):
    counted = dp.t.make_count_by_categories(
        dp.vector_domain(dp.atom_domain(T=str)),
        dp.symmetric_distance(),
        categories=list("abcdefg"),
        MO=dp.L1Distance["i64"],
        TOA="i64",
    )
    own = interop.as_opendp(
        _laplace(bf.policies.AddRemove(LINE), 50),
        counts=True,
        input_domain=counted.output_domain,
    )
    chained = counted >> own
    assert chained.map(1) == 50.0
    np.testing.assert_allclose(
        chained(list("abba?")), [2, 2, 0, 0, 0, 0, 0, 1], atol=0.9
    )
    # Negative counts and vectors of another length are cut, never refused.
    assert len(own([-4, 5])) == 8
    assert len(own([1] * 20)) == 8


def test_opendp_composes_and_refuses_to_overspend(dp):
    measurement = interop.as_opendp(_laplace(bf.policies.AddRemove(LINE)))
    compositor = dp.c.make_adaptive_composition(
        measurement.input_domain,
        measurement.input_metric,
        dp.max_divergence(),
        d_in=1,
        d_mids=[0.5, 0.5],
    )
    assert compositor.map(1) == 1.0
    ask = compositor([1, 2, 3])
    ask(measurement)
    ask(measurement)
    with pytest.raises(dp.OpenDPException):
        ask(measurement)


def test_opendp_knows_full_as_change_one(dp):
    full = _laplace(bf.policies.Full(LINE))
    with pytest.raises(InputError, match="size"):
        interop.as_opendp(full)
    measurement = interop.as_opendp(full, size=3)
    assert "ChangeOne" in str(measurement.input_metric)
    assert measurement.map(1) == 0.5
    assert abs(sum(measurement([1, 2, 3])) - 3) < 200


@pytest.mark.parametrize(
    ("policy", "counts"),
    [
        (bf.policies.Line(LINE), False),
        (bf.policies.Threshold(LINE, theta=2), False),
        (bf.policies.Blocks(LINE, [0, 0, 0, 0, 1, 1, 1, 1]), False),
        (bf.policies.Full(LINE), True),
    ],
    ids=["line", "threshold", "blocks", "full counts"],
)
def test_policies_that_opendp_cannot_state_are_refused_with_the_way_out(
    dp, policy, counts
):
    with pytest.raises(PolicyError, match="as_measurement"):
        interop.as_opendp(_laplace(policy), counts=counts)


def test_a_policy_with_more_edges_is_stated_by_what_it_covers(dp):
    edges = [(cell, -1) for cell in range(8)] + [(0, 1)]
    measurement = interop.as_opendp(_laplace(bf.policies.Graph(LINE, edges)))
    assert "Symmetric" in str(measurement.input_metric)


def test_constraints_are_refused_by_opendp(dp):
    constraint = bf.policies.CountConstraints(LINE, [[1, 1, 1, 1, 0, 0, 0, 0]])
    policy = bf.policies.Full(LINE).with_constraints(constraint)
    with pytest.raises(PolicyError):
        interop.as_opendp(_laplace(policy), size=4)
    assert interop.as_measurement(_laplace(policy)).map(1) == 0.5


def test_steps_cost_the_square_in_rho():
    """Planted bug: rho times the steps, which is half of the truth at two steps."""
    policy = bf.policies.AddRemove(bf.Domain(4))
    asked = bf.workloads.Identity(policy.domain)
    measurement = bf.interop.as_measurement(bf.Gaussian(policy, asked, rho="0.01"))
    assert measurement.output_measure == "ZeroConcentratedDivergence"
    found = [measurement.map(steps) for steps in (0, 1, 2, 3)]
    assert found == pytest.approx([0, 0.01, 0.04, 0.09])
    assert all(
        one >= true for one, true in zip(found, (0, 0.01, 0.04, 0.09), strict=False)
    )
    assert not measurement.check(2, 0.03)
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    real = bf.interop.as_opendp(bf.Gaussian(policy, asked, rho="0.01"))
    assert "ZeroConcentratedDivergence" in str(real.output_measure)
    assert real.map(2) >= 0.04
