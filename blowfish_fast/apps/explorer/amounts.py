"""Sums, means and shares by group, from two counts-like numbers for each group.

A record of value v between the bounds a and b stands `steps * (v - a) / (b - a)` steps
above the lower bound, and the rest of all `steps` below the upper one. Both are added
up over a group, and both get noise of one scale:

    bounds 0 to 100, 4 steps      above   below
    a record of 75                  3       1
    a record of 0                   0       4
    the group                       3       5      2 records, mean 100 * 3 / 8 = 37.5

Their sum is `steps` times the records of the group, so neither a mean nor its interval
needs the private size of the group, and a record that moves changes both by no more
than `steps` twice, whatever it is worth. A share is the mean of 0 and 1.

Values are known to their cells: a record counts as the middle of its cell, which is off
by at most the `slack`. Intervals allow for it. ``docs/proofs/amounts.md`` proves all of
this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.axes import MISSING, Axis, cut_values
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import QuestionError
from blowfish_fast.release.group_answers import left_out_words
from blowfish_fast.workloads import Linear, Workload

from .layout import Layout
from .questions import Accuracy, AmountQuestion, ShareQuestion, adds_up

FINE_STEPS = 2**20
"""Steps between bounds where no smaller number of them meets the middles of cells."""
MOST_TIMES = 8
"""Smallest gaps between middles are cut into up to so many steps before."""
NEARLY_WHOLE = 1e-9
"""A number of steps that is whole but for rounding."""

Added = AmountQuestion | ShareQuestion


class ValuePlaces(NamedTuple):
    """Where the bins of an attribute stand between two public bounds.

    Attributes
    ----------
    low : float
        The lower bound.
    high : float
        The upper bound.
    steps : int
        Steps from one bound to the other.
    above : (bins,) int64
        Steps of each bin above the lower bound.
    slack : float
        How far a value may lie from the place of its bin.
    """

    low: float
    high: float
    steps: int
    above: IntArray
    slack: float

    @property
    def width(self) -> float:
        """The distance of the bounds."""
        return self.high - self.low


def places_of(layout: Layout) -> ValuePlaces:
    """Return where the bins of the added attribute stand; public values alone.

    Parameters
    ----------
    layout : Layout
        Of a question for sums, means or shares.

    Returns
    -------
    ValuePlaces
        Bounds, steps and slack; Lemma AM1.

    Raises
    ------
    QuestionError
        If the stated bounds leave one value only.
    """
    question, axis = layout.question, layout.axes[layout.shown]
    if isinstance(question, ShareQuestion):
        return ValuePlaces(0.0, 1.0, 1, np.array([1, 0]), 0.0)
    assert isinstance(question, AmountQuestion)
    (attribute,) = axis.spec.domain().attributes
    cuts = np.asarray(cut_values(attribute), dtype=np.float64)
    # The cells of each bin lie side by side: its ends are those of first and last.
    cells = [
        np.flatnonzero(axis.labels[: attribute.regular] == at)
        for at in range(axis.asked)
    ]
    lows = cuts[[each[0] for each in cells]]
    highs = cuts[[each[-1] + 1 for each in cells]]
    least, largest = float(cuts[0]), float(cuts[-1])
    if axis.spec.whole:
        lows, highs = np.ceil(lows), np.ceil(highs) - 1.0
        least, largest = math.ceil(least), math.ceil(largest) - 1.0
        lows, highs = np.minimum(lows, highs), np.maximum(lows, highs)
    stated = question.clip
    low, high = (least, largest) if stated is None else stated
    low, high = max(low, least), min(high, largest)
    if not low < high:
        raise QuestionError(
            f"between the bounds {low:g} and {high:g} {axis.spec.name!r} has no two "
            "values; state wider ones"
        )
    lows, highs = np.clip(lows, low, high), np.clip(highs, low, high)
    middles = (lows + highs) / 2.0
    parts = (middles - low) / (high - low)
    steps = _fewest_steps(parts)
    above = np.rint(parts * steps).astype(np.int64)
    places = low + (high - low) * above / steps
    slack = float(np.maximum(highs - places, places - lows).max(initial=0.0))
    return ValuePlaces(low, high, steps, above, slack)


def _fewest_steps(parts: FloatArray) -> int:
    """Return a small number of steps of which all parts are whole numbers."""
    gaps = np.diff(np.unique(np.append(parts, [0.0, 1.0])))
    least = float(gaps[gaps > NEARLY_WHOLE].min(initial=1.0))
    for times in range(1, MOST_TIMES + 1):
        steps = round(times / least)
        places = parts * steps
        if np.abs(places - np.rint(places)).max(initial=0.0) <= NEARLY_WHOLE * steps:
            return steps
    return FINE_STEPS


def amount_rows(layout: Layout, domain: Domain) -> Workload:
    """Return two queries for each group: steps above, and steps below.

    Parameters
    ----------
    layout : Layout
        The bins of the question.
    domain : Domain
        The domain of the policy on the bins.

    Returns
    -------
    Workload
        Queries with whole coefficients: first those above, then those below, group by
        group in each.
    """
    from scipy import sparse

    places, groups = places_of(layout), math.prod(layout.asked_shape)
    values = places.above.size
    bins = np.arange(groups * values)
    above = np.tile(places.above, groups)
    matrix = sparse.csr_array(
        (
            np.concatenate([above, places.steps - above]).astype(np.float64),
            (
                np.concatenate([bins // values, groups + bins // values]),
                np.concatenate([bins, bins]),
            ),
        ),
        shape=(2 * groups, domain.size),
    )
    matrix.eliminate_zeros()
    return Linear(domain, matrix)


def workload_of(layout: Layout, domain: Domain) -> Workload:
    """Return the queries of any question over the bins of `domain`.

    Parameters
    ----------
    layout : Layout
        The bins of the question.
    domain : Domain
        The domain of the policy on the bins.

    Returns
    -------
    Workload
        Those of `amount_rows` where values are added up, else the layout's own.
    """
    if adds_up(layout.question):
        return amount_rows(layout, domain)
    return layout.workload(domain)


def at_least_of(layout: Layout) -> int:
    """Return the size of a group from which on the accuracy holds.

    Parameters
    ----------
    layout : Layout
        Of a question for means or shares.

    Returns
    -------
    int
        What the question states, or the stated records of the table over its groups:
        never a number that was counted.

    Raises
    ------
    QuestionError
        If neither is stated.
    """
    question = layout.question
    assert isinstance(question, AmountQuestion | ShareQuestion)
    if question.at_least is not None:
        return question.at_least
    stated = layout.table.records
    if stated is None:
        raise QuestionError(
            "how far a mean may be off depends on how many records it is of, which is "
            "private; state at_least, the size of a group from which on alpha holds "
            "(smaller groups get wider intervals)"
        )
    return max(1, stated // math.prod(layout.asked_shape))


def on_rows(layout: Layout, cost: Accuracy) -> Accuracy:
    """Return the accuracy that the two numbers of each group need: Lemma AM3.

    Parameters
    ----------
    layout : Layout
        The bins of a question for sums, means or shares.
    cost : Accuracy
        The accuracy of its answers, in their unit.

    Returns
    -------
    Accuracy
        The accuracy of the queries.

    Raises
    ------
    QuestionError
        If alpha is below what values are known to.
    """
    question = layout.question
    assert isinstance(question, AmountQuestion | ShareQuestion)
    places = places_of(layout)
    if question.kind == "sum":
        reach = abs(places.low) + abs(places.high)
        alpha = cost.alpha * places.steps / reach
    else:
        left = cost.alpha - places.slack
        if left <= 0.0:
            raise QuestionError(
                f"values of {question.attribute!r} are known to {places.slack:g}, half "
                f"of their cells; ask for an alpha above that, or state a smaller "
                f"width; received {cost.alpha:g}"
            )
        size = at_least_of(layout) * places.steps
        alpha = left * size / (places.width + 2.0 * left)
    # Two numbers stand behind each answer.
    beta = cost.beta if cost.scope == "simultaneous" else cost.beta / 2.0
    return cost.model_copy(update={"alpha": alpha, "beta": beta})


def from_rows(layout: Layout, alpha: float) -> float:
    """Return the accuracy of answers whose queries are within alpha: Lemma AM3.

    Parameters
    ----------
    layout : Layout
        The bins of any question.
    alpha : float
        How far its queries may be off.

    Returns
    -------
    float
        In the unit of the answers; never more than the distance of the bounds.
    """
    question = layout.question
    if not isinstance(question, AmountQuestion | ShareQuestion):
        return alpha
    places = places_of(layout)
    if question.kind == "sum":
        return alpha * (abs(places.low) + abs(places.high)) / places.steps
    size = at_least_of(layout) * places.steps
    least = size - 2.0 * alpha
    off = places.width * alpha / least if least > 0.0 else places.width
    return min(off, places.width) + places.slack


def answers_of_rows(layout: Layout, rows: FloatArray) -> FloatArray:
    """Return sums, means or shares, true or noisy, from the two numbers of each group.

    Parameters
    ----------
    layout : Layout
        Of a question for them.
    rows : (2 groups,) float64
        Answers of `amount_rows`.

    Returns
    -------
    (groups,) float64
        Inside the bounds. A mean of nothing is the middle between them.
    """
    places = places_of(layout)
    above, below = np.asarray(rows, dtype=np.float64).reshape(2, -1)
    if layout.question.kind == "sum":
        return np.asarray((places.high * above + places.low * below) / places.steps)
    return places.low + places.width * _part(above, below)


def _part(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return above over both, within 0 and 1; a half where there is nothing."""
    above, below = np.maximum(above, 0.0), np.maximum(below, 0.0)
    both = above + below
    return np.where(both > 0.0, above / np.where(both > 0.0, both, 1.0), 0.5)


