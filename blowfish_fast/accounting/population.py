"""One budget for all tables that hold the same people.

Neighbours: the rows of one person change in every table, in each by its own relation.
Releases from a table, or from a join that keeps the person, add up (Theorem B,
``docs/proofs/persons.md``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from weakref import WeakValueDictionary

from blowfish_fast._support.plug_ins import check_vouched
from blowfish_fast._support.validation import NamingRightWords, malformed_as, quoted
from blowfish_fast.errors import InputError, LedgerError, PolicyError
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.policies import Full, PerPerson, Policy, WithAbsent, from_dict
from blowfish_fast.release.file import Release

from .journal_file import held_folder, terms_beside
from .ledger import Ledger
from .request import (
    NamedRequest,
    RandomLike,
    RequestPart,
    as_place,
    check_mechanism,
    check_policy,
    read_named,
    settle_together,
)

QUOTES = frozenset("\"'`[]")
SCHEMAS = ("main", "public", "dbo")
"""Schemas that DuckDB, PostgreSQL and SQL Server take where none is named."""


class PeopleTable(NamedTuple):
    """A table of a population.

    Attributes
    ----------
    name : str
        What it is called.
    policy : Policy
        What is secret in it.
    source : str, optional
        Where it is.
    columns : Mapping[str, str], optional
        The names of its columns at the source, by attribute.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.policies.AddRemove(bf.Domain(9, names=["age"]))
    >>> PeopleTable("visits", ages, source="clinic.duckdb/visits").name
    'visits'
    """

    name: str
    policy: Policy
    source: str | None = None
    columns: Mapping[str, str] | None = None

    @property
    def read_columns(self) -> dict[str, str]:
        """From which column each attribute is read, in one spelling, by its name."""
        stated = self.columns or {}
        names = map(str, self.policy.domain.names)
        return {name: one_spelling(stated.get(name, name)) for name in names}

    @property
    def read_source(self) -> str | None:
        """Where the records are, in one spelling."""
        return None if self.source is None else one_spelling(self.source)


def one_spelling(name: str) -> str:
    """Return what names of one table or column have in common, whoever wrote them.

    Databases differ in which letters they fold and how they quote. Taking two names for
    one refuses too much at worst; taking one for two would let policies disagree.

    Examples
    --------
    >>> one_spelling('"Main"."Visits"'), one_spelling("clinic.duckdb/visits ")
    ('visits', 'clinic.duckdb/visits')
    """
    unquoted = "".join(character for character in name if character not in QUOTES)
    plain = unquoted.strip().casefold()
    place, slash, last = plain.rpartition("/")
    schema, _, inside = last.partition(".")
    return place + slash + (inside if schema in SCHEMAS and inside else last)


_OWNERS: WeakValueDictionary[str, Population] = WeakValueDictionary()
"""By source, the population of this process that pays for it."""


class Population(NamingRightWords):
    """People whose records lie in several tables, and the one budget they share.

    Two descriptions of one source share the budget: they belong to one population, and
    agree on the policy and on the names of the columns that both read. A second
    population over a source is refused if another one of this process pays for it, or
    one whose ledger lies in the same folder, whichever process made it. That two
    sources hold the same records, as a view or a copy does, nobody sees here: not to
    describe them apart is your word.

    Parameters
    ----------
    name : str
        What the people are called.
    person : str, optional
        The column that says whose record a row is, in every table. It is left out, as
        `tables` is, where an existing ledger is opened.
    tables : mapping or iterable, optional
        What is secret in each table: a mapping from names to policies, or descriptions
        with ``name``, ``source`` and ``policy()``.
    path : path, optional
        The file of the ledger; None keeps it in memory.
    epsilon, rho, delta : number
        The whole budget of the people, as for `Ledger`.
    auditor : path, optional
        Who may open later draws, as for `Ledger`.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages, values = bf.Domain(9, names=["age"]), bf.Domain(4, names=["value"])
    >>> secret = {one.names[0]: bf.policies.AddRemove(one) for one in (ages, values)}
    >>> people = Population(
    ...     "patients",
    ...     person="patient",
    ...     tables={"visits": secret["age"], "labs": secret["value"]},
    ...     epsilon=1,
    ... )
    >>> policy = people.policy("labs", at_most=3)
    >>> laplace = bf.Laplace(policy, bf.workloads.Identity(values), epsilon="0.25")
    >>> data = bf.Histogram(values, [4, 9, 2, 1], at_most=3, person="patient")
    >>> release = people.release("labs", laplace, data, rng=1, snapshot="2026-11-15")
    >>> float(people.remaining), release.details["as_of"]
    (0.75, '2026-11-15')
    """

    def __init__(
        self,
        name: str,
        *,
        person: str | None = None,
        tables: Mapping[str, Policy] | Iterable[Any] | None = None,
        path: str | os.PathLike[str] | None = None,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        auditor: str | os.PathLike[str] | None = None,
    ) -> None:
        listed = None if tables is None else _read_tables(tables, person)
        about = None
        if listed is not None:
            about = {"population": name, "person": person, "tables": _plain(listed)}
        policy = None if listed is None else listed[0].policy
        where = as_place(path)
        new = listed if where is not None and not where.exists() else None
        with _paid_once(where, new or ()):
            self.ledger = Ledger(
                where,
                policy=policy,
                about=about,
                epsilon=epsilon,
                rho=rho,
                delta=delta,
                auditor=auditor,
            )
        recorded = self.ledger.about
        if recorded.get("population") != name or (
            about is not None and recorded != about
        ):
            raise LedgerError(
                "this ledger was made for other people, or for other tables of theirs",
                received=f"{recorded.get('population')!r} with "
                f"{sorted(recorded['tables'])}"
                if "tables" in recorded
                else "the ledger of one table",
            )
        self.name, self.person = name, str(recorded["person"])
        self.tables = {
            table_name: PeopleTable(
                table_name,
                from_dict(stated["policy"]),
                stated["source"],
                stated.get("columns"),
            )
            for table_name, stated in recorded["tables"].items()
        }
        for table in self.tables.values():
            self._own(table.read_source)

    def _own(self, source: str | None) -> None:
        """Refuse a source for which another population pays: the two would add up."""
        if source is None:
            return
        owner = _OWNERS.setdefault(source, self)
        same = owner.ledger.path is not None and owner.ledger.path == self.ledger.path
        if owner is not self and not same:
            _refuse_second_budget(owner.name, source)

    @property
    def spent(self) -> Fraction:
        """What a person has lost over all tables, in the ledger's currency."""
        return self.ledger.spent

    @property
    def remaining(self) -> Fraction:
        """What is left of the budget that all tables share."""
        return self.ledger.remaining

    def add(self, table: PeopleTable) -> None:
        """Describe one more table of these people; refused after the first charge."""
        described = list(self.tables.values())
        (*_, added) = _read_tables([*described, table], self.person)
        about = {**self.ledger.about, "tables": _plain([*described, added])}
        self._own(added.read_source)
        with _paid_once(self.ledger.path, [added]):
            self.ledger.amend(about=about)
        self.tables[added.name] = added

    def policy(self, table: str, at_most: int | None = None) -> Policy:
        """Return what is secret in a table.

        Parameters
        ----------
        table : str
            Its name.
        at_most : int, optional
            How many records of a person are counted.

        Returns
        -------
        Policy
            The policy.
        """
        policy = self._table(table).policy
        assert isinstance(policy, PerPerson)
        return policy if at_most is None else policy.with_at_most(at_most)

    def _table(self, name: str) -> PeopleTable:
        if name not in self.tables:
            raise InputError(
                f"the population {self.name!r} has the tables {sorted(self.tables)}",
                received=quoted(name),
            )
        return self.tables[name]

    def release(
        self,
        table: str | Sequence[str],
        mechanism: Mechanism,
        data: Any,
        *,
        on: Sequence[str] = (),
        request: str | None = None,
        rng: RandomLike | None = None,
        snapshot: str | None = None,
        vouched: bool = False,
        analyst: str | None = None,
        note: Mapping[str, Any] | None = None,
    ) -> Release:
        """Release from one table, or from a join of several, and charge all people.

        Parameters
        ----------
        table : str, or sequence of str
            The name of the table, or those of the tables that were joined.
        mechanism : Mechanism
            Under the policy of the table, or one that implies it. Over a join it must
            join any two cells, as `Full` does where something may move, and every cell
            to "absent" where presence is a secret in one of the tables.
        data : Histogram or TableCounts
            Bounded by the population's person: `Histogram.from_records` with
            ``person=``, and after the join, where there is one.
        on : sequence of str
            For an inner join: the columns it was made on, the person's among them.
            Others are no attributes that may move.
        request : str, optional
            Name of this question. Asked again under it, the stored answer comes back.
        rng : int or numpy Generator, optional
            A seed, for experiments: refused by a ledger on disk.
        snapshot : str, optional
            A public label of the version of the data; see `Ledger.release`.
        vouched : bool
            Your word for parts of the question from outside the package; see
            `Ledger.release`.
        analyst : str, optional
            Whose allotment pays, beside the budget.
        note : mapping, optional
            Public plain values, which the log keeps beside the names of the tables.

        Returns
        -------
        Release
            The answer, which the ledger has stored.

        Raises
        ------
        PolicyError
            If the data do not say whose records they hold, if the mechanism promises
            too little, or if a join lets one person's change reach others.
        BudgetError
            If the price is more than what is left.
        """
        names = [table] if isinstance(table, str) else list(table)
        read = [self._table(name) for name in names]
        check_mechanism(mechanism)
        check_vouched([mechanism], vouched=vouched, data=data)
        self._check_people(data)
        if len(read) == 1:
            check_policy(mechanism, read[0].policy)
        else:
            self._check_join(read, mechanism, on)
        terms = self.ledger._terms()._replace(policy=read[0].policy)
        (answer,) = self.ledger._settle(
            [RequestPart(mechanism, data)],
            terms,
            request,
            rng,
            None,
            analyst=analyst,
            note={**(note or {}), "tables": names},
            snapshot=snapshot,
        )
        return answer

    def release_together(
        self,
        table: str,
        requests: Sequence[NamedRequest | tuple[Any, ...]],
        *,
        analyst: str | None = None,
    ) -> list[Release]:
        """Release several answers from one table; see `Ledger.release_together`.

        Parameters
        ----------
        table : str
            The name of the table.
        requests : sequence of (mechanism, data, name)
            As for a ledger, with mechanisms and data as for `release`.
        analyst : str, optional
            Whose allotment pays, beside the budget.

        Returns
        -------
        list of Release
            The answers, which the ledger has stored.

        Raises
        ------
        PolicyError
            If data do not say whose records they hold, or a mechanism promises too
            little.
        BudgetError
            If the sum is more than what is left; nothing is charged.
        """
        policy = self._table(table).policy
        asked = read_named(requests)
        for request in asked:
            self._check_people(request.data)
            check_policy(request.mechanism, policy)
        terms = self.ledger._terms()._replace(policy=policy)
        noted = [
            request._replace(note={**(request.note or {}), "tables": [table]})
            for request in asked
        ]
        return settle_together(self.ledger, noted, terms, None, analyst)

    def _check_people(self, data: Any) -> None:
        """Refuse data that are not bounded by the population's person."""
        bound = getattr(data, "bound", None)
        if bound is None or bound.person != self.person:
            raise PolicyError(
                f"releases about these people are bounded by {self.person!r}, and a "
                "join keeps that column",
                received="data that do not say whose records they hold"
                if bound is None
                else f"data with {bound.words()}",
                way_out=f'Count with person="{self.person}"; nothing was charged',
                code="person_lost",
            )

    def _check_join(
        self, tables: Sequence[PeopleTable], mechanism: Mechanism, on: Sequence[str]
    ) -> None:
        """Refuse joins in which one person's change reaches others or moves further."""
        if self.person not in on:
            raise PolicyError(
                f"tables of these people are joined on {self.person!r}: otherwise one "
                "person's rows meet those of others",
                received=f"a join on {list(on)}",
                way_out="Nothing was charged",
                code="person_lost",
            )
        moving = {
            column
            for table in tables
            if table.policy.has_moves
            for column in table.read_columns.values()
        }
        moved = sorted(column for column in on if one_spelling(column) in moving)
        if moved:
            raise PolicyError(
                "a join on a column that may move changes which rows meet",
                received=f"a join on {moved}",
                way_out="Join on the person and on keys that never change",
            )
        policy = mechanism.policy
        rule = policy.person_rule
        single = policy.unconstrained
        moves = single.base if isinstance(single, WithAbsent) else single
        needs = (
            any(table.policy.has_moves for table in tables),
            any(table.policy.has_bottom for table in tables),
        )
        enough = (not needs[0] or isinstance(moves, Full)) and (
            not needs[1] or (policy.has_bottom and policy.bottom_cells().all())
        )
        near = not isinstance(single, WithAbsent) or single.absent_length == 1
        if rule is None or rule.person != self.person or not enough or not near:
            raise PolicyError(
                "over a join a row moves in several tables at once, or disappears; the "
                "policy must join any two cells, and every cell to "
                '"absent" where presence is a secret',
                received=repr(policy),
                way_out="State policies.WithAbsent(policies.Full(domain)).per_person("
                f'at_most, person="{self.person}"); nothing was charged',
            )

    def sentence(self) -> str:
        """Say who is protected at which price so far."""
        spent = self.ledger.currency.words(
            self.ledger.currency.charged(self.ledger.spent)
        )
        return (
            f"one {self.person} with all records in {', '.join(self.tables)} is "
            f"protected at {spent}, the sum over all tables"
        )

    def close(self) -> None:
        """Close the ledger; its file goes on paying for the sources of the tables."""
        self.ledger.close()
        if self.ledger.path is not None:
            for table in self.tables.values():
                if _OWNERS.get(table.read_source or "") is self:
                    del _OWNERS[table.read_source or ""]

    def __repr__(self) -> str:
        return f"Population({self.name!r}, {sorted(self.tables)}, {self.ledger!r})"


