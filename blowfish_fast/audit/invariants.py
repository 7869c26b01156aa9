"""What must hold of every release, whatever it drew, as read from a watched run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from traceback import format_exception
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.handle import Call, Measurement, choice_epsilon
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.release.file import Release

from .grey_box import RowPrices
from .lists import undeclared_noise
from .lowering import undeclared_lowering
from .neighbours import all_edges
from .witness import Draw, Opened, Step, Testimony, replay, watch

SMALL_EPSILON = Fraction(1, 100)
TRIES = 3
MISSING_COUNTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a recipe fails with where it needs counts that are not there."""

SECRET = "what went wrong in a draw may depend on the data"
"""Words of a failure that nobody may read."""

PLAIN = (np.ndarray, np.generic, bool, int, float, str, Fraction, type(None))


class Breach(NamedTuple):
    """An invariant that does not hold, and what was found instead.

    Attributes
    ----------
    invariant : str
        The invariant.
    found : str
        What was found.
    """

    invariant: str
    found: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.found}"


def audit_invariants(mechanism: Mechanism, data: Any, *, seed: int = 0) -> list[Breach]:
    """Run a mechanism under watch and return every invariant it breaks.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    data : Histogram or array-like
        The counts.
    seed : int, default 0
        Where chance begins.

    Returns
    -------
    list[Breach]
        The breaches.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> audit_invariants(*bf.Laplace.example(line, bf.policies.Full(line), 1))
    []
    """
    breaches = audit_testimony(watch(mechanism, data, seed))
    breaches += [
        Breach("a release says whether its noise was secure", problem)
        for problem in _check_seed_marks(mechanism, data, seed)
    ]
    return breaches


def audit_testimony(testimony: Testimony) -> list[Breach]:
    """Return every invariant that a watched run breaks."""
    return [
        Breach(name, problem)
        for name, check in INVARIANTS.items()
        if (problem := check(testimony))
    ]


def audit_disclosure(mechanism: Mechanism) -> list[Breach]:
    """Look for true values in releases of large counts that nothing else equals.

    Give the mechanism a small epsilon. Noise of scale 100 is 0 once in 200 runs, so an
    array that equals the truth in each of a few runs was published, not measured.
    """
    generator = np.random.default_rng(TRIES)
    counts = generator.integers(10**5, 10**6, size=mechanism.domain.shape)
    data = Histogram(mechanism.domain, counts)
    named = [
        dict(_private_values(watch(mechanism, data, seed))) for seed in range(TRIES)
    ]
    return [
        Breach("nothing of the true data", f"{name} equals the true values")
        for name, equal in named[0].items()
        if equal and all(other.get(name, False) for other in named[1:])
    ]


def _check_charge_order(testimony: Testimony) -> str:
    """Check that every draw comes after the charge of its own step."""
    for step in testimony.steps:
        for note in step.diary:
            if isinstance(note, Call):
                break
            return f"{_name(step)} drew before it was charged"
    return ""


def _check_account(testimony: Testimony) -> str:
    spent, granted = testimony.account.spent, testimony.mechanism.budget
    charged = sum((step.charged for step in testimony.steps), granted * 0)
    if charged != spent:
        return f"steps asked for {charged} and the account holds {spent}"
    return f"spent {spent} of {granted}" if spent > granted else ""


def _check_calibration(testimony: Testimony) -> str:
    """Check that selectors get what was charged, over the policy's group size."""
    for step in testimony.selected:
        each = step.charged.over(testimony.mechanism.policy.group_size)
        granted = choice_epsilon(step.asked, each, step.policy.domain.size)
        if step.calibrated is None or step.calibrated > granted:
            return (
                f"{_name(step)} was charged {step.charged} and calibrated to "
                f"{step.calibrated}, above {granted}"
            )
    return ""


