"""``blowfish compare``, ``blowfish recommend``: which mechanism, before any is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import blowfish_fast as bf
from blowfish_fast._support.compiler_watch import COMPILER
from blowfish_fast.apps.cli.options import (
    DEFAULT_WORKLOAD,
    Cells,
    Json,
    Mechanisms,
    Overwrite,
    Picture,
    PolicyWords,
    Top,
    WorkloadWords,
    look_here_for,
    offer_policies,
    option,
    with_options,
)
from blowfish_fast.apps.cli.printing import (
    counter,
    four_digits,
    remark,
    show,
    show_table,
    spinner,
)
from blowfish_fast.errors import InputError

from .ledger import Stated

if TYPE_CHECKING:
    from blowfish_fast.advice.comparison import Comparison
    from blowfish_fast.advice.recommendation import Recommendation
    from blowfish_fast.measure.budgets import Budget
    from blowfish_fast.policies import Policy
    from blowfish_fast.workloads import Workload

AROUND = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Where a picture of a single epsilon looks: these times as much."""


@dataclass(frozen=True)
class Budgets:
    """What one release may spend, in one way or several."""

    epsilon: list[str] = option(
        "NUMBER",
        "What one release may spend; several are set side by side.",
        default=[],
    )
    rho: list[str] = option("NUMBER", "Or in rho; beside epsilon, if both.", default=[])
    delta: str | None = option("NUMBER", "Beside --epsilon: in rho.")

    def stated(self) -> list[Budget]:
        """Read them; with delta, epsilon alone and the rho of both."""
        from blowfish_fast.measure.budgets import Budget

        budgets = [Budget.stated(epsilon=epsilon) for epsilon in self.epsilon]
        if self.delta is not None:
            budgets += [
                Budget.stated(epsilon=epsilon, delta=self.delta)
                for epsilon in self.epsilon
            ]
        budgets += [Budget.stated(rho=rho) for rho in self.rho]
        return budgets or [Budget.stated(delta=self.delta)]


