"""k-means clustering: noisy sizes and sums of the clusters, round after round."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, Self, get_args

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast._support.validation import (
    as_choice,
    as_share,
    as_whole,
)
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import (
    CountsError,
    InputError,
    PolicyError,
)
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.strategies.cluster_sums import CellGrid, ClusterSums
from blowfish_fast.policies import Blocks, PerPerson, Policy
from blowfish_fast.release.centres import Centres, as_points
from blowfish_fast.release.guarantee import Guarantee

from .base import Mechanism, Outcome, _version

Assignment = Literal["best", "points", "parts"]

CELLS_KEPT_APART = 2**22
"""Larger domains are not listed cell by cell: points are measured, not cells."""


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
        centres = np.asarray(start)
        if centres.dtype.kind not in "biuf":
            raise InputError("start holds numbers", received=f"dtype {centres.dtype}")
        centers = np.array(centres, dtype=np.float64)
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

    def _published(self, outcome: Outcome, guarantee: Guarantee) -> Centres:
        return Centres(
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
        points = as_points(data, self.domain)
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
        """Return the mechanism for two clusters, with points in two corners.

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
        points : ndarray of float64, shape (points, attributes)
            Made-up points.
        """
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