def _read_tables(tables: Any, person: str | None) -> list[PeopleTable]:
    if not isinstance(person, str) or not person:
        raise InputError(
            "person names the column that says whose record it is, in every table",
            received=quoted(person),
        )
    descriptions: Any = tables.items() if isinstance(tables, Mapping) else tables
    listed: list[PeopleTable] = []
    rule = "tables are given by name and policy, {'visits': AddRemove(domain)}"
    with malformed_as(InputError, rule):
        descriptions = list(descriptions)
    for described in descriptions:
        with malformed_as(InputError, rule):
            if hasattr(described, "source") and callable(described.policy):
                columns = {
                    attribute.name: attribute.source
                    for attribute in getattr(described, "attributes", ())
                }
                described = PeopleTable(
                    described.name,
                    described.policy(),
                    described.source or described.name,
                    columns,
                )
            name, policy, source, stated = PeopleTable(*described)
            columns = dict(stated or {})
        words = (*columns, *columns.values())
        texts = all(isinstance(word, str) for word in words)
        if not isinstance(name, str) or not isinstance(policy, Policy) or not texts:
            raise InputError(rule, received=quoted(described))
        single = policy.base if isinstance(policy, PerPerson) else policy
        attributes = sorted(map(str, single.domain.names))
        read = {name: column for name, column in columns.items() if name != column}
        if not {*read} <= {*attributes}:
            raise InputError(
                f"columns are given by the attributes of {name!r}, {attributes}",
                received=sorted(read),
            )
        table = PeopleTable(
            name, single.per_person(person=person), source, read or None
        )
        _refuse_one_column_twice(table)
        listed.append(table)
    names = [table.name for table in listed]
    if not names or len(set(names)) < len(names):
        raise InputError("name each table once, and at least one", received=names)
    for at, table in enumerate(listed):
        for other in listed[:at]:
            _refuse_disagreement(table, other)
    return listed


