"""What is public about a table, and what must stay secret, as the curator states it.

Nothing here is learnt from records: edges and levels are stated, and whether a column
may hold NULL is read from the schema. The description of a table is stored with its
ledger and is frozen by the first charge.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, ValidationError, model_validator

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.apps.description.frozen_model import Model, Name
from blowfish_fast.apps.description.sample_spec import SampleSpec
from blowfish_fast.data.domain import Domain, KeyDomain, WideDomain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.places.polygon_files import named_features
from blowfish_fast.errors import CatalogError, InputError, PolicyError
from blowfish_fast.policies import (
    Blocks,
    Full,
    Line,
    PerPerson,
    Policy,
    TablePolicy,
    Threshold,
    beside_extra_cells,
)
from blowfish_fast.policies.protocol import Spent

from .wording import plain_errors

MOST_CELLS = 2**20
"""Cells of one attribute."""
MOST_ATTRIBUTES = 64
"""Attributes of one table."""
MOST_CORNERS = 2**18
"""Corners of the borders of one attribute, which a page draws."""
UNITS = {None: "", "D": "days", "h": "hours", "m": "minutes", "s": "seconds"}
"""What a step of an attribute's edges is called: none for numbers."""
Ring = list[list[float]]
Joined = Literal["all", "end", "apart"]


class ExtraCells(NamedTuple):
    """What a choice of the curator about missing values promises, and what it costs.

    Attributes
    ----------
    promise : str
        Who cannot be told from whom, in a sentence.
    cost : str
        How much accuracy the choice costs, in a sentence.
    promise_in_rho : str, optional
        The promise where it is another sentence in rho.
    """

    promise: str
    cost: str
    promise_in_rho: str | None = None

    def promised(self, budget: Spent) -> str:
        """Return the promise in the currency of a budget.

        Parameters
        ----------
        budget : Budget
            What is spent; its power says whether it is counted in epsilon or in
            rho.

        Returns
        -------
        str
            A sentence.
        """
        if budget.power == 2 and self.promise_in_rho is not None:
            return self.promise_in_rho
        return self.promise


