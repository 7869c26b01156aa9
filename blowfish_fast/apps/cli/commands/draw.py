"""``blowfish draw`` and ``blowfish report``: a saved release drawn, and on a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blowfish_fast._support.compiler_watch import COMPILER, SHORT_FILE, is_short
from blowfish_fast.apps.cli.options import (
    Confidence,
    Json,
    Overwrite,
    ReleaseFile,
    SampleWords,
    refuse_existing,
)
from blowfish_fast.apps.cli.printing import show, spinner
from blowfish_fast.errors import InputError

if TYPE_CHECKING:
    from blowfish_fast.accounting.series.saved import SavedSeries
    from blowfish_fast.release.file import Release


def run_draw(
    path: ReleaseFile,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="The picture: .png, .svg or .pdf; or a map: .gpkg, .geojson, .tif.",
        ),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Draw counts by this; at most two."),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="Of a series: so many epochs together, in place of running totals.",
        ),
    ] = None,
    districts: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:ID", help="Polygons of the cells: drawn as a hatched map."
        ),
    ] = None,
    map_system: Annotated[
        str | None,
        typer.Option(
            metavar="SYSTEM",
            help="Reference system of a map of columns x and y, such as EPSG:2056.",
        ),
    ] = None,
    confidence: Confidence = 0.95,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw a saved release, the errors of many tables, or a series. Free.

    Of more than two columns the first is drawn, with a line for each value of another
    that has few; --by names others. A series is drawn over time, its running totals
    with their bands.

    Example: blowfish draw ages.blowfish --out ages.svg

    Of districts: blowfish draw tracts.blowfish --districts tracts.geojson --out a.gpkg
    """
    from blowfish_fast.apps.cli.files import map_outputs, outputs

    as_map = out.suffix.lower() in map_outputs.ENDINGS
    if as_map:
        refuse_existing(out, overwrite=overwrite)
    else:
        outputs.check_file("picture", out, overwrite=overwrite)
    if map_system is not None and not as_map:
        raise InputError(
            "a picture states no reference system",
            received=f"--map-system {map_system}",
            way_out="Draw a map: --out FILE.gpkg or FILE.tif",
        )
    if (districts is not None or as_map) and (by or last):
        raise InputError("a map shows all cells; leave --by and --last out")
    with _saved_release(path, out, confidence) as release:
        if as_map:
            asked = outputs.asked_release(release)
            shapes = map_outputs.polygons_of_cells(asked, districts)
            map_outputs.check_map(out, asked.domain, shapes, map_system)
            map_outputs.write_map(asked, out, shapes, confidence, map_system)
        elif districts is not None:
            asked = outputs.asked_release(release)
            shapes = map_outputs.polygons_of_cells(asked, districts)
            drawn = partial(map_outputs.map_axes, asked, shapes, confidence)
            outputs.write_picture(drawn, out)
        else:
            drawn = partial(outputs.release_axes, release, confidence, by or (), last)
            outputs.write_picture(drawn, out)
    shown = outputs.asked_release(release)
    about = {"mechanism": shown.mechanism, "cells": shown.domain.size}
    show({"picture": str(out), **about} if as_json else f"written: {out}")


def run_report(
    path: ReleaseFile,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page: .html.")
    ] = None,
    registry: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An entry of the public registry of deployments, registry.opendp.org: "
            ".yaml, with what release and ledger tell.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --registry: the ledger that paid."),
    ] = None,
    curator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --registry: who publishes it."),
    ] = None,
    rounded: Annotated[
        bool, typer.Option("--round", help="Show whole counts, none negative, too.")
    ] = False,
    sample: SampleWords = None,
    confidence: Confidence = 0.95,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write one page: promise, picture, table, accuracy. Free.

    Example: blowfish report ages.blowfish --out ages.html
    """
    from blowfish_fast.apps.cli.files import outputs
    from blowfish_fast.apps.cli.files.registry_entry import filled_entry, title_of

    files = {"report": out, "registry": registry}
    written = {kind: file for kind, file in files.items() if file is not None}
    if not written or (registry is None and (ledger or curator)):
        raise InputError(
            "a report is a page, --out FILE.html, or an entry of the registry, "
            "--registry FILE.yaml, to which --ledger and --curator belong"
        )
    for kind, file in written.items():
        outputs.check_file(kind, file, overwrite=overwrite)
    with _saved_release(path, next(iter(written.values())), confidence) as release:
        if out is not None:
            terms: Any = {"name": str(path), "whole": rounded, "sample": sample}
            outputs.write_report(release, out, confidence, **terms)
        if registry is not None:
            title = title_of(outputs.asked_release(release), release)
            entry = filled_entry(release, title, str(path), ledger, curator)
            registry.write_text(entry, encoding="utf-8")
    names = {kind: str(file) for kind, file in written.items()}
    show(names if as_json else f"written: {', '.join(names.values())}")


@contextmanager
def _saved_release(
    path: Path, out: Path, confidence: float
) -> Iterator[Release | SavedSeries]:
    """Yield a release for which `out` is written, under a spinner."""
    from blowfish_fast._support.validation import as_confidence
    from blowfish_fast.apps.cli.files.outputs import read_release, read_series

    as_confidence(confidence)
    COMPILER.spare(is_short(path, SHORT_FILE))
    with spinner(f"reading {path.name}") as step:
        release = read_series(path) or read_release(path)
        step(f"writing {out.name}")
        yield release
