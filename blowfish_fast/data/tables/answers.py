"""The answers of a table, column by column, before anybody knows what they hold.

A text is a number, a word or missing, by rules that are public and the same for every
column:

    "31"  "4.0"  "-2e3"        numbers
    "many"  "inf"  "1_000"     words: their number is infinite
    ""  "NA"  "null"  None     missing: their number is NaN

How a column is then counted, into cells of numbers, stated categories or words
nobody listed, is for the caller to say.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast._support.validation import quoted
from blowfish_fast.data.axes import is_blank
from blowfish_fast.data.csv_files import (
    BLANKS,
    GROUPS,
    numeral_with,
    read_from_csv,
)
from blowfish_fast.data.domain import Domain, KeyDomain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.level_numbers import numbered_levels, numeral
from blowfish_fast.data.sparse import SparseHistogram
from blowfish_fast.errors import InputError

NUMERAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""What is read as a number; Python's own rule would also take ``1_000`` and ``inf``."""

LETTERS = "a-z0-9 ?&+/.,:_()'%-"
"""The symbols of words nobody listed, unless more are stated."""

LONGEST_WORD = 24
"""Characters up to which words are told apart; longer ones are cut there."""


class ColumnAnswers:
    """The answers to one question, counted into whichever cells are asked for.

    Parameters
    ----------
    values : iterable
        An answer for each row: a text, a number, or None where it is missing.
    decimal : {",", "."}, optional
        The decimal mark of numbers that are written as texts; marks between thousands
        are then read, too. By default a point, and no thousands.

    Examples
    --------
    >>> answers = ColumnAnswers(["3", "4.0", "many", None, "NA"])
    >>> answers
    ColumnAnswers(5 rows, answers hidden)
    >>> cells = Domain.from_edges([0, 5, 10], name="visits")
    >>> cells = cells.with_extra_cells(outside=True, missing=True)
    >>> answers.in_numbers(cells)
    Histogram(Domain(visits: 4 cells), counts hidden)
    """

    def __init__(self, values: Iterable[Any], decimal: str | None = None) -> None:
        values = list(values)
        answers = [
            (as_text(value), decimal if isinstance(value, str) else None)
            for value in values
        ]
        texts = [text for text, _ in answers]
        # As they were written: stated categories may be called nan, or hold blanks.
        self._written: list[tuple[str | None, str | None]] = [
            (None if is_missing(value) else str(value), mark)
            for value, (_, mark) in zip(values, answers, strict=True)
        ]
        self._texts: AnyArray = np.array(texts, dtype=object)
        # A column of many rows has few different answers: each is read once.
        read = {answer: as_number(*answer) for answer in set(answers)}
        self._numbers: FloatArray = np.array(
            [read[answer] for answer in answers], dtype=np.float64
        )

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"ColumnAnswers({len(self):,} rows, answers hidden)"

    def different(self, *, blanks_around: bool = False) -> list[str]:
        """Return the different answers: only where somebody says that they are public.

        They are what a release counts as categories, so texts that elsewhere mean
        missing are listed, too: NA may be Namibia. Numbers come first, by size, then
        words by their letters. Where all answers are numbers, each number is listed
        once, however it is written.

        Parameters
        ----------
        blanks_around : bool, default False
            Whether blanks around a value are a part of it, and a value may be empty, as
            in a Parquet file.

        Returns
        -------
        list of str
            The values.

        Examples
        --------
        >>> ColumnAnswers(["10", "3", "3.0"]).different()
        ['3', '10']
        >>> ColumnAnswers(["3.0", "NA", "3"]).different()
        ['3', '3.0', 'NA']
        """
        written = {text for text, _ in self._written if text is not None}
        if not blanks_around:
            written = {read_from_csv(text) for text in written} - {""}
        # The number of a word is infinite, which puts words last.
        order = sorted(written, key=lambda text: (as_number(text.strip()), text))
        numbers = [numeral(text) for text in order]
        if None in numbers:
            return order
        return list(dict.fromkeys(str(number) for number in numbers))

    def in_numbers(self, domain: Domain) -> Histogram:
        """Return the counts of numbers; words lie outside, blanks are missing.

        Parameters
        ----------
        domain : Domain
            Cells of one attribute, with extra cells for what lies outside and for what
            is missing.

        Returns
        -------
        Histogram
            How many rows each cell has.
        """
        (name,) = domain.column_names
        return Histogram.from_records(
            domain, {name: self._numbers}, outside="cell", missing="cell"
        )

    def in_categories(self, domain: Domain) -> Histogram:
        """Return the counts of stated categories; other texts lie outside.

        A category that is stated is counted, also one that is called ``nan``; words
        for missing that nobody stated are missing.

        Parameters
        ----------
        domain : Domain
            Categories of one attribute, with extra cells for what lies outside and for
            what is missing.

        Returns
        -------
        Histogram
            How many rows each category has.
        """
        (name,), (axis,) = domain.column_names, domain.attributes
        # The extra cells, outside and missing, come after the regular ones.
        levels = (axis.levels or ())[: axis.regular]
        stated = {read_from_csv(str(level)): level for level in levels}
        # A file of texts keeps no blanks around a value, and other files may.
        stated |= {str(level): level for level in levels}
        codes = numbered_levels(levels) is not None
        cells = {
            answer: _category(*answer, stated=stated, codes=codes)
            for answer in set(self._written)
        }
        # Were all categories tuples of one length, numpy would make a table of them; a
        # last entry that is none, cut off again, keeps them in one column.
        values = np.array([*(cells[answer] for answer in self._written), None], object)
        return Histogram.from_records(
            domain, {name: values[:-1]}, outside="cell", missing="cell"
        )

    def in_words(self, domain: KeyDomain) -> SparseHistogram:
        """Return the counts of words, as `plain_word` spells them.

        Parameters
        ----------
        domain : KeyDomain
            The words that can be counted, none of which is listed.

        Returns
        -------
        SparseHistogram
            How many rows each word has.
        """
        (name,) = domain.column_names
        plain = {
            text: None if text is None else plain_word(text, domain.rule.symbols)
            for text in set(self._texts)
        }
        words = np.array([plain[text] for text in self._texts], dtype=object)
        return SparseHistogram.from_records(
            domain, {name: words}, outside="cell", missing="cell"
        )


