"""The public space of values, stated before any data is seen, and its cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from blowfish_fast._support.near_misses import Hinting
from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import (
    NamingRightWords,
    as_integers,
    as_whole,
    malformed_as,
    quoted,
)
from blowfish_fast.errors import DomainError, SizeError

from .axes import (
    MICROSECONDS,
    MISSING,
    OUTSIDE,
    Axis,
    can_list_edges,
    check_cuts,
    extend_axis,
    from_cuts,
    from_date_cuts,
    from_level_list,
    merge_cells,
    with_listed_edges,
)
from .places.districts import Borders, Districts
from .rules.keys import MOST_BITS, KeyRule, read_rule
from .rules.steps import NANOSECONDS, Steps, check_steps, read_steps
from .rules.texts import WordRule, read_texts, read_words
from .rules.weights import weight_levels

__all__ = ["MISSING", "OUTSIDE", "Axis", "Domain", "KeyDomain", "WideDomain"]

LARGEST_DOMAIN = 2**28
"""Cells of a `Domain`: their counts take 2 GiB."""
MOST_SHOWN = 12
"""Attributes listed in a notebook."""


class AxisView(NamedTuple):
    """An attribute of a table, and the coarser cell that each of its cells lies in.

    Attributes
    ----------
    axis : int
        The number of the attribute.
    labels : ndarray of int64, shape (cells,)
        The coarser cell of each cell.
    """

    axis: int
    labels: IntArray


class Attributes(NamingRightWords, metaclass=Hinting):
    """Attributes in order, with different names; what both kinds of domain share."""

    __slots__ = ("_shape", "attributes")
    _shape: tuple[int, ...]

    attributes: tuple[Axis, ...]

    _most: ClassVar[int | None]
    _way_out: ClassVar[str] = ""

    def _set(self, attributes: tuple[Axis, ...]) -> None:
        names = [
            attribute.name for attribute in attributes if attribute.name is not None
        ]
        if len(set(names)) != len(names):
            raise DomainError(
                "attribute names must differ",
                received=names,
                way_out="Rename one of them",
            )
        cells = math.prod(attribute.size for attribute in attributes)
        if self._most is not None and cells > self._most:
            raise DomainError(
                f"a {type(self).__name__} holds at most 2^{self._most.bit_length() - 1}"
                f" = {self._most:,} cells; this one would have {cells:,}. "
                f"{self._way_out}"
            )
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(
            self, "_shape", tuple(attribute.size for attribute in attributes)
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} never changes; build a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)

    @classmethod
    def _of(cls, attributes: Iterable[Axis]) -> Self:
        domain = object.__new__(cls)
        domain._set(tuple(attributes))
        return domain

    @classmethod
    def product(cls, *domains: Attributes) -> Self:
        """Combine domains into one over all their attributes.

        Examples
        --------
        >>> sexes = Domain.from_levels(["F", "M"], name="sex")
        >>> grid = Domain.product(Domain.from_edges(range(101), name="age"), sexes)
        >>> grid.names, grid.axis("sex"), grid.ndim
        (('age', 'sex'), 1, 2)
        """
        if not domains:
            raise DomainError("a product needs at least one domain", received="none")
        others = [item for item in domains if not isinstance(item, Attributes)]
        if others:
            raise DomainError(
                "a product is made of domains, one after the other",
                received=quoted(others[0]),
                way_out="Write Domain.product(ages, sexes), and for a list of them "
                "Domain.product(*domains)",
            )
        attributes = [
            attribute for domain in domains for attribute in domain.attributes
        ]
        if len(attributes) > 1 and any(
            attribute.keys is not None for attribute in attributes
        ):
            raise DomainError(
                "words nobody listed are one column by themselves",
                received=f"{len(attributes)} attributes",
                way_out="Release the words alone, or list the categories of the column",
            )
        return cls._of(attributes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells of each attribute."""
        return self._shape

    @property
    def size(self) -> int:
        """Number of cells in all."""
        return math.prod(self._shape)

    @property
    def ndim(self) -> int:
        """Number of attributes."""
        return len(self.attributes)

    @property
    def names(self) -> tuple[str | None, ...]:
        """Names of the attributes; None where none was given."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the attributes in tables: "axis0", "axis1", ... where none is."""
        return tuple(name or f"axis{at}" for at, name in enumerate(self.names))

    def axis(self, name: str | int) -> int:
        """Return the axis of the attribute called `name`, or numbered so."""
        if isinstance(name, int | np.integer) and not isinstance(name, bool):
            if 0 <= name < self.ndim:
                return int(name)
        elif isinstance(name, str) and name in self.names:
            return self.names.index(name)
        raise DomainError(
            f"there is no attribute {name!r}; this domain has {list(self.names)}, "
            f"numbered from 0 to {self.ndim - 1}"
        )

    def axes(self, names: Any) -> tuple[int, ...]:
        """Return the axes of one name or number, or of several, in the given order."""
        single = isinstance(names, str | int | np.integer)
        with malformed_as(DomainError, "attributes are named, or numbered"):
            chosen = tuple(self.axis(name) for name in ([names] if single else names))
        if not chosen or len(set(chosen)) < len(chosen):
            raise DomainError(
                "name at least one attribute, each once", received=repr(names)
            )
        return chosen

    def columns_for(self, domain: Attributes) -> list[AxisView] | None:
        """Return which attribute here each one of another domain is, by its name.

        Cells of the other domain may be unions of cells of this one.

        Parameters
        ----------
        domain : Domain or WideDomain
            The other domain, over some of the attributes.

        Returns
        -------
        list of AxisView or None
            One view for each attribute of `domain`; None if an attribute is not
            here, or its cells are no unions.

        Examples
        --------
        >>> people = Domain.product(
        ...     Domain.from_edges([0, 18, 65, 120], name="age"),
        ...     Domain.from_levels(["F", "M"], name="sex"),
        ... )
        >>> adults = Domain.from_edges([0, 18, 120], name="age")
        >>> [(view.axis, view.labels.tolist()) for view in people.columns_for(adults)]
        [(0, [0, 1, 1])]
        """
        named = {
            attribute.name: axis
            for axis, attribute in enumerate(self.attributes)
            if attribute.name
        }
        views: list[AxisView] = []
        for wanted in domain.attributes:
            axis = named.get(wanted.name or "")
            labels = (
                None if axis is None else self.attributes[axis].cells_within(wanted)
            )
            if axis is None or labels is None:
                return None
            views.append(AxisView(axis, labels))
        return views

    def with_extra_cells(self, *, outside: Any = False, missing: Any = False) -> Self:
        """Give values outside the domain, or missing ones, cells of their own.

        State policies over the domain that is returned: its extra cells are cells like
        any other.

        Parameters
        ----------
        outside : bool, int, str or sequence of these
            True for all attributes, or names or numbers of some: they get a cell for
            values outside.
        missing : bool, int, str or sequence of these
            In the same way for missing values.

        Returns
        -------
        Self
            The domain with these cells.

        Examples
        --------
        >>> ages = Domain.from_edges([0, 18, 65, 120], name="age")
        >>> extended = ages.with_extra_cells(missing=True)
        >>> extended.size, extended.without_extra_cells() == ages
        (4, True)
        """
        kinds: list[list[str]] = [[] for _ in self.attributes]
        for kind, asked in ((OUTSIDE, outside), (MISSING, missing)):
            if asked is False or asked is None:
                continue
            for axis in range(self.ndim) if asked is True else self.axes(asked):
                kinds[axis].append(kind)
        return self._of(
            extend_axis(attribute, wanted)
            for attribute, wanted in zip(self.attributes, kinds, strict=True)
        )

    def without_extra_cells(self) -> Self:
        """Leave out the cells for missing values and values outside."""
        return self._of(
            replace(
                attribute,
                size=attribute.regular,
                levels=None
                if attribute.levels is None
                else attribute.levels[: attribute.regular],
                extras=(),
            )
            for attribute in self.attributes
        )

    @malformed_as(
        DomainError,
        "cells are merged by the edges that stay, coarsened(age=[0, 18, 65, 120]), or "
        'by a mapping from new levels to lists of old ones, coarsened(town={"other": '
        '["Chur", "Bern"]})',
    )
    def coarsened(
        self, groups: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> tuple[Self, list[IntArray | None]]:
        """Merge cells of attributes.

        Parameters
        ----------
        groups : Mapping[object, object], optional
            By attribute: edges that stay, or a mapping from new levels to lists of old
            ones.
        **named : object
            The same, by the attribute's name.

        Returns
        -------
        domain : Self
            The coarser domain.
        labels : list of ndarray of int64 or None
            The new cell of each old one, along each axis; None where an axis stays as
            it is.

        Raises
        ------
        DomainError
            If an edge or level is not there.
        """
        merged = list(self.attributes)
        labels: list[IntArray | None] = [None] * self.ndim
        for name, wanted in {**(groups or {}), **named}.items():
            axis = self.axis(name)
            merged[axis], labels[axis] = merge_cells(self.attributes[axis], wanted)
        return self._of(merged), labels

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {"attributes": [_axis_data(attribute) for attribute in self.attributes]}

    @classmethod
    @malformed_as(DomainError, "a domain is read from what its to_dict returned")
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild a domain from `to_dict`.

        Examples
        --------
        >>> Domain.from_dict(Domain(3).to_dict()) == Domain(3)
        True
        """
        return cls._of(_axis_from(plain) for plain in data["attributes"])

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.attributes == other.attributes

    def __hash__(self) -> int:
        return hash(self.attributes)

    def __repr__(self) -> str:
        parts = [
            f"{attribute.name}: {attribute.size} cells"
            if attribute.name
            else f"{attribute.size} cells"
            for attribute in self.attributes
        ]
        return f"{type(self).__name__}({' x '.join(parts)})"

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel, table

        rows = [
            (
                attribute.name or f"attribute {axis}",
                f"{attribute.size:,}",
                attribute.describe(),
            )
            for axis, attribute in enumerate(self.attributes[:MOST_SHOWN])
        ]
        if self.ndim > MOST_SHOWN:
            rows.append((f"and {self.ndim - MOST_SHOWN} more", "", ""))
        return panel(
            f"{type(self).__name__}: {self.size:,} cells",
            drawing=table(("attribute", "cells", "values"), rows),
        )


class Domain(Attributes):
    """A product of ordered attributes, each cut into cells and, if wanted, named.

    Parameters
    ----------
    shape : int or Sequence[int]
        Number of cells of each attribute; one number for a single attribute.
    names : str or Sequence[str], optional
        The names of the attributes.

    Examples
    --------
    >>> Domain((1024, 1024)).shape
    (1024, 1024)
    >>> Domain.from_edges(range(0, 101, 10), name="age")
    Domain(age: 10 cells)
    """

    __slots__ = ()

    _most = LARGEST_DOMAIN
    _way_out = (
        "Use coarser edges or fewer attributes; WideDomain.product takes more cells "
        "for a SparseHistogram, whose marginals are histograms again"
    )

    def __init__(
        self, shape: int | Sequence[int], names: str | Sequence[str] | None = None
    ) -> None:
        sizes = _sizes(shape)
        self._set(tuple(map(Axis, sizes, _labels(names, len(sizes)))))

    def __getitem__(self, key: Any) -> Any:
        """Say how cells and attributes are asked for: a domain is no list of them."""
        raise TypeError(
            f"a domain is asked, not indexed; received domain[{quoted(key)}]. Write "
            "domain.attributes for its attributes, domain.size for the number of cells"
        )

    @classmethod
    def _of(cls, attributes: Iterable[Axis]) -> Self:
        listed = tuple(attributes)
        if any(attribute.steps is not None for attribute in listed):
            listed = tuple(map(with_listed_edges, listed))
        if any(attribute.keys is not None for attribute in listed):
            raise DomainError(
                "words nobody listed are a domain by themselves",
                way_out="List them, Domain.from_levels, or keep the KeyDomain",
            )
        return super()._of(listed)

    @classmethod
    @malformed_as(DomainError, "edges must be a list of numbers or dates")
    def from_edges(cls, edges: Iterable[Any], name: str | None = None) -> Domain:
        """Cut a numeric attribute at public edges.

        Cell i is [edges[i], edges[i+1]); the last cell also holds the last edge itself.

        Parameters
        ----------
        edges : iterable
            Increasing numbers. Edges that are datetime64 or date objects are read as by
            `from_dates`.
        name : str, optional
            The name of the attribute.

        Returns
        -------
        Domain
            The domain.

        Raises
        ------
        DomainError
            If edges do not increase, or are no numbers.
        """
        return cls._of([from_cuts(edges, name)])

    @classmethod
    @malformed_as(DomainError, "a box has numbers of cells, and a pair for each side")
    def from_box(
        cls, cells: int | Sequence[int], **sides: tuple[float, float]
    ) -> Domain:
        """Cut a named bounding box into a grid of equal cells.

        The lowest and highest value of a side are public, and never read off the data.

        Parameters
        ----------
        cells : int or Sequence[int]
            How many cells along each side; one number for all sides.
        **sides : tuple of two floats
            The lowest and highest value of each side, by its name.

        Returns
        -------
        Domain
            The domain.

        Raises
        ------
        DomainError
            If there is no side, or no cell along one.

        Examples
        --------
        >>> swiss = Domain.from_box((64, 32), lon=(5.9, 10.5), lat=(45.8, 47.9))
        >>> swiss
        Domain(lon: 64 cells x lat: 32 cells)
        """
        counts = np.broadcast_to(as_integers(cells, "cells"), (len(sides),))
        if not sides or (counts < 1).any():
            raise DomainError(
                "a box has sides by name, lon=(5.9, 10.5), and at least one cell along "
                "each",
                received=f"{cells!r} cells and {sides!r}",
            )
        if math.prod(counts.tolist()) > LARGEST_DOMAIN:
            raise SizeError(
                f"a box has at most 2^28 = {LARGEST_DOMAIN:,} cells",
                received=f"{cells!r}",
            )
        for name, side in sides.items():
            ends = np.asarray(side, dtype=np.float64)
            if ends.shape != (2,) or not np.isfinite(ends).all() or ends[0] >= ends[1]:
                raise DomainError(
                    f"the side {name!r} of a box is a pair of its lowest and highest "
                    "value",
                    received=repr(side),
                )
        return cls.product(
            *(
                cls.from_edges(np.linspace(low, high, count + 1), name=name)
                for (name, (low, high)), count in zip(
                    sides.items(), counts.tolist(), strict=True
                )
            )
        )

    @classmethod
    @malformed_as(DomainError, "edges must be a list of dates")
    def from_dates(cls, edges: Iterable[Any], name: str | None = None) -> Domain:
        """Cut time at public dates.

        Cell i is [edges[i], edges[i+1]), the last one too. Edges are held in the
        coarsest of days, hours, minutes, seconds, milli- and microseconds that holds
        them all, which is the unit of a ``Threshold`` with ``unit="value"``. Times of
        day with a zone are read in UTC.

        Parameters
        ----------
        edges : iterable
            Increasing dates: datetime64, date objects or ISO texts.
        name : str, optional
            The name of the attribute.

        Returns
        -------
        Domain
            The domain.

        Raises
        ------
        DomainError
            If edges do not increase, or are no dates.

        Examples
        --------
        >>> Domain.from_dates(["2024-01-01", "2024-02-01", "2024-03-01"], name="day")
        Domain(day: 2 cells)
        """
        return cls._of([from_date_cuts(edges, name)])

    @classmethod
    @malformed_as(DomainError, "levels must be a list of plain values")
    def from_levels(cls, levels: Iterable[Any], name: str | None = None) -> Domain:
        """Give each public level of a categorical attribute its cell.

        Parameters
        ----------
        levels : iterable
            Different texts, numbers or truth values, in the order of their cells: a
            list or an array, no set.
        name : str, optional
            The name of the attribute.

        Returns
        -------
        Domain
            The domain.

        Raises
        ------
        DomainError
            If the levels are no list, a level is something else, or stands there twice.
        """
        return cls._of([from_level_list(levels, name)])

    @classmethod
    def from_weights(
        cls, largest: float, classes: int, *, ratio: float = 2, name: str = "weight"
    ) -> Domain:
        """Give each public class of survey weights its cell, from the largest down.

        Each class is the one before it, divided by `ratio`. `sampling.round_weights`
        puts weights between two classes into one of them, at random, so that means
        stay; what rounding adds to the variance grows with the ratio (Lemma PN21).

        Parameters
        ----------
        largest : number
            The largest weight of the design, a public fact.
        classes : int
            How many there are, 2 or more; the least one is 1 or more.
        ratio : number, default 2
            By how much one class exceeds the next, above 1.
        name : str, default 'weight'
            The name of the attribute.

        Returns
        -------
        Domain
            The domain; its levels are the `values` of `sampling.Weighted`.

        Raises
        ------
        DomainError
            If the least class would be below 1.

        Examples
        --------
        >>> Domain.from_weights(largest=64, classes=5).attributes[0].levels
        (64, 32, 16, 8, 4)
        """
        levels = weight_levels(largest, classes, ratio)
        return cls.from_levels(levels, name=name)

    @classmethod
    @malformed_as(DomainError, "districts become cells under the name of a column")
    def from_polygons(cls, districts: Districts, name: str = "district") -> Domain:
        """Give each district its cell; records are points, a column per coordinate.

        `Histogram.from_records` then counts points, from columns such as lon and lat;
        how many lie outside stays private, in a cell of its own (``outside="cell"``) or
        in the nearest districts (``outside="clamp"``).
        The domain keeps a digest of the borders: the same ids with others are another.

        Parameters
        ----------
        districts : Districts
            Public polygons with ids.
        name : str, default 'district'
            The name of the attribute.

        Returns
        -------
        Domain
            The domain.

        Raises
        ------
        DomainError
            If these are no districts.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> ring = [[[0, 0], [1, 0], [1, 1], [0, 1]]]
        >>> square = {"type": "Polygon", "coordinates": ring}
        >>> place = Domain.from_polygons(bf.Districts.from_shapes([square], ["A"]))
        >>> points = {"lon": [0.5, 7.0], "lat": [0.5, 0.5]}
        >>> bf.Histogram.from_records(place, points, outside="cell")
        Histogram(Domain(district: 2 cells), counts hidden)
        """
        if not isinstance(districts, Districts):
            raise DomainError(
                "polygons are Districts, such as Districts.from_file(path, id=...)",
                received=repr(type(districts).__name__),
            )
        borders = Borders(districts.digest, districts.columns, districts)
        axis = from_level_list(districts.ids, name)
        return cls._of([replace(axis, borders=borders)])

    @classmethod
    @malformed_as(DomainError, "hexagons become cells under the name of a column")
    def from_h3(cls, area: Any, resolution: int, name: str = "hexagon") -> Domain:
        """Give each hexagon of H3 that touches a public area its cell.

        Records are points, in columns lon and lat. Needs the extra ``h3``. For a map,
        or `policies.neighbours`, keep the hexagons:
        ``Domain.from_polygons(bf.Hexagons.covering(area, resolution))`` is the same.

        Parameters
        ----------
        area : mapping or object
            A public Polygon or MultiPolygon in WGS 84, as GeoJSON or with
            `__geo_interface__`; never drawn around the records.
        resolution : int
            From 0 to 15; 7 is about 5 square kilometres a hexagon.
        name : str, default 'hexagon'
            The name of the attribute.

        Returns
        -------
        Domain
            The domain.

        Raises
        ------
        InputError
            If the area is no polygon, or there would be too many hexagons.
        MissingExtraError
            If h3 is not installed.

        Examples
        --------
        >>> from importlib.util import find_spec
        >>> corners = [[[7, 46], [8, 46], [8, 47], [7, 47]]]
        >>> area = {"type": "Polygon", "coordinates": corners}
        >>> if find_spec("h3"):
        ...     assert Domain.from_h3(area, 5).size == 50
        """
        from .places.hexagons import Hexagons

        return cls.from_polygons(Hexagons.covering(area, resolution), name)

    def marginal(self, names: Any) -> Domain:
        """Return the domain of some attributes, by name or number, in its own order."""
        return Domain._of(self.attributes[axis] for axis in sorted(self.axes(names)))


class WideDomain(Attributes):
    """A product of attributes with more cells than memory could hold.

    Built with ``WideDomain.product(ages, incomes, towns, ...)``, by a rule
    (`WideDomain.from_steps`), or as a number of cells in order, ``WideDomain(2**60,
    names="time")``, whose values are the numbers from 0 on. A `SparseHistogram` counts
    its cells; `Contingency` publishes tables over it, `SparseLaplace` lists heavy
    cells, and `Dawa` answers ranges of one attribute. Everything else takes a marginal
    or coarser cells.

    Parameters
    ----------
    shape : int or sequence of int
        Number of cells of each attribute.
    names : str or sequence of str, optional
        Names of the attributes.

    Examples
    --------
    >>> visits = Domain(2**20, names=["visit"])
    >>> people = Domain(2**20, names=["person"])
    >>> f"{WideDomain.product(visits, people).size:,}"
    '1,099,511,627,776'
    """

    __slots__ = ()

    _most = None

    def __init__(
        self, shape: int | Sequence[int], names: str | Sequence[str] | None = None
    ) -> None:
        sizes = _sizes(shape)
        self._set(tuple(map(Axis, sizes, _labels(names, len(sizes)))))

    @classmethod
    def _of(cls, attributes: Iterable[Axis]) -> Self:
        listed = tuple(attributes)
        words = [attribute for attribute in listed if attribute.keys is not None]
        alone = bool(words) and len(listed) == 1
        domain: Any = object.__new__(KeyDomain if alone else cls)
        domain._set(listed)
        own: Self = domain
        return own

    @classmethod
    @malformed_as(DomainError, "an axis by a rule has a start, a step and an end")
    def from_steps(
        cls,
        *,
        start: Any = 0,
        step: Any = 1,
        cells: int | None = None,
        stop: Any = None,
        name: str | None = None,
    ) -> WideDomain:
        """Cut an attribute by a rule, in whole numbers: nobody lists the edges.

        Cell i holds [start + i step, start + (i + 1) step). Times are held in the
        coarsest of days, hours, ..., nanoseconds that holds start and step. With start
        0 and step 1 values are the numbers of cells.

        Parameters
        ----------
        start : int, or date
            The first value: a whole number, a date object, or a text such as
            "2000-01-01" or "2024-05-31T12:00".
        step : int, or length of time
            A whole number, or with dates a timedelta or a text such as "1ns" or
            "5min".
        cells : int, optional
            How many cells, at most 2^62; or state `stop`.
        stop : int, or date, optional
            The value behind the last cell, a whole number of steps from the start.
        name : str, optional
            The name of the attribute.

        Returns
        -------
        WideDomain
            The domain, wide however few cells it has.

        Raises
        ------
        DomainError
            If these do not fit together, or 64 bits do not hold them.

        Examples
        --------
        >>> time = WideDomain.from_steps(
        ...     start="2000-01-01", step="1ns", cells=2**60, name="time"
        ... )
        >>> time.size == 2**60, str(time.attributes[0].steps.values(np.int64(1)))
        (True, '2000-01-01T00:00:00.000000001')
        >>> WideDomain.from_steps(stop=2**32, step=256, name="network").size
        16777216
        """
        rule = read_steps(start, step)
        if (cells is None) == (stop is None):
            raise DomainError(
                "an axis by a rule ends behind a number of cells, or at a value",
                received="both cells and stop" if cells is not None else "neither",
                way_out="State cells=2**32, or stop=...",
            )
        if cells is None:
            size, part = divmod(rule.tick(stop) - rule.start, rule.step)
            if part or size < 1:
                raise DomainError(
                    "an axis ends a whole number of steps behind its start, at least "
                    "one",
                    received=f"start={start!r}, step={step!r}, stop={stop!r}",
                    way_out="Move an end, or choose another step",
                )
        else:
            size = as_whole(cells, "cells", 1)
        check_steps(rule, size)
        # Values that are the numbers of cells need no rule.
        plain = rule == Steps(0, 1)
        return cls._of([Axis(size, name, steps=None if plain else rule)])

    def marginal(self, names: Any) -> Domain | WideDomain:
        """Return the domain of some attributes: a `Domain` where it fits."""
        attributes = [self.attributes[axis] for axis in sorted(self.axes(names))]
        return narrow(WideDomain._of(attributes))


class KeyDomain(WideDomain):
    """Words nobody listed: every word of up to so many public symbols is a cell.

    `SparseLaplace` lists the frequent ones at pure epsilon, by thresholds that grow
    with their length; a `SparseHistogram` counts them. Words with other symbols, or
    longer ones, lie outside.

    Parameters
    ----------
    symbols : str
        The characters of words: ``"a-z"``, ``"a-z0-9 -"``. They are public, and never
        read off the data. ``"utf-8"`` is every character of every script, but those
        that steer, such as line ends.
    longest : int
        Characters of the longest word; of ``"utf-8"``, bytes of the longest text.
    name : str, optional
        The name of the column.
    case : bool, default False
        Whether capitals are letters of their own. Without, case is folded first; then
        texts are brought to the form NFC of Unicode.

    Examples
    --------
    >>> words = KeyDomain("a-z", longest=14, name="word")
    >>> words.attributes[0].describe()
    "words of up to 14 of 'abcdefghijklmnopqrstuvwxyz', capitals as small letters"
    >>> words.size > 2**65
    True
    >>> KeyDomain("utf-8", longest=20).attributes[0].describe()
    'texts of up to 20 bytes in UTF-8, capitals as small letters'
    """

    __slots__ = ()

    def __init__(
        self,
        symbols: str = "a-z",
        longest: int = 14,
        name: str | None = None,
        *,
        case: bool = False,
    ) -> None:
        rule = read_words(symbols, longest, case=case)
        self._set((Axis(rule.cells, name, keys=rule),))

    @property
    def rule(self) -> WordRule:
        """Which words there are, and their numbers."""
        (attribute,) = self.attributes
        assert attribute.keys is not None
        return attribute.keys


def is_wide(domain: object) -> bool:
    """Return whether a domain is one whose cells nobody lists."""
    return isinstance(domain, WideDomain)


def narrow(domain: Attributes) -> Domain | WideDomain:
    """Return a `Domain` if its cells fit in memory, else a `WideDomain`."""
    fits = domain.size <= LARGEST_DOMAIN and all(map(can_list_edges, domain.attributes))
    return (Domain if fits else WideDomain)._of(domain.attributes)


def _labels(names: Any, attributes: int) -> list[Any]:
    if names is None:
        return [None] * attributes
    if not isinstance(names, Iterable):
        raise DomainError(
            "names are texts, one per attribute, and several sizes are one tuple, "
            "such as Domain((4, 5))",
            received=f"{names!r} as names",
        )
    with malformed_as(DomainError, "names are texts, one per attribute"):
        labels = [names] if isinstance(names, str) else list(names)
        set(labels)
    if len(labels) != attributes:
        raise DomainError(
            f"give one name per attribute: {attributes} attributes, {len(labels)} names"
        )
    return labels


def _sizes(shape: Any) -> tuple[int, ...]:
    sizes = np.atleast_1d(as_integers(shape, "shape", DomainError))
    if sizes.ndim != 1 or sizes.size == 0 or (sizes < 1).any():
        raise DomainError(
            "each attribute needs at least one cell",
            received=f"shape {shape!r}",
            way_out="A domain of n ordered values is Domain(n)",
        )
    return tuple(sizes.tolist())


def _axis_data(axis: Axis) -> dict[str, Any]:
    """Return plain data of an attribute, for JSON."""
    plain: dict[str, Any] = {
        "size": axis.size,
        "name": axis.name,
        "edges": None if axis.cuts is None else list(axis.cuts),
        "levels": None if axis.levels is None else list(axis.levels),
    }
    if axis.unit is not None:
        plain["unit"] = axis.unit
    if axis.extras:
        plain["extras"] = list(axis.extras)
    if axis.steps is not None:
        plain["steps"] = axis.steps.to_list()
    if axis.keys is not None:
        plain["keys"] = axis.keys.to_list()
    if axis.borders is not None:
        plain["borders"] = [axis.borders.digest, *axis.borders.columns]
    return plain


def _axis_from(data: Mapping[str, Any]) -> Axis:
    """Rebuild an attribute from plain data; refuse what does not fit together."""
    axis = Axis(
        int(data["size"]),
        data.get("name"),
        None if data.get("edges") is None else tuple(data["edges"]),
        None if data.get("levels") is None else tuple(data["levels"]),
        data.get("unit"),
        tuple(data.get("extras", ())),
        _steps_from(data),
        None if data.get("keys") is None else _keys_from(data["keys"]),
        None if data.get("borders") is None else _borders_from(data["borders"]),
    )
    fits = (
        (axis.name is None or isinstance(axis.name, str))
        and axis.regular > 0
        and axis.extras in ((), (OUTSIDE,), (MISSING,), (OUTSIDE, MISSING))
        and axis.unit in (None, *MICROSECONDS)
        and (axis.cuts is None or len(axis.cuts) == axis.regular + 1)
        and (axis.levels is None or len(axis.levels) == axis.size)
        and (axis.steps is None or (axis.cuts, axis.levels) == (None, None))
        and (axis.keys is None or axis == _of_words(axis))
    )
    if not fits:
        raise DomainError(
            f"the cells of {axis.name or 'an attribute'} do not fit its size, "
            f"{axis.size}; n cells have n + 1 edges, or n levels"
        )
    if axis.steps is not None:
        check_steps(axis.steps, axis.regular)
    if axis.cuts is not None:
        check_cuts(np.array(axis.cuts, dtype=np.float64))
    return axis


def _borders_from(plain: Any) -> Borders:
    digest, first, second = (str(text) for text in plain)
    return Borders(digest, (first, second))


def _steps_from(data: Mapping[str, Any]) -> Steps | None:
    """Rebuild the rule of an attribute from plain data."""
    if data.get("steps") is None:
        return None
    start, step, unit = data["steps"]
    rule = Steps(int(start), int(step), unit)
    if rule.step < 1 or unit not in (None, *NANOSECONDS):
        raise DomainError("an axis by a rule goes forward, in units of time or numbers")
    return rule


def _keys_from(data: Any) -> WordRule:
    """Rebuild which words there are from plain data."""
    symbols, longest, case = data
    if symbols == "":
        return read_texts(longest, case=bool(case))
    stated = KeyRule(str(symbols), int(longest), bool(case))
    # Symbols are listed one by one in a file: runs would be read otherwise.
    rules = [read_rule(symbol, stated.longest, case=stated.case) for symbol in symbols]
    distinct = len(set(symbols)) == len(rules) > 0
    if not distinct or stated.cells.bit_length() > MOST_BITS:
        raise DomainError("the symbols of words are different characters")
    return stated


def _of_words(axis: Axis) -> Axis:
    """Return the axis of words as it is built."""
    assert axis.keys is not None
    cells = axis.keys.cells + len(axis.extras)
    return Axis(cells, axis.name, extras=axis.extras, keys=axis.keys)
