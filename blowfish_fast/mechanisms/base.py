"""What every mechanism shares: one recipe, run by releases and predictions alike."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from blowfish_fast._support.machine import check_memory
from blowfish_fast._support.plug_ins import outside_parts
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import (
    NamingRightWords,
    as_counts,
    as_share,
    check_progress,
    naming_right_words,
    quoted,
)
from blowfish_fast.data.domain import Domain, is_wide
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.sparse import FilledCells, SparseHistogram
from blowfish_fast.errors import (
    BlowfishError,
    DataDependentError,
    DomainError,
    InputError,
    PlugInError,
    PolicyError,
    WorkloadError,
)
from blowfish_fast.measure.budgets import Budget, HasBudget
from blowfish_fast.measure.handle import (
    Account,
    DryRunEnded,
    Forecast,
    Handle,
    Measurement,
    Pricing,
    Progress,
    Rehearsal,
)
from blowfish_fast.measure.linear_strategy import LinearStrategy, PreparedStrategy
from blowfish_fast.measure.selectors.partitions.base import Partition
from blowfish_fast.measure.strategies.cells_above import ListedCells
from blowfish_fast.measure.unseen import ended_by_signal, run_unseen
from blowfish_fast.policies import Policy
from blowfish_fast.release.file import Release
from blowfish_fast.release.guarantee import Guarantee, new_identity
from blowfish_fast.release.release import HistogramRelease, IntervalScope
from blowfish_fast.workloads import Identity, Workload, random_boxes

from .example_data import Example

if TYPE_CHECKING:
    from blowfish_fast.measure.randomness import DrawKey, Randomness


PIECE_BYTES = 128
"""What one piece of a query, or one edge of a policy, takes in a release."""


FAILED_OUTSIDE = "defined outside blowfish_fast, failed"
"""What is said of a class from elsewhere whose own code failed."""


@contextmanager
def blamed_on(places: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Run a block in which code from outside the package may be called.

    Such code may raise any exception. An error that the package raised on purpose
    passes as it is; any other one becomes a `PlugInError` that names the code, with the
    exception as its cause. What fails between the first look at counts and the stored
    answer never comes here in its own words, which might tell of the data: it leaves
    the draw as a `FailedDrawError` (`run_unseen`).

    Parameters
    ----------
    places : callable
        Returns what was defined outside, each as ``"package:Class"``; asked only where
        something failed. Where it returns nothing the fault is ours, and passes as it
        is.

    Yields
    ------
    None
        The block runs.

    Raises
    ------
    PlugInError
        If the block failed, and something in it was defined outside.

    Examples
    --------
    >>> with blamed_on(lambda: ["mine:Mechanism"]):
    ...     raise ValueError("no widths")
    Traceback (most recent call last):
    ...
    blowfish_fast.errors.PlugInError: mine:Mechanism, defined outside ...
    """
    try:
        yield
    except (BlowfishError, MemoryError):
        raise
    except (Exception, SystemExit) as problem:
        # Code that ends the whole program, sys.exit("..."), failed too: a server and
        # the next question go on. Whoever stops the program itself is obeyed.
        outside = [] if ended_by_signal(problem) else places()
        if not outside:
            raise
        raise PlugInError(
            f"{', '.join(outside)}, {FAILED_OUTSIDE}",
            received=f"{type(problem).__name__}: {problem}",
            way_out="The fault is in that code, or in how it calls the package: mend "
            "it there, or ask its author",
            code="plug_in_failed",
        ) from problem


