"""What an analyst may ask, as plain data.

    {"kind": "histogram", "table": "people", "attribute": "age", "width": 5,
     "filters": [{"attribute": "sex", "values": ["F"]}],
     "cost": {"alpha": 20, "beta": 0.05}}

`kind` says which class reads the other fields; `cost` is an accuracy, whose price is
found, or a budget.

The ledger finds a stored answer by the digest of its question, written as plain data
again. So a field that has its default is left out of what is written: a question keeps
its digest when a later version adds a field that nobody stated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)

from blowfish_fast.apps.description.frozen_model import Model, Name
from blowfish_fast.errors import QuestionError
from blowfish_fast.measure.budgets import Budget, BudgetTerms

from .catalog import TableSpec
from .wording import plain_errors

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MOST_QUERIES = 2**16
"""Stretches or boxes of one question."""
MOST_AXES = 6
"""Attributes of one marginal."""

Width = Annotated[int, Field(ge=1, le=2**20)]
"""How many cells make up one bin."""
Bound = float | str
"""An edge of a cell: a number, or a text for dates."""
Amount = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
"""An amount of epsilon or of rho."""
Part = Annotated[float, Field(gt=0, lt=1)]
"""A probability: beta or delta."""


class Filter(Model):
    """Which records count: a half-open stretch between cell edges, or some levels."""

    attribute: Name
    """The attribute that decides; it need not be one that is asked about."""
    low: Bound | None = None
    """An edge of a cell; values from it on count."""
    high: Bound | None = None
    """An edge of a cell; values below it count."""
    values: list[str | int | float] | None = Field(default=None, min_length=1)
    """The levels that count, for a category."""
    missing: bool | None = None
    """True: records whose value is missing count, alone or beside those of a stretch or
    of some levels. False: the records whose value is there count.
    """

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        stretch = self.low is not None or self.high is not None
        if stretch and self.values is not None:
            raise ValueError(
                f"filter {self.attribute!r} by low and high, or by values, not both"
            )
        narrowed = stretch or self.values is not None
        if not narrowed and self.missing is None:
            raise ValueError(
                f"filter {self.attribute!r} by low and high, by values, or by missing"
            )
        if narrowed and self.missing is False:
            raise ValueError(
                f"a stretch or levels of {self.attribute!r} leave missing values out "
                "already; leave missing away"
            )
        return self

    @model_serializer(mode="wrap")
    def _only_what_was_stated(self, plain: Any) -> dict[str, Any]:
        """Leave out fields that have their defaults, as the module's text says."""
        return _without(plain(self), missing=None)


