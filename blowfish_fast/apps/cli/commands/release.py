"""``blowfish release``: from a table to a private release, its table and its picture.

    public     words -> facts -> mechanism -> outputs can be written -> ledger would pay
    private    data -> counts
    charged    ledger -> release -> files

Whatever can be refused is refused before the data is read, and the rest before anything
is charged. A dry run ends where the data would be read.
"""

from __future__ import annotations

import shlex
import sys
import uuid
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from blowfish_fast._support.validation import as_epsilon
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.statements import Entry, Preview
from blowfish_fast.apps.cli.files.data_source import Source, opened_source
from blowfish_fast.apps.cli.files.demo_people import DEMO_NAME, write_demo_people
from blowfish_fast.apps.cli.files.release_outputs import Outputs
from blowfish_fast.apps.cli.parsing.job_file import EXAMPLE, Job
from blowfish_fast.apps.cli.parsing.release_plan import (
    ON_QUERIES,
    Choice,
    Facts,
    chosen_in_sight,
    drawn_error,
    listed_orders,
    memory_sentence,
    promise,
    stated_facts,
)
from blowfish_fast.apps.cli.parsing.text_forms import TextForm
from blowfish_fast.apps.cli.printing import (
    counting,
    remark,
    show,
    show_pairs,
    steps_bar,
    waiting,
)
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import (
    BudgetError,
    CountsError,
    InputError,
    LedgerError,
    PolicyError,
)
from blowfish_fast.measure.memory import check_memory
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.release.release import Release

PARTS = 100


def run_release(
    job_file: Path | None,
    flags: Mapping[str, Any],
    *,
    seed: int | None,
    overwrite: bool,
    dry_run: bool,
    as_json: bool,
) -> bool:
    """Release as stated, or say what that would mean; return whether all was written.

    Parameters
    ----------
    job_file : path or None
        A TOML file.
    flags : mapping
        Fields of a `Job` that override it.
    seed : int or None
        Makes the release an experiment, which protects nobody.
    overwrite : bool
        Whether files may be replaced.
    dry_run : bool
        Check everything, read no data, charge and write nothing.
    as_json : bool
        Print for programs.
    """
    stated = Job() if job_file is None else Job.from_file(job_file)
    job = stated.overridden(flags)
    facts = stated_facts(job)
    source = _source(job, facts)
    outputs = Outputs(job, overwrite=overwrite)
    outputs.check(facts.domain)
    _check_ledger(job, seed)
    choice = chosen_in_sight(facts, job)
    mechanism = choice.mechanism
    told: dict[str, Any] = {
        "mechanism": choice.name,
        "recipe": mechanism.name,
        "because": list(choice.because),
        "data": source.description,
        "cells": facts.domain.size,
        "queries": facts.workload.queries,
        "promise": str(promise(choice, secure=seed is None)),
        "epsilon": str(mechanism.epsilon),
        "expected_error": choice.error,
        "error": choice.error_sentence,
        "extra_cells": facts.extra_cells,
        "listed_orders": listed_orders(job.policy or "", facts.domain),
        "private": seed is None,
    }
    told["ledger"] = _preview(job, facts, mechanism)
    check_memory(
        2 * mechanism.memory_needed(), f"{choice.name}, prepared,", "nothing was read"
    )
    if dry_run:
        told |= {
            "dry_run": True,
            "memory": memory_sentence(choice),
            "files": {kind: str(path) for kind, path in outputs.named.items()},
        }
        show(told) if as_json else _show_dry_run(told)
        return True
    release, request = _released(job, facts, source, mechanism, seed)
    error = drawn_error(release, facts.workload)
    written = outputs.write(release)
    told |= {
        "dry_run": False,
        "drawn_error": error,
        "request": request,
        "remaining": _remaining(job),
        "files": written.files,
        "problems": written.problems,
    }
    show(told) if as_json else _show_release(
        told, choice, _question(facts, job, choice)
    )
    for problem in written.problems:
        remark(f"warning: {problem}")
    return not written.problems


def _source(job: Job, facts: Facts) -> Source:
    if job.data is None:
        raise InputError(
            "state the data: --data people.csv (or .parquet, .npy, .duckdb, an "
            "address), or --data demo for made-up people"
        )
    source = opened_source(
        job.data,
        table=job.data_table,
        count_column=job.count_column,
        named=any(facts.domain.names),
        form=TextForm(job.encoding, job.decimal, job.dates, job.blanks),
    )
    source.check(facts.domain)
    return source


def _check_ledger(job: Job, seed: int | None) -> None:
    if job.ledger is None:
        if job.total is not None or job.request is not None:
            raise InputError(
                "a budget and a request belong to a ledger; name its file, --ledger"
            )
        return
    if job.total is not None:
        as_epsilon(job.total, "the budget of a ledger")
    path = Path(job.ledger)
    if seed is not None:
        raise InputError(
            f"a seed makes an experiment, which no ledger pays for; received --seed "
            f"{seed}. Leave --seed or --ledger out"
        )
    if not path.exists() and job.total is None:
        raise LedgerError(
            f"there is no ledger at {path}; make one with `blowfish ledger create`, or "
            "state its whole budget here: --budget 2, in a job file total = 2.0"
        )
    if not path.exists() and not path.parent.is_dir():
        raise LedgerError(
            f"there is no folder {path.parent} for the ledger; make it first"
        )


