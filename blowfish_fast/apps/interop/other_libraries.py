"""Mechanisms as other libraries call theirs: OpenDP measurements, DPBench engines.

`as_measurement` speaks OpenDP's words for any policy and needs no OpenDP; `as_opendp`
builds a real OpenDP measurement. Both privacy maps are d_in * epsilon. `Engine` has the
signature of DPBench and ektelo, ``Run(Q, x, epsilon, seed)``, whose workloads hold a
``query_list``; each query has ``ranges``, a list of (lowest cell, highest cell, weight)
with both ends included, one number per axis. Matrices have a row per query and a column
per cell in C order.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import (
    as_fraction,
    as_integers,
    float_above,
    malformed_as,
)
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import (
    CountsError,
    DomainError,
    InputError,
    PolicyError,
    WorkloadError,
    nearest,
)
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.registry import MechanismName, find_mechanism
from blowfish_fast.policies import AddRemove, Full
from blowfish_fast.release.file import Release
from blowfish_fast.workloads import Identity, Linear, Ranges, Rectangles, Workload
from blowfish_fast.workloads.base import form_matrix

from .estimator import check_stated, policy_over

LARGEST_COUNT = 2**32
"""Counts from a foreign pipeline are cut here: far above any table, far below 2^62."""


class OpenDPMeasurement:
    """A mechanism with the interface of an OpenDP measurement.

    Parameters
    ----------
    mechanism : Mechanism
        What releases the data. Its policy says what a step is, its budget what a
        step costs.

    Notes
    -----
    Two databases are `d_in` apart if `d_in` steps lead from one to the other and no
    fewer, where each step joins two neighbours of the policy (`input_metric` says what
    that is). Along such a chain the factors e^epsilon multiply, so databases `d_in`
    apart are within e^(d_in * epsilon): group privacy. That is the privacy map,
    computed in fractions and rounded up. A mechanism paid in rho has the measure
    "ZeroConcentratedDivergence", and d_in steps cost rho d_in^2. Under constraints the
    chain runs over databases that fulfil them, and a step may change several records.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> mechanism, _ = bf.Ordered.example(line, bf.policies.Line(line), 0.5)
    >>> measurement = as_measurement(mechanism)
    >>> measurement.output_measure, measurement.map(d_in=2)
    ('MaxDivergence', 1.0)
    >>> measurement.check(d_in=3, d_out=1.5), measurement([3, 0, 2, 5]).estimate.shape
    (True, (4,))
    >>> print(measurement.input_metric)
    steps; in one step one record moves to an adjacent cell
    """

    def __init__(self, mechanism: Mechanism) -> None:
        if not isinstance(mechanism, Mechanism):
            raise InputError(
                f"a measurement is made of a mechanism, such as Dawa(...); received "
                f"{mechanism!r}"
            )
        self.mechanism = mechanism
        self.output_measure = (
            "MaxDivergence"
            if mechanism.budget.power == 1
            else "ZeroConcentratedDivergence"
        )

    @property
    def input_domain(self) -> Domain:
        """The cells over which the data is counted."""
        return self.mechanism.domain

    @property
    def input_metric(self) -> str:
        """What one step between two databases is."""
        return f"steps; in one step {self.mechanism.policy.neighbours}"

    def _loss(self, d_in: Any) -> Fraction:
        steps = as_integers(d_in, "d_in")
        if steps.ndim != 0 or steps < 0:
            raise InputError(
                f"d_in is a number of steps, 0, 1, 2, ...; received {d_in!r}"
            )
        return self.mechanism.budget.at_distance(int(steps)).amount

    def map(self, d_in: int) -> float:
        """Return the epsilon, or rho, that holds for databases `d_in` steps apart.

        Parameters
        ----------
        d_in : int
            How many steps of the policy lie between the databases.

        Returns
        -------
        float
            The loss in the mechanism's own currency, rounded up to the next float.
        """
        return float_above(self._loss(d_in))

    def check(self, d_in: int, d_out: float) -> bool:
        """Tell whether databases `d_in` steps apart are `d_out`-indistinguishable.

        Parameters
        ----------
        d_in : int
            How many steps of the policy lie between the databases.
        d_out : float
            The loss that is asked about: an epsilon, or a rho if the mechanism is
            paid in rho.

        Returns
        -------
        bool
            Whether the loss at `d_in` steps is at most `d_out`, compared as exact
            fractions.
        """
        return self._loss(d_in) <= as_fraction(d_out, "d_out")

    def invoke(self, data: Any) -> Release:
        """Spend epsilon once on `data`, with secure noise, and publish the result.

        Parameters
        ----------
        data : array_like or Histogram
            What the mechanism's `release` takes: counts of its domain.

        Returns
        -------
        Release
            The published result, with its guarantee.
        """
        return self.mechanism.release(data)

    __call__ = invoke

    def __repr__(self) -> str:
        return (
            f"OpenDPMeasurement({self.mechanism!r}, "
            f"input_metric={self.input_metric!r}, "
            f"output_measure={self.output_measure!r})"
        )


def as_measurement(mechanism: Mechanism) -> OpenDPMeasurement:
    """Return a mechanism, under any policy, as a measurement without OpenDP.

    Parameters
    ----------
    mechanism : Mechanism
        What releases the data, under any policy and in either currency.

    Returns
    -------
    OpenDPMeasurement
        The same mechanism, with `map`, `check` and `invoke`.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> mechanism, _ = bf.Ordered.example(line, bf.policies.Line(line), 0.5)
    >>> as_measurement(mechanism).map(d_in=3)
    1.5
    """
    return OpenDPMeasurement(mechanism)


def as_opendp(
    mechanism: Mechanism,
    *,
    counts: bool = False,
    size: int | None = None,
    input_domain: Any = None,
    T: str = "i64",
    whole_release: bool = False,
) -> Any:
    """Return a real OpenDP measurement that releases with `mechanism`.

    It takes a list or array of whole numbers and returns a list of floats, the
    estimated count of every cell in C order. OpenDP asks that you
    enable its features "contrib" and "honest-but-curious" first, for it cannot check
    code outside its library; what it would check is proved below.

    Parameters
    ----------
    mechanism : Mechanism
        Under a policy that protects at least `AddRemove` or at least `Full`; OpenDP has
        no metric for others, which raise PolicyError.
    counts : bool
        False: the numbers are records, each the number of its cell in C order. True:
        they are the counts of the cells, as from ``make_count_by_categories``; only
        under `AddRemove`.
    size : int, optional
        The public number of records; `Full` needs it, unless `input_domain` is given.
    input_domain : opendp Domain, optional
        A vector domain of whole numbers, such as the ``output_domain`` of the
        transformation to chain with.
    T : {"i64", "i32"}
        Type of the cell numbers of records: "i64" for arrays of numpy, "i32" to chain
        with transformations of OpenDP's ``int``.
    whole_release : bool
        Return the `Release` instead, with its guarantee and intervals.

    Returns
    -------
    opendp Measurement
        It takes a list or array of whole numbers, and its privacy map is that of
        `OpenDPMeasurement`.

    Raises
    ------
    PolicyError
        If OpenDP has no metric for the policy, or none over counts.
    InputError
        If `T` is another word, or the number of records is needed and missing.

    Notes
    -----
    The function is total: a record beyond the last cell counts in the last, one below
    0 in the first; counts are cut to 0 .. 2^32, cells without a count have 0, counts
    without a cell are left out. None of it moves two databases further apart.

    Records, `AddRemove`: at symmetric distance d one list becomes the other, up to
    order, by d additions and removals, each a step of the policy. Counts, `AddRemove`:
    at L1 distance d, d steps of one count by one, removals first, so none is negative.
    Records, `Full`: OpenDP's distance is over lists of the one length `size`; at
    distance d one becomes the other, up to order, by d changes of a record, each a
    step of the policy. A step costs epsilon, d steps at most d epsilon
    (`OpenDPMeasurement`).

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> import opendp.prelude as dp  # doctest: +SKIP
    >>> dp.enable_features("contrib", "honest-but-curious")  # doctest: +SKIP
    >>> line = bf.Domain(8)
    >>> policy, ranges = bf.policies.AddRemove(line), bf.workloads.AllRanges(line)
    >>> dawa = bf.Dawa(policy, ranges, epsilon=0.5)
    >>> measurement = as_opendp(dawa)  # doctest: +SKIP
    >>> measurement.map(2)  # doctest: +SKIP
    1.0
    """
    dp: Any = require("opendp.prelude", extra="interop", purpose="as_opendp")
    own = OpenDPMeasurement(mechanism)
    policy, domain = mechanism.policy, mechanism.domain
    adds = not policy.has_constraints and policy.implies(AddRemove(domain))
    moves = not policy.has_constraints and policy.implies(Full(domain))
    if not (adds or (moves and not counts)):
        raise PolicyError(
            f"OpenDP's metrics cannot state {policy!r}"
            + (" over counts" if counts else "")
            + ". Use policies.AddRemove (records or counts) or policies.Full (records, "
            "with size), or interop.as_measurement, which states any policy"
        )
    if counts:
        metric = dp.l1_distance(T="i64")
        vectors = dp.vector_domain(dp.atom_domain(T="i64"), size=domain.size)
    else:
        if T not in ("i64", "i32"):
            raise InputError(f'T is "i64" or "i32"; received {T!r}')
        cells = dp.atom_domain(bounds=(0, domain.size - 1), T=T)
        if adds:
            metric, vectors = dp.symmetric_distance(), dp.vector_domain(cells)
        elif size is None and input_domain is None:
            raise InputError(
                "under policies.Full the number of records is public, and OpenDP's "
                "ChangeOneDistance needs it: pass size"
            )
        else:
            metric, vectors = dp.change_one_distance(), dp.vector_domain(cells, size)

    def function(data: Any) -> Any:
        read = _counts if counts else _count_records
        release = mechanism.release(Histogram(domain, read(data, domain)))
        return release if whole_release else release.estimate.reshape(-1).tolist()

    return dp.m.make_user_measurement(
        vectors if input_domain is None else input_domain,
        metric,
        dp.max_divergence()
        if mechanism.budget.power == 1
        else dp.zero_concentrated_divergence(),
        function,
        own.map,
    )


def _count_records(records: Any, domain: Domain) -> IntArray:
    cells = np.clip(np.asarray(records, dtype=np.int64), 0, domain.size - 1)
    return np.bincount(cells, minlength=domain.size).reshape(domain.shape)


def _counts(values: Any, domain: Domain) -> IntArray:
    counts = np.zeros(domain.size, dtype=np.int64)
    clipped = np.clip(np.asarray(values, dtype=np.int64), 0, LARGEST_COUNT)
    counts[: clipped.size] = clipped[: domain.size]
    return counts.reshape(domain.shape)


def _check_options(kind: Any, options: Mapping[str, Any]) -> None:
    """Refuse options that the class of a mechanism does not take, by their names."""
    parameters = inspect.signature(kind).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    words = [
        parameter.name
        for parameter in parameters
        if parameter.name not in ("policy", "workload", "epsilon", "rho", "delta")
    ]
    for name in options:
        if name not in words:
            raise InputError(
                f"{kind.__name__} has no option {name!r}{nearest(str(name), words)}; "
                f"it takes {', '.join(words) or 'none'}"
            )


class Engine:
    """A mechanism that estimates a histogram, as DPBench and ektelo call theirs.

    `short_name` and `init_params` are for tables of results, as in DPBench.

    Parameters
    ----------
    mechanism : str or class
        A mechanism of the package by its name, such as "dawa"; a class; or
        "package:Class" for a mechanism defined elsewhere.
    policy : Policy, str or callable
        What must stay indistinguishable; it has no default. A word or a function of
        the domain is applied to the domain of each `Run`. `Engine.dpbench` states
        the policy that DPBench and ektelo mean.
    options : mapping, optional
        Further arguments of the mechanism by their names, such as ``{"share": 0.25}``,
        handed to its class at every `Run`. Each mechanism has words of its own, which
        ``inspect.signature`` of its class lists; a word that it does not take is
        refused here, with the nearest one that it does.

    Raises
    ------
    InputError
        If there is no such mechanism, or it does not take one of the options.
    PolicyError
        If no policy is stated.

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
        self,
        mechanism: MechanismName,
        *,
        policy: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.kind = find_mechanism(mechanism)
        check_stated(policy)
        self.mechanism = self.kind.name
        self.policy = policy
        self.options = dict(options or {})
        _check_options(self.kind, self.options)
        self.short_name = self.kind.__name__
        stated = {"mechanism": self.mechanism, "policy": policy}
        self.init_params = {**stated, **self.options}

    @classmethod
    def dpbench(
        cls, mechanism: MechanismName, *, options: Mapping[str, Any] | None = None
    ) -> Self:
        """Return an engine under the neighbours of DPBench and ektelo.

        One record is added or removed, so noise on a histogram has scale 1 / epsilon.

        Parameters
        ----------
        mechanism : str or class
            As for `Engine`.
        options : mapping, optional
            Further arguments of the mechanism, as for `Engine`.

        Returns
        -------
        Engine
            The engine with ``policy="add_remove"``.

        Raises
        ------
        InputError
            If the mechanism does not take one of the options.
        """
        return cls(mechanism, policy="add_remove", options=options)

    def Run(
        self,
        Q: Any,
        x: Any,
        epsilon: Any,
        seed: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Return an estimate of `x`, of its shape, tuned to `Q`.

        Parameters
        ----------
        Q : Workload, DPBench or ektelo workload, matrix, list of queries, or None
            The queries that should be accurate. Ranges of DPBench include both
            ends. None asks for every cell.
        x : array_like of int
            The true count of every cell, flat or of the shape of the domain.
        epsilon : number
            What this run spends.
        seed : int or numpy Generator, optional
            None draws secure noise. A seed makes the run a repeatable experiment,
            which protects nobody.

        Returns
        -------
        ndarray of float64
            The estimated counts, in the shape of `x`.

        Raises
        ------
        InputError
            If the mechanism is "kmeans", which estimates no counts.
        """
        if self.mechanism == "kmeans":
            raise InputError(
                "k-means finds centres and estimates no counts, so it cannot Run; "
                "engine.release(Q, x, epsilon, seed).centers has them"
            )
        estimate: FloatArray = self.release(Q, x, epsilon, seed).estimate
        return estimate.reshape(np.shape(x)).copy()

    def release(
        self,
        Q: Any,
        x: Any,
        epsilon: Any,
        seed: int | np.random.Generator | None = None,
    ) -> Release:
        """Return the whole release of a `Run`: guarantee, intervals, details.

        Parameters
        ----------
        Q : Workload, DPBench or ektelo workload, matrix, list of queries, or None
            As for `Run`.
        x : array_like of int
            As for `Run`.
        epsilon : number
            As for `Run`.
        seed : int or numpy Generator, optional
            As for `Run`; a release with a seed is marked as an experiment.

        Returns
        -------
        Release
            What the mechanism published.

        Raises
        ------
        DomainError
            If `x` has not as many cells as the queries are over.
        """
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
        words = [f"options={self.options!r}"] if self.options else []
        stated = [repr(self.mechanism), f"policy={self.policy!r}", *words]
        return f"Engine({', '.join(stated)})"


def domain_of(queries: Any, counts: Any) -> Domain:
    """Return the domain of the queries, or else of the counts' shape.

    Parameters
    ----------
    queries : Workload or foreign workload
        Its own domain counts first: `domain` of a `Workload`, ``domain_shape`` of
        others.
    counts : array_like
        Its shape is the domain's where the queries state none.

    Returns
    -------
    Domain
        Cells without names or edges, unless a `Workload` brought its own.
    """
    if isinstance(queries, Workload):
        return queries.domain
    shape = getattr(queries, "domain_shape", None)
    if shape is None:
        return Domain(np.shape(counts))
    return Domain(tuple(int(size) for size in np.atleast_1d(shape)))


@malformed_as(WorkloadError, "queries must be a workload, a matrix or a query list")
def workload_of(queries: Any, domain: Domain) -> Workload:
    """Read the queries of another library as a workload.

    Parameters
    ----------
    queries : Workload, foreign workload, matrix, list of queries, or None
        None asks for every cell. A ``query_list``, or a list of objects with
        ``ranges``, is read as weighted ranges with both ends included. Anything
        else is read as a matrix with a row per query: its ``get_matrix()``,
        ``sparse_matrix()`` or ``matrix`` if it has one, or itself.
    domain : Domain
        The cells that the queries are over, numbered in C order.

    Returns
    -------
    Workload
        `Ranges` or `Rectangles` where each query is a single box of weight 1,
        `Linear` otherwise.

    Raises
    ------
    WorkloadError
        If the list is empty, or a matrix does not hold real numbers.
    """
    if queries is None:
        return Identity(domain)
    if isinstance(queries, Workload):
        return queries
    listed = getattr(queries, "query_list", None)
    several = isinstance(queries, list | tuple) and len(queries) > 0
    if (
        listed is None
        and several
        and all(hasattr(query, "ranges") for query in queries)
    ):
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
    boxes = [box for ranges in listed for box in ranges]
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
