"""Curves as the papers draw them.

|   o--o
| x--x--x
+---------
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from blowfish_fast._support.palette import BARS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def curves(
    axes: Axes,
    series: Mapping[str, Mapping[float, float]],
    *,
    label: str,
    along: str = "epsilon",
    bands: Mapping[str, Mapping[float, tuple[float, float]]] | None = None,
    dashed: Sequence[str] = (),
) -> None:
    """Draw a line per series on a logarithmic scale, with bands where there are any."""
    for number, (name, points) in enumerate(series.items()):
        colour = BARS[number % len(BARS)]
        places = sorted(points)
        axes.plot(
            places,
            [points[place] for place in places],
            marker="o",
            markersize=3,
            linestyle="--" if name in dashed else "-",
            linewidth=1.2,
            color=colour,
            label=name,
        )
        band = (bands or {}).get(name)
        if band:
            axes.fill_between(
                places,
                [band[place][0] for place in places],
                [band[place][1] for place in places],
                color=colour,
                alpha=0.12,
                linewidth=0,
            )
    axes.set_yscale("log")
    axes.set_xlabel(along)
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)


def add_legend(axes: Axes, *, fontsize: float = 7, **options: Any) -> None:
    """Name what was drawn; nothing where nothing was."""
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=fontsize, frameon=False, **options)
