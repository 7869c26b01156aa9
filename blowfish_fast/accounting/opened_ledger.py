"""A ledger opened by its recipient: whether the noise was drawn as the ledger says.

    what the auditor holds           what is checked of every answer
    ledger, file, private key        it names a key that was committed to for its
                                     request, which no other draw has
    and it measures once             its rows less the noise of that key are the rows of
                                     whole counts, none below 0
    and the question and its data    it is drawn again, and every number compared

``docs/proofs/opened_ledger.md`` says what each of them shows, and what it does not.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.errors import BlowfishError, InputError
from blowfish_fast.measure import handle
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.randomness import DrawKey, Randomness
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.release.certificates import Certificate
from blowfish_fast.release.file import Release

from .journal import Charge
from .recipients import DrawSecret, OpenedKeys, commitment_of
from .request import (
    FAILED_DRAW,
    ZIP,
    RequestPart,
    check_same,
    describe_parts,
    draw_parts,
    read_release,
    say_version,
)

if TYPE_CHECKING:
    from .ledger import Ledger

MOST_NAMED = 3
"""Differences of one answer that are named; of the others only the number is."""

OWN = ("identity", "version")
"""Fields in which two files of one draw differ: a random name of the file, and the
version of the package that wrote it. They are not compared."""

Checked = Literal["key", "rows", "data"]


class OpenedAnswer(NamedTuple):
    """What was found of one stored answer.

    `checked` says how far: its "key" alone, its "rows" less their noise, or everything
    against the "data". `problems` are sentences; none if all is as it was promised.

    Parameters
    ----------
    request : str
        The request that was answered.
    mechanism : str
        The mechanism that answered it.
    checked : {"key", "rows", "data"}
        How far it was checked.
    problems : tuple[str, ...]
        What was found, in sentences.

    Examples
    --------
    >>> OpenedAnswer("March", "laplace", "data", ()).passed
    True
    """

    request: str
    mechanism: str
    checked: Checked
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


def verify_opened(
    ledger: Ledger,
    file: str | os.PathLike[str],
    private: str | os.PathLike[str],
    questions: Mapping[str, Any] | None = None,
) -> list[OpenedAnswer]:
    """Check that the noise of every stored answer was drawn as the ledger says.

    Parameters
    ----------
    ledger : Ledger
        Its chain is verified first.
    file : path
        The recipient's file, the ledger's name with ``.keys``.
    private : path
        The file of the private key.
    questions : mapping, optional
        By request, the mechanism and the data: ``{"March": (mechanism, counts)}``. For
        parts released together, a list of such, with their cells where regions are
        disjoint; `Series.questions` and `Explorer.drawn_again` return what they take.
        These answers are drawn again, and every number is compared.

    Returns
    -------
    list of OpenedAnswer
        One for each answer, oldest first, from the first commitment on. Answers
        before it were drawn when no auditor was named, and are left out.

    Raises
    ------
    LedgerError
        If the ledger itself is damaged.
    InputError
        If the file or the key cannot be read, or a question has no answer here.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import blowfish_fast as bf
    >>> folder = Path(tempfile.mkdtemp())
    >>> private, public = folder / "private.pem", folder / "public.pem"
    >>> bf.accounting.make_recipient_keys(private, public)
    >>> policy = bf.policies.Full(bf.Domain(4))
    >>> study = folder / "study.ledger"
    >>> ledger = bf.Ledger(study, epsilon=1, policy=policy, auditor=public)
    >>> asked = bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=0.5)
    >>> release = ledger.release(asked, [3, 0, 2, 5], request="March")
    >>> keys = folder / "study.ledger.keys"
    >>> question = {"March": (asked, [3, 0, 2, 5])}
    >>> (found,) = verify_opened(ledger, keys, private, question)
    >>> found.checked, found.passed
    ('data', True)
    """
    ledger.verify()
    keys = OpenedKeys(file, private)
    asked = dict(questions or {})
    journal = ledger._journal
    drawn_under = journal.drawn_under()
    charges = {
        charge.request: charge
        for charge in journal.history()
        # What was read from stored answers has no noise of its own.
        if charge.state == "stored" and "reads" not in charge.content
    }
    unknown = [name for name in asked if name not in charges]
    if unknown:
        raise InputError(
            "questions are those of stored answers",
            received=", ".join(map(repr, unknown)),
            way_out="`ledger.history()` names the requests",
        )
    answers: list[OpenedAnswer] = []
    used: set[str] = set()
    for request, commitment in drawn_under.items():
        if request not in charges or (commitment is None and not answers):
            continue
        charge = charges[request]
        mechanism = str(charge.content["parts"][0]["mechanism"])
        secret, problem = _secret_of(ledger, charge, commitment, keys, used)
        if secret is None:
            answers.append(OpenedAnswer(request, mechanism, "key", (problem,)))
            continue
        files = journal.answers(request)
        checked: Checked = "key"
        problems: list[str] = []
        if request in asked:
            checked = "data"
            problems = list(
                _against_data(ledger, charge, secret, files, asked[request])
            )
        else:
            committed = _committed(ledger, request, secret.commitment)
            parts = zip(files, committed["measured_once"], strict=True)
            for number, (stored, measured_once) in enumerate(parts):
                if not measured_once or stored == FAILED_DRAW:
                    continue
                answer = read_release(stored)
                if isinstance(answer, Release) and not isinstance(answer, Certificate):
                    of_noise = _against_noise(answer, secret.part(number))
                    if of_noise is not None:
                        checked = "rows"
                        problems += of_noise
        answers.append(OpenedAnswer(request, mechanism, checked, tuple(problems)))
    return answers


def stored_requests(ledger: Ledger, mechanism: Mechanism) -> list[str]:
    """Return under which names the answers to one question are stored; no epochs.

    Parameters
    ----------
    ledger : Ledger
        Where they are stored.
    mechanism : Mechanism
        The question, with all its parameters.

    Returns
    -------
    list[str]
        The names, oldest first.
    """
    asked = describe_parts([RequestPart(mechanism, None)], None)["fingerprint"]
    return [
        charge.request
        for charge in ledger._journal.history()
        if charge.state == "stored"
        and charge.content.get("fingerprint") == asked
        and "series" not in charge.content
    ]


def _committed(ledger: Ledger, request: str, commitment: str | None) -> dict[str, Any]:
    for committed in ledger._journal.commitments(request):
        if committed["sha256"] == commitment:
            return committed
    return {}


def _secret_of(
    ledger: Ledger,
    charge: Charge,
    commitment: str | None,
    keys: OpenedKeys,
    used: set[str],
) -> tuple[DrawSecret | None, str]:
    """Return the key of an answer, or say what is wrong with it: Lemma OP2."""
    if commitment is None:
        return None, "the answer names no key, and an auditor had been named before"
    if not _committed(ledger, charge.request, commitment):
        return None, "the answer names a key that was not committed to for its request"
    if commitment in used:
        return None, "two answers were drawn with one key"
    used.add(commitment)
    if commitment not in keys:
        return None, "the recipient's file holds no key for the answer"
    key = keys.open(commitment)
    if key is None:
        return None, "the key of the answer was not sealed for this recipient"
    if commitment_of(key, charge.request) != commitment:
        return None, "the sealed key is not the one that was committed to"
    return DrawSecret(key, commitment), ""


def _against_data(
    ledger: Ledger, charge: Charge, secret: DrawSecret, files: list[bytes], asked: Any
) -> Iterator[str]:
    """Draw an answer again and compare every number: Lemma OP3."""
    together = charge.content.get("together")
    questions = asked if isinstance(asked, list) else [asked]
    try:
        parts = [RequestPart(*part) for part in questions]
        check_same(charge, describe_parts(parts, together), ledger.currency)
    except (TypeError, AttributeError):
        raise InputError(
            "a question is (mechanism, data), or a list of such",
            received=f"{type(asked).__name__} for {charge.request!r}",
        ) from None
    failed = [content == FAILED_DRAW for content in files]
    try:
        answers = draw_parts(parts, None, secret)
    except BlowfishError as problem:
        if not all(failed):
            yield f"it cannot be drawn from these data: {problem}"
        return
    # A later attempt under the same charge states its own version of the data.
    committed = _committed(ledger, charge.request, secret.commitment)
    label = committed.get("snapshot", charge.content["snapshot"])
    for number, (answer, stored) in enumerate(zip(answers, files, strict=True)):
        say_version(answer, label)
        where = f"part {number}, " if len(files) > 1 else ""
        differences = list(_differences(_plain(stored), _plain(answer.to_bytes()), ""))
        yield from (f"{where}{difference}" for difference in differences[:MOST_NAMED])
        if len(differences) > MOST_NAMED:
            yield f"{where}and {len(differences) - MOST_NAMED} more differ"


def _plain(content: bytes) -> Any:
    """Return the file of an answer as plain data, with arrays where they stand."""
    if not content.startswith(ZIP):
        plain = json.loads(content)
        arrays: dict[str, AnyArray] = {}
    else:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            arrays = {
                name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)))
                for name in names
                if name.endswith(".npy")
            }
            (text,) = (name for name in names if name.endswith(".json"))
            plain = json.loads(archive.read(text))
    for name in OWN:
        plain.pop(name, None)
    # Which content the data had is the word of whoever handed them over.
    plain.get("details", {}).pop("version", None)
    return _with_arrays(plain, arrays)


def _with_arrays(plain: Any, arrays: dict[str, AnyArray]) -> Any:
    if isinstance(plain, dict):
        if plain.keys() == {"array"} and plain["array"] in arrays:
            return arrays[plain["array"]].tolist()
        return {name: _with_arrays(value, arrays) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_with_arrays(value, arrays) for value in plain]
    return plain


def _differences(stored: Any, drawn: Any, place: str) -> Iterator[str]:
    """Yield where the stored answer is another than the one that was drawn again."""
    if isinstance(stored, dict) and isinstance(drawn, dict):
        for name in sorted({*stored, *drawn}):
            inside = f"{place}.{name}" if place else name
            yield from _differences(stored.get(name), drawn.get(name), inside)
    elif isinstance(stored, list) and isinstance(drawn, list):
        if len(stored) != len(drawn):
            yield f"{place} has {len(stored)} entries, and {len(drawn)} were drawn"
            return
        for number, (before, again) in enumerate(zip(stored, drawn, strict=True)):
            yield from _differences(before, again, f"{place}[{number}]")
    # NaN differs from itself: two of them are no difference.
    elif stored != drawn and not (stored != stored and drawn != drawn):
        yield f"{place} is {stored!r}, and {drawn!r} was drawn"


def _against_noise(answer: Release, key: bytes) -> list[str] | None:
    """Compare the rows of an answer that measures once with its noise: Lemma OP4.

    The noise of the key is taken off the published rows. What is left must be the rows
    of whole counts: the counts are read off, rounded, measured again with the same
    noise, and the rows must be those that were published.

    Returns what is wrong, in sentences; None if several counts have the same rows, so
    that no counts can be read off.
    """
    (measured,) = answer.measurements
    strategy, scales = measured.strategy, measured.scales
    noise = handle._draw(scales, Randomness(DrawKey(key)))
    blank = strategy.rows(np.zeros(measured.buckets.cells, dtype=np.int64))
    rows = measured.noisy - strategy.published(blank, noise, scales)
    if not _tell_apart(measured):
        return None
    counts = np.rint(measured._replace(noisy=rows).estimate()).astype(np.int64)
    again = strategy.published(strategy.rows(counts), noise, scales)
    wrong = np.flatnonzero(again.reshape(-1) != measured.noisy.reshape(-1))
    if wrong.size:
        return [
            f"row {wrong[0]}, and {wrong.size - 1} others, are no rows of whole counts "
            "with the noise of the key"
        ]
    low = np.flatnonzero(counts < 0)
    if low.size:
        return [f"cell {low[0]} would hold {counts[low[0]]} records: below 0"]
    return []


def _tell_apart(measured: Measurement) -> bool:
    """Whether rows without noise give back the count of every cell.

    Tried on random counts: whatever is lost of some counts is lost of these, too.
    """
    cells = measured.buckets.cells
    if not measured.buckets.are_single_cells:
        return False
    tried = np.random.default_rng(cells).integers(0, 1000, cells)
    blank = np.zeros(measured.scales.rates.size, dtype=np.int64)
    shown = measured.strategy.published(
        measured.strategy.rows(tried), blank, measured.scales
    )
    back = measured._replace(noisy=shown).estimate()
    return bool(np.array_equal(np.rint(back), tried))