@dataclass(frozen=True)
class Outcome:
    """What a recipe hands back: cells in C order, and where they come from.

    Attributes
    ----------
    estimate : ndarray of float64, shape (cells,)
        The estimated cells.
    measurements : list[Measurement]
        All measurements that were made, in their order.
    details : dict[str, object], optional
        Public by-products.
    unfitted : ndarray of float64, optional
        The linear estimate, where the estimate is a fit of it.
    interval_scope : IntervalScope, default 'noise'
        What intervals account for.
    stacked : Measurement, optional
        Where the linear estimate comes from some of the measurements, these as one; the
        release holds it.
    listed : ListedCells, optional
        A list of cells, where that is all that is published.

    Examples
    --------
    >>> outcome = Outcome(estimate=np.array([2.0, 1.0]), measurements=[])
    >>> outcome.interval_scope, outcome.published
    ('noise', ())
    """

    estimate: FloatArray
    measurements: list[Measurement]
    details: dict[str, Any] = field(default_factory=dict)
    unfitted: FloatArray | None = None
    interval_scope: IntervalScope = "noise"
    stacked: Measurement | None = None
    listed: ListedCells | None = None

    @property
    def fresh(self) -> bool:
        """Whether no measurement in the stack laid out a later one."""
        return self.stacked is None or len(self.measurements) == 1

    @classmethod
    def of(
        cls,
        measurement: Measurement,
        details: dict[str, Any] | None = None,
        *,
        fit: Callable[[FloatArray], FloatArray] | None = None,
        measurements: list[Measurement] | None = None,
    ) -> Self:
        """Publish the linear estimate of a measurement, or of a stack, or its fit.

        Parameters
        ----------
        measurement : Measurement
            What was measured.
        details : dict[str, object], optional
            Public by-products.
        fit : Callable[[ndarray of float64], ndarray of float64], optional
            Makes a fit of the linear estimate.
        measurements : list[Measurement], optional
            All measurements, where `measurement` is a stack of some.

        Returns
        -------
        Self
            The outcome.
        """
        linear = measurement.estimate()
        estimate = linear if fit is None else fit(linear)
        return cls(
            estimate,
            [measurement] if measurements is None else measurements,
            details or {},
            unfitted=None if estimate is linear else linear,
            stacked=None if measurements is None else measurement,
        )

    @property
    def published(self) -> tuple[Measurement, ...]:
        """What a release keeps: the stack, or every measurement."""
        return tuple(self.measurements) if self.stacked is None else (self.stacked,)


