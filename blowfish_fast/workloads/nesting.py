r"""Public districts inside districts: nation, states, counties, tracts, blocks.

Cells are the smallest districts, in the order in which they were listed. Each level
above has one number per cell:

    blocks (cells)   0 1 2 3 4          tree      all
    tract            0 0 1 1 2                   /   \
    county           0 0 0 0 1            county 0   county 1
                                          /    \        |
                                    tract 0  tract 1  tract 2
                                      0 1      2 3       4

A level that cuts others, such as school districts that cut tracts, is put in by
`Nesting.with_level`: what lies below it then consists of parts, and a tract is the
union of its parts. All of this is public, and must not come from the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast._support.validation import (
    as_integers,
    as_number,
    malformed_as,
    quoted,
)
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import DomainError, InputError, WorkloadError, nearest

from .base import Union, Workload
from .districts import level_workload

if TYPE_CHECKING:
    from blowfish_fast.kernels.tree.shape import Tree

TOP = "all"
"""The level above all others, where the first one stated has several districts."""


H3_RESOLUTION_BIT = 52
H3_DIGIT_BITS = 3
H3_FINEST = 15
"""Where numbers of H3 state the resolution, and what each finer one takes."""


class DistrictLevel(NamedTuple):
    """One level of districts.

    Attributes
    ----------
    name : str
        What a district of the level is called.
    ids : tuple of object
        The id of each district.
    labels : ndarray of int64, shape (cells,)
        The district of each cell, -1 for a cell above which there is none.
    parts : ndarray of int64, shape (cells,)
        The node of the tree at this level: that of the district, or of the part of it
        that lies in one district of each level above.
    """

    name: str
    ids: tuple[Any, ...]
    labels: IntArray
    parts: IntArray

    @property
    def is_whole(self) -> bool:
        """Whether no district of the level is cut by a level above."""
        return int(self.parts.max()) + 1 == len(self.ids)


class DistrictTree(NamedTuple):
    """The tree of a nesting, and what its rows stand for.

    Attributes
    ----------
    tree : Tree
        The shape; its leaves are the cells along `order`.
    order : ndarray of int64, shape (cells,), or None
        The cell at each leaf; None where cells were listed along the tree.
    levels : ndarray of int64, shape (rows,)
        The number of the level of each row, the top being 0.
    rows : tuple of ndarray of int64
        For each level the row of each of its parts.
    """

    tree: Tree
    order: IntArray | None
    levels: IntArray
    rows: tuple[IntArray, ...]


class Nesting:
    """A public tree of districts whose smallest ones are the cells of a domain.

    Made by `from_columns`, `from_codes`, `from_h3`, `of_parents` or `of_domain`.

    Parameters
    ----------
    domain : Domain
        The cells: the smallest districts, in the order in which they were listed.
    levels : sequence of Level
        The levels from the top down, the last one being that of the cells.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> table = {"land": ["N", "N", "S"], "town": ["a", "b", "c"]}
    >>> nest = bf.Nesting.from_columns(table, ["land", "town"])
    >>> nest.names, nest.ids("land"), nest.labels("land").tolist()
    (('all', 'land', 'town'), ('N', 'S'), [0, 0, 1])
    >>> policy = bf.policies.Blocks(nest.domain, nest.labels("land"))
    >>> asked = nest.workload(land=1, town=1)
    >>> nested = bf.Nested(policy, asked, epsilon=1)
    >>> nested.release([5, 1, 7], rng=1).level("land")["N"]
    Estimate(6)
    """

    def __init__(self, domain: Domain, levels: Sequence[DistrictLevel]) -> None:
        self.domain = domain
        self.levels = tuple(levels)

    @classmethod
    @malformed_as(InputError, "a table of districts has columns, and names lists them")
    def from_columns(cls, table: Any, names: Sequence[str]) -> Nesting:
        """Read a public table with one line per smallest district.

        Parameters
        ----------
        table : mapping or data frame
            Columns by name: the district of each level that a smallest one lies in. A
            code that means different districts in different ones above, such as county
            "001" of each state, is taken together with those above it.
        names : sequence of str
            The columns, from the largest districts down to the smallest.

        Returns
        -------
        Nesting
            The districts; its domain lists the smallest in the order of the table.

        Raises
        ------
        InputError
            If a column is missing or not comparable, or a district stands there twice.
        """
        listed = [str(name) for name in names]
        if not listed or len(set(listed)) < len(listed) or TOP in listed:
            raise InputError(
                "names lists columns from the largest districts down, each once, and "
                f"none is called {TOP!r}",
                received=repr(names),
            )
        columns = [_column(table, name) for name in listed]
        cells = len(columns[0])
        if not cells or any(len(column) != cells for column in columns):
            raise InputError(
                "a table of districts has columns of one length, at least one line",
                received=repr([len(column) for column in columns]),
            )
        levels = [_top(cells)]
        for name, column in zip(listed, columns, strict=True):
            levels.append(_inside(levels[-1], name, column))
        last = levels[-1]
        if len(last.ids) < cells:
            twice = np.flatnonzero(np.bincount(last.labels) > 1)[0]
            raise InputError(
                f"each {last.name} stands in the table once, on a line of its own",
                received=f"{last.ids[twice]!r} on several",
                way_out="Drop repeated lines, or name the column of a smaller district",
            )
        if len(levels[1].ids) == 1:
            del levels[0]
        return cls._listed(levels)

    @classmethod
    @malformed_as(InputError, "codes are a list of texts, and digits one of numbers")
    def from_codes(
        cls, ids: Iterable[str], digits: Sequence[int], *, names: Any = None
    ) -> Nesting:
        """Read codes whose beginnings are the codes of the districts above.

        Parameters
        ----------
        ids : iterable of str
            The code of each smallest district.
        digits : sequence of int
            How many symbols the codes of each level have, from the largest districts
            down; the last number is that of whole codes.
        names : sequence of str, optional
            The name of each level; "digits_2" and so on by default.

        Returns
        -------
        Nesting
            The districts.

        Raises
        ------
        InputError
            If codes are shorter or longer than the last number of symbols.

        Examples
        --------
        >>> nest = Nesting.from_codes(["0101", "0102", "0201"], [2, 4])
        >>> nest.names, nest.ids("digits_2")
        (('all', 'digits_2', 'digits_4'), ('01', '02'))
        """
        codes = np.array([str(code) for code in ids])
        steps = as_integers(digits, "digits", InputError).reshape(-1)
        if not codes.size or not steps.size or (np.diff(steps, prepend=0) < 1).any():
            raise InputError(
                "digits lists rising numbers of symbols, and there is a code",
                received=f"{digits!r}, {codes.size} codes",
            )
        lengths = np.char.str_len(codes)
        if (lengths != steps[-1]).any():
            odd = codes[np.flatnonzero(lengths != steps[-1])[0]]
            raise InputError(
                f"each code has {int(steps[-1])} symbols, the last number of digits",
                received=repr(str(odd)),
                way_out="Keep leading zeros: read the column as text",
            )
        labels = [f"digits_{step}" for step in steps] if names is None else list(names)
        if len(labels) != steps.size:
            raise InputError(
                f"names has one name for each of the {steps.size} levels",
                received=repr(names),
            )
        table = {
            name: codes.astype(f"<U{step}")
            for name, step in zip(labels, steps, strict=True)
        }
        return cls.from_columns(table, labels)

    @classmethod
    @malformed_as(InputError, "hexagons are ids of H3, and resolutions whole numbers")
    def from_h3(
        cls, ids: Iterable[Any], resolutions: Sequence[int], *, names: Any = None
    ) -> Nesting:
        """Read hexagons of H3, whose numbers tell the hexagon above; no package needed.

        A hexagon lies in its parent by its number: on the ground it reaches over the
        parent's border.

        Parameters
        ----------
        ids : iterable of str or int
            The hexagons, all of the last resolution, as texts of hexadecimal digits or
            as numbers.
        resolutions : sequence of int
            The resolutions of the levels, rising; the last one is that of `ids`.
        names : sequence of str, optional
            The name of each level; "resolution_5" and so on by default.

        Returns
        -------
        Nesting
            The hexagons; ids of levels above are texts of hexadecimal digits.

        Raises
        ------
        InputError
            If hexagons are of another resolution.

        Examples
        --------
        >>> nest = Nesting.from_h3(["871f90c86ffffff", "871f90cb1ffffff"], [5, 7])
        >>> nest.ids("resolution_5")
        ('851f90cbfffffff',)
        """
        cells = list(ids)
        numbers = np.array(
            [cell if isinstance(cell, int) else int(str(cell), 16) for cell in cells],
            dtype=np.uint64,
        )
        steps = as_integers(resolutions, "resolutions", InputError).reshape(-1)
        rising = bool(steps.size) and bool((np.diff(steps, prepend=-1) > 0).all())
        own = (numbers >> np.uint64(H3_RESOLUTION_BIT)) & np.uint64(15)
        if not cells or not rising or (own != steps[-1]).any():
            raise InputError(
                "resolutions rise to that of the hexagons, of which there is one",
                received=f"{resolutions!r}, and hexagons of "
                f"{sorted({int(size) for size in own})}",
            )
        labels = (
            [f"resolution_{step}" for step in steps] if names is None else list(names)
        )
        if len(labels) != steps.size:
            raise InputError(
                f"names has one name for each of the {steps.size} levels",
                received=repr(names),
            )
        table: dict[str, Any] = {
            name: [f"{number:x}" for number in _h3_parents(numbers, int(step)).tolist()]
            for name, step in zip(labels, steps, strict=True)
        }
        return cls.from_columns(table | {labels[-1]: cells}, labels)

    @classmethod
    def of_parents(
        cls, parents: Any, *, ids: Sequence[Any] | None = None, names: Any = None
    ) -> Nesting:
        """Read a tree from the district that each district lies in.

        Parameters
        ----------
        parents : array-like of int, shape (districts,)
            The number of the district above each, -1 for the only one without. The
            smallest districts, above which others may lie at any depth, are the cells.
        ids : sequence, optional
            The id of each district; their numbers by default.
        names : sequence of str, optional
            The name of each depth from the top, then of the smallest districts;
            "depth_0" and so on, and "cell", by default.

        Returns
        -------
        Nesting
            The districts.

        Raises
        ------
        InputError
            If it is no tree.

        Examples
        --------
        >>> nest = Nesting.of_parents([-1, 0, 0, 1, 1])
        >>> nest.ids("cell"), nest.ids("depth_1"), nest.labels("depth_1").tolist()
        ((2, 3, 4), (1,), [-1, 0, 0])
        """
        above = as_integers(parents, "parents", InputError).reshape(-1)
        if above.size == 0 or above.max() >= above.size or above.min() < -1:
            raise InputError("parents are numbers of districts, or -1 at the top")
        kernels.leaf_first_numbers(above)
        listed = list(range(above.size)) if ids is None else list(ids)
        if len(listed) != above.size:
            raise InputError(
                f"ids has one id for each of the {above.size} districts",
                received=len(listed),
            )
        cells = np.setdiff1d(np.arange(above.size), above)
        # The districts above each cell, the nearest one first, then those above it.
        chain = [above[cells]]
        while (chain[-1] >= 0).any():
            chain.append(np.where(chain[-1] >= 0, above[chain[-1]], -1))
        depth = np.sum(np.stack(chain) >= 0, axis=0)
        deepest = int(depth.max(initial=0))
        labels = (
            [*(f"depth_{at}" for at in range(deepest)), "cell"]
            if names is None
            else list(names)
        )
        if len(labels) != deepest + 1 or len(set(labels)) < len(labels):
            raise InputError(
                f"names has {deepest + 1} different names, one for each depth above a "
                "cell and one for cells",
                received=repr(names),
            )
        levels = []
        for at in range(deepest):
            node = np.full(cells.size, -1, dtype=np.int64)
            for steps, nodes in enumerate(chain[:-1]):
                here = depth - 1 - steps == at
                node[here] = nodes[here]
            numbers, places = np.unique(node, return_inverse=True)
            first = int(numbers[0] == -1)
            places = places.reshape(-1).astype(np.int64) - first
            named = tuple(listed[number] for number in numbers[first:])
            levels.append(DistrictLevel(str(labels[at]), named, places, places))
        each = np.arange(cells.size)
        named = tuple(listed[number] for number in cells)
        levels.append(DistrictLevel(str(labels[-1]), named, each, each))
        return cls._listed(levels)

    @classmethod
    def of_domain(cls, domain: Domain) -> Nesting:
        """Take the first attribute for the largest districts, the last for the least.

        A cell of the first two attributes lies in one of the first, and so on; a domain
        of one attribute has the total and its cells.
        """
        cells = np.arange(domain.size)
        levels = [_top(domain.size)]
        sides = 1
        for axis, name in enumerate(domain.column_names):
            sides *= domain.shape[axis]
            places = cells // (domain.size // sides)
            ids: tuple[Any, ...] = tuple(range(sides))
            attribute = domain.attributes[axis]
            if axis == 0 and attribute.levels is not None:
                ids = attribute.levels
            levels.append(DistrictLevel(name, ids, places, places))
        return cls(domain, levels)

    @classmethod
    def _listed(cls, levels: Sequence[DistrictLevel]) -> Nesting:
        """Return the nesting over a domain that lists the cells of the last level."""
        last = levels[-1]
        cells = np.empty(len(last.ids), dtype=np.int64)
        cells[last.labels] = np.arange(cells.size)
        ids = tuple(last.ids[number] for number in last.labels)
        each = np.arange(cells.size)
        domain = Domain.from_levels(ids, name=last.name)
        return cls(domain, [*levels[:-1], DistrictLevel(last.name, ids, each, each)])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the levels, from the top down."""
        return tuple(level.name for level in self.levels)

    def _find(self, name: Any) -> DistrictLevel:
        for level in self.levels:
            if level.name == name:
                return level
        raise InputError(
            f"there is no level {name!r}{nearest(str(name), self.names)}; there are "
            f"{', '.join(self.names)}"
        )

    def labels(self, level: str, *, outside: Any = None) -> IntArray:
        """Return the number of the district of each cell, for `Blocks` and others.

        Parameters
        ----------
        level : str
            The level.
        outside : str or int, optional
            The id of a district of this level, to which the cells "(outside)" and
            "(missing)" are counted. `Blocks` takes no cell without a block, and under a
            block of their own how many people are outside would be public.

        Returns
        -------
        ndarray of int64
            The numbers; -1 for a cell in no district of the level.

        Raises
        ------
        InputError
            If there is no such level, or no such district.

        Examples
        --------
        >>> nest = Nesting.from_codes(["AA", "AB", "BA"], [1, 2])
        >>> place = nest.domain.with_extra_cells(outside=True)
        >>> nest.over(place).labels("digits_1").tolist()
        [0, 0, 1, -1]
        >>> nest.over(place).labels("digits_1", outside="B").tolist()
        [0, 0, 1, 1]
        """
        stated = self._find(level)
        if outside is None:
            return stated.labels
        if outside not in stated.ids:
            ids = [str(id) for id in stated.ids]
            raise InputError(
                f"outside names a district of {stated.name}"
                f"{nearest(str(outside), ids)}",
                received=quoted(outside),
                way_out="Name one of them; that of a number is written as a number",
            )
        return np.where(stated.labels < 0, stated.ids.index(outside), stated.labels)

    def ids(self, level: str) -> tuple[Any, ...]:
        """Return the ids of the districts of a level, by number."""
        return self._find(level).ids

    def level(self, level: str) -> Workload:
        """Return the totals of all districts of a level, as a workload."""
        return level_workload(self.domain, self._find(level).labels)

    def workload(self, **importance: float) -> LevelTotals:
        """Ask for levels, by how much the mean squared error of each counts.

        Parameters
        ----------
        **importance : float
            A number for each level of interest, by its name.

        Returns
        -------
        LevelTotals
            The totals of all districts of these levels.

        Raises
        ------
        InputError
            If there is no such level, or a number is negative.
        """
        for name, number in importance.items():
            self._find(name)
            as_number(number, name, 0)
        return LevelTotals(self, {name: float(n) for name, n in importance.items()})

    def with_level(self, labels: Any, *, above: str, name: str = "district") -> Nesting:
        """Put in a level of districts that may cut those below and above.

        What lies below is cut along its borders; a district that is cut is the union of
        its parts, and still has its line in every answer.

        Parameters
        ----------
        labels : array-like
            The name or number of the new district of each cell, in the cells' order.
        above : str
            The level above which it is put.
        name : str, default 'district'
            What the new level is called.

        Returns
        -------
        Nesting
            The districts.

        Raises
        ------
        InputError
            If there is no such level, or the name is taken, or a label is missing.

        Examples
        --------
        >>> nest = Nesting.from_codes(["AA", "AB", "BA", "BB"], [1, 2])
        >>> schools = nest.with_level([0, 0, 0, 1], above="digits_1", name="school")
        >>> schools.names, schools.rows.tree.nodes
        (('all', 'school', 'digits_1', 'digits_2'), 10)
        """
        place = self.names.index(self._find(above).name)
        if name in self.names or place == 0:
            raise InputError(
                "a new level has a name of its own and lies below the top",
                received=f"{name!r} above {above!r}",
            )
        with malformed_as(InputError, "labels are texts or numbers, one per cell"):
            values, numbers = np.unique(np.asarray(labels), return_inverse=True)
        numbers = numbers.reshape(-1).astype(np.int64)
        if numbers.size != self.domain.size:
            raise InputError(
                f"labels has one label for each of the {self.domain.size} cells",
                received=numbers.size,
            )
        upper = list(self.levels[:place])
        parts = _refined(upper[-1].parts, numbers)
        levels = [*upper, DistrictLevel(name, tuple(values.tolist()), numbers, parts)]
        for level in self.levels[place:]:
            parts = _refined(levels[-1].parts, level.parts)
            levels.append(level._replace(parts=parts))
        # A cell is never cut.
        levels[-1] = self.levels[-1]
        return type(self)(self.domain, levels)

    def over(self, domain: Domain) -> Nesting:
        """Return the same districts over another domain of the same smallest ones.

        Parameters
        ----------
        domain : Domain
            One attribute whose levels are the ids of the smallest districts, in any
            order, as `Domain.from_levels` makes it. A cell "(outside)" or "(missing)"
            lies in the district at the top alone.

        Returns
        -------
        Nesting
            The districts, with labels in the order of `domain`.

        Raises
        ------
        DomainError
            If these are not the same ids.

        Examples
        --------
        >>> nest = Nesting.from_codes(["AA", "AB", "BA"], [1, 2])
        >>> place = Domain.from_levels(["BA", "AA", "AB"])
        >>> nest.over(place).labels("digits_1").tolist()
        [1, 0, 0]
        """
        own = {id: cell for cell, id in enumerate(self.levels[-1].ids)}
        attribute = domain.attributes[0]
        listed = attribute.levels or ()
        if domain.ndim != 1 or {*listed[: attribute.regular]} != own.keys():
            raise DomainError(
                "the levels of the domain are the ids of the smallest districts",
                received=repr(domain),
                way_out="Build it from the same ids: nest.domain is such a domain",
            )
        cells = np.array([own[id] for id in listed[: attribute.regular]])
        extra = np.full(len(attribute.extras), -1)
        levels = []
        for at, level in enumerate(self.levels[:-1]):
            more = extra if at else np.zeros_like(extra)
            labels, parts = (
                np.concatenate([numbers[cells], more])
                for numbers in (level.labels, level.parts)
            )
            levels.append(level._replace(labels=labels, parts=parts))
        if extra.size and len(self.levels[0].ids) != 1:
            levels.insert(0, _top(domain.size))
        each = np.arange(domain.size)
        ids = (*listed[: attribute.regular], *attribute.extras)
        levels.append(DistrictLevel(self.levels[-1].name, ids, each, each))
        return type(self)(domain, levels)

    @cached_property
    def rows(self) -> DistrictTree:
        """The tree of the districts, rows in the order that kernels take. O(cells)."""
        cells = self.domain.size
        above = np.zeros(cells, dtype=np.int64)
        parents: list[AnyArray] = [np.array([-1])]
        levels: list[AnyArray] = [np.zeros(1, dtype=np.int64)]
        places: list[IntArray] = [np.zeros(1, dtype=np.int64)]
        nodes = 1
        for number, level in enumerate(self.levels[:-1]):
            if number == 0:
                continue
            inside = np.flatnonzero(level.parts >= 0)
            count = int(level.parts.max(initial=-1)) + 1
            first = np.empty(count, dtype=np.int64)
            first[level.parts[inside[::-1]]] = inside[::-1]
            upper = above[first]
            if not np.array_equal(upper[level.parts[inside]], above[inside]):
                raise InputError(
                    f"each {level.name} lies in one district of every level above; one "
                    "of them does not",
                    way_out="Put it in by nest.with_level, which cuts along borders",
                )
            parents.append(upper)
            levels.append(np.full(count, number))
            places.append(np.arange(nodes, nodes + count))
            above[inside] = nodes + level.parts[inside]
            nodes += count
        parents.append(above)
        levels.append(np.full(cells, len(self.levels) - 1))
        places.append(np.arange(nodes, nodes + cells))
        together = np.concatenate(parents).astype(np.int64)
        if len(self.levels) == 1:
            # A single cell that is all there is: its own root.
            together, levels, places = together[:1], levels[:1], places[:1]
        numbers = kernels.leaf_first_numbers(together)
        tree = kernels.tree_of_parents(kernels.renumber_nodes(together, numbers))
        row_levels = np.empty(together.size, dtype=np.int64)
        row_levels[numbers] = np.concatenate(levels)
        rows = tuple(numbers[place] for place in places)
        order = np.empty(cells, dtype=np.int64)
        order[rows[-1]] = np.arange(cells)
        along = None if np.array_equal(order, np.arange(cells)) else order
        return DistrictTree(tree, along, row_levels, rows)

    @cached_property
    def cells_along(self) -> Buckets:
        """The cells in the order in which the tree visits them."""
        return Buckets.single_cells(self.domain.size, self.rows.order)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Nesting):
            return NotImplemented
        same = self.domain == other.domain and self.names == other.names
        return same and all(
            ours.ids == theirs.ids
            and np.array_equal(ours.labels, theirs.labels)
            and np.array_equal(ours.parts, theirs.parts)
            for ours, theirs in zip(self.levels, other.levels, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.names, self.domain.size))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(level.ids):,} {level.name}" for level in self.levels)
        return f"Nesting({sizes})"


