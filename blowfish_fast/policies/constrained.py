"""A policy together with counts that everybody knows.

Neighbouring databases keep the known counts, so several records move at once, each
along an edge of the policy without constraints:

    database 1    a  b  c        known: one record in {a}, one in {b}, one in {c}
    database 2    b  c  a        three moves, none of which alone keeps the counts

A mechanism that is private at eps / group_size without the constraints is private at
eps with them, `group_size` being the most moves that neighbours can need.
"""

from __future__ import annotations

import hashlib
from typing import Any, Self

from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import PolicyError

from .base import Policy, SameGraph, from_dict
from .constraints import Constraints
from .query_graph import Chains, chains


class Constrained(SameGraph):
    """The edges of a policy, and public counts that neighbours must agree on.

    Made by `Policy.with_constraints`. Edges, components and distances are those of
    the policy without constraints; only neighbours differ.

    Parameters
    ----------
    base : Policy
        The policy without constraints.
    constraints : Constraints
        What everybody knows; sparse for `base`, that is, no move along an edge lowers
        or lifts more than one of the counts.

    Notes
    -----
    Neighbours are edge-closed: both databases have the known counts, every record that
    differs moves along an edge of `base`, and no smaller non-empty set of these moves
    keeps the counts. This is weaker than the printed Definition 4.1, where records may
    also move along non-edges and for which the printed bound fails; under `Full` the
    two agree. Proof in ``docs/proofs/constraints.md``.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> from blowfish_fast.policies import Full, MarginalConstraints
    >>> grid = Domain((2, 3))
    >>> policy = Full(grid).with_constraints(MarginalConstraints(grid, 0))
    >>> policy.group_size, histogram_sensitivity(policy)
    (2, 4)
    """

    kind = "constrained"
    has_constraints = True

    def __init__(self, base: Policy, constraints: Constraints) -> None:
        if not isinstance(constraints, Constraints):
            raise PolicyError(
                "known counts are Constraints", received=repr(constraints)
            )
        if base.has_constraints:
            raise PolicyError(
                "all counts that are known are stated at once",
                received=repr(base),
                way_out="State them as one CountConstraints",
            )
        if base.person_rule is not None:
            raise PolicyError(
                "a person's records and known counts cannot be combined: databases "
                "between two neighbours need not have the known counts",
                received=repr(base),
                way_out="State the counts on the policy of single records, or leave "
                "them out",
            )
        if base.domain != constraints.domain:
            raise PolicyError(
                "policy and constraints must share one domain",
                received=f"{base.domain!r} and {constraints.domain!r}",
            )
        super().__init__(base)
        self.constraints = constraints
        self.chains: Chains = chains(constraints, base)
        self._whole = self
        self._bins: Buckets | None = None

    @property
    def group_size(self) -> int:
        """Most records in which neighbours differ, or a bound above; at least 1."""
        return self.chains.group_size

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        inner = buckets if self._bins is None else self._bins.then(buckets)
        seen, whole = Constrained.__new__(Constrained), self._whole
        SameGraph.__init__(seen, whole.base.project(inner))
        seen.constraints, seen.chains = whole.constraints, whole.chains
        seen._whole, seen._bins = whole, inner
        return seen

    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""
        bound = "" if self.chains.exact else " (a bound)"
        together = (
            "no other record has to move along"
            if self.group_size == 1
            else f"up to {self.group_size:,} records{bound} then move together"
        )
        return (
            f"{self.base.describe()}; all this also towards someone who knows "
            f"{self.constraints.describe()}: {together}, and every release spends "
            f"eps / {self.group_size:,} on the policy without that knowledge"
        )

    @property
    def neighbours(self) -> str:
        """Say how two neighbouring databases differ."""
        return (
            f"both have the known counts ({self.constraints.describe()}), every record "
            f"that differs does so along an edge of the policy ({self.base.neighbours})"
            ", and no fewer of these changes keep the counts (edge-closed neighbours, "
            "weaker than the printed Blowfish Definition 4.1, where other records may "
            "change along non-edges)"
        )

    def _parameters(self) -> dict[str, Any]:
        bins = self._bins
        return {
            "base": self._whole.base.to_dict(),
            "constraints": self.constraints.to_dict(),
            "labels": None if bins is None else bins.labels.tolist(),
        }

    @classmethod
    def _from_parameters(cls, domain: Domain, data: dict[str, Any]) -> Self:
        known = Constraints.from_dict(data["constraints"])
        policy = cls(from_dict(data["base"]), known)
        if data["labels"] is None:
            return policy
        seen = policy.project(data["labels"])
        assert isinstance(seen, cls), "a projection keeps its constraints"
        return seen

    def _identity(self) -> tuple[Any, ...]:
        bins = None
        if self._bins is not None:
            bins = hashlib.sha256(self._bins.labels.tobytes()).digest()
        return (self._whole.base, self.constraints, bins)

    def __repr__(self) -> str:
        seen = "" if self._bins is None else f", seen through {self._bins!r}"
        return f"Constrained({self._whole.base!r}, {self.constraints!r}{seen})"


def histogram_sensitivity(policy: Policy) -> int:
    """Return how far the histograms of two neighbours lie apart in L1, at most.

    Exact without constraints; with them 2 * max(alpha, xi), the bound of Theorem 8.2.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> from blowfish_fast.policies import AddRemove, Line
    >>> [histogram_sensitivity(one(Domain(9))) for one in (AddRemove, Line)]
    [1, 2]
    """
    one_record = 2 if policy.has_moves else int(policy.has_bottom)
    return one_record * policy.group_size
