"""``blowfish recommend``: which mechanism to use, and why.

With ``--counts`` and ``--spend`` the data decides, for a part of epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import blowfish_fast as bf
from blowfish_fast.apps.cli.options import (
    Cells,
    Epsilon,
    Json,
    Mechanisms,
    PolicyWords,
    Top,
    WorkloadWords,
    look_here_for,
    option,
    with_options,
)
from blowfish_fast.apps.cli.printing import bar_counter, show, show_table, steps_bar
from blowfish_fast.errors import InputError

if TYPE_CHECKING:
    from blowfish_fast._support.typing import AnyArray
    from blowfish_fast.advice.ranking import Recommendation

IN_PYTHON = "`choose_privately(share=...)`"
IN_WORDS = "--spend SHARE, with --counts and --out,"
"""How the choice is made from the data, in the library and here."""


@dataclass(frozen=True)
class RecommendOptions:
    """What is public about a release, and what a choice by the data needs."""

    cells: Cells
    policy: PolicyWords
    workload: WorkloadWords
    epsilon: Epsilon
    records: Annotated[
        int,
        typer.Option(help="Roughly how many records there are.", show_default=False),
    ]
    mechanism: Mechanisms = None
    trials: int | None = option(None, "Releases per generated histogram.")
    top: Top = 12
    counts: Path | None = option(
        "FILE", "Counts (.npy) to choose by and release; with --spend."
    )
    spend: str | None = option("PART", "Part of epsilon that the choice may spend.")
    ledger: Path | None = option("FILE", "Ledger that is charged for the release.")
    out: Path | None = option("FILE", "File of the release.")


@with_options
def run_recommend(asked: RecommendOptions, as_json: Json = False) -> None:
    """Rank mechanisms by predicted or typical error, and say why."""
    from blowfish_fast.apps.cli.parsing.domain import parse_domain
    from blowfish_fast.apps.cli.parsing.policy import parse_policy
    from blowfish_fast.apps.cli.parsing.workload import parse_workload

    look_here_for(asked.mechanism)
    domain = parse_domain(asked.cells)
    # What cannot be read or written is refused before anything is charged.
    data = _read_counts(asked, domain)
    policy = parse_policy(asked.policy, domain)
    workload = parse_workload(asked.workload, domain)
    with steps_bar() as bar:
        advice = bf.recommend(
            policy,
            workload,
            epsilon=asked.epsilon,
            records=asked.records,
            mechanisms=asked.mechanism or None,
            trials=asked.trials,
            progress=bar_counter(bar, "trying"),
        )
    release = None if data is None else _choose_and_release(advice, data, asked)
    if as_json:
        show(_as_plain(advice, release))
        return
    _show_advice(advice, asked.top)
    if release is not None:
        show(
            f"released by {release.details['chosen_mechanism']}, since the data "
            f"resembles {release.details['resembles']!r}: {release.guarantee} Written "
            f"to {asked.out}"
        )


def _read_counts(asked: RecommendOptions, domain: bf.Domain) -> AnyArray | None:
    """Return the counts to choose by, if any; check all that the release needs."""
    from blowfish_fast.apps.cli.files.release_outputs import Outputs
    from blowfish_fast.apps.cli.parsing.array_files import loaded_array
    from blowfish_fast.apps.cli.parsing.job import Job

    from .ledger import open_ledger

    path = asked.counts
    if len({one is None for one in (path, asked.spend, asked.out)}) > 1:
        raise InputError(
            "choosing by the data needs all of --counts FILE, --spend SHARE and --out "
            "FILE; give all three or none"
        )
    if path is None:
        return None
    if path.suffix.lower() != ".npy" or not path.is_file():
        raise InputError(
            f"counts are a .npy file, one array; received {str(path)!r}, which is "
            f"{'another kind' if path.is_file() else 'not there'}"
        )
    data = loaded_array(path, "counts")
    book = None if asked.ledger is None else str(asked.ledger)
    files = Job(data=str(path), ledger=book, release=str(asked.out))
    Outputs(files, overwrite=True).check(domain)
    if asked.ledger is not None:
        open_ledger(asked.ledger).close()
    return data


def _choose_and_release(
    advice: Recommendation, data: AnyArray, asked: RecommendOptions
) -> bf.Release:
    """Choose privately and release, through a ledger if one is given."""
    mechanism = advice.choose_privately(share=asked.spend)
    if asked.ledger is None:
        release = mechanism.release(data)
    else:
        with bf.Ledger(asked.ledger) as book:
            release = book.release(mechanism, data)
    assert asked.out is not None
    release.save(asked.out)
    return release


def _as_plain(advice: Recommendation, release: bf.Release | None) -> dict[str, Any]:
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


def _show_advice(advice: Recommendation, top: int) -> None:
    best = advice.best.error
    rows = [
        [
            one.name,
            f"{one.error:,.4g}",
            f"{one.error / best if best > 0 else 1.0:,.2f}",
            one.kind,
            ", ".join(f"{name} {error:,.3g}" for name, error in one.by_shape.items()),
        ]
        for one in advice.advice[:top]
        if one.kind != "refused"
    ]
    names = ["mechanism", "error", "x best", "how known", "on generated data"]
    show_table(names, rows, title=advice.heading)
    hidden = [one.name for one in advice if one.kind == "refused"]
    if hidden:
        show(f"Not possible under this policy: {', '.join(hidden)}.")
    for sentence in advice.because:
        show(sentence.replace(IN_PYTHON, IN_WORDS))
