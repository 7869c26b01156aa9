"""Data sets by name: from a folder of ``1d/*.npy`` and ``2d/*.npy``, or generated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast._support.validation import as_counts
from blowfish_fast.advice.typical_error import DENSITIES, reference_shapes
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import CountsError, InputError

GENERATED = "generated"
GENERATED_RECORDS = 100_000
SIDES = {"1d": (4096,), "2d": (256, 256)}
"""Cells along each axis of the sets that are generated."""


class DataSet(NamedTuple):
    """Counts and where they come from; `origin` is empty for the set itself."""

    name: str
    counts: IntArray
    origin: str

    @property
    def label(self) -> str:
        """The name, with the origin of anything that is not the set itself."""
        return f"{self.name} ({self.origin})" if self.origin else self.name


def data_set(need: str, data: Path | None, max_cells: int | None = None) -> DataSet:
    """Return the set of a name such as ``1d/steps``, at most so many cells per axis."""
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
    found = [
        f"{kind}/{path.stem}"
        for kind in SIDES
        for path in sorted((data / kind).glob("*.npy"))
    ]
    if not found:
        raise InputError(
            f"the data folder {data} holds no 1d/*.npy and no 2d/*.npy; save counts "
            "there with numpy.save, or leave --data out for generated data"
        )
    return found


def sum_cells(counts: IntArray, shape: tuple[int, ...]) -> IntArray:
    """Sum neighbours so that at most `shape` cells remain; nothing is made finer."""
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
        read_set(need, data)


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


def read_set(need: str, data: Path) -> IntArray:
    """Return the counts of a set in a folder; refused where they are none."""
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
