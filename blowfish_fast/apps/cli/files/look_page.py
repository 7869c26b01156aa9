"""The page of a first look: a picture and a few numbers for each column.

Pictures are drawn here, bar by bar: a hundred figures of a plotting library would take
longer than everything else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from blowfish_fast._support import palette
from blowfish_fast._support.interval_texts import end_text, interval_text
from blowfish_fast.data.tables.answers import LONGEST_WORD
from blowfish_fast.release.wide.look_release import Bar, ColumnLook, LookRelease

STYLE = Path(__file__).with_name("page.css").read_text()
GREY_STYLE = (
    ".grey { opacity: .55 } .bars td { border: 0 } section { break-inside: avoid }"
)
MOST_BARS = 32
"""Bars of a picture; of more words the most frequent are drawn."""
LINE = 18
"""Height of a bar with its gap."""
LABEL = 190
"""Width of what stands beside the bars."""
LONGEST = 340
"""Width of the longest bar."""
WORDS_ARE_PLAIN = (
    "Words that nobody stated are counted by a public rule: capitals and accents are "
    "not told apart, other characters are question marks, and words end after "
    f"{LONGEST_WORD} characters. State the categories of a column, and they are "
    "counted as they are spelled."
)
LETTERS = 28
"""Characters of a label that is shown whole."""


def write_look(look: LookRelease, path: Path, confidence: float, *, name: str) -> None:
    """Write the page of a first look.

    Parameters
    ----------
    look : LookRelease
        What was published.
    path : Path
        The file of the page.
    confidence : float
        Of each interval.
    name : str
        What the page calls the table.
    """
    grey = [column.name for column in look.columns if column.too_noisy(confidence)]
    title = f"First look at {name}"
    many = len(look.columns)
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{look.rows:,} rows, {many:,} columns. Every number is noisy; each "
        f"interval holds the true count with probability at least {confidence:g}.</p>",
        f"<p>{escape(str(look.guarantee))}</p>",
    ]
    if not look.private:
        parts.append(
            '<p class="warning">An experiment: its noise was seeded, and it protects '
            "nobody. Do not publish it as a private release.</p>"
        )
    if any(column.kind == "words" for column in look.columns):
        parts.append(f"<p>{WORDS_ARE_PLAIN}</p>")
    if grey:
        parts.append(
            f"<p>Grey are {len(grey):,} of {many:,} columns, in which the interval of "
            "the largest count is wider than half of it, or nothing stands out of the "
            "noise. State their categories, a larger epsilon, or fewer columns.</p>"
        )
    parts += [_column(column, look.rows, confidence) for column in look.columns]
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{GREY_STYLE}</style>\n</head>\n"
    )
    body = "\n".join(parts)
    page = f"{head}<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    path.write_text(page, encoding="utf-8")


def said_of(column: ColumnLook, rows: int, confidence: float) -> list[str]:
    """Return what is said of a column in words: missing answers, others, quantiles.

    Parameters
    ----------
    column : ColumnLook
        What was published of it.
    rows : int
        How many rows the table has.
    confidence : float
        Of each interval.

    Returns
    -------
    list of str
        Sentences without a full stop.
    """
    said = [f"missing {_share(column.missing(confidence), rows)}"]
    stray = column.stray(confidence)
    if stray.low > 0 and column.kind != "words":
        said.append(f"{stray.label} {_share(stray, rows)}")
    for part, (place, low, high) in column.quantiles(confidence).items():
        called = {0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile"}[part]
        said.append(f"{called} {place:.4g} ({_between(low, high)})")
    middle = column.middle()
    if middle is not None:
        said.append(f"median {middle}")
    if column.kind == "words" and not column.bars(confidence):
        said.append("no word is frequent enough to be listed")
    if column.kind == "unclear":
        said.append("nothing stands out of the noise")
    return said


def _column(column: ColumnLook, rows: int, confidence: float) -> str:
    shown = column.bars(confidence)
    more = len(shown) - MOST_BARS
    kind = ' class="grey"' if column.too_noisy(confidence) else ""
    lines = [
        f"<section{kind}><h2>{escape(column.name)}</h2>",
        f"<p>{escape('; '.join(said_of(column, rows, confidence)))}.</p>",
    ]
    if shown:
        lines.append(_picture(column.name, shown[:MOST_BARS]))
    if more > 0:
        lines.append(f"<p>And {more:,} more, in the release.</p>")
    return "\n".join([*lines, "</section>"])


def _picture(name: str, shown: Sequence[Bar]) -> str:
    """Return bars with their intervals as a drawing, and the numbers as its text."""
    longest = max(max(bar.high for bar in shown), 1.0)
    parts = []
    for at, bar in enumerate(shown):
        top = at * LINE
        label = (
            bar.label if len(bar.label) <= LETTERS else f"{bar.label[: LETTERS - 1]}…"
        )
        start, stop = (LABEL + LONGEST * end / longest for end in (bar.low, bar.high))
        middle = top + LINE / 2
        ends = interval_text(math.floor(bar.low), math.ceil(bar.high))
        said = f"{bar.noisy:,.0f} ({ends})"
        parts.append(
            f'<text x="{LABEL - 6}" y="{middle + 4}" text-anchor="end">{escape(label)}'
            f'</text><rect x="{LABEL}" y="{top + 3}" height="{LINE - 6}" '
            f'width="{LONGEST * bar.noisy / longest:.1f}" fill="{palette.NOISE}"/>'
            f'<path d="M{start:.1f} {middle}H{stop:.1f}" stroke="{palette.BLACK}"/>'
            f'<text x="{LABEL + LONGEST + 8}" y="{middle + 4}">{said}</text>'
        )
    width, height = LABEL + LONGEST + 200, LINE * len(shown)
    return (
        f'<figure><svg role="img" aria-label="{escape(name)}: noisy counts" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'style="max-height:none;font-size:12px">{"".join(parts)}</svg></figure>'
    )


def _between(low: float, high: float) -> str:
    """Return an interval in words; an end that is infinite is left out."""
    if math.isinf(low) and math.isinf(high):
        return "it may lie beyond the bars on either side"
    if math.isinf(high):
        return f"{interval_text(low, low).partition(' ')[0]} or more"
    if math.isinf(low):
        return f"{interval_text(high, high).partition(' ')[0]} or less"
    return interval_text(low, high)


def _share(bar: Bar, rows: int) -> str:
    """Return a count as a share of all rows, with its interval."""
    whole = max(rows, 1)
    shares = [100 * min(count / whole, 1.0) for count in (bar.noisy, bar.low, bar.high)]
    low = end_text(shares[1], 1, upwards=False)
    high = end_text(shares[2], 1, upwards=True)
    return f"{shares[0]:.1f} % ({low} to {high})"
