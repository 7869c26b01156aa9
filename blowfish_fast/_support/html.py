"""What a notebook shows of an object: a small table, a bar, a drawing. No scripts.

Colours suit light and dark pages. All texts are escaped: names of attributes come from
other people's tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from . import palette
from .typing import FloatArray

FRAME = "rgba(128,128,128,.35)"
CELL = (
    f"text-align:left;vertical-align:top;padding:2px 10px;border-top:1px solid {FRAME}"
)
MOST_POINTS = 96
MOST_SQUARES = 16
LONGEST_TEXT = 300


def panel(
    title: str,
    rows: Iterable[tuple[str, Any]] = (),
    *,
    sentence: str = "",
    drawing: str = "",
    warning: str = "",
) -> str:
    """Return heading, sentence, drawing (HTML of this module) and named values.

    Parameters
    ----------
    title : str
        Heading of the panel.
    rows : iterable of (str, object)
        Names and values of the table at its end.
    sentence : str
        A sentence below the heading.
    drawing : str
        HTML that a function of this module made; it is not escaped.
    warning : str
        What the reader must know first; it stands behind an orange bar.

    Returns
    -------
    str
        The panel, in HTML.
    """
    parts = [f'<div style="margin-bottom:2px"><b>{text(title)}</b></div>']
    if warning:
        parts.append(
            f'<div style="border-left:4px solid {palette.ORANGE};padding-left:8px;'
            f'margin:2px 0">{text(warning)}</div>'
        )
    if sentence:
        parts.append(
            f'<div style="max-width:46em;margin:2px 0">{text(sentence, 2000)}</div>'
        )
    if drawing:
        parts.append(f'<div style="margin:4px 0">{drawing}</div>')
    listed = list(rows)
    if listed:
        parts.append(table((), listed))
    return f'<div style="line-height:1.35">{"".join(parts)}</div>'


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table; every cell is escaped here.

    Parameters
    ----------
    heads : sequence of str
        Heads of the columns; empty for none.
    rows : iterable of sequence
        Values of the cells, row by row.

    Returns
    -------
    str
        The table, in HTML.
    """
    lines = []
    if heads:
        cells = "".join(
            f'<th style="{CELL};font-weight:600">{text(head)}</th>' for head in heads
        )
        lines.append(f"<tr>{cells}</tr>")
    for row in rows:
        cells = "".join(f'<td style="{CELL}">{text(value)}</td>' for value in row)
        lines.append(f"<tr>{cells}</tr>")
    return (
        '<table style="border-collapse:collapse;margin:2px 0;font-size:90%">'
        f"{''.join(lines)}</table>"
    )


