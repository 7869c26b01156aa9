"""Which mechanism a job uses, by public facts alone, and why.

To predict loads the compiler and every kernel, so predictions are kept for the next
command about the same public facts and sources of the package.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

import blowfish_fast
from blowfish_fast._support.compiler_watch import COMPILER, compiled_before
from blowfish_fast._support.machine import cache_folder
from blowfish_fast._support.validation import as_choice
from blowfish_fast.advice.comparison import COVERED, OF_DISTRICTS, ON_MAPS, compare
from blowfish_fast.data.csv_files import is_number
from blowfish_fast.data.domain import KeyDomain, WideDomain
from blowfish_fast.errors import DataDependentError, InputError, nearest
from blowfish_fast.measure.budgets import Budget, epsilon_of
from blowfish_fast.measure.strategies.strategy_choice import NAMES
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.chosen_tables import Chooser, ChosenTables
from blowfish_fast.mechanisms.contingency import Contingency
from blowfish_fast.mechanisms.dawa import Dawa
from blowfish_fast.mechanisms.laplace import Gaussian, Laplace
from blowfish_fast.mechanisms.maps.nested import Nested
from blowfish_fast.mechanisms.registry import (
    MECHANISMS,
    RHO_MECHANISMS,
    built,
    find_mechanism,
    is_outside,
)
from blowfish_fast.mechanisms.sparse import SparseGaussian, SparseLaplace
from blowfish_fast.mechanisms.transformed import Transformed
from blowfish_fast.policies import Policy
from blowfish_fast.release.table_errors import TableErrors
from blowfish_fast.workloads import Identity, LevelTotals, Tables, Workload

from .files.outputs import read_release
from .options import look_here_for
from .parsing.job import BEST, ON_QUERIES, Job
from .parsing.workload import parse_demanded, refuse_choice_options
from .printing import counter, spinner
from .release_job import BUDGET_FORMS, Facts

EVERY = {**MECHANISMS, **RHO_MECHANISMS}
FEW = (2**8, 2**7)
"""Cells and ranges up to which a prediction does without kernels that are compiled."""
SOME = (2**10, 2**9)
"""The same where the kernels would have to be compiled first, which takes longer."""
LONG_IN_PYTHON = ("structure_first",)
"""Mechanisms that wait longer for plain Python than for the compiler, if named."""
MANY_CELLS = 2**12
"""Beyond this, what takes long to predict and seldom wins is left out."""
MOST_KEPT = 64
"""Predictions that are remembered for later commands."""
MOST_QUERIES = 2**16
"""More are not spelled out for a key."""

Step = Callable[[int, int, str], None]
"""Takes steps done, steps in all, and the name of the next."""


class MechanismChoice(NamedTuple):
    """A mechanism, ready to release, and in plain sentences why it is used.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism with its policy, workload and budget.
    name : str
        What tables call it.
    because : tuple of str
        The reasons for the choice, a sentence each.
    error : float or None
        Root mean squared error per query, in records; None where it is not known
        before the release.
    error_kind : {"predicted", "typical", "listed", "unknown"}
        "predicted": exact, whatever the data. "typical": measured on generated data.
        "listed": a list of heavy cells, whose counts have intervals. "unknown": the
        error depends on the data.
    plan : TableErrors, optional
        Where tables are released: which of them are measured, and the error of each.
    told : str, default ""
        The error in words, where it is not that of a release by itself, as for the
        running totals of a series.
    """

    mechanism: Mechanism
    name: str
    because: tuple[str, ...]
    error: float | None
    error_kind: str
    plan: TableErrors | None = None
    told: str = ""

    @property
    def error_sentence(self) -> str:
        """What error to expect, in a sentence."""
        if self.error_kind == "listed":
            return "a listed count has an interval of the truth; others are below it"
        if self.error is None:
            return "depends on the data, and is not known beforehand"
        if self.told:
            return self.told
        kind = (
            "predicted from the noise, whatever the data"
            if self.error_kind == "predicted"
            else "typical of generated data; yours may differ"
        )
        return f"{self.error:,.4g} records per query (root mean square), {kind}"


def choose_mechanism(
    facts: Facts, job: Job, step: Step | None = None
) -> MechanismChoice:
    """Return the mechanism of a job at the budget that it spends.

    Parameters
    ----------
    facts : Facts
        The public facts of the job.
    job : Job
        It names a mechanism or "best", and states a budget, a risk or an accuracy.
    step : callable, optional
        Takes steps done, steps in all, and the name of the next.

    Returns
    -------
    MechanismChoice
        A mechanism at its budget, and why it is used.

    Raises
    ------
    InputError
        If the job states no budget, or more than one; or the mechanism cannot be
        used here.
    """
    _check_accuracy(job)
    name = job.mechanism or BEST
    budget = job.budget
    if job.risk is not None:
        budget, why = _epsilon_at_risk(job.risk, facts.policy)
        stated = replace(job, epsilon=str(budget.amount), risk=None)
        choice = choose_mechanism(facts, stated, step)
        return choice._replace(because=(why, *choice.because))
    if isinstance(facts.workload, Tables):
        return _tables_together(facts.policy, facts.workload, name, job)
    if job.choose is not None:
        raise InputError(
            "choose says which tables are measured",
            received=f"{job.choose!r} beside another workload",
            way_out="Ask for tables, --tables 2, or leave --choose out",
        )
    if job.prior is not None:
        raise InputError(
            "a prior is a release of tables by which tables are released",
            received="--prior beside another workload",
            way_out="Ask for tables, --tables 2, or leave --prior out",
        )
    refuse_choice_options(job, "another workload")
    if isinstance(facts.domain, WideDomain):
        return _of_wide_domain(facts, name, job)
    if job.false_cells is not None:
        raise InputError(
            "false cells are those of a list of heavy cells, of a domain beyond 2^28 "
            "cells; leave --false-cells out"
        )
    if name == BEST and isinstance(facts.workload, LevelTotals):
        name = Nested.name
        if budget is not None:
            return _levels_together(facts, budget)
    if budget is None:
        return _least_epsilon(facts, name, job)
    if name == BEST and job.records is not None and facts.design is None:
        return _least_typical_error(facts, budget, job.records, step)
    return _predicted(facts, name, budget)


def _key(facts: Facts, name: str, budget: Budget) -> str | None:
    """Return what a prediction is kept under; None for mechanisms of others."""
    own = name in (BEST, ON_QUERIES, *NAMES, *EVERY)
    return key_of(facts.policy, facts.workload, budget, name) if own else None


def _predicted(facts: Facts, name: str, budget: Budget) -> MechanismChoice:
    """Return a mechanism with its predicted error, by memory where it was predicted."""
    key = _key(facts, name, budget)
    remembered = recall(key)
    if remembered is not None:
        # A strategy may have the name of a mechanism.
        strategy = remembered.pop("recipe") == Transformed.name != remembered["name"]
        make = _make_strategy if strategy else _make_mechanism
        remembered["because"] = tuple(remembered["because"])
        return MechanismChoice(make(facts, remembered["name"], budget), **remembered)
    if name == BEST:
        choice = _least_predicted_error(facts, budget)
    else:
        mechanism = _make_mechanism(facts, name, budget)
        own_name = mechanism.name if is_outside(name) else name
        choice = _with_prediction(mechanism, own_name, (f"{name} was asked for.",))
    prediction = choice._asdict() | {"recipe": choice.mechanism.name}
    del prediction["mechanism"], prediction["plan"]
    remember(key, prediction)
    return choice


def _levels_together(facts: Facts, budget: Budget) -> MechanismChoice:
    """Return what releases levels of districts: by their importance, and adding up."""
    mechanism = _make_mechanism(facts, Nested.name, budget)
    assert isinstance(mechanism, Nested)
    by_level = [
        f"{level} {error:,.3g}"
        for level, error in mechanism.errors_by_level().items()
        if math.isfinite(error)
    ]
    because = (
        "levels of districts are weighed by the importance that was stated, and add "
        "up.",
        f"Errors by level (root mean square, before any fit): {', '.join(by_level)}.",
    )
    return _with_prediction(mechanism, Nested.name, because)


def _epsilon_at_risk(words: str, policy: Policy) -> tuple[Budget, str]:
    """Return the largest epsilon that keeps a belief below a bound, and say so."""
    before, apart, after = (part.strip() for part in words.partition(":"))
    if not apart or not (is_number(before) and is_number(after)):
        raise InputError(
            "a risk is BEFORE:AFTER, two probabilities: how sure somebody is of a "
            f"person's value, and may become, as in 0.1:0.3; received {words!r}"
        )
    from blowfish_fast.advice.posterior_belief import largest_epsilon

    epsilon = largest_epsilon(before, after, policy=policy)
    return Budget.stated(epsilon=epsilon), (
        f"eps = {float(epsilon):.6g} is the largest that keeps whoever believes in a "
        f"person's value with probability {before} from believing it with more than "
        f"{after}, whatever they know of others."
    )


def _tables_together(
    policy: Policy, tables: Tables, name: str, job: Job
) -> MechanismChoice:
    """Return what releases tables: by plan, or as `choose` says."""
    usual = BEST if name == ChosenTables.name else "plan"
    choose: Any = as_choice(job.choose or usual, "choose", get_args(Chooser))
    certified = job.certify is not None and choose == "plan"
    named = (BEST, Contingency.name, ChosenTables.name)
    if job.budget is None or certified or name not in named:
        raise InputError(
            f"tables are released together by {Contingency.name} or "
            f"{ChosenTables.name}, at --epsilon, --rho or --risk, and intervals of a "
            "plan hold the truth without a certificate; leave --mechanism, --alpha, "
            "--beta and --certify out, or state --choose data"
        )
    if choose == "plan" and job.prior is not None:
        raise InputError(
            "a prior is where the model of tables that the data choose begins",
            received="--prior beside the plan of public sizes",
            way_out="State --choose data or --choose best, or leave --prior out",
        )
    if choose == "plan":
        refuse_choice_options(job, "the plan of public sizes")
    if choose != "plan":
        if name == Contingency.name:
            raise InputError(
                f"{name} measures what public sizes say",
                received=f"--choose {choose}",
                way_out="Leave --mechanism or --choose out",
            )
        return _chosen_tables(policy, tables, choose, job)
    mechanism = Contingency(policy, tables, epsilon=job.budget)
    plan = mechanism.plan(job.records)
    because = (
        f"{len(plan.measured):,} tables are measured for {len(plan.tables):,}, and all "
        "of them agree with each other.",
    )
    return MechanismChoice(
        mechanism, mechanism.name, because, plan.rms, "predicted", plan
    )


def _chosen_tables(
    policy: Policy, tables: Tables, choose: Chooser, job: Job
) -> MechanismChoice:
    """Return the mechanism that chooses tables, and what is known beforehand."""
    mechanism = ChosenTables(
        policy,
        tables,
        choose=choose,
        records=job.records,
        certify=job.certify,
        prior=None if job.prior is None else read_release(Path(job.prior)),
        always=parse_demanded(job.always or [], tables.domain),
        rounds=job.rounds,
        cells=job.model_cells,
        epsilon=job.budget,
    )
    because = []
    if job.records is not None:
        share = mechanism.planned_misplaced(job.records)
        because.append(
            f"Measured by public sizes, about {min(share, 1):.0%} of {job.records:,} "
            "records would be put into a wrong cell of a table."
        )
    decided = mechanism.decided
    if decided == "plan":
        because.append("So the plan of public sizes is followed.")
        plan = mechanism.plan(job.records)
        return MechanismChoice(
            mechanism, mechanism.name, tuple(because), plan.rms, "predicted", plan
        )
    because.append(
        "The data choose, privately, which pairs of columns are followed and how "
        "finely; a model answers the rest."
        if decided == "data"
        else "The number of records, with noise where it is secret, decides whether "
        "the plan of public sizes is followed or the data choose; --records says it."
    )
    return MechanismChoice(mechanism, mechanism.name, tuple(because), None, "unknown")


def _of_wide_domain(facts: Facts, name: str, job: Job) -> MechanismChoice:
    """Return what serves a domain whose cells nobody lists: a list, or ranges."""
    lists = isinstance(facts.workload, Identity)
    budget = job.budget
    if budget is None or job.certify is not None:
        raise InputError(
            f"of {facts.domain.size:,} cells lists and ranges are released at "
            "--epsilon, --rho or --risk, and their intervals hold the truth without a "
            "certificate; leave --alpha, --beta and --certify out"
        )
    lister = SparseLaplace if budget.power == 1 else SparseGaussian
    own = lister.name if lists else Dawa.name
    if name not in (BEST, own):
        raise InputError(
            f"this is released by {own}; leave --mechanism out", received=repr(name)
        )
    if not lists:
        if job.false_cells is not None:
            raise InputError("false cells are those of --workload identity")
        mechanism: Mechanism = Dawa(facts.policy, facts.workload, epsilon=budget)
        asked = "ranges of any length" if facts.domain.ndim == 1 else "any rectangle"
        why = f"dawa answers {asked} from totals of some thousand buckets."
        return MechanismChoice(mechanism, own, (why,), None, "unknown")
    mean: Any = 1 if job.false_cells is None else job.false_cells
    heavy = lister(facts.policy, epsilon=budget, false_cells=mean)
    least, false = heavy.threshold, float(heavy.expected_false_cells)
    because = (
        f"{own} lists cells of about {least:,} records and more; lighter ones are "
        f"missed, and {false:.3g} empty ones are listed in the mean.",
    )
    if isinstance(facts.domain, KeyDomain):
        each = heavy.thresholds
        pairs = zip(each["length"], each["threshold"].tolist(), strict=True)
        listed = ", ".join(f"{length}: {number:,}" for length, number in pairs)
        because = (
            f"{own} lists words of about so many records and more, by their length: "
            f"{listed}; rarer ones are missed, and {false:.3g} words that nobody wrote "
            "are listed in the mean.",
        )
    return MechanismChoice(heavy, own, because, None, "listed")


def choose_with_progress(
    facts: Facts, job: Job, *, short: bool = False, by_size: bool = False
) -> MechanismChoice:
    """Return what `choose_mechanism` does, with its progress on the terminal.

    Parameters
    ----------
    facts : Facts
        The public facts of the job.
    job : Job
        It names a mechanism or "best".
    short : bool
        Whether no noise will be drawn, or such as no seed brings back, and from few
        records. A small prediction, and the release after it, then do without the
        compiler.
    by_size : bool
        Whether the size of the table of records decided that. Then nobody is told that
        kernels are compiled: the sentence would tell of the records, before the charge.

    Returns
    -------
    MechanismChoice
        A mechanism at its budget, and why it is used.
    """
    if job.budget is not None and job.records is None:
        before = recall(_key(facts, job.mechanism or BEST, job.budget))
        little = (
            is_little(facts.workload, facts.domain.size, predicted=before is not None)
            and job.mechanism not in LONG_IN_PYTHON
        )
        if by_size and little:
            COMPILER.tell = None
        if short:
            COMPILER.spare(little)
    if job.records is None or (job.mechanism or BEST) != BEST:
        with spinner("choosing a mechanism"):
            return choose_mechanism(facts, job)
    with counter("trying mechanisms") as step:
        return choose_mechanism(facts, job, step)


def is_little(
    workload: Workload, cells: int, times: int = 1, *, predicted: bool = False
) -> bool:
    """Tell whether plain Python is done before the compiler would be ready.

    Parameters
    ----------
    workload : Workload
        What will be asked.
    cells : int
        Cells of the domain.
    times : int
        How often it is predicted, side by side.
    predicted : bool
        Whether it was predicted before: ranges then only have to be answered.

    Returns
    -------
    bool
        Whether cells and ranges are few; more may be where nothing is compiled yet.
    """
    most, ranges = FEW if compiled_before("tree_scaling.weight_sweeps") else SOME
    ranges = SOME[1] if predicted else ranges
    many = times * workload.queries > ranges and not isinstance(workload, Identity)
    return times * cells <= most and not many


def _check_accuracy(job: Job) -> None:
    names = ("epsilon", "rho", "delta", "risk", "alpha", "beta")
    terms = {name: getattr(job, name) for name in names if getattr(job, name)}
    accuracy = {"alpha", "beta"} <= set(terms)
    named = set(terms) - {"delta"} if accuracy else set(terms)
    ways = [{"epsilon", "rho", "delta"}, {"risk"}, {"alpha", "beta"}]
    stated = [way & named for way in ways if way & named]
    if len(stated) != 1 or stated[0] in ({"alpha"}, {"beta"}, {"delta"}):
        listed_terms = ", ".join(f"{name} {value}" for name, value in terms.items())
        raise InputError(f"state {BUDGET_FORMS}; received {listed_terms or 'neither'}")


def _make_mechanism(facts: Facts, name: str, budget: Budget) -> Mechanism:
    kind: Any = EVERY.get(name)
    if kind is None and is_outside(name):
        look_here_for([name])
        kind = find_mechanism(name)
    if kind is not None and "workload" not in inspect.signature(kind).parameters:
        raise InputError(
            f"{name} does not release counts for a workload; use it from Python. "
            f"Others are {', '.join(_release_names())}"
        )
    if kind is not None:
        mechanism: Mechanism = built(kind, facts.policy, facts.workload, epsilon=budget)
        return mechanism
    if name == ON_QUERIES:
        on_queries = Laplace if budget.power == 1 else Gaussian
        return on_queries(
            facts.policy, facts.workload, epsilon=budget, strategy="queries"
        )
    if name in NAMES:
        return _make_strategy(facts, name, budget)
    raise InputError(
        f"there is no mechanism {name!r}{nearest(name, [*_release_names(), BEST])}; "
        f"there are {BEST}, {', '.join(_release_names())}"
    )


def _make_strategy(facts: Facts, name: str, budget: Budget) -> Mechanism:
    stated: Any = {"epsilon": budget, "partition": None, "strategy": name}
    return Transformed(facts.policy, facts.workload, **stated)


def _release_names() -> list[str]:
    return [
        name
        for name, kind in EVERY.items()
        if "workload" in inspect.signature(kind).parameters
    ]


def _with_prediction(
    mechanism: Mechanism, name: str, because: tuple[str, ...]
) -> MechanismChoice:
    try:
        total = mechanism.expected_total_error()
    except DataDependentError:
        return MechanismChoice(mechanism, name, because, None, "unknown")
    error = math.sqrt(max(total, 0.0) / max(mechanism.workload.queries, 1))
    return MechanismChoice(mechanism, name, because, error, "predicted")


TRY_THEM = "state a rough number of records, --records, to try them on generated data."
OF_SAMPLES = (
    "what they choose follows the sample, so that little is known --of population."
)


def _least_predicted_error(facts: Facts, budget: Budget) -> MechanismChoice:
    hurried = facts.domain.size > MANY_CELLS
    asked: list[str] | None = None
    if isinstance(facts.workload, Identity) and not facts.policy.has_constraints:
        # Noise on every cell that is asked for is noise on the cells: weighed once.
        left_out: tuple[str, ...] = (*COVERED, *OF_DISTRICTS)
        if facts.domain.ndim == 1:
            left_out = (*left_out, *ON_MAPS)
        asked = [
            *NAMES,
            *(mechanism for mechanism in MECHANISMS if mechanism not in left_out),
        ]
    terms: Any = {"epsilon": budget, "hurried": hurried, "mechanisms": asked}
    table = compare(facts.policy, facts.workload, **terms)
    best = table.best
    if best.mechanism is None or not best.admissible:
        raise InputError(
            "no mechanism has a predicted error under this policy; name one with "
            "--mechanism, or state --records to weigh those that adapt to the data"
        )
    rivals = [
        line for line in table if line.admissible and line.mean > 1.001 * best.mean
    ]
    because = [
        f"{best.name} has the least predicted error of "
        f"{sum(line.admissible for line in table)} mechanisms that the policy admits"
        + (
            f"; {rivals[0].name} comes next, "
            f"{math.sqrt(rivals[0].mean / best.mean):,.3g} times as far off."
            if rivals and best.mean > 0
            else "."
        )
    ]
    if any(line.data_dependent and line.mechanism is not None for line in table):
        because.append(
            "Mechanisms that adapt to the data were not weighed: "
            + (OF_SAMPLES if facts.design is not None else TRY_THEM)
        )
    error = math.sqrt(max(best.mean, 0.0))
    return MechanismChoice(
        best.mechanism, best.name, tuple(because), error, "predicted"
    )


def _least_typical_error(
    facts: Facts, budget: Budget, records: int, step: Step | None
) -> MechanismChoice:
    from blowfish_fast.advice.recommendation import recommend

    advice = recommend(
        facts.policy, facts.workload, epsilon=budget, records=records, progress=step
    )
    best = advice.best
    if best.mechanism is None:
        raise InputError(
            f"no mechanism can be used under this policy; {best.name}: {best.reason}"
        )
    # The advice for Python users has no place here.
    because = tuple(sentence for sentence in advice.because if "`" not in sentence)
    error_kind = best.kind if math.isfinite(best.error) else "unknown"
    error = best.error if error_kind != "unknown" else None
    return MechanismChoice(best.mechanism, best.name, because, error, error_kind)


def _least_epsilon(facts: Facts, name: str, job: Job) -> MechanismChoice:
    from blowfish_fast.advice.accuracy import translate

    stated = {"alpha": job.alpha or "", "beta": job.beta or ""}
    for word, text in stated.items():
        if not is_number(text):
            raise InputError(f"{word} must be a number; received {text!r}")
    alpha, beta = map(float, stated.values())
    wanted_in: Any = "epsilon" if job.delta is None else "rho"
    translation = translate(
        facts.policy, facts.workload, alpha=alpha, beta=beta, currency=wanted_in
    )
    wanted = f"all answers within {alpha:g}, but for a probability of {beta:g}"
    if translation.free:
        raise InputError(
            "no edge of the policy changes what is asked: the answers are public, and "
            "need no mechanism. Ask something else, or state --epsilon"
        )
    promising = {
        candidate.name: candidate
        for candidate in translation
        if candidate.amount is not None
    }
    if name not in (BEST, *promising):
        raise InputError(
            f"{name!r} promises no such accuracy{nearest(name, promising)}; these do: "
            f"{', '.join(promising) or 'none'}"
        )
    best = translation.best if name == BEST else promising[name]
    assert best.mechanism is not None
    assert best.budget is not None
    implied = best.budget.in_short()
    if job.delta is not None:
        epsilon = epsilon_of(best.budget.amount, job.delta)
        implied += f", which is eps = {float(epsilon):.6g} at delta = {job.delta}"
    because = [f"{best.name} promises {wanted}, at {implied}."]
    others = [
        candidate for candidate in promising.values() if candidate.name != best.name
    ]
    if name == BEST and others:
        because.append(
            f"It is the cheapest of {len(promising)}; {others[0].name} would need "
            f"{float(others[0].amount or 0):.6g}."
        )
    return _with_prediction(best.mechanism, best.name, tuple(because))


def memory_file() -> Path:
    """Return the file of what is kept; it raises an `OSError` where nothing is."""
    return cache_folder() / "choices.json"


def key_of(policy: Policy, workload: Workload, budget: Budget, name: str) -> str | None:
    """Return a hash of all public facts that a prediction depends on.

    Parameters
    ----------
    policy : Policy
        What stays indistinguishable.
    workload : Workload
        The queries.
    budget : Budget
        What the release spends.
    name : str
        The mechanism that was asked for.

    Returns
    -------
    str or None
        None if there are more than 2^16 queries, which are not spelled out. The
        sources of the package are part of the hash, so an edit of them forgets
        every prediction.
    """
    if workload.queries > MOST_QUERIES:
        return None
    facts = [policy.to_dict(), workload.to_dict(), workload.declared, budget.to_dict()]
    text = json.dumps([_sources(), name, *facts], default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def recall(key: str | None) -> dict[str, Any] | None:
    """Return what was kept under a key.

    Parameters
    ----------
    key : str or None
        What `key_of` returned.

    Returns
    -------
    dict or None
        The prediction that `remember` stored.
    """
    prediction = _read().get(key or "")
    return prediction if isinstance(prediction, dict) else None


def remember(key: str | None, prediction: dict[str, Any]) -> None:
    """Store a prediction, beside the latest of those that were stored before.

    Parameters
    ----------
    key : str or None
        What `key_of` returned; None stores nothing.
    prediction : dict
        Plain data: the name, the reasons and the error of a mechanism.
    """
    if key is None:
        return
    memory = dict(list(_read().items())[-MOST_KEPT + 1 :]) | {key: prediction}
    with contextlib.suppress(OSError):
        path = memory_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(memory), encoding="utf-8")
        fresh.replace(path)


def _read() -> dict[str, Any]:
    try:
        memory = json.loads(memory_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return memory if isinstance(memory, dict) else {}


@cache
def _sources() -> tuple[int, ...]:
    """Return what changes with any edit of the package.

    Files are looked at once: this process goes on with the code that it has loaded.
    """
    folder = Path(blowfish_fast.__file__).parent
    states = [path.stat() for path in folder.rglob("*.py")]
    latest = max(state.st_mtime_ns for state in states)
    return len(states), sum(state.st_size for state in states), latest