def _opened(job: Job, facts: Facts) -> Ledger:
    """Open the ledger of a job; make it only where a budget was stated."""
    assert job.ledger is not None
    path = Path(job.ledger)
    if path.exists():
        return Ledger(path)
    return Ledger(path, epsilon=job.total, policy=facts.policy)


def _preview(job: Job, facts: Facts, mechanism: Mechanism) -> dict[str, Any] | None:
    """Return what the ledger would say; refuse what it would refuse."""
    if job.ledger is None:
        return None
    known = Path(job.ledger).exists()
    if known:
        ledger = Ledger(job.ledger)
    else:
        # In memory: a ledger of these terms, without a file.
        ledger = Ledger(None, epsilon=job.total, policy=facts.policy)
    with ledger:
        _check_total(job, ledger)
        entry = None if job.request is None else ledger.entry(job.request)
        weighed = ledger.preview(mechanism)
        _check_request(entry, weighed)
        if entry is not None and entry.state != "reserved":
            after = ledger.remaining
        elif entry is None and not weighed.accepted:
            covered = mechanism.policy.implies(ledger.policy)
            kind = BudgetError if covered else PolicyError
            way_out = (
                ""
                if covered
                else f"; `blowfish ledger status {job.ledger}` shows its policy and "
                "cells: state the same, or name another ledger"
            )
            raise kind(f"{weighed.reason}{way_out}. Nothing was charged")
        else:
            after = weighed.after if entry is None else ledger.remaining
        return {
            "file": job.ledger,
            "new": not known,
            "total": float(ledger.epsilon),
            "before": float(ledger.remaining),
            "after": float(after),
            "replayed": entry is not None and entry.state != "reserved",
        }


def _check_total(job: Job, ledger: Ledger) -> None:
    """Refuse a budget that is not the ledger's; a ledger is never enlarged."""
    if job.total is None:
        return
    with Ledger(None, epsilon=job.total, policy=ledger.policy) as stated:
        if stated.epsilon == ledger.epsilon:
            return
    raise LedgerError(
        f"the ledger {job.ledger} has a budget of {float(ledger.epsilon):g}; received "
        f"{job.total}. Leave --budget (in a job file, total) out, or state the same. "
        "Nothing was charged"
    )


def _check_request(entry: Entry | None, weighed: Preview) -> None:
    """Refuse a name that was given to another question, as far as the log shows."""
    if entry is None:
        return
    if (entry.mechanism, entry.epsilon) != (weighed.mechanism, weighed.cost):
        raise LedgerError(
            f"the request {entry.request!r} was made for another question "
            f"({entry.mechanism}, eps = {float(entry.epsilon):g}), and this is "
            f"{weighed.mechanism}, eps = {float(weighed.cost):g}; choose another name, "
            "--request. Nothing was charged"
        )


def _released(
    job: Job, facts: Facts, source: Source, mechanism: Mechanism, seed: int | None
) -> tuple[Release, str | None]:
    """Count, charge, draw; return the release and the name under which it was paid."""
    data = _counted(source, facts)
    if job.ledger is None:
        with waiting("releasing") as report:
            return mechanism.release(data, seed, progress=report), None
    request = job.request or f"release-{uuid.uuid4().hex[:12]}"
    with _opened(job, facts) as ledger:
        before = ledger.entry(request)
        try:
            with waiting("releasing") as report:
                release = ledger.release(mechanism, data, request, progress=report)
        except BaseException as problem:
            # A name that was known and is refused belongs to another question.
            refused = before is not None and isinstance(problem, LedgerError)
            if ledger.entry(request) is not None and not refused:
                problem.add_note(
                    f"Run the same command with --request {request}: it goes on under "
                    "the charge that was made."
                )
            raise
    return release, request


def _counted(source: Source, facts: Facts) -> Histogram:
    with steps_bar() as bar:
        count = counting(bar, "reading")
        count(0, PARTS, "")
        try:
            return source.histogram(
                facts.domain,
                facts.rules,
                lambda part: count(int(PARTS * part), PARTS, ""),
            )
        except CountsError as problem:
            problem.add_note("Nothing was charged")
            raise


def _remaining(job: Job) -> float | None:
    if job.ledger is None:
        return None
    with Ledger(job.ledger) as ledger:
        return float(ledger.remaining)


def _show_dry_run(told: dict[str, Any]) -> None:
    book = told["ledger"]
    pairs = [
        ("data", f"{told['data']}; its columns fit, no value was read"),
        *_mechanism_pairs(told),
        ("would spend", _spending(told)),
        ("error", told["error"]),
        ("memory", told["memory"]),
        *((f"{kind} file", path) for kind, path in told["files"].items()),
    ]
    show_pairs("Dry run: nothing was read, charged or written", pairs)
    if book is None:
        remark(_no_ledger(told))