class LevelTotals(Union):
    """The totals of all districts of some levels of a `Nesting`, by importance.

    ``nest.workload(block=1, county=1)`` makes it. Queries come level by level, from the
    top down.

    Parameters
    ----------
    nest : Nesting
        The districts.
    importance : Mapping[str, float]
        How much each level counts: its mean squared error is multiplied by it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> nest = bf.Nesting.from_codes(["AA", "AB", "BA"], [1, 2], names=["land", "town"])
    >>> asked = nest.workload(land=1, town=1)
    >>> asked.queries, asked.answer([5, 1, 2]).tolist(), dict(asked.importance)
    (5, [6, 2, 5, 1, 2], {'land': 1.0, 'town': 1.0})
    """

    def __init__(self, nest: Nesting, importance: Mapping[str, float]) -> None:
        asked = [level for level in nest.names if importance.get(level, 0.0) > 0.0]
        if not asked:
            raise WorkloadError(
                "a level of districts has some importance, a number above 0",
                received=repr(dict(importance)),
                way_out=f"The levels are {', '.join(nest.names)}: "
                f"nest.workload({nest.names[-1]}=1)",
            )
        super().__init__(*(nest.level(level) for level in asked))
        self.nest = nest
        self.importance = MappingProxyType({name: importance[name] for name in asked})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON: importance of levels, and their districts."""
        parts = [part.to_dict() for part in self.parts]
        return self._plain_head() | {
            "importance": dict(self.importance),
            "parts": parts,
        }


def _h3_parents(numbers: AnyArray, resolution: int) -> AnyArray:
    """Return the hexagons of a resolution that others lie in, by their bits.

    A number of H3 has four bits of resolution, seven of a cell of the coarsest grid,
    and three for each finer one, which are all set where there is none.
    """
    finer = np.uint64((1 << H3_DIGIT_BITS * (H3_FINEST - resolution)) - 1)
    cleared = ~np.uint64(15 << H3_RESOLUTION_BIT)
    stated = np.uint64(resolution << H3_RESOLUTION_BIT)
    parents: AnyArray = (numbers & cleared) | stated | finer
    return parents


def _top(cells: int) -> DistrictLevel:
    zeros = np.zeros(cells, dtype=np.int64)
    return DistrictLevel(TOP, (TOP,), zeros, zeros)


def _column(table: Mapping[str, Any], name: str) -> AnyArray:
    try:
        column = table[name]
    except (KeyError, TypeError, IndexError, ValueError) as problem:
        raise InputError(
            "the table has a column for each level",
            received=f"none called {name!r} ({type(problem).__name__})",
        ) from None
    with malformed_as(InputError, f"{name} holds texts or whole numbers"):
        values = np.asarray(column)
        if values.dtype == object:
            values = np.array(values.tolist())
    if values.ndim != 1 or values.dtype.kind not in "iuUSb":
        raise InputError(
            f"{name} holds the texts or whole numbers of districts, none missing",
            received=f"an array of {values.dtype}, shape {values.shape}",
        )
    return values


def _refined(upper: IntArray, lower: IntArray) -> IntArray:
    """Return the numbers of pairs, in the order of the first, then the second."""
    inside = (upper >= 0) & (lower >= 0)
    keys = upper[inside] * (int(lower.max()) + 1) + lower[inside]
    parts = np.full(upper.size, -1, dtype=np.int64)
    parts[inside] = np.unique(keys, return_inverse=True)[1].reshape(-1)
    return parts


def _inside(above: DistrictLevel, name: str, column: AnyArray) -> DistrictLevel:
    """Return the level of a column, its codes taken together with those above."""
    values, numbers = np.unique(column, return_inverse=True)
    keys = above.labels * values.size + numbers.reshape(-1)
    pairs, labels = np.unique(keys, return_inverse=True)
    labels = labels.reshape(-1).astype(np.int64)
    own = values[pairs % values.size].tolist()
    if pairs.size > values.size:
        upper = [above.ids[number] for number in (pairs // values.size).tolist()]
        own = [f"{before}/{id}" for before, id in zip(upper, own, strict=True)]
    return DistrictLevel(name, tuple(own), labels, labels)