def _check_lattice(testimony: Testimony) -> str:
    """Check that measured rows are integers, and their scales too."""
    for step in (*testimony.measured, *testimony.refined):
        measurement: Measurement = step.result
        if measurement.noisy.dtype != np.int64:
            return f"{_name(step)} published rows of type {measurement.noisy.dtype}"
        if measurement.scales.rates.dtype != np.int64:
            return f"{_name(step)} has rates of type {measurement.scales.rates.dtype}"
    return ""


def _check_declared_noise(testimony: Testimony) -> str:
    """Check that rows and exactly the noise declared were published."""
    for step in testimony.measured:
        problem = _undeclared_noise(step)
        if problem:
            return f"{_name(step)} {problem}"
    for step in testimony.refined:
        problem = undeclared_lowering(step)
        if problem:
            return f"{_name(step)} {problem}"
    for step in testimony.listed:
        problem = undeclared_noise(step)
        if problem:
            return f"{_name(step)} {problem}"
    return ""


def _undeclared_noise(step: Step) -> str:
    measurement: Measurement = step.result
    scales = measurement.scales
    measured = scales.measured
    wanted = scales.rates[measured] * scales.power
    law = "laplace" if scales.power == 1 else "gaussian"
    draws = [note for note in step.diary if isinstance(note, Draw)]
    noise = np.zeros(scales.rates.size, dtype=np.int64)
    if wanted.size:
        if len(draws) != 1 or draws[0].law != law:
            return f"declared one scale for each of {wanted.size} rows and drew " + (
                f"{len(draws)} times" if len(draws) != 1 else draws[0].law
            )
        drawn = draws[0]
        rates = np.broadcast_to(np.asarray(drawn.denominators), wanted.shape)
        units = np.broadcast_to(np.asarray(drawn.numerators), wanted.shape)
        # Cross-multiplied in Python integers: unit / rate on both sides.
        same = units.astype(object) * wanted == rates.astype(object) * scales.unit
        if drawn.values.shape != wanted.shape or not np.all(same):
            return "drew noise of other scales than it declared"
        noise[measured] = drawn.values
    elif draws:
        return "drew noise though it declared none"
    rows = measurement.strategy.rows(step.counts)
    expected = measurement.strategy.published(rows, noise, scales)
    if not np.array_equal(expected, measurement.noisy):
        return "published something else than its rows with the noise drawn"
    return ""


def _check_every_row(testimony: Testimony) -> str:
    """Check that some draw changes each row that some edge moves."""
    for step in (*testimony.measured, *testimony.refined):
        measurement: Measurement = step.result
        strategy, scales = measurement.strategy, measurement.scales
        none = np.zeros(scales.rates.size, dtype=np.int64)
        prices = RowPrices(measurement)
        reached = prices.draws_to_rows()[scales.measured].any(axis=0)
        for edge in all_edges(testimony.mechanism.policy):
            start, end = (
                strategy.published(prices.rows(cell), none, scales) for cell in edge
            )
            silent = (start != end) & ~reached
            if silent.any():
                row = int(silent.argmax())
                return f"{strategy.kind} published row {row} without any noise"
    return ""


def _check_streams(testimony: Testimony) -> str:
    opened = [note for note in testimony.diary if isinstance(note, Opened)]
    repeated = len(opened) - len(set(opened))
    return f"{repeated} of {len(opened)} streams repeat another" if repeated else ""


def _check_post_processing(testimony: Testimony) -> str:
    """Check that the recipe makes the same release of what its handle gave it."""
    try:
        again = replay(testimony)
    except (BlowfishError, *MISSING_COUNTS) as problem:
        return f"fails without counts ({problem})"
    for name, value in _public_parts(testimony.outcome).items():
        if not _same(value, _public_parts(again)[name]):
            return f"{name} is different without counts"
    return ""


def _check_details(testimony: Testimony) -> str:
    for name, value in _leaves("details", testimony.outcome.details):
        if not isinstance(value, PLAIN):
            return f"{name} holds a {type(value).__name__}"
    return ""


