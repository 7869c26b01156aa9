"""Classes of colours of a map: where they end, and what a legend says of them.

A class begins with the estimate of a cell, and holds as many cells as the others:

    estimates   0 0 | 3 4 | 9 12 | 15 21 | 30 95       ends 0 3 9 15 30 95

Where many cells have one estimate, as empty cells of a grid do, they are a class, and
the other classes share what is left:

    estimates   0 0 0 0 0 0 0 | 4 | 9 | 15 | 30 95     ends 0 4 9 15 30 95
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray

CLASSES = ("#eff3ff", "#bdd7e7", "#6baed6", "#3182bd", "#08519c")
"""Colours from few to many."""

MOST_LABEL_DIGITS = 6
"""Digits behind the point in a legend, at the most."""


class ColourClass(NamedTuple):
    """One class of a map.

    Attributes
    ----------
    begin : float
        The least estimate of the class.
    end : float
        Where the next one begins; the largest estimate of the last class.
    colour : str
        Its colour, as #rrggbb.
    label : str
        What the legend says.
    """

    begin: float
    end: float
    colour: str
    label: str


def class_breaks(estimates: FloatArray) -> FloatArray:
    """Return the ends of classes, one more than there are classes.

    Parameters
    ----------
    estimates : ndarray of float64
        Those of the cells on the map; they are public.

    Returns
    -------
    ndarray of float64
        Rising numbers, six where there are five different estimates or more: where each
        class begins, and the largest estimate, which is the last beginning again where
        no other cell is in the last class.
    """
    left = np.sort(estimates)
    ends = [left[0]]
    for classes in range(len(CLASSES), 1, -1):
        after = left[-(-left.size // classes) :]
        # Cells of one estimate are in one class.
        after = after[after > left[0]]
        if not after.size:
            after = left[left > left[0]]
        if not after.size:
            break
        left = left[left >= after[0]]
        ends.append(left[0])
    return np.array([*ends, left[-1]])


def colour_classes(ends: FloatArray) -> list[ColourClass]:
    """Return the classes between ends, each with its colour and its label.

    Parameters
    ----------
    ends : ndarray of float64
        Two to six of them, from `class_breaks` or stated.

    Returns
    -------
    list of ColourClass
        From few to many; fewer than five are spread over all shades.
    """
    many = ends.size - 1
    last = len(CLASSES) - 1
    # One class alone is neither few nor many.
    shades = np.rint(np.linspace(0, last, many)) if many > 1 else [last // 2]
    labels = _labels(ends)
    return [
        ColourClass(float(ends[at]), float(ends[at + 1]), CLASSES[int(shade)], label)
        for at, (shade, label) in enumerate(zip(shades, labels, strict=True))
    ]


def _labels(ends: FloatArray) -> list[str]:
    """Return "begin to end" of each class, with as many digits as tell ends apart."""
    numbers = ends.tolist()
    for digits in range(MOST_LABEL_DIGITS + 1):
        # Adding 0 makes 0 of what was rounded to -0.
        texts = [f"{round(end, digits) + 0.0:,.{digits}f}" for end in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return [
        begin if begin == end else f"{begin} to {end}" for begin, end in pairwise(texts)
    ]
