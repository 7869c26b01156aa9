"""Private densities and cluster centres with the interface of scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, cast

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.records import cell_blocks, domain_with_rules
from blowfish_fast.errors import InputError
from blowfish_fast.mechanisms.kmeans import KMeans
from blowfish_fast.mechanisms.registry import MECHANISMS
from blowfish_fast.release.centres import Centres
from blowfish_fast.workloads import AllRanges, Identity, Workload

from .estimator import Estimator

POINTS_AT_ONCE = 2**14
"""Points whose distances to all centres are held at the same time."""


@dataclass(repr=False, eq=False)
class PrivateHistogram(Estimator):
    """Density of records, estimated under a Blowfish policy.

    Parameters
    ----------
    policy : Policy, str, or function from Domain to Policy
        What must stay indistinguishable; no default. A `Policy` brings its domain. A
        word ("add_remove", "full", "line", "attribute") or a function needs `bounds`.
    mechanism : str
        A name of ``blowfish_fast.mechanisms.registry.MECHANISMS``.
    epsilon : number
        Spent by every call of `fit`; no default.
    bounds : (low, high), or one pair per column
        Public; never read from the data.
    bins : int, or one per column
        Cells between the bounds.
    workload : Workload, optional
        What the histogram is tuned to; all ranges of one column, else the cells.
    options : dict, optional
        Further arguments of the mechanism.
    outside : {"refuse", "clamp"}
        What happens to values outside the bounds.
    ledger : Ledger, optional
        Charged before each fit; shared by clones.
    random_state : int or numpy Generator, optional
        None draws secure noise. A seed makes the fit an experiment, not private.

    Attributes
    ----------
    counts_, density_ : float64 of the domain's shape
        Estimated records per cell, and a density that is not negative and integrates
        to 1.
    release_, policy_, n_features_in_, feature_names_in_
    n_fits_, epsilon_spent_
        How often this object was fitted, and what all fits together spent.

    Notes
    -----
    Guarantee: each `fit` is epsilon-Blowfish for `policy_`, by the proof of its
    mechanism, as ``release_.guarantee`` says. Records are counted one by one into cells
    that do not depend on the data, so one record's change is one step of the policy.
    Fits on the same people add up (`epsilon_spent_`); clones made by a search spend as
    much again each, which only a shared `ledger` can see. `score` and `score_samples`
    read the records that they are given and add no noise: their results about private
    records are not private, and neither is what other steps of a pipeline learn from
    the records (a scaler's means, a grid search's choice). An error about records that
    are refused is not part of the release.

    Examples
    --------
    >>> ages = np.array([[23.0], [25.0], [31.0], [62.0], [64.0]] * 200)
    >>> model = PrivateHistogram(
    ...     "full", mechanism="laplace", epsilon=1, bounds=(0, 100), bins=10,
    ...     random_state=1)
    >>> model.fit(ages).counts_.shape
    (10,)
    >>> model.predict([[62.0]]).round(-1)
    array([400.])
    """

    _kind = "density_estimator"

    policy: Any = None
    _: KW_ONLY
    mechanism: str = "dawa"
    epsilon: Any = None
    bounds: Any = None
    bins: Any = 64
    workload: Workload | None = None
    options: dict[str, Any] | None = None
    outside: str = "refuse"
    ledger: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the records of `X` and release their histogram. Spends epsilon.

        Parameters
        ----------
        X : (n, columns) array_like
            The records, a row each. A table with named columns keeps the names.
        y : object, optional
            Ignored; scikit-learn passes it.

        Returns
        -------
        PrivateHistogram
            The same object, fitted.

        Raises
        ------
        InputError
            If a parameter or the records do not fit; nothing is charged then.
        """
        rows = self._array(X, fitting=True)
        policy = self._build_policy(rows.shape[1])
        domain = policy.domain
        if self.mechanism not in MECHANISMS or self.mechanism == "kmeans":
            allowed = sorted(set(MECHANISMS) - {"kmeans"})
            raise InputError(
                f"mechanism must be one of {allowed}; not {self.mechanism}"
            )
        workload = self.workload
        if workload is None:
            workload = AllRanges(domain) if domain.ndim == 1 else Identity(domain)
        mechanism = MECHANISMS[self.mechanism](
            policy, workload, epsilon=self.epsilon, **(self.options or {})
        )
        data = Histogram.from_records(domain, list(rows.T), outside=self._outside())
        self._pay(mechanism, data)
        self.policy_ = policy
        self.n_features_in_ = rows.shape[1]
        self.counts_ = self.release_.estimate
        positive = np.maximum(self.counts_, 0.0)
        if not positive.any():
            positive = np.ones(domain.shape)
        self.density_ = positive / (positive * cell_volumes(domain)).sum()
        return self

    def _outside(self) -> Any:
        self._check_outside()
        # A domain with a cell of its own for stray values keeps it.
        return self.outside if self.outside == "clamp" else None

    def _cells(self, records: Any) -> IntArray:
        self._check_fitted()
        rows = self._array(records)
        domain, rules = domain_with_rules(self.policy_.domain, self._outside(), None)
        blocks = list(cell_blocks(domain, rules, list(rows.T)))
        return np.concatenate(blocks)

    def predict(self, X: Any) -> FloatArray:
        """Return the estimated number of records in the cell of each record.

        Parameters
        ----------
        X : (n, columns) array_like
            Records to look up.

        Returns
        -------
        (n,) float64
            What `counts_` holds for each record's cell.
        """
        cells = self._cells(X)
        counts: FloatArray = self.counts_.reshape(-1)[cells]
        return counts

    def score_samples(self, X: Any) -> FloatArray:
        """Return the logarithm of the density at each record; -inf where it is 0.

        Parameters
        ----------
        X : (n, columns) array_like
            Records to look up.

        Returns
        -------
        (n,) float64
            Natural logarithms of `density_`.
        """
        cells = self._cells(X)
        with np.errstate(divide="ignore"):
            logarithms: FloatArray = np.log(self.density_.reshape(-1)[cells])
        return logarithms

    def score(self, X: Any, y: Any = None) -> float:
        """Return the total log-likelihood of the records. Not private; see Notes.

        Parameters
        ----------
        X : (n, columns) array_like
            Records whose likelihood is asked for.
        y : object, optional
            Ignored; scikit-learn passes it.

        Returns
        -------
        float
            The sum of `score_samples`.
        """
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> AnyArray:
        """Draw records from the release, uniform inside cells. Costs nothing.

        Parameters
        ----------
        n_samples : int
            How many records are drawn.
        random_state : int or numpy Generator, optional
            Makes the sample repeatable. The sample reads the release alone, so a
            seed is harmless here.

        Returns
        -------
        (n_samples, columns) ndarray
            Records, a row each.
        """
        self._check_fitted()
        table = self.release_.sample(n_samples, rng=random_state)
        return np.column_stack(list(table.columns.values()))


