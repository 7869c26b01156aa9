"""Several workloads asked together: their queries one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast._support.validation import quoted
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, WorkloadError

from .base import Fractions, Pieces, Workload, as_pieces


class Union(Workload):
    """The queries of several workloads over one domain, in the order given.

    Written ``a | b``. Closed formulas of the parts are not used: the queries are
    listed, so a part such as `AllRanges` must be small enough to be.

    Parameters
    ----------
    *parts : Workload
        At least one; a union among them counts as its own parts.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> asked = bf.workloads.Total(line) | bf.workloads.Ranges(line, [0, 1], [2, 3])
    >>> asked.queries, asked.answer([5, 0, 2, 1]).tolist()
    (3, [8, 5, 2])
    """

    def __init__(self, *parts: Workload) -> None:
        if not parts:
            raise WorkloadError("a union needs at least one workload", received="none")
        for number, one in enumerate(parts):
            if not isinstance(one, Workload):
                raise WorkloadError(
                    f"each part must be a workload; part {number} is another thing",
                    received=quoted(one),
                )
            if one.domain != parts[0].domain:
                raise DomainError(
                    "workloads that are asked together share one domain",
                    received=f"{parts[0].domain!r} and {one.domain!r}",
                )
        super().__init__(parts[0].domain)
        self.parts: tuple[Workload, ...] = tuple(
            inner
            for one in parts
            for inner in (one.parts if isinstance(one, Union) else (one,))
        )
        if not all(one.declared for one in parts):
            self._as_sample()

    @property
    def queries(self) -> int:
        """Those of all parts."""
        return sum(one.queries for one in self.parts)

    def _answer(self, counts: AnyArray) -> AnyArray:
        return np.concatenate([one.answer(counts) for one in self.parts])

    def explicit_form(self, buckets: Buckets) -> Fractions | Pieces:
        """List the queries of every part: ranges if all are, else sparse rows."""
        self._refuse_too_many()
        forms = [one.explicit_form(buckets) for one in self.parts]
        ranges = [one for one in forms if isinstance(one, Fractions)]
        if len(ranges) == len(forms):
            columns = zip(*ranges, strict=True)
            return Fractions(*(np.concatenate(one) for one in columns))
        rows = [as_pieces(one) for one in forms]
        before = np.cumsum([0, *(one.starts.size for one in rows)])
        pointers = [
            one.pointers[:-1] + first for one, first in zip(rows, before, strict=False)
        ]
        return Pieces(
            np.concatenate([*pointers, before[-1:]]).astype(np.int64),
            np.concatenate([one.starts for one in rows]),
            np.concatenate([one.ends for one in rows]),
            np.concatenate([one.values for one in rows]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON: the parts one by one."""
        return self._plain_head() | {"parts": [one.to_dict() for one in self.parts]}
