"""``blowfish explain``: what a job, a release or a mechanism means, in plain words.

explain job.toml           before anything is spent: meaning, price, error
explain out.blowfish       what was promised, and how exact it is
explain dawa               a mechanism: promise, error, time, source
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import blowfish_fast as bf
from blowfish_fast.apps.cli import completions
from blowfish_fast.apps.cli.options import Json
from blowfish_fast.apps.cli.printing import console, escape_control, show, spinner

if TYPE_CHECKING:
    from blowfish_fast.apps.cli.explanations import Certainty, Section
    from blowfish_fast.apps.cli.parsing.job import Job


def run_explain(
    subject: Annotated[
        str,
        typer.Argument(
            help="A job file (.toml), the file of a release, or a mechanism's name.",
            autocompletion=completions.mechanisms,
            show_default=False,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Say in plain words what a job, a release or a mechanism means. Free."""
    from blowfish_fast.apps.cli.explanations import as_plain

    path = Path(subject)
    if path.suffix.lower() == ".toml":
        facts, sections = _job(path)
    elif path.is_file() or path.suffix:
        facts, sections = _release(path)
    else:
        facts, sections = _mechanism(subject)
    if as_json:
        show({**facts, "sections": as_plain(sections)})
        return
    for section in sections:
        _show(section)


def _mechanism(name: str) -> tuple[dict[str, Any], list[Section]]:
    from blowfish_fast.apps.cli.explanations import (
        OTHER_NAMES,
        docstring_labels,
        mechanism_sections,
    )
    from blowfish_fast.mechanisms.registry import MECHANISMS

    known = OTHER_NAMES.get(name, name)
    labels = docstring_labels(known) if known in MECHANISMS else {}
    facts = {"kind": "mechanism", "name": name, "labels": labels}
    return facts, mechanism_sections(name)


def _job(path: Path) -> tuple[dict[str, Any], list[Section]]:
    from blowfish_fast.apps.cli.explanations import (
        Section,
        attack_section,
        certainties,
        limits_section,
        secret_section,
    )
    from blowfish_fast.apps.cli.parsing.job import Job
    from blowfish_fast.apps.cli.release_plan import choose_with_progress, read_facts

    job = Job.from_file(path)
    facts = read_facts(job)
    choice = choose_with_progress(facts, job)
    epsilon = choice.mechanism.epsilon
    with spinner("computing what can be learnt"):
        attack = attack_section(facts.policy, epsilon)
        sure = certainties(facts.policy, epsilon)
    columns = " x ".join(job.domain or ())
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
    about = {
        "kind": "job",
        "job": job.to_dict(),
        "epsilon": str(epsilon),
        "mechanism": choice.name,
        "expected_error": choice.error,
        "error_kind": choice.error_kind,
        "remaining": remaining,
        "certainty": _plain(sure),
    }
    return about, sections


def _cost(job: Job, epsilon: float) -> tuple[list[str], float | None]:
    sentences = [f"One release spends eps = {epsilon:g}; asking it again is free."]
    if job.ledger is None:
        sentences.append("No ledger is named: what is spent would not be recorded.")
        return sentences, None
    if not Path(job.ledger).exists():
        sentences.append(
            f"The ledger {job.ledger} is not there yet"
            + (f"; it would begin with {job.total}." if job.total else ".")
        )
        return sentences, None
    with bf.Ledger(job.ledger) as ledger:
        remaining = float(ledger.remaining)
        sentences.append(
            f"{remaining:g} of {float(ledger.epsilon):g} remains in {job.ledger}: "
            f"enough for {int(ledger.remaining / _positive(epsilon)):,} such releases."
        )
    return sentences, remaining


def _positive(epsilon: float) -> float:
    return max(epsilon, 1e-9)


def _release(path: Path) -> tuple[dict[str, Any], list[Section]]:
    from blowfish_fast.apps.cli.explanations import (
        Section,
        attack_section,
        certainties,
        exactness_section,
        half_width,
        limits_section,
        secret_section,
    )

    release = bf.Release.load(path)
    promise = release.guarantee
    policy = bf.policies.from_dict(promise.policy)
    with spinner("computing what can be learnt"):
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
    about = {
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
    return about, sections


def _recipe(release: bf.Release) -> str:
    strategy = release.details.get("strategy")
    if not isinstance(strategy, str):
        return release.mechanism
    return f"{release.mechanism} with the strategy {strategy}"


def _plain(sure: list[Certainty]) -> list[dict[str, Any]]:
    return [one._asdict() for one in sure]


def _show(section: Section) -> None:
    console.print(Text(section.heading, style="bold"))
    for sentence in section.sentences:
        console.print(Padding(Text(escape_control(sentence)), (0, 0, 0, 2)))
    if section.rows:
        names, *rows = section.rows
        table = Table(box=None, header_style="italic", pad_edge=False)
        for name in names:
            table.add_column(name, justify="right", overflow="fold")
        for row in rows:
            table.add_row(*row)
        console.print(Padding(table, (0, 0, 0, 4)))
    console.print()