def amount_intervals(layout: Layout, bounds: FloatArray) -> FloatArray:
    """Return intervals of the true sums, means or shares: Lemma AM2.

    Parameters
    ----------
    layout : Layout
        Of a question for them.
    bounds : (2 groups, 2) float64
        Intervals that hold the true answers of `amount_rows`.

    Returns
    -------
    (groups, 2) float64
        They hold the truth wherever `bounds` do. What too small a group says nothing
        of has the bounds as its interval.
    """
    places = places_of(layout)
    # Steps of records are never below 0.
    above, below = np.maximum(bounds, 0.0).reshape(2, -1, 2)
    if layout.question.kind != "sum":
        part = np.column_stack(
            [
                np.where(
                    below[:, 1] + above[:, 0] > 0.0,
                    _part(above[:, 0], below[:, 1]),
                    0.0,
                ),
                np.where(
                    above[:, 1] + below[:, 0] > 0.0,
                    _part(above[:, 1], below[:, 0]),
                    1.0,
                ),
            ]
        )
        means = places.low + places.width * part
        means += np.array([-places.slack, places.slack])
        return np.clip(means, places.low, places.high)

    def largest(sign: float) -> FloatArray:
        """Return the largest of sign times the sum, with all that cells leave open."""
        ends = [
            np.maximum(sign * bound * side[:, 0], sign * bound * side[:, 1])
            for bound, side in ((places.high, above), (places.low, below))
        ]
        most = (above[:, 1] + below[:, 1]) / places.steps
        return np.asarray((ends[0] + ends[1]) / places.steps + places.slack * most)

    sums = np.column_stack([-largest(-1.0), largest(1.0)])
    if places.low >= 0.0:
        sums = np.maximum(sums, 0.0)
    return sums


