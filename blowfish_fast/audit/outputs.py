"""What anybody's callable gives back, read as a form and numbers, and cut into events.

An output becomes a *form*, which can only be equal or not, and a row of numbers:

    {"n": 4.25, "who": "f"}      form ("mapping", "'n'", "number", ...), numbers (4.25,)
    an exception                 form ("raised", its class, its words), no numbers
    nan, infinity                part of the form; its number is 0

Events are sets of outputs. Those that some first draws name are:

    forms                        this exception; so many entries; a warning
    atoms                        this very number; this very row
    tails                        a number, a difference of two neighbouring ones or the
                                 sum, from some value on
    closeness                    tails of how much closer the row lies to one side
    grains                       small numbers that are, or are not, multiples of a
                                 power of two: what adding doubles leaves behind
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from collections.abc import Set as AnySet
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray

ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
"""Places in memory, which words of exceptions hold, say nothing about the data."""

FORMS = 4
"""Forms whose numbers are looked at: the most frequent ones of the first draws."""

ATOMS = 16
"""Values of a column that are tried as events, the most frequent first."""

TAILS = np.linspace(0.005, 0.995, 34)
"""Parts of the first draws at which a column is cut into tails."""

OCTAVES = 6
GRAINS = 8
"""Sizes, and places of last bits, at which doubles are cut."""

NEIGHBOURING = 64
"""Most numbers of an output whose differences are looked at too."""

EXACT = 1e6
"""Weight of a number that is always the same on one side."""

FINEST = -1100
"""Below the last bit of every double."""


class Reading(NamedTuple):
    """One output: what can only be equal or not, and the numbers in it.

    Parameters
    ----------
    form : hashable
        What can only be equal or not.
    numbers : tuple[float, ...]
        The numbers.
    """

    form: Hashable
    numbers: tuple[float, ...]


def observe(call: Callable[[], Any], times: int) -> list[Reading]:
    """Call so many times, and return what came back.

    An exception or a warning is an output too. Only what stops everybody, Ctrl-C and a
    lack of memory, is passed on.

    Parameters
    ----------
    call : callable without arguments
        What is audited, on one side's data.
    times : int
        How often it is called.

    Returns
    -------
    list of Reading
        One for each call.
    """
    outcomes = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(times):
            try:
                outcome = read_output(call())
            except (KeyboardInterrupt, MemoryError):
                raise
            except BaseException as problem:
                raised = ("raised", type(problem).__name__, words(problem))
                outcome = Reading(raised, ())
            if caught:
                categories = {
                    (warning.category.__name__, words(warning.message))
                    for warning in caught
                }
                warned = ("warned", tuple(sorted(categories)), outcome.form)
                outcome = Reading(warned, outcome.numbers)
                caught.clear()
            outcomes.append(outcome)
    return outcomes


def words(message: object) -> str:
    """Return a text without the places in memory that differ from run to run."""
    return ADDRESS.sub("0x", str(message))


def read_output(output: Any) -> Reading:
    """Return the form and the numbers of an output.

    Examples
    --------
    >>> read_output({"n": 4.25, "who": "f"}).numbers
    (4.25,)
    >>> read_output([1, float("nan")]).form
    ('list', 2, 'number', 'nan')
    """
    if type(output) is float and math.isfinite(output):
        # The most frequent output by far.
        return Reading(("number",), (output,))
    form: list[Hashable] = []
    numbers: list[float] = []
    _read(output, form, numbers)
    return Reading(tuple(form), tuple(numbers))


def _read(output: Any, form: list[Hashable], numbers: list[float]) -> None:
    if isinstance(output, bool | np.bool_ | str | bytes | None):
        form.append(repr(output))
    elif isinstance(output, int | float | complex | np.number | Fraction | Decimal):
        if isinstance(output, complex | np.complexfloating):
            _read_all((output.real, output.imag), form, numbers)
        else:
            _read_number(float(output), form, numbers)
    elif isinstance(output, Mapping):
        form.append("mapping")
        for key in sorted(output, key=repr):
            form.append(repr(key))
            _read(output[key], form, numbers)
    elif isinstance(output, AnySet):
        form.append(("set", tuple(sorted(map(repr, output)))))
    elif isinstance(output, np.ndarray):
        form.append(("array", output.shape))
        plain = output.dtype.kind in "iuf" and np.isfinite(output).all()
        if plain:
            # As _read_all does, in one step.
            form += ["number"] * output.size
            numbers += output.ravel().tolist()
        else:
            _read_all(output.ravel().tolist(), form, numbers)
    elif isinstance(output, list | tuple):
        form += [type(output).__name__, len(output)]
        _read_all(output, form, numbers)
    elif hasattr(output, "__array__"):
        form.append(type(output).__name__)
        _read(np.asarray(output), form, numbers)
    else:
        form.append(words(repr(output)))


def _read_all(
    outputs: Iterable[Any], form: list[Hashable], numbers: list[float]
) -> None:
    for output in outputs:
        _read(output, form, numbers)


def _read_number(number: float, form: list[Hashable], numbers: list[float]) -> None:
    finite = math.isfinite(number)
    form.append("number" if finite else str(number))
    numbers.append(number if finite else 0.0)


class Readings(NamedTuple):
    """Outcomes of one side: the form of each, and rows of numbers for each form.

    Parameters
    ----------
    size : int
        The number of outputs.
    rows : dict[hashable, ndarray of float64]
        By form: a row of numbers for each output.
    """

    size: int
    rows: dict[Hashable, FloatArray]

    @classmethod
    def of(cls, outcomes: list[Reading]) -> Readings:
        """Sort outcomes by their form."""
        rows: dict[Hashable, list[tuple[float, ...]]] = {}
        for outcome in outcomes:
            rows.setdefault(outcome.form, []).append(outcome.numbers)
        return cls(
            len(outcomes),
            {form: np.array(some, dtype=np.float64) for form, some in rows.items()},
        )

    def numbers(self, form: Hashable, width: int) -> FloatArray:
        """Return the numbers of all outputs of a form, which may not have been seen.

        Parameters
        ----------
        form : hashable
            The form.
        width : int
            Numbers in an output of this form, for the empty table.

        Returns
        -------
        (outputs, width) float64
            A row for each output, in the order of the calls.
        """
        rows = self.rows.get(form)
        return np.empty((0, width)) if rows is None else rows


class Event(NamedTuple):
    """A set of outputs: some forms, or what holds of the numbers of one form.

    Parameters
    ----------
    name : str
        What it is called in a report.
    forms : tuple[hashable, ...]
        The forms of its outputs.
    holds : Callable, optional
        Marks the rows of numbers that belong to it; all by default.
    """

    name: str
    forms: tuple[Hashable, ...]
    holds: Callable[[FloatArray], BoolArray] | None = None

    def count(self, table: Readings) -> int:
        """Return how many outcomes are in it."""
        number = 0
        for form in self.forms:
            rows = table.rows.get(form)
            if rows is not None:
                inside = len(rows) if self.holds is None else self.holds(rows).sum()
                number += int(inside)
        return number


def name_events(first: Readings, second: Readings) -> list[Event]:
    """Return the events that the first draws of both sides suggest.

    Parameters
    ----------
    first, second : Readings
        Outputs of either side. Fresh draws have to judge the events, since these were
        chosen for telling the two sides apart.

    Returns
    -------
    list of Event
        Forms first, then what holds of the numbers of the most frequent forms.
    """
    often: Counter[Hashable] = Counter()
    for table in (first, second):
        often.update({form: len(rows) for form, rows in table.rows.items()})
    frequent = [form for form, _ in often.most_common(ATOMS)]
    events = [
        Event(f"an output of the form {_short(form)}", (form,)) for form in frequent
    ]
    for side, table, other in (("first", first, second), ("second", second, first)):
        # Words that hold what nobody may know are many, and each of them is rare.
        own = tuple(form for form in table.rows if form not in other.rows)
        if len(own) > 1:
            name = f"one of {len(own)} forms that the {side} side alone had shown, "
            events.append(Event(f"{name}such as {_short(own[0])}", own))
    for form in frequent[:FORMS]:
        width = first.rows.get(form, second.rows.get(form))
        if width is not None and width.shape[1]:
            sides = [table.numbers(form, width.shape[1]) for table in (first, second)]
            events += _number_events(form, width.shape[1], sides)
    return events


def _short(form: Hashable) -> str:
    text = repr(form)
    return text if len(text) < 100 else f"{text[:100]}..."


def _number_events(form: Hashable, width: int, sides: list[FloatArray]) -> list[Event]:
    both = np.concatenate(sides)
    columns: list[tuple[str, Callable[[FloatArray], FloatArray]]] = [
        (f"number {place}", _column(place)) for place in range(width)
    ]
    if 1 < width <= NEIGHBOURING:
        columns += [
            (f"number {place + 1} less number {place}", _difference(place))
            for place in range(width - 1)
        ]
        columns.append(("sum", _row_sum))
    if all(map(len, sides)):
        columns.append(("closeness to the first", _closeness(*sides)))
    events = []
    for name, read in columns:
        events += [
            Event(f"{name} {relation}", (form,), holds)
            for relation, holds in _cuts(read, read(both))
        ]
    for place in range(width):
        events += [
            Event(f"number {place} {relation}", (form,), holds)
            for relation, holds in _grain_cuts(place, both[:, place])
        ]
    rows, often = np.unique(both, axis=0, return_counts=True)
    if width > 1 and len(rows) < len(both) / 2:
        for row in rows[np.argsort(-often, kind="stable")[:ATOMS]]:
            events.append(Event(f"numbers {row.tolist()}", (form,), _is_row(row)))
    return events


def _column(place: int) -> Callable[[FloatArray], FloatArray]:
    return lambda rows: rows[:, place]


def _difference(place: int) -> Callable[[FloatArray], FloatArray]:
    # Noise that two numbers share leaves an exact difference, but for last bits.
    return lambda rows: np.round(rows[:, place + 1] - rows[:, place], 9)


def _row_sum(rows: FloatArray) -> FloatArray:
    return np.asarray(np.round(rows.sum(axis=1), 9))


def _closeness(first: FloatArray, second: FloatArray) -> Callable[..., FloatArray]:
    """Return how much closer a row lies to the middle of the first side.

    For Laplace noise on every number it is the log-likelihood ratio, but for its unit.
    """
    middles = [np.median(side, axis=0) for side in (first, second)]
    spreads = np.maximum(
        *(
            np.mean(np.abs(side - middle), axis=0)
            for side, middle in zip((first, second), middles, strict=True)
        )
    )
    weights = np.where(spreads > 1 / EXACT, 1 / np.maximum(spreads, 1 / EXACT), EXACT)

    def read(rows: FloatArray) -> FloatArray:
        nearer = np.abs(rows - middles[1]) - np.abs(rows - middles[0])
        return np.asarray(np.round(nearer @ weights, 9))

    return read


Cut = tuple[str, Callable[[FloatArray], BoolArray]]


def _cuts(read: Callable[[FloatArray], FloatArray], values: FloatArray) -> list[Cut]:
    def compared(relation: np.ufunc, value: float) -> Callable[..., BoolArray]:
        return lambda rows: np.asarray(relation(read(rows), value))

    cuts: list[Cut] = []
    for cut in np.unique(np.quantile(values, TAILS, method="nearest")).tolist():
        cuts.append((f"<= {cut:g}", compared(np.less_equal, cut)))
        cuts.append((f">= {cut:g}", compared(np.greater_equal, cut)))
    atoms, often = np.unique(values, return_counts=True)
    order = np.argsort(-often, kind="stable")[:ATOMS]
    for atom in atoms[order[often[order] > 1]].tolist():
        cuts.append((f"= {atom:g}", compared(np.equal, atom)))
    return cuts


def _grain_cuts(place: int, values: FloatArray) -> list[Cut]:
    """Return small numbers whose last bit stands at, or below, some place."""
    octaves, grains = octaves_and_grains(values)
    if grains.min() >= 0:
        # Whole numbers have no bits after the point.
        return []
    cuts: list[Cut] = []
    sizes = np.unique(
        np.quantile(octaves, np.linspace(0, 0.6, OCTAVES), method="nearest")
    )
    for size in sizes.tolist():
        last = grains[octaves <= size]
        chosen = np.quantile(last, np.linspace(0, 1, GRAINS), method="nearest")
        for grain in np.unique(chosen).tolist():
            for finer in (False, True):
                cuts.append(
                    (
                        f"below 2^{size} and {'no' if finer else 'a'} multiple of "
                        f"2^{grain}",
                        _grained(place, size, grain, finer),
                    )
                )
    return cuts


def _grained(
    place: int, size: int, grain: int, finer: bool
) -> Callable[[FloatArray], BoolArray]:
    def holds(rows: FloatArray) -> BoolArray:
        octaves, grains = octaves_and_grains(rows[:, place])
        return np.asarray((octaves <= size) & ((grains < grain) == finer))

    return holds


def octaves_and_grains(values: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the least power of two above each number, and the place of its last bit.

    Examples
    --------
    >>> octaves, grains = octaves_and_grains(np.array([0.75, 6.0, 0.0]))
    >>> octaves.tolist(), grains.tolist()
    ([0, 3, -1100], [-2, 1, 1100])
    """
    halves, octaves = np.frexp(np.abs(values))
    whole = (halves * 2.0**53).astype(np.int64)
    last = np.log2(np.maximum(whole & -whole, 1)).astype(np.int64)
    grains = octaves.astype(np.int64) - 53 + last
    zero = whole == 0
    return np.where(zero, FINEST, octaves), np.where(zero, -FINEST, grains)


def _is_row(row: FloatArray) -> Callable[[FloatArray], BoolArray]:
    return lambda rows: np.asarray((rows == row).all(axis=1))
