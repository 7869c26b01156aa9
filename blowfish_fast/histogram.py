"""True counts over a domain: the only private object of the package.

A histogram goes into ``mechanism.release`` and nowhere else; it prints its domain
and never its counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ._typing import AnyArray, IntArray
from ._validation import as_counts
from .domain import Attribute, Domain
from .errors import CountsError, DomainError, InputError


class Histogram:
    """Counts of records per cell, validated and read-only.

    Parameters
    ----------
    domain : Domain
        The public cells.
    counts : array_like
        Non-negative whole numbers of the domain's shape; any integer dtype, or
        floats that hold integers.

    Examples
    --------
    >>> Histogram(Domain(4), [3, 0, 2, 5])
    Histogram(Domain(4 cells), counts hidden)
    """

    __slots__ = ("counts", "domain")

    domain: Domain
    counts: IntArray

    def __init__(self, domain: Domain, counts: Any) -> None:
        if not isinstance(domain, Domain):
            raise DomainError(
                f"the first argument must be a Domain; received {domain!r}. "
                "Write Histogram(Domain(n), counts)"
            )
        own = as_counts(counts, domain.shape).copy()
        own.flags.writeable = False
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "counts", own)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Histogram never changes; build a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return Histogram, (self.domain, self.counts)

    def __repr__(self) -> str:
        return f"Histogram({self.domain!r}, counts hidden)"

    @classmethod
    def from_records(
        cls,
        domain: Domain,
        columns: Any,
        *,
        outside: Literal["refuse", "clamp"] = "refuse",
    ) -> Histogram:
        """Count records by cell.

        Parameters
        ----------
        domain : Domain
            Edges and levels belong to it; an attribute without either expects cell
            numbers.
        columns : array_like, sequence of array_like, or mapping by name
            One column per attribute, all of the same length.
        outside : {"refuse", "clamp"}
            What happens to values outside the domain: an error that does not say how
            many there are, or the nearest edge cell. They are never dropped, because
            the total would stop being what the policy says it is.
        """
        if outside not in ("refuse", "clamp"):
            raise InputError(
                f'outside must be "refuse" or "clamp"; received {outside!r}'
            )
        arrays = _columns(domain, columns)
        cells = np.zeros(arrays[0].size, dtype=np.int64)
        for attribute, column in zip(domain.attributes, arrays, strict=True):
            cells *= attribute.size
            cells += _cell_numbers(attribute, column, outside)
        counts = np.bincount(cells, minlength=domain.size)
        return cls(domain, counts.reshape(domain.shape))


def _columns(domain: Domain, columns: Any) -> list[AnyArray]:
    if isinstance(columns, Mapping):
        missing = [name for name in domain.names if name not in columns]
        if missing:
            raise InputError(
                f"columns lack the attributes {missing}; a mapping needs one column "
                f"for each of {list(domain.names)}"
            )
        chosen: Sequence[Any] = [columns[name] for name in domain.names]
    elif domain.ndim == 1 and np.ndim(columns) == 1:
        chosen = [columns]
    else:
        chosen = list(columns)
    if len(chosen) != domain.ndim:
        raise InputError(
            f"give one column per attribute: {domain.ndim} attributes, "
            f"{len(chosen)} columns"
        )
    arrays = [np.asarray(column) for column in chosen]
    if any(one.ndim != 1 or one.size != arrays[0].size for one in arrays):
        raise InputError("columns must be one-dimensional and of the same length")
    return arrays


def _cell_numbers(attribute: Attribute, column: AnyArray, outside: str) -> IntArray:
    if attribute.levels is not None:
        return _level_numbers(attribute, column, outside)
    try:
        values = column.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"values of {attribute.name or 'this attribute'} must be numbers; "
            f"received dtype {column.dtype}. Categories need Domain.from_levels"
        ) from None
    if np.isnan(values).any():
        raise CountsError(
            "records hold missing values, which have no cell; give them a cell of "
            "their own (a level, or an edge interval) that the policy covers"
        )
    if attribute.edges is None:
        cells = np.floor(values)
        if not (cells == values).all():
            raise InputError(
                "an attribute without edges expects cell numbers; give the domain "
                "edges with Domain.from_edges to bin real values"
            )
    else:
        edges = np.asarray(attribute.edges)
        cells = np.searchsorted(edges, values, side="right") - 1.0
        cells[values == edges[-1]] = attribute.size - 1
    inside = (cells >= 0) & (cells < attribute.size)
    if outside == "refuse" and not inside.all():
        raise CountsError(
            f"records lie outside {attribute.name or 'the domain'}; widen its edges, "
            'or pass outside="clamp" to put them into the edge cells'
        )
    return np.clip(cells, 0, attribute.size - 1).astype(np.int64)


def _level_numbers(attribute: Attribute, column: AnyArray, outside: str) -> IntArray:
    assert attribute.levels is not None
    if outside == "clamp":
        raise InputError(
            "levels have no nearest cell; list an 'other' level in the domain instead "
            'of outside="clamp"'
        )
    number = {level: cell for cell, level in enumerate(attribute.levels)}
    distinct, inverse = np.unique(column, return_inverse=True)
    cells = np.array([number.get(value.item(), -1) for value in distinct], np.int64)
    if (cells < 0).any():
        raise CountsError(
            f"records hold values that are no level of {attribute.name or 'the domain'}"
            "; add them to the public levels, or map them to an 'other' level"
        )
    return cells[inverse.reshape(-1)]
