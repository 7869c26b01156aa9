"""What the experiments of the DAWA paper share: sets, workloads, contenders.

Section 5.1 of [1]_: seven sets of 4096 cells; identity, 2000 uniform ranges, and two
kinds of clustered ranges; five random workloads, drawn once for all experiments, with
three trials each; mean absolute error per query.

.. [1] C. Li, M. Hay, G. Miklau, Y. Wang. A data- and workload-aware algorithm for range
   queries under differential privacy. PVLDB 7(5), 2014.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blowfish_fast.advice.experiments.experiment import Row, Settings, Task, seed_of
from blowfish_fast.data.domain import Domain
from blowfish_fast.measure.selectors.partitions import LeastCost
from blowfish_fast.policies import AddRemove
from blowfish_fast.workloads import Identity, Ranges, Workload

from .contenders import Contender, contender_errors
from .paper_sets import LINE_CELLS, LINE_SETS, line_set

PAPER = "DAWA (Li, Hay, Miklau, Wang 2014)"
OURS = "DAWA"
EPSILONS = (0.01, 0.05, 0.1, 0.5)
KINDS = ("uniform", "identity", "clustered", "large clustered")
SAMPLES = 5
QUERIES = 2000
NEEDS = tuple(f"1d/{name}" for name in LINE_SETS)
PROTOCOL = (
    "Seven sets of 4096 cells, add or remove one record; random workloads of 2000 "
    "ranges, five of each kind, drawn once for all experiments, every configuration "
    "repeated on each; mean absolute error per query."
)

CONTENDERS = (
    Contender(OURS, "dawa"),
    Contender("DAWA, least cost", "dawa", {"partition": LeastCost()}),
    Contender("Identity", "laplace"),
    Contender("Privelet", "privelet"),
    Contender("HB", "hierarchy"),
    Contender("MWEM", "mwem"),
    Contender("EFPA", "efpa"),
    Contender("P-HP", "php"),
    Contender("S.First", "structure_first"),
    Contender("AHP", "ahp"),
)
"""DAWA as it is here and with the paper's own first stage, then its competitors."""


def cells_of(settings: Settings) -> int:
    """Return the number of cells: the paper's, or few in the short form."""
    return 256 if settings.quick else LINE_CELLS


def sets_of(settings: Settings, names: Sequence[str] = LINE_SETS) -> Sequence[str]:
    """Return the sets: all of them, or two in the short form."""
    return names[:2] if settings.quick else names


def workload_of(kind: str, sample: int, settings: Settings, domain: Domain) -> Workload:
    """Return one of the random workloads, the same in every experiment."""
    queries = 100 if settings.quick else QUERIES
    seed = seed_of(settings, "workload", kind, sample)
    if kind == "identity":
        return Identity(domain)
    if kind == "uniform":
        return Ranges.random(domain, queries, rng=seed)
    return Ranges.clustered(domain, queries, rng=seed, large=kind == "large clustered")


def grid_of_tasks(
    settings: Settings,
    *,
    kinds: Iterable[str],
    epsilons: Sequence[float],
    sets: Sequence[str] = LINE_SETS,
) -> list[Task]:
    """Return a task for every set, kind of workload, epsilon and drawn workload."""
    if settings.quick:
        epsilons = epsilons[:1]
    return [
        Task(
            f"{name}/{kind}/{epsilon}/{sample}",
            {"set": name, "kind": kind, "epsilon": epsilon, "sample": sample},
        )
        for kind in kinds
        for name in sets_of(settings, sets)
        for epsilon in epsilons
        for sample in range(1 if settings.quick else SAMPLES)
    ]


def errors_of(
    task: Task,
    settings: Settings,
    contenders: Iterable[Contender],
    *,
    same_seed: bool = False,
) -> list[Row]:
    """Release every contender on the set of a task, once per trial.

    With `same_seed` contenders that begin alike draw alike, so that variants of one
    mechanism stand on the same partition.
    """
    name, kind = task.arguments["set"], task.arguments["kind"]
    epsilon, sample = task.arguments["epsilon"], task.arguments["sample"]
    data = line_set(name, settings.data, cells_of(settings))
    workload = workload_of(kind, sample, settings, Domain(data.counts.size))
    policy = AddRemove(workload.domain)
    return [
        {
            "set": data.label,
            "workload": kind,
            "epsilon": epsilon,
            "sample": sample,
            **row,
        }
        for contender in contenders
        for row in contender_errors(
            contender,
            policy,
            workload,
            str(epsilon),
            data.counts,
            [
                seed_of(settings, task.key, "" if same_seed else contender.label, trial)
                for trial in range(settings.trials)
            ],
        )
    ]
