"""What `SparseLaplace` publishes: heavy cells, and what is known of the others.

    port           22     80    443   ...
    records         3    500   2000          private
    noisy count     4    500   2001          noise on every cell, the empty ones too
    listed          -    500   2001          where the noisy count reached the threshold

Two questions have two kinds of intervals. For a cell that is *taken from the list*, the
interval takes into account that only high noise gets an empty cell there. A cell that
was *named before the list was seen* has one whether it is listed or not, and nothing
selected it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast._support.validation import as_confidence, as_integers, quoted
from blowfish_fast.data.domain import Attributes, Domain, KeyDomain, WideDomain
from blowfish_fast.data.frames import Table, cell_columns
from blowfish_fast.data.persons import MOST_UNITS
from blowfish_fast.data.records import cell_blocks, domain_with_rules
from blowfish_fast.data.rules.keys import as_numbers
from blowfish_fast.errors import DomainError, ReleaseFileError
from blowfish_fast.measure.strategies.cells_above import CellClass, ListedCells
from blowfish_fast.release.file import (
    LARGEST_UNITS,
    Release,
    narrowed,
    read_archive,
    read_scales,
    write_archive,
)
from blowfish_fast.release.grants import Tabular
from blowfish_fast.release.guarantee import Guarantee

from .listed_intervals import NoiseTail, beforehand_bounds, listed_bounds

MEMBER = "cells.json"
"""The part of the file that says what it holds."""


class SparseRelease(Tabular, Release):
    """A list of cells whose noisy counts reached a public threshold.

    Parameters
    ----------
    domain : Domain or WideDomain
        All cells.
    listed : ListedCells
        The cells that were listed, with their noisy counts and the noise.
    mechanism : str
        The name of the mechanism.
    guarantee : Guarantee
        What is promised.
    details : mapping
        Public by-products of the mechanism.
    version : str
        The version of the package that made it.
    units : int, default 1
        Where each person counts once: parts of a person that were measured.
    identity : str, default ''
        Drawn with secure noise: the same noise has the same one.

    Attributes
    ----------
    threshold : int, or float where persons count once
        The least noisy count that was listed.
    expected_false_cells : float
        How many cells would be listed, in the mean, if all were empty.
    complete : bool
        Whether the list reaches the end of the domain. A list that grew too long ends
        after the cells that fitted, and nothing is known of those behind them.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(2**20, names=["port"])
    >>> mechanism = bf.SparseLaplace(bf.policies.AddRemove(line), epsilon=1)
    >>> counts = np.zeros(2**20, dtype=int)
    >>> counts[[80, 443]] = [500, 2000]
    >>> release = mechanism.release(counts, rng=3)
    >>> release.threshold, release.complete
    (14, True)
    >>> print(release.cells())             # taken from the list: two may be empty
      port  count   low  high
        80    500   497   503
       443   2001  1998  2004
    382465     14     0    16
    928395     16     0    19
    >>> print(release.at([80, 22]))        # named before anybody looked
    port  listed  count  low  high
      80    True    500  497   503
      22   False      0    0    16
    """

    listed: ListedCells

    def __init__(
        self,
        *,
        domain: Attributes,
        listed: ListedCells,
        mechanism: str,
        guarantee: Guarantee,
        details: Mapping[str, Any],
        version: str,
        units: int = 1,
        identity: str = "",
    ) -> None:
        for array in (listed.keys, listed.noisy):
            array.flags.writeable = False
        self._fill(
            {
                "domain": domain,
                "listed": listed,
                "mechanism": mechanism,
                "guarantee": guarantee,
                "measurements": (),
                "details": MappingProxyType(dict(details)),
                "version": version,
                "units": units,
                "identity": identity,
                "interval_scope": "nothing",
            }
        )

    lacks = (
        "this release lists heavy cells and holds no estimate of the others; a range "
        "also holds light ones, which it misses"
    )
    instead = (
        "Ask release.cells() for the list, or release.at(cells) for cells that you "
        "name; ranges are released with Dawa"
    )

    @property
    def threshold(self) -> int | float:
        """The least noisy count that was listed."""
        least = self.listed.threshold
        return least if self.units == 1 else least / self.units

    @property
    def expected_false_cells(self) -> float:
        """How many cells would be listed, in the mean, if all were empty."""
        return float(self.listed.false_cells)

    @property
    def complete(self) -> bool:
        """Whether the list reaches the end of the domain."""
        return self.listed.told == self.listed.cells

    def __len__(self) -> int:
        return int(self.listed.keys.size)

    @property
    def _tail(self) -> NoiseTail:
        """How likely the noise is to reach any size."""
        return NoiseTail(self.listed.scales, self.listed.threshold)

    def cells(self, confidence: float = 0.95, *, together: bool = False) -> Table:
        """Return the listed cells in the order of the domain, with their intervals.

        Parameters
        ----------
        confidence : float
            Of each interval to hold the true count, given that the cell is listed. It
            reaches down to 0 where an empty cell may have been lifted so far.
        together : bool
            Whether all intervals hold at once with that confidence.

        Returns
        -------
        Table
            A column for each attribute (two for cells between edges), then `count`,
            `low` and `high`.
        """
        miss = 1.0 - as_confidence(confidence)
        noisy = self.listed.noisy
        share = miss / max(noisy.size, 1) if together else miss
        bounds = self._listed_bounds(share)
        columns = cell_columns(self.domain, self._places(self.listed.keys))
        columns["count"], columns["low"], columns["high"] = (
            self._in_persons(numbers) for numbers in (noisy, *bounds)
        )
        return Table(columns, experiment=not self.private)

    def _listed_bounds(self, miss: float) -> tuple[IntArray, IntArray]:
        """Return the intervals of listed cells, given that each reached its threshold.

        Cells have one threshold, or words of each length their own.
        """
        noisy = self.listed.noisy
        own = self.listed.thresholds_of(self.listed.keys)
        low, high = np.zeros_like(noisy), np.zeros_like(noisy)
        for threshold in np.unique(own).tolist():
            chosen = own == threshold
            tail = NoiseTail(self.listed.scales, threshold)
            bounds = listed_bounds(noisy[chosen], threshold, tail, miss)
            low[chosen], high[chosen] = bounds
        return low, high

    def to_table(self, confidence: float | None = 0.95) -> Table:
        """Return `cells`; without intervals if `confidence` is None."""
        if confidence is not None:
            return self.cells(confidence)
        columns = cell_columns(self.domain, self._places(self.listed.keys))
        columns["count"] = self._in_persons(self.listed.noisy)
        return Table(columns, experiment=not self.private)

    def at(
        self, cells: Any, confidence: float = 0.95, *, together: bool = False
    ) -> Table:
        """Return what is known of cells named beforehand, listed or not.

        Name cells before you see the list: for cells that are taken from it, `cells`
        has the intervals that hold.

        Parameters
        ----------
        cells : mapping or table of columns, or a column
            Values of the attributes as `SparseHistogram.from_records` takes them; for
            an attribute without edges or levels, cell numbers.
        confidence : float
            Of each interval to hold the true count.
        together : bool
            Whether all intervals hold at once with that confidence.

        Returns
        -------
        Table
            A column for each attribute, then `listed`, `count` (0 where it was not
            listed), `low` and `high`, which is infinite behind the end of a list that
            was cut.
        """
        miss = 1.0 - as_confidence(confidence)
        keys = self._keys(cells)
        share = miss / max(keys.size, 1) if together else miss
        listed_keys, noisy = self.listed.keys, self.listed.noisy
        if listed_keys.size:
            # The list is sorted: the first key that is not smaller, if it is the same.
            nearest = np.searchsorted(listed_keys, keys)
            nearest = np.minimum(nearest, listed_keys.size - 1)
            is_listed = np.asarray(listed_keys[nearest] == keys, dtype=np.bool_)
            counts = noisy[nearest]
        else:
            is_listed = np.zeros(keys.size, dtype=np.bool_)
            counts = np.zeros(keys.size, dtype=np.int64)
        half = self._tail.half_width(share)
        own = self.listed.thresholds_of(keys)
        low, high = beforehand_bounds(counts, is_listed, own, half)
        columns = cell_columns(self.domain, self._places(keys))
        columns["listed"] = is_listed
        columns["count"] = self._in_persons(np.where(is_listed, counts, 0))
        columns["low"], columns["high"] = self._in_persons(low), self._in_persons(high)
        if not self.complete:
            behind = keys >= self.listed.told
            columns["high"] = np.where(behind, math.inf, columns["high"])
        return Table(columns, experiment=not self.private)

    def _keys(self, cells: Any) -> IntArray:
        """Return the numbers of cells from values of their attributes."""
        wide: Any = self.domain
        if isinstance(wide, KeyDomain):
            return self._word_keys(wide, cells)
        if self.domain.ndim == 1 and not isinstance(cells, Mapping):
            (attribute,) = self.domain.attributes
            if attribute.cuts is attribute.levels is attribute.steps is None:
                numbers = as_integers(cells, "cells").reshape(-1)
                if ((numbers < 0) | (numbers >= self.domain.size)).any():
                    raise DomainError(
                        f"cells are numbered from 0 to {self.domain.size - 1:,}",
                        received=quoted(cells),
                    )
                return numbers
        domain, rules = domain_with_rules(wide, None, None)
        return np.concatenate(list(cell_blocks(domain, rules, cells)))

    def _word_keys(self, domain: KeyDomain, cells: Any) -> IntArray:
        """Return the numbers of words; those of no word are refused."""
        (name,), (attribute,) = domain.column_names, domain.attributes
        words = cells[name] if isinstance(cells, Mapping) else cells
        listed = [words] if isinstance(words, str) else list(words)
        numbers = [
            attribute.extra_cell(value)
            if value in attribute.extras
            else domain.rule.number(value)
            if isinstance(value, str)
            else None
            for value in listed
        ]
        if None in numbers:
            raise DomainError(
                f"name words that could occur: {domain.rule.words()}",
                received=quoted(listed[numbers.index(None)]),
            )
        return as_numbers([int(number or 0) for number in numbers], domain.size)

    def _places(self, keys: IntArray) -> list[IntArray]:
        """Return the place of each cell along each axis, from its C-order number."""
        places: list[IntArray] = []
        rest = keys
        if self.domain.ndim == 1:
            return [keys]
        for size in reversed(self.domain.shape):
            rest, place = np.divmod(rest, np.int64(size))
            places.append(place)
        return places[::-1]

    def _in_persons(self, units: AnyArray) -> AnyArray:
        """Return counts of persons from counts of parts of a person."""
        return units if self.units == 1 else units / self.units

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: domain, threshold, listed cells, guarantee."""
        return {
            **self._facts(),
            "threshold": self.threshold,
            "complete": self.complete,
            "cells": self.listed.keys.tolist(),
            "counts": self._in_persons(self.listed.noisy).tolist(),
        }

    def to_bytes(self) -> bytes:
        """Return the release as the bytes of its file."""
        listed = self.listed
        content = {
            "format": 1,
            "version": self.version,
            "identity": self.identity,
            "mechanism": self.mechanism,
            "domain": self.domain.to_dict(),
            "wide": isinstance(self.domain, WideDomain),
            "guarantee": self.guarantee.to_dict(),
            "details": self.details,
            "units": self.units,
            "keys": _stored_keys(listed.keys),
            "noisy": narrowed(listed.noisy),
            "threshold": listed.threshold,
            "told": str(listed.told),
            "classes": [
                [str(cell_class.first), str(cell_class.cells), cell_class.threshold]
                for cell_class in listed.classes
            ],
            "rates": listed.scales.rates,
            "unit": listed.scales.unit,
            "exact": listed.scales.exact,
            "power": listed.scales.power,
        }
        return write_archive(MEMBER, content)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read a release from `to_bytes`."""
        return cls(**read_archive(content, MEMBER, _rebuild))

    def __repr__(self) -> str:
        return f"SparseRelease({len(self):,} cells listed, {self._in_short()})"

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel

        rows = [
            ("cells of the domain", f"{self.domain.size:,}"),
            ("cells listed", f"{len(self):,}"),
            ("threshold", f"{self.threshold:g}"),
            ("false cells, in the mean", f"{self.expected_false_cells:.3g}"),
        ]
        seeded = "" if self.private else "Seeded: an experiment that protects nobody."
        return panel(repr(self), rows, sentence=str(self.guarantee), warning=seeded)


def _stored_keys(keys: IntArray) -> Any:
    """Return numbers of cells as a file holds them: texts where 64 bits do not."""
    return [str(key) for key in keys] if keys.dtype == object else narrowed(keys)


def _read_keys(stored: Any, cells: int) -> IntArray:
    """Return the numbers of cells that `_stored_keys` wrote."""
    if isinstance(stored, list):
        return as_numbers(map(int, stored), cells)
    return np.asarray(stored, dtype=np.int64)


def _read_classes(stored: Any, domain: Attributes) -> tuple[CellClass, ...]:
    """Return the classes of a file; refuse those that do not make up the domain."""
    classes = tuple(
        CellClass(int(first), int(cells), int(threshold))
        for first, cells, threshold in stored
    )
    ends = [0, *(packed.first + packed.cells for packed in classes)]
    fits = [packed.first for packed in classes] == ends[:-1] and ends[-1] == domain.size
    if classes and not (
        fits and min(cell_class.threshold for cell_class in classes) >= 1
    ):
        raise ReleaseFileError("the classes of a list make up its domain")
    if not classes and isinstance(domain, KeyDomain):
        raise ReleaseFileError("words have a threshold for each length")
    return classes


def _rebuild(content: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `SparseRelease` from a file; refuse what cannot be one.

    A list that `SparseLaplace` publishes is sorted and holds no cell twice, and every
    noisy count in it reaches the threshold of its cell. Intervals rest on that.
    """
    kind: Any = WideDomain if content["wide"] else Domain
    domain = kind.from_dict(content["domain"])
    keys = _read_keys(content["keys"], domain.size)
    classes = _read_classes(content.get("classes", ()), domain)
    noisy = np.asarray(content["noisy"], dtype=np.int64)
    scales, threshold = read_scales(content), int(content["threshold"])
    told, cells = int(content["told"]), domain.size
    whole = ListedCells(keys, noisy, threshold, scales, cells, told, classes)
    fits = (
        keys.ndim == 1
        and noisy.shape == keys.shape
        and all(earlier < later for earlier, later in pairwise(keys.tolist()))
        and (not keys.size or (keys[0] >= 0 and keys[-1] < told))
        and threshold >= 1
        and (
            not classes
            or threshold == max(cell_class.threshold for cell_class in classes)
        )
        and (noisy >= whole.thresholds_of(keys)).all()
        and 1 <= told <= cells
        and (cells <= 2**62 or isinstance(domain, KeyDomain))
    )
    largest_unit = LARGEST_UNITS.get(scales.power, 0)
    # All cells have the same noise, so its scales have one row.
    one_law = scales.rates.shape == scales.exact.shape == (1,) and scales.rates[0] > 0
    if not (fits and one_law and 1 <= scales.unit <= largest_unit):
        raise ReleaseFileError("the listed cells do not fit the domain or the noise")
    units = int(content["units"])
    if not 1 <= units <= MOST_UNITS:
        raise ReleaseFileError("a release counts in whole parts of a person")
    if not isinstance(content["details"], dict):
        raise ReleaseFileError("the details have no names")
    return {
        "domain": domain,
        "listed": whole,
        "mechanism": str(content["mechanism"]),
        "guarantee": Guarantee.from_dict(content["guarantee"]),
        "details": content["details"],
        "version": str(content["version"]),
        "units": units,
        "identity": str(content["identity"]),
    }
