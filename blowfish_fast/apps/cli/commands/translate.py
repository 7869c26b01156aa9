"""``blowfish translate``: which budget gives which accuracy, before any is spent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from blowfish_fast.apps.cli.options import (
    POLICY,
    WORKLOAD,
    JobFile,
    Json,
    offer_policies,
    offer_workloads,
    option,
    with_options,
)
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.printing import show, show_table, spinner
from blowfish_fast.errors import InputError

if TYPE_CHECKING:
    from blowfish_fast.advice.accuracy import Translation
    from blowfish_fast.advice.table_accuracy import TablesTranslation
    from blowfish_fast.apps.cli.release_job import Facts

AROUND = tuple(map(Fraction, ("0.1", "0.3", "1", "3")))
"""Which budgets of tables are tried where none is typed: these times the job's."""


@dataclass(frozen=True)
class WantedAccuracy:
    """What is released, and how accurate it should be."""

    cells: list[str] = option(
        "CELLS",
        "The cells: 4096, 64x64, age=0:101:1, sex=categories:f,m, ...; repeated for "
        "each column.",
        "--cells",
        "--domain",
        default=[],
    )
    policy: str | None = option(
        POLICY["metavar"], POLICY["help"], autocompletion=offer_policies
    )
    workload: str | None = option(
        WORKLOAD["metavar"], WORKLOAD["help"], autocompletion=offer_workloads
    )
    tables: int | None = option(
        "WAYS",
        "All tables of up to so many columns: --workload tables:WAYS.",
        min=1,
    )
    alpha: str | None = option("NUMBER", "The largest error of an answer.")
    beta: str | None = option("PART", "Probability of exceeding it.")
    misplaced: float | None = option(
        "PART",
        "Of tables: the part of the records that may lie in a wrong cell.",
        min=0.0,
        max=1.0,
    )
    records: int | None = option(
        "NUMBER", "Of tables: roughly how many records, a public guess.", min=1
    )
    epsilon: list[str] = option(
        "NUMBER",
        "Of tables: a budget that is tried; may be repeated. By default 0.1, 0.3, 1 "
        "and 3, or so many times what the job states.",
        default=[],
    )
    rho: list[str] = option("NUMBER", "The same in rho.", default=[])
    delta: str | None = option("NUMBER", "With --alpha: in rho, too, at this delta.")

    def job(self, job_file: Any) -> Job:
        """Return what is asked, by a job file and by what was typed."""
        words = self.workload if self.tables is None else f"tables:{self.tables}"
        typed = Job(
            domain=self.cells or None,
            policy=self.policy,
            workload=words,
            records=self.records,
        )
        job = Job.stated(job_file, typed)
        if self.alpha is None and self.beta is None:
            return job
        return replace(job, alpha=self.alpha or job.alpha, beta=self.beta or job.beta)


@with_options
def run_translate(
    asked: WantedAccuracy, job_file: JobFile = None, as_json: Json = False
) -> None:
    """Say which epsilon gives which accuracy, before any data is read. Free.

    Of tables of a survey: what part of the records lies in a wrong cell, typically,
    tried on made-up records. Of anything else: the least epsilon that promises an
    error.

    Example: blowfish translate people.toml --tables 2 --records 40000 --misplaced 0.05
    """
    from blowfish_fast.apps.cli.parsing.workload import asks_tables
    from blowfish_fast.apps.cli.release_job import read_facts

    job = asked.job(job_file)
    # A budget is what is looked for, so none has to be stated; none is read here.
    facts = read_facts(replace(job, sample=None, epsilon="1"))
    if asks_tables(job.workload):
        _show_typical(_typical(facts, job, asked), as_json=as_json)
    else:
        _show_promises(_promises(facts, job, asked), as_json=as_json)


