"""Totals of public districts, which are unions of cells.

cells     0 1 2 3 4 5
labels    0 0 1 1 1 -1        a district has the cells with its number, -1 none
queries   x0 + x1,  x2 + x3 + x4
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast._support.validation import as_integers, malformed_as, read_only
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import WorkloadError

from .base import Fractions, Pieces, Workload
from .linear import Identity


class Regions(Workload):
    """One total per district, a district being any public set of cells.

    Districts do not overlap, and a cell may belong to none.

    Parameters
    ----------
    domain : Domain
        The cells.
    labels : array-like of int
        The district of each cell, from 0 on, of the domain's shape or flat in C order;
        -1 for a cell that belongs to none.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Regions(Domain(6), [0, 0, 1, 1, 1, -1]).answer([4, 0, 2, 1, 1, 7])
    array([4, 4])
    """

    def __init__(self, domain: Domain, labels: Any) -> None:
        super().__init__(domain)
        numbers = as_integers(labels, "labels", WorkloadError)
        if numbers.shape not in (domain.shape, (domain.size,)):
            raise WorkloadError(
                f"labels must cover the domain: shape {domain.shape}, or "
                f"({domain.size},) in C order",
                received=numbers.shape,
            )
        flat = numbers.reshape(-1)
        last = int(flat.max())
        if int(flat.min()) < -1 or not 0 <= last < domain.size:
            raise WorkloadError(
                "districts are numbered from 0 on without gaps, and -1 is none of them",
                received=f"numbers from {int(flat.min())} to {last}",
                way_out="numpy.unique(labels, return_inverse=True)[1] numbers them",
            )
        sizes = np.bincount(flat[flat >= 0], minlength=last + 1)
        if (sizes == 0).any():
            raise WorkloadError(
                "districts are numbered from 0 on without gaps, and -1 is none of them",
                received=f"no cell with number {int(np.flatnonzero(sizes == 0)[0])}",
                way_out="numpy.unique(labels, return_inverse=True)[1] numbers them",
            )
        self.labels: IntArray = read_only(flat.astype(np.int64))

    @classmethod
    def named(cls, domain: Domain, names: Any) -> tuple[Regions, list[Any]]:
        """Return the districts of cells that carry their names, and the names.

        Parameters
        ----------
        domain : Domain
            The cells.
        names : array-like
            The name of the district of each cell, in C order; None or NaN for no
            district.

        Returns
        -------
        regions : Regions
            The districts, in the order of their names.
        names : list
            The name of each.

        Raises
        ------
        WorkloadError
            If there is not one name per cell, or names cannot be compared.

        Examples
        --------
        >>> from blowfish_fast import Domain
        >>> regions, names = Regions.named(Domain(3), ["north", "south", "north"])
        >>> regions.labels.tolist(), names
        ([0, 1, 0], ['north', 'south'])
        """
        with malformed_as(WorkloadError, "names are texts or numbers, one per cell"):
            listed = np.asarray(names, dtype=object).reshape(-1)
            # Data frames write NaN where there is no name; NaN differs from itself.
            inside = np.array(
                [name is not None and name == name for name in listed], dtype=bool
            )
            values, numbers = np.unique(
                np.array(listed[inside].tolist()), return_inverse=True
            )
        labels = np.full(listed.size, -1, dtype=np.int64)
        labels[inside] = numbers.reshape(-1)
        return cls(domain, labels), values.tolist()

    @property
    def queries(self) -> int:
        """One per district."""
        return int(self.labels.max()) + 1

    def _pieces(self) -> int:
        # Cells of a district may lie anywhere along the line.
        return self.domain.size

    def mean_cells(self) -> float:
        """Return the mean number of cells of a district."""
        return float(np.count_nonzero(self.labels >= 0) / self.queries)

    def _answer(self, counts: AnyArray) -> AnyArray:
        inside = self.labels >= 0
        totals = np.zeros(self.queries, dtype=counts.dtype)
        np.add.at(totals, self.labels[inside], counts.reshape(-1)[inside])
        return totals

    def explicit_form(self, buckets: Buckets) -> Fractions | Pieces:
        """List the runs of buckets that each district consists of.

        Parameters
        ----------
        buckets : Buckets
            The buckets, in the order in which they are measured.

        Returns
        -------
        Fractions or Pieces
            `Fractions` where every district is a single run of whole buckets, which
            costs two numbers a district; else `Pieces`, all runs of all districts.
        """
        self._check_buckets(buckets)
        if buckets.count == buckets.cells:
            # Every bucket is a single cell: a run ends where the label changes. No
            # label is -2, so that the first cell begins a run whatever its label.
            along = self.labels if buckets.order is None else self.labels[buckets.order]
            begins = np.flatnonzero(np.diff(along, prepend=-2))
            ends = np.append(begins[1:], along.size)
            owners, values = along[begins], np.ones(begins.size)
        else:
            begins, ends, owners, values = self._parts_of(buckets)
        # Runs of cells that belong to no district are left out; the others are sorted
        # by district, and stay in the order of the buckets inside each.
        inside = np.flatnonzero(owners >= 0)
        order = inside[np.argsort(owners[inside], kind="stable")]
        runs = np.bincount(owners[order], minlength=self.queries)
        if (runs == 1).all() and (values[order] == 1.0).all():
            whole = np.ones(order.size)
            return Fractions(begins[order], whole, ends[order] - 1, whole)
        pointers = np.concatenate([[0], np.cumsum(runs)]).astype(np.int64)
        return Pieces(pointers, begins[order], ends[order], values[order])

    def _parts_of(
        self, buckets: Buckets
    ) -> tuple[IntArray, IntArray, IntArray, AnyArray]:
        """Return which share of which bucket belongs to which district.

        The arrays hold an entry for each district and each bucket that it touches:
        where the bucket begins and ends, the district, and the share of the bucket's
        cells that lie in the district.
        """
        inside = self.labels >= 0
        keys = self.labels[inside] * buckets.count + buckets.labels[inside]
        pairs, cells = np.unique(keys, return_counts=True)
        owners, places = pairs // buckets.count, pairs % buckets.count
        return places, places + 1, owners, cells / buckets.sizes[places]


def level_workload(domain: Domain, labels: IntArray) -> Workload:
    """Return the totals of districts, as `Identity` where every cell is a district.

    `Identity` has faster forms than `Regions` has for the same queries.

    Parameters
    ----------
    domain : Domain
        The cells.
    labels : ndarray of int64, shape (cells,)
        The district of each cell, -1 for none.

    Returns
    -------
    Workload
        `Identity` or `Regions`.
    """
    if labels.size == domain.size and np.array_equal(labels, np.arange(domain.size)):
        return Identity(domain)
    return Regions(domain, labels)
