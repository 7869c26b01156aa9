"""Private cluster centres with the interface of scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, cast

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.mechanisms.kmeans import KMeans, KMeansRelease

from .estimator import Estimator

POINTS_AT_ONCE = 2**14


@dataclass(repr=False, eq=False)
class PrivateKMeans(Estimator):
    """Cluster centres, found under a Blowfish policy.

    Parameters
    ----------
    policy, epsilon, bounds, bins, outside, ledger, random_state
        As for `PrivateHistogram`; a point counts as the centre of its cell.
    n_clusters : int
        Number of centres.
    rounds : int
        Lloyd iterations, fixed in advance.
    init : (n_clusters, columns) array_like, optional
        Public centres to start from, never points of the data.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, columns) float64
    release_ : KMeansRelease
    policy_, n_features_in_, feature_names_in_, n_iter_, n_fits_, epsilon_spent_

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
        """Find the centres. Spends epsilon.

        Parameters
        ----------
        X : (points, columns) array_like or table
        y : ignored
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
        release = cast(KMeansRelease, self._pay(mechanism, points))
        self.policy_ = policy
        self.n_features_in_ = points.shape[1]
        self.n_iter_ = self.rounds
        self.cluster_centers_ = release.centers
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the distance of each point from each centre."""
        self._check_fitted()
        points = self._array(X)
        distances = np.empty((len(points), len(self.cluster_centers_)))
        for begin in range(0, len(points), POINTS_AT_ONCE):
            some = slice(begin, begin + POINTS_AT_ONCE)
            apart = points[some, None, :] - self.cluster_centers_
            distances[some] = np.sqrt((apart * apart).sum(axis=2))
        return distances

    def predict(self, X: Any) -> IntArray:
        """Return the number of the nearest centre of each point."""
        nearest: IntArray = self.transform(X).argmin(axis=1)
        return nearest

    def fit_predict(self, X: Any, y: Any = None) -> IntArray:
        """Fit, then predict the same points; the labels are not private."""
        return self.fit(X).predict(X)

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Fit, then transform the same points; the distances are not private."""
        return self.fit(X).transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the squared distances to the nearest centres. Not private."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())
