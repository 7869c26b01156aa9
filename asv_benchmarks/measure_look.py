"""Figures of a first look: how far its counts are off, column by column.

    python asv_benchmarks/measure_look.py FILE.csv [FILE.csv ...]

Takes 10,000 rows of each file and 100 columns of all together (some twice, of other
rows, where there are fewer), looks at them at epsilon 1, and holds every published
count against the true one. A word that is not listed counts as published with 0.
Prints, for one answer at a time and for persons, the share of columns whose median
error, and whose largest error, is below 5 % of the rows; how far the rank of the median
is off in columns of numbers; how many columns are grey; and the processor's time from
file to page.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from blowfish_fast.apps.cli.files.look_page import write_look
from blowfish_fast.apps.cli.files.survey_file import columns_of, read_answers
from blowfish_fast.data.csv_files import TextForm
from blowfish_fast.data.domain import KeyDomain
from blowfish_fast.data.tables.answers import (
    LETTERS,
    LONGEST_WORD,
    as_number,
    as_text,
    plain_word,
)
from blowfish_fast.mechanisms.around_releases.first_look import FirstLook
from blowfish_fast.release.wide.look_release import ColumnLook, LookRelease

ROWS = 10_000
COLUMNS = 100
LOOKS = 3
SEED = 1
"""Of the rows that are taken; noise is fresh."""
SYMBOLS = KeyDomain(LETTERS, LONGEST_WORD).rule.symbols


def gathered(files: list[str]) -> dict[str, list[str]]:
    """Return so many columns of so many rows, from all files in turn."""
    rng = np.random.default_rng(SEED)
    columns: dict[str, list[str]] = {}
    tables = []
    for name in files:
        with open(name, encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        tables.append((Path(name).stem, head, rows))
    turn = 0
    while len(columns) < COLUMNS:
        for stem, head, rows in tables:
            taken = rng.choice(len(rows), ROWS, replace=len(rows) < ROWS)
            for at, column in enumerate(head):
                # The first column of these files numbers the rows.
                if at > 0 or column:
                    key = f"{stem} {column} {turn}"
                    columns[key] = [rows[row][at] for row in taken]
        turn += 1
    return dict(list(columns.items())[:COLUMNS])


def errors_of(look: ColumnLook, values: list[str]) -> np.ndarray[Any, Any]:
    """Return how far each count of a column is off the truth."""
    texts = [as_text(value) for value in values]
    missing = sum(text is None for text in texts)
    published, true = [look.missing().noisy], [missing]
    if look.kind == "words":
        words = Counter(plain_word(t, SYMBOLS) for t in texts if t is not None)
        listed = {bar.label: bar.noisy for bar in look.bars()}
        for word in {*words, *listed}:
            published.append(listed.get(word, 0.0))
            true.append(words[word])
    elif look.kind == "numbers":
        (attribute,) = look.second.domain.attributes  # type: ignore[union-attr]
        numbers = np.array([as_number(text) for text in texts])
        counts, _ = np.histogram(numbers[np.isfinite(numbers)], attribute.cuts)
        published += [bar.noisy for bar in look.bars()]
        true += counts.tolist()
    else:
        return np.array([np.inf])
    return np.abs(np.array(published) - np.array(true))


def rank_error(look: ColumnLook, values: list[str]) -> float | None:
    """Return which share of the numbers lies between the median and what was said."""
    found = look.quantiles()
    if not found:
        return None
    numbers = np.array([as_number(as_text(value)) for value in values])
    numbers = np.sort(numbers[np.isfinite(numbers)])
    place = found[0.5][0]
    low, high = np.searchsorted(numbers, [place, place], "left")
    high = int(np.searchsorted(numbers, place, "right"))
    half = numbers.size / 2
    return float(max(low - half, half - high, 0) / max(numbers.size, 1))


def main(files: list[str]) -> None:
    """Print the figures."""
    columns = gathered(files)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "survey.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        for persons in (False, True):
            for _ in range(LOOKS):
                start = time.process_time()
                names = columns_of(path, TextForm(), [])
                mechanism = FirstLook(names, persons=persons, epsilon=1)
                look = mechanism.release(read_answers(path, TextForm(), names))
                assert isinstance(look, LookRelease)
                write_look(look, Path(folder) / "look.html", 0.95, name="survey")
                spent = time.process_time() - start
                off = [errors_of(each, columns[each.name]) for each in look.columns]
                ranks = [rank_error(each, columns[each.name]) for each in look.columns]
                told = [rank for rank in ranks if rank is not None]
                median = np.mean([np.median(each) < ROWS / 20 for each in off])
                largest = np.mean([each.max() < ROWS / 20 for each in off])
                grey = sum(each.too_noisy() for each in look.columns)
                rank = np.quantile(told, 0.9) if told else float("nan")
                sys.stdout.write(
                    f"{'persons' if persons else 'answers'}: median {median:.2f}, "
                    f"largest {largest:.2f}, rank of the median off by at most "
                    f"{rank:.3f} in nine tenths of {len(told)}, grey {grey}, "
                    f"{spent:.1f} s\n"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
