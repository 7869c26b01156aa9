"""What every workload answers, alone or in a union; its queries in three forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import (
    NamingRightWords,
    as_whole,
    malformed_as,
    quoted,
)
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain, is_wide
from blowfish_fast.errors import CountsError, DomainError, SizeError, WorkloadError

RandomLike = int | np.random.Generator
"""What random queries are drawn with: a seed, or a generator."""

MOST_QUERIES = 2**26
"""Longest array of answers that is ever built."""

Kind = Literal["all_ranges", "prefixes", "identity", "total"]
"""Workloads whose queries need not be listed, since formulas know their errors."""


class Implicit(NamedTuple):
    """All queries of one kind over cells that lie in buckets; none of them is listed.

    Cells of a bucket count alike: a query that takes k of its m cells takes k / m of
    the bucket.

    Attributes
    ----------
    kind : Kind
        Which queries.
    edges : ndarray of int64, shape (buckets + 1,)
        Cell edges of the buckets, rising from 0.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> bf.workloads.AllRanges(bf.Domain(4)).form(Buckets(np.array([0, 2, 4]))).kind
    'all_ranges'
    """

    kind: Kind
    edges: IntArray


class Fractions(NamedTuple):
    """Ranges of buckets, first to last; both end buckets are covered in part.

    A range inside one bucket has ``first == last`` and uses `first_fraction`.

    Attributes
    ----------
    first : ndarray of int64, shape (queries,)
        The first bucket of each range.
    first_fraction : ndarray of float64, shape (queries,)
        How much of it is covered.
    last : ndarray of int64, shape (queries,)
        The last bucket.
    last_fraction : ndarray of float64, shape (queries,)
        How much of it is covered.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> asked = bf.workloads.Ranges(bf.Domain(4), [1], [4])
    >>> form = asked.form(Buckets(np.array([0, 2, 4])))
    >>> form.first.tolist(), form.first_fraction.tolist(), form.last_fraction.tolist()
    ([0], [0.5], [1.0])
    """

    first: IntArray
    first_fraction: FloatArray
    last: IntArray
    last_fraction: FloatArray


class Pieces(NamedTuple):
    """Sparse rows: one value on each of some runs of buckets, 0 elsewhere.

    Attributes
    ----------
    pointers : ndarray of int64, shape (rows + 1,)
        Row r owns the pieces ``pointers[r]`` up to ``pointers[r + 1]``.
    starts : ndarray of int64, shape (pieces,)
        The first bucket of each piece; pieces of a row are sorted and disjoint.
    ends : ndarray of int64, shape (pieces,)
        The bucket after its last.
    values : ndarray of float64, shape (pieces,)
        The value on the piece.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> asked = bf.workloads.Linear(bf.Domain(4), [[1, 1, 0, 2]])
    >>> form = asked.form(Buckets(np.arange(5)))
    >>> form.starts.tolist(), form.ends.tolist(), form.values.tolist()
    ([0, 3], [2, 4], [1.0, 2.0])
    """

    pointers: IntArray
    starts: IntArray
    ends: IntArray
    values: FloatArray


Form = Implicit | Fractions | Pieces
"""What `Workload.form` returns: queries over buckets, in the form that costs least."""


def _as_numbers(array: AnyArray) -> AnyArray:
    """Return counts as int64 where they are whole by type and fit, else as float64."""
    kind = array.dtype.kind
    fits = kind != "u" or array.size == 0 or array.max() <= np.iinfo(np.int64).max
    if kind in "biu" and fits:
        return array.astype(np.int64)
    if kind not in "ufO":
        raise CountsError("counts must be numbers", received=f"dtype {array.dtype}")
    with malformed_as(CountsError, "counts must be numbers"):
        return array.astype(np.float64, copy=False)


class Workload(NamingRightWords, ABC):
    """A list of linear queries over a domain; ``a | b`` asks both.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> asked = bf.workloads.Ranges(bf.Domain(4), [0, 2], [2, 4])
    >>> asked.queries, asked.answer([5, 0, 2, 1]).tolist()
    (2, [5, 3])
    """

    closed_form: ClassVar[Kind | None] = None
    """The kind of all queries, where closed formulas exist for it."""

    declared: bool = True
    """Whether these are the queries that will be asked, not a sample of what may be."""

    takes_wide: ClassVar[bool] = False
    """Whether it can be stated over a `WideDomain`, whose cells nobody lists."""

    def __init__(self, domain: Domain) -> None:
        wide = self.takes_wide and is_wide(domain)
        if not wide and not isinstance(domain, Domain):
            raise WorkloadError(
                "a workload is stated over a Domain",
                received=quoted(domain),
                way_out="Write workloads.Identity(Domain(n))",
            )
        self.domain = domain

    def _as_sample(self) -> Self:
        self.declared = False
        return self

    def __or__(self, other: Any) -> Workload:
        if not isinstance(other, Workload):
            return NotImplemented
        return Union(self, other)

    @property
    @abstractmethod
    def queries(self) -> int:
        """Number of queries."""

    @abstractmethod
    def _answer(self, counts: AnyArray) -> AnyArray:
        """Answer from counts of the domain's shape."""

    @abstractmethod
    def explicit_form(self, buckets: Buckets) -> Fractions | Pieces:
        """List the queries over `buckets`; uniform inside each bucket."""

    def form(self, buckets: Buckets) -> Form:
        """Return the queries over `buckets`, implicit where closed formulas exist."""
        ordered = self.closed_form in ("prefixes", "all_ranges")
        if self.closed_form is None or (ordered and buckets.order is not None):
            return self.explicit_form(buckets)
        self._check_buckets(buckets)
        return Implicit(self.closed_form, buckets.edges)

    def answer(self, counts: Any) -> AnyArray:
        """Return exact answers: int64 if counts are whole and coefficients 0 or 1."""
        self._refuse_too_many()
        with malformed_as(CountsError, "counts must be an array of numbers"):
            array = np.asarray(getattr(counts, "counts", counts))
        if array.shape != self.domain.shape:
            raise DomainError(
                "counts must have the shape of the workload's domain, "
                f"{self.domain.shape}",
                received=array.shape,
            )
        return self._answer(_as_numbers(array))

    def answer_again(self, counts: FloatArray, sums: dict[str, AnyArray]) -> AnyArray:
        """Answer counts that are asked repeatedly.

        Parameters
        ----------
        counts : ndarray of float64
            Counts, in the domain's shape.
        sums : dict[str, ndarray]
            Where running sums of these counts are held from one call to the next.

        Returns
        -------
        ndarray, shape (queries,)
            The answers.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> asked = bf.workloads.Ranges(bf.Domain(4), [0, 1], [2, 4])
        >>> asked.answer_again(np.array([1.0, 2.0, 3.0, 4.0]), {})
        array([3., 9.])
        """
        return self.answer(counts)

    def mean_cells(self) -> float:
        """Return how many cells a query covers on average, at least 1; public.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> asked = bf.workloads.Ranges(bf.Domain(8), [0, 2], [2, 6])
        >>> asked.mean_cells()
        3.0
        """
        form = self.explicit_form(Buckets.single_cells(self.domain.size))
        covered = np.abs(row_moments(form, self.domain.size).total)
        return max(1.0, float(covered.mean())) if covered.size else 1.0

    def _pieces(self) -> int:
        """Bound the runs of cells, along a curve, that the queries consist of."""
        return self.queries if self.closed_form is None else 0

    def _refuse_too_many(self) -> None:
        if self.queries > MOST_QUERIES:
            raise SizeError(
                f"at most 2^26 = {MOST_QUERIES:,} queries are answered one by one",
                received=f"{self.queries:,} of {type(self).__name__}",
                way_out="Use expected_total_error for their sum, or Ranges for a part",
            )

    def _check_buckets(self, buckets: Buckets) -> None:
        if buckets.cells != self.domain.size:
            raise DomainError(
                f"buckets cover the {self.domain.size} cells of the workload",
                received=buckets.cells,
            )

    def __len__(self) -> int:
        return self.queries

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON: kind, domain and what the queries are."""
        plain = self._plain_head()
        # A copy: another thread may derive something for the first time meanwhile.
        for name, value in dict(vars(self)).items():
            # What is kept because it was asked for once is no part of the workload.
            if name != "domain" and not hasattr(type(self), name):
                plain[name] = _plain(value)
        return plain

    def _plain_head(self) -> dict[str, Any]:
        kind = type(self).__name__
        return {"kind": kind, "domain": self.domain.to_dict(), "queries": self.queries}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r}, {self.queries:,} queries)"

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel

        words = (type(self).__doc__ or "").partition("\n\n")[0]
        rows = [("queries", f"{self.queries:,}"), ("asked of", repr(self.domain))]
        return panel(type(self).__name__, rows, sentence=" ".join(words.split()))


class Union(Workload):
    """The queries of several workloads over one domain, in the order given.

    They are listed, so a part such as `AllRanges` must be small enough to be.

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
        for number, part in enumerate(parts):
            if not isinstance(part, Workload):
                raise WorkloadError(
                    f"each part must be a workload; part {number} is another thing",
                    received=quoted(part),
                )
            if part.domain != parts[0].domain:
                raise DomainError(
                    "workloads that are asked together share one domain",
                    received=f"{parts[0].domain!r} and {part.domain!r}",
                )
        super().__init__(parts[0].domain)
        self.parts: tuple[Workload, ...] = tuple(
            inner
            for part in parts
            for inner in (part.parts if isinstance(part, Union) else (part,))
        )
        if not all(part.declared for part in parts):
            self._as_sample()

    @property
    def queries(self) -> int:
        """Those of all parts."""
        return sum(part.queries for part in self.parts)

    def _pieces(self) -> int:
        # Listed, whatever formulas the parts have by themselves.
        return sum(max(part._pieces(), part.queries) for part in self.parts)

    def _answer(self, counts: AnyArray) -> AnyArray:
        return np.concatenate([part.answer(counts) for part in self.parts])

    def explicit_form(self, buckets: Buckets) -> Fractions | Pieces:
        """List the queries of every part: ranges if all are, else sparse rows."""
        self._refuse_too_many()
        forms = [part.explicit_form(buckets) for part in self.parts]
        ranges = [form for form in forms if isinstance(form, Fractions)]
        if len(ranges) == len(forms):
            columns = zip(*ranges, strict=True)
            return Fractions(*(np.concatenate(column) for column in columns))
        return joined_pieces([as_pieces(form) for form in forms])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON: the parts one by one."""
        return self._plain_head() | {"parts": [part.to_dict() for part in self.parts]}


def _plain(value: Any) -> Any:
    """Return arrays as lists, a sparse matrix as its places and values."""
    if hasattr(value, "tocoo"):
        entries = value.tocoo()
        rows, columns = entries.coords
        return {
            "shape": list(entries.shape),
            "rows": rows.tolist(),
            "columns": columns.tolist(),
            "values": entries.data.tolist(),
        }
    return np.asarray(value).tolist()


def prefix_sums(counts: AnyArray) -> AnyArray:
    """Return the running totals with a leading zero: int64 stays exact."""
    totals = np.zeros(counts.size + 1, dtype=counts.dtype)
    np.cumsum(counts.reshape(-1), out=totals[1:])
    return totals


def on_a_line(domain: Domain, name: str) -> None:
    """Refuse domains of several attributes where cells must be in one order.

    Parameters
    ----------
    domain : Domain
        The domain.
    name : str
        Who asks, for the message.

    Raises
    ------
    WorkloadError
        If there are several attributes.
    """
    if domain.attributes[0].keys is not None:
        raise WorkloadError(
            f"{name} need an order in which neighbours are alike, and words are "
            "numbered by their length and symbols",
            received=repr(domain),
            way_out="List the frequent words with SparseLaplace; where codes are "
            "numbers or times state them so, WideDomain.from_steps, and ask ranges",
        )
    if domain.ndim != 1:
        raise WorkloadError(
            f"{name} asks for one ordered attribute",
            received=f"a domain of {domain.ndim} attributes",
            way_out="Use Rectangles on several attributes",
            code="workload_needs_one_attribute",
            data={"attributes": domain.ndim},
        )


def joined_pieces(forms: Sequence[Pieces]) -> Pieces:
    """Return the rows of several forms, one after the other."""
    before = np.cumsum([0, *(pieces.starts.size for pieces in forms)])
    pointers = [
        pieces.pointers[:-1] + first
        for pieces, first in zip(forms, before, strict=False)
    ]
    return Pieces(
        np.concatenate([*pointers, before[-1:]]).astype(np.int64),
        np.concatenate([pieces.starts for pieces in forms]),
        np.concatenate([pieces.ends for pieces in forms]),
        np.concatenate([pieces.values for pieces in forms]),
    )


class RowMoments(NamedTuple):
    """Moments of the coefficients of each row.

    Attributes
    ----------
    total : ndarray of float64, shape (rows,)
        Their sum.
    squares : ndarray of float64, shape (rows,)
        The sum of their squares.
    largest : ndarray of float64, shape (rows,)
        The largest.
    least : ndarray of float64, shape (rows,)
        The least.
    """

    total: FloatArray
    squares: FloatArray
    largest: FloatArray
    least: FloatArray


def row_moments(form: Fractions | Pieces, buckets: int) -> RowMoments:
    """Return the moments of every row, without a matrix.

    Parameters
    ----------
    form : Fractions or Pieces
        The rows.
    buckets : int
        Number of columns.

    Returns
    -------
    RowMoments
        The moments.
    """
    if isinstance(form, Fractions):
        return _range_moments(form, buckets)
    rows = np.repeat(np.arange(form.pointers.size - 1), np.diff(form.pointers))
    queries = form.pointers.size - 1
    lengths = form.ends - form.starts
    covered = np.bincount(rows, lengths, minlength=queries)
    # Columns that no piece covers hold a 0; a row without pieces holds nothing else.
    blank = covered < buckets
    largest = np.where(blank, 0.0, -np.inf)
    least = np.where(blank, 0.0, np.inf)
    some = form.pointers[:-1] < form.pointers[1:]
    begins = form.pointers[:-1][some]
    if begins.size:
        tops = np.maximum.reduceat(form.values, begins)
        largest[some] = np.maximum(largest[some], tops)
        lows = np.minimum.reduceat(form.values, begins)
        least[some] = np.minimum(least[some], lows)
    total = np.bincount(rows, form.values * lengths, queries).astype(np.float64)
    squares = np.bincount(rows, form.values**2 * lengths, queries).astype(np.float64)
    return RowMoments(total, squares, largest, least)


def covers_whole(form: Fractions) -> bool:
    """Return whether no range covers a bucket in part."""
    first, last = form.first_fraction, form.last_fraction
    return bool((first == 1.0).all() and (last == 1.0).all())


def _range_moments(form: Fractions, buckets: int) -> RowMoments:
    if covers_whole(form):
        lengths = (form.last - form.first + 1).astype(np.float64)
        least = (lengths == buckets).astype(np.float64)
        return RowMoments(lengths, lengths, form.first_fraction, least)
    is_single = form.first == form.last
    inside = np.where(is_single, 0, form.last - form.first - 1)
    end = np.where(is_single, 0.0, form.last_fraction)
    largest = np.maximum(form.first_fraction, end)
    least = np.where(
        is_single, form.first_fraction, np.minimum(form.first_fraction, end)
    )
    covered = form.last - form.first + 1
    return RowMoments(
        form.first_fraction + end + inside,
        form.first_fraction**2 + end**2 + inside,
        np.where(inside > 0, np.maximum(largest, 1.0), largest),
        np.where(covered < buckets, np.minimum(least, 0.0), least),
    )


def form_matrix(form: Fractions | Pieces, buckets: int, *, most: int) -> Any:
    """Return the rows of a form as a sparse matrix.

    Parameters
    ----------
    form : Fractions or Pieces
        The rows.
    buckets : int
        Number of columns.
    most : int
        How many coefficients may be held.

    Returns
    -------
    scipy.sparse.csr_array or None
        The matrix; None above `most` coefficients.
    """
    from scipy import sparse

    pieces = as_pieces(form)
    lengths = pieces.ends - pieces.starts
    if int(lengths.sum()) > most:
        return None
    rows = np.repeat(np.arange(pieces.pointers.size - 1), np.diff(pieces.pointers))
    begins = np.cumsum(lengths) - lengths
    columns = np.arange(int(lengths.sum())) - np.repeat(begins - pieces.starts, lengths)
    matrix = sparse.csr_array(
        (
            np.repeat(pieces.values, lengths),
            (np.repeat(rows, lengths), columns),
        ),
        shape=(pieces.pointers.size - 1, buckets),
    )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def as_pieces(form: Fractions | Pieces) -> Pieces:
    """Write each range as one run, and its end buckets apart if covered in part."""
    if isinstance(form, Pieces):
        return form
    if covers_whole(form):
        runs = np.arange(form.first.size + 1)
        return Pieces(runs, form.first, form.last + 1, form.first_fraction)
    is_one_bucket = form.first == form.last
    last_fraction = np.where(is_one_bucket, form.first_fraction, form.last_fraction)
    cut = form.first_fraction != 1.0, last_fraction != 1.0
    starts = np.stack([form.first, form.first + cut[0], form.last], axis=1)
    ends = np.stack([form.first + 1, form.last + 1 - cut[1], form.last + 1], axis=1)
    values = np.stack(
        [form.first_fraction, np.ones(is_one_bucket.size), last_fraction], axis=1
    )
    is_piece = np.stack(
        [cut[0], starts[:, 1] < ends[:, 1], cut[1] & ~is_one_bucket], axis=1
    )
    pointers = np.concatenate([[0], np.cumsum(is_piece.sum(axis=1))]).astype(np.int64)
    return Pieces(pointers, starts[is_piece], ends[is_piece], values[is_piece])


def query_count(count: Any) -> int:
    """Read how many queries are wanted: at least one."""
    number = as_whole(count, "count")
    if number < 1:
        raise WorkloadError("ask for at least one query", received=repr(count))
    return number