class Mechanism(NamingRightWords, HasBudget, ABC):
    """A private release of a histogram, tuned to a workload, under a policy.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget, spent in full by one release, read as the decimals typed: `epsilon`
        alone (pure privacy, Laplace noise), `rho` alone (zero-concentrated privacy,
        Gaussian noise), or `epsilon` with `delta`, which takes the largest rho that
        certainly implies (epsilon, delta).

    Notes
    -----
    Options of mechanisms have one name each. `share`: the part of epsilon for the first
    of two steps (partition, choice, medians, noisy cells, coarse grid; sizes in each
    round of `KMeans`), the rest for the second. `partition` and `strategy`: how buckets
    are chosen, and what is measured. `levels` and `fan_out`: depth and width of a tree.
    `fit`: what is done to the estimate afterwards, at no cost; None leaves the linear
    estimate, and "best" is chosen by policy and workload.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(8)
    >>> mechanism = bf.Ordered(
    ...     bf.policies.Line(line), bf.workloads.Prefixes(line), epsilon=0.5
    ... )
    >>> mechanism.expected_error().shape, round(mechanism.expected_total_error())
    ((8,), 55)
    >>> mechanism.at_epsilon("0.1").to_dict()["epsilon"], mechanism.memory_needed() > 0
    ('1/10', True)
    >>> mechanism.at(Fraction(1, 4) * mechanism.budget).epsilon
    Fraction(1, 8)
    >>> mechanism.release([3, 1, 0, 0, 2, 5, 1, 0], rng=1).private
    False
    """

    name: ClassVar[str]
    cell_bytes: ClassVar[int] = 384
    """Memory that a release takes per cell at most, whatever the data."""
    reads_workload: ClassVar[bool] = True
    """Whether the recipe holds the queries over its cells or buckets."""
    cells_by_default: ClassVar[bool] = False
    """Whether it is for single cells, which are asked where no workload is stated."""
    takes_wide: ClassVar[bool] = False
    """Whether it serves a `WideDomain`, whose cells nobody lists."""
    example_case: ClassVar[Example]
    budget: Budget

    def __init__(
        self,
        policy: Policy,
        workload: Workload | None,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
    ) -> None:
        if not isinstance(policy, Policy):
            raise PolicyError(
                f"state the policy first, such as policies.Full(domain); received "
                f"{quoted(policy)}"
            )
        if workload is None and self.cells_by_default:
            workload = Identity(policy.domain)
        if not isinstance(workload, Workload):
            raise WorkloadError(
                "state the workload second, such as workloads.Identity(domain); "
                f"received {quoted(workload)}"
            )
        if is_wide(policy.domain) and not self.takes_wide:
            raise DomainError(
                f"{type(self).__name__} lists the cells of the domain",
                received=f"a wide domain of {policy.domain.size:,} cells",
                way_out="List its heavy cells with SparseLaplace, publish tables with "
                "Contingency, or take a marginal: TablePolicy.through, domain.marginal",
            )
        if workload.domain.attributes != policy.domain.attributes:
            raise DomainError(
                f"policy and workload must share one domain; received "
                f"{policy.domain!r} and {workload.domain!r}"
            )
        # Persons without a bound on their records are refused here.
        assert policy.group_size >= 1
        self.policy = policy
        self.workload = workload
        self.budget = Budget.stated(epsilon=epsilon, rho=rho, delta=delta)
        # What `_hold` made last, and the budget that it was planned for.
        self._prepared: PreparedStrategy | None = None
        self._planned_at: Budget | None = None

    @property
    def domain(self) -> Domain:
        """The domain of policy and workload."""
        return self.policy.domain

    def _require_one_attribute(self, does: str) -> None:
        """Refuse a domain of several attributes; `does` says what the recipe does."""
        if self.domain.ndim != 1:
            raise DomainError(
                f"{type(self).__name__} {does} one ordered attribute; this domain has "
                f"{self.domain.ndim}. Project the policy onto one of them, or use "
                "Laplace or Dawa on several"
            )

    @final
    def at_epsilon(self, epsilon: Any) -> Self:
        """Return the same mechanism with another epsilon."""
        return self.at(Budget.stated(epsilon=epsilon))

    @final
    def at(self, budget: Budget) -> Self:
        """Return the same mechanism with another budget, in either currency."""
        other = copy.copy(self)
        other.budget = budget
        told = ("_dry_run", "_forecast", "_rehearsed")
        for memo in (*told, "_price", "_priced", "_smoothing"):
            other.__dict__.pop(memo, None)
        return other

    @abstractmethod
    def _run(self, private: Handle) -> Outcome:
        """Follow the recipe."""

    @final
    def _hold(
        self, private: Handle, plan: Callable[[], LinearStrategy]
    ) -> PreparedStrategy:
        """Return what the recipe measures with all that is left, prepared once.

        For strategies that public values alone choose: rehearsal, dry run and every
        release of one mechanism then use the same one, and `plan` is asked once for
        each policy and budget.
        """
        policy, budget = private.policy, private.remaining
        held = self._prepared
        if held is None or held.policy is not policy or self._planned_at != budget:
            held = private.prepare(plan(), budget=budget)
            self._prepared, self._planned_at = held, budget
        return held

    @classmethod
    def example(cls, domain: Domain, policy: Policy, epsilon: Any) -> tuple[Self, Any]:
        """Return a mechanism and data on which audits and benchmarks run it.

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
        data, options, cells = cls.example_case
        workload = Identity(domain) if cells else random_boxes(domain, 8, rng=1)
        return cls(policy, workload, epsilon=epsilon, **options), data(domain)

    def _notes(self) -> tuple[str, ...]:
        """Say how the mechanism is calibrated to a policy, where that is not plain."""
        return ()

    def _cells(self) -> int:
        """Return how many counts are held: one per cell, but for tables."""
        return self.domain.size

    def _bytes_per_cell(self) -> int:
        """Bound what a release takes for each count, from public sizes and choices."""
        return self.cell_bytes

    def _pieces(self) -> int:
        """Bound the pieces of queries, and edges, that a release holds at a time."""
        return self.workload._pieces() if self.reads_workload else 0

    def _kept_bytes(self) -> int:
        """Bound what a release keeps beside its rows once intervals were asked for."""
        return 0

    @final
    def memory_needed(self) -> int:
        """Return how many bytes a release may take, from public sizes alone.

        Beyond what a small one takes (``machine.BASE_BYTES``). `release` does not start
        where there is less; a ledger, which keeps the answer, asks for twice as much.
        """
        drawn = self._bytes_per_cell() * self._cells() + PIECE_BYTES * self._pieces()
        return drawn + self._kept_bytes()

    @final
    @naming_right_words
    def release(
        self,
        data: Any,
        rng: int | np.random.Generator | DrawKey | None = None,
        *,
        progress: Progress | None = None,
    ) -> Release:
        """Spend the budget once on `data` and publish the result.

        Parameters
        ----------
        data : Histogram or array-like
            The true counts.
        rng : int or numpy.random.Generator, optional
            A seed, or a generator, makes the release reproducible and marks it as an
            experiment; without it secure noise is drawn.
        progress : Progress, optional
            Called with "checking", "drawing" and "drawn", whatever the data are, and
            never between the last two.

        Returns
        -------
        Release
            The release.

        Raises
        ------
        CountsError
            If the counts do not fit the domain.
        SizeError
            If there is too little memory; nothing is drawn then.
        """
        check_progress(progress)
        report = progress or (lambda _step: None)
        report("checking")
        what = f"{self.name} on {self._cells():,} cells"
        check_memory(self.memory_needed(), what, "nothing was drawn")
        self.check_feasible()
        counts = self._counts(data)
        from blowfish_fast.measure.randomness import Randomness

        source = Randomness(rng)
        report("drawing")
        # Only a seeded draw lets out what went wrong in it.
        blamed = nullcontext() if source.secure else blamed_on(self._outside_parts)
        with blamed:
            release = run_unseen(
                lambda: self._drawn(counts, source), secure=source.secure
            )
        report("drawn")
        return release

    @final
    def _drawn_as_step(self, data: Any, source: Randomness) -> Release:
        """Draw as a step of another mechanism, unseen, from the same source."""
        return self._drawn(self._counts(data), source)

    def _drawn(self, counts: Any, source: Randomness) -> Release:
        """Look, draw and pack: everything that runs unseen."""
        account = Account(self.budget)
        outcome = self._run(self._handle(counts, account, source))
        guarantee = Guarantee.of(
            self.policy, account.spent, secure=source.secure, notes=self._notes()
        )
        return self._published(outcome, guarantee)

    @final
    def check_feasible(self) -> None:
        """Refuse, by public values alone, what a release could not do: Lemma HA5.

        Every step that some draw may lead to is priced with the least budget that it
        may get. `release` asks this before it looks at counts, a ledger before it
        charges, and `Ledger.preview` says what it found. Free; reads no data.

        Raises
        ------
        BlowfishError
            If a step could not be carried out; which, and what would help.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> line = bf.Domain(8)
        >>> policy, asked = bf.policies.Line(line), bf.workloads.Prefixes(line)
        >>> bf.Ordered(policy, asked, epsilon=0.5).check_feasible()
        """
        _ = self._rehearsed

    @cached_property
    def _rehearsed(self) -> bool:
        """Whether the rehearsal went well; it is held once for each budget."""
        handle = self._handle(None, Account(self.budget), None)
        with blamed_on(self._outside_parts):
            self._rehearse(Rehearsal.over(handle))
        return True

    def _outside_parts(self) -> list[str]:
        """Return what was defined outside the package, itself included."""
        return outside_parts(self)

    def _price_in_rho(self) -> Fraction:
        """Return what a release costs in rho, from public values alone: Lemma ZC8."""
        unread = self._handle(None, Account(self.budget), None)
        with blamed_on(self._outside_parts):
            return Pricing.in_rho(unread, self._run)

    def _rehearse(self, private: Rehearsal) -> None:
        """Ask for every step that some draw may lead to, and draw nothing.

        By default the recipe up to its first choice: what `measure` asks for behind it
        never fails, whatever policy and budget are left (Lemma HA6). A recipe with a
        further choice, or with branches, asks for these here.
        """
        # The rehearsal ends at a choice, or where the recipe itself refuses a dry run.
        with suppress(DryRunEnded, DataDependentError):
            self._checked(self._run(private))

    def _checked(self, outcome: Outcome) -> Outcome:
        """Refuse what a recipe hands back if no release can be made of it.

        Asked without counts, so it is said before anything is charged. It is the
        recipe's fault, and no deliberate error of the package: if the recipe was
        defined outside the package, `blamed_on` names it.
        """
        own_release = type(self)._published is Mechanism._published
        if not own_release or is_wide(self.domain):
            return outcome
        estimate = np.asarray(_as_outcome(outcome).estimate)
        cells = self.domain.size
        if estimate.dtype.kind not in "iuf" or estimate.size != cells:
            raise ValueError(
                f"the estimate of an Outcome has a number for each of {cells} cells; "
                f"it has shape {estimate.shape} and dtype {estimate.dtype}"
            )
        return outcome

    def _published(self, outcome: Outcome, guarantee: Guarantee) -> Release:
        """Pack what the recipe handed back, in whole persons where these count once."""
        units, shape, unfitted = self.policy.units, self.domain.shape, outcome.unfitted
        return HistogramRelease(
            domain=self.domain,
            estimate=outcome.estimate.reshape(shape) / units,
            mechanism=self.name,
            guarantee=guarantee,
            measurements=outcome.published,
            details=outcome.details,
            interval_scope=outcome.interval_scope,
            fresh=outcome.fresh,
            unfitted=None if unfitted is None else unfitted.reshape(shape) / units,
            version=_version(),
            units=units,
            identity=new_identity(guarantee),
        )

    def _handle(
        self, counts: Any, account: Account, source: Randomness | None
    ) -> Handle:
        return Handle(counts, self.policy, account, source, **self._kept_apart())

    def _kept_apart(self) -> dict[str, Any]:
        """Return what a handle is told where counts are not those of single cells."""
        return {}

    def _counts(self, data: Any) -> Any:
        """Read the counts of all cells; of a wide domain, those of the filled ones."""
        if is_wide(self.domain):
            return self._filled_cells(data)
        if isinstance(data, Histogram):
            if data.domain != self.domain:
                raise DomainError(
                    f"the data lies over {data.domain!r} and the mechanism over "
                    f"{self.domain!r}; build both over one Domain"
                )
            self.policy._check_bound(data.bound)
            counts = data.counts
        else:
            self.policy._check_bound(None)
            counts = as_counts(data, self.domain.shape)
        return counts.reshape(-1)

    def _filled_cells(self, data: Any) -> FilledCells:
        """Read the cells that hold records, of a wide domain or of one that is listed.

        Parameters
        ----------
        data : SparseHistogram, Histogram or array-like
            The true counts.

        Returns
        -------
        FilledCells
            The cells and their counts.
        """
        domain = self.domain
        if isinstance(data, SparseHistogram):
            if data.domain.attributes != domain.attributes:
                raise DomainError(
                    f"the data lies over {data.domain!r} and the mechanism over "
                    f"{domain!r}; build both over one domain"
                )
            self.policy._check_bound(data.bound)
            return FilledCells(data.keys, data.counts)
        if is_wide(domain):
            raise InputError(
                "counts of a wide domain are those of a SparseHistogram",
                received=quoted(data),
                way_out="Write SparseHistogram.from_records(domain, records)",
            )
        return FilledCells.of(Mechanism._counts(self, data))

    @cached_property
    def _dry_run(self) -> Outcome:
        with blamed_on(self._outside_parts):
            return self._checked(
                self._run(self._handle(None, Account(self.budget), None))
            )

    @cached_property
    def _forecast(self) -> Outcome:
        handle = self._handle(None, Account(self.budget), None)
        with blamed_on(self._outside_parts):
            return _as_outcome(self._run(Forecast.over(handle)))

    def _predictable(self, workload: Workload | None) -> tuple[Measurement, Workload]:
        asked = self.workload if workload is None else workload
        if asked.domain != self.domain:
            raise DomainError(
                f"the workload lies over {asked.domain!r} and the mechanism over "
                f"{self.domain!r}"
            )
        outcome = self._forecast
        if outcome.interval_scope == "nothing" or len(outcome.published) != 1:
            raise DataDependentError(
                f"the error of {self.name} depends on the data; it cannot be predicted"
            )
        return outcome.published[0], asked

    def expected_error(self, workload: Workload | None = None) -> FloatArray:
        """Return the expected squared error of each query, before any fit.

        Exact for the noise that would be drawn, and free: no data is read. Raises
        `DataDependentError` for mechanisms that choose from the data.
        """
        measurement, asked = self._predictable(workload)
        asked._refuse_too_many()
        form = asked.explicit_form(measurement.buckets)
        spread = measurement.law.spread(form)
        return spread.variance / self.policy.units**2

    def expected_total_error(self, workload: Workload | None = None) -> float:
        """Return the expected squared error summed over all queries, before any fit."""
        measurement, asked = self._predictable(workload)
        form = asked.form(measurement.buckets)
        total = measurement.law.total_variance(form)
        return total / self.policy.units**2

    @final
    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON; epsilon or rho as an exact fraction in text."""
        return {
            "mechanism": self.name,
            **self.budget.to_dict(),
            "policy": self.policy.to_dict(),
            "workload": self.workload.to_dict(),
            "options": self._options(),
        }

    def _options(self) -> dict[str, Any]:
        """Return what the recipe was told beyond policy, workload and epsilon."""
        # A copy: another thread may derive something for the first time meanwhile.
        held = dict(vars(self))
        options = {name: value for name, value in held.items() if name[0] != "_"}
        for own in ("policy", "workload", "budget"):
            del options[own]
        for name, value in options.items():
            if isinstance(value, Fraction):
                options[name] = str(value)
            elif not (value is None or isinstance(value, bool | int | float | str)):
                options[name] = getattr(value, "name", type(value).__name__)
        return options

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.policy!r}, {self.workload!r}, "
            f"{self.budget.currency}={float(self.budget):g})"
        )

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel

        promise = Guarantee.of(
            self.policy, self.budget, secure=True, notes=self._notes()
        )
        spent = f"{float(self.budget):g}, spent in full by one release"
        rows: list[tuple[str, Any]] = [
            (self.budget.currency, spent),
            ("policy", repr(self.policy)),
            ("workload", repr(self.workload)),
            ("memory", f"at most {self.memory_needed() / 2**20:,.3g} MiB"),
        ]
        rows += self._options().items()
        return panel(type(self).__name__, rows, sentence=str(promise))


