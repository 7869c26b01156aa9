"""All two-way tables of a survey, beside a plain split of the budget and other records.

    python examples/survey_tables.py                                  a generated survey
    python examples/survey_tables.py adult.csv.gz adult-domain.json   another one
    python examples/survey_tables.py ... --records mst=mst.csv        records of others
    python examples/survey_tables.py ... --tables age+sex,age+pay --seeds 0 1

Columns hold cell numbers; the domain file gives the cells of each column. Errors are
true errors against the data that was handed over: for experiments, never for a release.
"3-way" is the share of records in the wrong cell of a table of three attributes, which
nobody asked for: what synthetic records do not preserve. Columns shuffled one by one
keep single attributes and nothing else. The last column is the accuracy of a tree that
learns the last column of the survey from synthetic records and is tried on true ones
that it has not seen, if scikit-learn is installed; "most frequent" is what guessing
gets.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from itertools import combinations
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
    shape = [sizes[name] for name in names]
    cells = np.ravel_multi_index([columns[name] for name in names], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


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


class Survey:
    """True records, some of them held back, and the tables that are asked."""

    def __init__(self, sizes, columns, tables: str | None) -> None:
        order = np.random.default_rng(1).permutation(len(next(iter(columns.values()))))
        held = order.size // 5
        self.sizes = sizes
        self.held = {name: one[order[:held]] for name, one in columns.items()}
        self.columns = {name: one[order[held:]] for name, one in columns.items()}
        self.total = order.size - held
        self.domain = bf.WideDomain.product(
            *(bf.Domain(size, names=[name]) for name, size in sizes.items())
        )
        named = (
            None if tables is None else [one.split("+") for one in tables.split(",")]
        )
        ways = 2 if tables is None else None
        self.asked = bf.workloads.Tables(self.domain, named, ways=ways)
        names = [self.asked.names(at) for at in range(len(self.asked.tables))]
        self.true = {one: table_of(self.columns, sizes, one) for one in names}

    def show(self, name, tables, seconds=None, rest="") -> None:
        """Print root mean squared error, share of records misplaced, time."""
        pairs = list(tables)
        rms = np.sqrt(np.mean([np.mean((one - true) ** 2) for one, true in pairs]))
        off = np.mean([np.abs(one - true).sum() for one, true in pairs])
        spent = "" if seconds is None else f"{seconds:.2f}"
        parts = f"{rms:9.2f} {off / 2 / self.total:9.3f} {spent:>8s}"
        print(f"{name:28s} {parts} {rest}")

    def show_records(self, name, made, seconds=None) -> None:
        """Print what records keep, also of tables that were not asked."""
        scale = self.total / max(len(next(iter(made.values()))), 1)

        def beside_truth(names):
            found = scale * table_of(made, self.sizes, names)
            return found, table_of(self.columns, self.sizes, names)

        larger = map(beside_truth, combinations(self.sizes, 3))
        off = [np.abs(found - true).sum() / 2 / self.total for found, true in larger]
        rest = f"{np.mean(off):7.3f} {learnt(made, self.held):>6s}"
        self.show(name, map(beside_truth, self.true), seconds, rest)

    def split(self, epsilon: float) -> None:
        """Print what the budget split evenly over all tables gives."""
        source = np.random.default_rng(1)
        width = len(self.true) / epsilon
        tables = [
            (true + np.rint(source.laplace(0, width, true.shape)), true)
            for true in self.true.values()
        ]
        self.show("plain split (add or remove)", tables)

    def release(self, name: str, policy, epsilon: str, seeds: list[int]) -> None:
        """Print linear and fitted tables and synthetic records, of all seeds."""
        start = time.process_time()
        mechanism = bf.Contingency(policy, self.asked, epsilon=epsilon)
        data = bf.TableCounts.from_records(mechanism, self.columns)
        outs = [mechanism.release(data, rng=seed) for seed in seeds]
        for kind in ("table", "fitted"):
            tables = [
                (getattr(out, kind)(*one).estimate, true)
                for out in outs
                for one, true in self.true.items()
            ]
            self.show(f"{name}: {kind}", tables, time.process_time() - start)
        records = outs[-1].sample(rng=seeds[-1])
        made = {one: np.asarray(records[one]) for one in self.sizes}
        self.show_records(f"{name}: records", made, time.process_time() - start)


def main() -> None:
    """Compare everything on one survey."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("domain", nargs="?", type=Path)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--tables", metavar="COLUMN+COLUMN,...")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--records", action="append", default=[], metavar="NAME=FILE")
    asked = parser.parse_args()
    if asked.data is None:
        sizes, columns = generated()
    else:
        sizes = json.loads(asked.domain.read_text())
        columns = read(asked.data, list(sizes))
    survey = Survey(sizes, columns, asked.tables)
    tables = f"{len(survey.true)} tables, epsilon {asked.epsilon}"
    print(f"{survey.total:,} records, {tables}, seeds {asked.seeds}")
    print(f"{'':28s} {'rms':>9s} {'misplaced':>9s} {'CPU s':>8s}   3-way   tree")
    survey.show_records("true records", survey.columns)
    source = np.random.default_rng(1)
    shuffled = {name: source.permutation(one) for name, one in survey.columns.items()}
    survey.show_records("columns shuffled", shuffled)
    goal = list(sizes)[-1]
    often = np.bincount(survey.columns[goal]).argmax()
    print(f"{'most frequent':66s} {(survey.held[goal] == often).mean():.3f}")
    survey.split(float(asked.epsilon))
    for name, policy in (
        ("add or remove", bf.policies.AddRemove(survey.domain)),
        ("by attribute", bf.policies.TablePolicy(survey.domain, {})),
    ):
        survey.release(name, policy, asked.epsilon, asked.seeds)
    for words in asked.records:
        name, _, path = words.partition("=")
        survey.show_records(name, read(Path(path), list(sizes)))


if __name__ == "__main__":
    main()
