"""The head of a CSV file: its names, what parts its values, and how it is packed.

    sep=;                      for Excel; says what parts values
    age;district               names; spaces around them, and breaks in them, pass
    34;north                   records: nothing of them is read here

Whatever is no text is told apart by its first bytes: workbooks and other zipped files
are refused with a way out, and UTF-16 is read where it is marked.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from blowfish_fast.apps.cli.parsing.nearest_word import nearest
from blowfish_fast.apps.cli.parsing.text_forms import TextForm, is_number
from blowfish_fast.errors import InputError

BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)
"""What a file that is not packed as its name says raises."""
DELIMITERS = (",", ";", "\t", "|")
ZIP, GZIP = b"PK\x03\x04", b"\x1f\x8b"
"""How a zipped file begins, a workbook of Excel among them, and one of gzip."""
MOST_LINES = 50
"""Lines that the names may take."""
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Layout(NamedTuple):
    """How a CSV file is laid out, read off its first lines.

    Attributes
    ----------
    delimiter, encoding : str
        Between values, and of the texts.
    header : list of str
        Names of the columns.
    above : int
        Lines up to and with the names.
    """

    delimiter: str
    encoding: str
    header: list[str]
    above: int


def csv_layout(path: Path, wanted: Sequence[str], form: TextForm) -> Layout:
    """Return the layout of a file with the wanted columns; only its head is read."""
    encoding = _encoding(path, form)
    try:
        with CountedFile(path) as raw, texts_of(raw, encoding) as file:
            line, above = file.readline(2**20), 1
            delimiters: Sequence[str] = DELIMITERS
            if line.lower().startswith("sep=") and len(line.rstrip("\r\n")) == 5:
                # Written by Excel, and for it, above the names.
                delimiters, line, above = [line[4]], file.readline(2**20), 2
            while line.count('"') % 2 and above < MOST_LINES:
                # A name with a line break in it, as spreadsheets write them.
                line, above = line + file.readline(2**20), above + 1
            more = file.read(1) != ""
    except UnicodeError:
        raise InputError(undecoded(path, encoding)) from None
    except BROKEN:
        raise InputError(broken_gzip(path)) from None
    found: list[str] = []
    for delimiter in delimiters:
        names = next(csv.reader([line], delimiter=delimiter), [])
        trimmed = [one if one in wanted else " ".join(one.split()) for one in names]
        if all(one in trimmed for one in wanted):
            if not more:
                raise InputError(
                    f"{path} names its columns and holds no record below them; is it "
                    "the right file? Nothing was charged"
                )
            header = _once_each(trimmed, wanted, path)
            return Layout(delimiter, encoding, header, above)
        found = max(found, trimmed, key=len)
    raise InputError(lacking_column(wanted, found, path))


def _encoding(path: Path, form: TextForm) -> str:
    """Return the encoding that is stated or marked; refuse what is no text."""
    with CountedFile(path) as raw:
        try:
            head = raw.read(4) or b""
        except BROKEN:
            raise InputError(broken_gzip(path)) from None
    if head == ZIP:
        raise InputError(
            f"{path} is a zipped file or an Excel workbook, whatever its name says; "
            "unpack it, or open it in a spreadsheet and save it as CSV (UTF-8)"
        )
    if head[:2] == GZIP:
        raise InputError(f"{path} is packed by gzip; let its name end with .gz")
    if form.encoding is not None and codecs.lookup(form.encoding).name != "utf-8":
        return form.encoding
    return "utf-16" if head[:2] in UTF_16 else "utf-8-sig"


def texts_of(raw: CountedFile, encoding: str) -> io.TextIOWrapper:
    """Return the texts of a file, its lines as they end."""
    return io.TextIOWrapper(io.BufferedReader(raw), encoding=encoding, newline="")


def _once_each(names: list[str], wanted: Sequence[str], path: Path) -> list[str]:
    twice = [one for one in wanted if names.count(one) > 1]
    if twice:
        raise InputError(
            f"{path} has more than one column {twice[0]!r}; rename the others"
        )
    return names


def lacking_column(wanted: Sequence[str], found: Sequence[str], path: Path) -> str:
    """Say which column is not there, and which one may be meant."""
    lacks = next(one for one in wanted if one not in found)
    if not any(found) or any(is_number(one) for one in found):
        # Without names the first line is a person's, and not for a message.
        return (
            f"{path} has no column {lacks!r}: its first line must name the columns, "
            "with commas between, and names none. Write such a line"
        )
    shown = ", ".join(repr(one)[1:-1] for one in list(found)[:20])
    alone = (
        ". Only one was found: the first line must name all columns, with a comma, "
        "semicolon, tab or | between; delete titles above it"
        if len(found) == 1
        else ""
    )
    return (
        f"{path} has no column {lacks!r}{nearest(lacks, found)}; its columns are "
        f"{shown}{alone}"
    )


class CountedFile(io.RawIOBase):
    """A file, unpacked where its name ends with .gz, whose quotes are counted."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.quotes = 0
        self._size = max(path.stat().st_size, 1)
        self._packed = path.open("rb")
        self._plain: Any = self._packed
        if path.suffix.lower() == ".gz":
            self._plain = gzip.GzipFile(fileobj=self._packed)

    @property
    def part(self) -> float:
        """The part of the file that has been read."""
        return min(1.0, self._packed.tell() / self._size)

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes."""
        found = self._plain.read(len(buffer))
        buffer[: len(found)] = found
        self.quotes += found.count(b'"')
        return len(found)

    def close(self) -> None:
        """Close the file on disk, too."""
        self._packed.close()
        super().close()


def undecoded(path: Path, encoding: str) -> str:
    """Say that a file is not written in its encoding."""
    return (
        f"{path} cannot be read as a CSV file in {encoding.removesuffix('-sig')}; save "
        'it as CSV (UTF-8), or state how it was saved: encoding = "cp1252" under '
        "[data], or --encoding cp1252, for older Windows programs. Nothing was charged"
    )


def broken_gzip(path: Path) -> str:
    """Say that a file cannot be unpacked."""
    return f"{path} cannot be unpacked: it is no whole gzip file; pack it again"
