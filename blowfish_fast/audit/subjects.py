"""Anybody's callable, held against the promise that its author makes for it.

    first draws, a quarter     of every pair of neighbours; the pair and the four events
                               that promise most are named by them
    the other draws            of that pair alone; each event is counted in both sides
    planted                    the same callable at a larger epsilon, held against the
                               stated one: an audit that misses it is blind here

A bound above epsilon is a proof, at the stated confidence, that the promise is broken.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast import policies
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import (
    as_choice,
    as_confidence,
    as_epsilon,
    as_fraction,
    as_whole,
    quoted,
)
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError

from .black_box import Power
from .confidence import (
    TESTED,
    Evidence,
    Finding,
    clopper_pearson,
    pilot_size,
)
from .neighbours import standard_pairs
from .outputs import Event, Readings, name_events, observe

KINDS = ("counts", "records")
RELATIONS = {"add_remove": policies.AddRemove, "full": policies.Full}
"""One record is there or not; one record has another value, their number is public."""

DOUBT = 0.005
"""How often an interval of the first draws may miss on one side."""

TINY = 1e-300
"""Stands for a probability of 0, of which there is no logarithm."""
LONGEST = 80
"""Letters of a data set that a report shows."""

FEWEST_SAMPLES = 1000
"""With fewer calls no excess worth naming is seen."""
SAMPLES = 100_000
"""Calls for each of two neighbours, unless more are asked for."""
TRIALS = 5
"""How often each excess is planted."""
EXCESSES = (
    Fraction(1, 10),
    Fraction(1, 4),
    Fraction(1, 2),
    Fraction(1),
    Fraction(3),
)
"""What is planted, until it is seen every time."""


@dataclass(frozen=True)
class Subject:
    """A callable, the promise that is made for it, and neighbours to try it on.

    Parameters
    ----------
    call : callable
        Takes data and epsilon, and returns what is published. If it has a parameter
        `rng`, it receives a generator of numpy there.
    pairs : sequence of pairs
        Neighbouring data sets. Every call receives a copy of one.
    epsilon, delta : float
        The promise: P(event) <= e^epsilon Q(event) + delta, both ways.
    name : str
        What reports call it.
    relation : str
        What makes the two of a pair neighbours, in words.

    Examples
    --------
    >>> def count(data, epsilon, rng):
    ...     return len(data) + rng.geometric(1 - 2.718281828**-epsilon) - rng.geometric(
    ...         1 - 2.718281828**-epsilon
    ...     )
    >>> subject = Subject(count, [([7, 8], [7])], name="count")
    >>> bool(subject.epsilon == 1)
    True
    """

    call: Callable[..., Any]
    pairs: Sequence[tuple[Any, Any]]
    epsilon: Any = 1
    delta: Any = 0
    name: str = ""
    relation: str = "the pairs given"

    def __post_init__(self) -> None:
        if not callable(self.call):
            raise InputError(
                "a subject is a callable of data and epsilon",
                received=quoted(self.call),
                way_out="Wrap what it needs beside them in a function",
            )
        pairs = list(self.pairs)
        if not pairs or any(not _is_pair(pair) for pair in pairs):
            raise InputError(
                "a subject needs pairs of neighbouring data sets",
                received=quoted(self.pairs),
                way_out="Give [(one, other), ...], or use Subject.on",
            )
        delta = as_fraction(self.delta, "delta")
        if not 0 <= delta < 1:
            raise InputError(
                "delta lies between 0 and 1",
                received=quoted(self.delta),
                way_out="A promise of epsilon alone has delta 0",
            )
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))
        object.__setattr__(self, "delta", delta)
        named = self.name or getattr(self.call, "__name__", type(self.call).__name__)
        object.__setattr__(self, "name", named)

    @classmethod
    def on(
        cls,
        kind: str,
        call: Callable[..., Any],
        *,
        relation: str = "add_remove",
        cells: int = 3,
        epsilon: Any = 1,
        delta: Any = 0,
        name: str = "",
    ) -> Subject:
        """Return a subject with neighbours on small made-up data.

        Parameters
        ----------
        kind : {"counts", "records"}
            Whether the callable takes the counts of `cells` cells, or an array with one
            cell number for each record.
        call : callable
            Takes such data and epsilon.
        relation : {"add_remove", "full"}
            One record is there or not, or has another value.
        cells : int
            How many values a record may have.
        epsilon, delta : float
            The promise.
        name : str
            What reports call it.

        Returns
        -------
        Subject
            With a pair for every edge on five backgrounds: nothing, a plain, a step,
            teeth, a spike.

        Examples
        --------
        >>> subject = Subject.on("records", lambda data, epsilon: len(data), cells=2)
        >>> subject.pairs[0]
        (array([0]), array([], dtype=int64))
        """
        as_choice(kind, "the kind of data", KINDS)
        as_choice(relation, "the relation of neighbours", tuple(RELATIONS))
        line = Domain(as_whole(cells, "cells", least=1, most=64))
        pairs = [pair.sides for pair in standard_pairs(RELATIONS[relation](line))]
        if kind == "records":
            place = np.arange(line.size)
            pairs = [
                (np.repeat(place, first), np.repeat(place, second))
                for first, second in pairs
            ]
        relation_words = (
            "one record more or less" if relation == "add_remove" else "one changed"
        )
        words = f"{relation_words}, {kind} over {line.size} values"
        return cls(call, pairs, epsilon, delta, name, words)


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, tuple | list) and len(pair) == 2


def _short(data: Any) -> str:
    text = " ".join(repr(data).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


class SubjectReport(NamedTuple):
    """What an audit says of a subject, and how strong the audit was.

    Attributes
    ----------
    subject : Subject
        What was audited.
    finding : Finding
        The strongest event, held against the promise.
    pair : tuple of two data sets
        The neighbours between which it was seen.
    power : Power or None
        How many planted excesses were seen; None where the promise is broken, or where
        nothing was planted.

    Examples
    --------
    >>> def exact(data, epsilon):
    ...     return len(data)
    >>> report = audit_subject(Subject(exact, [([1], [])]), samples=1000)
    >>> report.passed, report.power
    (False, None)
    """

    subject: Subject
    finding: Finding
    pair: tuple[Any, Any]
    power: Power | None

    @property
    def passed(self) -> bool:
        """Whether no event exceeds the promise."""
        return self.finding.passed

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        evidence = self.finding.evidence
        return {
            "subject": self.subject.name,
            "neighbours": self.subject.relation,
            "epsilon": float(self.subject.epsilon),
            "delta": float(self.subject.delta),
            "passed": self.passed,
            "epsilon_at_least": evidence.log_ratio,
            "event": evidence.event,
            "pair": [_short(side) for side in self.pair],
            "pairs": self.finding.pairs,
            "samples": self.finding.samples,
            "power": None
            if self.power is None
            else self.power._asdict() | {"excess": float(self.power.excess)},
        }

    def statements(self) -> list[str]:
        """Return the report in sentences."""
        promise = f"epsilon = {float(self.subject.epsilon):g}"
        if self.subject.delta:
            promise += f", delta = {float(self.subject.delta):g}"
        sentences = [
            f"{self.subject.name}: promised {promise}; neighbours: "
            f"{self.subject.relation}.",
            f"{self.finding}.",
        ]
        if self.finding.evidence.event is not None:
            sentences.append(
                f"Strongest event: {self.finding.evidence.event}, between "
                f"{_short(self.pair[0])} and {_short(self.pair[1])}."
            )
        if self.power is not None:
            sentences.append(f"Power: {self.power}.")
            if self.power.share < 1:
                sentences.append(
                    "No excess that was planted is seen every time: what passed here "
                    "says little. Take more samples, or pairs that tell more."
                )
        return sentences


def audit_subject(
    subject: Subject,
    *,
    samples: int = SAMPLES,
    trials: int = TRIALS,
    confidence: float = 0.999,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> SubjectReport:
    """Look for an event that tells neighbours apart by more than was promised.

    Parameters
    ----------
    subject : Subject
        What is audited.
    samples : int
        Calls for each of the two neighbours.
    trials : int
        How often each excess is planted; 0 leaves out the power.
    confidence : float
        Of the statement that the promise is broken.
    seed : int
        Of the generators handed to subjects that take one.
    progress : callable, optional
        Is told what is done.

    Returns
    -------
    SubjectReport
        Its `passed` is False if the promise is broken. The power is left out then.

    Examples
    --------
    >>> def half_the_noise(data, epsilon, rng):
    ...     return len(data) + rng.laplace(scale=1 / (2 * epsilon))
    >>> report = audit_subject(Subject(half_the_noise, [([1], [])]), samples=4000)
    >>> report.passed
    False
    """
    as_whole(samples, "samples", least=FEWEST_SAMPLES)
    as_whole(trials, "trials", least=0)
    draws = _Draws(subject, np.random.default_rng(seed))
    tell = progress or (lambda text: None)
    confidence = as_confidence(confidence)
    pair = 0
    if len(subject.pairs) > 1:
        tell(f"{len(subject.pairs)} pairs of neighbours")
        pair = _most_telling(subject, draws, samples)
    tell(f"{samples} calls on either side")
    evidence = _evidence(subject, draws, pair, subject.epsilon, samples, confidence)
    finding = Finding(
        subject.name, subject.epsilon, evidence, samples, len(subject.pairs)
    )
    power = None
    if finding.passed and trials:
        for excess in EXCESSES:
            tell(f"an excess of {float(100 * excess):g} % planted {trials} times")
            planted = subject.epsilon * (1 + excess)
            seen = sum(
                _evidence(subject, draws, pair, planted, samples, confidence).log_ratio
                > subject.epsilon
                for _ in range(trials)
            )
            power = Power(seen, trials, samples, excess)
            if seen == trials:
                break
    return SubjectReport(subject, finding, subject.pairs[pair], power)


class _Draws:
    """Calls of a subject on copies of its data."""

    def __init__(self, subject: Subject, generator: np.random.Generator) -> None:
        self.subject = subject
        self.extra = {"rng": generator} if _takes_rng(subject.call) else {}

    def table(self, data: Any, epsilon: Fraction, size: int) -> Readings:
        """Call so many times, and sort what came back."""
        call, price = self.subject.call, float(epsilon)
        extra = self.extra
        return Readings.of(
            observe(lambda: call(copy.deepcopy(data), price, **extra), size)
        )

    def both(
        self, pair: int, epsilon: Fraction, size: int
    ) -> tuple[Readings, Readings]:
        """Call on both sides of a pair."""
        first, second = self.subject.pairs[pair]
        return self.table(first, epsilon, size), self.table(second, epsilon, size)


def _takes_rng(call: Callable[..., Any]) -> bool:
    try:
        return "rng" in inspect.signature(call).parameters
    except (TypeError, ValueError):
        # What is written in C may not say what it takes.
        return False


def _most_telling(subject: Subject, draws: _Draws, samples: int) -> int:
    """Return the pair whose first draws promise the strongest bound."""
    each = max(pilot_size(samples) // len(subject.pairs), FEWEST_SAMPLES // 4)
    reached = []
    for pair in range(len(subject.pairs)):
        tables = draws.both(pair, subject.epsilon, each)
        events = name_events(*tables)
        reached.append(_promises(events, tables, subject.delta).max())
    return int(np.argmax(reached))


def _evidence(
    subject: Subject,
    draws: _Draws,
    pair: int,
    epsilon: Fraction,
    samples: int,
    confidence: float,
) -> Evidence:
    """Name events by a quarter of the calls, and bound them by the others."""
    named = pilot_size(samples)
    pilots = draws.both(pair, epsilon, named)
    events = name_events(*pilots)
    order = np.argsort(-_promises(events, pilots, subject.delta), kind="stable")
    events = [events[place] for place in order[:TESTED]]
    counted = draws.both(pair, epsilon, samples - named)
    # Both probabilities of every event lie in their intervals at once.
    each = 1.0 - (1.0 - confidence) / (2 * len(events))
    delta = float(subject.delta)
    best = Evidence(0.0, None, len(events))
    for event in events:
        seen = [event.count(table) for table in counted]
        bounds = [
            clopper_pearson(often, table.size, each)
            for often, table in zip(seen, counted, strict=True)
        ]
        for side, opposite in ((0, 1), (1, 0)):
            low, high = bounds[side][0] - delta, bounds[opposite][1]
            bound = math.log(low / high) if low > 0 else -math.inf
            if bound > best.log_ratio:
                parts = [
                    often / table.size
                    for often, table in zip(seen, counted, strict=True)
                ]
                above = max(parts[side] - delta, 0.0)
                below = parts[opposite]
                ratio = math.log(above / below) if below else math.inf
                best = Evidence(bound, event.name, len(events), ratio)
    return best


def _promises(
    events: list[Event], pilots: tuple[Readings, Readings], delta: Fraction
) -> FloatArray:
    """Return the bound on epsilon that each event gives in the first draws.

    At a confidence of their own: a third as many draws, taken less strictly, order the
    events about as the bounds on the other draws will.
    """
    from scipy.stats import beta

    often = np.array([[event.count(table) for event in events] for table in pilots])
    sizes = np.array([[table.size] for table in pilots])
    low = np.where(often > 0, beta.ppf(DOUBT, often, sizes - often + 1), 0.0)
    high = np.where(often < sizes, beta.ppf(1 - DOUBT, often + 1, sizes - often), 1.0)
    above = np.maximum(low - float(delta), TINY)
    return np.asarray(np.log(above / high[::-1]).max(axis=0))


def find_subject(named: str) -> Any:
    """Return what ``package:callable`` names: a callable, or a `Subject`."""
    try:
        return EntryPoint(named, named, "subject").load()
    except Exception as problem:
        # What fails while somebody else's module is run may be anything.
        raise InputError(
            "a subject is a callable in a module that can be imported",
            received=f"{quoted(named)}: {type(problem).__name__}, {problem}",
            way_out="Install its package, or run the command in the folder of the file",
        ) from problem
