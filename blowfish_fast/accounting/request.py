"""One request to a ledger: its checks, its price, its description, its draw, its bytes.

Everything before the draw looks at public values only, except that malformed data is
refused; everything after it holds noisy values only. Prices: ``docs/proofs/zcdp.md``.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from blowfish_fast._support.machine import check_memory
from blowfish_fast._support.plug_ins import check_vouched, outside_parts
from blowfish_fast._support.validation import malformed_as, quoted
from blowfish_fast.errors import (
    BlowfishError,
    BudgetError,
    DataDependentError,
    FailedDrawError,
    InputError,
    LedgerError,
    PolicyError,
    PrivacyError,
    RandomnessError,
)
from blowfish_fast.measure.randomness import DrawKey, Randomness
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.policies import Policy
from blowfish_fast.release.file import Release
from blowfish_fast.release.release import HistogramRelease

from .composition import Currency
from .fingerprint import facts_of, question_digest
from .journal import Charge, Journal, Reservation
from .recipients import DrawSecret, Recipient
from .statements import Entry, Terms

RandomLike = int | np.random.Generator

ZIP = b"PK"
"""How the file of a histogram's release begins; k-means writes plain JSON."""

FAILED_DRAW = b'{"blowfish_fast": "failed draw"}'
"""What a ledger stores in place of an answer that could not be drawn: no reason."""

LONGEST_NAME = 200

RULES = 1
"""Which rules a charge was made by; 1: nothing around the draw tells what it was.

Charges before have none, and ``holes.find_concerns`` says which may be concerned.
"""


class RequestPart(NamedTuple):
    """A mechanism, its data, and the region of the domain where that is stated.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism.
    data : object
        The true counts.
    cells : object, optional
        The cells of the region.
    times : int, default 1
        How often its price counts.
    weighed : dict[str, object], optional
        Whether records are weighed by their age.
    """

    mechanism: Mechanism
    data: Any
    cells: Any = None
    times: int = 1
    """What one unit of price costs whoever is protected, over all rows of a series."""
    weighed: dict[str, Any] | None = None
    """What a row of a series says of its weights; None for plain counts."""


class NamedRequest(NamedTuple):
    """One of several requests that are charged in one commit.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism.
    data : object
        The true counts.
    request : str
        The name of this question.
    note : mapping, optional
        Public plain values, which the log keeps beside the charge.
    snapshot : str, optional
        A public label of the version of the data.
    vouched : bool
        Your word for parts of the question from outside the package.
    version : str, optional
        A public label of the content of the data, as for `Ledger.release`.
    """

    mechanism: Mechanism
    data: Any
    request: str
    note: Mapping[str, Any] | None = None
    snapshot: str | None = None
    vouched: bool = False
    version: str | None = None


class PendingDraw(NamedTuple):
    """A request that is charged and not drawn yet.

    Attributes
    ----------
    charge : Charge
        The charge that stands.
    parts : list[RequestPart]
        Mechanisms and their data.
    label : str
        The version of the data.
    secret : DrawSecret or None
        The key that the noise comes from, where a recipient may open it later.
    version : str or None
        The label of the content of these very data.
    """

    charge: Charge
    parts: list[RequestPart]
    label: str
    secret: DrawSecret | None
    version: str | None


class DrawnAnswers(NamedTuple):
    """What a charge has come to: answers and their files, or a failure.

    Attributes
    ----------
    answers : list of Release, optional
        One release for each part of the request; None if the draw failed.
    files : list of bytes
        What the ledger stores, one file for each part: the packed release, nothing for
        a ledger in memory, or `FAILED_DRAW` if the draw failed.
    shown : Exception, optional
        What went wrong in a seeded draw, which protects nobody. The reason why a
        secure draw failed may depend on the data, so it is dropped.
    """

    answers: list[Release] | None
    files: list[bytes]
    shown: Exception | None = None

    def published(self) -> list[Release]:
        """Return the answers; the failure, in fixed words, where there are none."""
        if self.answers is None:
            raise FailedDrawError if self.shown is None else self.shown
        return list(self.answers)


