"""Where the nodes of a small policy graph go: on a line, a grid or a circle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.predicates import cell_name

from .protocol import PolicyGraph

MOST_ON_A_LINE = 24
MOST_ON_A_GRID = 64
LONGEST_LABEL = 14


class GraphDrawing(NamedTuple):
    """A small graph, ready to be drawn.

    Attributes
    ----------
    form : str
        "line", "grid" or "circle".
    nodes : ndarray of float64, shape (cells, 2)
        Where each cell goes.
    labels : tuple[str, ...]
        A short text for each cell.
    curves : ndarray of float64
        The points of each edge.
    absent : ndarray of float64 or None
        Where "absent" goes, if some cell is joined to it.
    spokes : ndarray of float64
        The edges to "absent".
    """

    form: str
    nodes: FloatArray
    """(cells, 2): where each cell lies, in C order; y grows upwards."""
    labels: tuple[str, ...]
    """What to write at each cell; empty on a grid, whose axes are labelled."""
    curves: FloatArray
    """(edges, 3, 2): start, control point and end of each edge, a parabola."""
    absent: FloatArray | None
    """Where "absent" stands; None where no edge reaches it."""
    spokes: FloatArray
    """(edges, 2, 2): start and end of each edge to "absent"."""


def is_small(domain: Domain) -> bool:
    """Return whether a graph over this domain is drawn cell by cell."""
    most = MOST_ON_A_GRID if domain.ndim == 2 else MOST_ON_A_LINE
    return domain.size <= most


def draw_graph(policy: PolicyGraph) -> GraphDrawing:
    """Place the nodes and edges of a small policy; see `is_small`."""
    domain = policy.domain
    form = "grid" if domain.ndim == 2 and min(domain.shape) > 1 else "circle"
    if domain.ndim == 1 and domain.attributes[0].levels is None:
        form = "line"
    nodes = _nodes(domain, form)
    first, second = np.triu_indices(domain.size, k=1)
    joined = policy._joined(first, second) if first.size else np.full(0, False)
    starts, ends = nodes[first[joined]], nodes[second[joined]]
    curves = np.stack([starts, _controls(starts, ends, form), ends], axis=1)
    labels = () if form == "grid" else _labels(domain)
    if not policy.has_bottom:
        return GraphDrawing(form, nodes, labels, curves, None, np.zeros((0, 2, 2)))
    absent = _absent_place(nodes, form, alone=not joined.any())
    tied = nodes[policy.bottom_cells()]
    spokes = np.stack([tied, np.broadcast_to(absent, tied.shape)], axis=1)
    return GraphDrawing(form, nodes, labels, curves, absent, spokes)


def cell_labels(attribute: Axis, cells: IntArray | None = None) -> list[str]:
    """Return a short text per cell: its level, start, or number.

    Parameters
    ----------
    attribute : Axis
        The attribute.
    cells : ndarray of int64, optional
        Which cells; all by default.

    Returns
    -------
    list[str]
        The texts.
    """
    wanted = range(attribute.size) if cells is None else cells.tolist()
    return [_cell_label(attribute, cell) for cell in wanted]


def _cell_label(attribute: Axis, cell: int) -> str:
    name = cell_name(attribute, cell)
    if isinstance(name, tuple):
        return f"{name[0]:g}" if attribute.unit is None else str(name[0])
    return shorten(str(name))


def shorten(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return a text of limited length, dots at its end if it was cut.

    Parameters
    ----------
    text : str
        The text.
    longest : int, default LONGEST_LABEL
        The most characters.

    Returns
    -------
    str
        The text, on one line.
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 3].rstrip() + "..."


def _nodes(domain: Domain, form: str) -> FloatArray:
    cells = np.arange(domain.size, dtype=np.float64)
    if form == "line":
        return np.column_stack([cells, np.zeros(domain.size)])
    if form == "grid":
        rows, columns = np.divmod(cells, domain.shape[1])
        return np.column_stack([columns, rows])
    turn = np.pi / 2 - 2 * np.pi * cells / domain.size
    return np.column_stack([np.cos(turn), np.sin(turn)])


def _controls(starts: FloatArray, ends: FloatArray, form: str) -> FloatArray:
    """Return control points: edges over other nodes bend, the rest are straight."""
    middle: FloatArray = (starts + ends) / 2
    across = ends - starts
    if form == "line":
        # A parabola rises to half its control point: arcs as high as half their span.
        lift = np.abs(across[:, 0])
        middle[:, 1] += np.where(lift > 1, lift, 0.0)
    elif form == "grid":
        # On a grid an edge passes over a node where both steps share a divisor.
        steps = np.rint(across).astype(np.int64)
        hidden = np.gcd(np.abs(steps[:, 0]), np.abs(steps[:, 1])) > 1
        aside = np.column_stack([-across[:, 1], across[:, 0]])
        length = np.maximum(np.hypot(aside[:, 0], aside[:, 1]), 1.0)[:, None]
        middle += np.where(hidden[:, None], 0.45 * aside / np.sqrt(length), 0.0)
    return middle


def _absent_place(nodes: FloatArray, form: str, *, alone: bool) -> FloatArray:
    low, high = nodes.min(axis=0), nodes.max(axis=0)
    if form == "line":
        return np.array([(low[0] + high[0]) / 2, -max(1.0, (high[0] - low[0]) / 5)])
    if form == "grid":
        return np.array([high[0] + 1.5, (low[1] + high[1]) / 2])
    return np.zeros(2) if alone and len(nodes) > 1 else np.array([1.8, 0.0])


def _labels(domain: Domain) -> tuple[str, ...]:
    if domain.ndim == 1:
        return tuple(cell_labels(domain.attributes[0]))
    each = [cell_labels(attribute) for attribute in domain.attributes]
    places = np.unravel_index(np.arange(domain.size), domain.shape)
    return tuple(
        shorten(", ".join(each[axis][at] for axis, at in enumerate(place)))
        for place in zip(*(along.tolist() for along in places), strict=True)
    )
