"""Lists of the heavy cells of a domain that may be far larger than memory."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from blowfish_fast._support.validation import as_fraction, as_whole
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.frames import Table
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.rules.keys import KeyClass
from blowfish_fast.data.rules.texts import WordRule
from blowfish_fast.errors import DomainError, EpsilonError, InputError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.strategies.cells_above import (
    CellClass,
    CellsAbove,
    ClassesAbove,
    cell_scales,
    false_mean,
    least_threshold,
)
from blowfish_fast.policies import Policy
from blowfish_fast.release.guarantee import Guarantee, new_identity
from blowfish_fast.release.wide.sparse_release import SparseRelease
from blowfish_fast.workloads import Identity

from .base import Mechanism, Outcome, _version
from .example_data import Example, repeated
from .wide_questions import MOST_CELLS

MOST_LISTED = 2**22
"""Cells of a list, unless stated otherwise."""

LISTED_BYTES = 96
"""What a listed cell takes while a list is drawn and put in order."""

HELD_BYTES = 2**25
"""What is held at a time of filled cells and of random words."""


class SparseLaplace(Mechanism):
    """List the cells whose noisy counts reach a threshold, on a domain of any size.

    Every cell gets discrete Laplace noise, the empty ones too, and a public threshold
    decides which are published. Empty cells are never visited: 2^60 of them take no
    longer than the filled ones.

    Parameters
    ----------
    policy : Policy
        Over a `WideDomain` of at most 2^62 cells, a `Domain`, or words nobody listed, a
        `KeyDomain`.
    false_cells : number, optional
        How many empty cells are listed in the mean: 1 if nothing is stated. The
        threshold is the least one that keeps it.
    threshold : int, optional
        The least noisy count that is listed, instead of `false_cells`. It is a public
        number: never choose it by looking at the records.
    most_listed : int
        Longer lists are cut off behind so many cells, in the order of the domain.
    epsilon, rho, delta : number
        The budget: `epsilon` alone here, the others for `SparseGaussian`.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: 1 when a record is added or removed, 2 when it moves, as for `Laplace`
        on cells; the list is a function of all noisy cells and a public threshold.
    Error: a listed count is off by the noise of its cell, and by more near the
        threshold T: between T and T + 4b (b the scale) it says only that the cell may
        be heavy. Cells below T are missed; of N cells N exp(-T/b) / (1 + exp(-1/b))
        are listed though empty.
    Complexity: O(filled + listed) time; memory for the list, and a constant.
    Source: G. Cormode, C. Procopiuc, D. Srivastava, T. Tran. Differentially private
        summaries for sparse data. ICDT 2012; exact here, by digits of gaps instead of
        binomial numbers; proof in ``docs/proofs/sparse_laplace.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> people = bf.Domain(2**28, names=["person"])
    >>> hours = bf.Domain(2**28, names=["hour"])
    >>> visits = bf.WideDomain.product(people, hours)
    >>> policy = bf.policies.AddRemove(visits)
    >>> heavy = bf.SparseLaplace(policy, epsilon=1, false_cells="0.01")
    >>> heavy.threshold, round(float(heavy.expected_false_cells), 4)
    (44, 0.0041)
    >>> records = {"person": [7] * 900 + [8], "hour": [5] * 901}
    >>> data = bf.SparseHistogram.from_records(visits, records)
    >>> release = heavy.release(data, rng=1)
    >>> print(release.cells())
    person  hour  count  low  high
         7     5    899  896   902
    """

    name = "sparse_laplace"
    power: ClassVar[int] = 1
    """Of the currency: 1 for epsilon, 2 for rho."""
    cell_bytes = 0
    reads_workload = False
    takes_wide = True
    example_case = Example(partial(repeated, period=4, height=3), {"threshold": 2})

    def __init__(
        self,
        policy: Policy,
        *,
        false_cells: Any = None,
        threshold: Any = None,
        most_listed: int = MOST_LISTED,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
    ) -> None:
        asked: Any = Identity(policy.domain) if isinstance(policy, Policy) else None
        super().__init__(policy, asked, epsilon=epsilon, rho=rho, delta=delta)
        self._check_budget(self.budget)
        if self.domain.size > MOST_CELLS and self._words is None:
            raise DomainError(
                "lists are drawn from at most 2^62 cells",
                received=f"a domain of {self.domain.size:,}",
                way_out="Use coarser steps or fewer attributes",
            )
        if false_cells is not None and threshold is not None:
            raise InputError(
                "the threshold follows from the number of false cells, or is stated",
                received="both false_cells and threshold",
                way_out="Leave one out",
            )
        self.most_listed = as_whole(most_listed, "most_listed", 1)
        self.stated_threshold: int | None = None
        self.false_cells: Fraction | None = None
        if threshold is None:
            self.false_cells = _as_mean(1 if false_cells is None else false_cells)
        else:
            self.stated_threshold = as_whole(threshold, "threshold", 1)
        self._check_length()

    @classmethod
    def _check_budget(cls, budget: Budget) -> None:
        """Refuse a budget in the other currency, which means other noise."""
        if budget.power != cls.power:
            own, twin = ("SparseLaplace", "SparseGaussian")[:: 3 - 2 * cls.power]
            takes = "epsilon alone" if cls.power == 1 else "rho, or epsilon with delta"
            raise EpsilonError(
                f"{own} takes {takes}",
                received=budget.words(),
                way_out=f"Use bf.{twin} with the same arguments",
            )

    def _check_length(self) -> None:
        """Refuse a threshold so low that empty cells alone would fill the list."""
        if 2 * self.expected_false_cells > self.most_listed < self.domain.size:
            half = Fraction(self.most_listed, 2 * len(self._parts))
            enough = max(
                least_threshold(self._scales, part.cells, half) for part in self._parts
            )
            raise InputError(
                "a list has room for twice the empty cells that it would hold in the "
                "mean",
                received=f"{float(self.expected_false_cells):,.0f} of them, and room "
                f"for {self.most_listed:,} cells",
                way_out=f"Raise the threshold to {self._shown(enough)} or more, or "
                "most_listed",
            )

    @property
    def _words(self) -> WordRule | None:
        """Which words there are, where nobody listed them."""
        return self.domain.attributes[0].keys

    @property
    def _parts(self) -> list[KeyClass]:
        """Consecutive cells that share a threshold: all of them, or words by length."""
        rule = self._words
        if rule is None:
            return [KeyClass(0, self.domain.size)]
        (attribute,) = self.domain.attributes
        words = rule.classes()
        strays = range(attribute.regular, attribute.size)
        return words + [KeyClass(cell, 1) for cell in strays]

    @property
    def _classes(self) -> list[CellClass]:
        """The public threshold of each part, in what is counted."""
        parts, units = self._parts, self.policy.units
        if self.stated_threshold is not None:
            stated = self.stated_threshold * units
            return [CellClass(*part, stated) for part in parts]
        assert self.false_cells is not None
        # Every part has as many false cells in the mean.
        mean = self.false_cells / len(parts)
        return [
            CellClass(*part, least_threshold(self._scales, part.cells, mean))
            for part in parts
        ]

    @property
    def _scales(self) -> Scales:
        each = self.budget.over(self.policy.group_size)
        return cell_scales(self.policy.unconstrained, each)

    def _shown(self, threshold: int) -> int | float:
        units = self.policy.units
        return threshold if units == 1 else threshold / units

    @property
    def threshold(self) -> int | float:
        """The least noisy count that is listed; public, and free to ask.

        Of words nobody listed, that of the longest ones: `thresholds` has the others.
        """
        return self._shown(max(cell_class.threshold for cell_class in self._classes))

    @property
    def thresholds(self) -> Table:
        """The threshold of words of each length, and of stray values; public, free.

        Of other domains all cells have one.
        """
        classes = self._classes
        names: list[str] = ["all"] * len(classes)
        if self._words is not None:
            (attribute,) = self.domain.attributes
            lengths = [str(at) for at in range(self._words.longest + 1)]
            names = lengths + list(attribute.extras)
        return Table(
            {
                "length": np.array(names, dtype=object),
                "threshold": np.array(
                    [self._shown(cell_class.threshold) for cell_class in classes]
                ),
            },
            experiment=False,
        )

    @property
    def expected_false_cells(self) -> Fraction:
        """How many cells are listed in the mean if all are empty; public, and free."""
        shares = (
            false_mean(self._scales, cell_class.cells, cell_class.threshold)
            for cell_class in self._classes
        )
        return sum(shares, Fraction(0))

    def largest_error(self, beta: Any, *, each: bool = False) -> int | float:
        """Return how far counts are off at most, but for a chance: Lemma SL11.

        It holds for all cells together: listed ones are off by their noise, the others
        count as 0. Public, and free to ask.

        Parameters
        ----------
        beta : number, str or Fraction in (0, 1)
            The probability that a count is farther off.
        each : bool
            Of one cell that was named beforehand, instead of all cells together.

        Returns
        -------
        int or float
            In records, or persons where the policy counts these.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> policy = bf.policies.AddRemove(bf.WideDomain(2**60, names="time"))
        >>> heavy = bf.SparseLaplace(policy, epsilon=1)
        >>> heavy.threshold, heavy.largest_error("0.05")
        (42, 85)
        >>> heavy.largest_error("0.05", each=True)
        44
        """
        chance = as_fraction(beta, "beta, the probability of a larger error,")
        if not 0 < chance < 1:
            raise InputError("beta lies strictly between 0 and 1", received=repr(beta))
        cells = 1 if each else self.domain.size
        # P(|Z| > h) is twice P(Z >= h + 1).
        half = least_threshold(self._scales, cells, chance / 2) - 1
        least = max(cell_class.threshold for cell_class in self._classes)
        return self._shown(least - 1 + half)

    def _run(self, private: Handle) -> Outcome:
        classes = self._classes
        lister: CellsAbove = ClassesAbove(classes, self.most_listed)
        if len(classes) == 1:
            ((_, cells, threshold),) = classes
            lister = CellsAbove(cells, threshold, self.most_listed)
        listed = private.list_above(lister, budget=private.remaining)
        return Outcome(listed.noisy[:0].astype(float), [], listed=listed)

    def _published(self, outcome: Outcome, guarantee: Guarantee) -> SparseRelease:
        assert outcome.listed is not None
        return SparseRelease(
            domain=self.domain,
            listed=outcome.listed,
            mechanism=self.name,
            guarantee=guarantee,
            details=outcome.details,
            version=_version(),
            units=self.policy.units,
            identity=new_identity(guarantee),
        )

    def _kept_bytes(self) -> int:
        listed = min(self.most_listed, self.domain.size)
        return LISTED_BYTES * listed + min(HELD_BYTES, 64 * self.domain.size)

    def _counts(self, data: Any) -> Any:
        return self._filled_cells(data)

    @classmethod
    def example(
        cls, domain: Domain, policy: Policy, epsilon: Any
    ) -> tuple[Self, Histogram]:
        """Return the mechanism with a low threshold, so that lists are varied.

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
        data, options, _ = cls.example_case
        budget = Budget.stated(epsilon=epsilon)
        term: dict[str, Any] = {"epsilon": budget} if cls.power == budget.power else {}
        if not term:
            term = {"rho": budget.rho}
        return cls(policy, **options, **term), data(domain)


