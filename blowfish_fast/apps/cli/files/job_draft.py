"""A commented job file, drafted from a header and a public code book; no value is read.

A code book is a CSV file or a sheet with a line for each answer, ``column,value,label``
or for each column of numbers, ``column,low,high,width``; or the labels of an SPSS or
Stata file. A line with a name and a text alone, ``column,description``, says what a
column means: it becomes a comment above the line of that column, whose cells stay open.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from blowfish_fast._support.optional import require
from blowfish_fast.apps.cli.files.record_files import PARQUET, head_of, refuse_absent
from blowfish_fast.data.csv_files import BLANKS, CsvHead, TextForm, sheet_place
from blowfish_fast.errors import InputError

HEADS = {
    "column": ("column", "variable", "question", "name"),
    "value": ("value", "code", "category", "answer"),
    "label": ("label", "meaning", "text", "description"),
    "low": ("low", "min", "from"),
    "high": ("high", "max", "to"),
    "width": ("width", "step"),
}
"""What the columns of a code book may be called."""

MISSING_NOTE = "if that means missing, move it to blanks"
"""What is said of a public value that reads like a missing one; NA may be Namibia."""
LONGEST_NOTE = 160
"""Characters of the labels beside a line."""
LONGEST_MEANING = 400
"""Characters of the comment above a line, where books often list what codes mean."""


class Coded(NamedTuple):
    """What a code book says of one column.

    Attributes
    ----------
    values : dict from str to str
        The label of each category, in the order of the book.
    numbers : str, default ''
        ``LOW:HIGH:WIDTH`` of a column of numbers.
    meaning : str, default ''
        What the column itself means, in the words of the book.
    """

    values: dict[str, str]
    numbers: str = ""
    meaning: str = ""

    @property
    def has_cells(self) -> bool:
        """Whether the book states the cells of the column, not its meaning alone."""
        return bool(self.values or self.numbers)

    @property
    def cells(self) -> str:
        """The cells as a job file states them."""
        if self.numbers:
            return _in_toml(self.numbers)
        levels = ", ".join(map(_in_toml, self.values))
        return f"{{ levels = [{levels}] }}"

    @property
    def note(self) -> str:
        """What the codes mean, for the end of the line."""
        said = [f"{value}: {label}" for value, label in self.values.items() if label]
        short = _one_line(", ".join(said), LONGEST_NOTE)
        return f"  # {short}" if short else ""

    @property
    def heading(self) -> str:
        """What the column means, as a comment above its line; may be empty."""
        words = _one_line(self.meaning, LONGEST_MEANING)
        return f"# {words}\n" if words else ""


def _in_toml(text: str) -> str:
    """Return a text as TOML writes it: as JSON does, and the sign DEL escaped, too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _one_line(words: str, longest: int) -> str:
    """Return words as a comment of TOML can hold them: one line, no control signs."""
    line = " ".join("".join(map(_printable, words)).split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def _printable(sign: str) -> str:
    return sign if sign.isprintable() else " "


def read_code_book(path: Path) -> dict[str, Coded]:
    """Return what a code book says of each column.

    Parameters
    ----------
    path : Path
        A CSV file, a sheet of a workbook, or an SPSS (.sav) or Stata (.dta) file, of
        which only the labels are read.

    Returns
    -------
    dict from str to Coded
        By the names of columns.

    Raises
    ------
    InputError
        If it is no code book.
    """
    refuse_absent(path)
    if path.suffix.lower() in (".sav", ".zsav", ".dta"):
        return _labels(path)
    head = head_of(path, [], TextForm())
    places = {
        kind: at
        for kind, names in HEADS.items()
        for at, name in enumerate(head.names)
        if name.strip().lower() in names
    }
    if "column" not in places or not {"value", "low", "label"} & {*places}:
        raise InputError(
            "a code book has the columns column, value and label, or column, low, high "
            "and width, or column and description",
            received=f"{path} with {', '.join(head.names)}",
            way_out="Call its columns so, in the first line of the book",
        )
    book: dict[str, Coded] = {}
    for line in _lines_below(path, head):
        entry = {
            kind: line[at].strip() if at < len(line) else ""
            for kind, at in places.items()
        }
        _enter(book, entry)
    return book


def _lines_below(path: Path, head: CsvHead) -> list[list[str]]:
    if sheet_place(path) is not None:
        from blowfish_fast.data.tables.sheets import lines_of

        return lines_of(path, head)
    with path.open(encoding=head.encoding, newline="") as file:
        return list(csv.reader(file, delimiter=head.delimiter))[head.lines :]


def _enter(book: dict[str, Coded], entry: Mapping[str, str]) -> None:
    """Take one line of a code book; blank ones say nothing."""
    name, value = entry["column"], entry.get("value", "")
    if not name:
        return
    coded = book.setdefault(name, Coded({}))
    if value:
        coded.values[value] = entry.get("label", "")
    elif entry.get("low") and entry.get("high"):
        width = entry.get("width") or "1"
        numbers = f"{entry['low']}:{entry['high']}:{width}"
        book[name] = Coded({}, numbers, entry.get("label", "") or coded.meaning)
    elif entry.get("label"):
        book[name] = coded._replace(meaning=entry["label"])


def _labels(path: Path) -> dict[str, Coded]:
    """Return the labels of an SPSS or Stata file; no record is read."""
    stata = path.suffix.lower() == ".dta"
    if stata and find_spec("pyreadstat") is None and find_spec("pandas") is not None:
        return _labels_by_pandas(path)
    reader: Any = require(
        "pyreadstat", extra="codebook", purpose="Labels of SPSS and Stata files"
    )
    read = reader.read_dta if stata else reader.read_sav
    try:
        _, about = read(str(path), metadataonly=True)
    except Exception as problem:
        raise InputError(
            f"{path} is no SPSS or Stata file ({type(problem).__name__})"
        ) from None
    return _coded(about.column_names_to_labels, about.variable_value_labels)


def _labels_by_pandas(path: Path) -> dict[str, Coded]:
    """Return the labels of a Stata file; pandas names lists of labels, not columns.

    A list is usually called like its column. Others are in the book under their own
    names, and are reported as such.
    """
    pandas: Any = require("pandas", extra="frames", purpose="Labels of Stata files")
    try:
        with pandas.read_stata(path, iterator=True) as reader:
            return _coded(reader.variable_labels(), reader.value_labels())
    except Exception as problem:
        raise InputError(
            f"{path} is no Stata file ({type(problem).__name__})"
        ) from None


def _coded(
    names: Mapping[Any, Any], labels: Mapping[Any, Mapping[Any, Any]]
) -> dict[str, Coded]:
    """Return a code book from what columns mean and what their codes mean."""
    meanings = {str(name): str(label or "") for name, label in names.items()}
    codes = {
        str(name): {_code(code): str(label) for code, label in answers.items()}
        for name, answers in labels.items()
    }
    return {
        name: Coded(codes.get(name, {}), meaning=meanings.get(name, ""))
        for name in dict.fromkeys((*meanings, *codes))
        if name in codes or meanings[name]
    }


def _code(code: Any) -> str:
    """Return a code as files of records write it: 1, not 1.0."""
    whole = isinstance(code, float) and code.is_integer()
    return str(int(code) if whole else code)


def draft_job(
    path: Path,
    columns: Sequence[str],
    book: Mapping[str, Coded],
    public: Mapping[str, Sequence[str]],
    *,
    encoding: str | None,
    sources: str,
) -> str:
    """Return a commented job file that runs once what is open has been filled in.

    Parameters
    ----------
    path : Path
        The file of records.
    columns : sequence of str
        Its columns.
    book : mapping from name to Coded
        What a code book says.
    public : mapping from name to sequence of str
        Lists of values that the curator calls public.
    encoding : str or None
        How a text file was saved, where that was stated.
    sources : str
        Where it comes from, in words.

    Returns
    -------
    str
        TOML.
    """
    stated = {
        **{name: book[name] for name in columns if name in book},
        **{
            name: Coded(
                {value: MISSING_NOTE if value in BLANKS else "" for value in values},
                meaning=book[name].meaning if name in book else "",
            )
            for name, values in public.items()
        },
    }
    lines = []
    for name in columns:
        key = _in_toml(name)
        coded = stated.get(name, Coded({}))
        line = f'# {key} = "0:100:10"'
        if coded.has_cells:
            line = f"{key} = {coded.cells}{coded.note}"
        lines.append(f"{coded.heading}{line}")
    domain = "\n".join(lines)
    source = _in_toml(str(path))
    how_written = "" if path.suffix.lower() in PARQUET else _text_form(encoding)
    return f"""\
# A draft, made from {sources}.
# Fill in what is open, then ask what it would mean; no record is read for that:
#   blowfish release THIS_FILE --dry-run

[data]
source = {source}
{how_written}\
missing = "cell"     # missing answers have a cell of their own; or "refuse"
outside = "cell"     # so have answers that are none of those stated
# person = "COLUMN"  # where a person has several lines: who it is. Without it one line
# at_most = 1        # is protected, with it a person; so many lines of each are counted

[domain]
# A line for each column that is to be released. Open ones begin with a #: state their
# cells and take the # away, or leave them as they are, and they stay unpublished.
#   "0:100:10"               numbers from 0 up to 100 in steps of 10
#   "edges:0,18,65,120"      numbers between edges
#   "2025-01-01:2026-01-01:month"   dates, by day, week, month, quarter or year
#   {{ levels = ["a", "b"] }}  categories, spelled as in the file
# Cells are public: take them from a questionnaire or a law, not from the records.
{domain}

[policy]
kind = "full"        # any answers of a person are secret, all at once; `attribute`: one
                     # column at a time, with less noise; `blowfish policy describe`

[workload]
kind = "tables:1"    # the counts of each column; tables:2 of each pair of columns, too

[budget]
# epsilon = 1        # open: what it may cost; howto/choose_epsilon says what that means
"""


def _text_form(encoding: str | None) -> str:
    """Return lines that say how a text file is written; open ones begin with a #."""
    stated = f"encoding = {json.dumps(encoding)}\n" if encoding else ""
    return f"""{stated}\
# decimal = ","           # where one and a half is written 1,5
# dates = "DD.MM.YYYY"    # where dates are not like 2025-12-31; "A or B" for two ways
# blanks = ["-", "n/a"]   # further spellings of missing; of numbers NA is known
"""