def _show_release(told: dict[str, Any], choice: Choice, question: str) -> None:
    title = "Released" if told["private"] else "Released (an experiment: seeded)"
    if told["ledger"] is not None and told["ledger"]["replayed"]:
        title = "Written again: the release that was made before under this request"
    pairs = [
        *_mechanism_pairs(told),
        ("spent", _spending(told)),
        ("error", _error(told, choice)),
        *((kind, path) for kind, path in told["files"].items()),
    ]
    show_pairs(title, pairs)
    file = told["files"]["release"]
    show(
        f"\nAsk it, for free:  blowfish answer {file} {question}\n"
        f"Understand it:     blowfish explain {file}"
    )
    if told["ledger"] is None:
        remark(_no_ledger(told))


def _mechanism_pairs(told: dict[str, Any]) -> list[tuple[str, str]]:
    pairs = [
        ("mechanism", _called(told)),
        ("because", " ".join(told["because"])),
        ("promise", told["promise"]),
    ]
    if told["extra_cells"]:
        pairs.append(
            (
                "extra cells",
                f"{', '.join(told['extra_cells'])}: cells of their own, as secret as "
                "any value",
            )
        )
    if told["listed_orders"]:
        pairs.append(
            (
                "mind",
                f"categories of {', '.join(told['listed_orders'])} are neighbours in "
                "the order in which they are listed. Where they have no order, state "
                "full, blocks:FILE or graph:FILE for that column",
            )
        )
    return pairs


def _question(facts: Facts, job: Job, choice: Choice) -> str:
    """Return something that can be asked of the release, as an example."""
    attribute = facts.domain.attributes[0]
    if choice.name == ON_QUERIES or attribute.name is None:
        return f"--workload {shlex.quote(job.workload or '')}"
    if attribute.levels is not None:
        return f"--where {shlex.quote(f'{attribute.name}={attribute.levels[0]}')}"
    if attribute.unit is not None or attribute.cuts is None:
        return f"--by {shlex.quote(attribute.name)}"
    cuts = attribute.cuts
    low, high = cuts[len(cuts) // 4], cuts[len(cuts) // 2]
    if low == high:
        low = cuts[0]
    return f"--where {shlex.quote(f'{attribute.name}={low:.12g}:{high:.12g}')}"


def _called(told: dict[str, Any]) -> str:
    """Name the mechanism; a strategy together with the mechanism that uses it."""
    name, recipe = told["mechanism"], told["recipe"]
    if name == ON_QUERIES:
        return (
            f"{recipe}, with noise on the queries themselves: nothing else is measured"
        )
    return str(name) if name == recipe else f"{name} (a strategy of {recipe})"


def _spending(told: dict[str, Any]) -> str:
    amount = f"eps = {float(Fraction(told['epsilon'])):g}"
    book = told["ledger"]
    if book is None:
        return amount
    if book["replayed"]:
        return (
            f"nothing: this request was answered before, and "
            f"{'would get' if told['dry_run'] else 'got'} that answer again, whatever "
            f"the data holds now; new data needs a new name, --request. "
            f"{book['after']:g} of {book['total']:g} remains ({book['file']})"
        )
    after = told.get("remaining", book["after"])
    stays = "would remain" if told["dry_run"] else "remains"
    made = ", a new ledger" if book["new"] else ""
    request = f", request {told['request']}" if told.get("request") else ""
    return (
        f"{amount}; {after:g} of {book['total']:g} {stays} ({book['file']}{made}"
        f"{request})"
    )


def _error(told: dict[str, Any], choice: Choice) -> str:
    if choice.error is not None or told["drawn_error"] is None:
        return choice.error_sentence
    return (
        f"{told['drawn_error']:,.4g} records per query (root mean square) from the "
        "noise that was drawn; what merging or smoothing loses may add to it"
    )


def _no_ledger(told: dict[str, Any]) -> str:
    if not told["private"]:
        return "A seeded release protects nobody: keep it away from real data."
    return (
        "No ledger keeps count of what is spent on this data: --ledger FILE --budget "
        "TOTAL makes one."
    )


def show_example(*, as_json: bool) -> None:
    """Print a job file with comments."""
    if as_json:
        show({"example": EXAMPLE})
    else:
        sys.stdout.write(EXAMPLE)


def run_demo_data(*, overwrite: bool, as_json: bool) -> None:
    """Write made-up people and a job file for them into this folder."""
    people, job = Path(f"{DEMO_NAME}.csv"), Path(f"{DEMO_NAME}.toml")
    for path in (people, job):
        if path.exists() and not overwrite:
            raise InputError(
                f"{path} is there already; allow --overwrite, or go to another folder"
            )
    write_demo_people(people)
    job.write_text(EXAMPLE.replace("FILE", str(job)), encoding="utf-8")
    if as_json:
        show({"people": str(people), "job": str(job)})
        return
    show(
        f"{people}: 10,000 made-up people\n{job}: a release of their incomes\n\n"
        f"What it would mean:  blowfish release {job} --dry-run\n"
        f"Release:             blowfish release {job}"
    )
