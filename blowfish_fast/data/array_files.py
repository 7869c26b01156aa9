"""Small tables from files: arrays of numpy, or numbers with commas between.

No message quotes what the caller calls `private`.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast.data.csv_files import is_number
from blowfish_fast.errors import InputError


def numbers_from_file(path: Path, meaning: str, *, private: bool = False) -> FloatArray:
    """Return the rows of numbers, which messages call by their `meaning`."""
    if path.suffix.lower() == ".npy":
        array = loaded_array(path, meaning)
    else:
        array = _rows(path, meaning, private)
    if array.size == 0:
        raise InputError(f"{path} holds no {meaning}; it is empty")
    return array.astype(np.float64)


def lines_of(path: Path, meaning: str) -> list[str]:
    """Return the lines of a text file, without blank ones."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise InputError(
            f"{path} cannot be read ({why}); expected there: {meaning}"
        ) from None
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if not found:
        raise InputError(f"{path} holds no {meaning}; it is empty")
    return found


def rows_of(path: Path, meaning: str) -> list[list[str]]:
    """Return the fields of a small public CSV file, without spaces around them."""
    lines = lines_of(path, meaning)
    # As spreadsheets write it: a comma in a name needs quotes, a semicolon none.
    delimiter = next((one for one in ",;\t" if one in lines[0]), ",")
    return [
        [one.strip() for one in row] for row in csv.reader(lines, delimiter=delimiter)
    ]


def loaded_array(path: Path, meaning: str, *, mapped: bool = False) -> AnyArray:
    """Return the numbers of a .npy file; pickled ones are refused, never run."""
    try:
        array: AnyArray = np.load(
            path, mmap_mode="r" if mapped else None, allow_pickle=False
        )
    except (OSError, ValueError, EOFError, MemoryError, OverflowError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else None
        raise InputError(
            f"{path} cannot be read ({why or 'no plain array of numbers'}); expected "
            f"there: {meaning}, as numpy.save writes them"
        ) from None
    if not isinstance(array, np.ndarray):
        raise InputError(
            f"{path} holds several arrays; expected there: {meaning}, one array, as "
            "numpy.save writes it"
        )
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{path} must hold numbers ({meaning}); its dtype is {array.dtype}"
        )
    return array


def _rows(path: Path, meaning: str, private: bool) -> AnyArray:
    rows = rows_of(path, meaning)
    if not all(is_number(one) for one in rows[0]):
        rows = rows[1:]
    for at, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]) or not all(is_number(one) for one in row):
            found = "is not like that" if private else f"is {','.join(row)!r}"
            raise InputError(
                f"every line of {path} must hold the same number of numbers "
                f"({meaning}); row {at} {found}"
            )
    return np.array([[float(one) for one in row] for row in rows])