class DrawingLedger(Protocol):
    """What `settle_together` needs of a ledger: the steps of one request."""

    currency: Currency
    _journal: Journal

    @property
    def path(self) -> Path | None:
        """The file; None in memory."""

    def _cost(self, parts: list[RequestPart]) -> int: ...
    def _recipient(self) -> Recipient | None: ...
    def _draw(self, pending: PendingDraw, rng: RandomLike | None) -> DrawnAnswers: ...
    def _keep(
        self, pending: list[PendingDraw], drawn: list[DrawnAnswers], *, named: bool
    ) -> list[bool]: ...
    def _replay(self, charge: Charge) -> list[Release]: ...


def refusal(mechanism: Mechanism, policy: Policy) -> str:
    """Say why a ledger under `policy` cannot charge a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    policy : Policy
        The ledger's policy.

    Returns
    -------
    str
        The reason; empty if it can.
    """
    if mechanism.policy.implies(policy):
        return ""
    mine, theirs = policy.person_rule, mechanism.policy.person_rule
    if mine is not None and theirs is None:
        person = "" if mine.person is None else f", person={mine.person!r}"
        return (
            "the ledger protects persons with all their records, and "
            f"{mechanism.name} runs under {mechanism.policy!r}, which protects one "
            "record: a person with m records would lose m times as much. State "
            f"{mechanism.policy!r}.per_person(at_most{person})"
        )
    both = (
        f"the ledger promises {policy!r}, and {mechanism.name} runs under "
        f"{mechanism.policy!r}"
    )
    if mine != theirs and theirs is not None:
        return f"{both}: they protect different people, or count by different rules"
    return _strange_columns(mechanism.policy, policy) or (
        f"{both}, which is neither the same, nor a projection of it (policy.project), "
        "nor known to have all its edges"
    )


def _strange_columns(mine: Policy, agreed: Policy) -> str:
    """Say which columns of a release are none of the ledger's; "" if all are."""
    names, agreed_names = mine.domain.names, agreed.domain.names
    if None in names or None in agreed_names:
        return ""
    strange = [str(name) for name in names if name not in agreed_names]
    if strange:
        return (
            f"the ledger is about {', '.join(map(str, agreed_names))}; received a "
            f"release of {', '.join(strange)}. A ledger is made over all columns of "
            "its people that are released; ledger.add_columns, or `blowfish ledger "
            "amend`, adds some later"
        )
    if agreed.domain.columns_for(mine.domain) is None:
        # Each by itself, so that the message names those that differ.
        differing = [
            f"{attribute.name} has {agreed.domain.attributes[axis].describe()} in the "
            f"ledger and {attribute.describe()} in the release"
            for attribute in mine.domain.attributes
            for axis in [agreed.domain.axis(str(attribute.name))]
            if agreed.domain.attributes[axis].cells_within(attribute) is None
        ]
        return (
            f"cells of a release are those of the ledger or unions of them, and these "
            f"are neither the same nor unions: {'; '.join(differing)}"
        )
    return ""


def check_policy(mechanism: Mechanism, policy: Policy) -> None:
    """Refuse a mechanism that a ledger under `policy` cannot charge.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    policy : Policy
        The ledger's policy.

    Raises
    ------
    PolicyError
        If it cannot.
    """
    reason = refusal(mechanism, policy)
    if reason:
        raise PolicyError(f"{reason}. Nothing was charged")


def refuse_currency(mechanism: Mechanism, currency: Currency) -> str:
    """Say why a ledger in `currency` cannot charge a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    currency : Currency
        What the ledger counts.

    Returns
    -------
    str
        The reason; empty if it can.
    """
    if mechanism.budget.power <= currency.power:
        return ""
    return (
        f"the ledger counts {currency.name}, and {mechanism.name} costs "
        f"{mechanism.budget.words()}, which no {currency.name} bounds. State epsilon "
        "alone, or keep a ledger in rho: Ledger(path, rho=..., policy=...)"
    )


def price_in(mechanism: Mechanism, currency: Currency) -> Fraction:
    """Return what a mechanism costs in a currency, from public values alone.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    currency : Currency
        What the ledger counts.

    Returns
    -------
    Fraction
        The price.

    Raises
    ------
    BudgetError
        If the ledger cannot charge it.
    """
    reason = refuse_currency(mechanism, currency)
    if reason:
        raise BudgetError(f"{reason}. Nothing was charged")
    if mechanism.budget.power == currency.power:
        return mechanism.budget.amount
    return mechanism._price_in_rho()


