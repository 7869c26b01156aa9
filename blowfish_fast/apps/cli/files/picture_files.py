"""Pictures of commands: drawn without a screen, and written to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blowfish_fast._support.optional import require
from blowfish_fast.errors import InputError

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
    require("matplotlib", extra="plot", purpose="A picture").use("Agg")


def write_picture(draw: Callable[[], Axes], out: Path) -> str:
    """Draw, write, and return the name of the file."""
    check_picture(out)
    from matplotlib import pyplot

    figure: Any = draw().figure
    figure.savefig(out, dpi=DOTS)
    pyplot.close(figure)
    return str(out)
