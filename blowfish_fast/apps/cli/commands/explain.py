"""``blowfish explain``: what a job, a release or a mechanism means, in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

import blowfish_fast as bf
from blowfish_fast._support.compiler_watch import COMPILER, SHORT_FILE, is_short
from blowfish_fast.apps.cli.options import (
    DEFAULT_WORKLOAD,
    Json,
    look_here_for,
    offer_mechanisms,
)
from blowfish_fast.apps.cli.printing import (
    console,
    escape_control,
    show,
    show_table,
    spinner,
)

if TYPE_CHECKING:
    from blowfish_fast.apps.cli.explanations import Section
    from blowfish_fast.apps.cli.parsing.job import Job
    from blowfish_fast.mechanisms.base import Mechanism


def run_explain(
    subject: Annotated[
        str,
        typer.Argument(
            help="A job file (.toml), the file of a release, or a mechanism's name.",
            autocompletion=offer_mechanisms,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Say in plain words what a job, a release or a mechanism means. Free."""
    from blowfish_fast.apps.cli import explanations
    from blowfish_fast.apps.cli.files.outputs import read_release

    path = Path(subject)
    if path.suffix.lower() == ".toml":
        facts, sections = _job(path)
    elif path.is_file() or (path.suffix and ":" not in subject):
        COMPILER.spare(is_short(path, SHORT_FILE))
        release = read_release(path)
        with spinner("computing what can be learnt"):
            facts, sections = explanations.explain_release(release, subject)
    else:
        look_here_for([subject])
        facts, sections = explanations.explain_mechanism(subject)
    if as_json:
        show({**facts, "sections": [section.to_dict() for section in sections]})
        return
    for section in sections:
        _show(section)


def _job(path: Path) -> tuple[dict[str, Any], list[Section]]:
    """Return what a job means, as data and as text, from public values alone.

    The mechanism is planned as the job would plan it; the data are not read. The
    sections are what is counted, what is secret, what an attacker may learn, the cost,
    the error, and what is not promised.
    """
    from blowfish_fast.apps.cli import explanations as say
    from blowfish_fast.apps.cli.mechanism_choice import choose_with_progress
    from blowfish_fast.apps.cli.parsing.job import Job
    from blowfish_fast.apps.cli.release_job import read_facts

    job = Job.from_file(path)
    facts = read_facts(job)
    choice = choose_with_progress(facts, job, short=True)
    budget = choice.mechanism.budget
    with spinner("computing what can be learnt"):
        attack, sure = say.explain_attack(facts.policy, budget)
    columns = " x ".join(job.domain or ())
    released = [
        f"Counts over {facts.domain.size:,} cells ({columns}), from "
        f"{job.shown_data or 'data that is not stated yet'}.",
        f"Made for {facts.workload.queries:,} queries "
        f"({job.workload or DEFAULT_WORKLOAD}); others can be asked too, and may be "
        "less exact.",
    ]
    if facts.extra_cells:
        released.append(
            f"{', '.join(facts.extra_cells)}: cells of their own, as secret as any "
            "value."
        )
    cost, remaining = _cost(job, choice.mechanism)
    exact = [f"Error: {choice.error_sentence}.", *choice.because]
    sections = [
        say.Section(f"The job {path}", released),
        say.secret_section(facts.policy, budget),
        attack,
        say.Section("What it costs", cost),
        say.Section("How exact it will be", exact),
        say.limits_section(facts.policy, budget),
    ]
    about = {
        "kind": "job",
        "job": job.to_dict(),
        **budget.to_dict(),
        "mechanism": choice.name,
        "expected_error": choice.error,
        "error_kind": choice.error_kind,
        "remaining": remaining,
        "certainty": sure,
    }
    return about, sections


def _cost(job: Job, mechanism: Mechanism) -> tuple[list[str], float | None]:
    """Return sentences on what a release costs, and what remains in its ledger.

    What remains is None without a ledger, or where the ledger is not there yet.
    """
    spent = mechanism.budget.in_short()
    sentences = [f"One release spends {spent}; asking it again is free."]
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
        weighed = ledger.preview(mechanism)
        sentences.append(
            f"{remaining:g} of {float(ledger.budget):g} remains in {job.ledger}"
            # What is free leaves nothing to divide by.
            + (
                f": enough for {int(ledger.remaining / weighed.cost):,} such releases."
                if weighed.cost
                else "."
            )
        )
    return sentences, remaining


def _show(section: Section) -> None:
    """Print a heading, its sentences below it, indented, and its table."""
    console.print(Text(section.heading, style="bold"))
    for sentence in section.sentences:
        console.print(Padding(Text(escape_control(sentence)), (0, 0, 0, 2)))
    if section.rows:
        names, *rows = (list(row) for row in section.rows)
        show_table(names, rows)
    console.print()
