"""A series in one file: its rows and how records were counted, without the ledger.

Whoever gets the file reads totals, windows and epochs off it, as the ledger's keeper
does. It holds public rows only, and the promise that was made with them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np

from blowfish_fast._support.version import __version__
from blowfish_fast.errors import LedgerError, ReleaseFileError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.release.file import (
    FORMAT,
    Release,
    read_archive,
    read_bytes,
    write_archive,
    write_bytes,
)

from .blocks import EpochBlocks
from .epochs import FORMS, read_epoch
from .readings import SINGLE, Promise, SeriesReadings
from .weights import Weights

MEMBER = "series.json"


class SavedSeries(SeriesReadings):
    """The stored releases of a series, to be read without its ledger.

    Made by ``Series.save`` and read by `load`.

    Parameters
    ----------
    rows : mapping from str to Release
        The rows of the epochs, by name.
    blocks : mapping from str to Release
        The rows of blocks of epochs, by the name of the last epoch of each.
    column : str
        The column that said when a record arrived.
    every : {"day", "week", "month", "quarter", "year"}
        The length of the epochs.
    scheme : Weights or EpochBlocks
        How records were counted.
    frozen : bool
        Whether records of closed epochs never changed, by the curator's word.
    promise : Promise
        What the whole series costs whoever it protects, and who that is.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain(3, names=["age"])
    >>> policy = bf.policies.AddRemove(ages)
    >>> ledger = bf.Ledger(rho=1, policy=policy)
    >>> weeks = bf.Series(ledger, column="received", every="week", totals=True)
    >>> gaussian = bf.Gaussian(policy, bf.workloads.Identity(ages), rho="0.5")
    >>> row = weeks.release("2026-W45", gaussian, [[4, 9, 2]])
    >>> row = weeks.release("2026-W46", gaussian, [[4, 9, 2], [3, 5, 1]])
    >>> series = bf.series.SavedSeries.from_bytes(weeks.saved().to_bytes())
    >>> series
    SavedSeries(2026-W45 to 2026-W46, Domain(age: 3 cells), rho = 0.5)
    >>> series.total(upto="2026-W46").epochs
    ('2026-W45', '2026-W46')
    >>> series.history(bf.workloads.Total(ages)).bounds.shape
    (2, 1, 2)
    """

    def __init__(
        self,
        rows: Mapping[str, Release],
        blocks: Mapping[str, Release],
        *,
        column: str,
        every: str,
        scheme: Weights | EpochBlocks,
        frozen: bool,
        promise: Promise,
    ) -> None:
        self.rows, self.blocks = dict(rows), dict(blocks)
        self.column, self.every = column, every
        self.scheme, self.frozen = scheme, frozen
        self.promise = promise

    @property
    def latest(self) -> str:
        """The last epoch that was released."""
        return self.epochs()[-1]

    @property
    def private(self) -> bool:
        """Whether the noise of every row was secure."""
        return all(row.private for row in self.rows.values())

    def epochs(self) -> list[str]:
        """Return the epochs that were released, in their order."""
        return sorted(self.rows, key=lambda name: read_epoch(self.every, name).start)

    def _row(self, epoch: str, *, of_block: bool = False) -> Release:
        return (self.blocks if of_block else self.rows)[epoch]

    def _promise(self) -> Promise:
        return self.promise

    def to_bytes(self) -> bytes:
        """Return the series as the bytes of its file."""
        scheme = self.scheme
        counted: dict[str, Any] = (
            {"block": scheme.size}
            if isinstance(scheme, EpochBlocks)
            else {
                "weights": list(scheme.values),
                "exponent": None if scheme.exponent is None else str(scheme.exponent),
            }
        )
        content = {
            "format": FORMAT,
            "version": __version__,
            "column": self.column,
            "every": self.every,
            "frozen": self.frozen,
            "budget": self.promise.budget.to_dict(),
            "note": self.promise.note,
            **counted,
            "rows": {name: _as_array(row) for name, row in self.rows.items()},
            "blocks": {name: _as_array(row) for name, row in self.blocks.items()},
        }
        return write_archive(MEMBER, content)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read a series from `to_bytes`."""
        return read_archive(content, MEMBER, cls._rebuilt)

    @classmethod
    def _rebuilt(cls, content: dict[str, Any]) -> Self:
        every, column, note = content["every"], content["column"], content["note"]
        if every not in FORMS or not isinstance(column, str):
            raise ReleaseFileError("the file does not say which epochs it holds")
        if not isinstance(note, str) or not isinstance(content["frozen"], bool):
            raise ReleaseFileError("the file does not say what is promised")
        rows = _read_rows(content["rows"])
        blocks = _read_rows(content["blocks"])
        if not rows:
            raise ReleaseFileError("a series holds at least one epoch")
        series = cls(
            rows,
            blocks,
            column=column,
            every=every,
            scheme=_read_scheme(content),
            frozen=content["frozen"],
            promise=Promise(Budget.from_dict(content["budget"]), note),
        )
        series._check_rows()
        return series

    def _check_rows(self) -> None:
        """Refuse rows that do not belong to each other, or that leave a gap."""
        epochs = self.epochs()
        ends = epochs[:0]
        if isinstance(self.scheme, EpochBlocks):
            ends = epochs[self.scheme.size - 1 :: self.scheme.size]
        elif self.scheme != SINGLE:
            weights = list(self.scheme.values)
            for name, row in self.rows.items():
                epoch_and_weights = row.details.get("epoch"), row.details.get("weights")
                if epoch_and_weights != (name, weights):
                    raise ReleaseFileError(f"the row of {name} has other weights")
        if sorted(ends) != sorted(self.blocks):
            raise ReleaseFileError("blocks of epochs are missing, or too many")
        try:
            self._rows(self._names_upto(epochs[-1]))
        except LedgerError as problem:
            raise ReleaseFileError(str(problem)) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file, a zip of JSON and arrays."""
        write_bytes(self.to_bytes(), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a series that ``Series.save`` wrote."""
        content = read_bytes(path)
        try:
            return cls.from_bytes(content)
        except ReleaseFileError as problem:
            raise ReleaseFileError(f"{path}: {problem}") from None

    @staticmethod
    def is_file(content: bytes) -> bool:
        """Return whether bytes begin like the file of a series."""
        return MEMBER.encode() in content[:64]

    def __repr__(self) -> str:
        names = self.epochs()
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        domain = self.rows[names[0]].domain
        return f"SavedSeries({span}, {domain!r}, {self.promise.budget.in_short()})"


def _as_array(row: Release) -> Any:
    return np.frombuffer(row.to_bytes(), dtype=np.uint8)


def _read_rows(stored: Mapping[str, Any]) -> dict[str, Release]:
    return {name: Release.from_bytes(array.tobytes()) for name, array in stored.items()}


def _read_scheme(content: Mapping[str, Any]) -> Weights | EpochBlocks:
    """Read how records were counted; weights by exponent are compared with it."""
    if "block" in content:
        return EpochBlocks(content["block"])
    values: Sequence[int] = content["weights"]
    exponent = content["exponent"]
    if exponent is None:
        return Weights(tuple(values))
    return Weights(tuple(values), Fraction(exponent))
