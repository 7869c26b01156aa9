r"""Haney's tree for thresholds on a line: red cells, and a star around each of them.

The last cell of a block of theta cells is red; others join the red of their block, and
the red cells form a chain. Cells at most theta apart are three edges apart: star,
chain, star. Each third of epsilon buys one of them, as ``strategies.ordered_hierarchy``
has them, with noise scaled to the exact worst edge.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from blowfish_fast.errors import PolicyError
from blowfish_fast.measure.strategies.ordered.hierarchy_plan import (
    FAN_OUTS,
    HierarchyPlan,
    laid_out,
    tree_depth,
)
from blowfish_fast.measure.strategies.ordered.ordered_hierarchy import OrderedHierarchy
from blowfish_fast.measure.strategies.ordered.prefix_sums import LineReach
from blowfish_fast.policies import Policy


class HTheta(OrderedHierarchy):
    """Totals up to the end of each block and trees inside, a third of epsilon for each.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Threshold(bf.Domain(10), theta=4)
    >>> HTheta.under(policy).edges.tolist()
    [0, 4, 8, 10]
    """

    kind = "h_theta"

    @classmethod
    def under(cls, policy: Policy, fan_out: int | None = None) -> Self:
        """Cut each stretch of the line into blocks as long as its longest edge."""
        if policy.domain.ndim != 1 or policy.has_bottom:
            raise PolicyError(
                "red cells are laid along one ordered attribute whose total is public; "
                f"this policy: {policy.neighbours}"
            )
        starts, _, longest = LineReach(policy).stretches()
        kinds, number = np.unique(np.maximum(longest, 1), return_inverse=True)
        plans = []
        for length in kinds.tolist():
            chosen = best_fan_out(length) if fan_out is None else fan_out
            levels = max(tree_depth(length, chosen), 1)
            rates = (1.0 / 3.0, 1.0 / (3.0 * levels))
            plans.append(HierarchyPlan(length, chosen, levels, 0.0, 0.0, *rates))
        return laid_out(cls, starts, policy.domain.size, plans, number)


def construction_error(fan_out: int, levels: int) -> float:
    """Return the planned squared error of a range at epsilon = 1.

    Two ends on the chain, and (fan-out - 1) / 2 nodes per level at each end.
    """
    return 36.0 + 18.0 * (fan_out - 1) * levels**3


def best_fan_out(length: int) -> int:
    """Return the fan-out of least planned error for blocks of `length` cells."""

    def error(fan_out: int) -> float:
        return construction_error(fan_out, tree_depth(length, fan_out))

    return min((one for one in FAN_OUTS if one <= max(length, 2)), key=error)
