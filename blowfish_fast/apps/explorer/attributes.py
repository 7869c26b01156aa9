"""Columns as the public sees them: a domain, and a policy that the curator chooses.

    column "age"     edges 0, 5, 10 .. 100     values outside go to the end cells
                     + a cell for NULL         which the policy covers like any other

Nothing here is learnt from records: edges and levels are stated, and whether a column
may hold NULL is read from the schema, never from its values.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import PolicyError
from blowfish_fast.policies import (
    Band,
    Blocks,
    Full,
    Line,
    Policy,
    Threshold,
    join_extra_cells,
)

MOST_CELLS = 2**20
"""Cells of one attribute."""

Name = Annotated[str, Field(min_length=1, max_length=128)]
Joined = Literal["all", "end", "apart"]


class ExtraCells(NamedTuple):
    """What a choice of the curator promises, and what it costs."""

    promise: str
    cost: str


EXTRAS: dict[Joined, ExtraCells] = {
    "all": ExtraCells(
        "Nobody can tell a missing value from any value that is there, beyond e^eps.",
        "Any two values are then two steps apart, so a threshold gains at most a "
        "factor of 2 in epsilon.",
    ),
    "end": ExtraCells(
        "A missing value counts as one step beyond the last: it is told from the last "
        "values as little as they are from each other, and from the first ones as "
        "easily as the last are.",
        "A threshold gains as much as on a column without missing values.",
    ),
    "apart": ExtraCells(
        "Whether a value is missing is public; values that are there stay as secret "
        "as the policy says.",
        "A threshold gains as much as on a column without missing values, and the "
        "number of missing values is exact and free.",
    ),
}
"""Proved in docs/proofs/missing_values.md, with the graphs drawn."""


class Model(BaseModel):
    """Plain data that never changes and knows no unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EqualCells(Model):
    """Cells of one width from `start` to `stop`."""

    start: float
    stop: float
    width: float = Field(gt=0)

    def edges(self) -> list[float]:
        """Return the edges, computed as the database computes them."""
        parts = (self.stop - self.start) / self.width
        if not abs(parts) <= 2 * MOST_CELLS:
            raise ValueError(f"an attribute has at most 2^20 cells, not {parts:g}")
        cells = round(parts)
        if cells < 1 or self.start + cells * self.width != self.stop:
            raise ValueError(
                f"{self.start:g} to {self.stop:g} is no whole number of cells of width "
                f"{self.width:g}"
            )
        if cells > MOST_CELLS:
            raise ValueError(f"an attribute has at most 2^20 cells, not {cells:,}")
        return [self.start + at * self.width for at in range(cells + 1)]


class AttributeSpec(Model):
    """What is public about a column.

    Attributes
    ----------
    name : str
        The attribute, and the column if `column` is left out.
    cells, edges, dates, levels
        Exactly one: cells of equal width, edges of cells, dates at which time is cut,
        or the levels of a category.
    outside : {"clamp", "cell"}
        Where values outside the domain go: the end cells, or a cell of their own.
        Categories have no ends: a cell.
    missing : {"cell", "none"}
        A cell for NULL, or the promise of the schema that there is none: a column
        that may hold NULL is then refused.
    extras_joined : {"all", "end", "apart"}
        Which values the cells for missing values and values outside are joined to,
        once a policy is stated; `EXTRAS` says what each promises and costs. Unstated,
        all of them.

    Examples
    --------
    >>> age = AttributeSpec(name="age", cells={"start": 0, "stop": 100, "width": 10})
    >>> age.outside, age.missing
    (None, 'cell')
    """

    name: Name
    column: Name | None = None
    cells: EqualCells | None = None
    edges: list[float] | None = None
    dates: list[datetime | date] | None = None
    levels: list[str | int] | None = None
    outside: Literal["clamp", "cell"] | None = None
    missing: Literal["cell", "none"] = "cell"
    extras_joined: Joined = "all"

    @model_validator(mode="after")
    def _exactly_one_domain(self) -> Self:
        stated = [self.cells, self.edges, self.dates, self.levels]
        if sum(one is not None for one in stated) != 1:
            raise ValueError(
                f"state the domain of {self.name!r} by exactly one of cells, edges, "
                "dates or levels"
            )
        if any(getattr(one, "tzinfo", None) is not None for one in self.dates or ()):
            raise ValueError(f"dates of {self.name!r} are stated without a time zone")
        if self.levels is not None and self.outside == "clamp":
            raise ValueError(f"{self.name!r} has levels: values outside need a cell")
        self.domain()
        return self

    @property
    def source(self) -> str:
        """Name of the column."""
        return self.column or self.name

    @property
    def kind(self) -> Literal["number", "date", "category"]:
        """What its values are."""
        if self.levels is not None:
            return "category"
        return "date" if self.dates is not None else "number"

    @property
    def clamped(self) -> bool:
        """Whether values outside go to the end cells."""
        return self.levels is None and self.outside != "cell"

    def domain(self) -> Domain:
        """Return the public cells, those for values outside and missing included."""
        if self.levels is not None:
            plain = Domain.from_levels(self.levels, name=self.name)
        elif self.dates is not None:
            plain = Domain.from_dates(self.dates, name=self.name)
        else:
            edges = self.edges if self.cells is None else self.cells.edges()
            assert edges is not None
            plain = Domain.from_edges(edges, name=self.name)
        if plain.size > MOST_CELLS:
            raise ValueError(f"an attribute has at most 2^20 cells, not {plain.size:,}")
        return plain.with_extra_cells(
            outside=not self.clamped, missing=self.missing == "cell"
        )