@with_options
def run_compare(
    cells: Cells,
    policy: Annotated[
        list[str],
        typer.Option(
            metavar="POLICY",
            help="What stays indistinguishable, as for policy describe; several are "
            "set side by side.",
            autocompletion=offer_policies,
        ),
    ],
    spending: Budgets,
    workload: WorkloadWords = DEFAULT_WORKLOAD,
    mechanism: Mechanisms = None,
    top: Top = 12,
    picture: Picture = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Predict the error of every mechanism, best first. Free.

    Example: blowfish compare --cells 99 --policy line --workload ranges --epsilon 1
    """
    from blowfish_fast.apps.cli.files.outputs import check_file, write_picture

    budgets = spending.stated()
    if len(policy) > 1 and len(budgets) > 1:
        raise InputError(
            "set several policies side by side, or several budgets, but not both at "
            f"once; received {len(policy)} policies and {len(budgets)} budgets"
        )
    check_file("picture", picture, overwrite=overwrite)
    stated, asked = _read_facts(cells, policy, workload, mechanism)
    _spare_compiler(asked, len(stated) * len(budgets))
    with spinner("predicting") as step:
        tables: list[Comparison] = []
        for policy_stated in stated:
            for spent in budgets:
                step(f"{spent.in_short()} under {type(policy_stated).__name__}")
                tables.append(
                    bf.compare(
                        policy_stated,
                        asked,
                        epsilon=spent,
                        mechanisms=mechanism or None,
                    )
                )
        if picture is not None:
            step("drawing")
            admitted = [line.name for line in tables[0] if line.admissible]
            shown = admitted if mechanism else None
            write_picture(lambda: _draw(stated, asked, budgets, shown), picture)
    if as_json:
        show(_as_plain(tables, stated, budgets, asked, picture))
        return
    if len(tables) == 1:
        names = ["mechanism", "error per query", "mean squared error", "x best"]
        _show_errors(tables, tables[0].heading, names, top)
    else:
        by = policy if len(policy) > 1 else [budget.in_short() for budget in budgets]
        heading = budgets[0].in_short() if len(policy) > 1 else f"under {stated[0]!r}"
        _show_errors(tables, f"{asked!r}, {heading}", ["error per query", *by], top)
        best = [
            f"{table.best.name} ({at})"
            for table, at in zip(tables, by, strict=True)
            if table.best.admissible
        ]
        if best:
            show(f"Best: {', '.join(best)}.")
    if picture is not None:
        remark(f"written: {picture}")


def _spare_compiler(asked: Workload, times: int) -> None:
    """Do without the compiler where all that is predicted is little."""
    from blowfish_fast.apps.cli.mechanism_choice import is_little

    COMPILER.spare(is_little(asked, asked.domain.size, times))


def _show_errors(
    tables: list[Comparison], heading: str, names: list[str], top: int
) -> None:
    """Print root mean square errors, a column per policy or epsilon; of one all."""
    times = [{row["name"]: row["times_best"] for row in table.rows} for table in tables]
    best_rank = {
        line.name: min(times_best[line.name] or math.inf for times_best in times)
        for line in tables[0]
    }
    listed = sorted(best_rank, key=lambda name: best_rank[name])
    rows = [
        [
            name,
            *(
                ""
                if times_best[name] is None
                else four_digits(math.sqrt(table[name].mean))
                for table, times_best in zip(tables, times, strict=True)
            ),
        ]
        for name in listed[:top]
        if best_rank[name] < math.inf
    ]
    if len(tables) == 1:
        for row in rows:
            row += [four_digits(tables[0][row[0]].mean), f"{best_rank[row[0]]:,.2f}"]
    if rows:
        show_table(names, rows, title=heading)
        show(
            "Errors are root mean squares, in records, and hold for any data: no data "
            "was read and nothing was spent."
        )
    else:
        show(f"{heading}: no error is known before data are read.")
    # Of which mechanisms no number is known, and why.
    depends = [line.name for line in tables[0] if line.data_dependent]
    if depends:
        show(
            f"The error of these depends on the data: {', '.join(depends)}. `blowfish "
            "recommend`, with --records, tries them on generated data, `blowfish "
            "experiment` on public data of your own."
        )
    unknown = [line for line in tables[0] if not line.admissible]
    refused = [line for line in unknown if not line.data_dependent]
    names = [line.name for line in refused if not _failed_itself(line.reason)]
    if names:
        show(f"Not possible under this policy: {', '.join(names)}; --json says why.")
    _show_faults(refused)


def _as_plain(
    tables: list[Comparison],
    policies: list[Policy],
    budgets: list[Budget],
    workload: Workload,
    picture: Path | None,
) -> dict[str, Any]:
    pairs = [(policy, budget) for policy in policies for budget in budgets]
    return {
        "workload": repr(workload),
        "queries": workload.queries,
        "comparisons": [
            {
                "policy": repr(policy),
                **budget.to_dict(),
                "best": table.best.name if table.best.admissible else None,
                "mechanisms": table.rows,
            }
            for table, (policy, budget) in zip(tables, pairs, strict=True)
        ],
        "picture": None if picture is None else str(picture),
    }


def _draw(
    policies: list[Policy],
    workload: Workload,
    budgets: list[Budget],
    mechanisms: list[str] | None,
) -> Any:
    epsilons = [budget.amount for budget in budgets if budget.power == 1]
    if len(epsilons) < len(budgets):
        raise InputError("errors are drawn along epsilon; leave rho and delta out")
    if mechanisms == []:
        raise InputError("errors that depend on the data are not drawn; name another")
    if len(policies) == 1:
        several: list[Any] = list(epsilons)
        if len(several) == 1:
            several = [float(several[0]) * times for times in AROUND]
        return bf.plotting.error_against_epsilon(
            policies[0], workload, several, mechanisms
        )
    thresholds = [
        stated for stated in policies if isinstance(stated, bf.policies.Threshold)
    ]
    units = {threshold.unit for threshold in thresholds}
    if len(thresholds) < len(policies) or len(units) > 1:
        raise InputError(
            "several policies are drawn when all are thresholds of one unit, such as "
            "--policy threshold:2 --policy threshold:8"
        )
    return bf.plotting.tradeoff_over_theta(
        policies[0].domain,
        workload,
        [float(threshold.theta) for threshold in thresholds],
        epsilon=epsilons[0],
        unit="cells" if units == {"cells"} else "value",
    )


def _read_facts(
    cells: list[str], policies: list[str], workload: str, mechanism: list[str] | None
) -> tuple[list[Policy], Workload]:
    """Read what is secret, perhaps in several ways, and what is asked."""
    from blowfish_fast.apps.cli.parsing.domain import parse_domain, parse_table
    from blowfish_fast.apps.cli.parsing.policy import parse_policy, parse_wide_policy
    from blowfish_fast.apps.cli.parsing.workload import parse_workload
    from blowfish_fast.data.domain import is_wide

    look_here_for(mechanism)
    table: Any = parse_table(cells)
    if is_wide(table):
        wide = [parse_wide_policy(words, table) for words in policies]
        return wide, parse_workload(workload, table)
    domain = parse_domain(cells)
    stated = [parse_policy(words, domain) for words in policies]
    return stated, parse_workload(workload, domain)


@with_options
def run_recommend(
    cells: Cells,
    policy: PolicyWords,
    records: Annotated[int, typer.Option(help="Roughly how many records there are.")],
    budget: Stated,
    workload: WorkloadWords = DEFAULT_WORKLOAD,
    filled: Annotated[
        float | None,
        typer.Option(
            help="Roughly what part of the cells holds records; a public guess."
        ),
    ] = None,
    mechanism: Mechanisms = None,
    trials: Annotated[
        int | None,
        typer.Option(help="Releases per generated histogram; none by default."),
    ] = None,
    top: Top = 12,
    as_json: Json = False,
) -> None:
    """Say which mechanism to use, and why."""
    (stated,), asked = _read_facts(cells, [policy], workload, mechanism)
    if trials is None:
        _spare_compiler(asked, 1)
    with counter("trying") as step:
        advice = bf.recommend(
            stated,
            asked,
            **vars(budget),
            records=records,
            filled=filled,
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
            line.name,
            f"{line.error:,.4g}" if math.isfinite(line.error) else "-",
            line.kind,
            ", ".join(f"{name} {error:,.3g}" for name, error in line.by_shape.items()),
        ]
        for line in advice.lines[:top]
        if line.kind != "refused"
    ]
    names = ["mechanism", "error", "how known", "on generated data"]
    show_table(names, rows, title=advice.heading)
    refused = [line for line in advice if line.kind == "refused"]
    hidden = [line.name for line in refused if not _failed_itself(line.reason)]
    if hidden:
        show(f"Not possible under this policy: {', '.join(hidden)}.")
    _show_faults(refused)
    for sentence in advice.because:
        show(sentence.replace("`trials`", "--trials"))


def _failed_itself(reason: str) -> bool:
    """Return whether a mechanism from outside failed by a fault of its own code."""
    from blowfish_fast.mechanisms.base import FAILED_OUTSIDE

    return FAILED_OUTSIDE in reason


def _show_faults(refused: Sequence[Any]) -> None:
    """Say which mechanisms from outside failed, and by what: no policy forbids them."""
    for line in refused:
        if _failed_itself(line.reason):
            end = "" if line.reason.endswith(".") else "."
            show(f"{line.name} is broken: {line.reason}{end}")