def _category(
    written: str | None, decimal: str | None, *, stated: Mapping[str, Any], codes: bool
) -> Any:
    """Return the stated category of an answer, else its text; None if missing.

    `stated` gives the category for each spelling. With `codes`, all categories are
    numbers, and an answer such as "1.000" is read with its decimal mark: where that is
    a comma, it is counted as 1000.
    """
    if written is None:
        return None
    text = read_from_csv(written)
    for spelling in (written, text):
        if spelling in stated:
            return stated[spelling]
    if text in BLANKS:
        return None
    if codes and decimal is not None and re.fullmatch(numeral_with(decimal), text):
        return _plain_digits(text, decimal)
    return text


def is_missing(value: Any) -> bool:
    """Return whether a value is none: None, NaN of any kind, or a missing value."""
    return is_blank(value) or bool(value != value)


def as_text(value: Any) -> str | None:
    """Return an answer as a text without spaces around it; None where it is blank."""
    if is_missing(value):
        return None
    text = str(value).strip()
    return None if text in BLANKS else text


def as_number(text: str | None, decimal: str | None = None) -> float:
    """Return the number that a text says: NaN where it is missing, infinite for words.

    Parameters
    ----------
    text : str or None
        What `as_text` returned.
    decimal : {",", "."}, optional
        The decimal mark; marks between thousands are read where it is stated, as a
        release reads them.

    Returns
    -------
    float
        The number.

    Examples
    --------
    >>> as_number("1,5", ","), as_number("1.234,5", ","), as_number("1.5", ",")
    (1.5, 1234.5, inf)
    >>> as_number("1.5"), as_number("many"), as_number(None)
    (1.5, inf, nan)
    """
    if text is None:
        return float("nan")
    if decimal is None:
        return float(text) if NUMERAL.fullmatch(text) else float("inf")
    if not re.fullmatch(numeral_with(decimal), text):
        return float("inf")
    return float(_plain_digits(text, decimal))


def _plain_digits(text: str, decimal: str) -> str:
    """Return a number with a decimal point and nothing between thousands."""
    # A mark without a replacement is deleted.
    marks = {**dict.fromkeys(GROUPS[decimal]), decimal: "."}
    return text.translate(str.maketrans(marks))


def plain_word(text: str, symbols: str) -> str:
    """Return a text in the symbols of words: a public rule, the same for every text.

    Small letters, without accents unless the accented letter is a symbol; any other
    character is a question mark; what is too long is cut off.

    Parameters
    ----------
    text : str
        The text.
    symbols : str
        The characters that words may hold, a question mark among them.

    Returns
    -------
    str
        The word.

    Examples
    --------
    >>> plain_word("Général", "abcdefghijklmnopqrstuvwxyz?"), plain_word("x=1", "x1?")
    ('general', 'x?1')
    """
    letters = []
    for letter in unicodedata.normalize("NFC", " ".join(text.split()).casefold()):
        # Taken apart, an accented letter begins with the letter itself.
        bare = unicodedata.normalize("NFKD", letter)[:1]
        plain = letter if letter in symbols else bare
        letters.append(plain if plain in symbols else "?")
    return "".join(letters)[:LONGEST_WORD]


class SurveyAnswers:
    """A table of answers: columns of equal length, in the order of the header.

    Parameters
    ----------
    columns : mapping from name to iterable
        The answers of each column.
    decimal : {",", "."}, optional
        The decimal mark, as in `ColumnAnswers`.

    Raises
    ------
    InputError
        If there is no column, or columns differ in length.

    Examples
    --------
    >>> SurveyAnswers({"sex": ["f", "m"], "age": [31, 64]})
    SurveyAnswers(2 columns of 2 rows, answers hidden)
    """

    def __init__(
        self, columns: Mapping[str, Iterable[Any]], decimal: str | None = None
    ) -> None:
        self.columns = {
            name: ColumnAnswers(values, decimal) for name, values in columns.items()
        }
        lengths = {len(column) for column in self.columns.values()}
        if len(lengths) != 1:
            raise InputError(
                "a table of answers has columns, all of one length",
                received=quoted(sorted(lengths)),
            )
        (self.rows,) = lengths

    def __repr__(self) -> str:
        return (
            f"SurveyAnswers({len(self.columns):,} columns of {self.rows:,} rows, "
            "answers hidden)"
        )