def infeasible(mechanism: Mechanism) -> str:
    """Say which step of a release could not be carried out; "" if all can: HA5."""
    try:
        mechanism.check_feasible()
    except BlowfishError as problem:
        return str(problem)
    return ""


def check_room(parts: list[RequestPart]) -> None:
    """Fail here, before the charge, if public values alone make a release fail."""
    names = ", ".join(dict.fromkeys(part.mechanism.name for part in parts))
    cells = sum(part.mechanism._cells() for part in parts)
    what = f"{names} on {cells:,} cells, for a dry run, the draw and a copy,"
    needed = 2 * sum(part.mechanism.memory_needed() for part in parts)
    check_memory(needed, what, "nothing was charged")
    for part in parts:
        part.mechanism.check_feasible()
        with suppress(DataDependentError):
            _ = part.mechanism._dry_run


def draw_parts(
    parts: list[RequestPart],
    rng: RandomLike | None,
    secret: DrawSecret | None = None,
) -> list[Release]:
    """Draw every part, each with noise of its own.

    Parameters
    ----------
    parts : list[RequestPart]
        Mechanisms and their data.
    rng : RandomLike or None
        A seed, for experiments.
    secret : DrawSecret, optional
        The key that the noise comes from, where a recipient may open it later.

    Returns
    -------
    list[Release]
        The answers.

    Raises
    ------
    PrivacyError
        If an answer spent more than was granted; it is dropped.
    """
    source: RandomLike | DrawKey | None = rng
    if len(parts) > 1 and rng is not None:
        source = np.random.default_rng(rng)
    answers = []
    for number, part in enumerate(parts):
        if secret is not None:
            source = DrawKey(secret.part(number))
        mechanism = part.mechanism
        counts = mechanism._counts(part.data)
        answer = mechanism._drawn(counts, Randomness(source))
        overspent = answer.guarantee.budget > mechanism.budget
        if overspent or answer.private != (rng is None):
            raise PrivacyError(
                f"{answer.mechanism} spent {answer.guarantee.spent} where "
                f"{float(mechanism.budget):g} was granted, or drew other noise than "
                "asked; its answer was dropped"
            )
        answers.append(_stated_in_full(answer, part))
    return answers


def _stated_in_full(answer: Release, part: RequestPart) -> Release:
    """Return a row of a series with the price of the whole series in its promise.

    One row by itself would show only what one unit of its weights costs.
    """
    if part.times == 1 and part.weighed is None:
        return answer
    assert isinstance(answer, HistogramRelease), "rows of a series are histograms"
    promise = answer.guarantee
    full = replace(promise, budget=promise.budget * part.times)
    details = {**answer.details, **(part.weighed or {})}
    return replace(answer, guarantee=full, details=details)


def measures_once(part: RequestPart) -> bool:
    """Return whether a recipe makes one measurement, and nothing before or after it."""
    try:
        outcome = part.mechanism._dry_run
    except DataDependentError:
        return False
    return len(outcome.measurements) == 1 and outcome.stacked is None


def is_public(part: RequestPart) -> bool:
    """Return whether no edge moves the one measurement of a recipe: it is free."""
    try:
        outcome = part.mechanism._dry_run
    except DataDependentError:
        return False
    if outcome.interval_scope != "noise" or len(outcome.measurements) != 1:
        return False
    return not outcome.measurements[0].scales.measured.any()


def describe_parts(parts: list[RequestPart], together: str | None) -> dict[str, Any]:
    """Describe a request for the log, without a word about its data.

    Parameters
    ----------
    parts : list[RequestPart]
        Mechanisms and their data.
    together : str or None
        Why the parts cost no more than the largest; None where they are one.

    Returns
    -------
    dict[str, object]
        Plain data.
    """
    alone = together is None and len(parts) == 1 and parts[0].cells is None
    facts = facts_of(parts[0].mechanism) if alone else {}
    if "request" not in facts:
        asked = [(part.mechanism, part.cells) for part in parts]
        outside = [outside_parts(part.mechanism) for part in parts]
        facts["request"] = {
            "fingerprint": question_digest(together, asked),
            "rules": RULES,
            "together": together,
            "parts": [
                {
                    "mechanism": part.mechanism.name,
                    **part.mechanism.budget.to_dict(),
                    "policy": part.mechanism.policy.describe(),
                    **_columns_of(part.mechanism.policy),
                    **({"vouched": strange} if strange else {}),
                }
                # What was defined outside the package, which a curator vouched for.
                for part, strange in zip(parts, outside, strict=True)
            ],
        }
    return dict(facts["request"])


