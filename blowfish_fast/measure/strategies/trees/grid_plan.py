"""How fine a grid should be, and several measurements of one tree made one.

More cells cost noise, fewer of them blur the border of a query:

    m parts per axis, d axes:    noise ~ m^(d/2) / epsilon,    blur ~ records / m
    equal in order:              m = (records * epsilon / c)^(2 / (d + 2))
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DataDependentError
from blowfish_fast.measure.budgets import Budget, equal_noise_epsilon
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.noise import Scales, rates_at_common_unit
from blowfish_fast.policies import Policy

from .tree import TreeStrategy


class RoughTotal(NamedTuple):
    """How many records there are, and the measurement that was paid for it, if any."""

    records: float
    bought: list[Measurement]


def as_records(value: Any) -> int | None:
    """Read a public rough count of records: None, or a whole number from 0 on."""
    if value is None:
        return None
    return as_whole(
        value,
        "records",
        0,
        way_out="None reads it where it is public and buys it where it is not",
    )


def rough_total(
    private: Handle, records: int | None, *, budget: Budget | Fraction
) -> RoughTotal:
    """Return the number of records: as given, as public, or bought for `budget`.

    A dry run has no records, so it refuses unless the number was given.
    """
    if records is not None:
        return RoughTotal(float(records), [])
    if private.dry_run:
        raise DataDependentError(
            "the size of this grid follows the number of records, so its error cannot "
            "be predicted; give a public rough count with records=..."
        )
    if not private.policy.components().private.any():
        return RoughTotal(float(private.public_totals.sum()), [])
    whole = private.coarsened(Buckets(np.array([0, private.policy.domain.size])))
    bought = whole.measure(
        TreeStrategy(kernels.regular_tree(1, 2), np.ones(1)), budget=budget
    )
    return RoughTotal(max(float(bought.noisy[0]), 0.0), [bought])


def count_epsilon(policy: Policy, budget: Budget | Fraction) -> float:
    """Return one over the Laplace scale of a count; in rho, that of equal variance."""
    each = Budget.of(budget).over(policy.group_size)
    if policy.has_moves:
        # Two counts move by one: half of the budget for each, in either currency.
        each = each / 2
    return equal_noise_epsilon(each)


def parts_per_axis(
    sides: IntArray, records: Any, epsilon: float, constant: float, *, least: int = 1
) -> IntArray:
    """Return into how many parts each axis of a grid is cut, at `least` so many.

    `sides` (boxes, d) are cells; `records`, those in each box, are public or noisy. A
    part should hold `constant` records over `epsilon`, that of `count_epsilon`.
    """
    wide = np.maximum((sides > 1).sum(axis=1), 1)
    held = np.maximum(np.asarray(records, dtype=np.float64), 0.0) * epsilon / constant
    # Beyond the longest axis the power could overflow; it is cut there anyway.
    wanted = np.minimum(held ** (2.0 / (wide + 2.0)), float(sides.max(initial=1)))
    parts = np.maximum(np.rint(wanted).astype(np.int64), least)
    cut: IntArray = np.minimum(parts[:, None], sides)
    return cut


class Layer(NamedTuple):
    """A measurement whose row i is a total of node ``nodes[i]`` of some tree."""

    measurement: Measurement
    nodes: IntArray


def one_measurement(
    parents: IntArray, buckets: Buckets, layers: Sequence[Layer]
) -> Measurement:
    """Return several measurements of the nodes of one tree as a single one.

    No node may carry noise in two layers; exact rows win, and published rows stay.
    """
    unit, rescaled = rates_at_common_unit([one.measurement.scales for one in layers])
    rates = np.zeros(parents.size, dtype=np.int64)
    exact = np.zeros(parents.size, dtype=np.bool_)
    noisy = np.zeros(parents.size, dtype=np.int64)
    for (measurement, nodes), in_units in zip(layers, rescaled, strict=True):
        scales = measurement.scales
        here, sure = nodes[scales.measured], nodes[scales.exact]
        assert not rates[here].any(), "a node was measured twice"
        rates[here] = in_units[scales.measured]
        noisy[here] = measurement.noisy[scales.measured]
        exact[sure] = True
        noisy[sure] = measurement.noisy[scales.exact]
    rates[exact] = 0
    weights = rates / max(int(rates.max(initial=0)), 1)
    strategy = TreeStrategy(kernels.tree_of_parents(parents), weights)
    power = layers[0].measurement.scales.power
    return Measurement(strategy, Scales(rates, unit, exact, power), noisy, buckets)
