"""What the auditor of a ledger asks again, in the words of a job or of a server.

With the question and its data an answer is drawn again from its key, and every number
is compared (Lemma OP3). A job file says both. The ledger of an explorer keeps what was
asked in its log and needs the database alone:

    --job ages.toml        [budget] request = "March" and [data] of that moment
    --data people.duckdb   every question that was asked of the table
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from blowfish_fast._support.validation import as_share
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.opened_ledger import stored_requests
from blowfish_fast.errors import InputError
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.certifier import Certifier

from . import mechanism_choice, release_job
from .parsing.job import Job
from .series_job import parse_series


def questions_of_job(ledger: Ledger, path: Path) -> dict[str, Any]:
    """Return the questions of a job file, by their requests, with the data it names.

    Parameters
    ----------
    ledger : Ledger
        Where the answers are stored.
    path : Path
        The job file. Without a request it stands for the one stored answer to its
        question.

    Returns
    -------
    dict[str, object]
        The release and, where one was bought with it, its certificate.

    Raises
    ------
    InputError
        If the ledger has no answer, or several, to the question of the job.
    """
    job = replace(Job.from_file(path), ledger=str(ledger.path), auditor=None)
    release_job.check_complete(job)
    facts = release_job.read_facts(job)
    source = release_job.open_data(job, facts)
    mechanism = mechanism_choice.choose_with_progress(facts, job).mechanism
    if job.certify is not None:
        mechanism = mechanism.at(
            mechanism.budget * (1 - as_share(job.certify, "--certify"))
        )
    data = release_job.data_for(job, facts, source, mechanism)
    words = parse_series(job)
    if words is not None:
        series = words.series(ledger)
        terms: dict[str, Any] = dict(
            series.questions(words.epoch, mechanism, data, request=job.request)
        )
        # The row of the epoch comes first, the block that it closes after it.
        request = next(iter(terms))
    else:
        request = job.request or _request_of(ledger, mechanism, path)
        terms = {request: (mechanism, data)}
    bought = release_job.certificate_budget(job, facts, mechanism)
    certified = ledger.entry(f"{request}, certified")
    if bought is not None and certified is not None:
        release: Any = ledger.replay(request)
        label = certified.snapshot
        certifier = Certifier(release, facts.workload, snapshot=label, epsilon=bought)
        terms[certified.request] = (certifier, data)
    return terms


def _request_of(ledger: Ledger, mechanism: Mechanism, path: Path) -> str:
    """Return the request that was stored for a question, if there is exactly one."""
    stored = stored_requests(ledger, mechanism)
    if len(stored) == 1:
        return stored[0]
    raise InputError(
        f"{path} names no request, and the ledger has "
        + (f"{len(stored)} answers" if stored else "no answer")
        + " to its question",
        received=", ".join(map(repr, stored)) or mechanism.name,
        way_out='State [budget] request = "..."; `blowfish ledger history` lists them',
    )


def questions_of_tables(ledger: Ledger, database: str) -> dict[str, Any]:
    """Return every question that an explorer answered from its table.

    Parameters
    ----------
    ledger : Ledger
        The ledger of one table of an explorer.
    database : str
        Where the records are, as for `blowfish serve --database`.

    Returns
    -------
    dict[str, object]
        Mechanism and data, by request; certificates are among them.

    Raises
    ------
    InputError
        If the ledger is none of an explorer.
    """
    if "table" not in ledger.about:
        raise InputError(
            "--data is for the ledger of one table of an explorer, whose log says what "
            "was asked",
            received="a ledger that describes no table",
            way_out="State the job file of a release, --job",
        )
    from blowfish_fast.apps.explorer.exploration import Explorer

    explorer = Explorer(None, database, ledger=ledger.path)
    try:
        asked = {
            entry.request: explorer.drawn_again(entry.request)
            for entry in ledger.history()
            if entry.state == "stored"
        }
    finally:
        explorer.ledger.close()
        explorer.engine.close()
    return {name: question for name, question in asked.items() if question is not None}
