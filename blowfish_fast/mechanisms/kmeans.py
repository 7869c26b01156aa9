"""k-means clustering: noisy sizes and sums of the clusters, round after round."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, NoReturn, Self, get_args

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast._support.validation import (
    as_choice,
    as_share,
    as_whole,
    malformed_as,
)
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import (
    CountsError,
    DomainError,
    InputError,
    NoEstimateError,
    PolicyError,
    ReleaseFileError,
)
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.strategies.cluster_sums import CellGrid, ClusterSums
from blowfish_fast.policies import Blocks, PerPerson, Policy
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.release.release import Release

from .base import Mechanism, Outcome, _version

Assignment = Literal["best", "points", "parts"]

CELLS_KEPT_APART = 2**22
"""Larger domains are not listed cell by cell: points are measured, not cells."""


class KMeansRelease(Release):
    """Private cluster centres. There is no estimate of counts, and no intervals.

    ``details["history"]`` holds the centres of every round, ``details["sizes"]`` the
    noisy sizes of the last.

    Parameters
    ----------
    domain : Domain
        The cells.
    centers : ndarray of float64, shape (clusters, axes)
        The centres.
    guarantee : Guarantee
        What is promised.
    details : Mapping[str, object]
        Public by-products.
    version : str
        The version of the package that made it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> kmeans = bf.KMeans(bf.policies.Full(bf.Domain(11)), clusters=2, epsilon=10)
    >>> release = kmeans.release(np.array([1.0] * 500 + [9.0] * 500), rng=1)
    >>> release.centers.shape, release.interval_scope
    ((2, 1), 'nothing')
    """

    centers: FloatArray

    def __init__(
        self,
        domain: Domain,
        centers: FloatArray,
        guarantee: Guarantee,
        details: Mapping[str, Any],
        version: str,
    ) -> None:
        centers.flags.writeable = False
        for name, value in {
            "domain": domain,
            "centers": centers,
            "mechanism": KMeans.name,
            "guarantee": guarantee,
            "measurements": (),
            "details": MappingProxyType(dict(details)),
            "interval_scope": "nothing",
            "version": version,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def estimate(self) -> NoReturn:
        """Refuse: clusters do not determine the cells."""
        raise NoEstimateError(
            "k-means publishes release.centers and no estimate of counts; choose a "
            "histogram mechanism for counts"
        )

    def objective(self, points: Any) -> float:
        """Return the squared distances to the nearest centres, summed; not private."""
        return kernels.squared_distance_total(
            _as_points(points, self.domain), self.centers
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: domain, centres, guarantee, details."""
        return {
            **self._facts(),
            "centers": self.centers.tolist(),
            "details": {
                name: value.tolist() if isinstance(value, np.ndarray) else value
                for name, value in self.details.items()
            },
        }

    def to_bytes(self) -> bytes:
        """Return the release as JSON."""
        return json.dumps(self.to_dict()).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read a release from `to_bytes`."""
        with malformed_as(ReleaseFileError, "no k-means release; get a fresh copy"):
            data = json.loads(content)
            domain = Domain.from_dict(data["domain"])
            centers = np.asarray(data["centers"], dtype=np.float64)
            details = {
                name: np.asarray(value) if isinstance(value, list) else value
                for name, value in data["details"].items()
            }
            if data["mechanism"] != KMeans.name or centers.shape[1:] != (domain.ndim,):
                raise ReleaseFileError("its centres do not fit its domain")
            guarantee = Guarantee.from_dict(data["guarantee"])
            return cls(domain, centers, guarantee, details, str(data["version"]))

    def __repr__(self) -> str:
        return f"KMeansRelease({len(self.centers)} centers, {self._in_short()})"


class KMeans(Mechanism):
    """Release the centres of k-means clusters of points, by Lloyd's iterations.

    Parameters
    ----------
    policy : Policy
        Its domain is the box of the points: an attribute with edges spans them, one
        without spans 0 to its number of cells.
    clusters : int
        Number of centres.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    rounds : int
        Number of Lloyd iterations, which share epsilon equally.
    start : (clusters, axes) array_like, optional
        Public centres to start from, never points of the data; by default spread
        evenly over the box.
    assign : {"best", "points", "parts"}
        What belongs to the nearest centre: each point, or each connected part of the
        policy as a whole, which keeps every record in its cluster. "best" takes parts
        under `Blocks` and points elsewhere.
    share : number
        The part of each round spent on sizes; the rest goes to sums.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded).
    Neighbours: one record moves along one edge of `policy`; a point counts as the
        centre of its cell.
    Sensitivity: sizes 2 and sums the L1 diameter of the domain when records may cross
        borders (1 and half of it when a record is added or removed); sizes 0 and sums
        the longest edge when whole parts are assigned; exact over the edges of small
        policies.
    Error: depends on the data; not predicted.
    Complexity: O(rounds n clusters axes) time in threads; 4 bytes per point and axis.
    Source: A. Blum, C. Dwork, F. McSherry, K. Nissim. Practical privacy: the SuLQ
        framework. PODS 2005; and the paper of `Ordered`, section 6, whose Lemma 6.1 is
        not private; proof in ``docs/proofs/kmeans.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> box = bf.Domain((256, 256))
    >>> points = np.concatenate([np.full((500, 2), 40.0), np.full((500, 2), 200.0)])
    >>> kmeans = bf.KMeans(bf.policies.Full(box), clusters=2, epsilon=5)
    >>> kmeans.release(points, rng=1).centers.shape
    (2, 2)
    """

    name = "kmeans"
    cells_by_default = True
    cell_bytes = 160

    def __init__(
        self,
        policy: Policy,
        clusters: int = 4,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        rounds: int = 10,
        start: Any = None,
        assign: Assignment = "best",
        share: Any = Fraction(1, 2),
    ) -> None:
        super().__init__(policy, None, epsilon=epsilon, rho=rho, delta=delta)
        self.clusters = as_whole(clusters, "clusters", 1)
        self.rounds = as_whole(rounds, "rounds", 1)
        self.share = as_share(share, "share")
        assign = as_choice(assign, "assign", get_args(Assignment))
        if isinstance(policy, PerPerson) and policy.count == "persons":
            raise PolicyError(
                "k-means clusters records, and a person who counts once is in parts",
                received=repr(policy),
                way_out='State per_person(at_most) with count="records"',
            )
        self.grid = CellGrid(policy.domain)
        edges = policy.unconstrained
        self.parts = None
        if assign == "parts" or (assign == "best" and isinstance(edges, Blocks)):
            # A connected policy has one part, which no record can leave.
            labels = edges.components().labels
            one_part = np.zeros(policy.domain.size, dtype=np.int64)
            self.parts = one_part if labels is None else labels
        self.start = self._start(start)

    def _start(self, start: Any) -> FloatArray:
        low, high = self.grid.low, self.grid.high
        centers: FloatArray
        if start is None:
            centers = low + evenly_spread(self.clusters, self.grid.axes) * (high - low)
            return np.clip(centers, low, high)
        given = np.asarray(start)
        if given.dtype.kind not in "biuf":
            raise InputError("start holds numbers", received=f"dtype {given.dtype}")
        centers = np.array(given, dtype=np.float64)
        if centers.shape != (self.clusters, self.grid.axes):
            raise InputError(
                f"start must hold {self.clusters} centres of {self.grid.axes} "
                f"coordinates; received shape {centers.shape}"
            )
        if not ((low <= centers) & (centers <= high)).all():
            raise InputError(
                f"start must lie in the box from {low.tolist()} to {high.tolist()}"
            )
        return centers

    def _run(self, private: Handle) -> Outcome:
        centers, history, measurements = self.start, [self.start], []
        for part in private.split(self.rounds):
            strategy = ClusterSums(self.grid, centers, self.parts, share=self.share)
            measurements.append(part.measure(strategy, budget=part.remaining))
            scales, noisy = measurements[-1].scales, measurements[-1].noisy
            centers = strategy.moved_centers(noisy, scales)
            history.append(centers)
        details = {
            "history": np.array(history),
            "sizes": noisy[: self.clusters].copy(),
            "step": self.grid.step,
            "assigned": "points" if self.parts is None else "parts",
        }
        return Outcome(centers, measurements, details, interval_scope="nothing")

    def _published(self, outcome: Outcome, guarantee: Guarantee) -> Release:
        return KMeansRelease(
            self.domain, outcome.estimate, guarantee, outcome.details, _version()
        )

    def _notes(self) -> tuple[str, ...]:
        return ("Every point counts as the centre of its cell.",)

    def _kept_apart(self) -> dict[str, Any]:
        cells = self.domain.size
        if cells <= CELLS_KEPT_APART:
            return {"buckets": Buckets.single_cells(cells)}
        return {"buckets": Buckets(np.array([0, cells]))}

    def _counts(self, data: Any) -> Any:
        """Read points, as positions of their cells, or a histogram."""
        if isinstance(data, Histogram):
            return super()._counts(data)
        self.policy._check_bound(None)
        points = _as_points(data, self.domain)
        places, outside = kernels.cell_positions(
            points, self.grid.edges, self.grid.offsets
        )
        if outside:
            raise CountsError(
                f"points must lie in the box from {self.grid.low.tolist()} to "
                f"{self.grid.high.tolist()}; some do not. Widen the edges of the "
                "domain, or clip the points"
            )
        return places

    @classmethod
    def example(
        cls, domain: Domain, policy: Policy, epsilon: Any
    ) -> tuple[Self, AnyArray]:
        """Return the mechanism for two clusters, with points in two corners."""
        mechanism = cls(policy, 2, epsilon=epsilon, rounds=3)
        low, high = mechanism.grid.low, mechanism.grid.high
        spread = evenly_spread(60, mechanism.grid.axes) / 4
        spread[::3] = 1 - spread[::3]
        return mechanism, low + spread * (high - low)

    def __repr__(self) -> str:
        return (
            f"KMeans({self.policy!r}, clusters={self.clusters}, "
            f"{self.budget.currency}={float(self.budget):g}, rounds={self.rounds})"
        )


def evenly_spread(count: int, axes: int) -> FloatArray:
    """Return points spread evenly over the unit cube by a generalised golden ratio.

    Parameters
    ----------
    count : int
        How many.
    axes : int
        Number of axes.

    Returns
    -------
    ndarray of float64, shape (count, axes)
        The points.
    """
    ratio = 1.5
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (axes + 1))
    steps = ratio ** -np.arange(1.0, axes + 1)
    spread: FloatArray = (0.5 + np.arange(1, count + 1)[:, None] * steps) % 1.0
    return spread


def _as_points(data: Any, domain: Domain) -> FloatArray:
    """Read points, one row each; on a single attribute a flat array will do."""
    with malformed_as(InputError, "points must be an array of numbers"):
        points = np.asarray(data)
    if points.dtype.kind not in "iuf":
        raise InputError(
            f"points must be numbers; received dtype {points.dtype}. Counts go into a "
            "Histogram"
        )
    if domain.ndim == 1 and points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or points.shape[1] != domain.ndim:
        raise DomainError(
            f"points must have shape (n, {domain.ndim}), one column per attribute; "
            f"received {points.shape}. Counts go into a Histogram"
        )
    kept = points.dtype.kind == "f" and points.dtype != np.longdouble
    return points if kept else points.astype(np.float64)
