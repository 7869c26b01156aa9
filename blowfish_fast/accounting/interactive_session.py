"""Questions one at a time, each paid from a ledger: noisy counts, sums, partitions.

The model of interactive platforms, under any policy. The session holds the data; who
asks sees noisy answers only.

    question    ->  integer rows over the cells   how far does an edge move them?
    charge      ->  the ledger, before anything is drawn
    answer      <-  rows + discrete noise of that scale, kept under the request's name

A partition by an attribute is one question with a row per part. A record that enters,
leaves or moves inside a part changes one row, so the parts together cost no more than
one of them; an edge between two parts changes two rows, and the exact sensitivity
counts both. Proof: ``docs/proofs/session.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.axes import Axis, from_level_list
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.predicates import (
    Cover,
    everything,
    groups_of,
    intersection,
    read_conditions,
)
from blowfish_fast.errors import DomainError, InputError, LedgerError
from blowfish_fast.measure.budgets import Budget, BudgetTerms
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.release.group_answers import Estimate, GroupedAnswers
from blowfish_fast.release.release import Release

from .integer_questions import IntegerRows, whole_cells
from .ledger import Ledger
from .request import RandomLike


class Session:
    """Interactive questions about one histogram, paid from one ledger.

    Parameters
    ----------
    ledger : Ledger
        Its policy says what stays indistinguishable; its budget pays.
    data : Histogram or array_like of counts
        Over the domain of the ledger's policy. The session keeps it; hand out answers,
        not the session.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    >>> sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    >>> policy = bf.policies.AddRemove(bf.Domain.product(ages, sexes))
    >>> ledger = bf.Ledger(None, epsilon=1, policy=policy)
    >>> session = bf.Session(ledger, [[30, 20]] * 10)
    >>> women = session.noisy_count(sex="F", epsilon=0.2, rng=1)
    >>> by_sex = session.partition("sex").noisy_count(epsilon=0.3, rng=2)
    >>> years = session.noisy_sum("age", epsilon=0.1, rng=3)
    >>> sorted(by_sex), ledger.remaining
    (['F', 'M'], Fraction(2, 5))
    """

    def __init__(self, ledger: Ledger, data: Any) -> None:
        if not isinstance(ledger, Ledger):
            raise LedgerError(
                "a session is paid from a Ledger",
                received=repr(ledger),
                way_out="Write Session(Ledger(path, epsilon=..., policy=...), data)",
            )
        domain = ledger.policy.domain
        self._data = data if isinstance(data, Histogram) else Histogram(domain, data)
        if self._data.domain != domain:
            raise DomainError(
                "data and the ledger's policy lie over one Domain",
                received=f"{data.domain!r} and {domain!r}",
            )
        self.ledger = ledger

    @property
    def domain(self) -> Domain:
        """The public cells."""
        return self._data.domain

    def noisy_count(
        self,
        conditions: Mapping[Any, Any] | None = None,
        /,
        *,
        epsilon: Any = None,
        request: str | None = None,
        rng: RandomLike | None = None,
        **named: Any,
    ) -> Estimate:
        """Count the records that meet conditions, with noise.

        Parameters
        ----------
        conditions, named
            As for ``release.where``, but along borders of cells: nothing finer is
            known of the data here.
        epsilon, rho, delta : number
            Charged to the ledger before anything is drawn: `epsilon`, or `rho`, or
            `epsilon` with `delta`, as for every mechanism.
        request : str, optional
            Name of the question; asked again under it, the stored answer comes back.
        rng : int or numpy Generator, optional
            A seed, for experiments with a ledger in memory.
        """
        budget = _pop_budget(epsilon, named)
        question = self._question(conditions, named)
        return question.ask(self.ledger, self._data, budget, request, rng)[()]

    def noisy_sum(
        self,
        name: str | int,
        conditions: Mapping[Any, Any] | None = None,
        /,
        *,
        epsilon: Any = None,
        low: float | None = None,
        high: float | None = None,
        step: Any = None,
        request: str | None = None,
        rng: RandomLike | None = None,
        **named: Any,
    ) -> Estimate:
        """Sum an attribute over the records that meet conditions, with noise.

        Parameters
        ----------
        name : str or int
            A numeric attribute; a record counts with the middle of its cell.
        conditions, named, epsilon, rho, delta, request, rng
            As for `noisy_count`.
        low, high : float, optional
            Public bounds: values are clamped to them. Noise grows with the largest
            value that a record can add or the longest way it can move.
        step : number, optional
            Values are rounded to multiples of it, so that sums are whole numbers of
            steps; a power of two, by default, far below the largest value.
        """
        budget = _pop_budget(epsilon, named)
        question = self._question(conditions, named)
        question.weigh(self.domain.axis(name), low, high, step)
        return question.ask(self.ledger, self._data, budget, request, rng)[()]

    def partition(self, name: str | int, bins: Any = None, /, **named: Any) -> Parts:
        """Divide the records by the cells of an attribute, or by `bins` of it.

        `bins` are edges in values, or a mapping from names to conditions that exclude
        each other; `named` are conditions on all parts.
        """
        axis = self.domain.axis(name)
        selected = self._covers(None, named)
        groups = groups_of(self.domain.attributes[axis], selected[axis], bins)
        for at, (_, one) in enumerate(groups):
            if any(intersection(one, other) for _, other in groups[:at]):
                raise InputError(
                    f"parts must exclude each other; {groups[at][0]!r} shares cells "
                    "with an earlier one"
                )
        return Parts(self, axis, selected, groups)

    def _question(
        self, conditions: Mapping[Any, Any] | None, named: Mapping[str, Any]
    ) -> IntegerRows:
        selected = self._covers(conditions, named)
        return IntegerRows(self.domain, [[one] for one in selected])

    def _covers(
        self, conditions: Mapping[Any, Any] | None, named: Mapping[str, Any]
    ) -> list[Cover]:
        selected = [everything(one) for one in self.domain.attributes]
        for axis, cover in read_conditions(
            self.domain, {**(conditions or {}), **named}
        ).items():
            selected[axis] = cover
        return selected

    def __repr__(self) -> str:
        return f"Session({self.ledger!r}, {self.domain!r}, counts hidden)"

    def _repr_html_(self) -> str:
        """Show the ledger that pays in a notebook; counts stay hidden."""
        from blowfish_fast._support.html import panel

        shown = self.ledger._repr_html_()
        return panel(f"Session over {self.domain!r}, counts hidden", drawing=shown)


class Parts:
    """Records divided by one attribute; each question is asked of all parts at once.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    >>> ledger = bf.Ledger(None, epsilon=1, policy=bf.policies.AddRemove(sexes))
    >>> parts = bf.Session(ledger, [30, 20]).partition("sex")
    >>> sorted(parts.noisy_count(epsilon=0.5, rng=1))
    ['F', 'M']
    """

    def __init__(
        self,
        session: Session,
        axis: int,
        selected: list[Cover],
        groups: list[tuple[Any, Cover]],
    ) -> None:
        self._session = session
        self._axis = axis
        self._selected = selected
        self._groups = groups

    @property
    def names(self) -> list[Any]:
        """What the parts are called."""
        return [name for name, _ in self._groups]

    def _question(self) -> IntegerRows:
        axes = [[one] for one in self._selected]
        axes[self._axis] = [part for _, part in self._groups]
        return IntegerRows(self._session.domain, axes)

    def noisy_count(
        self,
        *,
        request: str | None = None,
        rng: RandomLike | None = None,
        **budget: Unpack[BudgetTerms],
    ) -> GroupedAnswers:
        """Count the records of every part, for one charge of `epsilon` or `rho`."""
        return self._ask(self._question(), Budget.stated(**budget), request, rng)

    def noisy_sum(
        self,
        name: str | int,
        *,
        low: float | None = None,
        high: float | None = None,
        step: Any = None,
        request: str | None = None,
        rng: RandomLike | None = None,
        **budget: Unpack[BudgetTerms],
    ) -> GroupedAnswers:
        """Sum an attribute over every part, for one charge; see `Session.noisy_sum`."""
        question = self._question()
        question.weigh(self._session.domain.axis(name), low, high, step)
        return self._ask(question, Budget.stated(**budget), request, rng)

    def _ask(
        self,
        question: IntegerRows,
        budget: Budget,
        request: str | None,
        rng: RandomLike | None,
    ) -> GroupedAnswers:
        session, groups = self._session, [(self._axis, self.names)]
        return question.ask(session.ledger, session._data, budget, request, rng, groups)

    def release(
        self,
        recipe: Callable[[Domain], Mechanism],
        *,
        request: str | None = None,
        rng: RandomLike | None = None,
    ) -> dict[Any, Release]:
        """Release a histogram of every part, for the price of the largest.

        Parameters
        ----------
        recipe : callable
            From the domain of a part (all attributes, with the part's cells only) to
            a mechanism over it, with a policy that has at least the ledger's edges
            inside the part.
        request, rng
            As for `Ledger.release_disjoint`, which refuses, before any charge, where
            an edge of the policy joins two parts.
        """
        whole = [everything(one) for one in self._session.domain.attributes]
        whole[self._axis] = self._selected[self._axis]
        if whole != self._selected:
            raise InputError(
                "parts are released whole; ask for partition(...) without conditions"
            )
        parts = [self._part(recipe, cover) for _, cover in self._groups]
        answers = self._session.ledger.release_disjoint(
            parts, by="regions", request=request, rng=rng
        )
        return dict(zip(self.names, answers, strict=True))

    def _part(
        self, recipe: Callable[[Domain], Mechanism], cover: Cover
    ) -> tuple[Mechanism, IntArray, IntArray]:
        domain = self._session.domain
        along = whole_cells(cover)
        attributes = list(domain.attributes)
        attributes[self._axis] = _with_cells(attributes[self._axis], along)
        numbers = np.arange(domain.size).reshape(domain.shape)
        cells = numbers.take(along, axis=self._axis)
        counts = self._session._data.counts.take(along, axis=self._axis)
        return recipe(Domain._of(attributes)), counts, cells.reshape(-1)

    def __repr__(self) -> str:
        name = self._session.domain.column_names[self._axis]
        return f"Parts(by {name}: {len(self._groups)})"


def _with_cells(attribute: Axis, cells: IntArray) -> Axis:
    """Return an attribute of some cells of another; edges stay where cells touch."""
    if attribute.levels is not None:
        return from_level_list([attribute.levels[one] for one in cells], attribute.name)
    touching = (np.diff(cells) == 1).all() and cells[-1] < attribute.regular
    if attribute.cuts is None or not touching:
        return Axis(cells.size, attribute.name)
    cuts = attribute.cuts[int(cells[0]) : int(cells[-1]) + 2]
    return Axis(cells.size, attribute.name, cuts=cuts, unit=attribute.unit)


def _pop_budget(epsilon: Any, named: dict[str, Any]) -> Budget:
    """Read the budget of a question, whose other names are conditions."""
    rho, delta = named.pop("rho", None), named.pop("delta", None)
    return Budget.stated(epsilon=epsilon, rho=rho, delta=delta)
