"""A policy of districts: those with a common border are joined by an edge.

    the map       +---+---+        the policy      A --- B
                  | A | B |                              |
                  +---+---+                              C
                      | C |
                      +---+        A and C meet at a corner alone

Whether somebody lives in A or in C is then protected by two times epsilon.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from blowfish_fast._support.validation import as_choice
from blowfish_fast.data.axes import OUTSIDE
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.places.districts import Districts
from blowfish_fast.errors import PolicyError

from .graph import Graph


def neighbours(
    districts: Districts,
    domain: Domain | None = None,
    *,
    islands: Literal["refuse", "public"] = "refuse",
    join: Literal["nearest"] | None = None,
) -> Graph:
    """Return the policy under which districts with a common border are joined.

    Whether somebody lives in a district or in the next one is protected by epsilon, d
    districts away by d epsilon. Districts that meet at a corner alone are not joined.

    Parameters
    ----------
    districts : Districts
        Public polygons.
    domain : Domain, optional
        One cell for each district, in their order; by default that of
        `Domain.from_polygons`. It may have a cell "(outside)", which is then joined to
        every district that has a border to the outside.
    islands : {"refuse", "public"}
        What happens where the edges leave the map in several parts. No edge changes the
        number of people in a part, so it is published exactly. "refuse" raises an error
        that names a district of the smallest part. "public" says that these numbers may
        be public.
    join : {"nearest", None}
        "nearest" adds an edge between the nearest districts of two parts of the map
        that share no border, beginning with the parts that are nearest to each other,
        until the map is in one part. In which of the two districts somebody lives is
        then protected by epsilon, as between neighbours.

    Returns
    -------
    Graph
        The policy.

    Raises
    ------
    PolicyError
        If the domain has other cells, or there are several parts that may not be
        public. A cell "(missing)" is a part by itself, which `join` does not reach.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> def square(x):
    ...     ring = [[x, 0], [x + 1, 0], [x + 1, 1], [x, 1]]
    ...     return {"type": "Polygon", "coordinates": [ring]}
    >>> districts = bf.Districts.from_shapes(map(square, range(3)), ["A", "B", "C"])
    >>> bf.policies.neighbours(districts).distance(0, [1, 2])
    array([1., 2.])
    """
    as_choice(islands, "islands", ("refuse", "public"))
    as_choice(join, "join", ("nearest", None))
    cells = Domain.from_polygons(districts) if domain is None else domain
    attribute = cells.attributes[0]
    regular = (attribute.levels or ())[: attribute.regular]
    if cells.ndim != 1 or regular != districts.ids:
        raise PolicyError(
            "the cells are the districts, in their order",
            received=repr(cells),
            way_out="Domain.from_polygons(districts) has such cells",
        )
    pairs = districts.neighbouring_pairs()
    if join == "nearest":
        pairs = np.concatenate([pairs, districts.joining_pairs()])
    outside = attribute.extra_cell(OUTSIDE)
    if outside is not None:
        rim = districts.rim()
        across_the_rim = np.stack([rim, np.full(rim.size, outside)], axis=1)
        pairs = np.concatenate([pairs, across_the_rim])
    policy = Graph(cells, pairs)
    parts = policy.components()
    if parts.count > 1 and islands == "refuse":
        assert parts.labels is not None, "several parts have labels"
        sizes = np.bincount(parts.labels)
        in_smallest = int(np.argmin(sizes[parts.labels]))
        names = (*districts.ids, *attribute.extras)
        # What is apart although districts were joined is no district: "(missing)".
        nearest_first = 'join="nearest" joins them at their nearest districts, and '
        nearest_first = "" if join == "nearest" else nearest_first
        raise PolicyError(
            f"{parts.count} parts of the map share no border, and how many people live "
            "in each would be published exactly",
            received=f"{names[in_smallest]!r} among them",
            way_out=nearest_first
            + 'islands="public" says that these numbers are no secret',
        )
    return policy
