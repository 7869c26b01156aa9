"""``blowfish recommend``: which mechanism to use, and why."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

import blowfish_fast as bf
from blowfish_fast.apps.cli.options import (
    Cells,
    Json,
    Mechanisms,
    PolicyWords,
    Top,
    WorkloadWords,
    look_here_for,
)
from blowfish_fast.apps.cli.printing import counter, show, show_table

if TYPE_CHECKING:
    from blowfish_fast.advice.recommendation import Recommendation


def run_recommend(
    cells: Cells,
    policy: PolicyWords,
    workload: WorkloadWords,
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="What one release may spend.")
    ],
    records: Annotated[int, typer.Option(help="Roughly how many records there are.")],
    mechanism: Mechanisms = None,
    trials: Annotated[
        int | None,
        typer.Option(help="Releases per generated histogram; none by default."),
    ] = None,
    top: Top = 12,
    as_json: Json = False,
) -> None:
    """Say which mechanism to use, and why."""
    from blowfish_fast.apps.cli.parsing.domain import parse_domain
    from blowfish_fast.apps.cli.parsing.policy import parse_policy
    from blowfish_fast.apps.cli.parsing.workload import parse_workload

    look_here_for(mechanism)
    domain = parse_domain(cells)
    with counter("trying") as step:
        advice = bf.recommend(
            parse_policy(policy, domain),
            parse_workload(workload, domain),
            epsilon=epsilon,
            records=records,
            mechanisms=mechanism or None,
            trials=trials,
            progress=step,
        )
    if as_json:
        show(
            {
                "question": advice.heading,
                "best": advice.best.name,
                "because": list(advice.because),
                "mechanisms": advice.rows,
            }
        )
        return
    _show_advice(advice, top)


def _show_advice(advice: Recommendation, top: int) -> None:
    rows = [
        [
            one.name,
            f"{one.error:,.4g}" if math.isfinite(one.error) else "-",
            one.kind,
            ", ".join(f"{name} {error:,.3g}" for name, error in one.by_shape.items()),
        ]
        for one in advice.lines[:top]
        if one.kind != "refused"
    ]
    names = ["mechanism", "error", "how known", "on generated data"]
    show_table(names, rows, title=advice.heading)
    hidden = [one.name for one in advice if one.kind == "refused"]
    if hidden:
        show(f"Not possible under this policy: {', '.join(hidden)}.")
    for sentence in advice.because:
        show(sentence.replace("`trials`", "--trials"))
