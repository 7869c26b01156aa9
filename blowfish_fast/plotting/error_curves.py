"""What privacy costs: error against epsilon, and against what is promised."""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from blowfish_fast._support import palette
from blowfish_fast._support.optional import require
from blowfish_fast._support.validation import as_epsilon
from blowfish_fast.advice.comparison import compare
from blowfish_fast.advice.recommendation import recommend
from blowfish_fast.advice.typical_error import (
    geometric_mean,
    reference_shapes,
    typical_errors,
)
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import DataDependentError, InputError
from blowfish_fast.mechanisms import Mechanism, Transformed
from blowfish_fast.mechanisms.registry import MechanismName
from blowfish_fast.mechanisms.wide_questions import refuse_wide_advice
from blowfish_fast.policies import Full, Policy, Threshold
from blowfish_fast.release.guarantee import strategy_name
from blowfish_fast.workloads import Workload

from .canvas import axes_for, in_full, line_names, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
MOST_PREDICTED = 4
MOST_TYPICAL = 2
LEAST_ERROR = 1e-9
NAME_GAP = 0.055
ERROR = "error per query, in records\n(root mean square)"
MOST_DOUBLINGS = 7
"""Doublings of theta that are drawn each; of more, every other one."""


Candidates = dict[str, tuple[Mechanism, bool]]
"""Mechanisms to be drawn, and whether their error is known from releases only."""


class Curve(NamedTuple):
    """One line: a mechanism's root mean square error at each epsilon.

    Attributes
    ----------
    name : str
        The name of the mechanism.
    typical : bool
        Whether errors were tried on generated data, instead of predicted.
    errors : list[float]
        The error at each epsilon.
    """

    name: str
    typical: bool
    errors: list[float]


