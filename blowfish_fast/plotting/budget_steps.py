"""A ledger as a picture: what was spent, when, on what, and what is left."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from blowfish_fast._support import palette
from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_choice
from blowfish_fast.accounting import Ledger
from blowfish_fast.accounting.statements import Entry
from blowfish_fast.errors import InputError
from blowfish_fast.policies.drawing import shorten

from .canvas import axes_for, date_marks, line_names, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMED = 16
"""Charges that are named one by one."""

MOST_ANALYSTS = 6
LETTER_WIDTH, LETTER_HEIGHT = 5.2, 11.0
"""Points that a letter of a name takes, about."""

SHORT_SPAN = 60.0
"""Seconds below which charges are counted instead of dated."""


def budget_over_time(
    ledger: Ledger,
    *,
    along: Literal["time", "charges"] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw what was spent of a budget, step by step.

    The ledger is only read.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    along : Literal['time', 'charges'], optional
        Whether steps lie along time or along charges; along time by default, unless all
        was charged within a minute.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> policy = bf.policies.Full(line)
    >>> ledger = bf.Ledger(epsilon=1, policy=policy)
    >>> laplace = bf.Laplace(policy, bf.workloads.Identity(line), epsilon=0.25)
    >>> release = ledger.release(laplace, [3, 0, 2, 5], request="ages")
    >>> axes = bf.plotting.budget_over_time(ledger)
    >>> axes.lines[0].get_ydata().tolist()
    [0.0, 0.25, 0.25]
    """
    if not isinstance(ledger, Ledger):
        raise InputError(f"budget_over_time draws a Ledger; received {ledger!r}")
    as_choice(along, "along", (None, "time", "charges"))
    entries = ledger.history()
    dated = along == "time" or (along is None and _span(entries) >= SHORT_SPAN)
    drawn = axes_for(axes, (8.0, 4.0), "Drawing a budget")
    places = np.arange(1.0, len(entries) + 1)
    if dated:
        dates = require("matplotlib.dates", extra="plot", purpose="Drawing a budget")
        places = np.array([dates.date2num(entry.time) for entry in entries], np.float64)
    begin, end = _ends(places, dated=dated)
    total, xs = float(ledger.budget), [begin, *places, end]
    style = {"color": palette.BLUE, "linewidth": 2, "label": "spent"}
    ys = _draw_steps(drawn, xs, entries, **style)
    drawn.fill_between(xs, ys, step="post", color=palette.SKY, alpha=0.25)
    names = [
        (f"budget {total:g}", total, palette.LIMIT),
        (f"spent {float(ledger.spent):g}", float(ledger.spent), palette.BLUE),
    ]
    names += _analysts(drawn, ledger, entries, xs)
    drawn.axhline(total, color=palette.LIMIT, linestyle="--", label="budget")
    drawn.set_ylim(0.0, total * 1.08)
    drawn.set_xlim(begin, end)
    drawn.set_ylabel(f"{ledger.currency.name} spent")
    _label_time(drawn, entries, dated=dated)
    if len(entries) <= MOST_NAMED:
        _name_charges(drawn, entries, places, np.array(ys[1:-1]))
    left = float(ledger.remaining)
    drawn.set_title(
        f"{len(entries):,} {'charge' if len(entries) == 1 else 'charges'}, "
        f"{ledger.currency.short} = {left:g} of {total:g} left",
        fontsize="medium",
    )
    line_names(drawn, names, 0.07)
    return drawn


def _draw_steps(
    axes: Axes, xs: Sequence[float], entries: list[Entry], **style: Any
) -> list[float]:
    """Draw and return the running total, rounded once from exact sums."""
    amounts = (entry.budget.amount for entry in entries)
    totals = itertools.accumulate(amounts, initial=Fraction(0))
    ys = [float(total) for total in totals]
    ys.append(ys[-1])
    axes.plot(xs, ys, drawstyle="steps-post", **style)
    return ys


def _span(entries: list[Entry]) -> float:
    if len(entries) < 2:
        return 0.0
    return (entries[-1].time - entries[0].time).total_seconds()


def _ends(places: FloatArray, *, dated: bool) -> tuple[float, float]:
    if not dated or not places.size:
        return 0.0, places.size + 1.0
    span = max(places[-1] - places[0], 1 / 1440)
    return float(places[0] - 0.06 * span), float(places[-1] + 0.12 * span)


def _analysts(
    axes: Axes, ledger: Ledger, entries: list[Entry], xs: Sequence[float]
) -> list[tuple[str, float, str]]:
    """Draw a thin line for each analyst with an allotment; return their names."""
    named = []
    allotted = itertools.islice(ledger.allotments().items(), MOST_ANALYSTS)
    for number, (analyst, share) in enumerate(allotted):
        own = [place for place, entry in enumerate(entries) if entry.analyst == analyst]
        steps = [xs[0], *(xs[place + 1] for place in own), xs[-1]]
        colour, _, dash = palette.series(number + 2)
        style = {"color": colour, "linestyle": dash, "linewidth": 1.4, "label": analyst}
        last = _draw_steps(axes, steps, [entries[place] for place in own], **style)[-1]
        text = f"{shorten(analyst, 18)} {last:g} of {float(share.granted):g}"
        named.append((text, last, colour))
    return named


def _label_time(axes: Axes, entries: list[Entry], *, dated: bool) -> None:
    if dated:
        date_marks(axes.xaxis)
        axes.set_xlabel("time (UTC)")
        return
    ticker = require("matplotlib.ticker", extra="plot", purpose="Drawing a budget")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.set_xlabel("charges" if entries else "no charges yet")


def _name_charges(
    axes: Axes, entries: list[Entry], places: FloatArray, spent: FloatArray
) -> None:
    """Name charges, the largest first, where their names do not cover another."""
    points = 72.0 / axes.figure.dpi
    corners = axes.transData.transform(np.column_stack([places, spent])) * points
    left, right = axes.bbox.x0 * points, axes.bbox.x1 * points
    taken: list[tuple[float, float, float]] = []
    order = sorted(range(len(entries)), key=lambda place: -entries[place].budget.amount)
    for number in order:
        entry = entries[number]
        # The ledger makes such names up for requests that were given none.
        made_up = re.fullmatch("[0-9a-f]{32}", entry.request)
        named = entry.mechanism if made_up else entry.request
        text = shorten(named, 20)
        width = LETTER_WIDTH * len(text)
        x, y = corners[number]
        before = x - width > left
        span = (x - width, x) if before else (x, x + width)
        covers = any(
            span[0] < other[1]
            and other[0] < span[1]
            and abs(y - other[2]) < LETTER_HEIGHT
            for other in taken
        )
        if covers or span[1] > right:
            continue
        taken.append((*span, y))
        away = (-3 if before else 3, 2)
        style = {"ha": "right" if before else "left", "va": "bottom"}
        note(axes, text, (places[number], spent[number]), away, **style)
