"""Certificates: one statistic of a release's errors, measured and turned into words."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_choice, as_confidence, as_fraction
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import (
    EpsilonError,
    InputError,
    IntervalError,
    SizeError,
    WorkloadError,
)
from blowfish_fast.measure.budgets import Budget, equal_noise_epsilon
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.sensitivity.policy import sensitivity
from blowfish_fast.measure.strategies.error_statistics import (
    FURTHEST,
    PARTS,
    BucketShapes,
    ErrorCurve,
    ErrorQuantile,
    ErrorStatistic,
    LargestError,
    largest_query_move,
    ramp_edges,
    sixteenths,
)
from blowfish_fast.measure.tails import noise_half_widths, one_sided_margin
from blowfish_fast.policies import Policy, refuse_units
from blowfish_fast.policies import from_dict as policy_from_dict
from blowfish_fast.release.certificates import (
    KINDS,
    Certificate,
    Kind,
    spread_with,
    whole_boxes,
    workload_digest,
)
from blowfish_fast.release.file import Release
from blowfish_fast.release.group_answers import Estimate, GroupedAnswers
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.release.olap import Questions
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.workloads import AllRanges, Identity, Ranges, Workload
from blowfish_fast.workloads.base import as_pieces

from .base import Mechanism, Outcome, _version

SPARED = 0.015
"""Part of the queries whose rank the noise of a curve may cost."""

FEWEST_IN_CLASS = 200
MOST_LISTED = 2**22
"""Queries that are checked one by one."""


class Certifier(Mechanism):
    """Measures how far the answers of one release are off, and certifies a bound.

    Guarantee: epsilon-Blowfish, beside what the release has cost. Neighbours: those of
    the policy. Sensitivity: that of the statistic, in sixteenths of a record; see
    ``docs/proofs/certificates.md``. Error: the bound holds but for a probability of 1 -
    confidence. Complexity: that of answering the workload. Source: this library.

    Parameters
    ----------
    release : Release
        What was published. It is a release of a histogram.
    workload : Workload, or answers
        Whose answers are certified; all coefficients are whole numbers. Answers are
        those of a selection or of groups, ``release.group_by("sex").mean("age")``.
    epsilon, rho, delta : number
        The budget that the certificate spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    fraction, confidence : number
        How many of the answers the claim is about, and how sure it is.
    kind : {"quantile", "curve", "all", "shape"}, optional
        By default the one of the least predicted width; "all" only where every range
        is asked. "shape" is about the data that the release was drawn from: stating
        it is your word that these are handed over, and by default it is taken only
        where `snapshot` is the version that the release says.
    snapshot : str, optional
        The public label of the version of the data that will be handed over. Data are
        never compared with those of the release; labels are.
    policy : Policy, optional
        What must stay indistinguishable; None takes the policy of the release.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> cells, policy = bf.workloads.Identity(line), bf.policies.AddRemove(line)
    >>> counts = [0] * 30 + [40] * 4 + [0] * 30
    >>> release = bf.Dawa(policy, cells, epsilon=1).release(counts, rng=1)
    >>> certifier = Certifier(release, cells, epsilon=1)
    >>> certifier.kind, certifier.predicted_width < 5
    ('quantile', True)
    >>> certifier.release(counts, rng=2).kind
    'quantile'
    """

    name: ClassVar[str] = "certifier"

    def __init__(
        self,
        release: Release,
        workload: Workload | Questions[Any] | GroupedAnswers | Estimate,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        fraction: Any = 0.95,
        confidence: Any = 0.95,
        kind: Kind | None = None,
        snapshot: str | None = None,
        policy: Policy | None = None,
    ) -> None:
        if not isinstance(release, HistogramRelease):
            raise InputError(
                "a certificate is about a release of a histogram",
                received=type(release).__name__,
            )
        stated = policy_from_dict(dict(release.guarantee.to_dict()["policy"]))
        asked, self._joint = _as_rows(workload)
        super().__init__(policy or stated, asked, epsilon=epsilon, rho=rho, delta=delta)
        refuse_units(self.policy, "a certificate")
        release._check(self.workload)
        as_choice(kind, "kind", [None, *KINDS])
        self.fraction = as_share_of_all(fraction, "fraction")
        if self._joint:
            self.fraction = 1 - Fraction(1, 2 * self.workload.queries)
        self.confidence = as_share_of_all(confidence, "confidence")
        as_confidence(float(self.confidence))
        self.about = release.digest
        self._release = release
        self._snapshot = snapshot
        statistics = self._kinds() if kind is None else {kind: self._of_kind(kind)}
        self.kind: Kind = min(statistics, key=lambda name: statistics[name][1])
        self._statistic, self.predicted_width = statistics[self.kind]

    def states_terms_of(self, certificate: Certificate) -> bool:
        """Return whether a certificate is about this release, on the same terms."""
        stated = self.about, self.fraction, self.confidence, self.budget.amount
        budget = certificate.guarantee.budget
        terms = certificate.release, certificate.fraction, certificate.confidence
        return (*terms, budget.amount) == stated and budget.power == self.budget.power

    def _kinds(self) -> dict[Any, tuple[ErrorStatistic, float]]:
        """Return the kinds that apply, with their statistics and predicted widths."""
        if isinstance(self.workload, AllRanges):
            return {"all": self._of_kind("all")}
        if self._joint:
            return {"quantile": self._of_kind("quantile")}
        kinds: dict[Any, tuple[ErrorStatistic, float]] = {}
        reasons: list[EpsilonError | IntervalError | SizeError] = []
        listed = ["quantile", "curve"]
        if self._snapshot is not None and self._snapshot == self._drawn_from:
            listed.append("shape")
        for kind in listed:
            try:
                kinds[kind] = self._of_kind(kind)
            except (EpsilonError, IntervalError, SizeError) as problem:
                reasons.append(problem)
        if not kinds:
            raise reasons[0]
        return kinds

    def _of_kind(self, kind: Any) -> tuple[ErrorStatistic, float]:
        if kind in ("quantile", "curve"):
            return self._listed(kind)
        return self._all() if kind == "all" else self._shape()

    def _listed(self, kind: str) -> tuple[ErrorStatistic, float]:
        """Return the order statistic, or the curve, of the errors of the answers."""
        asked = self.workload
        if not 0 < asked.queries <= MOST_LISTED:
            raise SizeError(
                f"a certificate checks 1 to {MOST_LISTED:,} answers",
                received=f"{asked.queries:,}",
            )
        check_whole_coefficients(asked)
        policy = self.policy.unconstrained
        noise = self._noise()
        published = self._release._answers(asked).reshape(-1)
        whole = sixteenths(published)
        half = np.floor(np.minimum(PARTS * noise, FURTHEST)).astype(np.int64)
        statistic: ErrorStatistic
        if kind == "quantile":
            move = largest_query_move(policy, asked)
            margin = self._margin(ErrorQuantile(asked, whole, half, 1)) / PARTS
            if noise.mean() <= margin:
                half = np.zeros_like(half)
            statistic = ErrorQuantile(asked, whole, half, self._rank(asked.queries))
            width = float(noise.mean()) + (margin if move else 0.0)
            return statistic, width / getattr(asked, "unit", 1)
        curve = ErrorCurve(asked, whole, half, np.zeros_like(half), [ramp_edges(1)])
        total = curve.move(policy) / PARTS
        if total >= 0.02 * asked.queries * max(largest_query_move(policy, asked), 1):
            raise IntervalError("one record moves too many of these answers")
        each = equal_noise_epsilon(self._drawn_at)
        lost = math.log(10.0) * total / (SPARED * each)
        step = math.ceil(PARTS * max(1.0, lost / asked.queries))
        labels = np.zeros_like(half)
        statistic = ErrorCurve(asked, whole, half, labels, [ramp_edges(step)])
        return statistic, float(noise.mean()) + 2.0 * step / PARTS

    def _noise(self) -> FloatArray:
        """Return noise half-widths that miss with 1 - fraction; 0 where not known."""
        release, asked = self._release, self.workload
        if release.interval_scope != "noise" or len(release.measurements) != 1:
            return np.zeros(asked.queries)
        return release._half_widths(asked, 1.0 - float(self.fraction))

    def _all(self) -> tuple[ErrorStatistic, float]:
        if self.domain.ndim > 2:
            raise IntervalError(
                "every range is certified on a line or a grid",
                received=f"{self.domain.ndim} attributes",
            )
        statistic = LargestError(np.array(self._release.estimate))
        return statistic, self._margin(statistic) / PARTS

    def _shape(self) -> tuple[ErrorStatistic, float]:
        release, drawn_from = self._release, self._drawn_from
        if self.domain.ndim != 1:
            raise IntervalError("shapes of buckets are certified on a line")
        if self._snapshot is not None and self._snapshot != drawn_from:
            raise IntervalError(
                "shapes are certified with the data that the release was drawn from, "
                f"and it says {drawn_from!r}",
                received=f"the version {self._snapshot!r}",
            )
        buckets = release._linear().buckets
        edges = buckets.edges
        whole = Ranges(self.domain, edges[:-1], edges[1:])
        drawn = release.guarantee.budget.power == self.budget.power
        if buckets.order is not None or not drawn:
            raise IntervalError(
                "shapes are those of neighbouring cells, in one currency"
            )
        if not release.holds_truth(whole).all() or whole_boxes(self.workload) is None:
            raise IntervalError(
                "shapes bound the error of ranges over buckets that are measured "
                "without bias, by noise that did not choose them"
            )
        statistic = BucketShapes(edges)
        scales = statistic.scales(self.policy.unconstrained, self._drawn_at)
        spread = release._spread(self.workload)
        two = spread_with(spread, np.full(spread.variance.size, 2), scales)
        miss = 1.0 - float(self.confidence)
        return statistic, float(noise_half_widths(two, miss).mean())

    @property
    def _drawn_from(self) -> str | None:
        """Which version of the data the release says it was drawn from, if any."""
        label = self._release.details.get("as_of")
        return None if label is None else str(label)

    @property
    def _drawn_at(self) -> Budget:
        return self.budget.over(self.policy.group_size)

    def _margin(self, statistic: ErrorStatistic) -> int:
        scales = statistic.scales(self.policy.unconstrained, self._drawn_at)
        return one_sided_margin(scales, 1.0 - float(self.confidence))

    def _rank(self, queries: int) -> int:
        """Return how many answers the claim is about: exactly, never in floats."""
        return math.ceil(self.fraction * queries)

    def _run(self, private: Handle) -> Outcome:
        statistic: Any = self._statistic
        measurement = private.measure(statistic, budget=private.remaining)
        return Outcome(np.zeros(0), [measurement])

    def _published(self, outcome: Outcome, guarantee: Guarantee) -> Certificate:
        (measurement,) = outcome.measurements
        noisy, scales = measurement.noisy, measurement.scales
        rows, half = [], np.zeros(0, dtype=np.int64)
        labels = edges = shapes = half
        statistic = self._statistic
        listed = isinstance(statistic, ErrorQuantile)
        if isinstance(statistic, ErrorCurve):
            labels, half = statistic.labels, statistic.half
            rows = self._read_curve(statistic, noisy, scales)
        elif isinstance(statistic, BucketShapes):
            edges, shapes = statistic.edges, noisy
        else:
            extra = (int(noisy[0]) + self._margin(statistic)) / PARTS
            rows = [{"axes": self.domain.ndim, "extra": extra}]
            if isinstance(statistic, ErrorQuantile):
                labels, half = np.zeros_like(statistic.half), statistic.half
                rows = [{"queries": self.workload.queries, "extra": extra}]
        return Certificate(
            self.kind,
            self.fraction,
            self.confidence,
            tuple(rows),
            guarantee,
            self.about,
            workload_digest(self.workload) if listed else "",
            self.workload.queries if listed else 0,
            half,
            labels,
            edges,
            shapes,
            scales,
            _version(),
            self._details(listed=listed),
        )

    def _details(self, *, listed: bool) -> dict[str, Any]:
        """Return how many joint answers were checked, and of which version of data."""
        details: dict[str, Any] = {"as_of": self._snapshot} if self._snapshot else {}
        if listed and self._joint:
            details["answers"] = self._joint
        return details

    def _read_curve(
        self, statistic: ErrorCurve, noisy: IntArray, scales: Scales
    ) -> list[dict[str, Any]]:
        """Test every class from its highest ramp down, while the claim still stands."""
        miss = (1.0 - float(self.confidence)) / len(statistic.ramps)
        margin = one_sided_margin(scales, miss)
        bounds, at = [], 0
        for label, edges in enumerate(statistic.ramps):
            queries = int((statistic.labels == label).sum())
            limit = queries - self._rank(queries)
            rows = noisy[at : at + edges.size - 1]
            at += edges.size - 1
            stands = rows + margin <= limit * np.diff(edges)
            # How many stand in a row, from above.
            many = int(np.append(~stands[::-1], True).argmax())
            extra = edges[edges.size - many] / PARTS if many else math.inf
            bounds.append({"queries": queries, "extra": float(extra)})
        return bounds

    @classmethod
    def example(cls, domain: Any, policy: Policy, epsilon: Any) -> tuple[Self, Any]:
        """Return a certifier of made-up answers, and data on which audits run it.

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
            The certifier.
        data : Histogram
            Made-up counts.
        """
        from .laplace import Laplace

        cells = Identity(domain)
        mechanism, data = Laplace.example(domain, policy, epsilon)
        release = mechanism.release(data, rng=0)
        return cls(release, cells, epsilon=epsilon, policy=policy), data


def predict_extra(policy: Policy, workload: Workload, budget: Budget) -> float:
    """Return by how much a certificate at 95 % widens intervals, from public facts.

    Parameters
    ----------
    policy : Policy
        What is secret.
    workload : Workload
        The queries.
    budget : Budget
        What the certificate costs.

    Returns
    -------
    float
        The width, in records.
    """
    single = policy.unconstrained
    equal = equal_noise_epsilon(budget.over(policy.group_size))
    least = math.log(10.0) * largest_query_move(single, workload) / equal
    if isinstance(workload, Identity):
        total = float(sensitivity(single, workload))
        step = math.log(10.0) * total / (SPARED * equal * workload.queries)
        least = min(least, 2.0 * max(1.0, step))
    return least


def as_share_of_all(value: Any, name: str) -> Fraction:
    """Read a fraction strictly between 0 and 1, as the decimals typed.

    Parameters
    ----------
    value : number, str or Fraction
        What the caller gave.
    name : str
        What the caller calls it, for the message.

    Returns
    -------
    Fraction
        The fraction.

    Raises
    ------
    InputError
        If it lies outside.
    """
    share = as_fraction(value, name)
    if not 0 < share < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1", received=value)
    return share


def _as_rows(asked: Any) -> tuple[Any, int]:
    """Return the queries behind answers, and how many these are if they are joint."""
    if isinstance(asked, Questions):
        asked = asked.count()
    if isinstance(asked, Estimate):
        if len(asked._answers) > 1:
            raise InputError(
                "groups are certified together", way_out="Select the one before"
            )
        asked = asked._answers
    return asked.certifiable() if isinstance(asked, GroupedAnswers) else (asked, 0)


def check_whole_coefficients(workload: Workload) -> None:
    """Refuse coefficients that are no whole numbers: answers would be none either."""
    cells = Buckets.single_cells(workload.domain.size)
    form = as_pieces(workload.explicit_form(cells))
    if not (form.values == np.rint(form.values)).all():
        raise WorkloadError(
            "answers are certified where all coefficients are whole numbers",
            way_out="Ask along the borders of cells, or multiply the queries until "
            "their coefficients are whole",
        )