def _check_shared_memory(testimony: Testimony) -> str:
    """Check that no array of the release is a view of the counts."""
    held = testimony.counts
    counts = held if isinstance(held, FilledCells) else (held,)
    for name, value in _leaves("outcome", _public_parts(testimony.outcome)):
        if isinstance(value, np.ndarray) and any(
            np.shares_memory(value, private) for private in counts
        ):
            return f"{name} is a view of the counts"
    return ""


INVARIANTS: dict[str, Callable[[Testimony], str]] = {
    "charged before drawn": _check_charge_order,
    "the account adds up": _check_account,
    "selectors get what was charged": _check_calibration,
    "integer lattice": _check_lattice,
    "noise as declared": _check_declared_noise,
    "noise on every row that moves": _check_every_row,
    "no stream twice": _check_streams,
    "post-processing only": _check_post_processing,
    "plain details": _check_details,
    "no view of the counts": _check_shared_memory,
}


def _check_seed_marks(mechanism: Mechanism, data: Any, seed: int) -> Iterator[str]:
    seeded = mechanism.release(data, rng=seed)
    if seeded.private or "protects nobody" not in str(seeded.guarantee):
        yield "a seeded release does not say that it protects nobody"
    secure = mechanism.release(data)
    if not secure.private:
        yield "a secure release does not say that its noise was secure"
    for release in (seeded, secure):
        if release.guarantee.budget > mechanism.budget:
            spent = release.guarantee.spent
            yield f"promised {mechanism.budget.words()}, spent {spent}"
    if _same_noise(secure, mechanism.release(data)):
        yield "two secure releases carry the same noise"


def _same_noise(first: Release, second: Release) -> bool:
    """Whether two releases agree in every noisy row; rows of 64 bits rarely do."""
    pairs = list(zip(first.measurements, second.measurements, strict=False))
    rows = sum(int(measurement.scales.measured.sum()) for measurement, _ in pairs)
    wide = any(
        measurement.scales.widths.max(initial=0.0) > 2**20 for measurement, _ in pairs
    )
    if rows < 64 and not wide:
        return False
    return all(
        np.array_equal(measurement.noisy, other.noisy) for measurement, other in pairs
    )


def _private_values(testimony: Testimony) -> Iterator[tuple[str, bool]]:
    """Name every array of the release that could equal the truth, and whether it does.

    Rows declared exact are public under the policy and left out.
    """
    for number, step in enumerate((*testimony.measured, *testimony.refined)):
        measurement: Measurement = step.result
        rows = measurement.strategy.rows(step.counts)
        if rows.shape != measurement.scales.rates.shape:
            yield f"measurement {number}", np.array_equal(measurement.noisy, rows)
            continue
        for row in np.flatnonzero(measurement.scales.measured):
            equal = bool(measurement.noisy[row] == rows[row])
            yield f"row {row} of measurement {number}", equal
    for number, step in enumerate(testimony.listed):
        true = dict(zip(*(column.tolist() for column in step.counts), strict=True))
        for key, noisy in zip(step.result.keys, step.result.noisy, strict=True):
            yield f"cell {key} of list {number}", true.get(int(key), 0) == int(noisy)
    counts = np.asarray(testimony.counts)
    noisy = any(step.result.scales.measured.any() for step in testimony.measured)
    if not noisy:
        return
    for name, value in _leaves("outcome", _public_parts(testimony.outcome)):
        if isinstance(value, np.ndarray) and value.size == counts.size:
            yield name, np.array_equal(value.reshape(-1), counts.reshape(-1))


def _public_parts(outcome: Outcome) -> dict[str, Any]:
    return {
        "estimate": outcome.estimate,
        "unfitted": outcome.unfitted,
        "details": outcome.details,
        "noisy": [
            measurement.noisy
            for measurement in (*outcome.measurements, *outcome.published)
        ],
        "listed": [] if outcome.listed is None else list(outcome.listed[:2]),
    }


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(f"{name}.{key}", part)
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            yield from _leaves(f"{name}.{number}", part)
    else:
        yield name, value


