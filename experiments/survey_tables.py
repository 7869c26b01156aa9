"""All two-way tables of surveys: errors beside the plain split, and synthetic records.

    python -m experiments survey --trials 3

Data: scikit-learn's bundled breast cancer records, cut at edges that are stated here,
not read off the data, and a generated survey of hidden classes. The plain split
publishes every table by itself at an equal part of epsilon. Synthetic records train a
classifier that is tried on records that were held out, beside one trained on the truth.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import AnyArray, FloatArray

EDGES = {
    "mean radius": (0, 5, 10, 12, 14, 16, 20, 30),
    "mean texture": (0, 10, 15, 20, 25, 40),
    "mean smoothness": (0, 0.08, 0.1, 0.12, 0.2),
    "mean concavity": (0, 0.05, 0.1, 0.2, 0.5),
}
"""Public cells, in the units of the data set's description."""

HELD_OUT = 0.3
GENERATED, ATTRIBUTES, SIZE, CLASSES = 40_000, 8, 6, 5


class Survey(NamedTuple):
    """Records of a survey: its attributes, its columns, and the one to be predicted."""

    name: str
    domain: Any
    columns: dict[str, AnyArray]
    target: str

    def part(self, rows: AnyArray) -> Survey:
        """Return some of the records."""
        kept = {name: one[rows] for name, one in self.columns.items()}
        return self._replace(columns=kept)


def surveys(rng: np.random.Generator) -> list[Survey]:
    """Return the bundled survey and a generated one."""
    return [breast_cancer(), generated(rng)]


def breast_cancer() -> Survey:
    """Return 569 records of scikit-learn, four measurements and the diagnosis."""
    data = import_module("sklearn.datasets").load_breast_cancer(as_frame=True)
    columns = {name: data.frame[name].to_numpy() for name in EDGES}
    sides = [bf.Domain.from_edges(edges, name=name) for name, edges in EDGES.items()]
    benign = bf.Domain(2, names=["benign"])
    columns["benign"] = data.frame["target"].to_numpy()
    return Survey(
        "breast cancer", bf.WideDomain.product(*sides, benign), columns, "benign"
    )


def generated(rng: np.random.Generator) -> Survey:
    """Return records whose attributes depend on each other through a hidden class."""
    hidden = rng.integers(0, CLASSES, GENERATED)
    columns = {}
    for at in range(ATTRIBUTES):
        likely = rng.dirichlet(np.full(SIZE, 0.5), CLASSES).cumsum(axis=1)
        drawn = (rng.random((GENERATED, 1)) > likely[hidden]).sum(axis=1)
        columns[f"a{at}"] = np.minimum(drawn, SIZE - 1)
    sides = [bf.Domain(SIZE, names=[name]) for name in columns]
    return Survey("generated", bf.WideDomain.product(*sides), columns, "a0")


class SurveyRow(NamedTuple):
    """Root mean squared errors of a cell over all tables; shares predicted right."""

    survey: str
    epsilon: float
    predicted: float
    contingency: float
    non_negative: float
    plain_split: float
    trained_on_truth: float
    trained_on_synthetic: float


def compare_tables(survey: Survey, epsilon: float, seed: int) -> SurveyRow:
    """Release all two-way tables once, each way, and compare."""
    rng = np.random.default_rng(seed)
    count = len(survey.columns[survey.target])
    order = rng.permutation(count)
    held = survey.part(order[: int(HELD_OUT * count)])
    train = survey.part(order[int(HELD_OUT * count) :])
    asked = bf.workloads.Tables(survey.domain, ways=2)
    policy = bf.policies.AddRemove(survey.domain)
    mechanism = bf.Contingency(policy, asked, epsilon=epsilon)
    out: Any = mechanism.release(
        bf.TableCounts.from_records(mechanism, train.columns), rng=seed
    )
    errors: dict[str, list[float]] = {"linear": [], "fitted": [], "plain": []}
    for names in out.asked:
        table = out.table(*names)
        truth = bf.Histogram.from_records(table.domain, _some(train, names)).counts
        alone = bf.Laplace(
            bf.policies.AddRemove(table.domain),
            bf.workloads.Identity(table.domain),
            epsilon=epsilon / len(asked.tables),
        ).release(truth, rng=seed)
        for kind, found in (
            ("linear", table.estimate),
            ("fitted", out.fitted(*names).estimate),
            ("plain", alone.estimate),
        ):
            errors[kind].append(float(((found - truth) ** 2).mean()))
    drawn = out.sample(rng=seed)
    made = {name: drawn[name] for name in drawn}
    rms = {kind: math.sqrt(float(np.mean(one))) for kind, one in errors.items()}
    return SurveyRow(
        survey.name,
        epsilon,
        mechanism.plan().rms,
        rms["linear"],
        rms["fitted"],
        rms["plain"],
        _accuracy(train.columns, held),
        _accuracy(made, held),
    )


def _some(survey: Survey, names: tuple[Any, ...]) -> dict[str, AnyArray]:
    return {str(name): survey.columns[str(name)] for name in names}


def _accuracy(columns: dict[str, AnyArray], held: Survey) -> float:
    """Return how often a classifier trained on some records is right on others."""
    forest = import_module("sklearn.ensemble").RandomForestClassifier
    names = [name for name in held.columns if name != held.target]
    model = forest(n_estimators=50, random_state=0, n_jobs=1)
    model.fit(_matrix(columns, names), np.asarray(columns[held.target]).astype(int))
    score = model.score(_matrix(held.columns, names), held.columns[held.target])
    return float(score)


def _matrix(columns: dict[str, AnyArray], names: list[str]) -> FloatArray:
    stacked: FloatArray = np.column_stack([columns[name] for name in names])
    return stacked


def survey_rows(trials: int, seed: int = 1) -> list[SurveyRow]:
    """Return the mean over some trials, for every survey and epsilon."""
    rows = []
    for survey in surveys(np.random.default_rng(seed)):
        for epsilon in (1.0, 10.0):
            found = [compare_tables(survey, epsilon, seed + at) for at in range(trials)]
            means = np.mean([one[2:] for one in found], axis=0)
            rows.append(SurveyRow(survey.name, epsilon, *means.tolist()))
    return rows


def survey_report(trials: int) -> str:
    """Return the rows as a table."""
    rows = survey_rows(trials)
    names = SurveyRow._fields
    lines = ["  ".join(name.rjust(max(len(name), 13)) for name in names)]
    for row in rows:
        texts = [row.survey, *(f"{one:.3g}" for one in row[1:])]
        widths = (max(len(name), 13) for name in names)
        pairs = zip(texts, widths, strict=True)
        lines.append("  ".join(text.rjust(width) for text, width in pairs))
    return "\n".join(lines)
