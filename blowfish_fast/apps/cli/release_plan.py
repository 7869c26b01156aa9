"""From a stated job to a mechanism that is ready, by public facts alone.

    words  ->  domain, policy, workload  ->  mechanism        no data is read
                                             and why this one

The mechanism is named, or the best is taken: of least predicted error (`compare`),
with a rough number of records also of typical error (`recommend`), and with alpha and
beta of least epsilon (`translate`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.advice.accuracy import translate
from blowfish_fast.advice.comparison import compare
from blowfish_fast.advice.recommendation import recommend
from blowfish_fast.apps.cli.printing import bar_counter, spinner, steps_bar
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.persons import read_bound
from blowfish_fast.data.records import Rule, domain_with_rules
from blowfish_fast.errors import BlowfishError, DataDependentError, InputError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.memory import BASE_BYTES
from blowfish_fast.measure.strategies.strategy_choice import NAMES
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.gaussian import Gaussian
from blowfish_fast.mechanisms.laplace import Laplace
from blowfish_fast.mechanisms.registry import MECHANISMS, RHO_MECHANISMS
from blowfish_fast.mechanisms.transformed import Transformed
from blowfish_fast.policies import PerPerson, Policy
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.workloads import Workload

from .parsing.domain import parse_domain, parse_table
from .parsing.job import BEST, ON_QUERIES, Job
from .parsing.policy import POLICY_FORMS, extend_policy, parse_policy
from .parsing.spelling import KNOWN_TOTALS, nearest
from .parsing.workload import WORKLOAD_FORMS, parse_workload

MANY_CELLS = 2**12
"""Beyond this, what takes long to predict and seldom wins is left out."""

Step = Callable[[int, int, str], None]
"""Takes steps done, steps in all, and the name of the next."""


class MechanismChoice(NamedTuple):
    """A mechanism, and why it is used.

    Attributes
    ----------
    mechanism : Mechanism
        Ready to release.
    name : str
        What it goes by in tables.
    because : tuple of str
        Plain sentences.
    error : float or None
        Root mean square per query, in records, where it is known beforehand.
    error_kind : {"predicted", "typical", "unknown"}
        Exact for the noise whatever the data; measured on generated data; or neither.
    """

    mechanism: Mechanism
    name: str
    because: tuple[str, ...]
    error: float | None
    error_kind: str

    @property
    def error_sentence(self) -> str:
        """What error to expect, in a sentence."""
        if self.error is None:
            return "depends on the data, and is not known beforehand"
        kind = (
            "predicted from the noise, whatever the data"
            if self.error_kind == "predicted"
            else "typical of generated data; yours may differ"
        )
        return f"{self.error:,.4g} records per query (root mean square), {kind}"


ORDERED = ("line", "threshold")
"""Policies that speak of neighbours and distances."""


@dataclass(frozen=True)
class Facts:
    """Everything public that was stated: no data among it."""

    domain: Domain
    rules: list[Rule]
    policy: Policy
    workload: Workload
    ledger_policy: Policy
    """Of the ledger that the job makes, over all columns that were stated for it."""

    @property
    def extra_cells(self) -> list[str]:
        """Which cells were added for stray values, in words."""
        return [
            f"{kind} of {one.name}"
            for one in self.domain.attributes
            for kind in one.extras
        ]


def listed_orders(words: str, domain: Domain) -> list[str]:
    """Return the columns whose categories a policy takes in the order of their list.

    Districts have no neighbours in a list, and levels of schooling do; only whoever
    states the policy knows.

    Examples
    --------
    >>> towns = Domain.from_levels(["Bern", "Chur"], name="town")
    >>> listed_orders("line", towns), listed_orders("full", towns)
    (['town'], [])
    """
    name, _, setting = words.partition(KNOWN_TOTALS)[0].strip().partition(":")
    several = setting.split(",") if name == "product" else [name] * domain.ndim
    return [
        str(one.name)
        for one, part in zip(domain.attributes, several, strict=False)
        if one.levels is not None and part.strip().partition(":")[0] in ORDERED
    ]


def read_facts(job: Job) -> Facts:
    """Read the domain, policy and workload of a job; refuse what was left unsaid."""
    if not job.domain:
        raise InputError(
            "state the domain, which is never read off the data: --domain age=0:101:1, "
            "or [domain] in a job file"
        )
    known_ledger = job.ledger is not None and Path(job.ledger).exists()
    if job.policy is None and not known_ledger:
        raise InputError(
            "state the policy, which has no default: it says what must stay "
            f"indistinguishable. --policy takes {POLICY_FORMS}"
        )
    if job.workload is None:
        raise InputError(
            f"state the workload, what will be asked: --workload takes {WORKLOAD_FORMS}"
        )
    plain = parse_domain(list(job.domain))
    people = read_bound(
        plain, job.person, job.record, job.at_most, job.count or "records"
    )
    outside, missing = parse_treatments(job.outside), parse_treatments(job.missing)
    domain, rules = domain_with_rules(plain, outside, missing)
    if job.policy is None:
        assert job.ledger is not None
        policy = _policy_of_ledger(job.ledger, domain)
    else:
        policy = parse_policy(job.policy, domain)
    workload = parse_workload(job.workload, domain)
    table_policy = policy
    if job.ledger_domain:
        table, _ = domain_with_rules(parse_table(job.ledger_domain), outside, missing)
        if table.columns_for(domain) is None:
            raise InputError(
                "the columns of a release are among those of its ledger, with the same "
                f"cells or unions of them; received {domain!r} and, for the ledger, "
                f"{table!r}"
            )
        if job.policy is not None:
            table_policy = extend_policy(job.policy, domain, table)
    if people is None:
        return Facts(domain, rules, policy, workload, table_policy)
    if policy.person_rule is None:
        table_policy = table_policy.per_person(person=people.person, count=people.count)
    single = policy.unconstrained if isinstance(policy, PerPerson) else policy
    own = single.per_person(people.at_most, person=people.person, count=people.count)
    return Facts(domain, rules, own, workload, table_policy)


def _policy_of_ledger(path: str, domain: Domain) -> Policy:
    """Return what the policy of a ledger says of some of its columns."""
    with Ledger(path) as ledger:
        policy = ledger.policy
    columns = policy.domain.columns_for(domain)
    seen = None if columns is None else policy._seen_through(columns, domain)
    if seen is None:
        raise InputError(
            f"the ledger {path} is about {policy.domain!r}; state columns among these, "
            f"with the same cells or unions of them; received {domain!r}"
        )
    return seen


def parse_treatments(words: str | Mapping[str, str] | None) -> Any:
    """Read ``cell``, or ``age=cell,income=clamp`` for some columns."""
    if words is None or isinstance(words, Mapping) or "=" not in words:
        return words
    pairs = [one.partition("=") for one in words.split(",")]
    return {name.strip(): word.strip() for name, _, word in pairs}


def choose_mechanism(
    facts: Facts, job: Job, step: Step | None = None
) -> MechanismChoice:
    """Return the mechanism of a job at the budget that it spends."""
    _check_accuracy(job)
    name = job.mechanism or BEST
    budget = job.budget
    if budget is None:
        return _least_epsilon(facts, name, job)
    if name != BEST:
        return _named_choice(facts, name, budget)
    if job.records is not None:
        return _least_typical_error(facts, budget, job.records, step)
    return _least_predicted_error(facts, budget)


def choose_with_progress(facts: Facts, job: Job) -> MechanismChoice:
    """Return `choose_mechanism`, with its progress on the terminal."""
    if job.records is None or (job.mechanism or BEST) != BEST:
        with spinner("choosing a mechanism"):
            return choose_mechanism(facts, job)
    with steps_bar() as bar:
        return choose_mechanism(facts, job, bar_counter(bar, "trying mechanisms"))


def _check_accuracy(job: Job) -> None:
    accuracy = [job.alpha is not None, job.beta is not None]
    stated = job.epsilon is not None or job.rho is not None
    if stated == all(accuracy) or any(accuracy) != all(accuracy):
        names = ("epsilon", "rho", "delta", "alpha", "beta")
        given = {name: getattr(job, name) for name in names}
        said = ", ".join(f"{name} {one}" for name, one in given.items() if one)
        raise InputError(
            "state either --epsilon or --rho, what may be spent, or --alpha and "
            "--beta, the largest error and the probability of exceeding it; received "
            f"{said or 'neither'}"
        )


def _named_choice(facts: Facts, name: str, budget: Budget) -> MechanismChoice:
    mechanism = _make_mechanism(facts, name, budget)
    return _with_prediction(mechanism, name, (f"{name} was asked for.",))


def _make_mechanism(facts: Facts, name: str, budget: Budget) -> Mechanism:
    kind: Any = {**MECHANISMS, **RHO_MECHANISMS}.get(name)
    if kind is not None and "workload" not in inspect.signature(kind).parameters:
        raise InputError(
            f"{name} does not release counts for a workload; use it from Python. "
            f"Others are {', '.join(_release_names())}"
        )
    if kind is not None:
        made: Mechanism = kind(facts.policy, facts.workload, epsilon=budget)
        return made
    if name == ON_QUERIES:
        on_queries = Laplace if budget.power == 1 else Gaussian
        return on_queries(
            facts.policy, facts.workload, epsilon=budget, strategy="queries"
        )
    for strategy in NAMES:
        if name == strategy:
            return Transformed(
                facts.policy,
                facts.workload,
                epsilon=budget,
                partition=None,
                strategy=strategy,
            )
    raise InputError(
        f"there is no mechanism {name!r}{nearest(name, [*_release_names(), BEST])}; "
        f"there are {BEST}, {', '.join(_release_names())}"
    )


def _release_names() -> list[str]:
    return [
        name
        for name, kind in {**MECHANISMS, **RHO_MECHANISMS}.items()
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


def _least_predicted_error(facts: Facts, budget: Budget) -> MechanismChoice:
    hurried = facts.domain.size > MANY_CELLS
    table = compare(facts.policy, facts.workload, epsilon=budget, hurried=hurried)
    best = table.best
    if best.mechanism is None or not best.admissible:
        raise InputError(
            "no mechanism has a predicted error under this policy; name one with "
            "--mechanism, or state --records to weigh those that adapt to the data"
        )
    rivals = [one for one in table if one.admissible and one.mean > 1.001 * best.mean]
    because = [
        f"{best.name} has the least predicted error of "
        f"{sum(one.admissible for one in table)} mechanisms that the policy admits"
        + (
            f"; {rivals[0].name} comes next, "
            f"{math.sqrt(rivals[0].mean / best.mean):,.3g} times as far off."
            if rivals and best.mean > 0
            else "."
        )
    ]
    if any(one.data_dependent and one.mechanism is not None for one in table):
        because.append(
            "Mechanisms that adapt to the data were not weighed: state a rough number "
            "of records, --records, to try them on generated data."
        )
    error = math.sqrt(max(best.mean, 0.0))
    return MechanismChoice(
        best.mechanism, best.name, tuple(because), error, "predicted"
    )


def _least_typical_error(
    facts: Facts, budget: Budget, records: int, step: Step | None
) -> MechanismChoice:
    advice = recommend(
        facts.policy, facts.workload, epsilon=budget, records=records, progress=step
    )
    best = advice.best
    if best.mechanism is None:
        raise InputError(
            f"no mechanism can be used under this policy; {best.name}: {best.reason}"
        )
    # The advice for Python users has no place here.
    because = tuple(one for one in advice.because if "`" not in one)
    return MechanismChoice(best.mechanism, best.name, because, best.error, best.kind)


def _least_epsilon(facts: Facts, name: str, job: Job) -> MechanismChoice:
    alpha, beta = _as_float(job.alpha, "alpha"), _as_float(job.beta, "beta")
    found = translate(facts.policy, facts.workload, alpha=alpha, beta=beta)
    wanted = f"all answers within {alpha:g}, but for a probability of {beta:g}"
    if found.free:
        raise InputError(
            "no edge of the policy changes what is asked: the answers are public, and "
            "need no mechanism. Ask something else, or state --epsilon"
        )
    promising = [one for one in found if one.epsilon is not None]
    if name == BEST:
        best = found.best
    else:
        by_name = {one.name: one for one in promising}
        if name not in by_name:
            raise InputError(
                f"{name!r} promises no such accuracy{nearest(name, by_name)}; these "
                f"do: {', '.join(by_name) or 'none'}"
            )
        best = by_name[name]
    assert best.mechanism is not None
    assert best.epsilon is not None
    because = [f"{best.name} promises {wanted}, at eps = {float(best.epsilon):.6g}."]
    others = [one for one in promising if one.name != best.name]
    if name == BEST and others:
        other = others[0].epsilon
        assert other is not None
        because.append(
            f"It is the cheapest of {len(promising)}; {others[0].name} would need "
            f"{float(other):.6g}."
        )
    return _with_prediction(best.mechanism, best.name, tuple(because))


def _as_float(text: str | None, name: str) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise InputError(f"{name} must be a number; received {text!r}") from None


def promise(choice: MechanismChoice, *, secure: bool) -> Guarantee:
    """Return what the release will promise."""
    mechanism = choice.mechanism
    return Guarantee.of(
        mechanism.policy, mechanism.budget, secure=secure, notes=mechanism._notes()
    )


def memory_sentence(choice: MechanismChoice) -> str:
    """Say how much memory the release may take, from public sizes."""
    needed = choice.mechanism.memory_needed() + BASE_BYTES
    return f"at most {needed / 2**20:,.0f} MiB"


def drawn_error(release: Any, workload: Workload) -> float | None:
    """Return the root mean square of the noise that was drawn; None if unknown."""
    try:
        errors = release.standard_errors(workload)
    except BlowfishError:
        return None
    return math.sqrt(float((errors**2).mean()))
