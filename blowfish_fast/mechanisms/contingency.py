"""Contingency: all tables of a survey, measured together and made to agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, get_args

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_choice, quoted
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.table_counts import TableCounts
from blowfish_fast.errors import InputError, PolicyError, WorkloadError
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.strategies.tables.residuals import (
    AxisSet,
    NoisyTables,
    TableNoise,
)
from blowfish_fast.measure.strategies.tables.table_plan import (
    AskedTables,
    PlanKind,
    TablePlan,
    plan_tables,
)
from blowfish_fast.measure.strategies.tables.table_strategy import (
    TableStrategy,
    check_shape,
    edge_kinds,
)
from blowfish_fast.policies import Policy
from blowfish_fast.release.guarantee import Guarantee, new_identity
from blowfish_fast.release.table_errors import TableErrors
from blowfish_fast.release.tables_release import TablesRelease
from blowfish_fast.workloads import Tables, Workload
from blowfish_fast.workloads.tables import places_of

from .base import Mechanism, Outcome, _version


class Contingency(Mechanism):
    """Release contingency tables of some attributes at a time, all consistent.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable: `AddRemove`, `Full` or `TablePolicy` over a
        wide domain, or any unconstrained policy over a `Domain`.
    workload : Tables
        Which tables are asked, over the same attributes.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    plan : {"best", "maximal", "weights", "blocks"}
        What is measured: the tables that no other asked table contains; all asked
        tables at optimised rates; larger tables that each cover many; or whichever
        predicts the least error.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: an edge changes two cells of every measured table that holds an
        attribute in which the record moves (one cell of every table where it appears);
        the worst edge over all tables at their rates costs epsilon; one to an "absent"
        stated l edges away may cost l epsilon. Tables of public attributes alone are
        exact, and cost nothing.
    Error: known before anything is spent, the same for all cells of a table
        (`expected_error`, `plan`).
    Complexity: O(2^k cells of the measured tables) time for tables of k attributes.
    Source: [1]_ for residual bases, [2]_ for blocks; departures and proof in
        ``docs/proofs/contingency.md``.

    References
    ----------
    .. [1] Y. Xiao, G. He, D. Zhang, D. Kifer. An optimal and scalable matrix mechanism
       for noisy marginals under convex loss functions. NeurIPS 2023.
    .. [2] W. Qardaji, W. Yang, N. Li. PriView: practical differentially private release
       of marginal contingency tables. SIGMOD 2014.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.WideDomain.product(
    ...     *(bf.Domain(size, names=[name]) for name, size in zip("abcdef", [9] * 6))
    ... )
    >>> asked = bf.workloads.Tables(survey, ways=2)
    >>> mech = bf.Contingency(bf.policies.TablePolicy(survey, {}), asked, epsilon=1)
    >>> mech.expected_error("a", "b").round(1)[:3], mech.expected_error().shape
    (array([165.8, 165.8, 165.8]), (1269,))
    """

    name = "contingency"
    reads_workload = False
    cell_bytes = 96
    takes_wide = True
    workload: Tables

    def __init__(
        self,
        policy: Policy,
        workload: Tables,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        plan: PlanKind = "best",
    ) -> None:
        if not isinstance(workload, Tables):
            raise WorkloadError(
                "state which tables are asked",
                received=quoted(workload),
                way_out="Write workloads.Tables(domain, ways=2)",
            )
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        check_shape(policy, self.domain.shape)
        if getattr(policy, "count", "records") == "persons":
            raise PolicyError(
                "tables count records",
                received=repr(policy),
                way_out='State per_person(at_most) with count="records"',
            )
        self.plan_kind: PlanKind = as_choice(plan, "plan", get_args(PlanKind))

        self._plans: dict[int, TablePlan] = {}

    @property
    def domain(self) -> Any:
        """The attributes, as the workload states them."""
        return self.workload.domain

    @property
    def _plan(self) -> TablePlan:
        """What is measured, from public sizes alone; one plan for each currency."""
        power = self.budget.power
        if power not in self._plans:
            policy = self.policy.unconstrained
            asked = AskedTables(
                policy.domain.shape,
                self.workload.tables,
                self.workload.weights,
                edge_kinds(policy),
                power,
            )
            self._plans[power] = plan_tables(asked, self.plan_kind)
        return self._plans[power]

    @property
    def measured_tables(self) -> tuple[AxisSet, ...]:
        """The attributes of each table that is measured, by number."""
        return self._plan.tables

    @property
    def _strategy(self) -> TableStrategy:
        plan = self._plan
        return TableStrategy(self.domain.shape, plan.tables, plan.shares.tolist())

    def _run(self, private: Handle) -> Outcome:
        prepared = self._hold(private, lambda: self._strategy)
        measurement = private.measure(prepared, budget=private.remaining)
        return Outcome(np.zeros(0), [measurement], {"plan": self._plan.kind})

    def _published(self, outcome: Outcome, guarantee: Guarantee) -> TablesRelease:
        (measurement,) = outcome.measurements
        return TablesRelease(
            self.domain,
            self.workload.tables,
            measurement,
            guarantee,
            outcome.details,
            _version(),
            new_identity(guarantee),
        )

    def _notes(self) -> tuple[str, ...]:
        kinds = edge_kinds(self.policy.unconstrained)
        if any(kind.axes is None for kind in kinds):
            return ()
        moving = {axis for kind in kinds for axis in kind.axes or ()}
        names = [
            f"attribute {axis}" if name is None else name
            for axis, name in enumerate(self.domain.names)
            if axis not in moving
        ]
        public = ", ".join(names)
        sentence = (
            f"These attributes are public, and tables of them alone exact: {public}."
        )
        return (sentence,) if names else ()

    def _kept_apart(self) -> dict[str, Any]:
        return {"cells": self._cells()}

    def _cells(self) -> int:
        return self._strategy.size

    def _counts(self, data: Any) -> Any:
        if isinstance(data, Histogram):
            data = TableCounts.from_histogram(data, self.measured_tables)
        if not isinstance(data, TableCounts):
            raise InputError(
                "tables are released from TableCounts, or a Histogram of all cells",
                received=quoted(data),
                way_out="Write TableCounts.from_records(mechanism, records)",
            )
        self.policy._check_bound(data.bound)
        return data.vector(self.domain, self.measured_tables)

    def plan(self, records: int | None = None) -> TableErrors:
        """Return what would be measured and the error of every table; free, no data.

        With a public or guessed number of `records`, mean counts stand beside errors.
        """
        measured = self._measured
        laws = (TableNoise.of(measured, table) for table in self.workload.tables)
        return TableErrors(
            kind=self._plan.kind,
            domain=self.domain,
            tables=self.workload.tables,
            measured=self.measured_tables,
            variances=np.array([law.cell_variance() for law in laws]),
            budget=self.budget.words(),
            records=records,
        )

    @property
    def _measured(self) -> NoisyTables:
        return self._strategy.measured(self._dry_run.measurements[0].scales)

    def expected_error(
        self, workload: Workload | str | Sequence[str] | None = None, *names: str
    ) -> FloatArray:
        """Return the expected squared error of each query, before any fit; free.

        Parameters
        ----------
        workload : Workload, str or sequence of str, optional
            A workload over one table, `Tables`, or the attributes of a table; all asked
            tables by default.
        *names : str
            Further attributes of the table.

        Returns
        -------
        ndarray of float64, shape (queries,)
            The errors.

        Raises
        ------
        DomainError
            If there is no such attribute.
        """
        measured = self._measured
        tables: Sequence[AxisSet] = self.workload.tables
        if isinstance(workload, Workload):
            axes = places_of(workload, self.domain)
            if not isinstance(workload, Tables):
                noise = TableNoise.of(measured, axes)
                buckets = Buckets.single_cells(workload.domain.size)
                form = workload.explicit_form(buckets)
                scales = self._dry_run.measurements[0].scales
                return noise.spread(form, scales).variance
            tables = [tuple(axes[at] for at in item) for item in workload.tables]
        elif isinstance(workload, str | Sequence):
            first = [workload] if isinstance(workload, str) else list(workload)
            tables = [tuple(sorted(self.domain.axes([*first, *names])))]
        elif workload is not None:
            raise InputError(
                "errors are those of a table, by its attributes, or of a workload",
                received=quoted(workload),
                way_out='Write expected_error("age", "sex"), or expected_error()',
            )
        laws = (TableNoise.of(measured, item) for item in tables)
        return np.concatenate(
            [np.full(item.cells, item.cell_variance()) for item in laws]
        )

    def expected_total_error(self, workload: Workload | None = None) -> float:
        """Return the expected squared error summed over all queries, before any fit."""
        return float(self.expected_error(workload).sum())

    @classmethod
    def example(
        cls, domain: Domain, policy: Policy, epsilon: Any
    ) -> tuple[Self, Histogram]:
        """Return the mechanism for all tables of up to two attributes.

        Parameters
        ----------
        domain : Domain
            The cells.
        policy : Policy
            What is secret.
        epsilon : number, str or Fraction
            The budget.

        Returns
        -------
        mechanism : Self
            The mechanism.
        data : Histogram
            Made-up counts.
        """
        asked = Tables(domain, ways=min(2, domain.ndim))
        counts = np.arange(domain.size).reshape(domain.shape) % 7
        return cls(policy, asked, epsilon=epsilon), Histogram(domain, counts)
