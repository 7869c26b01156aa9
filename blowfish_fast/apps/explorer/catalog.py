"""Which tables exist, what is public about them, and what must stay secret.

    TableSpec "visits"   source       a table of the database
                         attributes   name, cells, where NULL goes
                         policies     per attribute; none stated: whole records
                         presence     whether someone is there; person, at_most

The description of a table is stored with its ledger and is frozen by the first charge.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from blowfish_fast.data.domain import Domain, WideDomain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import CatalogError, PolicyError
from blowfish_fast.policies import PerPerson, TablePolicy

from .attributes import AttributeSpec, Model, Name, PolicySpec
from .questions import plain_errors

MOST_ATTRIBUTES = 64


class TableSpec(Model):
    """A table: its attributes, and the policy that holds over all of them.

    Attributes
    ----------
    name : str
        What people call it.
    source, database : str
        The table (or schema.table) in its database; the name if left out. Which
        database, where a server has several.
    attributes : list of AttributeSpec
        The columns that may be asked about.
    policies : dict
        Policy of each attribute by name. Empty: any two records are joined (`full` on
        the product), which protects most. As soon as one is stated, policies are
        composed over attributes, and those not named may take any value; each then
        reads a column of its own.
    presence : {False, True, number, "only"}
        Whether someone is in the table at all; see `TablePolicy`. Unless False, the
        number of rows is private and costs.
    person, record : str, optional
        Columns that say whose record a row is, and which of hers: she is then protected
        with all her records, at most `at_most` of which are counted. Without `record`
        they are drawn anew for each question.
    at_most : int, optional
        Stated with `person`.
    population : str, optional
        What the people are called, where several tables hold them: all tables of one
        population share one budget, and a person loses the sum over them. With
        `person`.
    snapshot : str, optional
        A label of the records as they are, which stay so: the snapshot is frozen.
        Without one they may change, every answer is about the records of its time, and
        costs add up over all versions.

    Examples
    --------
    >>> age = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
    >>> rule = {"kind": "threshold", "theta": 2}
    >>> table = TableSpec(name="visits", attributes=[age], policies={"age": rule})
    >>> table.policy().has_bottom, table.attributes[0].name
    (False, 'age')
    """

    name: Name
    source: Name | None = None
    database: Name | None = None
    attributes: list[AttributeSpec] = Field(min_length=1, max_length=MOST_ATTRIBUTES)
    policies: dict[str, PolicySpec] = Field(default_factory=dict)
    description: str = Field(default="", max_length=2000)
    presence: bool | float | Literal["only"] = False
    person: Name | None = None
    record: Name | None = None
    at_most: int | None = Field(default=None, ge=1)
    population: Name | None = None
    snapshot: Name | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [one.name for one in self.attributes]
        if len(set(names)) != len(names):
            raise ValueError(f"attribute names must differ; received {names}")
        unknown = sorted(set(self.policies) - set(names))
        if unknown:
            raise ValueError(f"policies name unknown attributes: {unknown}")
        columns = [one.source for one in self.attributes]
        twice = sorted({one for one in columns if columns.count(one) > 1})
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
        for word, column in (("person", self.person), ("record", self.record)):
            if column is not None and column in columns:
                raise ValueError(
                    f"{word} is a column beside the attributes; received {column!r}, "
                    "whose values the policy protects"
                )
        self.policy()
        return self

    def attribute(self, name: str) -> AttributeSpec:
        """Return an attribute by name."""
        for one in self.attributes:
            if one.name == name:
                return one
        known = [one.name for one in self.attributes]
        raise CatalogError(f"{self.name!r} has no attribute {name!r}; it has {known}")

    def domain(self) -> WideDomain:
        """Return the product of all attributes; its cells are never listed."""
        return WideDomain.product(*(one.domain() for one in self.attributes))

    def policy(self) -> TablePolicy | PerPerson:
        """Return what must stay indistinguishable, for a record or a person."""
        stated = {
            name: one.over(self.attribute(name)) for name, one in self.policies.items()
        }
        table = TablePolicy(self.domain(), stated or None, self.presence)
        if self.person is None:
            return table
        return PerPerson(table, self.at_most, person=self.person)

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
        """Return counts with what is known of their persons."""
        if self.person is None:
            return counts
        return Histogram(domain, counts, at_most=self.at_most, person=self.person)

    def with_policies(self, policies: dict[str, PolicySpec]) -> TableSpec:
        """Return the same table under other policies."""
        try:
            return TableSpec(**{**dict(self), "policies": policies})
        except ValidationError as problem:
            raise PolicyError(plain_errors(problem)) from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return self.model_dump(mode="json", exclude_defaults=True)
