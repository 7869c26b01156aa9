"""Curves of error hold what predictions and typical errors say."""

from __future__ import annotations

import math

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.advice.typical_error import reference_shapes, typical_errors
from blowfish_fast.errors import InputError

LINE = bf.Domain(32)
POLICY = bf.policies.Threshold(LINE, theta=4)
RANGES = bf.workloads.AllRanges(LINE)
EPSILONS = [0.1, 0.5, 1]


def curves(axes):
    return {one.get_label(): one.get_ydata() for one in axes.lines}


def test_predicted_errors_are_those_of_the_mechanism(texts):
    axes = bf.plotting.error_against_epsilon(
        POLICY, RANGES, EPSILONS, ["cells", "ordered"]
    )
    drawn = curves(axes)
    table = bf.compare(POLICY, RANGES, epsilon=0.5)
    assert set(drawn) == {"cells", "ordered"}
    for name, errors in drawn.items():
        assert errors[1] == pytest.approx(math.sqrt(table[name].mean))
        assert (np.diff(errors) < 0).all()
    assert axes.lines[0].get_xdata() == pytest.approx(EPSILONS)
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert {"cells", "ordered", "0.1", "0.5", "1"} <= set(texts(axes))


@pytest.mark.long
def test_typical_errors_are_measured_on_generated_data_and_marked(texts):
    axes = bf.plotting.error_against_epsilon(
        POLICY, RANGES, [0.1, 1], ["dawa", "cells"], records=500, rng=5
    )
    drawn = curves(axes)
    assert set(drawn) == {"dawa (typical)", "cells"}
    dawa = bf.Dawa(POLICY, RANGES, epsilon=1)
    found = typical_errors(dawa, reference_shapes(LINE, 500), trials=3, rng=5).values()
    geometric = math.exp(sum(map(math.log, found)) / len(found))
    assert drawn["dawa (typical)"][-1] == pytest.approx(geometric)
    typical = next(one for one in axes.lines if one.get_label() == "dawa (typical)")
    assert typical.get_linestyle() == "--"
    assert "dawa (typical)" in texts(axes)


@pytest.mark.long
def test_the_best_are_chosen_where_none_is_named():
    drawn = curves(bf.plotting.error_against_epsilon(POLICY, RANGES, EPSILONS))
    best = bf.compare(POLICY, RANGES, epsilon=0.5, hurried=True).best.name
    assert best in drawn
    assert len(drawn) == 4
    both = curves(
        bf.plotting.error_against_epsilon(POLICY, RANGES, [0.1, 1], records=300)
    )
    assert len(both) == 6
    # Those that recommend has not tried; the others are predicted.
    untried = {f"{one}, fitted (typical)" for one in ("dawa", "ordered_hierarchical")}
    assert untried == {one for one in both if "typical" in one}


def test_mechanisms_of_ones_own_are_drawn():
    laplace = bf.Laplace(POLICY, RANGES, epsilon=7)
    drawn = curves(
        bf.plotting.error_against_epsilon(POLICY, RANGES, [0.5, 1], [laplace])
    )
    mean = laplace.at_epsilon(1).expected_total_error() / RANGES.queries
    assert drawn["laplace"][-1] == pytest.approx(math.sqrt(mean))


@pytest.mark.parametrize(
    ("epsilons", "mechanisms", "words"),
    [
        ([1], ["cells"], "at least two epsilons"),
        ([0.1, 1], ["dawa"], "depends on the data"),
        ([0.1, 1], ["edge_lines"], "cannot be used here"),
        ([0.1, 1], [], "nothing to compare"),
    ],
    ids=["one", "typical", "refused", "none"],
)
def test_what_gives_no_curve_is_refused(epsilons, mechanisms, words):
    with pytest.raises(InputError, match=words):
        bf.plotting.error_against_epsilon(POLICY, RANGES, epsilons, mechanisms)


def test_a_class_from_outside_is_drawn_by_its_name():
    class Twice(bf.Laplace):
        name = "twice"

    drawn = curves(
        bf.plotting.error_against_epsilon(POLICY, RANGES, [0.5, 1], [Twice, "laplace"])
    )
    assert drawn["twice"] == pytest.approx(drawn["laplace"])


def test_a_mechanism_over_another_domain_is_refused():
    other = bf.Domain(5)
    laplace = bf.Laplace(
        bf.policies.Line(other), bf.workloads.Identity(other), epsilon=1
    )
    with pytest.raises(InputError, match="another domain"):
        bf.plotting.error_against_epsilon(POLICY, RANGES, [0.1, 1], [laplace])


@pytest.mark.long
def test_the_error_rises_with_theta_up_to_that_of_any_two_values(texts):
    axes = bf.plotting.tradeoff_over_theta(LINE, RANGES, [1, 4, 31], epsilon=0.5)
    errors = axes.lines[0].get_ydata()
    (full,) = set(axes.lines[1].get_ydata())
    assert axes.lines[0].get_xdata().tolist() == [1, 4, 31]
    assert (np.diff(errors) >= 0).all()
    assert errors[-1] == pytest.approx(full)
    narrow = bf.Transformed(
        bf.policies.Threshold(LINE, theta=1), RANGES, epsilon=0.5, partition=None
    )
    mean = narrow.expected_total_error() / RANGES.queries
    assert errors[0] == pytest.approx(math.sqrt(mean))
    shown = texts(axes)
    assert "any two values\n(Full)" in shown
    assert "ordered" in shown
    assert {"1", "4", "31"} <= set(shown)


def test_theta_may_be_given_in_values():
    pay = bf.Domain.from_edges(range(0, 33_000, 1000), name="pay")
    asked = bf.workloads.Identity(pay)
    axes = bf.plotting.tradeoff_over_theta(pay, asked, [1000, 4000], unit="value")
    assert axes.get_xlabel().startswith("theta, in pay")
    by_itself = bf.plotting.tradeoff_over_theta(pay, asked, unit="value")
    assert by_itself.lines[0].get_xdata().tolist() == [
        1000.0 * 2**one for one in range(5)
    ]


def test_thetas_that_make_no_curve_are_refused():
    for thetas in ([3], [0, 3]):
        with pytest.raises(InputError, match="two different thetas"):
            bf.plotting.tradeoff_over_theta(LINE, RANGES, thetas)