EXTRAS: dict[Joined, ExtraCells] = {
    "all": ExtraCells(
        "Nobody can tell a missing value from any value that is there, beyond e^eps.",
        "Any two values are then two steps apart, so a threshold gains at most a "
        "factor of 2 in epsilon.",
        "Nobody can tell a missing value from any value that is there, beyond what rho "
        "allows.",
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
"""Proved in docs/proofs/policies.md, with the graphs drawn."""


class EqualCells(Model):
    """Cells of one width from `start` to `stop`."""

    start: float
    """The lowest edge."""
    stop: float
    """The highest edge, a whole number of widths above the lowest."""
    width: float = Field(gt=0)
    """The width of every cell."""

    def edges(self) -> list[float]:
        """Return the edges, computed as the database computes them.

        Returns
        -------
        list of float
            The numbers start, start + width, and so on, up to stop.

        Raises
        ------
        ValueError
            If the width does not divide the stretch, or there are more than 2^20
            cells.
        """
        edges: list[float] = self._edge_array().tolist()
        return edges

    def _edge_array(self) -> FloatArray:
        """Return the edges as they are worked with: prices read them again and again.

        Products and sums of whole and floating numbers are those of Python.
        """
        parts = (self.stop - self.start) / self.width
        if not abs(parts) <= MOST_CELLS + 0.5:
            raise ValueError(f"an attribute has at most 2^20 cells, not {parts:g}")
        cells = round(parts)
        if cells < 1 or self.start + cells * self.width != self.stop:
            raise ValueError(
                f"{self.start:g} to {self.stop:g} is no whole number of cells of width "
                f"{self.width:g}"
            )
        return self.start + np.arange(cells + 1, dtype=np.float64) * self.width


class WordCells(Model):
    """Words that nobody listed: all of up to so many symbols; see `KeyDomain`."""

    symbols: Annotated[str, Field(min_length=1, max_length=256)] = "a-z"
    """The characters of words, such as a-z0-9 and a hyphen at the end."""
    longest: int = Field(default=14, ge=1, le=512)
    """Characters of the longest word; longer ones lie outside."""
    case: bool = False
    """Whether capitals are letters of their own."""


class DistrictShapes(Model):
    """Public borders of the levels of a category, by which answers are drawn as a map.

    They say where a level lies and nothing of records: hulls or clusters of the data
    would publish them.
    """

    id: Name
    """The property of features that holds the level."""
    features: list[dict[str, Any]] = Field(min_length=1, max_length=MOST_CELLS)
    """Features of GeoJSON, each a Polygon or a MultiPolygon with properties."""
    degrees: bool = True
    """Whether coordinates are longitude and latitude, as GeoJSON has it; others are
    drawn as they are.
    """

    @cached_property
    def named(self) -> dict[Any, list[list[Ring]]]:
        """Return the polygons of each level: rings of coordinates.

        Raises
        ------
        InputError
            If a feature is no polygon, or lacks the property.
        ValueError
            If two features have one level, or there are more than 2^18 corners.
        """
        ids, shapes = named_features(self.features, self.id)
        seen: set[Any] = set()
        for level in ids:
            named = isinstance(level, str | int | float)
            if not named or level in seen:
                again = " a second time" if named else ""
                raise ValueError(
                    f"each district has a level of its own by {self.id!r}; received "
                    f"{level!r}{again}"
                )
            seen.add(level)
        corners = sum(len(ring) for shape in shapes for part in shape for ring in part)
        if corners > MOST_CORNERS:
            raise ValueError(
                f"borders have at most 2^18 = {MOST_CORNERS:,} corners, for a page to "
                f"draw; received {corners:,}: simplify them"
            )
        # Plain lists: descriptions are compared, and arrays have no one truth value.
        plain = [[[ring.tolist() for ring in part] for part in at] for at in shapes]
        return dict(zip(ids, plain, strict=True))


class AttributeSpec(Model):
    """What is public about a column.

    Its cells are stated in exactly one of five ways: `cells`, `edges`, `dates`,
    `levels` or `words`; `districts` alone state the levels by their ids. Every field is
    described below it, and in the JSON schema that
    ``AttributeSpec.model_json_schema()`` returns.

    Examples
    --------
    >>> age = AttributeSpec(name="age", cells={"start": 0, "stop": 100, "width": 10})
    >>> age.outside, age.missing
    (None, 'cell')
    """

    name: Name
    """What questions call the attribute."""
    column: Name | None = None
    """The column of the table, if it has another name."""
    cells: EqualCells | None = None
    """Cells of equal width; one of five ways to state the cells."""
    edges: list[float] | None = None
    """The edges of the cells, rising; one of five ways to state the cells."""
    dates: list[datetime | date] | None = None
    """The dates at which time is cut, rising; one of five ways to state the cells."""
    levels: list[str | int | float] | None = None
    """The levels of a category; one of five ways to state the cells."""
    districts: DistrictShapes | None = None
    """Public borders of levels: answers by this attribute are drawn as a map. Without
    levels, the ids of the districts are the levels.
    """
    words: WordCells | None = None
    """Texts that nobody listed; one of five ways to state the cells. They are asked by
    the question which of them are frequent.
    """
    outside: Literal["clamp", "cell"] | None = None
    """Where values outside the cells go: into the end cells (clamp), or into a cell of
    their own (cell). Levels and words always have such a cell.
    """
    missing: Literal["cell", "none"] = "cell"
    """A cell for NULL, or the promise of the schema that there is none."""
    extras_joined: Joined = "all"
    """Which values the cells for missing values and values outside are joined to, once
    a policy is stated: all, only the last ones (end), or none (apart).
    """
    unit: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    """What its numbers count, for people to read, such as years."""
    whole: bool = False
    """Whether its numbers are whole, by the column's type: the cell from 20 to 21 then
    holds 20 alone, and sums and means are exact to the cell.
    """

    @model_validator(mode="before")
    @classmethod
    def _levels_of_districts(cls, stated: Any) -> Any:
        shapes = stated.get("districts") if isinstance(stated, Mapping) else None
        ways = ("cells", "edges", "dates", "levels", "words")
        if shapes is None or any(stated.get(way) is not None for way in ways):
            return stated
        try:
            read = DistrictShapes.model_validate(shapes)
        except ValidationError:
            # Said of the field itself, when it is read.
            return stated
        return {**stated, "districts": read, "levels": [*_drawn(read)]}

    @model_validator(mode="after")
    def _exactly_one_domain(self) -> Self:
        stated = [self.cells, self.edges, self.dates, self.levels, self.words]
        if sum(form is not None for form in stated) != 1:
            raise ValueError(
                f"state the domain of {self.name!r} by exactly one of cells, edges, "
                "dates, levels or words"
            )
        if any(
            getattr(moment, "tzinfo", None) is not None for moment in self.dates or ()
        ):
            raise ValueError(f"dates of {self.name!r} are stated without a time zone")
        if self.districts is not None:
            levels = {*(self.levels or ())}
            stray = [level for level in _drawn(self.districts) if level not in levels]
            if stray:
                raise ValueError(
                    f"districts of {self.name!r} are levels of it; received "
                    f"{stray[0]!r}, which is none"
                )
        if self.whole and self.cells is None and self.edges is None:
            raise ValueError(f"{self.name!r} has no numbers that could be whole")
        listless = self.levels is not None or self.words is not None
        if listless and self.outside == "clamp":
            what = "levels" if self.words is None else "words"
            raise ValueError(f"{self.name!r} has {what}: values outside need a cell")
        try:
            self.domain()
        except ValueError as problem:
            raise ValueError(f"{self.name!r}: {problem}") from None
        return self

    @property
    def source(self) -> str:
        """Name of the column."""
        return self.column or self.name

    @property
    def kind(self) -> Literal["number", "date", "category", "words"]:
        """What its values are."""
        if self.words is not None:
            return "words"
        if self.levels is not None:
            return "category"
        return "date" if self.dates is not None else "number"

    @property
    def clamped(self) -> bool:
        """Whether values outside go to the end cells."""
        listed = self.levels is None and self.words is None
        return listed and self.outside != "cell"

    def domain(self) -> Domain:
        """Return the public cells, those for values outside and missing included.

        Of words it is a `KeyDomain`, which questions for bins never see.
        """
        if self.words is not None:
            rule = self.words
            words: Any = KeyDomain(
                rule.symbols, rule.longest, self.name, case=rule.case
            )
            extended: Domain = words.with_extra_cells(
                outside=True, missing=self.missing == "cell"
            )
            return extended
        if self.levels is not None:
            plain = Domain.from_levels(self.levels, name=self.name)
        elif self.dates is not None:
            plain = Domain.from_dates(self.dates, name=self.name)
        else:
            edges = self.edges if self.cells is None else self.cells._edge_array()
            assert edges is not None
            plain = Domain.from_edges(edges, name=self.name)
        if plain.size > MOST_CELLS:
            raise ValueError(f"an attribute has at most 2^20 cells, not {plain.size:,}")
        return plain.with_extra_cells(
            outside=not self.clamped, missing=self.missing == "cell"
        )


def _drawn(shapes: DistrictShapes) -> dict[Any, list[list[Ring]]]:
    """Return the polygons of levels; what is wrong with them, as pydantic reads it."""
    try:
        return shapes.named
    except InputError as problem:
        raise ValueError(str(problem)) from None


class PolicySpec(Model):
    """A policy of one attribute, as the curator states it.

    `theta` counts cells, or values with ``unit="value"``; blocks are lists of levels,
    or of numbers of cells, each in exactly one.

    Examples
    --------
    >>> PolicySpec(kind="threshold", theta=5, unit="value").kind
    'threshold'
    """

    kind: Literal["full", "line", "threshold", "blocks"] = "full"
    """Which values are joined: any two, neighbouring cells, values at most
    theta apart, or values of one block.
    """
    theta: float | None = Field(default=None, gt=0)
    """How far apart joined values may be; for a threshold alone."""
    unit: Literal["cells", "value"] = "cells"
    """Whether theta counts cells, or is measured in values by the edges."""
    blocks: list[list[str | int | float]] | None = None
    """Levels, or numbers of cells, each in exactly one block; for blocks alone."""

    @model_validator(mode="after")
    def _fitting_fields(self) -> Self:
        if (self.kind == "threshold") != (self.theta is not None):
            raise ValueError("theta belongs to a threshold policy, and only to it")
        if (self.kind == "blocks") != (self.blocks is not None):
            raise ValueError("blocks belong to a blocks policy, and only to it")
        return self

    def over(self, attribute: AttributeSpec) -> Policy:
        """Return the policy over all cells of an attribute, extra ones included.

        Parameters
        ----------
        attribute : AttributeSpec
            The attribute that the policy is stated for.

        Returns
        -------
        Policy
            The policy over its domain.

        Raises
        ------
        PolicyError
            If the kind needs an order that a category lacks, or the blocks do not
            cover it.
        """
        domain = attribute.domain()
        (axis,) = domain.attributes
        if axis.levels is not None and self.kind in ("line", "threshold"):
            raise PolicyError(
                f"{attribute.name!r} is a category without an order; use full or blocks"
            )
        inner = self._plain(domain.without_extra_cells())
        return beside_extra_cells(inner, domain, attribute.extras_joined)

    def words(self, attribute: AttributeSpec) -> str:
        """Say in the attribute's own units which two values cannot be told apart.

        Parameters
        ----------
        attribute : AttributeSpec
            The attribute that the policy is stated for.

        Returns
        -------
        str
            The end of a sentence, such as "values that differ by at most 5 years".
        """
        (axis,) = attribute.domain().attributes
        if self.kind in ("full", "blocks"):
            near = "any two values" if self.kind == "full" else "values of one block"
        else:
            reach = self.theta or 1.0
            if self.unit == "value":
                widths = {1.0}
            elif attribute.cells is not None:
                widths = {attribute.cells.width}
            else:
                widths = set(np.diff(axis.cuts or (0, 1)).tolist())
            near = f"values in cells at most {reach:g} apart"
            if len(widths) == 1 and axis.unit in UNITS:
                unit = UNITS[axis.unit] or attribute.unit or ""
                size = f"{reach * widths.pop():g} {unit}".strip()
                near = f"values that differ by at most {size}"
        what = " or ".join(extra.strip("()") for extra in axis.extras)
        if not what or attribute.extras_joined == "apart":
            public = ["which block"] if self.kind == "blocks" else []
            public += [f"which are {what}"] if what else []
            return f"{near}; public: {', '.join(public)}" if public else near
        if attribute.extras_joined == "end" and self.kind in ("line", "threshold"):
            return f"{near}, where one that is {what} stands one step beyond the last"
        return f"{near}, and any two of which one is {what}"

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


class TableSpec(Model):
    """A table: its attributes, and the policy that holds over all of them.

    Every field is described below it, and in the JSON schema that
    ``TableSpec.model_json_schema()`` returns.

    Examples
    --------
    >>> age = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
    >>> rule = {"kind": "threshold", "theta": 2}
    >>> table = TableSpec(name="visits", attributes=[age], policies={"age": rule})
    >>> table.attributes[0].missing, table.policy().has_bottom
    ('cell', False)
    """

    name: Name
    """What questions call the table."""
    source: Name | None = None
    """The table in its database, or schema.table, if it has another name."""
    database: Name | None = None
    """Which database, where a server has several."""
    attributes: list[AttributeSpec] = Field(min_length=1, max_length=MOST_ATTRIBUTES)
    """The columns that may be asked about, with their public cells."""
    policies: dict[str, PolicySpec] = Field(default_factory=dict)
    """The policy of each attribute by its name. If there are none, any two records are
    joined, which protects most. As soon as one is stated, policies are composed over
    attributes, and the attributes without one may take any value.
    """
    description: str = Field(default="", max_length=2000)
    """A text for people."""
    presence: bool | float | Literal["only"] = False
    """Whether it is protected that someone is in the table at all; see `TablePolicy`.
    Unless it is False, the number of rows is private and costs.
    """
    person: Name | None = None
    """The column that says whose record a row is. A person is then protected with all
    her records.
    """
    record: Name | None = None
    """The column that tells the records of one person apart. Without it, those that
    count are drawn anew for each question.
    """
    at_most: int | None = Field(default=None, ge=1)
    """How many records of one person are counted; stated together with person."""
    records: int | None = Field(default=None, ge=1, le=2**53)
    """About how many records there are, as everybody knows or guesses. It is not read
    from them, and protects nothing: means are planned for groups of this many records
    over the number of groups, unless a question states another size.
    """
    population: Name | None = None
    """What the people are called, where several tables hold them. These tables share
    one budget, and a person loses the sum over them.
    """
    snapshot: Name | None = None
    """A label of the records as they are now, which stay so. Without one they may
    change, every answer is about the records of its time, and costs add up over
    versions.
    """
    share: Literal["own", "all", "published"] = "own"
    """From whose stored answers new questions are read for free: one's own, everybody's
    or one's own and those that the curator published. That a price is 0 tells that
    something like it was asked before. The very same question has one answer for all.
    """
    broad: float = Field(default=0.0, ge=0, le=4, allow_inf_nan=False)
    """How much dearer a broader answer may be that is bought in place of a narrower
    one, as a part of its price: .5 lets a question cost half more where all cells of
    its attributes are measured instead, which later questions are read from. It is a
    bet on what is asked later; 0 buys nothing broader.
    """

    sample: SampleSpec | None = None
    """How the records were drawn from a population, where they are a sample: analysts
    may then ask for intervals of the population. Left out where they are everybody.
    """

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) != len(names):
            raise ValueError(f"attribute names must differ; received {names}")
        unknown = sorted(set(self.policies) - set(names))
        if unknown:
            raise ValueError(f"policies name unknown attributes: {unknown}")
        words = {
            attribute.name
            for attribute in self.attributes
            if attribute.words is not None
        }
        if words & {*self.policies}:
            raise ValueError(
                f"{min(words & {*self.policies})!r} holds words, any two of which are "
                "joined; leave its policy out"
            )
        columns = [attribute.source for attribute in self.attributes]
        twice = sorted({column for column in columns if columns.count(column) > 1})
        if self.policies and twice:
            raise ValueError(
                f"two attributes read the column {twice[0]!r}, so a value that moves "
                "changes both, and policies by attribute let one change at a time. "
                "Leave one of them out (questions have a granularity of their own), or "
                "state no policies: whole records are secret then"
            )
        if (self.person is None) != (self.at_most is None):
            raise ValueError(
                "person and at_most are stated together: whose record a row is, and "
                "how many of a person's records are counted"
            )
        if self.record is not None and self.person is None:
            raise ValueError("record says which of a person's records it is: person")
        if self.population is not None and self.person is None:
            raise ValueError("a population shares one budget by its person: person")
        if self.sample is not None and self.person is not None:
            raise ValueError(
                "a sample is one of people with one record each, and person says that "
                "somebody may have several: describe a table with a row for each person"
            )
        if self.sample is not None and self.sample.column is not None:
            if self.sample.column not in names:
                raise ValueError(
                    "strata, and classes of weights, are those of an attribute; the "
                    f"column of the sample is {self.sample.column!r}, and there are "
                    f"{names}"
                )
            strata = self.attribute(self.sample.column)
            (axis,) = strata.domain().attributes
            self.sample.check(axis, strata.kind)
        for word, column in (("person", self.person), ("record", self.record)):
            if column is not None and column in columns:
                raise ValueError(
                    f"{word} is a column beside the attributes; received {column!r}, "
                    "whose values the policy protects"
                )
        self.policy()
        return self

    def attribute(self, name: str) -> AttributeSpec:
        """Return an attribute by name.

        Parameters
        ----------
        name : str
            The name of the attribute, which need not be that of its column.

        Returns
        -------
        AttributeSpec
            Its description.

        Raises
        ------
        CatalogError
            If there is none of that name.
        """
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        names = [attribute.name for attribute in self.attributes]
        raise CatalogError(f"{self.name!r} has no attribute {name!r}; it has {names}")

    def domain(self) -> WideDomain:
        """Return the product of all attributes; its cells are never listed."""
        # Words may stand beside other attributes here, where nobody counts cells.
        each = (attribute.domain().attributes for attribute in self.attributes)
        return WideDomain._of(axis for axes in each for axis in axes)

    def policy(self) -> TablePolicy | PerPerson:
        """Return what must stay indistinguishable, for a record or a person."""
        stated = {
            name: policy.over(self.attribute(name))
            for name, policy in self.policies.items()
        }
        words = {
            name: policy.words(self.attribute(name))
            for name, policy in self.policies.items()
        }
        table = TablePolicy(self.domain(), stated or None, self.presence, words=words)
        if self.person is None:
            return table
        return PerPerson(table, self.at_most, person=self.person)

    def without_borders(self) -> TableSpec:
        """Return the table without the borders of its levels, which only a map reads.

        Returns
        -------
        TableSpec
            A description with the same cells and policies.
        """
        if all(attribute.districts is None for attribute in self.attributes):
            return self
        plain = [
            attribute.model_copy(update={"districts": None})
            for attribute in self.attributes
        ]
        return self.model_copy(update={"attributes": plain})

    def with_all_records(self) -> TableSpec:
        """Return the table with every record of a person counted: never to be released.

        Returns
        -------
        TableSpec
            A description without persons, for what the curator alone sees.
        """
        bound = dict.fromkeys(("person", "record", "at_most", "population"))
        return self.model_copy(update=bound)

    def promise(self, budget: Spent | None = None) -> str:
        """Say what stays indistinguishable, in the units of the attributes.

        Parameters
        ----------
        budget : Budget, optional
            Chooses the currency of the sentence; epsilon by default.

        Returns
        -------
        str
            The policy's sentence, in which each stated policy speaks in its
            attribute's units.
        """
        return self.policy().describe(budget)

    def without_words(self) -> TableSpec:
        """Return the table without its columns of words, which no cells list."""
        listed = [attribute for attribute in self.attributes if attribute.words is None]
        if len(listed) == len(self.attributes):
            return self
        if not listed:
            raise CatalogError(
                f"{self.name!r} has columns of words alone; ask which are frequent"
            )
        return self.model_copy(update={"attributes": listed})

    def versions(self) -> str:
        """Say whether the records may change, and what that costs."""
        if self.snapshot is not None:
            return (
                f"The snapshot {self.snapshot!r} is frozen: all answers are about the "
                "same records."
            )
        return (
            "The records may change: every answer is about those of its time, and "
            "costs add up over all versions."
        )

    def bounded(self, counts: Any, domain: Domain) -> Any:
        """Return counts in the shape of a domain, with the bound on a person's records.

        Parameters
        ----------
        counts : ndarray of int64
            The count of every cell in C order.
        domain : Domain
            The domain of the question's bins.

        Returns
        -------
        ndarray or Histogram
            The counts, reshaped; a histogram that states `person` and `at_most`
            where the table is about persons.
        """
        counts = counts.reshape(domain.shape)
        if self.person is None:
            return counts
        return Histogram(domain, counts, at_most=self.at_most, person=self.person)

    def with_policies(self, policies: Mapping[str, Any]) -> TableSpec:
        """Return the same table under other policies.

        Parameters
        ----------
        policies : mapping
            Policies by attribute, as `PolicySpec` or as plain data; they replace
            all others.

        Returns
        -------
        TableSpec
            A new description; this one does not change.

        Raises
        ------
        PolicyError
            If a policy does not fit its attribute.
        """
        stated = {**dict(self), "policies": dict(policies)}
        try:
            return TableSpec(**stated)
        except ValidationError as problem:
            raise PolicyError(plain_errors(problem, stated)) from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return self.model_dump(mode="json", exclude_defaults=True)


def as_table(table: Any) -> TableSpec:
    """Read the description of a table from plain data.

    Parameters
    ----------
    table : TableSpec or mapping
        A description, or plain data with the fields of `TableSpec`.

    Returns
    -------
    TableSpec
        The checked description.

    Raises
    ------
    CatalogError
        If a field is wrong; the message names each.
    """
    if isinstance(table, TableSpec):
        return table
    try:
        return TableSpec.model_validate(table)
    except ValidationError as problem:
        raise CatalogError(plain_errors(problem, table)) from None
