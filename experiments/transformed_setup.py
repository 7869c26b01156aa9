"""What the experiments on data-dependent Blowfish share: contenders and errors.

epsilon/2, add or remove     Laplace, DAWA
epsilon, line policy         Transformed+Laplace, DAWA+Transformed, a sampled tree,
                             and ours (no buckets, a fit of the running totals)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blowfish_fast.advice.experiments.datasets import DataSet
from blowfish_fast.advice.experiments.experiment import (
    PaperVerdict,
    Row,
    Settings,
    Summary,
    Value,
    distinct,
    means,
    seed_of,
    skipped_notes,
)
from blowfish_fast.data.domain import Domain
from blowfish_fast.measure.selectors.partitions import DyadicTree, LeastCost
from blowfish_fast.policies import AddRemove, Line
from blowfish_fast.workloads import Identity

from .contenders import Contender, contender_errors
from .row_statistics import geometric_mean

PAPER = "Data-dependent Blowfish (Anuarbek)"
EPSILONS = (0.001, 0.01, 0.1)
LAPLACE = "Laplace eps/2"
DAWA = "DAWA eps/2"
OURS = "ours"
PUBLISHED = "DAWA+Transformed"
TREE = "Transformed, sampled tree"
LEAST_COST = "DAWA eps/2, least cost"
BASELINES = (
    Contender(LAPLACE, "laplace", divisor=2),
    Contender(DAWA, "dawa", divisor=2),
    Contender(LEAST_COST, "dawa", {"partition": LeastCost()}, divisor=2),
)
UNDER_LINE = (
    Contender(
        "Transformed+Laplace",
        "transformed",
        {"partition": None, "strategy": "edges", "fit": None},
    ),
    Contender(PUBLISHED, "transformed", {"partition": LeastCost()}),
    Contender(TREE, "transformed", {"partition": DyadicTree()}),
    Contender(OURS, "transformed"),
)
PROTOCOL = (
    "Histogram workload under a line policy; mean squared error per query; methods for "
    "added or removed records run at half epsilon; epsilon 0.001, 0.01, 0.1."
)


def cell_errors(
    contenders: Iterable[Contender],
    data: DataSet,
    epsilon: float,
    key: str,
    settings: Settings,
) -> list[Row]:
    """Return squared errors per cell of every contender, once per trial."""
    domain = Domain(data.counts.size)
    cells = Identity(domain)
    rows: list[Row] = []
    for one in contenders:
        policy = AddRemove(domain) if one.divisor == 2 else Line(domain)
        seeds = [
            seed_of(settings, key, one.label, trial) for trial in range(settings.trials)
        ]
        rows += [
            {"set": data.label, "epsilon": epsilon, **row}
            for row in contender_errors(
                one,
                policy,
                cells,
                str(epsilon),
                data.counts,
                seeds,
                measure="squared",
            )
        ]
    return rows


def relative_summary(rows: Sequence[Row], verdict: PaperVerdict) -> Summary:
    """Tabulate errors over DAWA's at half epsilon, with their geometric means."""
    errors = means(rows, "epsilon", "set", "method")
    methods = [str(one) for one in distinct(rows, "method")]
    names = distinct(rows, "set")
    lines: list[list[Value]] = []
    for epsilon in distinct(rows, "epsilon"):
        ratios: dict[str, list[float]] = {}
        for name in names:
            base = errors.get((epsilon, name, DAWA))
            if not base:
                continue
            line: list[Value] = [epsilon, name, base]
            for method in methods:
                error = errors.get((epsilon, name, method))
                line.append(None if error is None else error / base)
                if error is not None:
                    ratios.setdefault(method, []).append(error / base)
            lines.append(line)
        if len(names) > 2 and ratios:
            middle: list[Value] = [
                geometric_mean(ratios[method]) if method in ratios else None
                for method in methods
            ]
            lines.append([epsilon, "geometric mean", None, *middle])
    notes = [
        f"Errors over that of {DAWA}, whose own is in the third column.",
        *skipped_notes(rows),
    ]
    return Summary(
        ["epsilon", "set", f"error of {DAWA}", *methods], lines, verdict, notes
    )