class PolicySpec(Model):
    """A policy of one attribute, as the curator states it.

    Attributes
    ----------
    kind : {"full", "line", "threshold", "blocks"}
        Any two values; neighbouring cells; cells up to `theta` apart; values of one
        block.
    theta : number
        In cells, or in values with ``unit="value"``.
    blocks : list of list
        Levels, or numbers of cells, of each block; every one in exactly one.

    Examples
    --------
    >>> PolicySpec(kind="threshold", theta=5, unit="value").kind
    'threshold'
    """

    kind: Literal["full", "line", "threshold", "blocks"] = "full"
    theta: float | None = Field(default=None, gt=0)
    unit: Literal["cells", "value"] = "cells"
    blocks: list[list[str | int]] | None = None

    @model_validator(mode="after")
    def _fitting_fields(self) -> Self:
        if (self.kind == "threshold") != (self.theta is not None):
            raise ValueError("theta belongs to a threshold policy, and only to it")
        if (self.kind == "blocks") != (self.blocks is not None):
            raise ValueError("blocks belong to a blocks policy, and only to it")
        return self

    def over(self, attribute: AttributeSpec) -> Policy:
        """Return the policy over the cells of an attribute.

        Cells for missing values and values outside are joined to every value, stand
        at the upper end of the order, or stand apart, as the attribute says. Blocks
        and any two values have no order: "end" is "all" there.
        """
        domain = attribute.domain()
        (axis,) = domain.attributes
        if axis.levels is not None and self.kind in ("line", "threshold"):
            raise PolicyError(
                f"{attribute.name!r} is a category without an order; use full or blocks"
            )
        if not axis.extras:
            return self._plain(domain)
        inner = self._plain(domain.without_extra_cells())
        if attribute.extras_joined == "apart":
            return _with_cells_apart(inner, domain)
        if self.kind == "full":
            return Full(domain)
        if attribute.extras_joined == "end" and self.kind in ("line", "threshold"):
            # An ordered policy carries on over the extra cells at the end.
            return Threshold(domain, theta=max(1, inner.longest_edge()))
        return join_extra_cells(inner, domain)

    def _plain(self, domain: Domain) -> Policy:
        if self.kind == "full":
            return Full(domain)
        if self.kind == "line":
            return Line(domain)
        if self.kind == "threshold":
            assert self.theta is not None
            whole = self.unit == "cells"
            theta = int(self.theta) if whole else self.theta
            if whole and theta != self.theta:
                raise PolicyError(
                    f"theta counts cells, so it is a whole number; received "
                    f"{self.theta:g}"
                )
            return Threshold(domain, theta=theta, unit=self.unit)
        return Blocks(domain, self._labels(domain))

    def _labels(self, domain: Domain) -> list[int]:
        assert self.blocks is not None
        (axis,) = domain.attributes
        values: Any = axis.levels if axis.levels is not None else range(domain.size)
        number = {value: at for at, block in enumerate(self.blocks) for value in block}
        listed = sum(len(block) for block in self.blocks)
        if set(number) != set(values) or listed != len(number):
            raise PolicyError(
                "each value must lie in exactly one block; the blocks name "
                f"{listed} values, and {axis.name!r} has {domain.size}"
            )
        return [number[value] for value in values]


def _with_cells_apart(inner: Policy, domain: Domain) -> Policy:
    """Return the policy whose extra cells no edge meets: Lemma N3."""
    extras = np.arange(inner.domain.size, domain.size)
    if isinstance(inner, Line | Threshold):
        reach = inner.bandwidth()
        assert reach is not None
        return Band(domain, np.concatenate([reach.far, extras]))
    labels = inner.components().labels
    known = np.zeros(inner.domain.size, np.int64) if labels is None else labels
    return Blocks(domain, np.concatenate([known, known.max() + 1 + extras]))
