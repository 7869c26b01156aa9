"""The public space of values: ordered attributes and their cells.

A domain is known before any data is seen: sizes, edges and levels are public and
never guessed from records. Cells are numbered in C order.

    age  x  income      shape (3, 4): cell (1, 2) has number 1 * 4 + 2 = 6
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._typing import FloatArray
from ._validation import as_integers
from .errors import DomainError, InputError

LARGEST_DOMAIN = 2**28


@dataclass(frozen=True)
class Attribute:
    """One axis of a domain: `size` cells in order, with edges, levels or neither."""

    size: int
    name: str | None = None
    edges: tuple[float, ...] | None = None
    levels: tuple[Any, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {
            "size": self.size,
            "name": self.name,
            "edges": None if self.edges is None else list(self.edges),
            "levels": None if self.levels is None else list(self.levels),
        }


class Domain:
    """A product of ordered attributes, each cut into cells.

    Parameters
    ----------
    shape : int or sequence of int
        Number of cells of each attribute.
    names : sequence of str, optional
        Names of the attributes, all different.

    Examples
    --------
    >>> Domain(4096).size
    4096
    >>> Domain((1024, 1024)).shape
    (1024, 1024)
    >>> Domain.from_edges(range(0, 101, 10), name="age")
    Domain(age: 10 cells)
    """

    __slots__ = ("attributes",)

    attributes: tuple[Attribute, ...]

    def __init__(
        self, shape: int | Sequence[int], names: Sequence[str] | None = None
    ) -> None:
        sizes = _sizes(shape)
        if names is not None and len(names) != len(sizes):
            raise DomainError(
                f"give one name per attribute: {len(sizes)} attributes, "
                f"{len(names)} names"
            )
        labels = list(names) if names is not None else [None] * len(sizes)
        self._set(
            tuple(
                Attribute(size, name) for size, name in zip(sizes, labels, strict=True)
            )
        )

    def _set(self, attributes: tuple[Attribute, ...]) -> None:
        names = [one.name for one in attributes if one.name is not None]
        if len(set(names)) != len(names):
            raise DomainError(
                f"attribute names must differ; received {names}. Rename one of them"
            )
        cells = math.prod(one.size for one in attributes)
        if cells > LARGEST_DOMAIN:
            raise DomainError(
                f"a domain holds at most 2^28 = {LARGEST_DOMAIN:,} cells; this one "
                f"would have {cells:,}. Use coarser edges, or fewer attributes"
            )
        object.__setattr__(self, "attributes", attributes)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Domain never changes; build a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return Domain.from_dict, (self.to_dict(),)

    @classmethod
    def _of(cls, attributes: Iterable[Attribute]) -> Domain:
        domain = object.__new__(cls)
        domain._set(tuple(attributes))
        return domain

    @classmethod
    def from_edges(cls, edges: Iterable[float], name: str | None = None) -> Domain:
        """Cut a numeric attribute at public `edges`; cell i is [edges[i], edges[i+1]).

        The last cell also holds the last edge itself.
        """
        cuts: FloatArray = np.asarray(list(edges), dtype=np.float64)
        if cuts.ndim != 1 or cuts.size < 2:
            raise DomainError(
                f"edges must be at least two numbers; received {cuts.size}. "
                "n cells have n + 1 edges"
            )
        if not np.isfinite(cuts).all():
            raise DomainError("edges must be finite; clamp the values at both ends")
        if not (np.diff(cuts) > 0).all():
            raise DomainError("edges must increase strictly; sort them, drop repeats")
        return cls._of([Attribute(cuts.size - 1, name, edges=tuple(cuts.tolist()))])

    @classmethod
    def from_levels(cls, levels: Iterable[Any], name: str | None = None) -> Domain:
        """Give each of the public `levels` of a categorical attribute its cell."""
        values = tuple(levels)
        if not values:
            raise DomainError("levels must not be empty; list every possible value")
        if len(set(values)) != len(values):
            raise DomainError("levels must differ; a value stands in the list twice")
        return cls._of([Attribute(len(values), name, levels=values)])

    @classmethod
    def product(cls, *domains: Domain) -> Domain:
        """Combine domains into one over all their attributes."""
        if not domains:
            raise DomainError("a product needs at least one domain; received none")
        return cls._of(one for domain in domains for one in domain.attributes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells of each attribute."""
        return tuple(one.size for one in self.attributes)

    @property
    def size(self) -> int:
        """Number of cells in all."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of attributes."""
        return len(self.attributes)

    @property
    def names(self) -> tuple[str | None, ...]:
        """Names of the attributes; None where none was given."""
        return tuple(one.name for one in self.attributes)

    def axis(self, name: str) -> int:
        """Return the axis of the attribute called `name`."""
        try:
            return self.names.index(name)
        except ValueError:
            raise DomainError(
                f"there is no attribute {name!r}; this domain has {list(self.names)}"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {"attributes": [one.to_dict() for one in self.attributes]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Domain:
        """Rebuild a domain from `to_dict`."""
        return cls._of(
            Attribute(
                int(one["size"]),
                one.get("name"),
                None if one.get("edges") is None else tuple(one["edges"]),
                None if one.get("levels") is None else tuple(one["levels"]),
            )
            for one in data["attributes"]
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return self.attributes == other.attributes

    def __hash__(self) -> int:
        return hash(self.attributes)

    def __repr__(self) -> str:
        parts = [
            f"{one.name}: {one.size} cells" if one.name else f"{one.size} cells"
            for one in self.attributes
        ]
        return f"Domain({' x '.join(parts)})"


def _sizes(shape: Any) -> tuple[int, ...]:
    try:
        sizes = np.atleast_1d(as_integers(shape, "shape"))
    except InputError as problem:
        raise DomainError(str(problem)) from None
    if sizes.ndim != 1 or sizes.size == 0 or (sizes < 1).any():
        raise DomainError(
            "each attribute needs at least one cell; received shape "
            f"{shape!r}. A domain of n ordered values is Domain(n)"
        )
    return tuple(int(size) for size in sizes)
