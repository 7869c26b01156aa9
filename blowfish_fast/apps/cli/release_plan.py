"""What a job states, read as public facts: domain, policy, workload. No data is read.

Parts that are missing are told all at once. A job whose workload is tables alone may
lie over more cells than memory holds; see `Contingency`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.persons import read_bound
from blowfish_fast.data.records import Rule, domain_with_rules
from blowfish_fast.errors import InputError
from blowfish_fast.policies import PerPerson, Policy
from blowfish_fast.workloads import Workload

from .parsing.domain import parse_domain, parse_table
from .parsing.job import KNOWN_TOTALS, Job
from .parsing.policy import (
    POLICY_FORMS,
    extend_policy,
    parse_policy,
    parse_table_policy,
)
from .parsing.workload import (
    WORKLOAD_FORMS,
    asks_tables,
    parse_tables,
    parse_workload,
)

BUDGET_FORMS = (
    "either --epsilon or --rho, what may be spent, or --risk 0.1:0.3, how sure "
    "somebody may become, or --alpha and --beta, the largest error and the probability "
    "of exceeding it"
)
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


def check_complete(job: Job, *, with_data: bool = True) -> None:
    """Refuse a job with parts missing, and name all of them."""
    known_ledger = job.ledger is not None and Path(job.ledger).exists()
    spends = [job.epsilon, job.rho, job.risk, job.alpha, job.beta]
    lacking = {
        "state the data: --data people.csv (or .parquet, .npy, .duckdb, an address), "
        "or --data demo for made-up people": with_data and job.data is None,
        "state the domain, which is never read off the data: --domain age=0:101:1, or "
        "[domain] in a job file": not job.domain,
        "state the policy, which has no default: it says what must stay "
        f"indistinguishable. --policy takes {POLICY_FORMS}": job.policy is None
        and not known_ledger,
        f"state the workload, what will be asked: --workload takes {WORKLOAD_FORMS}": (
            job.workload is None
        ),
        f"state {BUDGET_FORMS}": not any(spends),
    }
    told = [sentence for sentence, lacks in lacking.items() if lacks]
    if len(told) == 1:
        raise InputError(told[0])
    if told:
        raise InputError("\n  ".join([f"{len(told)} parts are missing:", *told]))


def read_facts(job: Job) -> Facts:
    """Read the domain, policy and workload of a job."""
    check_complete(job, with_data=False)
    tables = asks_tables(job.workload)
    stated = list(job.domain or ())
    plain: Any = parse_table(stated) if tables else parse_domain(stated)
    people = read_bound(
        plain, job.person, job.record, job.at_most, job.count or "records"
    )
    outside, missing = parse_treatments(job.outside), parse_treatments(job.missing)
    domain, rules = domain_with_rules(plain, outside, missing)
    policy = _read_policy(job, domain, whole_table=tables)
    read = parse_tables if tables else parse_workload
    workload = read(job.workload or "", domain)
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


def _read_policy(job: Job, domain: Any, *, whole_table: bool) -> Policy:
    """Return the stated policy, or what that of the ledger says of these columns."""
    if job.policy is not None:
        read = parse_table_policy if whole_table else parse_policy
        return read(job.policy, domain)
    assert job.ledger is not None
    with Ledger(job.ledger) as ledger:
        policy = ledger.policy
    if policy.domain.attributes == domain.attributes:
        return policy
    columns = policy.domain.columns_for(domain)
    seen = None if columns is None else policy._seen_through(columns, domain)
    if seen is None:
        raise InputError(
            f"the ledger {job.ledger} is about {policy.domain!r}; state columns among "
            f"these, with the same cells or unions of them; received {domain!r}"
        )
    return seen


def parse_treatments(words: str | Mapping[str, str] | None) -> Any:
    """Read ``cell``, or ``age=cell,income=clamp`` for some columns."""
    if words is None or isinstance(words, Mapping) or "=" not in words:
        return words
    pairs = [one.partition("=") for one in words.split(",")]
    return {name.strip(): word.strip() for name, _, word in pairs}