def _without(plain: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return the fields of a model without those that have the stated defaults."""
    return {
        name: value
        for name, value in plain.items()
        if name not in defaults or value != defaults[name]
    }


class Accuracy(Model):
    """All answers (or each one) off by at most alpha, but for a probability of beta."""

    alpha: float = Field(gt=0, allow_inf_nan=False)
    """How far answers may be off."""
    beta: Part = 0.05
    """The probability that they are farther off."""
    scope: Literal["simultaneous", "per_query"] = "simultaneous"
    """Whether all answers are within alpha at once, or each by itself."""
    chosen: bool = True
    """Whether earlier answers may have led to the question. False is your word that it
    was fixed before you saw any: what is read from them then has narrower intervals.
    """

    @model_serializer(mode="wrap")
    def _only_what_was_stated(self, plain: Any) -> dict[str, Any]:
        """Leave out fields that have their defaults, as the module's text says."""
        stated: dict[str, Any] = plain(self)
        if self.chosen:
            del stated["chosen"]
        return stated


class StatedBudget(Model):
    """A budget or an allotment: epsilon, or rho, or epsilon with delta."""

    epsilon: Amount | None = None
    """An amount of epsilon; alone, or together with delta."""
    rho: Amount | None = None
    """An amount of rho, instead of epsilon: Gaussian noise."""
    delta: Part | None = None
    """With epsilon: the largest rho that implies both is spent."""

    @property
    def stated(self) -> dict[str, float]:
        """What was stated, by name."""
        fields = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
        return {name: amount for name, amount in fields.items() if amount is not None}

    @property
    def terms(self) -> BudgetTerms:
        """What was stated, as a ledger takes it: in texts, so that 0.1 is a tenth."""
        return cast(
            BudgetTerms, {name: repr(amount) for name, amount in self.stated.items()}
        )

    @property
    def budget(self) -> Budget:
        """What was stated, in epsilon or in rho."""
        return Budget.stated(**self.terms)


class Spending(StatedBudget):
    """A budget and, if wanted, a mechanism that spends it.

    A mechanism whose error depends on the data promises no alpha, so it can be asked
    for by its budget only.
    """

    mechanism: Name | None = None
    """The name of the mechanism; the best for the question if it is left out."""

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        # Exactly one of epsilon and rho; delta belongs to epsilon.
        if (self.epsilon is None) == (self.rho is None) or (self.rho and self.delta):
            raise ValueError(
                "state the largest error (alpha), or a cost: epsilon, or rho, or "
                "epsilon with delta"
            )
        return self

    @model_serializer
    def _as_stated(self) -> dict[str, Any]:
        """Leave out amounts that were not stated, as the module's text says."""
        return {**self.stated, "mechanism": self.mechanism}


def _kind_of_cost(stated: Any) -> str:
    """Tell an accuracy from a budget by its fields."""
    names = stated if isinstance(stated, Mapping) else getattr(stated, "__dict__", {})
    return "accuracy" if {"alpha", "beta", "scope", "chosen"} & {*names} else "budget"


Cost = Annotated[
    Annotated[Accuracy, Tag("accuracy")] | Annotated[Spending, Tag("budget")],
    Discriminator(_kind_of_cost),
]


class _Question(Model):
    table: Name
    """The name of the table."""
    filters: list[Filter] = Field(default_factory=list, max_length=16)
    """Which records count, at most one condition for each attribute."""
    cost: Cost
    """The accuracy that is wanted, whose price is found; or the budget that is spent.
    """

    @model_validator(mode="after")
    def _each_filter_once(self) -> Self:
        names = [condition.attribute for condition in self.filters]
        if len(set(names)) != len(names):
            raise ValueError(f"filter each attribute once; received {names}")
        return self


class _OneAxis(_Question):
    attribute: Name
    """The attribute that is asked about."""
    width: Width = 1
    """How many cells make up one bin."""

    @property
    def axes(self) -> list[str]:
        """The attribute whose bins are counted."""
        return [self.attribute]

    @property
    def widths(self) -> list[int]:
        """Cells of a bin."""
        return [self.width]


class HistogramQuestion(_OneAxis):
    """Counts of the bins of one attribute, or running totals if it has an order."""

    kind: Literal["histogram", "cumulative"] = "histogram"
    """Counts of the bins, or running totals."""
    missing: bool = False
    """Whether missing values are a row of their own, the last one; bins alone."""

    @model_validator(mode="after")
    def _rows_of_bins(self) -> Self:
        if self.missing and self.kind == "cumulative":
            raise ValueError("missing values have no place among running totals")
        return self

    @model_serializer(mode="wrap")
    def _only_what_was_stated(self, plain: Any) -> dict[str, Any]:
        """Leave out fields that have their defaults, as the module's text says."""
        return _without(plain(self), missing=False)


class QuantilesQuestion(_OneAxis):
    """Where given parts of all records are reached, by the cumulative histogram."""

    kind: Literal["quantiles"] = "quantiles"
    """Always quantiles."""
    q: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        default=[0.25, 0.5, 0.75], min_length=1, max_length=1000
    )
    """The parts of all records, from 0 to 1."""


class RangesQuestion(_OneAxis):
    """Counts of stretches [low, high) of values of one attribute."""

    kind: Literal["ranges"] = "ranges"
    """Always ranges."""
    ranges: list[tuple[Bound, Bound]] = Field(min_length=1, max_length=MOST_QUERIES)
    """Pairs of edges: the first value that counts, and the first that does not."""


