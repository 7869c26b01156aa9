"""What an analyst may ask, as plain data.

    histogram     counts of the bins of one attribute
    cumulative    how many lie at or below each bin
    quantiles     from the cumulative histogram
    histogram2d   counts of the bins of two attributes
    marginal      counts of the bins of several
    ranges        counts of stated stretches of one attribute
    rectangles    counts of stated boxes of two

Each names a table, a granularity (how many cells make a bin), filters, and what it may
cost: an accuracy (alpha, beta), or an epsilon.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)

from blowfish_fast.errors import QuestionError
from blowfish_fast.measure.budgets import Budget

from .attributes import Model, Name

MOST_QUERIES = 2**16
"""Stretches or boxes of one question."""

MOST_AXES = 6
"""Attributes of one marginal."""

Width = Annotated[int, Field(ge=1, le=2**20)]
Bound = float | str


class Filter(Model):
    """Which records count: a stretch of values, or some levels.

    ``low`` and ``high`` are values of the attribute (half-open; dates as ISO texts)
    and must be edges of its cells; ``values`` are levels.
    """

    attribute: Name
    low: Bound | None = None
    high: Bound | None = None
    values: list[str | int] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        stretch = self.low is not None or self.high is not None
        if stretch == (self.values is not None):
            raise ValueError(
                f"filter {self.attribute!r} by low and high, or by values, not both"
            )
        return self


class Accuracy(Model):
    """All answers (or each one) off by at most alpha, but for a probability of beta."""

    alpha: float = Field(gt=0, allow_inf_nan=False)
    beta: float = Field(default=0.05, gt=0, lt=1)
    scope: Literal["simultaneous", "per_query"] = "simultaneous"


class Spending(Model):
    """A budget and, if wanted, a mechanism; data-dependent ones promise no alpha.

    `epsilon`, or `rho`, or `epsilon` with `delta`, in what the table's ledger takes.
    """

    epsilon: float | None = Field(default=None, gt=0, le=1000)
    rho: float | None = Field(default=None, gt=0, le=1000)
    delta: float | None = Field(default=None, gt=0, lt=1)
    mechanism: Name | None = None

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if (self.epsilon is None) == (self.rho is None) or (self.rho and self.delta):
            raise ValueError("state epsilon, or rho, or epsilon with delta")
        return self

    @model_serializer(mode="wrap")
    def _as_stated(self, plain: Any) -> dict[str, Any]:
        """Leave out what was not stated: requests are named by what is."""
        found: dict[str, Any] = plain(self)
        return {
            name: one
            for name, one in found.items()
            if one is not None or name not in ("epsilon", "rho", "delta")
        }

    @property
    def budget(self) -> Budget:
        """What is spent, in epsilon or in rho."""
        stated = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
        return Budget.stated(
            **{name: repr(one) for name, one in stated.items() if one is not None}
        )


class _Question(Model):
    table: Name
    filters: list[Filter] = Field(default_factory=list, max_length=16)
    cost: Accuracy | Spending

    @model_validator(mode="after")
    def _each_filter_once(self) -> Self:
        names = [one.attribute for one in self.filters]
        if len(set(names)) != len(names):
            raise ValueError(f"filter each attribute once; received {names}")
        return self

    @property
    @abstractmethod
    def axes(self) -> list[str]:
        """The attributes whose bins are counted."""

    @property
    @abstractmethod
    def widths(self) -> list[int]:
        """Cells of a bin, for each of them."""


class _OneAxis(_Question):
    attribute: Name
    width: Width = 1

    @property
    def axes(self) -> list[str]:
        """The one attribute."""
        return [self.attribute]

    @property
    def widths(self) -> list[int]:
        """Its granularity."""
        return [self.width]


class HistogramQuestion(_OneAxis):
    """Counts of the bins of one attribute."""

    kind: Literal["histogram"] = "histogram"


class CumulativeQuestion(_OneAxis):
    """How many records lie at or below each bin of an ordered attribute."""

    kind: Literal["cumulative"] = "cumulative"


class QuantilesQuestion(_OneAxis):
    """Where given parts of all records are reached, by the cumulative histogram."""

    kind: Literal["quantiles"] = "quantiles"
    q: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        default=[0.25, 0.5, 0.75], min_length=1, max_length=1000
    )


class RangesQuestion(_OneAxis):
    """Counts of stretches [low, high) of values of one attribute."""

    kind: Literal["ranges"] = "ranges"
    ranges: list[tuple[Bound, Bound]] = Field(min_length=1, max_length=MOST_QUERIES)


class _SeveralAxes(_Question):
    attributes: list[Name] = Field(min_length=1, max_length=MOST_AXES)
    granularity: list[Width] | None = None

    @model_validator(mode="after")
    def _fitting_granularity(self) -> Self:
        if len(set(self.attributes)) != len(self.attributes):
            raise ValueError(f"name each attribute once; received {self.attributes}")
        stated = self.granularity
        if stated is not None and len(stated) != len(self.attributes):
            raise ValueError(
                f"give one granularity per attribute: {len(self.attributes)} "
                f"attributes, {len(stated)} numbers"
            )
        return self

    @property
    def axes(self) -> list[str]:
        """The attributes, in the order given."""
        return self.attributes

    @property
    def widths(self) -> list[int]:
        """Their granularities; single cells if none is stated."""
        return self.granularity or [1] * len(self.attributes)


class Histogram2dQuestion(_SeveralAxes):
    """Counts of the bins of two attributes."""

    kind: Literal["histogram2d"] = "histogram2d"
    attributes: list[Name] = Field(min_length=2, max_length=2)


class MarginalQuestion(_SeveralAxes):
    """Counts of the bins of several attributes together."""

    kind: Literal["marginal"] = "marginal"


class RectanglesQuestion(_SeveralAxes):
    """Counts of boxes: per attribute [low, high) of values."""

    kind: Literal["rectangles"] = "rectangles"
    attributes: list[Name] = Field(min_length=2, max_length=2)
    rectangles: list[list[tuple[Bound, Bound]]] = Field(
        min_length=1, max_length=MOST_QUERIES
    )

    @model_validator(mode="after")
    def _one_pair_per_attribute(self) -> Self:
        if any(len(box) != len(self.attributes) for box in self.rectangles):
            raise ValueError("each rectangle gives a pair of values per attribute")
        return self


Question = Annotated[
    HistogramQuestion
    | CumulativeQuestion
    | QuantilesQuestion
    | RangesQuestion
    | Histogram2dQuestion
    | MarginalQuestion
    | RectanglesQuestion,
    Field(discriminator="kind"),
]

_ADAPTER: TypeAdapter[Question] = TypeAdapter(Question)


def read_question(data: Any) -> Question:
    """Read a question from plain data; a clear error where it is none.

    Examples
    --------
    >>> read_question(
    ...     {"kind": "histogram", "table": "people", "attribute": "age",
    ...      "cost": {"alpha": 20, "beta": 0.05}}
    ... ).axes
    ['age']
    """
    if isinstance(data, _Question):
        return data  # type: ignore[return-value]
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as problem:
        raise QuestionError(plain_errors(problem)) from None


def plain_errors(problem: ValidationError) -> str:
    """Say what is wrong field by field, without repeating values."""
    parts = []
    for one in problem.errors(include_url=False, include_context=False):
        place = ".".join(str(step) for step in one["loc"] if step != "cost")
        parts.append(f"{place}: {one['msg']}" if place else one["msg"])
    return "; ".join(dict.fromkeys(parts))
