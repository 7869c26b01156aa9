"""Mechanisms behind the signature of DPBench and ektelo: ``Run(Q, x, epsilon, seed)``.

Their workloads hold a ``query_list``; each query has ``ranges``, a list of (lowest
cell, highest cell, weight) with both ends included, one number per axis. Matrices have
a row per query and a column per cell in C order.
"""

from __future__ import annotations

import sys
from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import malformed_as
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import CountsError, DomainError, InputError, WorkloadError
from blowfish_fast.mechanisms.registry import MechanismName, find_mechanism
from blowfish_fast.release.release import Release
from blowfish_fast.workloads import Identity, Linear, Ranges, Rectangles, Workload
from blowfish_fast.workloads.base import form_matrix

from .estimator import check_stated, policy_over


class Engine:
    """A mechanism that estimates a histogram, as DPBench and ektelo call theirs.

    The `mechanism` is a class or a name, such as "dawa" or ``"package:Class"``;
    `options` are its further arguments. The `policy` is always stated, also as a word
    or a function of the domain; `Engine.dpbench` states what these projects mean.
    `short_name` and `init_params` are for tables of results, as in DPBench.

    Notes
    -----
    Guarantee: each `Run` with ``seed=None`` is epsilon-Blowfish for the policy, by the
    proof of the mechanism. A seed makes the noise repeatable: an experiment that
    protects nobody, whatever epsilon says; the release of `release` is marked so.
    The shape of x, Q and the options count as public.

    Examples
    --------
    >>> x = np.array([0, 0, 9, 9, 9, 9, 1, 0])
    >>> ranges = np.tril(np.ones((8, 8)))
    >>> Engine.dpbench("laplace").Run(ranges, x, 1.0, seed=7).shape
    (8,)
    """

    def __init__(
        self, mechanism: MechanismName, *, policy: Any = None, **options: Any
    ) -> None:
        self.kind = find_mechanism(mechanism)
        check_stated(policy)
        self.mechanism = self.kind.name
        self.policy = policy
        self.options = options
        self.short_name = self.kind.__name__
        self.init_params = {"mechanism": self.mechanism, "policy": policy, **options}

    @classmethod
    def dpbench(cls, mechanism: MechanismName, **options: Any) -> Self:
        """Return an engine under the neighbours of DPBench and ektelo.

        One record is added or removed, so noise on a histogram has scale 1 / epsilon.
        """
        return cls(mechanism, policy="add_remove", **options)

    def Run(
        self,
        Q: Any,
        x: Any,
        epsilon: Any,
        seed: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Return an estimate of `x`, of its shape, tuned to `Q`.

        `Q` is a Workload, a DPBench or ektelo workload, a matrix, a list of queries, or
        None; ranges of theirs include both ends. `x` holds whole counts, flat or of the
        shape of the domain. Without a seed noise is secure; with one the run is an
        experiment.
        """
        if self.mechanism == "kmeans":
            raise InputError(
                "k-means finds centres and estimates no counts, so it cannot Run; "
                "engine.release(Q, x, epsilon, seed).centers has them"
            )
        estimate = self.release(Q, x, epsilon, seed).estimate
        return estimate.reshape(np.shape(x)).copy()

    def release(
        self,
        Q: Any,
        x: Any,
        epsilon: Any,
        seed: int | np.random.Generator | None = None,
    ) -> Release:
        """Return the whole release of a `Run`: guarantee, intervals, details."""
        with malformed_as(CountsError, "x must be an array of whole numbers"):
            counts = np.asarray(x)
        domain = domain_of(Q, counts)
        if counts.size != domain.size:
            raise DomainError(
                f"x has {counts.size} cells and the queries are over {domain.size}"
            )
        data = Histogram(domain, counts.reshape(domain.shape))
        policy = policy_over(self.policy, domain)
        arguments = () if self.mechanism == "kmeans" else (workload_of(Q, domain),)
        chosen: Any = self.kind
        mechanism = chosen(policy, *arguments, epsilon=epsilon, **self.options)
        released: Release = mechanism.release(data, seed)
        return released

    def __repr__(self) -> str:
        words = [f"{name}={value!r}" for name, value in self.options.items()]
        stated = [repr(self.mechanism), f"policy={self.policy!r}", *words]
        return f"Engine({', '.join(stated)})"


def domain_of(queries: Any, counts: Any) -> Domain:
    """Return the domain of the queries, or else of the counts' shape."""
    if isinstance(queries, Workload):
        return queries.domain
    shape = getattr(queries, "domain_shape", None)
    if shape is None:
        return Domain(np.shape(counts))
    return Domain(tuple(int(size) for size in np.atleast_1d(shape)))


@malformed_as(WorkloadError, "queries must be a workload, a matrix or a query list")
def workload_of(queries: Any, domain: Domain) -> Workload:
    """Read foreign queries over `domain`; None asks for every cell."""
    if queries is None:
        return Identity(domain)
    if isinstance(queries, Workload):
        return queries
    listed = getattr(queries, "query_list", None)
    several = isinstance(queries, list | tuple) and len(queries) > 0
    if listed is None and several and all(hasattr(one, "ranges") for one in queries):
        listed = queries
    if listed is not None:
        return _from_ranges([list(query.ranges) for query in listed], domain)
    matrix = getattr(queries, "matrix", queries)
    for name in ("get_matrix", "sparse_matrix"):
        if hasattr(queries, name):
            matrix = getattr(queries, name)()
    kind = getattr(matrix, "dtype", np.asarray(matrix).dtype).kind
    if kind not in "biuf":
        raise WorkloadError(
            "a matrix of queries holds real numbers", received=f"dtype {kind!r}"
        )
    return Linear(domain, matrix)


def _from_ranges(listed: list[list[Any]], domain: Domain) -> Workload:
    from scipy import sparse

    if not listed:
        raise WorkloadError("the list of queries is empty; ask at least one")
    boxes = [one for ranges in listed for one in ranges]
    lows = np.array([np.atleast_1d(low) for low, _, _ in boxes], dtype=np.int64)
    highs = np.array([np.atleast_1d(high) for _, high, _ in boxes], dtype=np.int64) + 1
    weights = np.array([weight for _, _, weight in boxes], dtype=np.float64)
    rectangles = Rectangles(domain, lows, highs)
    if all(len(ranges) == 1 for ranges in listed) and (weights == 1).all():
        if domain.ndim == 1:
            return Ranges(domain, lows[:, 0], highs[:, 0])
        return rectangles
    owners = np.repeat(np.arange(len(listed)), [len(ranges) for ranges in listed])
    sums = sparse.csr_array(
        (weights, (owners, np.arange(weights.size))), shape=(len(listed), weights.size)
    )
    form = rectangles.explicit_form(Buckets.single_cells(domain.size))
    return Linear(domain, sums @ form_matrix(form, domain.size, most=sys.maxsize))