def text(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Return a value as escaped text, cut where it is very long.

    Parameters
    ----------
    value : object
        What is shown.
    longest : int
        Characters that are shown at most; what is cut ends with dots.

    Returns
    -------
    str
        The escaped text.
    """
    plain = str(value)
    if len(plain) > longest:
        plain = plain[: longest - 3] + "..."
    return escape(plain)


def spent_bar(spent: float, total: float) -> str:
    """Return a bar, filled as far as the budget is spent.

    Parameters
    ----------
    spent : float
        What is spent.
    total : float
        The whole budget.

    Returns
    -------
    str
        The bar, in SVG.
    """
    share = min(max(spent / total, 0.0), 1.0) if total > 0 else 0.0
    words = f"{share:.0%} spent"
    filled = _rectangle(0, 0, 240 * share, 12, palette.VERMILLION)
    return _svg(
        242,
        14,
        f'{filled}<rect x=".5" y=".5" width="240" height="12" fill="none" '
        'stroke="currentColor" stroke-opacity=".6"/>',
        words,
    )


def sparkline(values: FloatArray) -> str:
    """Return a line through at most 96 means of neighbouring values. O(n)."""
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    cuts = np.linspace(0, flat.size, min(flat.size, MOST_POINTS) + 1).astype(np.int64)
    means = np.add.reduceat(flat, cuts[:-1]) / np.diff(cuts)
    low, high = min(float(means.min()), 0.0), max(float(means.max()), 0.0)
    height = 34 - 30 * (means - low) / max(high - low, 1e-300)
    across = np.linspace(2, 238, means.size + 1)
    steps = "".join(
        f"L{left:.1f} {up:.1f}H{right:.1f}"
        for left, right, up in zip(across[:-1], across[1:], height, strict=True)
    )
    zero = 34 + 30 * low / max(high - low, 1e-300)
    line = (
        f'<path d="M2 {zero:.1f}H238" stroke="currentColor" stroke-opacity=".35"/>'
        f'<path d="M2 {height[0]:.1f}{steps}" fill="none" stroke="{palette.SKY}" '
        'stroke-width="1.5"/>'
    )
    return _svg(240, 38, line, "the estimate along its cells")


def tiny_map(values: FloatArray) -> str:
    """Return at most 16 x 16 squares, by the logarithm of their mean. O(n)."""
    grid = np.maximum(np.asarray(values, dtype=np.float64), 0.0)
    for axis in (0, 1):
        length = grid.shape[axis]
        cuts = np.linspace(0, length, min(length, MOST_SQUARES) + 1).astype(np.int64)
        grid = np.add.reduceat(grid, cuts[:-1], axis=axis)
        widths = np.diff(cuts)
        grid = grid / (widths[:, None] if axis == 0 else widths)
    shade = np.log1p(grid)
    shade = shade / max(float(shade.max()), 1e-300)
    rows, columns = shade.shape
    squares = "".join(
        f'<rect x="{9 * across}" y="{9 * (rows - 1 - up)}" width="9" height="9" '
        f'fill="{palette.SKY}" fill-opacity="{shade[up, across]:.2f}"/>'
        for up in range(rows)
        for across in range(columns)
    )
    frame = (
        f'<rect x=".5" y=".5" width="{9 * columns - 1}" height="{9 * rows - 1}" '
        'fill="none" stroke="currentColor" stroke-opacity=".5"/>'
    )
    return _svg(9 * columns, 9 * rows, squares + frame, "the estimate as a map")


def graph(
    nodes: FloatArray,
    curves: FloatArray,
    labels: Sequence[str],
    absent: FloatArray | None,
    spokes: FloatArray,
) -> str:
    """Return a drawing of a small policy; arguments as in ``policy_layout.Layout``.

    Parameters
    ----------
    nodes : ndarray of shape (n, 2)
        Places of the values.
    curves : ndarray of shape (m, 3, 2)
        Beginning, control point and end of each edge.
    labels : sequence of str
        Names of the values; empty for none.
    absent : ndarray of shape (2,), optional
        Place of the value for absent records.
    spokes : ndarray of shape (k, 2, 2)
        Beginning and end of each edge to the absent value.

    Returns
    -------
    str
        The drawing, in SVG.
    """
    tops = 0.25 * curves[:, 0] + 0.5 * curves[:, 1] + 0.25 * curves[:, 2]
    points = [nodes, tops] + ([] if absent is None else [absent[None]])
    every = np.concatenate(points)
    low, high = every.min(axis=0), every.max(axis=0)
    # Room for labels beside a circle; a line has them below.
    around = bool(labels) and float(np.ptp(nodes[:, 1])) > 0
    wide = 78.0 if around else 22.0
    span = np.maximum(high - low, 1e-9)
    scale = min(440.0 / span[0], 170.0 / span[1], 85.0 if around else 60.0)
    shift = np.array([wide, 14.0])
    size = span * scale + 2 * shift + np.array([0.0, 14.0])

    def placed(at: FloatArray) -> FloatArray:
        pixels: FloatArray = (at - low) * scale + shift
        pixels[..., 1] = size[1] - 14.0 - pixels[..., 1]
        return pixels

    parts = [
        f'<path d="M{a[0]:.1f} {a[1]:.1f}Q{b[0]:.1f} {b[1]:.1f} {c[0]:.1f} {c[1]:.1f}" '
        f'fill="none" stroke="{palette.SKY}" stroke-width="1.3" stroke-opacity=".85"/>'
        for a, b, c in placed(curves.copy())
    ]
    parts += [
        f'<path d="M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" stroke="'
        f'{palette.VERMILLION}" stroke-dasharray="3 2" stroke-opacity=".8"/>'
        for a, b in placed(spokes.copy())
    ]
    if absent is not None:
        x, y = placed(absent[None].copy())[0]
        parts.append(_rectangle(x - 4, y - 4, 8, 8, palette.VERMILLION))
        parts.append(_label(x, y + 14, "absent"))
    places = placed(nodes.copy())
    middle = places.mean(axis=0)
    for (x, y), label in zip(places, labels or [""] * len(places), strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="currentColor"/>')
        if not label:
            continue
        aside = (x - middle[0]) if around else 0.0
        if abs(aside) > 12:
            parts.append(_label(x + np.sign(aside) * 8, y + 3, label, aside))
        else:
            above = around and y < middle[1]
            parts.append(_label(x, y - 7 if above else y + 14, label))
    return _svg(float(size[0]), float(size[1]), "".join(parts), "the policy graph")


def _label(x: float, y: float, words: str, aside: float = 0.0) -> str:
    anchor = "middle" if aside == 0 else ("start" if aside > 0 else "end")
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="9" text-anchor="{anchor}" '
        f'fill="currentColor">{text(words, 14)}</text>'
    )


def _rectangle(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{colour}"/>'
    )


def _svg(width: float, height: float, content: str, words: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
        f"<title>{text(words)}</title>{content}</svg>"
    )