def _as_mean(value: Any) -> Fraction:
    mean = as_fraction(value, "false_cells")
    if mean <= 0:
        raise InputError(
            "noise lifts some empty cells to any threshold: their mean number is above "
            "0",
            received=f"false_cells={value!r}",
            way_out="State 1, or 0.01 for one such cell in a hundred lists",
        )
    return mean


class SparseGaussian(SparseLaplace):
    """List the cells whose noisy counts reach a threshold, with Gaussian noise.

    The twin of `SparseLaplace` for budgets in rho, or in epsilon with delta: thresholds
    grow with the root of the logarithm of the number of cells.

    Parameters
    ----------
    policy : Policy
        Over a `WideDomain` of at most 2^62 cells, or a `Domain`.
    false_cells : number, optional
        How many empty cells are listed in the mean, as for `SparseLaplace`.
    threshold : int, optional
        The least noisy count that is listed, instead of `false_cells`; a public number.
    most_listed : int
        Longer lists are cut off behind so many cells, in the order of the domain.
    epsilon, rho, delta : number
        The budget that one release spends: `rho` alone, or `epsilon` with `delta`.

    Notes
    -----
    Guarantee: rho-zCDP for `policy`.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: the squared moves add up to 1 when a record is added or removed, to 2
        when it moves, as for `Gaussian` on cells; the list is a function of all noisy
        cells and a public threshold.
    Error: as for `SparseLaplace`, with noise of variance 1 / (2 rho) times the squared
        sensitivity.
    Complexity: as for `SparseLaplace`; the law of the noise is added up value by
        value, once for each scale and threshold.
    Source: as for `SparseLaplace`, with the noise of C. Canonne, G. Kamath, T.
        Steinke. The discrete Gaussian for differential privacy. NeurIPS 2020; proof in
        ``docs/proofs/sparse_laplace.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> people = bf.Domain(2**28, names=["person"])
    >>> visits = bf.WideDomain.product(people, bf.Domain(2**28, names=["hour"]))
    >>> policy = bf.policies.AddRemove(visits)
    >>> bf.SparseGaussian(policy, rho="0.01").threshold
    61
    """

    name = "sparse_gaussian"
    power = 2
