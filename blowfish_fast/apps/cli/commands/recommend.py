"""``blowfish recommend``: which mechanism to use, and why.

Words become public facts (``words``): ``--cells 64x64``, ``--policy threshold:10``,
``--workload ranges:2000``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.advice.recommendation import Advice, Recommendation, recommend
from blowfish_fast.apps.cli.files.array_files import loaded_array
from blowfish_fast.apps.cli.files.release_outputs import Outputs
from blowfish_fast.apps.cli.parsing.job_file import Job
from blowfish_fast.apps.cli.parsing.words import (
    parsed_domain,
    parsed_policy,
    parsed_workload,
)
from blowfish_fast.apps.cli.printing import console, counting, show, steps_bar
from blowfish_fast.errors import InputError, LedgerError
from blowfish_fast.release.release import Release

IN_PYTHON = "`choosing(share=...)`"
IN_WORDS = "--spend SHARE, with --counts and --out,"
"""How the choice is made from the data, in the library and here."""


def run_recommend(
    *,
    cells: str | Sequence[str],
    policy: str,
    workload: str,
    epsilon: str,
    records: int,
    trials: int | None,
    top: int,
    counts: Path | None,
    spend: str | None,
    ledger: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Rank, explain and, if asked to, spend a part of epsilon on the choice."""
    if (counts is None) != (spend is None) or (counts is None) != (out is None):
        raise InputError(
            "choosing by the data needs all of --counts FILE, --spend SHARE and --out "
            "FILE; give all three or none"
        )
    domain = parsed_domain(cells)
    if counts is not None and out is not None:
        # What cannot be read or written is refused before anything is charged.
        data = _counts(counts)
        book = None if ledger is None else str(ledger)
        files = Job(data=str(counts), ledger=book, release=str(out))
        Outputs(files, overwrite=True).check(domain)
        if ledger is not None and not ledger.exists():
            raise LedgerError(
                f"there is no ledger at {ledger}; blowfish ledger create makes one"
            )
    if top < 1:
        raise InputError(f"--top is a number of lines, at least 1; received {top}")
    stated = parsed_policy(policy, domain)
    asked = parsed_workload(workload, domain)
    with steps_bar() as bar:
        advice = recommend(
            stated,
            asked,
            epsilon=epsilon,
            records=records,
            trials=trials,
            progress=counting(bar, "trying"),
        )
    release = None
    if counts is not None and out is not None:
        release = _chosen(advice, data, spend, ledger, out)
    if as_json:
        show(_as_plain(advice, release))
        return
    _show_table(advice, top)
    if release is not None:
        show(
            f"released by {release.details['chosen_mechanism']}, since the data "
            f"resembles {release.details['resembles']!r}: {release.guarantee} Written "
            f"to {out}"
        )


def _counts(path: Path) -> AnyArray:
    if path.suffix.lower() != ".npy" or not path.is_file():
        raise InputError(
            f"counts are a .npy file, as numpy.save writes it; received {str(path)!r}, "
            f"which is {'another kind' if path.is_file() else 'not there'}"
        )
    return loaded_array(path, "counts")


def _chosen(
    advice: Recommendation, data: AnyArray, spend: Any, ledger: Path | None, out: Path
) -> Release:
    """Choose privately and release, through a ledger if one is given."""
    mechanism = advice.choosing(share=spend)
    if ledger is None:
        release = mechanism.release(data)
    else:
        with Ledger(ledger) as book:
            release = book.release(mechanism, data)
    release.save(out)
    return release


def _as_plain(advice: Recommendation, release: Release | None) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "question": advice.heading,
        "best": advice.best.name,
        "because": list(advice.because),
        "mechanisms": advice.rows,
    }
    if release is not None:
        plain["chosen"] = {
            "mechanism": release.details["chosen_mechanism"],
            "resembles": release.details["resembles"],
            "epsilon": str(release.guarantee.epsilon),
        }
    return plain


def _show_table(advice: Recommendation, top: int) -> None:
    table = Table(title=advice.heading, title_justify="left")
    table.add_column("mechanism", no_wrap=True)
    table.add_column("error", justify="right")
    table.add_column("x best", justify="right")
    table.add_column("how known", no_wrap=True)
    table.add_column("on generated data")
    for one in advice.advice[:top]:
        if one.kind != "refused":
            table.add_row(*_row(one, advice.best.error))
    console.print(table)
    hidden = [one.name for one in advice if one.kind == "refused"]
    if hidden:
        show(f"not admitted here: {', '.join(hidden)}")
    for sentence in advice.because:
        show(sentence.replace(IN_PYTHON, IN_WORDS))


def _row(one: Advice, best: float) -> tuple[str, ...]:
    times = one.error / best if best > 0 else 1.0
    shapes = [f"{name} {error:,.3g}" for name, error in one.by_shape.items()]
    return (
        one.name,
        f"{one.error:,.4g}",
        f"{times:,.2f}",
        one.kind,
        ", ".join(shapes),
    )
