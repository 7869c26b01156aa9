"""Data sets by name: from a folder of ``1d/*.npy`` and ``2d/*.npy``, or generated.

    folder/1d/adult.npy      whole numbers, one axis
    folder/2d/twitter.npy    whole numbers, two axes

Without a folder every set is a generated stand-in (``stand_ins``), and its label says
so wherever it is shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast._support.validation import as_counts
from blowfish_fast.errors import CountsError, InputError

from .stand_ins import LINES, MAPS, stand_in_line, stand_in_map

LINE_SETS = (
    "nettrace",
    "adult",
    "medcost",
    "searchlogs",
    "income",
    "patent",
    "hepth",
)
"""The seven sets of the DAWA paper, easy ones first, as in its figures."""

LINE_CELLS = 4096
MAP_SIDE = 256
MANY = 2**62
"""More cells than any array has: nothing is summed."""
GENERATED = "generated"
STAND_INS = {"1d": LINES, "2d": MAPS}


class DataSet(NamedTuple):
    """Counts and where they come from; `origin` is empty for the set itself."""

    name: str
    counts: IntArray
    origin: str

    @property
    def label(self) -> str:
        """The name, with the origin of anything that is not the set itself."""
        return f"{self.name} ({self.origin})" if self.origin else self.name


def line_set(name: str, data: Path | None, cells: int = LINE_CELLS) -> DataSet:
    """Return a one-dimensional set, neighbours summed where fewer `cells` are asked."""
    if data is None:
        return DataSet(name, stand_in_line(name, cells), GENERATED)
    counts = _read(f"1d/{name}", data)
    return DataSet(name, sum_neighbours(counts, cells), "")


def map_set(
    name: str, data: Path | None, shape: tuple[int, int] = (MAP_SIDE, MAP_SIDE)
) -> DataSet:
    """Return a two-dimensional set, blocks summed where a smaller `shape` is asked."""
    if data is None:
        return DataSet(name, stand_in_map(name, *shape), GENERATED)
    counts = _read(f"2d/{name}", data)
    return DataSet(name, sum_blocks(counts, shape), "")


def data_set(need: str, data: Path | None, max_cells: int | None = None) -> DataSet:
    """Return the set of a name such as ``1d/adult``, at most so many cells per axis.

    Examples
    --------
    >>> data_set("2d/twitter", None, 16).counts.shape
    (16, 16)
    """
    folder, _, name = need.partition("/")
    if data is None and name not in STAND_INS.get(folder, {}):
        raise InputError(
            f"there is no generated data set {need!r}; generated are "
            f"{', '.join(sets_in(None))}"
        )
    found: DataSet
    if folder == "1d":
        found = line_set(
            name, data, max_cells or (LINE_CELLS if data is None else MANY)
        )
    else:
        side = max_cells or (MAP_SIDE if data is None else MANY)
        found = map_set(name, data, (side, side))
    return found._replace(name=need)


def sets_in(data: Path | None) -> list[str]:
    """Return the sets of a folder, or the generated ones.

    Examples
    --------
    >>> sets_in(None)[:2]
    ['1d/adult', '1d/hepth']
    """
    if data is None:
        return [f"{kind}/{name}" for kind in STAND_INS for name in STAND_INS[kind]]
    found = [
        f"{kind}/{path.stem}"
        for kind in STAND_INS
        for path in sorted((data / kind).glob("*.npy"))
    ]
    if not found:
        raise InputError(
            f"the data folder {data} holds no 1d/*.npy and no 2d/*.npy; save counts "
            "there with numpy.save, or leave --data out for generated data"
        )
    return found


def sum_neighbours(counts: IntArray, cells: int) -> IntArray:
    """Sum neighbours so that at most `cells` remain; nothing is made finer."""
    if counts.size <= cells:
        return counts
    starts = np.linspace(0, counts.size, cells + 1).astype(np.int64)[:-1]
    summed: IntArray = np.add.reduceat(counts, starts)
    return summed


def sum_blocks(counts: IntArray, shape: tuple[int, int]) -> IntArray:
    """Sum blocks so that at most `shape` cells remain."""
    for axis, cells in enumerate(shape):
        if counts.shape[axis] > cells:
            starts = np.linspace(0, counts.shape[axis], cells + 1).astype(np.int64)
            counts = np.add.reduceat(counts, starts[:-1], axis=axis)
    return counts


def check_data(data: Path | None, needs: Iterable[str]) -> None:
    """Refuse a folder that is not there or holds no such sets, before any work."""
    if data is None:
        return
    if not data.is_dir():
        raise InputError(
            f"the data folder {data} does not exist; give one that holds 1d/*.npy and "
            "2d/*.npy, or leave --data out for generated data"
        )
    missing = [need for need in needs if not _file(need, data).is_file()]
    if missing:
        raise InputError(
            f"the data folder {data} lacks {', '.join(f'{one}.npy' for one in missing)}"
            "; add them, or leave --data out for generated data"
        )
    for need in needs:
        _read(need, data)


def fingerprint(data: Path | None, needs: Iterable[str]) -> str:
    """Return what tells one version of the data from another."""
    if data is None:
        return "generated"
    digest = hashlib.sha256()
    for need in sorted(needs):
        digest.update(need.encode() + _file(need, data).read_bytes())
    return digest.hexdigest()[:16]


def _file(need: str, data: Path) -> Path:
    return data / f"{need}.npy"


def _read(need: str, data: Path) -> IntArray:
    path = _file(need, data)
    axes = 1 if need.startswith("1d") else 2
    try:
        array: AnyArray = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as problem:
        raise InputError(
            f"{path} is not a readable .npy file of numbers ({problem}); save counts "
            "with numpy.save"
        ) from None
    if not isinstance(array, np.ndarray) or array.ndim != axes or array.size < 2:
        raise InputError(
            f"{path} must hold counts with {axes} axes and at least 2 cells; received "
            f"shape {np.shape(array)}"
        )
    try:
        return as_counts(array, array.shape)
    except CountsError as problem:
        raise InputError(f"{path} does not hold counts: {problem}") from None
