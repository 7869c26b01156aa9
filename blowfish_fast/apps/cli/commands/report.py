"""``blowfish report``: one page about a saved release, for whoever decides about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli.options import Confidence, Json, Overwrite, ReleaseFile
from blowfish_fast.apps.cli.printing import show, spinner
from blowfish_fast.errors import InputError


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
    from blowfish_fast.apps.cli.files.release_outputs import (
        check_report,
        read_release,
        report_release,
    )

    checked = as_confidence(confidence)
    check_report(out)
    if out.exists() and not overwrite:
        raise InputError(
            f"{out} exists already; allow --overwrite, or choose another name"
        )
    with spinner(f"reading {path.name}") as step:
        release = read_release(path)
        step("writing")
        report_release(release, out, checked, name=str(path), whole=rounded)
    show({"report": str(out)} if as_json else f"written: {out}")
