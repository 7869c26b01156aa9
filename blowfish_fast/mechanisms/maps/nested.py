"""Totals of districts inside districts, which agree at all levels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_choice, quoted
from blowfish_fast.errors import InputError
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.strategies.trees.tree import TreeStrategy
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, striped
from blowfish_fast.policies import Policy
from blowfish_fast.release.group_answers import GroupedAnswers
from blowfish_fast.release.places.level_answers import named_districts
from blowfish_fast.release.synthetic import coins_of
from blowfish_fast.workloads import LevelTotals, Nesting, Workload

NestedFit = Literal["whole", "non_negative"]

NODE_BYTES = 320
"""What a district takes while intervals are asked, and what is kept of it."""


class Nested(Mechanism):
    """Release the totals of districts inside districts; all levels add up.

    Every district of a public tree is measured, the more accurately the more its level
    matters, and all measurements are combined by least squares. Districts that no edge
    of the policy enters or leaves are exact, and cost nothing.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default. `Blocks` with
        ``nest.labels("county")`` says that the county of a person is no secret.
    workload : Workload
        Levels by their importance, ``nest.workload(block=1, county=1)``. With any other
        workload all levels are equally important.
    nest : Nesting, optional
        The districts. By default those of the workload, or the attributes of the
        domain one inside the other, ``Nesting.of_domain``.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    fit : {"whole", "non_negative", None}
        What is done to the least-squares answer, at no cost. "non_negative": totals are
        shared from the top down, none below 0. "whole": these become whole numbers that
        add up at all levels, each next to its fit. None: least squares. Intervals are
        those of least squares. Persons that count once are counted in parts of a
        person, and these parts are whole.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded, the total is public and exact).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: the districts from a cell to the top when a record is added or removed;
        when it moves, those that hold one of its two cells. The worst edge of any
        policy is found exactly, in integers; districts that no edge crosses are
        published as they are.
    Error: known of every district before anything is paid, `errors_by_level` and
        `expected_error`; shares are least for importance times variance of districts
        that are each estimated from their own measurement.
    Complexity: O(districts) time and memory.
    Source: least squares on trees as in `Hierarchy`; the order of the fit is that of
        the TopDown algorithm, J. Abowd et al., The 2020 Census disclosure avoidance
        system TopDown algorithm. Harvard Data Science Review, Special Issue 2, 2022.
        Shares by importance and whole numbers along the tree are our own; proof in
        ``docs/proofs/nested.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> codes = [f"{county}{block}" for county in "ABC" for block in range(4)]
    >>> nest = bf.Nesting.from_codes(codes, [1, 2], names=["county", "block"])
    >>> policy = bf.policies.AddRemove(nest.domain)
    >>> nested = bf.Nested(policy, nest.workload(county=1, block=1), epsilon=1)
    >>> {level: round(error, 1) for level, error in nested.errors_by_level().items()}
    {'all': 4.3, 'county': 2.5, 'block': 2.5}
    >>> release = nested.release([3, 0, 0, 9, 20, 1, 0, 0, 0, 0, 4, 2], rng=1)
    >>> counties = release.level("county")
    >>> float(sum(counties.values())) == float(release.estimate.sum())
    True
    """

    name = "nested"
    example_case = Example(partial(striped, stripes=3, height=7))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        nest: Nesting | None = None,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        fit: NestedFit | None = "whole",
    ) -> None:
        if isinstance(policy, Policy) and isinstance(workload, LevelTotals):
            workload = _over_the_domain_of(policy, workload)
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self.fit = as_choice(fit, "fit", ("whole", "non_negative", None))
        self.nest = self._read_nest(nest)

    def _read_nest(self, nest: Any) -> Nesting:
        own = self.workload.nest if isinstance(self.workload, LevelTotals) else None
        if nest is None:
            return Nesting.of_domain(self.domain) if own is None else own
        if not isinstance(nest, Nesting):
            raise InputError(
                "nest must be a Nesting, such as Nesting.from_columns(table, names)",
                received=quoted(nest),
            )
        if nest.domain != self.domain:
            nest = _same_order(nest, self.policy)
        if own is not None and own != nest:
            raise InputError(
                "nest must be that of the workload, and may be left out there; "
                "the two have different districts"
            )
        read: Nesting = nest
        return read

    def _kept_bytes(self) -> int:
        return NODE_BYTES * self.nest.rows.tree.nodes

    def _run(self, private: Handle) -> Outcome:
        along = private.coarsened(self.nest.cells_along)
        prepared = self._hold(along, lambda: self._plan(along))
        measurement = along.measure(prepared, budget=along.remaining)
        fits = self.fit is not None and not private.dry_run
        fit = partial(self._fitted, measurement) if fits else None
        return Outcome.of(measurement, self._details(), fit=fit)

    def _details(self) -> dict[str, Any]:
        """Return the public districts, from which a release answers by level."""
        levels = self.nest.levels
        return {
            "fit": self.fit,
            "levels": [level.name for level in levels],
            "districts": {level.name: level.labels for level in levels[:-1]},
            "district_ids": {level.name: list(level.ids) for level in levels[:-1]},
        }

    def _plan(self, along: Handle) -> TreeStrategy:
        """Share the budget by importance: Lemma NE2.

        A level counts with the mean of its districts. Those that no edge crosses are
        exact without any share (Lemma NE1), so they get none.
        """
        rows = self.nest.rows
        importance = dict.fromkeys(self.nest.names, 1.0)
        if isinstance(self.workload, LevelTotals):
            importance = dict(self.workload.importance)
        costs = np.zeros(rows.tree.nodes)
        for name, places in zip(self.nest.names, rows.rows, strict=True):
            costs[places] = importance.get(name, 0.0) / places.size
        plain = TreeStrategy(rows.tree, np.ones(rows.tree.nodes))
        exact = plain.exact_rows(along.policy)
        costs[exact] = 0.0
        if not costs.any():
            # What was asked for is exact; all that is paid goes to the cells.
            costs[: rows.tree.leaves] = 1.0
        # Weights are rates in either currency: a variance is 1 / w^2 or 1 / w.
        weights = kernels.shared_weights(costs, rows.tree, along.remaining.power)
        return TreeStrategy(rows.tree, np.minimum(weights, 1.0))

    def _fitted(self, measurement: Measurement, linear: FloatArray) -> FloatArray:
        """Return cells that are not negative, and whole where that is wanted."""
        strategy, scales = measurement.strategy, measurement.scales
        assert isinstance(strategy, TreeStrategy)
        tree = strategy.tree
        fit = kernels.top_down_fit(measurement.noisy, scales.variances, tree)
        fit = np.maximum(fit, 0.0)
        if self.fit == "whole":
            # Coins come from what is published: the same release is the same again.
            coins = coins_of(measurement.noisy)
            whole = kernels.whole_families(fit, scales.exact, tree, coins)
            fit = whole.astype(np.float64)
        return measurement.buckets.expand(fit[: tree.leaves].copy())

    def expected_error(self, workload: Any = None) -> FloatArray:
        """Return the expected squared error of each query, before any fit.

        Exact for the noise that would be drawn, and free: no data is read. That of
        levels takes O(districts) (Lemma NE3).

        Parameters
        ----------
        workload : Workload, str, GroupedAnswers, mapping or array-like, optional
            The queries: the name of a level; what `release.of` returned; districts as
            `release.of` takes them, a mapping from ids of cells to names or the name of
            the district of each cell. By default the mechanism's own levels.

        Returns
        -------
        ndarray of float64, shape (queries,)
            In squared records, in the order of the queries.

        Raises
        ------
        InputError
            If there is no such level, or a mapping names a cell that there is not.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> nest = bf.Nesting.from_codes(["AA", "AB", "BA", "BB"], [1, 2])
        >>> policy = bf.policies.AddRemove(nest.domain)
        >>> nested = bf.Nested(policy, nest.workload(digits_2=1), epsilon=1)
        >>> nested.expected_error("digits_1").round(2)
        array([3.68, 3.68])
        >>> nested.expected_error({"AA": "school", "BA": "school"}).round(2)
        array([3.68])
        """
        if workload is None or isinstance(workload, Workload):
            asked = self.workload if workload is None else workload
            if not isinstance(asked, LevelTotals) or asked.nest != self.nest:
                return super().expected_error(workload)
            errors = [self._level_error(name) for name in asked.importance]
            return np.concatenate(errors)
        if isinstance(workload, str):
            self.nest.ids(workload)
            return self._level_error(workload)
        return super().expected_error(self._districts(workload)[0])

    def errors_by_district(self, districts: Any) -> dict[Any, float]:
        """Return the root mean squared error of each district, by its name.

        Before anything is paid, and from public values alone: least squares, before any
        fit. 0 means that a count is exact, infinity that it is not known.

        Parameters
        ----------
        districts : str, GroupedAnswers, mapping or array-like
            A level, or districts off the tree, as in `expected_error`.

        Returns
        -------
        dict
            The errors, in records.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> nest = bf.Nesting.from_codes(["AA", "AB", "BA", "BB"], [1, 2])
        >>> policy = bf.policies.AddRemove(nest.domain)
        >>> nested = bf.Nested(policy, nest.workload(digits_2=1), epsilon=1)
        >>> errors = nested.errors_by_district("digits_1")
        >>> {name: round(error, 2) for name, error in errors.items()}
        {'A': 1.92, 'B': 1.92}
        """
        if isinstance(districts, str):
            names: Any = self.nest.ids(districts)
        else:
            districts, names = self._districts(districts)
        errors = np.sqrt(self.expected_error(districts)).tolist()
        return dict(zip(names, errors, strict=True))

    def _districts(self, districts: Any) -> tuple[Workload, Sequence[Any]]:
        """Return districts off the tree as a workload, and their names."""
        if isinstance(districts, GroupedAnswers):
            return districts.queries(), list(districts)
        return named_districts(self.domain, districts)

    def _level_error(self, name: str) -> FloatArray:
        """Return the variance of each district of a level."""
        at = self.nest.names.index(name)
        level = self.nest.levels[at]
        if not level.is_whole:
            return super().expected_error(self.nest.level(name))
        (measurement,) = self._forecast.published
        strategy = measurement.strategy
        assert isinstance(strategy, TreeStrategy)
        after = kernels.node_variances(measurement.scales.variances, strategy.tree)
        variances = np.empty(len(level.ids))
        inside = level.labels >= 0
        variances[level.labels[inside]] = after[self.nest.rows.rows[at]][
            level.parts[inside]
        ]
        return variances / self.policy.units**2

    def errors_by_level(self) -> dict[str, float]:
        """Return the root mean squared error of the districts of each level.

        Before anything is paid, and from public values alone: least squares, before any
        fit. 0 means that a level is exact, infinity that it is not known: no level at
        or below it has any importance.
        """
        return {
            name: float(np.sqrt(self._level_error(name).mean()))
            for name in self.nest.names
        }


def _same_order(nest: Nesting, policy: Policy) -> Nesting:
    """Return the nesting over the policy's domain, if it lists the same cells alike."""
    over = nest.over(policy.domain)
    regular = policy.domain.attributes[0].regular
    if over.levels[-1].ids[:regular] != nest.levels[-1].ids:
        raise InputError(
            "the policy lists the smallest districts in another order than nest, so "
            "that labels of the one would be read as those of the other",
            way_out="Write nest = nest.over(domain) first, and take labels from it",
        )
    return over


def _over_the_domain_of(policy: Policy, workload: LevelTotals) -> LevelTotals:
    """Return the levels over the policy's domain, where that lists the same cells."""
    if workload.domain == policy.domain or policy.domain.ndim != 1:
        return workload
    listed = policy.domain.attributes[0].levels
    if listed is None or {*listed} < {*workload.nest.levels[-1].ids}:
        return workload
    return LevelTotals(_same_order(workload.nest, policy), workload.importance)