def _refuse_one_column_twice(table: PeopleTable) -> None:
    """Refuse two attributes of one column that policies let change one at a time."""
    columns = list(table.read_columns.values())
    single = table.policy.unconstrained
    moves = single.base if isinstance(single, WithAbsent) else single
    whole = isinstance(moves, Full) or not table.policy.has_moves
    if len(set(columns)) < len(columns) and not whole:
        raise PolicyError(
            f"two attributes of {table.name!r} are read from one column, so a value "
            "that moves changes both",
            received=f"the columns {columns}",
            way_out="Leave one of them out, or join any two cells (Full)",
        )


def _refuse_disagreement(table: PeopleTable, other: PeopleTable) -> None:
    """Refuse two policies for one column of one source: only edges of both hold."""
    mine, theirs = table.read_columns, other.read_columns
    shared = {*mine.values()} & {*theirs.values()}
    same = table.source is not None and table.read_source == other.read_source
    if same and shared and (table.policy != other.policy or mine != theirs):
        raise PolicyError(
            f"{table.name!r} and {other.name!r} describe {table.source!r} and state "
            f"different policies, or different names, for the columns {sorted(shared)}",
            way_out="State one policy over all attributes of the table, under the same "
            "names in both",
        )


def _refuse_second_budget(owner: str, source: str) -> NoReturn:
    raise LedgerError(
        f"the population {owner!r} pays for releases from {source!r}; two "
        "budgets for the same people would add up unseen",
        way_out="Describe the table once more within that population",
    )


@contextmanager
def _paid_once(path: Path | None, tables: Iterable[PeopleTable]) -> Iterator[None]:
    """Hold the folder of a ledger while tables come to it that nobody else pays for."""
    if path is None:
        yield
        return
    sources = {table.read_source for table in tables} - {None}
    with held_folder(path.parent):
        for about in terms_beside(path) if sources else ():
            paid = about["tables"].values() if "population" in about else ()
            read = [table["source"] for table in paid if table["source"] is not None]
            for source in read:
                if one_spelling(source) in sources:
                    _refuse_second_budget(about["population"], source)
        yield


def _plain(tables: Iterable[PeopleTable]) -> dict[str, Any]:
    return {
        table.name: {
            "source": table.source,
            "policy": table.policy.to_dict(),
            # As it was always written, where every attribute has its column's name.
            **({} if not table.columns else {"columns": dict(table.columns)}),
        }
        for table in tables
    }
