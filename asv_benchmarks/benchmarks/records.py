"""Records into histograms, and questions to a release about several attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import (
    Domain,
    Histogram,
    Laplace,
    SparseHistogram,
    WideDomain,
    policies,
    workloads,
)

from .common import Timed, sizes

Call = Callable[[], object]
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
    param_names: ClassVar[list[str]] = ["records", "table"]

    def prepare(self, records: int, table: str) -> Call:
        domain = Domain.product(*_attributes())
        rows = _table(table, records)
        rules = {"income": "clamp"}
        return lambda: Histogram.from_records(domain, rows, outside=rules)


class FromRecordsSparse(Timed):
    params: ClassVar[list[Any]] = sizes(20, smallest=16)
    param_names: ClassVar[list[str]] = ["records"]

    def prepare(self, records: int) -> Call:
        people = Domain(2**24, names=["person"])
        domain = WideDomain.product(people, *_attributes())
        rows = _columns(records)
        generator = np.random.default_rng(1)
        rows["person"] = generator.integers(0, 2**24, records)
        rules = {"income": "clamp"}
        return lambda: SparseHistogram.from_records(domain, rows, outside=rules)


class Where(Timed):
    params: ClassVar[list[str]] = ["count", "mean", "groups", "intervals"]
    param_names: ClassVar[list[str]] = ["question"]

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
    param_names: ClassVar[list[str]] = ["records"]

    def prepare(self, records: int) -> Call:
        domain = Domain.product(*_attributes())
        counts = np.random.default_rng(1).poisson(3.0, domain.shape)
        laplace = Laplace(policies.Full(domain), workloads.Identity(domain), epsilon=1)
        release = laplace.release(counts, rng=1)
        return lambda: release.sample(n=records, rng=1)