def _columns_of(policy: Policy) -> dict[str, list[str]]:
    """Return which columns a release shows, where its policy says so.

    Bins of a policy's own are no columns: they may show any of their parent's.
    """
    names = policy.domain.names
    if policy.buckets is not None or None in names:
        return {}
    return {"columns": [str(name) for name in names]}


def people_of(parts: list[RequestPart], together: str | None) -> str | None:
    """Return the column that names the people of a request, where one is stated.

    Parameters
    ----------
    parts : list[RequestPart]
        Mechanisms and their data.
    together : str or None
        Why the parts cost no more than the largest.

    Returns
    -------
    str or None
        The name of the column, or None.

    Raises
    ------
    PolicyError
        If parts name different people, or chose their records anew.
    """
    bounds = [getattr(part_or_bound.data, "bound", None) for part_or_bound in parts]
    named = {
        part_or_bound.person
        for part_or_bound in bounds
        if part_or_bound is not None and part_or_bound.person is not None
    }
    if len(named) > 1:
        raise PolicyError(
            f"one request is about one kind of people; received {sorted(named)}. "
            "Nothing was charged"
        )
    persons = parts[0].mechanism.policy.person_rule is not None
    if persons and together == "regions":
        choices = {
            None if part_or_bound is None else part_or_bound.choice
            for part_or_bound in bounds
        }
        if len(choices) > 1:
            raise PolicyError(
                "the records of a person were chosen anew for each region, so she may "
                "be in all of them and their costs add up. Bound her records once and "
                "take people.part(cells) for each region. Nothing was charged"
            )
    return next(iter(named), None)


def check_same(charge: Charge, content: dict[str, Any], currency: Currency) -> None:
    """Refuse a request that was charged for another question.

    Parameters
    ----------
    charge : Charge
        The charge that stands.
    content : dict[str, object]
        What is asked now.
    currency : Currency
        What the ledger counts.

    Raises
    ------
    LedgerError
        If it was another question.
    """
    if charge.content.get("fingerprint") != content["fingerprint"]:
        raise LedgerError(
            f"the request {charge.request!r} was made for another question "
            f"({Entry.of(charge).mechanism}, {currency.words(charge.cost)}); a "
            "request stands for one mechanism with its parameters. Choose another name"
        )


