"""Districts with a common border cannot be told apart."""

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
        Cells for these districts, with or without a cell "(outside)", which is then
        joined to every district that has a border to the outside. By default that of
        `Domain.from_polygons`.
    islands : {"refuse", "public"}
        What happens where some districts are not connected with the others, so that
        how many people live there would be published exactly: an error that names one,
        or that is said to be public.
    join : {"nearest", None}
        "nearest" joins parts of the map that share no border at their nearest
        districts, the shortest way first, until the map is in one piece: in which of
        the two somebody lives is then protected by epsilon, as between neighbours.

    Returns
    -------
    Graph
        The policy.

    Raises
    ------
    PolicyError
        If the domain has other cells, or there are islands that may not be public.

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
    stray = attribute.extra_cell(OUTSIDE)
    if stray is not None:
        rim = districts.rim()
        beyond = np.stack([rim, np.full(rim.size, stray)], axis=1)
        pairs = np.concatenate([pairs, beyond])
    policy = Graph(cells, pairs)
    parts = policy.components()
    if parts.count > 1 and islands == "refuse":
        assert parts.labels is not None, "several parts have labels"
        alone = int(np.argmin(np.bincount(parts.labels)[parts.labels]))
        names = (*districts.ids, *attribute.extras)
        raise PolicyError(
            f"{parts.count} parts of the map share no border, and how many people live "
            "in each would be published exactly",
            received=f"{names[alone]!r} among them",
            way_out='join="nearest" joins them at their nearest districts, and '
            'islands="public" says that these numbers are no secret',
        )
    return policy
