"""One look at every column of a table, of which nothing is known but the header."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, NoReturn

import numpy as np

from blowfish_fast._support.validation import quoted
from blowfish_fast.data.domain import Domain, KeyDomain, WideDomain
from blowfish_fast.data.tables.answers import (
    LETTERS,
    LONGEST_WORD,
    ColumnAnswers,
    SurveyAnswers,
)
from blowfish_fast.errors import DataDependentError, InputError, PrivacyError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.mechanisms.base import Mechanism, _version
from blowfish_fast.mechanisms.laplace import Laplace
from blowfish_fast.mechanisms.sparse import SparseLaplace
from blowfish_fast.policies import Full, TablePolicy
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.release.wide.look_release import ColumnLook, LookRelease
from blowfish_fast.workloads import Identity

FIRST_SHARE = Fraction(1, 3)
"""Of the budget of a column: numbers by magnitude, words, missing values. Chosen on the
census extract of the accuracy page, at 10^4 rows and epsilon 1."""

DECADES = range(-3, 12)
"""Powers of ten within which numbers are told apart."""

FURTHEST = 1e15
"""Numbers beyond lie outside."""

MOST_STEPS = 32
"""Even steps that the numbers of a column are counted in, at most."""

FALSE_WORDS = Fraction(1, 50)
"""Words that a column lists in the mean though nobody has written them."""

MISTAKEN = 0.05
"""The probability, at most, that an empty magnitude is taken for one with numbers."""

LISTED_BYTES = 2**22
"""What the list of words of a column takes while it is drawn."""


LEADING = (
    *(10 + tenth for tenth in range(20)),
    *(10 * digit for digit in range(3, 10)),
)
"""What numbers begin with, in tenths: 1.0, 1.1, ..., 2.9, 3, 4, ..., 9. Finer at the
small end, where a digit is a large part of a number: years begin with 19 and 20."""


@cache
def magnitude_edges() -> tuple[float, ...]:
    """Return public edges for numbers of which no range is known.

    Widths grow with the numbers: cells are between a twentieth and a third as wide as
    where they lie.

    Examples
    --------
    >>> edges = magnitude_edges()
    >>> len(edges), edges[edges.index(1000) + 8 : edges.index(1000) + 11]
    (815, (1800.0, 1900.0, 2000.0))
    """
    digits = [float(f"{tenths}e{power - 1}") for power in DECADES for tenths in LEADING]
    upward = [*digits, float(f"1e{DECADES.stop}"), FURTHEST]
    return (*(-edge for edge in reversed(upward)), 0.0, *upward)


def magnitudes(name: str) -> Domain:
    """Return the cells of a column of which nothing is known but its name."""
    plain = Domain.from_edges(magnitude_edges(), name=name)
    return plain.with_extra_cells(outside=True, missing=True)


class FirstLook(Mechanism):
    """Look once at every column of a table: categories, numbers, missing values.

    A column gets two steps. The first counts its numbers by magnitude, its words and
    its missing values. Its noisy counts say what the second one asks: the frequent
    words, or numbers in even steps where they lie. A column whose categories are
    stated gets one step with all of its budget.

    Parameters
    ----------
    columns : sequence of str
        The names of all columns, which are public.
    stated : mapping from name to Domain, optional
        Cells of columns that somebody knows, one attribute each.
    ordered : sequence of str, optional
        Which of the stated ones have an order.
    persons : bool, default False
        Protect each row with all of its answers, which divides the budget among the
        columns. By default one answer is protected at a time.
    letters : str, default ''
        Symbols of words beside those of `LETTERS`, such as ``"äöü"``. They are public.
    epsilon : number
        The budget of the whole look.

    Notes
    -----
    Guarantee: epsilon-Blowfish: one answer may be any other (`TablePolicy` with a
        factor for each attribute); with `persons` one row may be any other.
    Neighbours: two tables that differ in one answer; with `persons`, in one row.
    Sensitivity: an answer moves two counts of its own column by 1, in each of the two
        steps, and nothing of the other columns.
    Error: the counts of a column are off by noise of scale 3/epsilon in the second
        step; with `persons`, times the number of columns.
    Complexity: O(rows x columns).
    Source: parallel and sequential composition; words as in `SparseLaplace`; proof in
        ``docs/proofs/first_look.md``.

    Examples
    --------
    >>> answers = SurveyAnswers({"sex": ["f", "m"] * 500, "age": range(1000)})
    >>> look = FirstLook(["sex", "age"], epsilon=8).release(answers, rng=1)
    >>> [round(bar.noisy / 10) * 10 for bar in look["sex"].bars()]
    [500, 500]
    >>> low, high = look["age"].quantiles()[0.5][1:]
    >>> low <= 500 <= high
    True
    """

    name: ClassVar[str] = "first_look"
    takes_wide: ClassVar[bool] = True
    reads_workload: ClassVar[bool] = False
    cell_bytes: ClassVar[int] = 0

    def __init__(
        self,
        columns: Sequence[str],
        *,
        stated: Mapping[str, Domain] | None = None,
        ordered: Sequence[str] = (),
        persons: bool = False,
        letters: str = "",
        epsilon: Any,
    ) -> None:
        self.columns = tuple(columns)
        self.stated = dict(stated or {})
        self.ordered = tuple(ordered)
        self.persons = bool(persons)
        self.letters = letters
        _check_names(self.columns, self.stated, self.ordered)
        table = WideDomain.product(*(self._cells_of(name) for name in self.columns))
        policy = TablePolicy(table, None if self.persons else {})
        asked: Any = Identity(policy.domain)
        super().__init__(policy, asked, epsilon=epsilon)

    def _cells_of(self, name: str) -> Domain:
        """Return the public cells of the first step of a column."""
        domain = self.stated.get(name)
        if domain is None:
            return magnitudes(name)
        plain = domain.without_extra_cells()
        return plain.with_extra_cells(outside=True, missing=True)

    @property
    def column_budget(self) -> Budget:
        """What may be spent on each column: all, or with `persons` its part."""
        return self.budget.over(len(self.columns)) if self.persons else self.budget

    def _first(self, name: str) -> Laplace:
        """Return the first step of a column."""
        share = 1 if name in self.stated else FIRST_SHARE
        policy = Full(self._cells_of(name))
        return Laplace(policy, epsilon=self.column_budget * Fraction(share))

    def _words(self, name: str) -> SparseLaplace:
        """Return the second step of a column of words."""
        domain: Any = KeyDomain(self.letters + LETTERS, LONGEST_WORD, name=name)
        policy = Full(domain.with_extra_cells(outside=True, missing=True))
        rest = self.column_budget * (1 - FIRST_SHARE)
        return SparseLaplace(policy, false_cells=FALSE_WORDS, epsilon=rest)

    def _steps(self, name: str, edges: Sequence[float]) -> Laplace:
        """Return the second step of a column of numbers."""
        plain = Domain.from_edges(edges, name=name)
        policy = Full(plain.with_extra_cells(outside=True, missing=True))
        return Laplace(policy, epsilon=self.column_budget * (1 - FIRST_SHARE))

    def _drawn(self, counts: Any, source: Randomness) -> LookRelease:
        looks = [
            self._look(name, answers, source)
            for name, answers in counts.columns.items()
        ]
        self._check_spent(looks)
        # Less is spent where a first step left nothing to ask; what is promised is
        # what holds for every draw.
        guarantee = Guarantee.of(
            self.policy, self.budget, secure=source.secure, notes=self._notes()
        )
        return LookRelease(
            domain=self.domain,
            columns=looks,
            rows=counts.rows,
            mechanism=self.name,
            guarantee=guarantee,
            details={},
            version=_version(),
        )

    def _look(
        self, name: str, answers: ColumnAnswers, source: Randomness
    ) -> ColumnLook:
        """Draw both steps of a column; the second depends on what the first drew."""
        step = self._first(name)
        if name in self.stated:
            categories = self.stated[name].attributes[0].levels is not None
            count = answers.in_categories if categories else answers.in_numbers
            only = step._drawn_as_step(count(step.domain), source)
            assert isinstance(only, HistogramRelease)
            return ColumnLook(name, "categories", only, None, name in self.ordered)
        first = step._drawn_as_step(answers.in_numbers(step.domain), source)
        assert isinstance(first, HistogramRelease)
        noisy = np.asarray(first.estimate, dtype=np.float64)
        kind, edges = what_to_ask(noisy, float(step.budget.amount))
        second: Any = None
        if kind == "words":
            lister = self._words(name)
            listed: Any = lister.domain
            second = lister._drawn_as_step(answers.in_words(listed), source)
        elif kind == "numbers":
            even = self._steps(name, edges)
            second = even._drawn_as_step(answers.in_numbers(even.domain), source)
        return ColumnLook(name, kind, first, second)

    def _check_spent(self, looks: Sequence[ColumnLook]) -> None:
        """Add up what was drawn (Lemmas FL1 and FL2); refuse more than was granted."""
        by_column = [
            sum((part.guarantee.budget.amount for part in look.parts), Fraction(0))
            for look in looks
        ]
        spent = sum(by_column) if self.persons else max(by_column)
        if spent > self.budget.amount:
            raise PrivacyError(
                f"a first look would have cost {float(spent):g} where "
                f"{float(self.budget):g} was granted; it was dropped"
            )

    def _notes(self) -> tuple[str, ...]:
        if self.persons:
            return ("A row of the table stands for one person, with all her answers.",)
        return (
            "What is protected is one answer of a person at a time: all of her "
            f"{len(self.columns):,} answers together are told apart by at most "
            f"e^({len(self.columns):,} eps).",
        )

    def _counts(self, data: Any) -> SurveyAnswers:
        if not isinstance(data, SurveyAnswers):
            raise InputError(
                "a first look takes a table of answers",
                received=quoted(type(data).__name__),
                way_out="Write SurveyAnswers({'sex': [...], 'age': [...]})",
            )
        if tuple(data.columns) != self.columns:
            raise InputError(
                "the answers have the columns that were stated, in their order",
                received=quoted(list(data.columns)),
            )
        return data

    def _rehearse(self, private: Any) -> None:
        """Ask for every step that some draw may lead to: Lemma FL3."""
        for name in self.columns:
            self._first(name).check_feasible()
        self._words(self.columns[0]).check_feasible()
        self._steps(self.columns[0], range(MOST_STEPS + 1)).check_feasible()

    def _price_in_rho(self) -> Fraction:
        return self.budget.amount**2 / 2

    def _run(self, private: Handle) -> NoReturn:
        raise DataDependentError(
            "what a first look asks second depends on what it drew first"
        )

    def _cells(self) -> int:
        return sum(self._cells_of(name).size for name in self.columns)

    def _kept_bytes(self) -> int:
        return LISTED_BYTES + Laplace.cell_bytes * self._cells()


def what_to_ask(noisy: Any, epsilon: float) -> tuple[str, list[float]]:
    """Say what the second step of a column asks, from its first noisy counts alone.

    Parameters
    ----------
    noisy : ndarray of float64, shape (cells of `magnitudes`,)
        Numbers by magnitude, words, and missing values.
    epsilon : float
        What the first step has cost: public, like the noise that follows from it.

    Returns
    -------
    kind : {"words", "numbers", "unclear"}
        What the column holds; "unclear" if no count stands out of the noise.
    edges : list of float
        Even steps where the numbers lie; empty for the others.

    Examples
    --------
    >>> noisy = np.zeros(len(magnitude_edges()) + 1)
    >>> noisy[-2] = 900.0
    >>> what_to_ask(noisy, 1)
    ('words', [])
    >>> noisy[magnitude_edges().index(1900)] = 2000.0
    >>> what_to_ask(noisy, 1)[1][:3]
    [1900.0, 1905.0, 1910.0]
    """
    numbers, words = noisy[:-2], float(noisy[-2])
    # Noise of scale 2 / epsilon lifts no empty magnitude so far, but seldom.
    bar = 2 / epsilon * math.log(len(noisy) / MISTAKEN)
    heavy = np.flatnonzero(numbers > bar)
    if words > bar and words >= float(numbers[heavy].sum()):
        return "words", []
    if not heavy.size:
        return "unclear", []
    return "numbers", even_steps(heavy)


def even_steps(heavy: Any) -> list[float]:
    """Return even steps over the magnitudes that hold numbers.

    Where all of them are whole magnitudes, no step is shorter than 1.

    Parameters
    ----------
    heavy : ndarray of int64
        Cells of `magnitudes`, ascending.

    Returns
    -------
    list of float
        Edges, at most `MOST_STEPS` + 1.

    Examples
    --------
    >>> edges = np.array(magnitude_edges())
    >>> even_steps(np.searchsorted(edges, [1.0, 5.0]))
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    >>> even_steps(np.searchsorted(edges, [0.0, 30.0]))[:4]
    [0.0, 2.0, 4.0, 6.0]
    """
    edges = magnitude_edges()
    low, high = edges[int(heavy[0])], edges[int(heavy[-1]) + 1]
    zero = edges.index(0.0)
    # The cell from 0 up to the least magnitude holds zeros, and zero is whole.
    inner = [cell for cell in heavy.tolist() if cell != zero]
    smallest = min(
        (min(abs(edges[cell]), abs(edges[cell + 1])) for cell in inner), default=1.0
    )
    step = next(
        width
        for power in range(-5, 16)
        for width in (float(f"{digit}e{power}") for digit in (1, 2, 5))
        if _steps_within(low, high, width) <= MOST_STEPS
        and (width >= 1 or smallest < 1)
    )
    start = _step_below(low / step)
    return [
        float(f"{(start + at) * step:.12g}")
        for at in range(_steps_within(low, high, step) + 1)
    ]


def _steps_within(low: float, high: float, step: float) -> int:
    """Return how many whole steps it takes to cover a stretch."""
    return max(-_step_below(-high / step) - _step_below(low / step), 1)


def _step_below(place: float) -> int:
    """Return the last whole step up to a place; one that rounding moved is met."""
    near = round(place)
    if near != 0 and abs(place - near) < 1e-9 * abs(near):
        return near
    return math.floor(place)


def _check_names(
    columns: tuple[str, ...], stated: Mapping[str, Domain], ordered: tuple[str, ...]
) -> None:
    if not columns:
        raise InputError("a first look needs at least one column")
    for name in (*stated, *ordered):
        if name not in columns:
            raise InputError(
                f"there is no column {name!r}", received=quoted(list(columns))
            )
    for name, domain in stated.items():
        if domain.names != (name,) or domain.attributes[0].unit is not None:
            raise InputError(
                "stated cells are those of one column: categories, or numbers",
                received=f"{name}: {domain!r}",
                way_out="Leave columns of dates out, or state their texts",
            )
    unstated = [name for name in ordered if name not in stated]
    if unstated:
        raise InputError(
            "an order is that of stated categories",
            received=f"ordered={quoted(unstated)}",
            way_out="State the categories of the column, in their order",
        )
