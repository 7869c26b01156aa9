"""Values close to each other are the secret: cells up to a distance are joined.

    theta = 2       0   1   2   3   4        each cell reaches the next two
                     \\_______/
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from ..buckets import Buckets
from ..domain import Domain
from ..errors import PolicyError, SizeError
from .base import (
    MOST_LISTED,
    Change,
    Components,
    Furthest,
    Policy,
    one_component,
    values_name,
)
from .grid_steps import (
    Ball,
    Metric,
    ball_distances,
    central_degree,
    half_ball,
    largest_change_in_ball,
    pairs_in_ball,
    step_bins,
    step_edges,
)
from .projection import Projection, Reach, bins_reached, depends_on_one, labels_along


class Threshold(Policy):
    """Cells at most `theta` apart are joined.

    Parameters
    ----------
    domain : Domain
        Any number of ordered attributes.
    theta : number
        Largest distance of joined cells: 1 or more cells, or more than 0 in value
        units. Fractions of a cell count only under "l2".
    unit : {"cells", "value"}
        "value" measures by the edges of a single attribute: two cells are joined when
        some two values in them differ by at most theta. Cell i holds the values from
        ``edges[i]`` up to, but without, ``edges[i + 1]``, so cells i < j are joined
        when ``edges[j] - edges[i + 1] < theta``, edges taken as exact numbers.
    metric : {"l1", "l2", "linf"}
        Distance of cell coordinates on several attributes: their sum, the straight
        line, or the largest. They agree on a single attribute.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Threshold(Domain(50), theta=3).edge_count
    144
    >>> ages = Domain.from_edges(range(0, 101, 5), name="age")
    >>> Threshold(ages, theta=10, unit="value").reach().far[:3]
    array([2, 3, 4])
    >>> Threshold(Domain((9, 9)), theta=2, metric="linf").max_degree
    24
    """

    kind = "threshold"

    def __init__(
        self,
        domain: Domain,
        theta: float,
        *,
        unit: Literal["cells", "value"] = "cells",
        metric: Metric = "l1",
    ) -> None:
        super().__init__(domain)
        if unit not in ("cells", "value"):
            raise PolicyError(f'unit must be "cells" or "value"; received {unit!r}')
        if metric not in ("l1", "l2", "linf"):
            raise PolicyError(f'metric must be "l1", "l2" or "linf"; received {metric!r}')
        if unit == "value" and domain.ndim != 1:
            raise PolicyError(
                f"value units are those of one attribute; this domain has "
                f"{domain.ndim}. State theta in cells, or policies.Product of one "
                "Threshold per attribute"
            )
        if unit == "value" and domain.attributes[0].edges is None:
            raise PolicyError(
                "value units need the edges of the attribute, and this domain has "
                "none. Build it with Domain.from_edges, or state theta in cells"
            )
        # With one axis to move along, all three metrics are the same.
        self.metric: Metric = "l1" if max(domain.shape) == domain.size else metric
        self.unit = unit
        self.theta = _distance_limit(theta, unit, whole=self.metric != "l2")

    @property
    def _along_line(self) -> bool:
        return max(self.domain.shape) == self.domain.size

    @cached_property
    def _ball(self) -> Ball:
        longest = sum((side - 1) ** 2 for side in self.domain.shape)
        if self.metric == "l2":
            # A root such as sqrt(3) may be rounded down; the benefit of the doubt
            # joins the cells.
            square = Fraction(self.theta) ** 2
            if square.denominator > 1:
                square *= 1 + Fraction(1, 10**12)
            return Ball("l2", max(1, min(math.floor(square), longest)))
        return Ball(self.metric, max(1, min(int(self.theta), self.domain.size - 1)))

    @cached_property
    def _far(self) -> IntArray:
        """The furthest neighbour of each cell of a line."""
        last = self.domain.size - 1
        cells = np.arange(self.domain.size)
        if self.unit == "cells":
            return np.minimum(cells + self._ball.limit, last)
        edges = np.array(self.domain.attributes[0].edges)
        # Search in rounded sums, then mend the last place with exact differences.
        far = np.searchsorted(edges[:-1], edges[1:] + self.theta) - 1
        far = np.clip(far, cells, last)
        for shift in (-1, 0, 1, 2):
            there = np.clip(far + shift, cells, last)
            near = _less_apart(edges[1:], edges[there], self.theta)
            far = np.where(near & (shift == 1 + 0 * there), there, far)
        return _mended(far, edges, self.theta)

    @property
    def has_bottom(self) -> bool:
        """Presence is no secret: the number of records is public."""
        return False

    @property
    def has_moves(self) -> bool:
        """Whether there are two cells; neighbours are always joined."""
        return self.domain.size > 1

    def components(self) -> Components:
        """Return the single component, whose total is public."""
        return one_component(private=False)
