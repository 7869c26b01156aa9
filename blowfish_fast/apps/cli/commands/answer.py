"""``blowfish answer``: questions to a saved release, for free, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import blowfish_fast as bf
from blowfish_fast._support.compiler_watch import COMPILER, SHORT_FILE, is_short
from blowfish_fast.apps.cli.options import (
    Confidence,
    Json,
    Overwrite,
    Question,
    ReleaseFile,
    SampleWords,
    Together,
    with_options,
)
from blowfish_fast.apps.cli.printing import (
    as_texts,
    plain,
    remark,
    show,
    show_table,
    spinner,
)

if TYPE_CHECKING:
    from blowfish_fast.data.frames import Table

MOST_LINES = 40
SHORT_LIST = 20
"""Ranges that are answered sooner without the compiler."""


@with_options
def run_answer(
    path: ReleaseFile,
    asked: Question,
    chosen: Together,
    sample: SampleWords = None,
    confidence: Confidence = 0.95,
    rounded: Annotated[
        bool,
        typer.Option("--round", help="From whole counts, none negative, that agree."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the table: .csv, .xlsx, .parquet; by polygons a map, .gpkg.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Ask a saved release, with intervals. Free.

    Example: blowfish answer ages.blowfish --where age=20:40 --mean age

    Of a series: blowfish answer weekly.blowfish --last 4 --by age

    Of a map: blowfish answer grid.blowfish --by tracts.geojson:GEOID

    Of a sample: blowfish answer survey.blowfish --sample simple:60000 --share --where
    work=looking --of population

    Of two samples: blowfish answer now.blowfish --with before.blowfish --how difference
    --share --where work=looking --of population
    """
    from blowfish_fast._support.validation import as_confidence
    from blowfish_fast.apps.cli import release_questions as questions
    from blowfish_fast.apps.cli.files import outputs
    from blowfish_fast.apps.cli.files.map_outputs import (
        check_map_of_answers,
        write_answers,
    )
    from blowfish_fast.apps.cli.population_differences import (
        answer_differences,
        check_difference,
    )
    from blowfish_fast.apps.cli.population_questions import drawn_release
    from blowfish_fast.apps.cli.population_rates import answer_rates, check_rate
    from blowfish_fast.data.frames import Table
    from blowfish_fast.data.predicates import extent

    checked = as_confidence(confidence)
    waves = asked.in_population and chosen.how == "difference"
    compares = waves or bool(asked.minus)
    if compares:
        check_difference(asked, waves=waves, rounded=rounded)
    elif asked.per:
        check_rate(asked, rounded=rounded)
    many = asked.file or asked.workload or len(asked.ranges) > SHORT_LIST
    COMPILER.spare(not many and is_short(path, SHORT_FILE))
    as_map = check_map_of_answers(out, asked.by, overwrite=overwrite)
    if not as_map:
        outputs.check_file("table", out, overwrite=overwrite)
    with spinner(f"reading {path.name}") as step:
        loaded = outputs.read_release(path, upto=chosen.upto, last=chosen.last)
        releases = [
            questions.asked_table(each, asked)
            for each in (loaded, *map(outputs.read_release, chosen.others))
        ]
        release = releases[0]
        if chosen.others or chosen.how is not None:
            release = outputs.combined(releases, chosen.how)
        if compares:
            releases = releases if waves else [release]
            if sample is not None:
                releases = [drawn_release(each, sample, asked) for each in releases]
            step("comparing")
            columns, about = answer_differences(releases, asked, checked)
        else:
            if sample is not None:
                release = drawn_release(release, sample, asked)
            if rounded:
                release = outputs.rounded(release)
            step("answering")
            if asked.per:
                columns, about = answer_rates(release, asked, checked)
            else:
                answered = questions.answer_question(release, asked)
                columns, about = questions.add_intervals(
                    release, answered, checked, asked.against
                )
    table = Table(columns, experiment=not release.private)
    if out is not None and as_map:
        promise = f"{release.guarantee} {about}"
        write_answers(table.columns, asked.by[0], out, promise)
    elif out is not None:
        outputs.write_table(table, out, str(release.guarantee))
    if as_json:
        answers = _as_plain(release, table, checked, about)
        written = None if out is None else str(out)
        show({"release": str(path), **answers, "written": written})
        return
    _show(release, table, about)
    if not asked.anything:
        held = "; ".join(extent(attribute) for attribute in loaded.domain.attributes)
        show(f"What can be asked: {held}.")
    if out is not None:
        remark(f"written: {out}")


HELD = {"low", "certified_low", "noise_low", "population_low"}


def _as_plain(
    release: bf.Release, table: Table, confidence: float, about: str
) -> dict[str, Any]:
    from blowfish_fast.release.guarantee import recipe_name

    columns = plain(table.columns)
    return {
        "mechanism": recipe_name(release),
        **release.guarantee.budget.to_dict(),
        "private": release.private,
        "confidence": confidence if HELD & set(columns) else None,
        "interval": about,
        "answers": [
            dict(zip(columns, row, strict=True))
            for row in zip(*columns.values(), strict=True)
        ],
    }


def _show(release: bf.Release, table: Table, about: str) -> None:
    from blowfish_fast.release.guarantee import recipe_name

    show_table(*as_texts(table.columns, MOST_LINES))
    if len(table) > MOST_LINES:
        more = len(table) - MOST_LINES
        show(f"... and {more:,} more: --out FILE.csv has them all")
    show(about)
    show(
        f"Free: {recipe_name(release)} has spent {release.guarantee.spent} on this "
        "release already."
        + ("" if release.private else " Its noise was seeded: it is an experiment.")
    )
