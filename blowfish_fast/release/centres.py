"""What `KMeans` publishes: the centres of clusters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import malformed_as
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import DomainError, InputError, ReleaseFileError

from .file import Release
from .guarantee import Guarantee

MECHANISM = "kmeans"
"""The name of the mechanism, in files too."""


class Centres(Release):
    """Private centres of clusters, as `KMeans` publishes them.

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
        self._fill(
            {
                "domain": domain,
                "centers": centers,
                "mechanism": MECHANISM,
                "guarantee": guarantee,
                "measurements": (),
                "details": MappingProxyType(dict(details)),
                "interval_scope": "nothing",
                "version": version,
            }
        )

    lacks = "k-means publishes release.centers and no estimate of counts"
    """Why members of other releases are missing here; an error message shows it."""
    instead = "Choose a histogram mechanism for counts"
    """What the same message advises."""

    def objective(self, points: Any) -> float:
        """Return the squared distances to the nearest centres, summed; not private."""
        return kernels.squared_distance_total(
            as_points(points, self.domain), self.centers
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
            if data["mechanism"] != MECHANISM or centers.shape[1:] != (domain.ndim,):
                raise ReleaseFileError("its centres do not fit its domain")
            guarantee = Guarantee.from_dict(data["guarantee"])
            return cls(domain, centers, guarantee, details, str(data["version"]))

    def __repr__(self) -> str:
        return f"Centres({len(self.centers)} centers, {self._in_short()})"


def as_points(data: Any, domain: Domain) -> FloatArray:
    """Read points, one row each; on a single attribute a flat array will do.

    Parameters
    ----------
    data : array-like of numbers, shape (points, axes) or (points,)
        The points.
    domain : Domain
        The box that they lie in, one attribute per axis.

    Returns
    -------
    ndarray of float64 or float32, shape (points, axes)
        The points.

    Raises
    ------
    InputError
        If they are no numbers.
    DomainError
        If there is not one column per attribute.
    """
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
    is_double = points.dtype.kind == "f" and points.dtype != np.longdouble
    return points if is_double else points.astype(np.float64)