def _typical(facts: Facts, job: Job, asked: WantedAccuracy) -> TablesTranslation:
    """Try tables both ways, at several budgets."""
    from blowfish_fast.advice.table_accuracy import translate_tables

    if asked.alpha is not None or asked.beta is not None:
        raise InputError(
            "of tables that the data choose nobody promises an error beforehand",
            received="--alpha or --beta with tables",
            way_out="State --misplaced, the part of the records that may lie in a "
            "wrong cell",
        )
    if job.records is None:
        raise InputError(
            "state roughly how many records there are, a public guess",
            received="tables without --records",
            way_out="Write --records 40000, or records under [mechanism] of the job",
        )
    if asked.epsilon and asked.rho:
        raise InputError(
            "budgets are tried in one currency",
            received="--epsilon and --rho",
            way_out="State one of them, and ask again for the other",
        )
    tables: Any = facts.workload
    stated = job.budget
    currency: Any = "rho" if asked.rho else "epsilon"
    amounts: list[Any] = [*asked.epsilon, *asked.rho]
    if not amounts:
        currency = "epsilon" if stated is None else stated.currency
        unit = Fraction(1) if stated is None else stated.amount
        amounts = [times * unit for times in AROUND]
    with spinner("trying") as step:
        step(f"{len(amounts)} budgets on made-up records")
        return translate_tables(
            facts.policy,
            tables,
            records=job.records,
            misplaced=asked.misplaced,
            amounts=amounts,
            currency=currency,
        )


def _show_typical(translation: TablesTranslation, *, as_json: bool) -> None:
    least = translation.least
    if as_json:
        rows = [{**row._asdict(), "misplaced": row.misplaced} for row in translation]
        show(
            {
                "records": translation.records,
                "currency": translation.currency,
                "budgets": rows,
                "wanted": translation.wanted,
                "least": None if least is None else least.amount,
            }
        )
        return
    texts = [
        [f"{row.amount:.4g}", f"{row.plan:.4f}", f"{row.data:.4f}", row.best]
        for row in translation
    ]
    title = (
        f"Part of {translation.records:,} records in a wrong cell, mean over the tables"
    )
    show_table(
        [translation.currency, "by plan", "by data", "best takes"], texts, title=title
    )
    show(
        "Tried on made-up records of as many columns and cells, which depend on each "
        "other: typical, and no promise. No data was read and nothing was spent."
    )
    if translation.wanted is not None and least is None:
        show(f"None of these puts all but {translation.wanted:g} right, typically.")
    elif least is not None:
        way = "plan" if least.best == "plan" else "choice of the data"
        show(
            f"For at most {translation.wanted:g}: {translation.currency} "
            f"{least.amount:.4g}, by {way} ({least.misplaced:.4f}). Release with "
            "--choose best."
        )


def _promises(facts: Facts, job: Job, asked: WantedAccuracy) -> Translation:
    """Return the least budget of every mechanism for a wanted error."""
    from blowfish_fast.advice.accuracy import translate
    from blowfish_fast.data.csv_files import is_number

    if asked.misplaced is not None:
        raise InputError(
            "records in a wrong cell are counted of tables",
            received=f"--misplaced with --workload {job.workload}",
            way_out="State --alpha and --beta, or --tables 2",
        )
    if asked.epsilon or asked.rho:
        raise InputError(
            "budgets are tried of tables; of an error the least one is found",
            received="--epsilon or --rho without tables",
            way_out="Leave them out, and state --alpha and --beta",
        )
    stated = {"--alpha": job.alpha, "--beta": job.beta}
    for word, text in stated.items():
        if text is None or not is_number(text):
            raise InputError(
                f"{word} must be a number: the largest error, and the probability of "
                "exceeding it",
                received=f"{word} {text or ''}".strip(),
                way_out="Write --alpha 50 --beta 0.05",
            )
    alpha, beta = (float(text or "") for text in stated.values())
    with spinner("pricing"):
        return translate(
            facts.policy, facts.workload, alpha=alpha, beta=beta, delta=asked.delta
        )


def _show_promises(translation: Translation, *, as_json: bool) -> None:
    if not as_json:
        show(translation)
        return
    listed = {translation.currency: translation}
    if translation.in_rho is not None:
        listed["rho"] = translation.in_rho
    show(
        {
            "alpha": translation.alpha,
            "beta": translation.beta,
            "free": translation.free,
            **{currency: priced.rows for currency, priced in listed.items()},
        }
    )
