"""Bars as all experiments draw them.

|      #
|  #   # o
|  # o # o
+--A---B---
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .experiment import Value
from .row_means import Key

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#999999",
    "#8C6D1F",
    "#000000",
    "#7A4EAB",
)
"""Colours that people who see few of them can tell apart."""


def grouped_bars(
    axes: Axes,
    found: Mapping[Key, float],
    places: Sequence[Value],
    methods: Sequence[Value],
    *,
    at: Key = (),
    label: str = "mean error",
) -> None:
    """Draw bars side by side on a logarithmic scale; a missing number has no bar.

    Numbers are found by `at`, place and method.
    """
    width = 0.8 / max(len(methods), 1)
    for number, method in enumerate(methods):
        heights = [found.get((*at, place, method)) for place in places]
        shown = [(i, h) for i, h in enumerate(heights) if h is not None and h > 0]
        axes.bar(
            [i + (number - (len(methods) - 1) / 2) * width for i, _ in shown],
            [h for _, h in shown],
            width,
            label=str(method),
            color=COLOURS[number % len(COLOURS)],
        )
    axes.set_yscale("log")
    names = [str(place) for place in places]
    axes.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=8)
    axes.set_ylabel(label)
    axes.grid(axis="y", alpha=0.3)


def legend_above(figure: FigureBase, axes: Axes, *, columns: int = 5) -> None:
    """Name, above all panels, what is drawn in each of them."""
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        figure.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=min(columns, len(labels)),
            fontsize=8,
            frameon=False,
        )
