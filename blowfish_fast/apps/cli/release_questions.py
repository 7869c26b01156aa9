"""Questions to a release, each answered by a table of estimates and intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast.apps.cli.exit_codes import reword
from blowfish_fast.apps.cli.heavy_cells import answer_list, refuse_others
from blowfish_fast.apps.cli.options import Question
from blowfish_fast.apps.cli.parsing.domain import (
    find_column,
    names_polygons,
    parse_polygons,
)
from blowfish_fast.apps.cli.parsing.where import (
    parse_condition,
    parse_edges,
    parse_queries,
    read_queries,
)
from blowfish_fast.apps.cli.parsing.workload import parse_workload
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.frames import rows_of
from blowfish_fast.data.listed_items import split_name
from blowfish_fast.data.predicates import attribute_cover
from blowfish_fast.errors import InputError, IntervalError
from blowfish_fast.measure.strategies.answers import Answers
from blowfish_fast.release.chosen_release import ChosenTablesRelease
from blowfish_fast.release.file import Release
from blowfish_fast.release.grants import (
    BOUND_NAMES,
    Scope,
    counts_records,
    shown_counts,
)
from blowfish_fast.release.group_answers import POPULATION_COUNT, GroupedAnswers
from blowfish_fast.release.olap import Groups, Selection
from blowfish_fast.release.places.polygon_answers import CUT_CELLS, cut_cells
from blowfish_fast.release.quantiles import in_values
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.release.tables_release import TablesRelease
from blowfish_fast.release.wide.ranges_release import RangesRelease
from blowfish_fast.release.wide.sparse_release import SparseRelease
from blowfish_fast.workloads import Rectangles, Workload

from .answer_table import AnswerTable, counting_rows, group_columns, query_columns
from .population_questions import (
    add_population,
    check_population,
    people_of,
    people_sentence,
    refuse_unequal,
)

CONFIDENCE = 0.95
COUNT, SHARE = "count", "relative_count"
ANSWERED = ("count", *(end for ends in BOUND_NAMES.values() for end in ends))
"""Columns of answers."""
PARTS = (
    "Parts of a cell count in proportion, as if its records were spread evenly; what "
    "that is off by is not covered."
)
UNMEASURED = (
    "No intervals: only the queries that the release was made for were measured. Other "
    "answers are worked out from those as if records were spread evenly, and may be "
    "far off."
)


def answer_question(release: Release, asked: Question) -> AnswerTable:
    """Answer what is asked; without any words, count all records.

    Parameters
    ----------
    release : Release
        A release of all cells.
    asked : Question
        The options of ``blowfish answer``.

    Returns
    -------
    AnswerTable
        The estimates, and how their intervals are found.

    Raises
    ------
    InputError
        If several kinds of questions are asked at once.
    """
    kinds = {
        "--range or --ranges": bool(asked.ranges or asked.file),
        "--workload": asked.workload is not None,
        "--where, --by, --count, --share, --sum, --mean, --std or --quantile": (
            asked.selects
        ),
    }
    chosen = [name for name, is_asked in kinds.items() if is_asked]
    if len(chosen) > 1:
        raise InputError(
            f"ask one kind of question at a time; received {' and '.join(chosen)}"
        )
    check_population(release, asked)
    if isinstance(release, SparseRelease):
        return answer_list(release, asked)
    if isinstance(release, RangesRelease):
        return _answer_wide_ranges(release, asked)
    if asked.ranges or asked.file:
        return _answer_ranges(release, asked)
    if any(map(names_polygons, asked.by)) or _names_level(release, asked.by):
        return _answer_places(release, asked)
    if asked.quantiles or asked.quantile_of:
        return _answer_quantiles(release, asked)
    if asked.workload is not None:
        workload = parse_workload(asked.workload, release.domain)
        return _answer_workload(release, workload, query_columns(workload), asked)
    return _answer_selection(release, asked)


def _answer_wide_ranges(release: RangesRelease, asked: Question) -> AnswerTable:
    """Return counts of ranges of a wide domain: listed, in a file, or selected."""
    refuse_others(asked, "holds totals of buckets", "--where, --range and --ranges")
    domain: Any = release.domain
    if asked.workload is not None:
        workload = parse_workload(asked.workload, domain)
        return _answer_workload(release, workload, query_columns(workload), asked)
    words = list(asked.ranges)
    if domain.ndim > 1 and (words or asked.file is not None):
        raise InputError(
            "this release is a map of two columns; ask it by both",
            way_out="State --where "
            + " --where ".join(f"{name}=FROM..TO" for name in domain.column_names)
            + ", or --workload rectangles:FILE",
        )
    if asked.file is not None:
        rows = rows_of(asked.file, "query")
        if rows and not any(text[:1].isdigit() or text[:1] == "-" for text in rows[0]):
            rows = rows[1:]
        words += ["..".join(row) for row in rows]
    if not words:
        words = [" and ".join(asked.where) or "all records"]
        conditions = [parse_condition(text, domain) for text in asked.where]
        if len(dict(conditions)) < len(conditions):
            raise InputError(
                "state each column of this release once, with commas between ranges"
            )
        chosen = [release.where(dict(conditions))]
    else:
        called = domain.column_names[0]
        parsed = [parse_condition(f"{called}={text}", domain) for text in words]
        chosen = [release.where({axis: condition}) for axis, condition in parsed]
    return AnswerTable(
        {
            " and ".join(domain.column_names): np.array(words, dtype=object),
            "count": np.array([selection.count() for selection in chosen]),
        },
        lambda confidence, of: np.array(
            [answer.interval(confidence, of=of) for answer in chosen]
        ),
        lambda _: "truth",
        lambda kind, confidence: release.interval_sentence(kind, confidence),
        (),
        counts=("count", np.full(len(chosen), True)),
    )


def asked_table(release: Release, asked: Question) -> Release:
    """Return, of many tables, the one over the columns that a question names.

    Parameters
    ----------
    release : Release
        A release of any kind.
    asked : Question
        The options of ``blowfish answer``.

    Returns
    -------
    Release
        Of many tables, the one that the question needs; any other release as it is.
    """
    if not isinstance(release, TablesRelease):
        return release
    # Where the data chose, tables that were not measured come from the model.
    model = isinstance(release, ChosenTablesRelease)
    take = release.fitted if model else release.table
    if asked.ranges or asked.file or asked.workload:
        return take(tuple(range(release.domain.ndim)))
    measured = [asked.sum_of, asked.mean_of, asked.std_of, asked.quantile_of]
    compared = (*asked.minus, *asked.per)
    named = (*asked.where, *asked.by, *compared, *measured)
    words = [word for word in named if word]
    if asked.quantiles and asked.quantile_of is None:
        raise _unnamed_column(release)
    axes = {find_column(split_name(word)[0], release.domain) for word in words}
    return take(sorted(axes) or release.asked[0])


def _unnamed_column(release: Release) -> InputError:
    """Return the refusal of quantiles of nothing in particular."""
    return InputError(
        "say of which column: --quantile 0.5 --of COLUMN; this release has "
        f"{', '.join(release.domain.column_names)}"
    )


def measures_answers(release: Release) -> bool:
    """Return whether noise was put on the queries themselves, and on nothing else."""
    kinds = [measurement.strategy.kind for measurement in release.measurements]
    return release.interval_scope == "noise" and Answers.kind in kinds


def add_intervals(
    release: Release,
    table: AnswerTable,
    confidence: float,
    against: str | None = None,
) -> tuple[dict[str, AnyArray], str]:
    """Add the columns of intervals; say what they hold, or why there are none.

    Parameters
    ----------
    release : Release
        What the answers are read off.
    table : AnswerTable
        What `answer_question` returned.
    confidence : float
        Of the intervals.
    against : str, optional
        A number that answers about the population are held against.

    Returns
    -------
    tuple of dict and str
        The columns of the table, with two more for the ends of intervals, and a
        sentence about them.
    """
    columns = dict(table.columns)
    if table.noise_shares is not None:
        return add_population(table, table.noise_shares, confidence, against)
    try:
        kind = table.kind(confidence)
        low, high = BOUND_NAMES[kind]
        bounds = table.bounds(confidence, of=kind)
        if kind != "noise" and table.counts is not None:
            name, rows = table.counts
            shown = shown_counts(columns[name][rows], bounds[rows])
            columns[name], bounds = columns[name].copy(), bounds.copy()
            columns[name][rows], bounds[rows] = shown
        columns[low], columns[high] = bounds.T
    except IntervalError as problem:
        if measures_answers(release):
            return columns, UNMEASURED
        return columns, f"No intervals: {reword(problem)['message']}."
    sentence = table.sentence(kind, confidence)
    return (
        columns,
        f"{sentence} {PARTS}" if table.cuts_cells and kind == "noise" else sentence,
    )


def _answer_ranges(release: Release, asked: Question) -> AnswerTable:
    if asked.ranges and asked.file:
        raise InputError("give ranges as words, --range, or in a file, --ranges")
    domain = release.domain
    if asked.file is not None:
        boxes, columns = read_queries(asked.file, domain)
    else:
        boxes = parse_queries(asked.ranges, domain)
        columns = {",".join(domain.column_names): np.array(asked.ranges, dtype=object)}
    table = _answer_workload(release, boxes, columns, asked)
    if boxes.whole_cells or asked.in_population:
        return table
    return replace(
        table,
        bounds=partial(_cut_bounds, release, boxes),
        kind=lambda _: _truth_if(
            all(release.holds_truth(box).all() for box in _cut_boxes(boxes))
        ),
        sentence=release.interval_sentence,
    )


def _truth_if(held: bool) -> Scope:
    return "truth" if held else "noise"


def _cut_boxes(boxes: Rectangles) -> tuple[Rectangles, Rectangles]:
    """Return the whole cells inside each box (or around it), and those it touches."""
    lows, highs = np.floor(boxes.starts), np.ceil(boxes.ends)
    inner = np.ceil(boxes.starts), np.floor(boxes.ends)
    empty = (inner[0] >= inner[1]).any(axis=1, keepdims=True)
    inside = np.where(empty, lows, inner[0]), np.where(empty, highs, inner[1])
    return Rectangles(boxes.domain, *inside), Rectangles(boxes.domain, lows, highs)


def _cut_bounds(
    release: Release, boxes: Rectangles, confidence: float, of: Scope
) -> FloatArray:
    """Return intervals of boxes that cut cells: between the cells inside and around."""
    if of == "noise":
        noise: FloatArray = release.intervals(boxes, confidence, of="noise")
        return noise
    inner, outer = _cut_boxes(boxes)
    low = release.intervals(inner, confidence, of="truth")[:, 0]
    high = release.intervals(outer, confidence, of="truth")[:, 1]
    whole = (np.ceil(boxes.starts) < np.floor(boxes.ends)).all(axis=1)
    return np.stack([np.where(whole, low, 0.0), high], axis=-1)


def _answer_workload(
    release: Release,
    asked: Workload,
    columns: dict[str, AnyArray],
    question: Question,
) -> AnswerTable:
    """Answer queries beside columns that say what each is."""
    beside = {
        f"{name}_asked" if name in ANSWERED else name: column
        for name, column in columns.items()
    }
    if question.in_population:
        people, parts = people_of(release, asked)
        return AnswerTable(
            {**beside, POPULATION_COUNT: people},
            partial(release.intervals, asked, method=question.method),
            lambda _: "population",
            partial(people_sentence, release, question),
            (asked,),
            noise_shares=parts,
        )
    # A difference of releases may be below 0, and so may its truth.
    of_records = getattr(release, "counts_people", True) and counts_records(asked)
    return AnswerTable(
        {**beside, "count": release.answer(asked)},
        partial(release.intervals, asked),
        partial(release.interval_kind, asked),
        partial(release.interval_sentence, workload=asked),
        (asked,),
        cuts_cells=isinstance(asked, Rectangles) and not asked.whole_cells,
        counts=("count", np.full(asked.queries, of_records)),
    )


def _names_level(release: Release, by: list[str]) -> bool:
    """Return whether words are a level of nested districts, and no column."""
    levels = release.details.get("levels")
    columns = [str(name) for name in release.domain.column_names]
    return isinstance(levels, list) and any(
        name.strip() in levels and name.strip() not in columns for name in by
    )


def _answer_places(release: Release, asked: Question) -> AnswerTable:
    """Return counts of polygons or of nested districts, by name."""
    others = [asked.sum_of, asked.mean_of, asked.std_of, asked.of, asked.share]
    if len(asked.by) > 1 or asked.where or asked.quantiles or any(others):
        raise InputError(
            "polygons, and levels of districts, are asked for counts of all records, "
            "--by FILE:ID or --by LEVEL alone"
        )
    if not isinstance(release, HistogramRelease):
        raise InputError(
            "polygons are asked of a release of a grid or of districts",
            received=type(release).__name__,
        )
    if not names_polygons(asked.by[0]):
        counts = release.level(asked.by[0].strip())
        return _line_by_line(group_columns([counts]), [counts], False, asked)
    districts = parse_polygons(asked.by[0], "id")
    answers = release.of(districts)
    table = _line_by_line(group_columns([answers]), [answers], False, asked)
    if release.domain.ndim == 1 or cut_cells(release, districts).along_cells:
        return table
    return replace(
        table,
        sentence=lambda kind, confidence: (
            f"{answers.interval_sentence(kind, confidence)} {CUT_CELLS}"
        ),
    )


def _answer_quantiles(release: Release, asked: Question) -> AnswerTable:
    """Return places along one column: of all records, of a selection, or by group."""
    domain, parts = release.domain, asked.quantiles
    others = (asked.count, asked.share, asked.sum_of, asked.mean_of, asked.std_of)
    if any(others) or not parts:
        raise InputError(
            "ask for quantiles alone, --quantile 0.5, with --of, --where and --by"
        )
    if domain.ndim > 1 and asked.quantile_of is None:
        raise _unnamed_column(release)
    axis = find_column(asked.quantile_of or "0", domain)
    attribute = domain.attributes[axis]
    name = domain.column_names[axis] if attribute.cuts is not None else "cell"
    name = "value" if name in (*ANSWERED, "quantile", *_group_names(asked)) else name
    selects = asked.where or asked.by or attribute.extras or asked.in_population
    if domain.ndim == 1 and not selects:
        return AnswerTable(
            {
                "quantile": np.array(parts),
                name: release.quantile(parts),
            },
            partial(release.quantile_intervals, parts),
            lambda confidence: _truth_if(release.knows_totals(confidence)),
            partial(_say_together, release),
            (release.where().quantile(axis, parts[0])._answers,),
        )
    if asked.in_population:
        refuse_unequal(release, "quantile")
    selection, grouped, cut = select_records(release, asked)
    if grouped is None:
        one_by_one = [selection.quantile(axis, part) for part in parts]
        beside = {"where": _words(_selected(asked, attribute), parts)}
        numbers = np.array([float(answer) for answer in one_by_one])
        values = in_values(numbers, attribute.unit)
        columns = {**beside, "quantile": np.array(parts), name: values}
        listed = [answer._answers for answer in one_by_one]
        return _line_by_line(columns, listed, cut, asked)
    groups = grouped(selection)
    answers = [groups.quantile(axis, part) for part in parts]
    columns = group_columns(answers)
    values = columns.pop("quantile")
    repeated = np.repeat(parts, len(values) // len(parts))
    columns = {**columns, "quantile": repeated, name: values}
    return _line_by_line(columns, answers, cut, asked)


def _line_by_line(
    columns: dict[str, AnyArray],
    answers: list[GroupedAnswers],
    cuts_cells: bool,
    asked: Question,
) -> AnswerTable:
    """Return a table with a line for each group of each answer."""
    method: Any = asked.method
    return AnswerTable(
        columns,
        lambda confidence, of: np.concatenate(
            [
                in_values(
                    answer.intervals(confidence, of=of, method=method), answer.unit
                )
                for answer in answers
            ]
        ),
        lambda confidence: max(
            (answer.interval_kind(confidence) for answer in answers),
            key=[*BOUND_NAMES].index,
        ),
        lambda kind, confidence: " ".join(
            dict.fromkeys(
                answer.interval_sentence(kind, confidence, method) for answer in answers
            )
        ),
        tuple(answers),
        cuts_cells=cuts_cells,
        counts=counting_rows(columns, answers),
        noise_shares=(
            (lambda: [part for answer in answers for part in answer.variance_parts()])
            if asked.in_population
            else None
        ),
    )


def _say_together(release: Release, kind: Scope, confidence: float) -> str:
    if kind == "noise":
        sentence: str = release.interval_sentence(kind)
        return sentence
    return (
        "All intervals together hold the true values with probability at least "
        f"{confidence:.15g}."
    )


def _group_names(asked: Question) -> list[str]:
    return [split_name(words)[0] for words in asked.by]


def _words(text: str, beside: Sequence[Any]) -> AnyArray:
    return np.array([text] * len(beside), dtype=object)


def select_records(
    release: Release, asked: Question
) -> tuple[Selection, Callable[[Selection], Groups] | None, bool]:
    """Return the selected records, how to group them, and whether cells are cut.

    Parameters
    ----------
    release : Release
        What is asked.
    asked : Question
        Its conditions and groups.

    Returns
    -------
    selection : Selection
        The records that meet all conditions.
    grouped : callable or None
        Breaks a selection down; None where nobody asked for groups.
    cut : bool
        Whether a condition or an edge cuts cells.
    """
    domain = release.domain
    selection = release.where()
    conditions = [parse_condition(words, domain) for words in asked.where]
    for axis, condition in conditions:
        selection = selection.where({axis: condition})
    names, bins = _groups(asked.by, domain)
    ends = [
        (axis, slice(None, edge))
        for axis, edges in bins.items()
        if domain.attributes[axis].levels is None
        for edge in edges
    ]
    cut = any(
        end != int(end)
        for axis, condition in [*conditions, *ends]
        for interval in attribute_cover(domain.attributes[axis], condition)
        for end in interval
    )
    if not asked.by:
        return selection, None, cut
    named = {str(domain.names[axis]): edges for axis, edges in bins.items()}
    return selection, lambda chosen: chosen.group_by(*names, **named), cut


def _answer_selection(release: Release, asked: Question) -> AnswerTable:
    measures = _measures(asked, release.domain)
    selection, grouped, cut = select_records(release, asked)
    if grouped is None:
        answers = [_measured(selection, name, axis, asked) for name, axis in measures]
        attributes = [
            None if axis is None else release.domain.attributes[axis]
            for _, axis in measures
        ]
        columns = {
            "where": np.array(
                [_selected(asked, attribute) for attribute in attributes], dtype=object
            ),
            "measure": np.array(
                [answer._answers.measure for answer in answers], dtype=object
            ),
            "estimate": np.array([float(answer) for answer in answers]),
        }
        listed = [answer._answers for answer in answers]
        return _line_by_line(columns, listed, cut, asked)
    if len(measures) > 1:
        raise InputError(
            "with --by, ask for one of --count, --share, --sum, --mean and --std"
        )
    (name, column) = measures[0]
    by_group = _measured(grouped(selection), name, column, asked)
    return _line_by_line(group_columns([by_group]), [by_group], cut, asked)


def _selected(asked: Question, attribute: Axis | None) -> str:
    """Return whom an answer is about; of an attribute, those who have a value."""
    everyone = "all records"
    if attribute is not None and attribute.extras:
        everyone = f"all with a value of {attribute.name}"
    return " and ".join(asked.where) or everyone


def _measured(questions: Any, name: str, axis: int | None, asked: Question) -> Any:
    """Return one measure of a selection or of groups: of records, or of people."""
    source = questions
    if asked.in_population:
        if name in (COUNT, SHARE, "mean"):
            source = questions.in_population()
        else:
            refuse_unequal(questions._release, name)
    return getattr(source, name)(*(() if axis is None else (axis,)))


def _measures(asked: Question, domain: Domain) -> list[tuple[str, int | None]]:
    """Return the names of what is measured, each with its attribute."""
    named = (("sum", asked.sum_of), ("mean", asked.mean_of), ("std", asked.std_of))
    measures: list[tuple[str, int | None]] = [
        (measure, find_column(column, domain))
        for measure, column in named
        if column is not None
    ]
    if asked.share:
        measures.insert(0, (SHARE, None))
    return [(COUNT, None), *measures] if asked.count or not measures else measures


def _groups(by: list[str], domain: Domain) -> tuple[list[int], dict[int, list[Any]]]:
    """Return the axes that are broken down by cell, and those by edges."""
    names: list[int] = []
    bins: dict[int, list[Any]] = {}
    for words in by:
        name, edges = split_name(words)
        axis = find_column(name, domain)
        if not edges:
            names.append(axis)
        elif domain.names[axis] is None:
            raise InputError(
                f"columns without a name are broken down by cell, --by {axis}; "
                f"received {words!r}"
            )
        else:
            bins[axis] = parse_edges(edges, domain.attributes[axis])
    return names, bins
