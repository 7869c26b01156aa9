"""Intervals in words are rounded outwards: what is shown holds what was proved.

    proved      (44999.93, 55000.04)
    nearest      45000.0   55000.0     shorter than what was proved
    outwards     44999.9   55000.1     holds it

A count of a million people may be known within three of them, so that no digit before
the point is ever left out: ``1.23457e+06 to 1.23457e+06`` would hold nobody's count.
"""

from __future__ import annotations

import math

DIGITS = 6
"""Digits of the larger end that are shown at least."""
ROUND_ALREADY = 1e-9
"""Relative distance from a round number up to which an end is that number."""


def outward(value: float, decimals: int, *, upwards: bool) -> float:
    """Return one end of an interval, rounded away from the interval.

    Parameters
    ----------
    value : float
        The end; a finite number.
    decimals : int
        Digits after the point; negative ones stand before it.
    upwards : bool
        Whether it is the upper end.

    Returns
    -------
    float
        The nearest number of so many digits that is not inside the interval.

    Examples
    --------
    >>> outward(2020.12345, 2, upwards=False), outward(2020.12345, 2, upwards=True)
    (2020.12, 2020.13)
    """
    nearest = round(value, decimals)
    # What differs from a round number in its last bits is that number.
    inward = nearest < value if upwards else nearest > value
    if inward and abs(nearest - value) > ROUND_ALREADY * abs(value):
        step = 10.0**-decimals
        nearest = round(nearest + (step if upwards else -step), decimals)
    return nearest + 0.0


def digits_after(value: float) -> int:
    """Return after how many digits behind the point a number has six digits."""
    return DIGITS - 1 - math.floor(math.log10(abs(value))) if value else 0


def end_text(value: float, decimals: int, *, upwards: bool) -> str:
    """Return one end of an interval as text, rounded away from the interval.

    Parameters
    ----------
    value : float
        The end.
    decimals : int
        Digits after the point.
    upwards : bool
        Whether it is the upper end.

    Returns
    -------
    str
        The number, with commas between thousands.

    Examples
    --------
    >>> end_text(55000.04, 1, upwards=True), end_text(44999.98, 1, upwards=False)
    ('55,000.1', '44,999.9')
    >>> end_text(0.3, 1, upwards=True)
    '0.3'
    """
    if not math.isfinite(value):
        return f"{value:g}"
    return f"{outward(value, decimals, upwards=upwards):,.{decimals}f}"


def short_number(value: float) -> str:
    """Return a number with six digits, and with all that stand before the point."""
    return f"{value:,.0f}" if abs(value) >= 10**DIGITS else f"{value:.{DIGITS}g}"


def interval_text(low: float, high: float, word: str = "to", scale: float = 1.0) -> str:
    """Return both ends of an interval, with equally many digits after the point.

    Parameters
    ----------
    low : float
        The lower end.
    high : float
        The upper end.
    word : str
        What stands between them.
    scale : float
        What both are multiplied with; 100 for per cent.

    Returns
    -------
    str
        Such as "44,999.9 to 55,000.1".

    Examples
    --------
    >>> interval_text(1234566.0, 1234572.0, "and")
    '1,234,566 and 1,234,572'
    >>> interval_text(0.197634, 0.226511, scale=100)
    '19.7634 to 22.6511'
    """
    ends = (scale * low, scale * high)
    whole = all(math.isfinite(end) and end == math.floor(end) for end in ends)
    size = max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
    decimals = 0 if whole else max(digits_after(size), 0)
    texts = [end_text(end, decimals, upwards=at == 1) for at, end in enumerate(ends)]
    # Zeros at the end of both say nothing.
    while "." in texts[0] and "." in texts[1] and all(t[-1] in "0." for t in texts):
        texts = [text[:-1] for text in texts]
    return f" {word} ".join(texts)
