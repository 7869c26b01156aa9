"""Constraints divide what noise may cost, and every plan is made for that noise."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import BlowfishError
from blowfish_fast.mechanisms.registry import MECHANISMS

LINE, GRID = bf.Domain(24), bf.Domain((6, 8))
ASKED = {
    "cells": bf.workloads.Identity(LINE),
    "ranges": bf.workloads.Ranges.random(LINE, 12, rng=1),
    "rectangles": bf.workloads.Rectangles.random(GRID, 12, rng=1),
}
FAMILIES = bf.policies.Full, bf.policies.AddRemove


def fits(family, name, asked):
    """Return whether a mechanism takes the workload: some are for lines alone."""
    try:
        MECHANISMS[name](family(ASKED[asked].domain), ASKED[asked], epsilon=3)
    except BlowfishError:
        return False
    return True


FITTING = [
    (family, name, asked)
    for family in FAMILIES
    for name in sorted(MECHANISMS)
    if "workload" in inspect.signature(MECHANISMS[name]).parameters
    for asked in ASKED
    if fits(family, name, asked)
]


def halves_known(policy):
    """Return the policy towards someone who knows the count of its first half."""
    half = np.arange(policy.domain.size) < policy.domain.size // 2
    known = bf.policies.CountConstraints(
        policy.domain, [half.reshape(policy.domain.shape)]
    )
    return policy.with_constraints(known)


def test_every_mechanism_with_a_workload_takes_some_of_these():
    assert len({name for _, name, _ in FITTING}) >= 18
    assert {asked for _, _, asked in FITTING} == set(ASKED)


@pytest.mark.parametrize(("family", "name", "asked"), FITTING)
def test_a_release_is_that_of_its_part_of_epsilon_without_constraints(
    family, name, asked
):
    # Buckets, rounds, frequencies and grids weigh the noise that will be drawn.
    policy = family(ASKED[asked].domain)
    known = halves_known(policy)
    assert known.group_size > 1
    free = MECHANISMS[name](policy, ASKED[asked], epsilon=3)
    bound = MECHANISMS[name](known, ASKED[asked], epsilon=3 * known.group_size)
    cells = policy.domain.size
    counts = np.arange(cells) * 7 % 23 * (np.arange(cells) > cells // 3)
    counts = counts.reshape(policy.domain.shape)
    for seed in (1, 2):
        expected = free.release(counts, rng=seed).estimate
        found = bound.release(counts, rng=seed).estimate
        np.testing.assert_array_equal(found, expected)
