"""All two-way tables of a survey, beside a plain split of the budget and other records.

    python examples/survey_tables.py                                  a generated survey
    python examples/survey_tables.py adult.csv.gz adult-domain.json   another one
    python examples/survey_tables.py ... --records mst=mst.csv        records of others

Columns hold cell numbers; the domain file gives the cells of each column. Errors are
true errors against the data that was handed over: for experiments, never for a release.
The last column is the accuracy of a tree that learns the last column of the survey from
synthetic records and is tried on true ones that it has not seen, if scikit-learn is
installed; "most frequent" is what guessing gets.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from pathlib import Path

import numpy as np

import blowfish_fast as bf


def generated(records: int = 6000) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Return sizes and columns of a made-up survey with a hidden class."""
    source = np.random.default_rng(3)
    sizes = {"age": 20, "job": 9, "region": 6, "school": 5, "sex": 2, "pay": 3}
    hidden = source.integers(0, 6, records)
    columns = {}
    for name, size in sizes.items():
        shares = source.dirichlet(np.full(size, 0.5), 6).cumsum(axis=1)
        drawn = (shares[hidden] < source.random(records)[:, None]).sum(axis=1)
        columns[name] = np.minimum(drawn, size - 1)
    return sizes, columns


def read(path: Path, names: list[str]) -> dict[str, np.ndarray]:
    """Read columns of cell numbers."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([int(float(row[name])) for row in rows]) for name in names}


def table_of(
    columns: dict[str, np.ndarray], sizes: dict[str, int], names
) -> np.ndarray:
    """Count one table."""
    counts = np.zeros([sizes[name] for name in names])
    np.add.at(counts, tuple(columns[name] for name in names), 1)
    return counts


def learnt(train: dict[str, np.ndarray], test: dict[str, np.ndarray]) -> str:
    """Return the accuracy of a tree on the last column; "-" without scikit-learn."""
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        return "-"
    *seen, goal = list(test)
    model = DecisionTreeClassifier(max_depth=8, random_state=1)
    model.fit(np.column_stack([train[one] for one in seen]), train[goal])
    hits = model.predict(np.column_stack([test[one] for one in seen])) == test[goal]
    return f"{hits.mean():.3f}"


def show(name, tables, true, total, seconds, score="") -> None:
    """Print root mean squared error, share of records misplaced, time."""
    squares = [np.mean((tables[one] - true[one]) ** 2) for one in true]
    parts = [np.abs(tables[one] - true[one]).sum() / 2 / total for one in true]
    rms, off = np.sqrt(np.mean(squares)), np.mean(parts)
    print(f"{name:28s} {rms:9.1f} {off:9.3f} {seconds:8.2f}  {score}")


def main() -> None:
    """Compare everything on one survey."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("domain", nargs="?", type=Path)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--records", action="append", default=[], metavar="NAME=FILE")
    asked = parser.parse_args()
    if asked.data is None:
        sizes, columns = generated()
    else:
        sizes = json.loads(asked.domain.read_text())
        columns = read(asked.data, list(sizes))
    total = len(next(iter(columns.values())))
    order = np.random.default_rng(1).permutation(total)
    held = {name: one[order[: total // 5]] for name, one in columns.items()}
    columns = {name: one[order[total // 5 :]] for name, one in columns.items()}
    total -= total // 5
    survey = bf.WideDomain.product(
        *(bf.Domain(size, names=[name]) for name, size in sizes.items())
    )
    workload = bf.workloads.Tables(survey, ways=2)
    named = [workload.names(at) for at in range(len(workload.tables))]
    true = {one: table_of(columns, sizes, one) for one in named}
    print(f"{total:,} records, {len(named)} tables, epsilon {asked.epsilon}")
    print(f"{'':28s} {'rms':>9s} {'misplaced':>9s} {'CPU s':>8s}  tree")
    print(f"{'true records':28s} {0:9.1f} {0:9.3f} {'':8s}  {learnt(columns, held)}")
    goal = list(sizes)[-1]
    often = np.bincount(columns[goal]).argmax()
    print(f"{'most frequent':58s}  {(held[goal] == often).mean():.3f}")
    split(true, total, float(asked.epsilon))
    for name, policy in (
        ("add or remove", bf.policies.AddRemove(survey)),
        ("by attribute", bf.policies.TablePolicy(survey, {})),
    ):
        start = time.process_time()
        mechanism = bf.Contingency(policy, workload, epsilon=asked.epsilon)
        data = bf.TableCounts.from_records(mechanism, columns)
        out = mechanism.release(data, rng=1)
        linear = {one: out.table(*one).estimate for one in named}
        show(f"{name}: tables", linear, true, total, time.process_time() - start)
        fitted = {one: out.fitted(*one).estimate for one in named}
        show(f"{name}: fitted", fitted, true, total, time.process_time() - start)
        records = out.sample(rng=1)
        made = {one: np.asarray(records[one]) for one in sizes}
        scale = total / max(len(records), 1)
        counted = {one: scale * table_of(made, sizes, one) for one in named}
        spent = time.process_time() - start
        show(f"{name}: records", counted, true, total, spent, learnt(made, held))
    for words in asked.records:
        name, _, path = words.partition("=")
        made = read(Path(path), list(sizes))
        scale = total / len(made[goal])
        counted = {one: scale * table_of(made, sizes, one) for one in named}
        show(name, counted, true, total, float("nan"), learnt(made, held))


def split(true, total: int, epsilon: float) -> None:
    """Print what the budget split evenly over all tables gives, added or removed."""
    source = np.random.default_rng(1)
    start = time.process_time()
    width = len(true) / epsilon
    noisy = {
        one: counts + np.rint(source.laplace(0, width, counts.shape))
        for one, counts in true.items()
    }
    show("plain split (add or remove)", noisy, true, total, time.process_time() - start)


if __name__ == "__main__":
    main()
