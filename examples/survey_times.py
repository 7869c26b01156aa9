"""CPU seconds and memory of all tables of a generated survey, step by step.

    python examples/survey_times.py                               5 attributes, 2-way
    python examples/survey_times.py --attributes 14 --ways 3      469 tables
    python examples/survey_times.py --attributes 20 --ways 3      1,350 tables
    python examples/survey_times.py --attributes 14 --ways 3 --records 10000000
    python examples/survey_times.py ... --database                counted by DuckDB

Attributes have 74, 9, 16, 16, 7, 15, 6, 5, 2, 16, 16, 20, 42 and 2 cells, then 6 each;
one record more or less, or ``--policy attribute``; epsilon 1. Everything is done once
on few records first, so that compiling is not counted; memory is that of the whole
process. The last line has the error that was predicted beside the one that was made.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import blowfish_fast as bf

SIZES = (74, 9, 16, 16, 7, 15, 6, 5, 2, 16, 16, 20, 42, 2)


def generated(sizes: dict[str, int], records: int) -> dict[str, np.ndarray]:
    """Return columns that depend on each other through a hidden class."""
    source = np.random.default_rng(1)
    hidden = source.integers(0, 5, records)
    columns = {}
    for name, size in sizes.items():
        shares = source.dirichlet(np.full(size, 0.5), 5).cumsum(axis=1)
        places = source.random(records)
        drawn = np.empty(records, dtype=np.int16)
        for one in range(5):
            members = hidden == one
            drawn[members] = np.searchsorted(shares[one], places[members])
        columns[name] = np.minimum(drawn, size - 1)
    return columns


def counted(mechanism: Any, columns: dict[str, np.ndarray], database: bool) -> Any:
    """Return what counts the tables that are measured."""
    if not database:
        return lambda: bf.TableCounts.from_records(mechanism, columns)
    import ibis
    import pyarrow

    held = ibis.memtable(pyarrow.table(columns))
    table = ibis.duckdb.connect().create_table("survey", held)
    return lambda: bf.TableCounts.from_ibis(mechanism, table)


def run(asked: argparse.Namespace, records: int, show: Callable[[str], None]) -> None:
    """Plan, count, release, make all tables, draw records; show the time of each."""
    sizes = (*SIZES, *(6 for _ in SIZES))[: asked.attributes]
    names = {f"a{at}": size for at, size in enumerate(sizes)}
    survey = bf.WideDomain.product(
        *(bf.Domain(size, names=[name]) for name, size in names.items())
    )
    tables = bf.workloads.Tables(survey, ways=asked.ways)
    columns = generated(names, records)
    policy = bf.policies.AddRemove(survey)
    if asked.policy == "attribute":
        policy = bf.policies.TablePolicy(survey, {})
    mechanism = bf.Contingency(policy, tables, epsilon=1)
    seconds: dict[str, float] = {}

    def timed(name: str, step: Callable[[], Any]) -> Any:
        start = time.process_time()
        made = step()
        seconds[name] = time.process_time() - start
        show(f"{name:12s} {seconds[name]:7.2f}")
        return made

    plan = timed("planned", lambda: mechanism.plan(records))
    count = counted(mechanism, columns, asked.database)
    data = timed("counted", count)
    out = timed("released", lambda: mechanism.release(data, rng=1))
    made = timed("all tables", lambda: [out.table(*one).estimate for one in out.asked])
    besides = sum(seconds.values()) - seconds["counted"]
    show(f"{'besides':12s} {besides:7.2f}  planned, released, all tables")
    timed("records", lambda: out.sample(min(records, 50_000), rng=1))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    show(f"{'memory':12s} {memory:7.2f}  GiB")
    show(f"{len(plan.tables):,} tables of {int(plan.cells.sum()):,} cells")
    squares = []
    for axes, table in zip(plan.tables, made, strict=True):
        cells = np.ravel_multi_index([columns[f"a{at}"] for at in axes], table.shape)
        true = np.bincount(cells, minlength=table.size)
        squares.append(float(np.mean((table.reshape(-1) - true) ** 2)))
    measured = np.sqrt(np.mean(squares))
    show(f"rms error of a cell: predicted {plan.rms:.2f}, measured {measured:.2f}")


def main() -> None:
    """Do everything twice; tell the second time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attributes", type=int, default=5)
    parser.add_argument("--ways", type=int, default=2)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--database", action="store_true")
    parser.add_argument("--policy", choices=("add_remove", "attribute"))
    asked = parser.parse_args()
    few = argparse.Namespace(**(vars(asked) | {"attributes": 3, "ways": 2}))
    run(few, 500, lambda line: None)
    run(asked, asked.records, print)


if __name__ == "__main__":
    main()