def as_place(path: Any) -> Path | None:
    """Read where a ledger is kept; None is memory."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            "a ledger is kept in a file, Ledger(path, epsilon=1.0, policy=...), or in "
            "memory, Ledger(epsilon=1.0, policy=...); received "
            f"{quoted(path)} as the path"
        )
    try:
        place = Path(os.path.abspath(os.fspath(path)))
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            place.lstat()
    except (OSError, TypeError, ValueError) as problem:
        raise InputError(
            f"no file can be named {quoted(path)} ({type(problem).__name__})",
            way_out="Give the path of a ledger's file",
        ) from None
    return place


def read_named(requests: Any) -> list[NamedRequest]:
    """Read several requests that are charged together, and check who vouches.

    Parameters
    ----------
    requests : sequence of NamedRequest or tuple
        At least one, each under a name of its own.

    Returns
    -------
    list[NamedRequest]
        The requests, whose mechanisms are mechanisms of the package or vouched for.

    Raises
    ------
    InputError
        If they are none, or two have one name.
    """
    rule = "several requests are a list of (mechanism, data, name), at least one"
    with malformed_as(InputError, rule):
        asked = [NamedRequest(*request) for request in requests]
    if not asked:
        raise InputError(rule, received=quoted(requests))
    for request in asked:
        check_mechanism(request.mechanism)
    names = [as_name(request.request, "a request") for request in asked]
    if len(set(names)) < len(names):
        raise InputError(
            "requests that are charged together have different names",
            received=quoted(names),
            way_out="Name each question once. Nothing was charged",
        )
    # Each mechanism once with each kind of data: walking over one takes a while.
    different = {
        (id(request.mechanism), type(request.data), request.vouched): request
        for request in asked
    }
    for request in different.values():
        check_vouched([request.mechanism], vouched=request.vouched, data=request.data)
    return asked


def check_mechanism(mechanism: Any) -> None:
    """Refuse what is no mechanism."""
    if not isinstance(mechanism, Mechanism):
        raise InputError(
            f"a ledger releases mechanisms, such as Laplace(...); received "
            f"{quoted(mechanism)}"
        )


def check_seed(rng: RandomLike | None, *, on_disk: bool) -> None:
    """Refuse seeds where releases are real, and seeds that are none.

    Parameters
    ----------
    rng : RandomLike or None
        The seed; None for secure noise.
    on_disk : bool
        Whether the ledger is on disk, and releases are real.

    Raises
    ------
    RandomnessError
        If a seed is given to a ledger on disk.
    """
    if rng is None:
        return
    if on_disk:
        raise RandomnessError(
            "a ledger on disk keeps real releases, whose noise must be secret; "
            f"received the seed {rng!r}. Leave rng out, or experiment with "
            "Ledger(...). Nothing was charged"
        )
    if not isinstance(rng, np.random.Generator):
        from blowfish_fast.measure.randomness import Randomness

        Randomness(rng)


def as_request(request: Any) -> str:
    """Read the name of a request, or make one up."""
    return uuid.uuid4().hex if request is None else as_name(request, "a request")


def as_label(snapshot: Any) -> str:
    """Read the label of a version of the data; the time, to the second, without one."""
    if snapshot is None:
        return datetime.now(UTC).isoformat(timespec="seconds")
    return as_name(snapshot, "a snapshot")


def as_name(name: Any, what: str) -> str:
    """Read a name: a short text on one line, without control characters.

    Parameters
    ----------
    name : str
        What the caller gave.
    what : str
        What is named, for the message.

    Returns
    -------
    str
        The name.

    Raises
    ------
    InputError
        If it is something else.
    """
    short = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME
    # Names are listed on the screens of others, and could rewrite what these read.
    if not short or not name.isprintable():
        raise InputError(
            f"{what} is named by a text of 1 to {LONGEST_NAME} printable characters",
            received=quoted(name),
        )
    return str(name)


def say_version(answer: Release, label: str, version: str | None = None) -> None:
    """Note in an answer that was drawn just now which version of the data it is of.

    Parameters
    ----------
    answer : Release
        The answer.
    label : str
        The snapshot.
    version : str, optional
        The label of their content; None where nobody knows it.
    """
    content = {} if version is None else {"version": version}
    details = MappingProxyType({**answer.details, "as_of": label, **content})
    object.__setattr__(answer, "details", details)


def read_release(answer: bytes) -> Any:
    """Read the bytes of a release file, or of a certificate, also without a file.

    Raises
    ------
    FailedDrawError
        If the outcome that was stored is a failure: it stays one.
    """
    if answer == FAILED_DRAW:
        raise FailedDrawError
    return Release.from_bytes(answer)


def described_request(
    parts: list[RequestPart],
    together: str | None,
    note: Mapping[str, Any] | None,
    snapshot: str | None,
) -> dict[str, Any]:
    """Return what the log will say of a request, without a word about its data.

    Parameters
    ----------
    parts : list[RequestPart]
        Mechanisms and their data.
    together : str or None
        Why the parts cost no more than the largest; None where they are one.
    note : mapping or None
        Public plain values, which the log keeps beside the charge.
    snapshot : str or None
        A public label of the version of the data.

    Returns
    -------
    dict[str, object]
        Plain data.

    Raises
    ------
    InputError
        If the note is no plain data.
    """
    content = describe_parts(parts, together)
    content["snapshot"] = as_label(snapshot)
    if note is not None:
        with malformed_as(InputError, "a note is a mapping of plain values"):
            content["note"] = dict(note)
            json.dumps(content["note"], sort_keys=True)
    return content


def new_draw_key(
    name: str, parts: list[RequestPart], label: str
) -> tuple[DrawSecret, dict[str, Any]]:
    """Return the key of a draw that may be opened later, and the commitment to it.

    A new key for every attempt: the same noise on data that changed meanwhile would
    publish the exact difference.

    Parameters
    ----------
    name : str
        The name of the request.
    parts : list[RequestPart]
        Mechanisms and their data.
    label : str
        The version of the data.

    Returns
    -------
    tuple
        The key, and what the ledger keeps of it.
    """
    secret = DrawSecret.new(name)
    committed = {
        "sha256": secret.commitment,
        "measured_once": [measures_once(part) for part in parts],
        "snapshot": label,
    }
    return secret, committed


def settle_together(
    ledger: DrawingLedger,
    requests: list[NamedRequest],
    terms: Terms,
    rng: RandomLike | None,
    analyst: str | None,
) -> list[Release]:
    """Check all, reserve all, draw all, store all, return (Lemmas CO5 and HA4).

    What is checked for one request is checked here for each, in the same order;
    whatever refuses one of them refuses all, before the charge.

    Parameters
    ----------
    ledger : Ledger
        What pays.
    requests : list[NamedRequest]
        Different names, of mechanisms that the policy in force admits.
    terms : Terms
        What they were judged by.
    rng : RandomLike or None
        A seed, for experiments.
    analyst : str or None
        Whose allotment pays too.

    Returns
    -------
    list[Release]
        The answers, in the order of the requests.

    Raises
    ------
    FailedDrawError
        If one could not be drawn; all others are stored.
    """
    check_seed(rng, on_disk=ledger.path is not None)
    # One stream for all: the same seed for each would draw the same noise.
    source = None if rng is None else np.random.default_rng(rng)
    contents, parts = dict[str, dict[str, Any]](), dict[str, list[RequestPart]]()
    charges = ledger._journal.find_all([request.request for request in requests])
    for request in requests:
        name = request.request
        asked = [RequestPart(request.mechanism, request.data)]
        content = described_request(asked, None, request.note, request.snapshot)
        if request.version is not None:
            content["version"] = as_name(request.version, "a version")
        if name in charges:
            check_same(charges[name], content, ledger.currency)
        if name not in charges or charges[name].state == "reserved":
            contents[name], parts[name] = content, asked
    drawn = dict[str, DrawnAnswers]()
    if parts:
        check_room([part for asked in parts.values() for part in asked])
        costs = {name: ledger._cost(asked) for name, asked in parts.items()}
        due = sum(cost for name, cost in costs.items() if name not in charges)
        # First: whether something can be paid never depends on the data.
        ledger._journal.check_affordable(due, analyst)
        recipient = ledger._recipient()
        reservations, secrets = list[Reservation](), dict[str, DrawSecret]()
        for name, asked in parts.items():
            for part in asked:
                part.mechanism._counts(part.data)
            people, content = people_of(asked, None), contents[name]
            if people is not None:
                content["person"] = people
            committed = None
            if recipient is not None:
                label = content["snapshot"]
                secrets[name], committed = new_draw_key(name, asked, label)
            terms_and_payer = (terms.entry, content, analyst, committed)
            reservations.append(Reservation(name, costs[name], *terms_and_payer))
        for charge in ledger._journal.reserve_together(reservations):
            check_same(charge, contents[charge.request], ledger.currency)
            charges[charge.request] = charge
        pending = [
            PendingDraw(
                charges[name],
                asked,
                contents[name]["snapshot"],
                secrets.get(name),
                contents[name].get("version"),
            )
            for name, asked in parts.items()
            if charges[name].state == "reserved"
        ]
        drawn = _draw_together(ledger, pending, source, recipient)
    # What was stored before, or by a faster attempt, is the outcome of its charge.
    answers = [
        drawn[request.request].published()
        if request.request in drawn
        else ledger._replay(charges[request.request])
        for request in requests
    ]
    return [answer for (answer,) in answers]


def _draw_together(
    ledger: DrawingLedger,
    pending: list[PendingDraw],
    rng: np.random.Generator | None,
    recipient: Recipient | None,
) -> dict[str, DrawnAnswers]:
    """Draw what is charged and store it; leave out where others were faster."""
    try:
        for waiting in pending:
            if recipient is not None and waiting.secret is not None:
                recipient.seal(waiting.secret, waiting.charge.request)
        # From here to the store nobody is told anything.
        drawn = [ledger._draw(waiting, rng) for waiting in pending]
        first = ledger._keep(pending, drawn, named=True)
    except BaseException as problem:
        problem.add_note(
            f"{len(pending)} requests are charged and no answer has left; the same "
            "questions under the same names finish under these charges"
        )
        raise
    return {
        waiting.charge.request: answers
        for waiting, answers, stored in zip(pending, drawn, first, strict=True)
        if stored
    }