def _same(first: Any, second: Any) -> bool:
    leaves, other = dict(_leaves("", first)), dict(_leaves("", second))
    return leaves.keys() == other.keys() and all(
        np.array_equal(leaves[name], other[name])
        if isinstance(leaves[name], np.ndarray)
        else leaves[name] == other[name]
        for name in leaves
    )


def _name(step: Step) -> str:
    return str(getattr(step.asked, "kind", getattr(step.asked, "name", step.kind)))


class _BrokenOffError(Exception):
    """The draw was broken off on purpose."""


def _drawing(mechanism: Mechanism, draw: Callable[[Any, Any], Release]) -> Mechanism:
    """Return the same mechanism with another way to draw."""
    other = copy.copy(mechanism)
    other.__dict__["_drawn"] = draw
    return other


def _audit_failure(
    ledger: Any, mechanism: Mechanism, data: Any, word: dict[str, bool]
) -> Iterator[Breach]:
    """Fail in the middle of a draw: the charge stays, and the failure is its outcome.

    It may depend on the data, so nobody may learn of it more than that it failed, and
    nobody may draw again under the same charge (Lemma HA4).
    """
    draws = 0

    def break_off(counts: Any, source: Any) -> Release:
        nonlocal draws
        draws += 1
        mechanism._drawn(counts, source)
        raise _BrokenOffError(SECRET)

    failing, failures = _drawing(mechanism, break_off), []
    for _ in range(2):
        try:
            ledger.release(failing, data, request="audit", **word)
        except Exception as problem:
            failures.append(problem)
    if ledger.spent < mechanism.budget.amount:
        yield Breach("no refund", f"a failed draw left {ledger.spent}")
    if draws != 1:
        yield Breach("one draw for a charge", f"{draws} draws under one request")
    if len(failures) != 2 or repr(failures[0]) != repr(failures[1]):
        yield Breach("a failure is an outcome", f"two attempts told {failures}")
    shown = "".join(line for problem in failures for line in format_exception(problem))
    if SECRET in shown:
        yield Breach("a failure tells nothing", "it was told in which words it arose")


def audit_charges(
    open_ledger: Callable[..., Any], mechanism: Mechanism, data: Any
) -> list[Breach]:
    """Release through a new ledger in memory and return every rule that it breaks.

    The ledger is handed in, since audits and accounts do not know each other.

    Parameters
    ----------
    open_ledger : Callable[..., object]
        Makes a ledger: ``blowfish_fast.Ledger``.
    mechanism : Mechanism
        The mechanism.
    data : Histogram or array-like
        The counts.

    Returns
    -------
    list[Breach]
        The breaches.
    """
    # An audit vouches for what it examines: nothing of it is published.
    # It also hands the ledger mechanisms whose draw it watches, or breaks.
    word = {"vouched": True}
    price = mechanism.budget.amount
    breaches = []

    def ledger_of(times: Fraction | int) -> Any:
        terms = {mechanism.budget.currency: times * price}
        return open_ledger(None, policy=mechanism.policy, **terms)

    ledger, at_draws = ledger_of(2), []

    def noted(counts: Any, source: Any) -> Release:
        at_draws.append(ledger.spent)
        return mechanism._drawn(counts, source)

    ledger.release(_drawing(mechanism, noted), data, **word)
    if len(at_draws) != 1 or min(at_draws) < price:
        spent_words = f"the ledger had spent {at_draws} when it was drawn"
        breaches.append(Breach("charged before drawn", spent_words))
    breaches += _audit_failure(ledger_of(2), mechanism, data, word)
    small = ledger_of(Fraction(1, 2))
    try:
        small.release(mechanism, data, **word)
    except BlowfishError:
        if small.spent:
            spent_words = f"a refusal left {small.spent}"
            breaches.append(Breach("refusals cost nothing", spent_words))
    else:
        spent_words = f"{price} of {price / 2} was released"
        breaches.append(Breach("no more than the budget", spent_words))
    return breaches
