"""``blowfish explain``: what a job, a release or a mechanism means, in plain words.

explain job.toml           before anything is spent: meaning, price, error
explain out.blowfish       what was promised, and how exact it is
explain dawa               a mechanism: promise, error, time, source
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.apps.cli.explanations import (
    OTHER_NAMES,
    Certainty,
    Section,
    as_plain,
    attack_section,
    certainties,
    exactness_section,
    half_width,
    labelled,
    limits_section,
    mechanism_sections,
    secret_section,
)
from blowfish_fast.apps.cli.parsing.job_file import Job
from blowfish_fast.apps.cli.parsing.release_plan import chosen_in_sight, stated_facts
from blowfish_fast.apps.cli.printing import console, harmless, show, waiting
from blowfish_fast.mechanisms.registry import MECHANISMS
from blowfish_fast.policies import from_dict
from blowfish_fast.release.release import Release


def run_explain(subject: str, *, as_json: bool) -> None:
    """Explain a job file, the file of a release, or a mechanism by its name."""
    path = Path(subject)
    if path.suffix.lower() == ".toml":
        told, sections = _job(path)
    elif path.is_file() or path.suffix:
        told, sections = _release(path)
    else:
        sections = mechanism_sections(subject)
        known = OTHER_NAMES.get(subject, subject)
        labels = labelled(known) if known in MECHANISMS else {}
        told = {"kind": "mechanism", "name": subject, "labels": labels}
    if as_json:
        show({**told, "sections": as_plain(sections)})
        return
    for section in sections:
        _show(section)


def _job(path: Path) -> tuple[dict[str, Any], list[Section]]:
    job = Job.from_file(path)
    facts = stated_facts(job)
    choice = chosen_in_sight(facts, job)
    epsilon = choice.mechanism.epsilon
    with waiting("weighing what can be learnt"):
        attack = attack_section(facts.policy, epsilon)
        sure = certainties(facts.policy, epsilon)
    columns = " x ".join(job.domain)
    released = [
        f"Counts over {facts.domain.size:,} cells ({columns}), from "
        f"{job.shown_data or 'data that is not stated yet'}.",
        f"Made for {facts.workload.queries:,} queries ({job.workload}); others can be "
        "asked too, and may be less exact.",
    ]
    if facts.extra_cells:
        released.append(
            f"{', '.join(facts.extra_cells)}: cells of their own, as secret as any "
            "value."
        )
    cost, remaining = _cost(job, float(epsilon))
    exact = [f"Error: {choice.error_sentence}.", *choice.because]
    sections = [
        Section(f"The job {path}", released),
        secret_section(facts.policy),
        attack,
        Section("What it costs", cost),
        Section("How exact it will be", exact),
        limits_section(facts.policy),
    ]
    told = {
        "kind": "job",
        "job": job.to_dict(),
        "epsilon": str(epsilon),
        "mechanism": choice.name,
        "expected_error": choice.error,
        "error_kind": choice.error_kind,
        "remaining": remaining,
        "certainty": _plain(sure),
    }
    return told, sections


def _cost(job: Job, epsilon: float) -> tuple[list[str], float | None]:
    sentences = [f"One release spends eps = {epsilon:g}; asking it again is free."]
    if job.ledger is None:
        sentences.append("No ledger is named: nobody would keep count.")
        return sentences, None
    if not Path(job.ledger).exists():
        sentences.append(
            f"The ledger {job.ledger} is not there yet"
            + (f"; it would begin with {job.total}." if job.total else ".")
        )
        return sentences, None
    with Ledger(job.ledger) as ledger:
        remaining = float(ledger.remaining)
        sentences.append(
            f"{remaining:g} of {float(ledger.epsilon):g} remains in {job.ledger}: "
            f"enough for {int(ledger.remaining / _positive(epsilon)):,} such releases."
        )
    return sentences, remaining


def _positive(epsilon: float) -> float:
    return max(epsilon, 1e-9)


def _release(path: Path) -> tuple[dict[str, Any], list[Section]]:
    release = Release.load(path)
    promise = release.guarantee
    policy = from_dict(promise.policy)
    with waiting("weighing what can be learnt"):
        attack = attack_section(policy, promise.epsilon)
        sure = certainties(policy, promise.epsilon) if promise.epsilon else []
        exact = exactness_section(release)
    made = [
        f"An estimate of the counts of {release.domain.size:,} cells, made by "
        f"{_recipe(release)} at eps = {float(promise.epsilon):g} (blowfish_fast "
        f"{release.version}).",
        "Its noise came from the system's secure generator."
        if release.private
        else "Its noise was seeded: it is an experiment, and protects nobody.",
        *promise.notes,
    ]
    sections = [
        Section(f"The release {path}", made),
        secret_section(policy),
        attack,
        exact,
        limits_section(policy),
    ]
    covered = release.interval_scope == "noise"
    told = {
        "kind": "release",
        "mechanism": release.mechanism,
        "version": release.version,
        "epsilon": str(promise.epsilon),
        "private": release.private,
        "promise": str(promise),
        "cells": release.domain.size,
        "half_width": half_width(release) if covered else None,
        "certainty": _plain(sure),
    }
    return told, sections


def _recipe(release: Release) -> str:
    strategy = release.details.get("strategy")
    if not isinstance(strategy, str):
        return release.mechanism
    return f"{release.mechanism} with the strategy {strategy}"


def _plain(sure: list[Certainty]) -> list[dict[str, Any]]:
    return [one._asdict() for one in sure]


def _show(section: Section) -> None:
    console.print(Text(section.heading, style="bold"))
    for sentence in section.sentences:
        console.print(Padding(Text(harmless(sentence)), (0, 0, 0, 2)))
    if section.rows:
        names, *rows = section.rows
        table = Table(box=None, header_style="italic", pad_edge=False)
        for name in names:
            table.add_column(name, justify="right", overflow="fold")
        for row in rows:
            table.add_row(*row)
        console.print(Padding(table, (0, 0, 0, 4)))
    console.print()