class MarginalQuestion(_Question):
    """Counts of the bins of several attributes together; of two for histogram2d."""

    kind: Literal["histogram2d", "marginal"] = "marginal"
    """A table of several attributes, or of exactly two."""
    attributes: list[Name] = Field(min_length=1, max_length=MOST_AXES)
    """The attributes that are asked about."""
    granularity: list[Width] | None = None
    """How many cells make up one bin, for each attribute."""
    missing: bool = False
    """Whether missing values of each attribute are a row of their own, the last one."""

    @model_serializer(mode="wrap")
    def _only_what_was_stated(self, plain: Any) -> dict[str, Any]:
        """Leave out fields that have their defaults, as the module's text says."""
        return _without(plain(self), missing=False)

    @model_validator(mode="after")
    def _fitting_attributes(self) -> Self:
        names, stated = self.attributes, self.granularity
        if len(set(names)) != len(names):
            raise ValueError(f"name each attribute once; received {names}")
        if self.missing and str(self.kind) == "rectangles":
            raise ValueError("missing values have no place in a box")
        if str(self.kind) != "marginal" and len(names) != 2:
            raise ValueError(f"{self.kind} is of two attributes; received {names}")
        if stated is not None and len(stated) != len(names):
            raise ValueError(
                f"give one granularity per attribute: {len(names)} attributes, "
                f"{len(stated)} numbers"
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


class RectanglesQuestion(MarginalQuestion):
    """Counts of boxes: per attribute [low, high) of values."""

    kind: Literal["rectangles"] = "rectangles"  # type: ignore[assignment]
    """Always rectangles."""
    rectangles: list[list[tuple[Bound, Bound]]] = Field(
        min_length=1, max_length=MOST_QUERIES
    )
    """Boxes, each a pair of edges for every attribute."""

    @model_validator(mode="after")
    def _one_pair_per_attribute(self) -> Self:
        if any(len(box) != len(self.attributes) for box in self.rectangles):
            raise ValueError("each rectangle gives a pair of values per attribute")
        return self


class _ByGroup(_Question):
    attribute: Name
    """The attribute whose values are added up, or looked at."""
    by: Name | list[Name] | None = None
    """The attribute, or attributes, whose bins are the groups. Without one all records
    are one group.
    """
    granularity: list[Width] | None = None
    """How many cells make up one bin, for each attribute of `by`."""
    at_least: int | None = Field(default=None, ge=1, le=2**53)
    """The size of a group from which on alpha holds. A smaller group has a wider
    interval. By default the stated number of records of the table over the groups.
    """

    @model_validator(mode="after")
    def _fitting_groups(self) -> Self:
        names, stated = self.axes, self.granularity
        if len(names) > MOST_AXES - 1:
            raise ValueError(f"groups are of at most {MOST_AXES - 1} attributes")
        if len({*names, self.attribute}) != len(names) + 1:
            raise ValueError(
                f"name each attribute once; received {[self.attribute, *names]}"
            )
        if stated is not None and len(stated) != len(names):
            raise ValueError(
                f"give one granularity per attribute of by: {len(names)} attributes, "
                f"{len(stated)} numbers"
            )
        if getattr(self.cost, "mechanism", None) is not None:
            raise ValueError(
                "sums, means and shares have noise of their own; leave the mechanism "
                "out"
            )
        return self

    @property
    def axes(self) -> list[str]:
        """The attributes whose bins are the groups."""
        if self.by is None:
            return []
        return [self.by] if isinstance(self.by, str) else list(self.by)

    @property
    def widths(self) -> list[int]:
        """Cells of a bin of each of them; single cells if none is stated."""
        return self.granularity or [1] * len(self.axes)


class AmountQuestion(_ByGroup):
    """Sums or means of one attribute, group by group, clipped at public bounds."""

    kind: Literal["sum", "mean"] = "mean"
    """Sums, or means."""
    width: Width = 1
    """How many cells of the attribute count as one value; more make it coarser."""
    clip: tuple[float, float] | None = None
    """Values below the first count as the first, values above the second as the second.
    By default the least and the largest value that the cells hold.
    """

    @model_validator(mode="after")
    def _rising_bounds(self) -> Self:
        if self.clip is not None and not self.clip[0] < self.clip[1]:
            raise ValueError("clip states two bounds, the lower one first")
        return self


class ShareQuestion(_ByGroup):
    """Which part of each group has a value in a stretch, or among some levels."""

    kind: Literal["share"] = "share"
    """Always share."""
    low: Bound | None = None
    """An edge of a cell; values from it on have the property."""
    high: Bound | None = None
    """An edge of a cell; values below it have the property."""
    values: list[str | int | float] | None = Field(default=None, min_length=1)
    """The levels that have the property, for a category."""
    missing: bool | None = None
    """True: the part whose value is missing, of all records of the group. Otherwise
    parts are of the records whose value is there.
    """

    @model_validator(mode="after")
    def _states_a_property(self) -> Self:
        if self.missing is not None and (
            self.missing is False or self.values or (self.low, self.high) != (None,) * 2
        ):
            raise ValueError(
                "missing: true stands alone, in place of low, high, values"
            )
        # A filter has the same rules, and refuses what breaks them when it is made.
        self.property_  # noqa: B018
        return self

    @property
    def property_(self) -> Filter:
        """What a record has that counts, as a filter."""
        return Filter(
            attribute=self.attribute,
            low=self.low,
            high=self.high,
            values=self.values,
            missing=self.missing,
        )


class FrequentQuestion(_Question):
    """Which values of a column of words are frequent, with counts and intervals."""

    kind: Literal["frequent"] = "frequent"
    """Always frequent."""
    attribute: Name
    """The column of words, whose values nobody listed."""
    false_values: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """How many values are listed, on average, that no record has. The fewer these are,
    the higher is the threshold.
    """

    @property
    def axes(self) -> list[str]:
        """The attribute whose values are listed."""
        return [self.attribute]

    @property
    def widths(self) -> list[int]:
        """Each value by itself."""
        return [1]

    @model_validator(mode="after")
    def _states_a_budget(self) -> Self:
        if not isinstance(self.cost, Spending):
            raise ValueError(
                "a list has a threshold in place of an accuracy; state a budget, "
                "epsilon or rho"
            )
        if self.filters:
            raise ValueError("frequent values are those of all records: no filters")
        return self


Question = Annotated[
    HistogramQuestion
    | QuantilesQuestion
    | RangesQuestion
    | MarginalQuestion
    | RectanglesQuestion
    | AmountQuestion
    | ShareQuestion
    | FrequentQuestion,
    Field(discriminator="kind"),
]


def adds_up(question: Question) -> bool:
    """Return whether a question is for sums, means or shares."""
    return isinstance(question, AmountQuestion | ShareQuestion)


_ADAPTER: TypeAdapter[Question] = TypeAdapter(Question)


def read_spending(data: Any) -> Spending:
    """Read a budget, and a mechanism if one is named, from plain data.

    Parameters
    ----------
    data : mapping
        Fields of `Spending`: epsilon, or rho, or epsilon with delta; and a
        mechanism's name.

    Returns
    -------
    Spending
        The checked budget.

    Raises
    ------
    QuestionError
        If a field is wrong; the message names every such field.

    Examples
    --------
    >>> read_spending({"epsilon": 0.25}).budget.epsilon
    Fraction(1, 4)
    """
    try:
        return Spending.model_validate(data)
    except ValidationError as problem:
        raise QuestionError(plain_errors(problem, data)) from None


def read_question(data: Any) -> Question:
    """Read a question from plain data.

    Parameters
    ----------
    data : mapping or Question
        A question is returned as it is. Its "kind" says which fields plain data
        has.

    Returns
    -------
    Question
        The checked question.

    Raises
    ------
    QuestionError
        If a field is wrong; the message names every such field.

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
        raise QuestionError(plain_errors(problem, data)) from None


def table_schema() -> dict[str, Any]:
    """Return the JSON Schema of a description, as it is shipped.

    Beside the table it holds the budget that a table is added with, `StatedBudget`.
    Pydantic writes titles that repeat the names of keys, and offers null wherever a key
    may be left out. Editors would show both, so neither is here.

    Examples
    --------
    >>> table_schema()["$defs"]["PolicySpec"]["properties"]["theta"]["type"]
    'number'
    """
    schema = _without_noise(TableSpec.model_json_schema())
    schema["$defs"]["StatedBudget"] = _without_noise(StatedBudget.model_json_schema())
    return {"$schema": DIALECT, "title": "A table, as it is described once"} | schema


def _without_noise(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without titles, nulls and the examples of docstrings."""
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            plain[key] = {name: _without_noise(part) for name, part in value.items()}
        elif key == "description":
            plain[key] = " ".join(value.partition("\n\nExamples\n")[0].split())
        elif key == "anyOf":
            stated = [
                _without_noise(part) for part in value if part != {"type": "null"}
            ]
            plain |= stated[0] if len(stated) == 1 else {key: stated}
        elif isinstance(value, dict):
            plain[key] = _without_noise(value)
        elif key != "title" and not (key == "default" and value is None):
            plain[key] = value
    return plain
