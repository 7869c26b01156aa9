"""Tables that are measured whatever the data choose, and what they leave for choices.

A demanded table is measured once, cell by cell, right after the single tables, at the
price of one round. Which tables these are is stated before the release, so nothing of
it depends on a record: Lemma DC12.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from blowfish_fast._support.validation import quoted
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.strategies.tables.residuals import AxisSet
from blowfish_fast.measure.strategies.tables.table_strategy import is_exact
from blowfish_fast.workloads import Tables

from .table_rules import TableRules

MOST_ROUNDS = 1000
"""Rounds that may be stated: each fits the model again."""


def as_demanded(asked: Tables, always: Any) -> tuple[AxisSet, ...]:
    """Return the attributes of tables that are always measured, checked.

    Parameters
    ----------
    asked : Tables
        The workload.
    always : iterable of sets of attributes
        By name or number; each of two attributes and more.

    Returns
    -------
    tuple of tuples of int
        Attributes by increasing number, in the order stated.

    Raises
    ------
    InputError
        If a table has one attribute alone, which is measured anyway, or if no asked
        table holds it.
    WorkloadError
        If it is no list of sets of attributes, or names a table twice.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.Domain((4, 3, 5), names=["age", "sex", "region"])
    >>> as_demanded(Tables(survey, ways=2), [("sex", "age")])
    ((0, 1),)
    """
    if isinstance(always, Sequence) and not always:
        return ()
    tables = Tables(asked.domain, always).tables
    for axes in tables:
        if len(axes) < 2:
            raise InputError(
                "always names tables of two attributes and more",
                received=quoted(always),
                way_out="Leave single attributes out: they are measured first anyway",
            )
        if not any({*axes} <= {*table} for table in asked.tables):
            raise InputError(
                "always names tables that are asked, or parts of them",
                received=quoted(always),
                way_out="Ask for this table in the workload as well",
            )
    return tables


class RoundPlan(NamedTuple):
    """How a budget is shared out between single, demanded and chosen tables.

    Attributes
    ----------
    singles : Fraction
        Part of the budget for single tables.
    demanded : Fraction
        What demanded tables cost together, in rounds.
    rounds : int
        Choices that follow, or batches where all pairs are screened.
    """

    singles: Fraction
    demanded: Fraction
    rounds: int

    @property
    def demanded_share(self) -> Fraction:
        """Part of what is left for tables that pays for demanded ones."""
        if not self.demanded:
            return Fraction(0)
        return self.demanded / (self.demanded + self.rounds)


def planned_rounds(
    rules: TableRules,
    records: float,
    budget: Budget,
    always: Sequence[AxisSet] = (),
    stated: int | None = None,
) -> RoundPlan:
    """Return how a budget is shared out, from public numbers.

    Demanded tables stand for as many rounds as an edge pays for them: for each of them
    where one edge moves all tables, and for those that share an attribute where
    attributes move one at a time.

    Parameters
    ----------
    rules : TableRules
        Shares of the budget and how many tables, where nobody states it.
    records : float
        The number of records: stated, public or noisy.
    budget : Budget
        What all tables and choices may cost together.
    always : sequence of tuples of int
        Demanded tables.
    stated : int, optional
        How many rounds follow them.

    Returns
    -------
    RoundPlan
        Shares, and the number of rounds.
    """
    noisy = [axes for axes in always if not is_exact(axes, rules.kinds)]
    demanded = Fraction(0)
    if noisy:
        ratio = rules.price(noisy) / rules.price(noisy[:1])
        demanded = Fraction(ratio).limit_denominator(1000)
    share, tables = rules.split(records, budget)
    rounds = rules.batches(tables) if rules.screens and tables else tables
    if stated is None:
        rounds = max(rounds - round(demanded), 0)
    else:
        rounds = stated if rules.pairs else 0
    if not demanded and not rounds:
        return RoundPlan(Fraction(1), demanded, 0)
    if share == 1 or stated is not None:
        share = rules.singles_share()
    return RoundPlan(share, demanded, rounds)
