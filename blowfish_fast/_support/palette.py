"""The colours of every picture: Okabe and Ito's, told apart by all kinds of eyes.

Colour never says anything alone: lines also differ in dash and marker, and carry names.
"""

from __future__ import annotations

BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#7F7F7F"

ESTIMATE = BLUE
NOISE = SKY
REFERENCE = VERMILLION
BUCKETS = GREY
ABSENT = VERMILLION
LIMIT = VERMILLION

SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
"""Colours of lines side by side, in order; Okabe's yellow is too pale for a line."""

BARS = (*SERIES, GREY, "#8C6D1F", "#7A4EAB")
"""Colours of bars side by side, of which there may be more."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)))

COUNTS = "cividis"
"""Colour map of counts and distances: one hue of blue to yellow, rising in light."""


def series(number: int) -> tuple[str, str, object]:
    """Return colour, marker and dash of the line of that number."""
    place = number % len(SERIES)
    return SERIES[place], MARKERS[place], DASHES[place]
