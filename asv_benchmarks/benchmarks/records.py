"""Records into histograms, and questions to a release about several attributes."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import (
    Domain,
    Histogram,
    Laplace,
    SparseHistogram,
    WideDomain,
    policies,
    series,
    workloads,
)

from .common import Call, Timed, sizes

TOWNS = ("Bern", "Basel", "Chur", "Genf")


def _attributes() -> list[Domain]:
    """Return the shape of the census table: 79 x 14 x 4 x 100 cells."""
    return [
        Domain.from_edges(range(80), name="age"),
        Domain(14, names=["education"]),
        Domain.from_levels(TOWNS, name="town"),
        Domain.from_edges(np.geomspace(10, 1e7, 101), name="income"),
    ]


def _columns(records: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(records)
    return {
        "age": generator.uniform(0, 79, records),
        "education": generator.integers(0, 14, records),
        "town": np.array(TOWNS)[generator.integers(0, 4, records)],
        "income": generator.lognormal(10, 1, records),
    }


def _table(kind: str, records: int) -> Any:
    columns = _columns(records)
    if kind == "numpy":
        return columns
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    import pyarrow

    return pyarrow.table(columns)


class FromRecords(Timed):
    params: ClassVar[list[Any]] = [
        sizes(22, smallest=16),
        ["numpy", "pandas", "arrow"],
    ]

    def prepare(self, records: int, table: str) -> Call:
        domain = Domain.product(*_attributes())
        rows = _table(table, records)
        rules = {"income": "clamp"}
        return lambda: Histogram.from_records(domain, rows, outside=rules)


class FromRecordsOfPersons(Timed):
    """Five visits each: where nobody has more than are kept, and where all have."""

    params: ClassVar[list[Any]] = [
        sizes(20, smallest=16),
        [5, 3],
        ["records", "persons"],
    ]

    def prepare(self, records: int, at_most: int, count: str) -> Call:
        domain = Domain(100, names=["age"])
        generator = np.random.default_rng(records)
        rows = {
            "age": generator.integers(0, 100, records),
            "patient": generator.permutation(records) // 5,
            "visit": np.arange(records),
        }
        options: Any = {"at_most": at_most, "count": count}
        return lambda: Histogram.from_records(
            domain, rows, person="patient", record="visit", **options
        )


class FromDuckDb(Timed):
    """One GROUP BY in the engine, about records and about persons."""

    params: ClassVar[list[Any]] = [sizes(20, smallest=16), ["records", "persons"]]

    def prepare(self, records: int, about: str) -> Call:
        import ibis

        rows = "SELECT hash(i) % 100 AS age, i % ({n} // 5) AS patient, i AS visit"
        text = f"{rows.format(n=records)} FROM range({records}) AS t(i)"
        database = ibis.duckdb.connect()
        database.raw_sql(f"CREATE TABLE visits AS {text}")
        visits = database.table("visits")
        ages = Domain.from_edges(range(101), name="age")
        people = {"person": "patient", "record": "visit", "at_most": 5}
        options: Any = people if about == "persons" else {}
        return lambda: Histogram.from_ibis(ages, visits, **options)


class SeriesInDuckDb(Timed):
    """10^5 cells in one pass: plain, and weighed by 365 days of arrival."""

    cells = 100_000
    params: ClassVar[list[Any]] = [sizes(22, smallest=16), ["counted", "weighed"]]

    def prepare(self, records: int, about: str) -> Call:
        import ibis

        from blowfish_fast.data.arrivals import Arrivals
        from blowfish_fast.data.histogram import Counting

        start = date(2026, 1, 1)
        days = f"DATE '{start}' + CAST(hash(i + 7) % 365 AS INTEGER) AS received"
        cells = f"CAST(hash(i) % {self.cells} AS BIGINT) AS town"
        database = ibis.duckdb.connect()
        rows = f"SELECT {cells}, {days} FROM range({records}) AS t(i)"
        database.raw_sql(f"CREATE TABLE visits AS {rows}")
        visits = database.table("visits")
        counting = Counting.read(Domain(self.cells, names=["town"]))
        if about == "weighed":
            edges = [start + timedelta(days=day) for day in range(366)]
            weights = series.Weights.falling("3/8", 4096).values[:365]
            arrivals = Arrivals.of("received", edges, weights[::-1])
            counting = counting._replace(arrivals=arrivals)
        return lambda: counting.query(visits).counts()


class TablesOfSurvey(Timed):
    """All tables of up to three of 14 attributes: counted, planned, released, drawn."""

    params: ClassVar[list[str]] = ["count", "plan", "release", "tables", "records"]

    def prepare(self, step: str) -> Call:
        from blowfish_fast import Contingency, TableCounts

        sides = [Domain(4, names=[f"a{at}"]) for at in range(14)]
        survey = WideDomain.product(*sides)
        asked = workloads.Tables(survey, ways=3)
        policy = policies.AddRemove(survey)

        def make() -> Any:
            return Contingency(policy, asked, epsilon=1, plan="maximal")

        mechanism = make()
        generator = np.random.default_rng(1)
        rows = {f"a{at}": generator.integers(0, 4, 2**15) for at in range(14)}
        if step == "plan":
            return lambda: make().plan()
        if step == "count":
            return lambda: TableCounts.from_records(mechanism, rows)
        counts = TableCounts.from_records(mechanism, rows)
        if step == "release":
            return lambda: mechanism.release(counts).table("a0", "a1").estimate
        made: Any = mechanism.release(counts)
        if step == "records":
            return lambda: made.sample(2**15)
        content = made.to_bytes()

        def tables() -> Any:
            out = type(made).from_bytes(content)
            return [out.table(*one) for one in out.asked]

        return tables


class FromRecordsSparse(Timed):
    params: ClassVar[list[Any]] = sizes(20, smallest=16)

    def prepare(self, records: int) -> Call:
        people = Domain(2**24, names=["person"])
        domain = WideDomain.product(people, *_attributes())
        rows = _columns(records)
        generator = np.random.default_rng(1)
        rows["person"] = generator.integers(0, 2**24, records)
        rules = {"income": "clamp"}
        return lambda: SparseHistogram.from_records(domain, rows, outside=rules)


class SeriesTotals(Timed):
    """A series of 365 days over 10^5 cells: weigh all counts, and add all rows up."""

    params: ClassVar[list[str]] = ["weigh", "total"]

    def prepare(self, step: str) -> Call:
        cells = 100_000
        counts = np.random.default_rng(1).integers(0, 9, (365, cells))
        weights = series.Weights.falling("3/8", 4096)
        if step == "weigh":
            return lambda: weights.weigh(counts)
        shares = weights.total_shares(365)[::-1]
        rows = counts.astype(np.float64)
        return lambda: shares @ rows


class Where(Timed):
    params: ClassVar[list[str]] = ["count", "mean", "groups", "intervals"]

    def prepare(self, question: str) -> Call:
        domain = Domain.product(*_attributes())
        counts = np.random.default_rng(1).poisson(3.0, domain.shape)
        laplace = Laplace(
            policies.AddRemove(domain), workloads.Identity(domain), epsilon=1
        )
        release = laplace.release(counts, rng=1)
        chosen = release.where(age=slice(20, 41.5), town=["Bern", "Chur"])
        calls: dict[str, Call] = {
            "count": chosen.count,
            "mean": lambda: chosen.mean("income"),
            "groups": lambda: chosen.group_by("education", "town").count(),
            "intervals": lambda: chosen.mean("income").interval(),
        }
        return calls[question]


class Sample(Timed):
    params: ClassVar[list[Any]] = sizes(20, smallest=16)

    def prepare(self, records: int) -> Call:
        domain = Domain.product(*_attributes())
        counts = np.random.default_rng(1).poisson(3.0, domain.shape)
        laplace = Laplace(policies.Full(domain), workloads.Identity(domain), epsilon=1)
        release = laplace.release(counts, rng=1)
        return lambda: release.sample(n=records, rng=1)


class ChosenTablesOfSurvey(Timed):
    """Tables that the data choose, of 12 attributes of which half depend on others."""

    params: ClassVar[list[str]] = ["release", "tables", "records"]

    def prepare(self, step: str) -> Call:
        from blowfish_fast import ChosenTables, TableCounts

        sides = [Domain(16, names=[f"a{at}"]) for at in range(12)]
        survey = WideDomain.product(*sides)
        asked = workloads.Tables(survey, ways=2)
        mechanism = ChosenTables(
            policies.AddRemove(survey), asked, choose="data", epsilon=1
        )
        generator = np.random.default_rng(1)
        rows = {f"a{at}": generator.integers(0, 16, 2**15) for at in range(6)}
        for at in range(6):
            # Each of these follows one of the first six, loosely.
            moved = rows[f"a{at}"] + generator.integers(0, 4, 2**15)
            rows[f"a{at + 6}"] = moved % 16
        counts = TableCounts.from_records(mechanism, rows)
        if step == "release":
            return lambda: mechanism.release(counts).model
        made: Any = mechanism.release(counts)
        if step == "records":
            return lambda: made.sample(2**15)
        content = made.to_bytes()

        def tables() -> Any:
            out = type(made).from_bytes(content)
            return [out.fitted(*one).estimate for one in out.asked]

        return tables
