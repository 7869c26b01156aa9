"""``blowfish draw`` and ``blowfish report``: a saved release drawn, and on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli.options import (
    Confidence,
    Json,
    Overwrite,
    ReleaseFile,
    refuse_existing,
)
from blowfish_fast.apps.cli.printing import show, spinner
from blowfish_fast.errors import InputError


def run_draw(
    path: ReleaseFile,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The picture: .png, .svg or .pdf.", show_default=False
        ),
    ],
    confidence: Confidence = 0.95,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw a saved release of one or two columns, or errors of many tables. Free.

    Example: blowfish draw ages.blowfish --out ages.svg
    """
    from blowfish_fast._support.validation import as_confidence
    from blowfish_fast.apps.cli.files.outputs import (
        check_picture,
        draw_release,
        read_release,
    )
    from blowfish_fast.release.tables.tables_release import TablesRelease

    checked = as_confidence(confidence)
    check_picture(out)
    refuse_existing(out, overwrite=overwrite)
    with spinner(f"reading {path.name}") as step:
        release = read_release(path)
        domain = release.domain
        if domain.ndim > 2 and not isinstance(release, TablesRelease):
            raise InputError(
                f"a picture shows one or two columns; this release has {domain.ndim}. "
                f"`blowfish answer {path} --by {domain.names[0]}` gives a table of some"
            )
        step("drawing")
        draw_release(release, out, checked)
    found = {"picture": str(out), "mechanism": release.mechanism, "cells": domain.size}
    show(found if as_json else f"written: {out}")


def run_report(
    path: ReleaseFile,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The page: .html.", show_default=False)
    ],
    rounded: Annotated[
        bool, typer.Option("--round", help="Show whole counts, none negative, too.")
    ] = False,
    confidence: Confidence = 0.95,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write one page: promise, picture, table, accuracy. Free.

    Example: blowfish report ages.blowfish --out ages.html
    """
    from blowfish_fast._support.validation import as_confidence
    from blowfish_fast.apps.cli.files.outputs import (
        check_report,
        read_release,
        write_report,
    )

    checked = as_confidence(confidence)
    check_report(out)
    refuse_existing(out, overwrite=overwrite)
    with spinner(f"reading {path.name}") as step:
        release = read_release(path)
        step("writing")
        write_report(release, out, checked, name=str(path), whole=rounded)
    show({"report": str(out)} if as_json else f"written: {out}")
