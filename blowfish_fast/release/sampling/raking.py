"""Raking after the release: noisy counts that are made to agree with known margins.

Weights that are raked on a sample depend on everybody in it, so that no release can be
charged for them. The same adjustment on counts that are published already is free:

    published      known margins          raked
     40  10          ?   ? | 600       400 200 | 600
     20  30          ?   ? | 400       100 300 | 400
                    ---------         ---------
                   500 500             500 500

Each step scales rows, or columns, to their margin. The odds of every four cells stay as
they were published: 40 * 30 / (10 * 20) is 400 * 300 / (200 * 100).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast._support.validation import malformed_as, quoted
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.frames import Table, cell_columns
from blowfish_fast.errors import InputError
from blowfish_fast.release.grants import BOUND_NAMES

from .raked_intervals import intervals_with_margins

MOST_ROUNDS = 10_000
"""Passes over all margins; it ends sooner where they agree."""

CLOSE = 1e-10
"""Margins agree where they are this far off at the most, as a part of all people."""


def rake(
    release: Any, margins: Mapping[Any, Any], *, confidence: float | None = None
) -> Table:
    """Return published counts scaled until they agree with known margins; free.

    Post-stratification where one margin is known, raking where there are several. It
    reads published numbers and public ones alone, so it costs no privacy. Intervals are
    those of the stated design, shortened by the margins. Where people are missing from
    the sample unevenly, which is what raking is mostly used for, no design is right and
    no interval is known.

    Parameters
    ----------
    release : HistogramRelease or CombinedRelease
        Noisy counts of the records of a sample.
    margins : mapping from attribute to mapping from level to number
        How many people of the population there are, of each level of an attribute. An
        attribute of cells between edges takes a list, a number for each cell.
    confidence : float, optional
        How surely intervals of all cells hold at once, over the draw of the sample and
        the noise; without it there are none. The release has a design, and the margins
        are true of its people.

    Returns
    -------
    Table
        A row for each cell, with the column ``people``; with `confidence`, also
        ``population_low`` and ``population_high``. Nobody is in cells of missing
        values and of values outside, since no margin tells how many there are.

    Raises
    ------
    InputError
        If a margin lacks a level, has people where no record was counted, or the
        margins add up to different numbers.

    Notes
    -----
    Source: W. E. Deming, F. F. Stephan. On a least squares adjustment of a sampled
    frequency table when the expected marginal totals are known. Annals of Mathematical
    Statistics 11 (1940).

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> table = bf.Domain.product(
    ...     bf.Domain.from_levels(["F", "M"], name="sex"),
    ...     bf.Domain.from_levels(["north", "south"], name="region"),
    ... )
    >>> laplace = bf.Laplace(bf.policies.Full(table), epsilon=1)
    >>> release = laplace.release([[40, 10], [20, 30]], rng=1)
    >>> raked = bf.sampling.rake(
    ...     release,
    ...     {"sex": {"F": 600, "M": 400}, "region": {"north": 500, "south": 500}},
    ... )
    >>> people = raked["people"].reshape(2, 2)
    >>> people.sum(axis=1).round(6).tolist(), people.sum(axis=0).round(6).tolist()
    ([600.0, 400.0], [500.0, 500.0])
    """
    estimate = getattr(release, "estimate", None)
    if not isinstance(estimate, np.ndarray):
        raise InputError(
            "raking scales the counts of a release of a histogram",
            received=quoted(release),
            way_out='Take one table of many: release.table("age", "sex")',
        )
    people_along = _read(release.domain, margins)
    counts = np.maximum(estimate.astype(np.float64), 0.0)
    for axis, attribute in enumerate(release.domain.attributes):
        inside = np.arange(counts.shape[axis]) < attribute.regular
        counts = counts * _along(inside.astype(np.float64), axis, counts.ndim)
    raked = _scaled(counts, people_along)
    places = np.unravel_index(np.arange(release.domain.size), release.domain.shape)
    columns = cell_columns(release.domain, list(places))
    columns["people"] = raked.reshape(-1)
    if confidence is not None:
        ends = intervals_with_margins(release, people_along, raked, confidence)
        low, high = BOUND_NAMES["population"]
        columns[low], columns[high] = ends.T
    return Table(columns, experiment=not release.private)


def _read(domain: Domain, margins: Mapping[Any, Any]) -> dict[int, FloatArray]:
    """Return the people of each cell along each attribute that has a margin."""
    if not isinstance(margins, Mapping) or not margins:
        raise InputError(
            "margins are stated by attribute",
            received=quoted(margins),
            way_out='Write {"sex": {"F": 25_000, "M": 24_000}}',
        )
    people_along: dict[int, FloatArray] = {}
    for name, stated in margins.items():
        axis = domain.axis(name)
        attribute = domain.attributes[axis]
        people_along[axis] = _margin(name, attribute, stated)
    totals = {
        str(name): float(people_along[domain.axis(name)].sum()) for name in margins
    }
    least, most = min(totals.values()), max(totals.values())
    if most - least > 1e-6 * most:
        raise InputError(
            "all margins are of the same people, and add up to one number",
            received=", ".join(
                f"{total:g} of {name}" for name, total in totals.items()
            ),
        )
    # What registers round is evened out, or no number of passes would suffice.
    return {
        axis: people * (most / people.sum()) for axis, people in people_along.items()
    }


def _margin(name: Any, attribute: Axis, stated: Any) -> FloatArray:
    """Return the people of each cell, those of extra cells 0."""
    levels = None if attribute.levels is None else attribute.levels[: attribute.regular]
    if isinstance(stated, Mapping):
        if levels is None or {*stated} != {*levels}:
            raise InputError(
                f"the margin of {name} has a number for every level, and no other",
                received=f"{', '.join(map(repr, stated))}",
                way_out="List the numbers in the order of the cells"
                if levels is None
                else f"The levels are {', '.join(map(repr, levels))}",
            )
        stated = [stated[level] for level in levels]
    with malformed_as(InputError, f"the margin of {name} consists of numbers"):
        people = np.asarray(stated, dtype=np.float64)
    if people.shape != (attribute.regular,) or not (people >= 0).all():
        raise InputError(
            f"the margin of {name} has a number, 0 or more, for each of "
            f"{attribute.regular} cells",
            received=quoted(stated),
        )
    if not np.isfinite(people).all() or people.sum() <= 0:
        raise InputError(f"the margin of {name} is of people", received=quoted(stated))
    extra = attribute.size - attribute.regular
    whole: FloatArray = np.concatenate([people, np.zeros(extra)])
    return whole


def _along(values: AnyArray, axis: int, axes: int) -> AnyArray:
    """Return values of one axis in the shape of a table that they multiply."""
    return values.reshape([-1 if at == axis else 1 for at in range(axes)])


def _scaled(counts: FloatArray, people_along: Mapping[int, FloatArray]) -> FloatArray:
    """Scale to one margin after the other until all of them hold."""
    others = {
        axis: tuple(at for at in range(counts.ndim) if at != axis)
        for axis in people_along
    }
    everybody = float(next(iter(people_along.values())).sum())
    for axis, people in people_along.items():
        empty = (counts.sum(axis=others[axis]) <= 0.0) & (people > 0.0)
        if empty.any():
            raise InputError(
                "people can be scaled from records where records were counted",
                received=f"{people[empty][0]:g} people in cell {int(empty.argmax())} "
                f"of attribute {axis}, and no count above 0 there",
                way_out="Merge it with a neighbour before the release, or after it by "
                "adding both up",
            )
    raked = counts
    for _ in range(MOST_ROUNDS):
        worst = 0.0
        for axis, people in people_along.items():
            held = raked.sum(axis=others[axis])
            worst = max(worst, float(np.abs(held - people).max()) / everybody)
            factors = np.divide(people, held, out=np.zeros_like(held), where=held > 0.0)
            raked = raked * _along(factors, axis, raked.ndim)
        if worst <= CLOSE:
            return raked
    raise InputError(
        "margins agree with each other where records were counted",
        received=f"some that are still {worst:.2g} of all people off after "
        f"{MOST_ROUNDS:,} passes",
        way_out="Cells without a count stay without people: merge levels, or release "
        "with a larger budget",
    )
