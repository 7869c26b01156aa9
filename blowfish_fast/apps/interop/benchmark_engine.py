"""Mechanisms behind the signature of DPBench and ektelo: ``Run(Q, x, epsilon, seed)``.

Serves experiments written for these projects: an engine of ours goes where one of
theirs was, and returns an estimate of x.

    engine = Engine.dpbench("dawa")            theirs: a record is added or removed
    x_hat = engine.Run(Q, x, epsilon, seed)    x_hat has the shape of x
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import DomainError, InputError
from blowfish_fast.mechanisms.plugins import MechanismName, find_mechanism
from blowfish_fast.release.release import Release

from .foreign_workloads import domain_of, workload_of
from .stated_policy import check_stated, policy_over


class Engine:
    """A mechanism that estimates a histogram, as DPBench and ektelo call theirs.

    Parameters
    ----------
    mechanism : str or class
        A name such as "dawa", ``"package:Class"``, or a class of mechanisms.
    policy : str, Policy, or function from Domain to Policy
        What must stay indistinguishable; always stated. `Engine.dpbench` states what
        these projects mean.
    options
        Further arguments of the mechanism, such as ``share=0.25``.

    Attributes
    ----------
    short_name, init_params
        For tables of results, as in DPBench.

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

        One record is added or removed (unbounded differential privacy): their Laplace
        noise on a histogram has scale 1 / epsilon.
        """
        return cls(mechanism, policy="add_remove", **options)

    def Run(
        self,
        Q: Any,
        x: Any,
        epsilon: Any,
        seed: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Return an estimate of `x`, tuned to `Q`.

        Parameters
        ----------
        Q : Workload, DPBench or ektelo workload, matrix, list of queries, or None
            See ``foreign_workloads``; ranges there include both ends.
        x : array of counts
            Whole numbers; flat, or of the shape of the domain.
        epsilon : number
        seed : int or Generator, optional
            None draws secure noise. Theirs must be set; ours makes an experiment.

        Returns
        -------
        float64 of the shape of `x`
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
        domain = domain_of(Q, x)
        counts = np.asarray(x)
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