def amount_words(layout: Layout, cost: Accuracy) -> str:
    """Say what is promised of sums, means or shares, and of which records.

    Parameters
    ----------
    layout : Layout
        Of a question for them.
    cost : Accuracy
        Its accuracy.

    Returns
    -------
    str
        The subject of a promise, up to "within".
    """
    question = layout.question
    each = "Each" if cost.scope == "per_query" else "All"
    many = "" if cost.scope == "per_query" else "s"
    verb = "is" if cost.scope == "per_query" else "are"
    if question.kind == "sum":
        return f"{each} sum{many}, of values at the middles of their cells, {verb}"
    size = at_least_of(layout)
    return f"{each} {question.kind}{many} of groups of at least {size:,} records {verb}"


def amount_remarks(layout: Layout) -> tuple[str, ...]:
    """Say what values count as, and which records do not count; public values.

    Parameters
    ----------
    layout : Layout
        The bins of a question for sums, means or shares.

    Returns
    -------
    tuple of str
        Sentences for whoever reads the answer.
    """
    question = layout.question
    assert isinstance(question, AmountQuestion | ShareQuestion)
    (attribute,) = layout.axes[layout.shown].spec.domain().attributes
    words = []
    if isinstance(question, AmountQuestion):
        places = places_of(layout)
        words.append(
            f"values of {question.attribute} count from {places.low:g} to "
            f"{places.high:g}, those beyond as the nearer bound"
        )
        if places.slack > 0.0:
            words.append(
                "a record counts as the middle of its cell; intervals allow for "
                f"{places.slack:g} in each"
            )
        if attribute.extras:
            words.append(_left_out(attribute, attribute.extras))
    elif MISSING in attribute.extras and not question.missing:
        words.append(_left_out(attribute, [MISSING]))
    return tuple(words)


def _left_out(attribute: Axis, extras: Sequence[str]) -> str:
    """Say who does not count, as releases say it, within a list of remarks."""
    said = left_out_words(attribute, extras)
    return said[0].lower() + said[1:].rstrip(".")


def described_amounts(layout: Layout) -> dict[str, Any]:
    """Return what the numbers of an answer are, for whoever draws or exports them.

    Parameters
    ----------
    layout : Layout
        The bins of a question for sums, means or shares.

    Returns
    -------
    dict
        "what" the numbers are, and their "unit" where they have one.
    """
    question = layout.question
    assert isinstance(question, AmountQuestion | ShareQuestion)
    if isinstance(question, ShareQuestion):
        return {"what": f"share of {question.attribute}"}
    unit = layout.axes[layout.shown].spec.unit
    what = f"{question.kind} of {question.attribute}"
    return {"what": what, **({"unit": unit} if unit else {})}