def cell_volumes(domain: Domain) -> FloatArray:
    """Return the volume of every cell; an attribute without edges has width 1."""
    volumes = np.ones(())
    for attribute in domain.attributes:
        widths = np.ones(attribute.size)
        if attribute.cuts is not None:
            widths[: attribute.regular] = np.diff(np.asarray(attribute.cuts, float))
        volumes = volumes[..., None] * widths
    return volumes


@dataclass(repr=False, eq=False)
class PrivateKMeans(Estimator):
    """Cluster centres, found under a Blowfish policy.

    Parameters
    ----------
    policy : Policy, str, or function from Domain to Policy
        As for `PrivateHistogram`. A point counts as the centre of its cell.
    n_clusters : int
        How many centres are sought.
    epsilon : number
        Spent by every call of `fit`; no default.
    bounds : (low, high), or one pair per column
        Public; never read from the data.
    bins : int, or one per column
        Cells between the bounds.
    rounds : int
        Lloyd iterations, fixed in advance.
    init : (n_clusters, columns) array_like, optional
        Public centres to start from, never points of the data.
    outside : {"refuse", "clamp"}
        What happens to values outside the bounds.
    ledger : Ledger, optional
        Charged before each fit; shared by clones.
    random_state : int or numpy Generator, optional
        None draws secure noise. A seed makes the fit an experiment, not private.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, columns) float64
    release_, policy_, n_features_in_, feature_names_in_, n_iter_
    n_fits_, epsilon_spent_

    Notes
    -----
    Guarantee: each `fit` is epsilon-Blowfish for `policy_`: see `KMeans`. To
    clamp a point moves it alone, so one record stays one record. There is neither
    ``labels_`` nor ``inertia_``: both would publish the training points. `predict` and
    `transform` read the points that they are given and the centres, and add no
    noise: a point's label reveals that point to whoever sees it.

    Examples
    --------
    >>> points = np.concatenate([np.full((500, 2), 2.0), np.full((500, 2), 8.0)])
    >>> model = PrivateKMeans(
    ...     "full", n_clusters=2, epsilon=5, bounds=(0, 10), random_state=1)
    >>> labels = model.fit(points).predict([[2.0, 2.0], [8.0, 8.0]])
    >>> bool(labels[0] != labels[1])
    True
    """

    _kind = "clusterer"

    policy: Any = None
    n_clusters: int = 8
    _: KW_ONLY
    epsilon: Any = None
    bounds: Any = None
    bins: Any = 256
    rounds: int = 10
    init: Any = None
    outside: str = "refuse"
    ledger: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the centres of the points `X`. Spends epsilon.

        Parameters
        ----------
        X : (n, columns) array_like
            The points, a row each.
        y : object, optional
            Ignored; scikit-learn passes it.

        Returns
        -------
        PrivateKMeans
            The same object, fitted.
        """
        points = self._array(X, fitting=True)
        policy = self._build_policy(points.shape[1])
        self._check_outside()
        mechanism = KMeans(
            policy,
            self.n_clusters,
            epsilon=self.epsilon,
            rounds=self.rounds,
            start=self.init,
        )
        if self.outside == "clamp":
            points = np.clip(points, mechanism.grid.low, mechanism.grid.high)
        release = cast(Centres, self._pay(mechanism, points))
        self.policy_ = policy
        self.n_features_in_ = points.shape[1]
        self.n_iter_ = self.rounds
        self.cluster_centers_ = release.centers
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the distance of each point from each centre.

        Parameters
        ----------
        X : (n, columns) array_like
            Points, of the data or any others.

        Returns
        -------
        (n, n_clusters) float64
            Euclidean distances.
        """
        self._check_fitted()
        points = self._array(X)
        distances = np.empty((len(points), len(self.cluster_centers_)))
        for begin in range(0, len(points), POINTS_AT_ONCE):
            some = slice(begin, begin + POINTS_AT_ONCE)
            apart = points[some, None, :] - self.cluster_centers_
            distances[some] = np.sqrt((apart * apart).sum(axis=2))
        return distances

    def predict(self, X: Any) -> IntArray:
        """Return the number of the nearest centre of each point.

        Parameters
        ----------
        X : (n, columns) array_like
            Points, of the data or any others.

        Returns
        -------
        (n,) int64
            Rows of `cluster_centers_`.
        """
        nearest: IntArray = self.transform(X).argmin(axis=1)
        return nearest

    def fit_predict(self, X: Any, y: Any = None) -> IntArray:
        """Fit, then predict the same points; the labels are not private.

        Parameters
        ----------
        X : (n, columns) array_like
            The points, a row each.
        y : object, optional
            Ignored; scikit-learn passes it.

        Returns
        -------
        (n,) int64
            The number of the nearest centre of each point.
        """
        return self.fit(X).predict(X)

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Fit, then transform the same points; the distances are not private.

        Parameters
        ----------
        X : (n, columns) array_like
            The points, a row each.
        y : object, optional
            Ignored; scikit-learn passes it.

        Returns
        -------
        (n, n_clusters) float64
            The distance of each point from each centre.
        """
        return self.fit(X).transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the squared distances to the nearest centres, summed.

        The result is about the points themselves, so it is not private.

        Parameters
        ----------
        X : (n, columns) array_like
            Points, of the data or any others.
        y : object, optional
            Ignored; scikit-learn passes it.

        Returns
        -------
        float
            At most 0; nearer to 0 where the points lie nearer to the centres.
        """
        return -float((self.transform(X).min(axis=1) ** 2).sum())