def _as_outcome(handed_back: Any) -> Outcome:
    """Refuse what a recipe hands back in place of an outcome: the recipe's fault."""
    if not isinstance(handed_back, Outcome):
        raise TypeError(
            f"_run hands back an Outcome; it handed back {quoted(handed_back)}"
        )
    return handed_back


def read_partition(
    partition: Any, share: Any, shares: Mapping[str, Fraction] = MappingProxyType({})
) -> tuple[Partition | None, Fraction | None]:
    """Read a partition, or None, and its part of the budget.

    Parameters
    ----------
    partition : Partition or None
        What the caller gave.
    share : number, str, Fraction or None
        Its part of the budget; its own default if None.
    shares : Mapping[str, Fraction], default MappingProxyType({})
        Defaults of a mechanism, by the name of the partition.

    Returns
    -------
    partition : Partition or None
        The partition.
    share : Fraction or None
        Its part of the budget.

    Raises
    ------
    InputError
        If it is no partition, or a share was given without one.
    """
    if partition is None:
        if share is not None:
            raise InputError("share needs a partition, and there is none; leave it out")
        return None, None
    if not isinstance(partition, Partition):
        raise InputError(
            'partition must be "best", None, or a partition such as '
            f"partitions.LeastCost(); received {partition!r}"
        )
    own = shares.get(partition.name, partition.default_share)
    return partition, as_share(share, "share", own)


@cache
def _version() -> str:
    from blowfish_fast._support.version import __version__

    return __version__
