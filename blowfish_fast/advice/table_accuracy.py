"""Which epsilon puts how many records of a survey right, typically.

Nobody knows beforehand how far tables are off that the data choose. So they are tried
on made-up records of as many attributes, cells and records, and the shares that lie in
a wrong cell stand beside each other for several budgets. No data is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast._support.validation import (
    as_choice,
    as_number,
    as_whole,
    naming_right_words,
    quoted,
)
from blowfish_fast.data.table_counts import TableCounts
from blowfish_fast.errors import InputError, WorkloadError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.mechanisms.chosen_tables import Chooser, ChosenTables
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Tables

CLASSES = 6
"""Hidden classes of made-up people: attributes depend on each other through them."""

SPREAD = 0.5
"""How evenly an attribute's values are spread inside a hidden class, as the parameter
of a Dirichlet law. The smaller it is, the fewer values a class has, and the more
attributes depend on each other."""

MOST_RECORDS = 40_000
"""How many records are made up at most. Where more are asked for, the budget is raised
instead: noise beside counts is then as it would be, and the trial takes seconds."""


class TypicalTables(NamedTuple):
    """What one budget gives, on made-up records.

    Attributes
    ----------
    amount : float
        The epsilon, or the rho.
    plan : float
        Share of the records in a wrong cell, mean over the asked tables, where public
        sizes say what is measured.
    data : float
        The same where the data choose.
    best : {"plan", "data"}
        What ``choose="best"`` takes.
    """

    amount: float
    plan: float
    data: float
    best: Literal["plan", "data"]

    @property
    def misplaced(self) -> float:
        """The share where ``choose="best"`` is stated."""
        return self.plan if self.best == "plan" else self.data


class TablesTranslation(Sequence[TypicalTables]):
    """Typical shares of misplaced records, by budget: see `translate_tables`.

    Parameters
    ----------
    rows : sequence of TypicalTables
        By increasing amount.
    currency : {"epsilon", "rho"}
        What amounts are.
    records : int
        The public number of records.
    wanted : float or None
        The share that was asked for.
    """

    def __init__(
        self,
        rows: Sequence[TypicalTables],
        currency: str,
        records: int,
        wanted: float | None,
    ) -> None:
        self.rows = tuple(rows)
        self.currency = currency
        self.records = records
        self.wanted = wanted

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> Any:
        return self.rows[at]

    @property
    def least(self) -> TypicalTables | None:
        """The least budget of those tried that gives what was asked; None if none."""
        if self.wanted is None:
            return None
        fitting = (row for row in self.rows if row.misplaced <= self.wanted)
        return next(fitting, None)

    def _lines(self) -> Iterator[str]:
        yield (
            f"Share of {self.records:,} records in a wrong cell, mean over the asked "
            "tables, typical of made-up records; yours may differ"
        )
        yield f"{self.currency:>9}  {'by plan':>9}  {'by data':>9}  best"
        for row in self.rows:
            yield f"{row.amount:9.4g}  {row.plan:9.4f}  {row.data:9.4f}  {row.best}"
        if self.wanted is not None:
            least = self.least
            amount = "none of these" if least is None else f"{least.amount:.4g}"
            yield f"at most {self.wanted:g}: {amount}"

    def __str__(self) -> str:
        return "\n".join(self._lines())


@naming_right_words
def translate_tables(
    policy: Policy,
    tables: Tables,
    *,
    records: int,
    misplaced: float | None = None,
    amounts: Sequence[Any] = ("0.1", "0.3", "1", "3"),
    currency: Literal["epsilon", "rho"] = "epsilon",
    seed: int = 0,
) -> TablesTranslation:
    """Say which budget gives which misplacement of a survey's tables, typically; free.

    Made-up records depend on each other through hidden classes. Surveys in which most
    attributes are nearly independent do better than they do.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable.
    tables : Tables
        Which tables are asked.
    records : int
        A public number of records.
    misplaced : float, optional
        The share of records that may lie in a wrong cell: `least` names the budget.
    amounts : sequence of numbers
        Budgets that are tried; each takes seconds.
    currency : {"epsilon", "rho"}
        What they are.
    seed : int
        Of the made-up records and of their noise.

    Returns
    -------
    TablesTranslation
        A row for each budget, by plan and by choice of the data.

    Raises
    ------
    InputError
        If a number is out of range, or no budget is stated.
    WorkloadError
        If the workload is not `Tables`.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.Domain((6, 5, 4), names=["age", "job", "pay"])
    >>> asked = bf.workloads.Tables(survey, ways=2)
    >>> policy = bf.policies.AddRemove(survey)
    >>> found = bf.translate_tables(
    ...     policy, asked, records=2_000, misplaced=0.05, amounts=["0.05", "1"]
    ... )
    >>> found.least.amount, found[0].plan > found[1].plan
    (1.0, True)
    """
    if not isinstance(tables, Tables):
        raise WorkloadError(
            "state which tables are asked",
            received=quoted(tables),
            way_out="Write workloads.Tables(domain, ways=2)",
        )
    count = as_whole(records, "records", 1)
    as_choice(currency, "currency", ("epsilon", "rho"))
    wanted = None if misplaced is None else as_number(misplaced, "misplaced", 0, 1)
    if not amounts:
        raise InputError("state at least one budget", received="amounts=[]")
    few = min(count, MOST_RECORDS)
    cells = made_up_cells(tables.domain.shape, few, np.random.default_rng(seed))
    budgets = [Budget.stated(**{currency: amount}) for amount in amounts]
    rows = [
        _released_both_ways(policy, tables, budget, cells, count, seed)
        for budget in sorted(budgets, key=float)
    ]
    return TablesTranslation(rows, currency, count, wanted)


def made_up_cells(
    sizes: Sequence[int], records: int, source: np.random.Generator
) -> AnyArray:
    """Return records as cells, of attributes that depend through hidden classes.

    Parameters
    ----------
    sizes : sequence of int
        Cells along each attribute.
    records : int
        How many.
    source : numpy.random.Generator
        Public randomness.

    Returns
    -------
    (attributes, records) int32
        The cell of each record along each attribute.
    """
    hidden = source.integers(0, CLASSES, records)
    columns = []
    for size in sizes:
        ends = source.dirichlet(np.full(size, SPREAD), CLASSES).cumsum(axis=1)
        drawn = (source.random((records, 1)) > ends[hidden]).sum(axis=1)
        columns.append(np.minimum(drawn, size - 1))
    return np.array(columns, dtype=np.int32)


def _released_both_ways(
    policy: Policy,
    tables: Tables,
    budget: Budget,
    cells: AnyArray,
    records: int,
    seed: int,
) -> TypicalTables:
    """Release made-up records both ways, and compare with them."""
    made_up = int(cells.shape[1])
    # Noise beside counts is what matters: fewer records, with as much less noise.
    scaled = budget * math.ceil((records / made_up) ** budget.power)
    shares = {}
    ways: tuple[Chooser, ...] = ("plan", "data")
    for way in ways:
        mechanism = ChosenTables(policy, tables, choose=way, epsilon=scaled)
        counted = TableCounts.from_cells(
            mechanism.domain, mechanism.measured_tables, [cells]
        )
        release: Any = mechanism.release(counted, rng=seed)
        misplaced = release._fitted.misplaced(tables.tables, cells)
        shares[way] = float(np.mean(misplaced))
    stated = ChosenTables(policy, tables, records=records, epsilon=budget)
    decided = stated.decided
    assert decided is not None, "the number of records was stated"
    return TypicalTables(float(budget), shares["plan"], shares["data"], decided)