def error_against_epsilon(
    policy: Policy,
    workload: Workload,
    epsilons: Sequence[Any] = EPSILONS,
    mechanisms: Sequence[MechanismName | Mechanism] | None = None,
    *,
    records: int | None = None,
    trials: int = 3,
    rng: int | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw the error per query of several mechanisms at several epsilons.

    Errors that hold for any data are solid lines; typical ones, measured on generated
    histograms, are marked as such. Lines stand in the order of their error at the
    largest epsilon, the least first. Free: no data is read.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable.
    workload : Workload
        The queries whose error is drawn.
    epsilons : sequence of numbers
        At least two.
    mechanisms : sequence of names or mechanisms, optional
        Names and classes are those of `blowfish_fast.compare`. Left out: the four
        of least error, and with `records` the first two of `recommend` that choose
        from the data or are fitted to it.
    records : int, optional
        A public guess of their number, on which typical errors depend. Without it,
        mechanisms that choose from the data are left out.
    trials : int
        Releases per generated histogram, for typical errors.
    rng : int, optional
        The seed of these releases; a random one by default.
    axes : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes
        The drawing: a line for each mechanism.

    Raises
    ------
    InputError
        If there are less than two epsilons, a mechanism cannot be used here, or one
        that chooses from the data is named without `records`.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> axes = bf.plotting.error_against_epsilon(
    ...     bf.policies.Line(line), bf.workloads.AllRanges(line), [0.1, 1],
    ...     ["cells", "ordered"],
    ... )
    >>> [line.get_label() for line in axes.lines]
    ['ordered', 'cells']
    """
    granted = sorted({as_epsilon(epsilon) for epsilon in epsilons})
    if len(granted) < 2:
        raise InputError(
            f"a curve needs at least two epsilons; received {list(epsilons)!r}"
        )
    middle = granted[len(granted) // 2]
    chosen = _choose_candidates(policy, workload, middle, mechanisms, records)
    # The same noise at every epsilon: what differs between points is epsilon.
    seed = secrets.randbits(32) if rng is None else rng
    curves = [
        _curve(name, *candidate, granted, records, trials, seed)
        for name, candidate in chosen.items()
    ]
    curves.sort(key=lambda curve: curve.errors[-1])
    drawn = axes_for(axes, (7.5, 4.6), "Drawing errors")
    places = [float(epsilon) for epsilon in granted]
    names = []
    for number, curve in enumerate(curves):
        colour, marker, _ = palette.series(number)
        label = curve.name + (" (typical)" if curve.typical else "")
        drawn.plot(
            places,
            curve.errors,
            color=colour,
            marker=marker,
            linestyle="--" if curve.typical else "-",
            markerfacecolor="white" if curve.typical else colour,
            label=label,
            clip_on=False,
        )
        names.append((label, curve.errors[-1], colour))
    drawn.set_xlabel("epsilon, spent by one release")
    about = f"{workload.queries:,} queries under {type(policy).__name__}, "
    _finish(drawn, places, about + f"{policy.domain.size:,} cells")
    drawn.set_xlim(0.9 * places[0], places[-1])
    line_names(drawn, names, NAME_GAP)
    return drawn


def _finish(axes: Axes, places: list[float], title: str) -> None:
    axes.set(xscale="log", yscale="log", ylabel=ERROR)
    axes.set_xticks(places, labels=[in_full(place) for place in places])
    axes.minorticks_off()
    ticker = require("matplotlib.ticker", extra="plot", purpose="Drawing errors")
    low, high = axes.get_ylim()
    # Two more marks per decade where there are few.
    marks = (1.0,) if high > 1000 * low else (1.0, 2.0, 5.0)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=marks, numticks=12))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(in_full))
    axes.grid(True, which="major", color="0.9")
    axes.set_title(title, fontsize="medium")


def _choose_candidates(
    policy: Policy,
    workload: Workload,
    epsilon: Fraction,
    mechanisms: Sequence[MechanismName | Mechanism] | None,
    records: int | None,
) -> Candidates:
    refuse_wide_advice(policy, workload)
    if mechanisms is None:
        return _best(policy, workload, epsilon, records)
    candidates: Candidates = {
        mechanism.name: (mechanism, False)
        for mechanism in mechanisms
        if isinstance(mechanism, Mechanism)
    }
    for mechanism, _ in candidates.values():
        if (
            mechanism.domain != policy.domain
            or mechanism.workload.domain != policy.domain
        ):
            raise InputError(f"{mechanism!r} lies over another domain than the policy")
    named = [name for name in mechanisms if not isinstance(name, Mechanism)]
    if named or not candidates:
        for line in compare(policy, workload, epsilon=epsilon, mechanisms=named):
            if line.mechanism is None:
                raise InputError(f"{line.name} cannot be used here: {line.reason}")
            candidates[line.name] = line.mechanism, False
    return candidates


def _best(
    policy: Policy,
    workload: Workload,
    epsilon: Fraction,
    records: int | None,
) -> Candidates:
    candidates: Candidates = {}
    for line in compare(policy, workload, epsilon=epsilon, hurried=True):
        if line.admissible and line.mechanism and len(candidates) < MOST_PREDICTED:
            candidates[line.name] = line.mechanism, False
    if records is not None:
        every = recommend(policy, workload, epsilon=epsilon)
        advised = [advice for advice in every if advice.kind == "untried"]
        for advice in advised[:MOST_TYPICAL]:
            assert advice.mechanism is not None
            candidates[f"{advice.name}, fitted"] = advice.mechanism, True
    return candidates


def _curve(
    name: str,
    mechanism: Mechanism,
    typical: bool,
    epsilons: list[Fraction],
    records: int | None,
    trials: int,
    rng: int | None,
) -> Curve:
    if not typical:
        with contextlib.suppress(DataDependentError):
            at_each = [mechanism.at_epsilon(epsilon) for epsilon in epsilons]
            return Curve(name, False, [_predict_error(priced) for priced in at_each])
    if records is None:
        raise InputError(
            f"the error of {name} depends on the data: give a public guess of how many "
            "there are, such as records=10_000, for its typical error"
        )
    shapes = reference_shapes(mechanism.domain, records)
    errors = []
    for epsilon in epsilons:
        at = mechanism.at_epsilon(epsilon)
        by_shape = typical_errors(at, shapes, trials=trials, rng=rng)
        errors.append(geometric_mean(by_shape.values()))
    return Curve(name, True, errors)


def _predict_error(mechanism: Mechanism) -> float:
    total = mechanism.expected_total_error()
    return math.sqrt(max(total, LEAST_ERROR) / max(mechanism.workload.queries, 1))


def tradeoff_over_theta(
    domain: Domain,
    workload: Workload,
    thetas: Sequence[float] | None = None,
    epsilon: Any = 1.0,
    *,
    unit: Literal["cells", "value"] = "cells",
    axes: Axes | None = None,
) -> Axes:
    """Draw the least error under threshold policies, from narrow promises to wide.

    The dashed line is the widest promise, under which any two values are protected. It
    is free: no data is read.

    Parameters
    ----------
    domain : Domain
        One ordered attribute.
    workload : Workload
        The queries.
    thetas : Sequence[float], optional
        How far two values may lie apart and still not be told apart beyond e^epsilon;
        powers of two by default.
    epsilon : number, str or Fraction
        The budget.
    unit : Literal['cells', 'value'], default 'cells'
        Whether `thetas` are in cells or in values.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(128)
    >>> axes = bf.plotting.tradeoff_over_theta(
    ...     line, bf.workloads.AllRanges(line), [1, 8, 64], epsilon=0.5
    ... )
    >>> errors = axes.lines[0].get_ydata()
    >>> bool((errors[1:] > errors[:-1]).all())
    True
    """
    wanted = _thetas(domain, thetas, unit)
    granted = as_epsilon(epsilon)
    widest = best = _least(Full(domain), workload, granted)
    least: list[Least] = []
    for theta in reversed(wanted):
        # What keeps a wider promise keeps this one too.
        here = _least(Threshold(domain, theta, unit=unit), workload, granted)
        best = min(best, here)
        least.insert(0, best)
    drawn = axes_for(axes, (7.5, 4.4), "Drawing a trade-off")
    errors = [line.error for line in least]
    drawn.plot(wanted, errors, "o-", color=palette.BLUE, label="least error")
    drawn.axhline(
        widest.error, color=palette.LIMIT, linestyle="--", label="any two values"
    )
    where = "cells" if unit == "cells" else domain.names[0] or "values"
    drawn.set_xlabel(
        f"theta, in {where} (values this close are not told apart beyond e^eps)"
    )
    drawn.margins(y=0.12)
    about = f"{workload.queries:,} queries on {domain.size:,} cells, "
    _finish(drawn, wanted, about + f"eps = {float(granted):g}")
    _name_changes(drawn, wanted, least)
    names = [
        ("any two values\n(Full)", widest.error, palette.LIMIT),
        ("at most theta\napart", errors[-1], palette.BLUE),
    ]
    line_names(drawn, names, 2 * NAME_GAP)
    return drawn


class Least(NamedTuple):
    """The least predicted error under a policy, and what is measured for it.

    Attributes
    ----------
    error : float
        The error.
    strategy : str
        What is measured.
    """

    error: float
    strategy: str


def _least(policy: Policy, workload: Workload, epsilon: Fraction) -> Least:
    mechanism = Transformed(policy, workload, epsilon=epsilon, partition=None)
    strategy = strategy_name(mechanism._dry_run.details)
    return Least(_predict_error(mechanism), strategy)


def _name_changes(axes: Axes, thetas: list[float], least: list[Least]) -> None:
    """Write what is measured at the first theta from which on it serves best."""
    before = ""
    for number, (theta, best) in enumerate(zip(thetas, least, strict=True)):
        if best.strategy != before:
            late = number > 0.6 * len(thetas)
            name, away = best.strategy.replace("_", " "), (6, -14 if late else -7)
            style = {"ha": "right" if late else "left", "va": "top"}
            note(axes, name, (theta, best.error), away, **style)
        before = best.strategy


def _thetas(domain: Domain, thetas: Sequence[float] | None, unit: str) -> list[float]:
    if thetas is None:
        longest = max(domain.shape)
        step = 1.0
        if unit == "value" and domain.attributes[0].edges is not None:
            edges = domain.attributes[0].edges
            step = (edges[-1] - edges[0]) / domain.size
        doublings = max(longest - 1, 2).bit_length()
        every = 1 if doublings <= MOST_DOUBLINGS else 2
        return [step * 2**doubling for doubling in range(0, doublings, every)]
    wanted = sorted({float(theta) for theta in thetas})
    if len(wanted) < 2 or wanted[0] <= 0:
        raise InputError(
            "a curve needs at least two different thetas above 0; received "
            f"{list(thetas)!r}"
        )
    return wanted
