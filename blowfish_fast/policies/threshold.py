"""Values close to each other are the secret: cells up to a distance are joined."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_choice, as_fraction, read_only
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain, is_wide
from blowfish_fast.errors import InputError, PolicyError, SizeError

from . import grid_steps
from .base import PUBLIC_TOTAL, Policy, on_one_axis, values_name
from .projection import Band, Projection, bins_of_cells, labels_along, only_axis
from .protocol import (
    MOST_LISTED,
    Bandwidth,
    Change,
    PolicyGraph,
    Spent,
    at_distance,
    beyond,
    bin_keys,
)

MOST_STEPS = 2**22

METRIC_WORDS = {
    "l1": "summed over the attributes",
    "l2": "in a straight line",
    "linf": "in each attribute",
}


class Threshold(Policy):
    """Cells at most `theta` apart are joined.

    Parameters
    ----------
    domain : Domain
        The cells.
    theta : number
        Largest distance of joined cells: 1 or more cells, or more than 0 in value
        units. Fractions of a cell count only under "l2".
    unit : {"cells", "value"}
        "value" measures by the edges of a single attribute: cells are joined when
        some two values in them differ by at most theta, exactly (Lemma PO7).
    metric : {"l1", "l2", "linf"}
        Distance of cell coordinates on several attributes: their sum, the straight
        line, or the largest. They agree on a single attribute.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Threshold(Domain(50), theta=3).edge_count
    144
    >>> ages = Domain.from_edges(range(0, 101, 5), name="age")
    >>> Threshold(ages, theta=10, unit="value").bandwidth().far[:3]
    array([2, 3, 4])
    >>> Threshold(Domain((9, 9)), theta=2, metric="linf").joins(0, [20, 3])
    array([ True, False])
    """

    kind = "threshold"
    takes_wide = True
    stated: ClassVar[tuple[str, ...]] = ("theta", "unit", "metric")

    def __init__(
        self,
        domain: Domain,
        theta: float,
        *,
        unit: Literal["cells", "value"] = "cells",
        metric: grid_steps.Metric = "l1",
    ) -> None:
        super().__init__(domain)
        if is_wide(domain) and (domain.ndim != 1 or unit != "cells"):
            raise PolicyError(
                "over a wide domain a threshold is stated in cells of one attribute",
                received=f"{domain!r}, in {unit}",
                way_out="Use AddRemove, Full or TablePolicy, or a domain of one "
                "attribute",
            )
        as_choice(unit, "unit", ("cells", "value"), PolicyError)
        as_choice(metric, "metric", tuple(METRIC_WORDS), PolicyError)
        if unit == "value" and domain.ndim != 1:
            raise PolicyError(
                "value units are those of one attribute",
                received=f"a domain of {domain.ndim} attributes",
                way_out="State theta in cells, or take policies.Product of one "
                "Threshold per attribute",
                code="value_units_need_one_attribute",
            )
        if unit == "value" and domain.attributes[0].edges is None:
            raise PolicyError(
                "value units need the edges of the attribute, and this domain has none",
                way_out="Build it with Domain.from_edges, or state theta in cells",
                code="value_units_need_edges",
            )
        # With one axis to move along, all three metrics are the same.
        self.metric: grid_steps.Metric = "l1" if self._on_line else metric
        self.unit = unit
        self.theta = _read_theta(theta, unit, whole=self.metric != "l2")

    @property
    def _on_line(self) -> bool:
        return max(self.domain.shape) == self.domain.size

    @cached_property
    def _ball(self) -> grid_steps.Ball:
        if self.metric == "l2":
            square = Fraction(self.theta) ** 2
            if square.denominator > 1:
                # A root such as sqrt(3) may be rounded down: join when in doubt.
                square *= 1 + Fraction(1, 10**12)
            longest = sum((side - 1) ** 2 for side in self.domain.shape)
            return grid_steps.Ball("l2", min(math.floor(square), longest))
        longest = max(1, sum(side - 1 for side in self.domain.shape))
        return grid_steps.Ball(self.metric, min(int(self.theta), longest))

    def maximal_boxes(self) -> IntArray:
        """Return how many cells the largest boxes span, a row of sides for each.

        Any two cells of a box are joined, and only such cells are.

        Examples
        --------
        >>> from blowfish_fast import Domain
        >>> Threshold(Domain((9, 9)), theta=2).maximal_boxes().tolist()
        [[1, 3], [2, 2], [3, 1]]
        """
        return grid_steps.maximal_boxes(self.domain.shape, self._ball)

    @cached_property
    def _far(self) -> IntArray:
        last = self.domain.size - 1
        if self.unit == "cells":
            reach = np.arange(self.domain.size) + self._ball.limit
            return read_only(np.minimum(reach, last))
        edges = np.array(self.domain.attributes[0].edges)
        upper, theta = edges[1:], float(self.theta)
        with np.errstate(over="ignore", invalid="ignore"):
            limit = upper + theta
            inside = limit - upper
            rounded_off = (upper - (limit - inside)) + (theta - inside)
        # The exact sum lies above its rounding where something was rounded off; an
        # edge equal to the rounding is then below the sum.
        before = np.searchsorted(edges[:-1], limit, side="left")
        upto = np.searchsorted(edges[:-1], limit, side="right")
        far: IntArray = np.where(rounded_off > 0, upto, before) - 1
        return read_only(np.maximum(far, np.arange(self.domain.size)))

    def _edges(self) -> Iterator[IntArray]:
        if self.unit == "value":
            return Band(self.domain, self._far)._edges()
        steps = self._grid_moves(self.domain.shape, MOST_STEPS)
        if steps is None:
            raise SizeError(
                f"this policy has {self.edge_count:,} edges, too many to list",
                way_out="joins(u, v) and distance(u, v) answer without a list",
                code="too_many_edges_to_list",
            )
        cells = np.arange(self.domain.size).reshape(self.domain.shape)
        return map(np.column_stack, grid_steps.step_pairs(cells, steps))

    @property
    def edge_count(self) -> int:
        """In closed form."""
        if self.unit == "value":
            return Band(self.domain, self._far).edge_count
        if self._on_line:
            cells, limit = self.domain.size, min(self._ball.limit, self.domain.size - 1)
            return limit * cells - limit * (limit + 1) // 2
        return grid_steps.pairs_in_ball(self.domain.shape, self._ball)

    def _bandwidth(self, order: IntArray | None) -> Bandwidth | None:
        if order is not None or not self._on_line:
            return None
        return Bandwidth(self._far, True)

    def longest_edge(self) -> int:
        """Return how many cells the longest edge spans."""
        if self.unit == "cells" and self.domain.ndim == 1:
            return min(self._ball.limit, self.domain.size - 1)
        return super().longest_edge()

    def _offsets(self, first: IntArray, second: IntArray) -> IntArray:
        if self._on_line:
            return (first - second)[..., None]
        first_place = np.stack(np.unravel_index(first, self.domain.shape), axis=-1)
        return first_place - np.stack(
            np.unravel_index(second, self.domain.shape), axis=-1
        )

    def _joined(self, first: IntArray, second: IntArray) -> BoolArray:
        joined: BoolArray
        if self.unit == "value":
            low, high = np.minimum(first, second), np.maximum(first, second)
            joined = high <= self._far[low]
        else:
            steps = self._offsets(first, second)
            joined = self._ball.length(steps) <= self._ball.limit
        return joined

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        if self.unit == "value":
            return kernels.band_distances(self._far, first, second)
        offsets = self._offsets(first, second)
        return grid_steps.ball_distances(offsets, self._ball)

    def _largest_change(self, lines: FloatArray) -> Change:
        if not self._on_line:
            return grid_steps.largest_change_in_ball(
                lines, self.domain.shape, self._ball
            )
        return Change(kernels.largest_change_within(lines, self._far), True)

    def _grid_moves(self, shape: tuple[int, ...], most: int) -> IntArray | None:
        # Merged slabs keep the ball's form only if it ends within the next slab.
        if self.unit == "value" or (
            shape != self.domain.shape and self._ball.radius() > 1
        ):
            return None
        return grid_steps.half_ball(shape, self._ball, most)

    def _includes(self, other: PolicyGraph) -> bool | None:
        steps = None
        if not self._on_line:
            steps = other._grid_moves(self.domain.shape, MOST_STEPS)
        if steps is None:
            return None
        return bool((self._ball.length(steps) <= self._ball.limit).all())

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        if not self._on_line:
            return self._grid_quotient(buckets, domain)
        if buckets.order is not None:
            return Projection(self, buckets)
        sizes, last = buckets.sizes, buckets.edges[1:] - 1
        if self.unit == "cells":
            width = int(sizes[0])
            if (sizes[:-1] == width).all() and sizes[-1] <= width:
                return Threshold(domain, -(-int(self.theta) // width))
            reached = np.minimum(last + self._ball.limit, self.domain.size - 1)
        else:
            reached = self._far[last]
        far = bins_of_cells(reached, buckets)
        bins = np.arange(buckets.count)
        longest = max(1, int((far - bins).max()))
        if (far == np.minimum(bins + longest, buckets.count - 1)).all():
            return Threshold(domain, longest)
        return Band(domain, far)

    def _grid_quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        shape = self.domain.shape
        axis = only_axis(buckets.labels, shape)
        if axis is None:
            return Projection(self, buckets)
        along = Threshold(Domain(shape[axis]), self._ball.radius())
        return along._quotient(
            Buckets.from_labels(labels_along(buckets.labels, shape, axis)), domain
        )

    def _bin_pairs(self, labels: IntArray, bins: int) -> Iterator[IntArray]:
        if self.unit == "value" or self.edge_count > MOST_LISTED:
            yield from super()._bin_pairs(labels, bins)
            return
        steps = grid_steps.half_ball(self.domain.shape, self._ball, MOST_LISTED)
        assert steps is not None, "there are fewer steps than edges"
        for pair in grid_steps.step_pairs(labels.reshape(self.domain.shape), steps):
            yield bin_keys(*pair, bins)

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        name, width = values_name(self.domain), self._cell_width()
        if width is not None:
            size = _format(float(self.theta) * width)
            close, step = f"differ by at most {size}", f"steps of at most {size}"
        else:
            cells = "1 cell" if self.theta == 1 else f"{_format(self.theta)} cells"
            how = "" if self._on_line else f" ({METRIC_WORDS[self.metric]})"
            close, step = f"lie at most {cells} apart{how}", "such steps"
        return (
            f"two people whose {name} {close} cannot be told apart {beyond(budget)}; "
            f"farther apart, {at_distance(budget)}, with d the number of {step} "
            "between them"
        )

    def describe_totals(self) -> str:
        """Say which totals are public."""
        return PUBLIC_TOTAL

    def _cell_width(self) -> float | None:
        if self.unit == "value":
            return 1.0
        edges = self.domain.attributes[0].edges if self.domain.ndim == 1 else None
        if edges is None:
            return None
        widths = np.diff(edges)
        return float(widths[0]) if (widths == widths[0]).all() else None

    @property
    def neighbours(self) -> str:
        """Say how two neighbouring databases differ."""
        if self.unit == "value":
            size = _format(self.theta)
            return f"one record moves to a cell with values at most {size} away"
        if self.theta == 1 and self.metric == "l1":
            return "one record moves to an adjacent cell"
        how = "" if self._on_line else f" ({METRIC_WORDS[self.metric]})"
        return f"one record moves to a cell at most {_format(self.theta)} away{how}"

    def __repr__(self) -> str:
        options = "" if self.unit == "cells" else ', unit="value"'
        if not self._on_line:
            options += f', metric="{self.metric}"'
        return f"Threshold({self.domain!r}, theta={self.theta!r}{options})"


class Line(Threshold):
    """Cells next to each other are joined; a record d cells away is d edges away.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Line(Domain(8)).edge_count
    7
    >>> Line(Domain(8)).distance(2, 7)
    array(5.)
    """

    kind = "line"
    stated = ()
    neighbours = "one record moves to an adjacent cell"

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain, 1)
        on_one_axis(domain, "Line")

    def _largest_change(self, lines: FloatArray) -> Change:
        changes = np.abs(np.diff(lines, axis=1))
        return Change(float(changes.max(initial=0.0)), True)

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        return Line(domain) if buckets.order is None else Projection(self, buckets)

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            f"two people whose {values_name(self.domain)} lie in neighbouring cells "
            f"cannot be told apart {beyond(budget)}; d cells apart, "
            f"{at_distance(budget)}"
        )

    __repr__ = Policy.__repr__


def _format(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.12g}"


def _read_theta(theta: Any, unit: str, *, whole: bool) -> int | float:
    try:
        number = as_fraction(theta, "theta")
    except InputError as problem:
        raise PolicyError(
            f"{problem}. Where all values must stay indistinguishable use policies.Full"
        ) from None
    if unit == "value":
        if number <= 0:
            raise PolicyError(
                "theta must be greater than 0 in value units",
                received=repr(theta),
                way_out="It is the largest difference of two values that must stay "
                "hidden",
            )
        return float(theta)
    if number < 1:
        raise PolicyError(
            "theta must be at least 1 cell",
            received=repr(theta),
            way_out="Below that no two cells are joined; "
            'unit="value" measures by the edges of the domain',
            code="theta_below_one_cell",
        )
    if whole or number.denominator == 1:
        # Coordinates are whole numbers, so a fraction of a cell joins nothing more.
        return math.floor(number)
    return float(theta)
