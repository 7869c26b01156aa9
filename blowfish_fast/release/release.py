"""What a mechanism publishes: public values only, and the promise that was kept."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray
from blowfish_fast._support.validation import as_confidence, quoted
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import (
    InputError,
    IntervalError,
    ShrunkCellsWarning,
)
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.noise import ROUNDED, Spread, largest_rounding
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.workloads import Prefixes, Workload

from .certificates import Certificate, release_digest
from .combination import CombinedRelease, add, add_disjoint, combine, subtract
from .file import Release, release_bytes, release_parts
from .grants import (
    BOUND_NAMES,
    Bias,
    Scope,
    Tabular,
    bias_of,
    check_scope,
    counted_records,
    counts_records,
    half_widths,
    holds_truth,
    noise_only_reason,
    say_noise_only,
    truth_sentence,
    with_answers,
)
from .guarantee import Guarantee
from .quantiles import (
    RankRows,
    as_parts,
    bounds_of_cells,
    cdf_bounds,
    cdf_values,
    check_ordered,
    in_values,
    linear_totals,
    quantile_bounds,
    quantile_places,
    scanned_places,
)
from .sampling.designs import SamplingDesign, as_design, design_from_dict
from .sampling.numbers import population_counts
from .sampling.sampled_release import (
    Method,
    has_exact,
    refuse_method,
    sampled_sentence,
    stated_design,
)

if TYPE_CHECKING:
    from typing import Self

    from blowfish_fast.data.frames import Table
    from blowfish_fast.data.places.districts import Districts

    from .group_answers import GroupedAnswers
    from .olap import Groups, Selection

IntervalScope = Literal["noise", "nothing"]


@dataclass(frozen=True, eq=False, repr=False)
class HistogramRelease(Tabular, Release):
    """A private estimate of a histogram.

    Attributes
    ----------
    domain : Domain
        The public cells.
    estimate : float64 of the domain's shape
        Estimated count of every cell; may be negative or fractional unless a fit was
        asked for.
    mechanism : str
        The name of the mechanism.
    guarantee : Guarantee
        What is promised; ``str()`` of it is a sentence.
    measurements : tuple of Measurement
        What was measured: the noisy numbers, the strategy whose rows they are, and the
        scales of their noise.
    details : mapping
        Public by-products of the mechanism: bucket edges, fan-out and the like.
    interval_scope : {"noise", "nothing"}
        What `intervals` account for at least; `holds_truth` says where they hold more.
    unfitted : float64 of the domain's shape, optional
        The linear estimate from which a fit made `estimate`; None where nothing was
        fitted. Intervals are centred on its answers, or on those of `estimate` where a
        certificate is used.
    version : str
        The version of the package that made the release.
    fresh : bool
        Whether the noise in the estimate had no part in what was measured.
    units : int
        Where each person counts once: parts of a person that were measured.
    certificates : tuple of Certificate
        What was bought to know how far answers are off; see `certified`.
    identity : str
        Drawn with secure noise: the same noise has the same one.
    design : SamplingDesign, optional
        How the records were drawn from a population; see `sampled`.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    >>> policy, asked = bf.policies.Line(ages), bf.workloads.Prefixes(ages)
    >>> mechanism = bf.Ordered(policy, asked, epsilon=1)
    >>> release = mechanism.release([3, 8, 15, 20, 18, 14, 11, 8, 2, 1], rng=1)
    >>> release.estimate.shape, release.answer(asked).shape
    ((10,), (10,))
    >>> release.intervals(asked, confidence=0.95).shape, release.private
    ((10, 2), False)
    >>> release.standard_errors(asked).round(2)[:3]
    array([1.36, 1.36, 1.36])
    >>> bool(release.holds_truth(asked).all()), release.interval_kind(asked)
    (True, 'truth')
    >>> release.interval_sentence("truth")
    'Each interval holds the true count with probability at least 0.95.'

    Selections, groups, running totals, synthetic records, tables and files:

    >>> young = release.where(age=slice(0, 25))
    >>> bool(10 < young.count() < 30), len(release.group_by("age").count())
    (True, 10)
    >>> float(release.rounded().estimate.sum())
    100.0
    >>> release.cdf().shape, release.cdf_intervals(confidence=0.9).shape
    ((10,), (10, 2))
    >>> low, high = release.quantile_intervals(0.5, confidence=0.9)
    >>> bool(low <= release.quantile(0.5) <= high)
    True
    >>> len(release.sample(1000, rng=1)["age"])
    1000
    >>> list(release.to_table().columns), release.to_arrow().num_rows
    (['age_from', 'age_to', 'estimate', 'low', 'high'], 10)
    >>> release.to_polars(confidence=None).columns
    ['age_from', 'age_to', 'estimate', 'experiment']
    >>> same = bf.Release.from_bytes(release.to_bytes())
    >>> same.estimate.tolist() == release.estimate.tolist(), same.version
    (True, '0...')
    >>> print(release.guarantee)
    An experiment that protects nobody: its noise was seeded. With secure noise and
    eps = 1: two people whose age values lie in neighbouring cells cannot be told
    apart beyond e^eps; d cells apart, e^(eps*d); the number of people is public...
    """

    domain: Domain
    estimate: FloatArray
    mechanism: str
    guarantee: Guarantee
    measurements: tuple[Measurement, ...]
    details: Mapping[str, Any]
    interval_scope: IntervalScope = "noise"
    unfitted: FloatArray | None = None
    version: str = field(default="")
    fresh: bool = False
    units: int = 1
    certificates: tuple[Certificate, ...] = ()
    identity: str = ""
    design: SamplingDesign | None = None

    def __post_init__(self) -> None:
        self.estimate.flags.writeable = False
        for measurement in self.measurements:
            measurement.noisy.flags.writeable = False
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def answer(self, workload: Workload) -> AnyArray:
        """Return one estimated answer per query. Free: it reads the estimate only."""
        self._check(workload)
        of_cells = self.details.get("fit") in ("shrink", "runs", "medians")
        if of_cells and workload.mean_cells() > 1.0:
            warnings.warn(
                "sums of cells that were fitted one by one are less accurate "
                "than they could be: declare the ranges in place of Identity, or take "
                'fit="non_negative"',
                ShrunkCellsWarning,
                stacklevel=2,
            )
        return self._answers(workload)

    def intervals(
        self,
        workload: Workload,
        confidence: float = 0.95,
        *,
        of: Scope | None = None,
        together: bool = False,
        method: Method | None = None,
    ) -> FloatArray:
        """Return intervals that hold the answers too.

        Their centre is the answer before any fit, with a certificate the published one;
        those of true counts are cut at 0.

        Parameters
        ----------
        workload : Workload
            The queries.
        confidence : float, default 0.95
            How surely each interval holds, over the noise.
        of : {"truth", "noise"}, optional
            "truth": intervals that hold the true answers; `interval_sentence` says
            where a certificate knows it of a fraction of these queries. "noise": the
            true answer may lie outside where buckets are taken as even. None: truth if
            every query is granted it, else noise, with a `NoiseOnlyWarning`.
            "population": numbers of people where the records were drawn from, over the
            draw of the sample and the noise; `sampled` says how they were drawn.
        together : bool, default False
            Whether all intervals hold at once.
        method : {"exact", "normal"}, optional
            How the sampling is counted of="population": by its own law, or as a normal
            variable. By default by its law where there is such a method.

        Returns
        -------
        ndarray of float64, shape (queries, 2)
            The lower and the upper end of each.

        Raises
        ------
        IntervalError
            If the truth was asked for and is not known; it has the numbers of the
            queries.
        """
        self._check(workload)
        asked = as_confidence(confidence)
        miss = (1.0 - asked) / (max(workload.queries, 1) if together else 1)
        if method is not None:
            refuse_method(of, method)
        if isinstance(of, str) and of == "population":
            return population_counts(self, workload, 1.0 - miss, method)
        certificate = None
        if self.certificates and of != "noise":
            certificate = self._certificate_for(workload, asked, together=together)
        if certificate is None or certificate.kind == "shape":
            true = certificate is not None or self._demand(of, workload)
            if certificate is None:
                half = self._half_widths(workload, miss)
            else:
                spread = self._spread(workload)
                half = certificate.joint_half_widths(workload, spread, miss)
            linear, sums = self._linear_sums
            roundings = (ROUNDED, self._linear_rounding, self._rounding)
        else:
            true, half = True, certificate.half_widths(workload)
            linear, sums = self.estimate, self._sums
            roundings = (np.inf, self._rounding, self._rounding)
        answers = centre = workload.answer_again(self.estimate, self._sums).reshape(-1)
        if linear is not self.estimate:
            centre = workload.answer_again(linear, sums).reshape(-1)
        # A count is at least 0, so what lies below 0 is cut off at no loss.
        counts = true and counts_records(workload)
        return kernels.interval_bounds(centre, half, answers, roundings, counts)

    def _half_widths(self, workload: Workload, miss: float) -> FloatArray:
        """Return how far noise moves each linear answer, but for a chance of `miss`."""
        half = half_widths(self._linear(), workload, miss)
        return half / self.units if self.units > 1 else half

    def certified(self, certificate: Certificate) -> Self:
        """Return the same release with a certificate, which its file then keeps."""
        if not isinstance(certificate, Certificate):
            raise InputError(
                "a release is certified with what ledger.certify returned",
                received=quoted(certificate),
            )
        if certificate.release != self.digest:
            raise InputError("this certificate is about another release")
        return replace(self, certificates=(*self.certificates, certificate))

    def sampled(self, design: SamplingDesign) -> Self:
        """Return the same release with how its records were drawn; its file keeps it.

        Then ``of="population"`` asks for intervals of what holds in the population,
        over the draw of the sample and the noise. It is your word: nothing in a
        release can check it. `sample` is another thing, it makes records.

        Parameters
        ----------
        design : SamplingDesign
            One of ``bf.sampling``.

        Returns
        -------
        HistogramRelease
            The release with its design.

        Raises
        ------
        InputError
            If it is no design, or does not fit the release.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> sexes = bf.Domain.from_levels(["F", "M"], name="sex")
        >>> laplace = bf.Laplace(bf.policies.Full(sexes), epsilon=1)
        >>> release = laplace.release([600, 400], rng=1)
        >>> drawn = release.sampled(bf.sampling.Simple(population=50_000))
        >>> share = drawn.where(sex="F").relative_count()
        >>> [round(end, 2) for end in share.interval(of="population")]
        [0.57, 0.63]
        """
        if self.units != 1 or counted_records(self):
            raise InputError(
                "a sample consists of records that all count; this release counts some "
                "records of a person, or parts of her",
                way_out="Release under a policy of records",
            )
        return replace(self, design=as_design(design, self.domain))

    @cached_property
    def digest(self) -> str:
        """A digest of estimate and guarantee, by which certificates name a release."""
        return release_digest(self.estimate, self.guarantee)

    def _certificate_for(
        self, workload: Workload, confidence: float, *, together: bool = False
    ) -> Certificate | None:
        """Return the certificate that says most; None where none is needed, or fits."""
        linear = self.interval_scope == "noise" and len(self.measurements) == 1
        if not self.certificates or (linear and self.holds_truth(workload).all()):
            return None
        for kind in ("shape", "quantile", "curve", "all"):
            for certificate in sorted(
                self.certificates, key=lambda certificate: certificate.confidence
            ):
                if certificate.kind != kind or not math.isfinite(certificate.extra):
                    continue
                stated = kind == "shape" or float(certificate.confidence) >= confidence
                if (
                    stated
                    and (certificate.per_query or not together)
                    and certificate.covers(workload)
                ):
                    return certificate
        return None

    def holds_truth(self, workload: Workload) -> BoolArray:
        """Mark the queries whose intervals hold the true answer.

        They do where no bucket is cut that is taken as even, and the noise is `fresh`.
        """
        self._check(workload)
        fresh = self.fresh and self.units == 1
        return holds_truth(self._linear(), fresh, self._bias, workload)

    def interval_kind(self, workload: Workload, confidence: float = 0.95) -> Scope:
        """Return what `intervals` hold by default.

        Parameters
        ----------
        workload : Workload
            The queries.
        confidence : float, default 0.95
            How surely an interval has to hold.

        Returns
        -------
        "truth", "certified" or "noise"
            What they hold.
        """
        certificate = self._certificate_for(workload, confidence)
        if certificate is not None:
            return "truth" if certificate.per_query else "certified"
        linear = self.interval_scope == "noise"
        return "truth" if linear and self.holds_truth(workload).all() else "noise"

    def interval_sentence(
        self,
        kind: Scope,
        confidence: float = 0.95,
        workload: Workload | None = None,
    ) -> str:
        """Say in words what intervals of a kind hold, or what is certified of them.

        Parameters
        ----------
        kind : Scope
            What they hold.
        confidence : float, default 0.95
            How surely.
        workload : Workload, optional
            The queries, where a certificate speaks of them.

        Returns
        -------
        str
            The sentence.

        Raises
        ------
        InputError
            If a certificate is asked about without its queries.
        """
        if kind == "population":
            design = stated_design(self)
            return sampled_sentence(design, has_exact(design, "count"), confidence)
        if workload is not None and kind != "noise":
            certificate = self._certificate_for(workload, confidence)
            if certificate is not None:
                return str(certificate)
        if kind == "certified":
            raise InputError(
                "a certificate speaks of the queries that it was bought for",
                way_out="Say which: interval_sentence(kind, confidence, workload)",
            )
        if kind == "truth":
            return truth_sentence(confidence, counted_records(self))
        follows = self.details.get("fit") == "smooth"
        reason = noise_only_reason(
            self.mechanism, self._linear(), self.fresh, follows=follows
        )
        return f"Noise only: {reason}, and what that is off by is not covered."

    def _demand(self, of: Scope | None, workload: Workload) -> bool:
        """Return whether intervals hold the truth; refuse, or warn, where less."""
        check_scope(of)
        if of == "noise":
            return False
        granted = self.holds_truth(workload)
        every = bool(granted.all())
        if not every:
            lacking = np.flatnonzero(~granted)
            sentence = self.interval_sentence("noise")
            if of is not None:
                some = f"{lacking.size:,} of {workload.queries:,} intervals"
                sentence += f" So {some} hold the noise and not the true answer"
            say_noise_only(sentence, refuse=of is not None, queries=lacking)
        return every

    @cached_property
    def _bias(self) -> Bias | None:
        strategy = self._linear().strategy
        needs_no_probe = strategy.refuses_undetermined or not strategy.unbiased
        return None if needs_no_probe else bias_of(self._linear())

    @cached_property
    def _sums(self) -> dict[str, AnyArray]:
        return {}

    def _answers(self, workload: Workload) -> AnyArray:
        """Return the answers; those next to a whole number are it, as totals are."""
        answers = workload.answer_again(self.estimate, self._sums)
        if not self._rounding:
            return answers
        whole = np.rint(answers)
        return np.where(np.abs(answers - whole) <= self._rounding, whole, answers)

    @cached_property
    def _rounding(self) -> float:
        """By how much exact answers may be off; 0 where no row is exact."""
        exact = any(measurement.scales.exact.any() for measurement in self.measurements)
        return largest_rounding(self.estimate) if exact else 0.0

    @cached_property
    def _linear_rounding(self) -> float:
        return largest_rounding(self._linear_sums[0])

    @cached_property
    def _linear_sums(self) -> tuple[FloatArray, dict[str, AnyArray]]:
        """The estimate before any fit, and its running sums once they are needed."""
        if self.unfitted is None:
            return self.estimate, self._sums
        return self.unfitted, {}

    def standard_errors(self, workload: Workload) -> FloatArray:
        """Return the exact standard deviation of the noise in each linear answer."""
        self._check(workload)
        return np.sqrt(self._spread(workload).variance)

    def cdf(self) -> FloatArray:
        """Return the part of all records at or before each cell, from 0 to 1."""
        check_ordered(self.domain, "cdf")
        return cdf_values(self.estimate)

    def cdf_intervals(
        self, confidence: float = 0.95, *, of: Scope | None = None
    ) -> FloatArray:
        """Return an interval for each entry of `cdf`, as `intervals` does.

        Parameters
        ----------
        confidence : float, default 0.95
            How surely each holds.
        of : Scope, optional
            What they have to hold; None for what is known.

        Returns
        -------
        ndarray of float64, shape (cells, 2)
            The intervals.

        Raises
        ------
        IntervalError
            If the truth was asked for, and is not known.
        """
        check_ordered(self.domain, "cdf_intervals")
        bounds = cdf_bounds(*self._running_totals(confidence, of, at_once=False))
        return with_answers(bounds, self.cdf())

    def __len__(self) -> int:
        """Return the number of cells."""
        return int(self.domain.size)

    def quantile(self, q: Any = 0.5, name: Any = None) -> Any:
        """Return where a part `q` of all records is reached: 0.5 for the median.

        Records whose value is missing or outside have no place on the axis, and are
        left out.

        Parameters
        ----------
        q : float or array-like of float, default 0.5
            Parts from 0 to 1.
        name : str, optional
            One attribute of several, in either order: ``quantile("age", 0.5)``. It is
            then ``where().quantile(name, q)``, which has intervals.

        Returns
        -------
        ndarray, or Estimate of a named attribute
            Values along the axis where the domain has edges (records taken as uniform
            inside a cell), dates where it has dates, cell numbers otherwise.
        """
        if isinstance(q, str):
            q, name = (0.5 if name is None else name), q
        if name is not None:
            return self.where().quantile(name, q)
        check_ordered(self.domain, "quantiles", extras=True)
        regular = self.domain.attributes[0].regular
        plain = self.domain.without_extra_cells()
        return quantile_places(plain, self.estimate[:regular], q)

    def quantile_intervals(
        self, q: Any, confidence: float = 0.95, *, of: Scope | None = None
    ) -> AnyArray:
        """Return an interval for each quantile.

        They hold together. Few quantiles share the probability of a miss; many of them,
        and those of a certificate, come from one band around all running totals.

        Parameters
        ----------
        q : float or array-like of float
            Parts from 0 to 1.
        confidence : float, default 0.95
            How surely they hold.
        of : Scope, optional
            What they have to hold; None for what is known.

        Returns
        -------
        ndarray, shape (..., 2)
            Values where there are edges; otherwise the first and the last cell that may
            hold the quantile.

        Raises
        ------
        IntervalError
            If the truth was asked for, and is not known.
        """
        check_ordered(self.domain, "quantile_intervals", extras=True)
        if self.domain.attributes[0].extras:
            return self._quantiles_of_values(as_parts(q), as_confidence(confidence), of)
        bounds = self._scanned_quantiles(confidence, of, as_parts(q))
        if bounds is None:
            band = self._running_totals(confidence, of, at_once=True)
            bounds = quantile_bounds(self.domain, *band, q)
        return with_answers(bounds, self.quantile(q))

    def _quantiles_of_values(
        self, parts: FloatArray, confidence: float, of: Scope | None
    ) -> AnyArray:
        """Return intervals of quantiles of those who have a value; they hold together.

        Each is asked by itself, and all share the probability of a miss.
        """
        each = 1.0 - (1.0 - confidence) / max(parts.size, 1)
        bounds = [
            self.where().quantile(0, float(part)).interval(each, of=of)
            for part in parts.reshape(-1)
        ]
        places = np.array(bounds, dtype=np.float64).reshape(*parts.shape, 2)
        return in_values(places, self.domain.attributes[0].unit)

    def knows_totals(self, confidence: float = 0.95) -> bool:
        """Return whether intervals of all quantiles hold the truth together.

        >>> import blowfish_fast as bf
        >>> policy = bf.policies.AddRemove(bf.Domain(4))
        >>> asked = bf.workloads.Identity(policy.domain)
        >>> made = bf.Laplace(policy, asked, epsilon=1)
        >>> made.release([10, 20, 30, 40]).knows_totals()
        True
        """
        certified = self._certified_totals(confidence) is not None
        return certified or bool(self.holds_truth(Prefixes(self.domain)).all())

    def _certified_totals(self, confidence: float) -> Certificate | None:
        if not self.certificates:
            return None
        totals = Prefixes(self.domain)
        certificate = self._certificate_for(totals, confidence, together=True)
        return (
            None if certificate is None or certificate.kind == "shape" else certificate
        )

    def _instead_of(self, name: str) -> str:
        from .olap import Selection

        if not hasattr(Selection, name):
            return super()._instead_of(name)
        return f"Ask it of some records, release.where(...).{name}; where() is all"

    def where(
        self, conditions: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Selection:
        """Select records by conditions on attributes, in values.

        A condition on an attribute is a ``slice(low, high)``, half-open; a level, or a
        list of levels or slices; a date, a month or a range of dates; a whole number
        where cells have width 1. Parts of a cell count in proportion, as if its records
        were spread evenly.

        Parameters
        ----------
        conditions : Mapping[object, object], optional
            Conditions by attribute name or number.
        **named : object
            The same, by the attribute's name.

        Returns
        -------
        Selection
            The selection.

        Raises
        ------
        InputError
            If nothing is selected.
        """
        from .olap import Selection, join_conditions

        return Selection.of(self, join_conditions(conditions, named))

    def group_by(self, *names: str | int | Sequence[str | int], **bins: Any) -> Groups:
        """Break all records down by attributes: ``where().group_by(...)`` in short.

        Parameters
        ----------
        *names : str, int or sequence of these
            Attributes that are broken down cell by cell.
        **bins : object
            Attributes with edges, levels, or a mapping from names to conditions.

        Returns
        -------
        Groups
            The groups.
        """
        return self.where().group_by(*names, **bins)

    def level(self, name: str) -> GroupedAnswers:
        """Return the count of every district of a level, by id, with intervals.

        For releases by `Nested`: levels add up, since all are sums of the same cells.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> nest = bf.Nesting.from_codes(["AA", "AB", "BA"], [1, 2])
        >>> blocks = bf.policies.Blocks(nest.domain, nest.labels("digits_1"))
        >>> nested = bf.Nested(blocks, nest.workload(digits_2=1), epsilon=1)
        >>> release = nested.release([5, 1, 7], rng=1)
        >>> print(release.level("digits_1"))
        digits_1  count  low  high
        A             6    6     6
        B             7    7     7
        """
        from .places.level_answers import answers_of_level

        return answers_of_level(self, name)

    def of(self, districts: Any) -> GroupedAnswers:
        """Return the count of every district, any public union of cells; free.

        Parameters
        ----------
        districts : array-like, mapping, Regions or Districts
            The name of the district of each cell, in C order, None for a cell of no
            district; a mapping (or a series of pandas with such an index) from ids of
            cells to these names, in which a cell that is absent lies in no district;
            `workloads.Regions`, named by their numbers; or polygons, of a
            release of a grid. Where these cut cells, the estimate takes cells by their
            area, and the interval reaches from the cells inside to all that are
            touched.

        Returns
        -------
        GroupedAnswers
            The counts, by name, with intervals.

        Raises
        ------
        WorkloadError
            If there is not one name per cell.
        InputError
            If a mapping names a cell that there is not.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> towns = bf.Domain.from_levels(["a", "b", "c"], name="town")
        >>> laplace = bf.Laplace(bf.policies.Full(towns), epsilon=1)
        >>> release = laplace.release([5, 1, 7], rng=1)
        >>> float(sum(release.of(["north", "south", "north"]).values()))
        13.0
        """
        from blowfish_fast.data.places.districts import Districts

        from .places.level_answers import district_answers

        if isinstance(districts, Districts):
            from .places.polygon_answers import answers_of_polygons

            return answers_of_polygons(self, districts)
        return district_answers(self, districts)

    def to_geopackage(
        self,
        path: str | os.PathLike[str],
        districts: Districts | None = None,
        *,
        system: str | None = None,
        confidence: float = 0.95,
    ) -> None:
        """Write a map that QGIS opens in colours, hatched where intervals are wide.

        Districts inside districts, by `Nested`, have a layer for each level that was
        measured, each with its style: outlines of larger districts are those of the
        cells without the borders inside.

        Parameters
        ----------
        path : str or PathLike
            The file, by custom ``.gpkg``.
        districts : Districts, optional
            The polygons of the cells; left out for a grid whose axes are lon and lat,
            or x and y.
        system : str, optional
            The reference system of a grid of x and y, such as "EPSG:2056"; one of lon
            and lat is in WGS 84, and polygons state their own.
        confidence : float, default 0.95
            How surely intervals hold.

        Raises
        ------
        InputError
            If cells and polygons do not belong together, or they are in another system.
        """
        from .places.map_files import map_layers, write_geopackage

        write_geopackage(map_layers(self, districts, confidence, system), path)

    def to_geojson(
        self,
        path: str | os.PathLike[str],
        districts: Districts | None = None,
        *,
        confidence: float = 0.95,
        style: bool = False,
    ) -> None:
        """Write a map as GeoJSON, estimates and intervals by cell; in WGS 84.

        Parameters
        ----------
        path : str or PathLike
            The file.
        districts : Districts, optional
            The polygons of the cells; left out for a grid of lon and lat.
        confidence : float, default 0.95
            How surely intervals hold.
        style : bool, default False
            Whether a file of the same name that ends in ``.qml`` is written beside it,
            and replaced where there is one: with it QGIS opens the map in the colours
            and the hatching that a GeoPackage carries itself.

        Raises
        ------
        InputError
            If cells and polygons do not belong together, or are not in WGS 84.
        """
        from .places.map_files import map_rows, write_geojson, write_style

        rows = map_rows(self, districts, confidence)
        write_geojson(rows, path)
        if style:
            write_style(rows, path)

    def to_geotiff(
        self,
        path: str | os.PathLike[str],
        *,
        system: str | None = None,
        confidence: float = 0.95,
    ) -> None:
        """Write a grid as a GeoTIFF: bands of estimates and ends of intervals.

        Parameters
        ----------
        path : str or PathLike
            The file, by custom ``.tif``.
        system : str, optional
            The reference system of a grid of x and y, such as "EPSG:2056"; one of lon
            and lat is in WGS 84.
        confidence : float, default 0.95
            How surely intervals hold.

        Raises
        ------
        InputError
            If this is no grid of lon and lat, or x and y, in cells of one size.

        Examples
        --------
        >>> import os, tempfile
        >>> from pathlib import Path
        >>> import blowfish_fast as bf
        >>> grid = bf.Domain.from_box((2, 3), lat=(46, 48), lon=(7, 10))
        >>> laplace = bf.Laplace(bf.policies.AddRemove(grid), epsilon=1)
        >>> release = laplace.release([[40, 5, 300], [2, 0, 9]])
        >>> path = os.path.join(tempfile.mkdtemp(), "grid.tif")
        >>> release.to_geotiff(path)
        >>> Path(path).read_bytes()[:3]
        b'II*'
        """
        from .places.raster_files import write_geotiff

        write_geotiff(self, path, system=system, confidence=confidence)

    def sample(
        self, n: int | None = None, rng: int | np.random.Generator | None = None
    ) -> Table:
        """Draw synthetic records, a column per attribute; free, as post-processing is.

        Values are uniform inside their cells: where they are whole numbers, such as
        years of age, take their floor.

        Parameters
        ----------
        n : int, optional
            How many; the total of the estimate by default, rounded, which is exact
            where the policy makes it public.
        rng : int or numpy.random.Generator, optional
            A seed or a generator.

        Returns
        -------
        Table
            The records.
        """
        from .synthetic import sample_records

        drawn = sample_records(self.domain, self.estimate, n, rng)
        drawn.experiment = not self.private
        return drawn

    def rounded(self) -> Self:
        """Return the release with whole counts, none negative, and the same total.

        For tables to be published: whatever is added up from its cells agrees, every
        time. Intervals stay; single cells are biased up where noise exceeds counts.
        """
        from .synthetic import publishable_counts

        return replace(
            self,
            estimate=publishable_counts(self.estimate).astype(float),
            unfitted=self._linear_sums[0],
            certificates=(),
        )

    def plot(self, *, confidence: float = 0.95, axes: Any = None) -> Any:
        """Draw the estimate: a line of cells with intervals, or a map of two axes.

        `blowfish_fast.plotting` has these and other pictures, with their options.

        Parameters
        ----------
        confidence : float, default 0.95
            How surely the intervals of a line hold.
        axes : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
            The axes.

        Raises
        ------
        InputError
            For more than two attributes: a picture shows one or two.
        """
        # Pictures stand above releases in the house; they are fetched when asked for.
        plotting = import_module(f"{__name__.partition('.')[0]}.plotting")
        if self.domain.ndim == 1:
            return plotting.histogram(self, confidence=confidence, axes=axes)
        if self.domain.ndim == 2:
            return plotting.grid_map(self, axes=axes)
        raise InputError(
            "a picture shows one or two attributes",
            received=f"{self.domain.ndim} of them",
            way_out="Draw groups: plotting.groups(release.group_by(...))",
        )

    def to_xarray(self, confidence: float | None = 0.95, *, crs: Any = None) -> Any:
        """Return the estimate and its intervals as an xarray dataset, by attribute.

        Coordinates of cells between edges are their centres; the edges stand beside
        them as bounds (``lon_bounds``).

        Parameters
        ----------
        confidence : float or None, default 0.95
            Of the intervals; None leaves them out.
        crs : optional
            The reference system of a map: anything that `pyproj.CRS` takes, such as
            2056. Sides called lon and lat are degrees (EPSG:4326) unless it is given.

        Returns
        -------
        xarray.Dataset
            Estimate and intervals over the attributes, with bounds and, where it is
            known, the reference system in ``spatial_ref``.

        Examples
        --------
        >>> release.to_xarray()["estimate"].dims  # doctest: +SKIP
        ('age',)
        """
        from blowfish_fast.data.frames import labelled_arrays

        table, promise = self.to_table(confidence), str(self.guarantee)
        names = {"estimate", *chain(*BOUND_NAMES.values())}
        values = {name: table[name] for name in table if name in names}
        about = {"mechanism": self.mechanism, "promise": promise}
        return labelled_arrays(self.domain, values, about, crs)

    def __add__(self, other: Any) -> CombinedRelease:
        """Return the sum, with intervals; budgets add up."""
        return add(self, other)

    def __sub__(self, other: Any) -> CombinedRelease:
        """Return the difference, with intervals; budgets add up."""
        return subtract(self, other)

    def combine(
        self,
        *others: HistogramRelease,
        workload: Workload | None = None,
        disjoint: bool = False,
    ) -> CombinedRelease:
        """Average releases of the same people with the least variance; budgets add up.

        Parameters
        ----------
        *others : HistogramRelease
            The other releases.
        workload : Workload, optional
            The queries whose variance is least; all cells by default.
        disjoint : bool
            Your word that nobody is in two of the releases. They are then added up in
            place of being averaged, and the largest budget is that of the sum.

        Returns
        -------
        CombinedRelease
            The average, or the sum of different people.

        Raises
        ------
        InputError
            If a workload is stated although parts are added up.
        """
        if not disjoint:
            return combine([self, *others], workload)
        if workload is not None:
            raise InputError(
                "a workload says over which questions an average has the least "
                "variance; parts of different people are added up",
                way_out="Leave workload= out, or disjoint=True",
            )
        return add_disjoint([self, *others])

    def _running_totals(
        self, confidence: float, of: Scope | None, *, at_once: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return running totals and how far they may be off: all at once, or each."""
        asked, totals = as_confidence(confidence), Prefixes(self.domain)
        certified = None if of == "noise" else self._certified_totals(asked)
        if certified is not None:
            return np.cumsum(self.estimate), certified.half_widths(totals)
        self._demand(of, totals)
        spread = self._spread(totals)
        noisy = spread.square > 0.0
        # Of a part of all records, a private number of all takes half of the chance.
        shared = max(int(noisy.sum()), 1) if at_once else 1 + int(noisy[-1])
        half = noise_half_widths(spread, (1.0 - asked) / shared)
        return linear_totals(self._linear_sums[0], spread), half

    def _scanned_quantiles(
        self, confidence: float, of: Scope | None, parts: FloatArray
    ) -> AnyArray | None:
        """Return intervals of quantiles scanned from outside, or None for a band.

        Each of m quantiles may miss with a part 1 / m of the probability, so that they
        hold together (Lemma OL4). A band shares it among all noisy running totals.
        """
        asked, totals = as_confidence(confidence), Prefixes(self.domain)
        if of != "noise" and self._certified_totals(asked) is not None:
            return None
        self._demand(of, totals)
        if self._linear().buckets.order is not None:
            return None
        spread = self._spread(totals)
        distinct = np.unique(parts)
        if distinct.size > np.count_nonzero(spread.square):
            return None
        running = linear_totals(self._linear_sums[0], spread)
        places = np.empty((distinct.size, 2), dtype=np.int64)
        for at, part in enumerate(distinct.tolist()):
            surplus = running - part * running[-1]
            noise = self._spread(RankRows(self.domain, part))
            half = noise_half_widths(noise, (1.0 - asked) / distinct.size)
            places[at] = scanned_places(surplus - half, surplus + half, part)
        first, last = places[np.searchsorted(distinct, parts)].T
        return bounds_of_cells(self.domain, first.T, last.T)

    def _spread(self, workload: Workload) -> Spread:
        measurement = self._linear()
        form = workload.explicit_form(measurement.buckets)
        spread = measurement.law.spread(form).under(measurement.scales)
        return spread if self.units == 1 else spread.divided(self.units)

    def _linear(self) -> Measurement:
        """Return the measurement that the answers are linear in."""
        if self.interval_scope == "nothing" or len(self.measurements) != 1:
            # A table that comes from a model alone says so itself.
            raise IntervalError(
                self.details.get("no_intervals")
                or f"{self.mechanism} is not linear in its noise, so no interval is "
                "known for its answers; choose a mechanism whose releases have "
                'interval_scope "noise"'
            )
        (measurement,) = self.measurements
        return measurement

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: domain, estimate, guarantee, mechanism, version."""
        return {**self._facts(), "estimate": self.estimate.tolist()}

    def to_bytes(self) -> bytes:
        """Return the release as the bytes of its file."""
        return release_bytes(vars(self))

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read a release from `to_bytes`."""
        return cls(**release_parts(content, Certificate.unpack, design_from_dict))

    def __repr__(self) -> str:
        return f"HistogramRelease({self.mechanism}, {self._in_short()})"

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel, sparkline, tiny_map

        estimate = self.estimate
        drawing = ""
        if estimate.ndim == 1:
            drawing = sparkline(estimate)
        elif estimate.ndim == 2:
            drawing = tiny_map(estimate)
        noise = "hold the noise" if self.interval_scope == "noise" else "are not known"
        rows = [("cells", f"{self.domain.size:,}"), ("intervals", noise)]
        seeded = "" if self.private else "Seeded: an experiment that protects nobody."
        return panel(
            repr(self),
            rows,
            sentence=str(self.guarantee),
            drawing=drawing,
            warning=seeded,
        )
