"""Pictures of commands: drawn without a screen, and written to a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from blowfish_fast._support.optional import check_installed
from blowfish_fast.errors import InputError, IntervalError
from blowfish_fast.release.release import Release
from blowfish_fast.release.tables.tables_release import TablesRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".png", ".svg", ".pdf")
DOTS = 150


def check_picture(out: Path) -> None:
    """Refuse, before any work is done, what could not be drawn or written."""
    if out.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"a picture is written as {', '.join(SUFFIXES)}; received {out.name!r}"
        )
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent} to write {out.name} to")
    check_installed("matplotlib", extra="plot", purpose="A picture")


def write_picture(draw: Callable[[], Axes], out: Path | BinaryIO) -> str:
    """Draw, write, and return the name of the file; into a stream as SVG."""
    if isinstance(out, Path):
        check_picture(out)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with warnings.catch_warnings():
        # About ticks and fonts: nothing that a curator could act on.
        warnings.simplefilter("ignore")
        figure: Any = draw().figure
        kind = None if isinstance(out, Path) else "svg"
        figure.savefig(out, dpi=DOTS, format=kind)
    pyplot.close(figure)
    return str(out)


def draw_release(release: Release, path: Path, confidence: float) -> None:
    """Draw a release to a file; see `release_axes`."""
    write_picture(lambda: release_axes(release, confidence), path)


def release_axes(release: Release, confidence: float) -> Axes:
    """Draw one or two columns, or the errors of many tables; intervals where known."""
    from blowfish_fast import plotting

    if isinstance(release, TablesRelease):
        return plotting.table_errors(release.errors())
    if release.domain.ndim == 2:
        return plotting.grid_map(release)
    try:
        return plotting.histogram(release, confidence=confidence)
    except IntervalError:
        return plotting.histogram(replace(release, interval_scope="nothing"))
