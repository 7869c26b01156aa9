"""Answers of a release by district, at any level, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError, nearest
from blowfish_fast.release.grants import Scope, counted_records
from blowfish_fast.release.group_answers import Claim, GroupedAnswers
from blowfish_fast.release.query_grid import AnswerSource, Held, RowSource
from blowfish_fast.workloads import Regions, Workload
from blowfish_fast.workloads.districts import level_workload

if TYPE_CHECKING:
    from collections.abc import Sequence


def answers_of_level(release: AnswerSource, name: str) -> GroupedAnswers:
    """Return the count of every district of a level of `Nested`.

    Parameters
    ----------
    release : HistogramRelease
        A release of nested districts.
    name : str
        The level.

    Returns
    -------
    GroupedAnswers
        The counts, by id.

    Raises
    ------
    InputError
        If there is no such level, or nothing that was measured fixes its districts.
    """
    levels = release.details.get("levels")
    if not isinstance(levels, list):
        raise InputError(
            "levels of districts are those of a release by Nested",
            received=f"one by {release.mechanism}",
            way_out="Ask for any districts with release.of(labels)",
        )
    if name not in levels:
        raise InputError(
            f"there is no level {name!r}{nearest(str(name), levels)}; there are "
            f"{', '.join(levels)}"
        )
    labels = release.details["districts"].get(name)
    cells = np.arange(release.domain.size) if labels is None else np.asarray(labels)
    asked = level_workload(release.domain, cells.astype(np.int64))
    if not release.holds_truth(asked).all():
        raise InputError(
            f"no level at or below {name!r} had any importance, so nothing was "
            "measured that tells its districts apart",
            way_out=f"Release with nest.workload({name}=...) above 0",
        )
    ids = release.details["district_ids"].get(name)
    return answers_of(
        release, asked, name, cell_ids(release.domain) if ids is None else ids
    )


def cell_ids(domain: Domain) -> Sequence[Any]:
    """Return what cells are called: their levels, or numbers."""
    attribute = domain.attributes[0]
    if domain.ndim > 1 or attribute.levels is None:
        return range(domain.size)
    return (*attribute.levels[: attribute.regular], *attribute.extras)


def district_answers(release: AnswerSource, districts: Any) -> GroupedAnswers:
    """Return the count of every district, any public union of cells.

    Parameters
    ----------
    release : HistogramRelease
        Any release of a histogram.
    districts : array-like, mapping or Regions
        The name of the district of each cell, in C order, None for none; a mapping, or
        a series of pandas with such an index, from ids of cells to names, in which a
        cell that is absent lies in no district; or `Regions`, whose districts are named
        by their numbers.

    Returns
    -------
    GroupedAnswers
        The counts, by name.

    Raises
    ------
    WorkloadError
        If there is not one name per cell.
    InputError
        If a mapping names a cell that there is not.
    """
    asked, names = named_districts(release.domain, districts)
    return answers_of(release, asked, "district", names)


def named_districts(domain: Domain, districts: Any) -> tuple[Workload, Sequence[Any]]:
    """Return the totals of public districts as a workload, and what they are called.

    Parameters
    ----------
    domain : Domain
        The cells.
    districts : array-like, mapping or Regions
        As in `district_answers`.

    Returns
    -------
    workload : Workload
        One query per district.
    names : sequence
        The name of each.
    """
    if isinstance(districts, Regions):
        return districts, range(districts.queries)
    by_id = _by_id(districts)
    if by_id is not None:
        districts = _crosswalk(cell_ids(domain), by_id)
    return Regions.named(domain, districts)


def _by_id(districts: Any) -> Mapping[Any, Any] | None:
    """Return names by the id of their cell, or None where they stand in C order.

    A series of a data frame has an index. Where that is more than a numbering it names
    the cells, and their order in the file is any.
    """
    if isinstance(districts, Mapping):
        return districts
    index = getattr(districts, "index", None)
    if index is None or callable(index) or not hasattr(districts, "items"):
        return None
    by_id = dict(districts.items())
    return None if list(by_id) == list(range(len(districts))) else by_id


def _crosswalk(ids: Sequence[Any], names: Mapping[Any, Any]) -> list[Any]:
    """Return the district of each cell, from a list of cells by id."""
    cells = set(ids)
    unknown = [at for at in names if at not in cells]
    if unknown:
        first = unknown[0]
        raise InputError(
            f"{len(unknown)} of {len(names)} ids are those of no cell"
            f"{nearest(str(first), [str(at) for at in ids])}",
            received=repr(first),
            way_out="Write districts as {id of a cell: name of its district}, ids as "
            "the levels of the domain are written",
        )
    return [names.get(at) for at in ids]


def answers_of(
    release: AnswerSource, asked: Workload, kind: str, ids: Sequence[Any]
) -> GroupedAnswers:
    """Return counts that know their names and intervals.

    Parameters
    ----------
    release : HistogramRelease
        The release.
    asked : Workload
        One query per district.
    kind : str
        What a district is called.
    ids : sequence
        The name of each.

    Returns
    -------
    GroupedAnswers
        The counts.
    """
    return GroupedAnswers(
        [kind],
        [list(ids)],
        "count",
        np.asarray(release.answer(asked), dtype=np.float64).reshape(-1),
        Claim(
            partial(_bounds, release, asked),
            partial(_kind, release, asked),
            release.interval_sentence,
            release,
            counted_records(release),
            partial(_population, release, asked),
            workload=asked,
        ),
        seeded=not release.private,
    )


def _bounds(
    release: AnswerSource, asked: Workload, confidence: float, of: Held
) -> FloatArray:
    if isinstance(of, RowSource):
        return of.intervals(asked, 1)
    bounds: FloatArray = release.intervals(asked, confidence, of=of)
    return bounds


def _kind(release: AnswerSource, asked: Workload) -> Scope:
    kind: Scope = release.interval_kind(asked)
    return kind


def _population(
    release: AnswerSource, asked: Workload, confidence: float, method: Any
) -> FloatArray:
    bounds: FloatArray = release.intervals(
        asked, confidence, of="population", method=method
    )
    return bounds
