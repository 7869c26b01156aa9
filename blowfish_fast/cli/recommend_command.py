"""``blowfish recommend``: which mechanism to use, and why.

Words become public facts: ``--cells 64x64``, ``--policy threshold:10``,
``--workload ranges:2000``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..accounting.ledger import Ledger
from ..domain import Domain
from ..errors import InputError
from ..policies import POLICIES, Policy, Threshold
from ..recommendation import Advice, Recommendation, recommend
from ..release import Release
from ..workloads import (
    AllRanges,
    Identity,
    Prefixes,
    Ranges,
    Rectangles,
    Total,
    Workload,
)
from .printing import console, show

SEED_OF_QUERIES = 1
PLAIN_POLICIES = ("add_remove", "full", "line", "attribute")
PLAIN_WORKLOADS: dict[str, type[Workload]] = {
    "all_ranges": AllRanges,
    "identity": Identity,
    "prefixes": Prefixes,
    "total": Total,
}


def parsed_domain(words: str) -> Domain:
    """Return the domain of ``4096`` or ``64x64`` cells."""
    try:
        sides = tuple(int(side) for side in words.lower().split("x"))
    except ValueError:
        raise InputError(
            f"cells are one number or several with x between, 4096 or 64x64; received "
            f"{words!r}"
        ) from None
    return Domain(sides[0] if len(sides) == 1 else sides)


def parsed_policy(words: str, domain: Domain) -> Policy:
    """Return the policy of ``full`` or ``threshold:10``."""
    name, _, setting = words.partition(":")
    if name == "threshold" and setting.isdigit():
        return Threshold(domain, theta=int(setting))
    if name in PLAIN_POLICIES and not setting:
        made: Any = POLICIES[name]
        policy: Policy = made(domain)
        return policy
    raise InputError(
        f"the policy is one of {', '.join(PLAIN_POLICIES)} or threshold:THETA; "
        f"received {words!r}"
    )


def parsed_workload(words: str, domain: Domain) -> Workload:
    """Return the workload of ``identity`` or ``ranges:2000`` (random, one seed)."""
    name, _, setting = words.partition(":")
    if name in ("ranges", "rectangles") and (setting.isdigit() or not setting):
        kind = Ranges if name == "ranges" else Rectangles
        return kind.random(domain, int(setting or 2000), rng=SEED_OF_QUERIES)
    if name in PLAIN_WORKLOADS and not setting:
        made: Any = PLAIN_WORKLOADS[name]
        workload: Workload = made(domain)
        return workload
    raise InputError(
        f"the workload is one of {', '.join(PLAIN_WORKLOADS)}, ranges:NUMBER or "
        f"rectangles:NUMBER; received {words!r}"
    )


def run_recommend(
    *,
    cells: str,
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
    stated = parsed_policy(policy, domain)
    asked = parsed_workload(workload, domain)
    with Progress(
        TextColumn("trying {task.fields[name]}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        console=console,
        disable=as_json or not console.is_terminal,
        transient=True,
    ) as bar:
        task = bar.add_task("recommend", total=None, name="")
        advice = recommend(
            stated,
            asked,
            epsilon=epsilon,
            records=records,
            trials=trials,
            progress=lambda done, total, name: bar.update(
                task, completed=done, total=total, name=name
            ),
        )
    release = None
    if counts is not None and out is not None:
        release = _chosen(advice, counts, spend, ledger, out)
    if as_json:
        show(_as_plain(advice, release))
        return
    _show_table(advice, top)
    if release is not None:
        console.print(
            f"released by {release.details['chosen_mechanism']}, since the data "
            f"resembles {release.details['resembles']!r}: {release.guarantee}. Written "
            f"to {out}",
            highlight=False,
        )


def _chosen(
    advice: Recommendation, counts: Path, spend: Any, ledger: Path | None, out: Path
) -> Release:
    """Choose privately and release, through a ledger if one is given."""
    mechanism = advice.choosing(share=spend)
    try:
        data = np.load(counts, allow_pickle=False)
    except (OSError, ValueError) as problem:
        raise InputError(
            f"{counts} holds no counts that can be read ({problem}); save them with "
            "numpy.save"
        ) from None
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
        console.print(f"not admitted here: {', '.join(hidden)}", highlight=False)
    for sentence in advice.because:
        console.print(sentence, highlight=False)


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
