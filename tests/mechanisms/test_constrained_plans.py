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


NAMES = [
    name
    for name in sorted(MECHANISMS)
    if "workload" in inspect.signature(MECHANISMS[name]).parameters
]


def halves_known(policy):
    """Return the policy towards someone who knows the count of its first half."""
    half = np.arange(policy.domain.size) < policy.domain.size // 2
    known = bf.policies.CountConstraints(
        policy.domain, [half.reshape(policy.domain.shape)]
    )
    return policy.with_constraints(known)


def test_enough_mechanisms_are_told_what_is_asked():
    assert len(NAMES) >= 18


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", NAMES)
def test_a_release_is_that_of_its_part_of_epsilon_without_constraints(family, name):
    # Buckets, rounds, frequencies and grids weigh the noise that will be drawn.
    taken = 0
    for asked in ASKED.values():
        policy = family(asked.domain)
        known = halves_known(policy)
        assert known.group_size > 1
        try:
            free = MECHANISMS[name](policy, asked, epsilon=3)
        except BlowfishError:
            continue  # some mechanisms are for lines alone
        taken += 1
        bound = MECHANISMS[name](known, asked, epsilon=3 * known.group_size)
        cells = policy.domain.size
        counts = np.arange(cells) * 7 % 23 * (np.arange(cells) > cells // 3)
        counts = counts.reshape(policy.domain.shape)
        for seed in (1, 2):
            expected = free.release(counts, rng=seed).estimate
            found = bound.release(counts, rng=seed).estimate
            np.testing.assert_array_equal(found, expected)
    assert taken
