"""Data sets by name: counts in ``.npy`` and ``.csv`` files of a folder, or generated.

A CSV holds one count per line, or the rows of a map.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_counts
from blowfish_fast.advice.typical_error import DENSITIES, reference_shapes
from blowfish_fast.data.csv_files import is_number
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.frames import loaded_array, numbers_from_file, rows_of
from blowfish_fast.errors import CountsError, InputError

GENERATED = "generated"
GENERATED_RECORDS = 100_000
SIDES = {"1d": (4096,), "2d": (256, 256)}
"""Cells along each axis of the sets that are generated."""
COUNTS = "counts, one per line, or the rows of a map"


class DataSet(NamedTuple):
    """Counts and where they come from.

    Attributes
    ----------
    name : str
        The name of the set.
    counts : ndarray of int64
        The counts.
    origin : str
        Where they come from; empty for the set itself.
    """

    name: str
    counts: IntArray
    origin: str

    @property
    def label(self) -> str:
        """The name, with the origin of anything that is not the set itself."""
        return f"{self.name} ({self.origin})" if self.origin else self.name


def data_set(need: str, data: Path | None, max_cells: int | None = None) -> DataSet:
    """Return the set of a name such as ``1d/steps``.

    Parameters
    ----------
    need : str
        The name.
    data : Path or None
        The folder; None for generated sets.
    max_cells : int, optional
        At most so many cells per axis.

    Returns
    -------
    DataSet
        The set.

    Raises
    ------
    InputError
        If there is no such set.
    """
    folder, _, name = need.partition("/")
    sides = SIDES.get(folder, (0,))
    if data is not None:
        counts = read_set(need, data)
        shape = (max_cells,) * counts.ndim if max_cells else counts.shape
        return DataSet(need, sum_cells(counts, shape), "")
    if need not in sets_in(None):
        raise InputError(
            f"there is no generated data set {need!r}; generated are "
            f"{', '.join(sets_in(None))}"
        )
    domain = Domain(tuple(min(max_cells or side, side) for side in sides))
    return DataSet(need, reference_shapes(domain, GENERATED_RECORDS)[name], GENERATED)


def sets_in(data: Path | None) -> list[str]:
    """Return the sets of a folder, or the generated ones."""
    if data is None:
        return [f"{kind}/{name}" for kind in SIDES for name in DENSITIES]
    paths = [path for kind in ("", *SIDES) for path in sorted((data / kind).glob("*"))]
    files = [
        (path.with_suffix("") if path.suffix == ".npy" else path).relative_to(data)
        for path in paths
        if path.suffix in (".npy", ".csv")
    ]
    if not files:
        raise InputError(
            "a data folder holds counts, as .npy or .csv, in itself or in its folders "
            "1d and 2d",
            received=f"{data}, which holds none",
            way_out="Save counts there, or leave --data out for generated data",
        )
    return [file.as_posix() for file in files]


def sum_cells(counts: IntArray, shape: tuple[int, ...]) -> IntArray:
    """Sum neighbours so that at most `shape` cells remain; nothing is made finer.

    Parameters
    ----------
    counts : ndarray of int64
        The counts.
    shape : tuple[int, ...]
        The most cells of each axis.

    Returns
    -------
    ndarray of int64
        The sums.
    """
    for axis, cells in enumerate(shape):
        if counts.shape[axis] > cells:
            starts = np.linspace(0, counts.shape[axis], cells + 1).astype(np.int64)
            counts = np.add.reduceat(counts, starts[:-1], axis=axis)
    return counts


def check_data(data: Path | None, needs: Iterable[str]) -> None:
    """Refuse a folder that is not there or holds no such sets, before any work.

    Parameters
    ----------
    data : Path or None
        The folder; None for generated sets.
    needs : Iterable[str]
        The names of the sets.

    Raises
    ------
    InputError
        If the folder or a set is missing.
    """
    if data is None:
        return
    if not data.is_dir():
        raise InputError(
            f"the data folder {data} does not exist; give one that holds counts as "
            ".npy or .csv, or leave --data out for generated data"
        )
    files = [_file(need, data) for need in needs]
    missing = [str(file.relative_to(data)) for file in files if not file.is_file()]
    if missing:
        raise InputError(
            f"the data folder {data} lacks {', '.join(missing)}; add them, or leave "
            "--data out for generated data"
        )
    for need in needs:
        read_set(need, data)


def fingerprint(data: Path | None, needs: Iterable[str]) -> str:
    """Return what tells one version of the data from another.

    Parameters
    ----------
    data : Path or None
        The folder; None for generated sets.
    needs : Iterable[str]
        The names of the sets.

    Returns
    -------
    str
        The fingerprint.
    """
    if data is None:
        return "generated"
    digest = hashlib.sha256()
    for need in sorted(needs):
        digest.update(need.encode() + _file(need, data).read_bytes())
    return digest.hexdigest()[:16]


def _file(need: str, data: Path) -> Path:
    return data / (need if need.endswith((".csv", ".npy")) else f"{need}.npy")


def read_set(need: str, data: Path) -> IntArray:
    """Return the counts of a set in a folder; refused where they are none.

    Parameters
    ----------
    need : str
        The name of the set.
    data : Path
        The folder.

    Returns
    -------
    ndarray of int64
        The counts.

    Raises
    ------
    InputError
        If the file holds something else.
    """
    path = _file(need, data)
    if path.suffix == ".npy":
        array = loaded_array(path, COUNTS)
    else:
        array = numbers_from_file(path, COUNTS)
        if 1 in array.shape:
            array = array.reshape(-1)
        elif not all(map(is_number, rows_of(path, COUNTS)[0])):
            raise InputError(
                "a CSV of counts has one column, or is a map and has no names",
                received=f"{path}, whose columns have names",
                way_out="Leave only the counts",
            )
    axes = {"1d": (1,), "2d": (2,)}.get(need.partition("/")[0], (1, 2))
    if array.ndim not in axes or array.size < 2:
        several = " or ".join(map(str, axes))
        raise InputError(
            f"{path} must hold counts with {several} axes and at least 2 cells; "
            f"received shape {array.shape}"
        )
    try:
        return as_counts(array, array.shape)
    except CountsError as problem:
        raise InputError(f"{path} does not hold counts: {problem}") from None
