"""What every policy answers: edges, components, projection, plain words.

A policy is a graph. Its nodes are the cells of the domain and, where someone's
presence is itself a secret, one more node "absent". An edge joins two values that
must stay indistinguishable: neighbouring databases differ in one record that moves
along one edge. A policy never sees data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from .._typing import AnyArray, BoolArray, IntArray
from ..buckets import Buckets
from ..domain import Domain
from ..errors import DomainError, PolicyError

ABSENT = -1
"""The number of the node "absent" in edge lists."""


class Components(NamedTuple):
    """Connected parts of the policy graph.

    `labels` gives the component of each cell, or None when there is just one;
    `private` marks the components that hold the node "absent". The number of records
    in any other component is public, since no edge changes it.
    """

    labels: IntArray | None
    private: BoolArray

    @property
    def count(self) -> int:
        """Number of components."""
        return self.private.size


class Policy(ABC):
    """A graph of values that must stay indistinguishable, over a domain."""

    kind: ClassVar[str]

    def __init__(self, domain: Domain, *, parent: Policy | None = None) -> None:
        if not isinstance(domain, Domain):
            raise PolicyError(
                f"a policy is stated over a Domain; received {domain!r}. "
                "Write policies.Full(Domain(n))"
            )
        self.domain = domain
        self.parent = parent

    @property
    @abstractmethod
    def has_bottom(self) -> bool:
        """Whether some edge reaches "absent": someone's presence is a secret."""

    @property
    @abstractmethod
    def has_moves(self) -> bool:
        """Whether some edge joins two cells: a record may change its value."""

    @abstractmethod
    def components(self) -> Components:
        """Return the connected parts of the graph."""

    @abstractmethod
    def edges(self, chunk: int = 2**20) -> Iterator[IntArray]:
        """Yield the edges in arrays of shape (at most `chunk`, 2); -1 is "absent"."""

    @abstractmethod
    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        """Return the policy on the buckets, laid over `domain`."""

    @abstractmethod
    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""

    @property
    @abstractmethod
    def neighbours(self) -> str:
        """Say in plain words how two neighbouring databases differ."""

    def project(self, labels: AnyArray | Buckets) -> Policy:
        """Return the quotient policy on bins of cells; it remembers its parent.

        Two bins are joined where some edge joins their cells. Edges inside a bin
        leave its count unchanged and vanish.
        """
        buckets = labels if isinstance(labels, Buckets) else Buckets.from_labels(labels)
        if buckets.cells != self.domain.size:
            raise DomainError(
                f"labels must name a bin for each of the {self.domain.size} cells; "
                f"received {buckets.cells}"
            )
        quotient = self._quotient(buckets, Domain(buckets.count))
        quotient.parent = self
        return quotient

    def _parameters(self) -> dict[str, Any]:
        """Return what `to_dict` needs beyond the domain."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {
            "kind": self.kind,
            "domain": self.domain.to_dict(),
            **self._parameters(),
        }

    @classmethod
    def _from_parameters(cls, domain: Domain, data: dict[str, Any]) -> Self:
        return cls(domain)

    def _identity(self) -> tuple[Any, ...]:
        """Return what makes two policies of one kind equal."""
        return (self.domain,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return self.kind == other.kind and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self.kind, self._identity()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r})"


def one_component(*, private: bool) -> Components:
    """Return the components of a connected graph."""
    return Components(None, np.array([private]))
