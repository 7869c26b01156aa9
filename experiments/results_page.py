"""The page of results in the documentation, made from the CSV files of runs.

    folder/dawa-table2.csv, .journal  --.
    folder/blowfish-fig1.csv, ...     --+-> results.md: verdicts, tables
                                        +-> record/verdicts.json, record/NAME.csv

Everything on the page comes from the rows and from the words of the experiments, so a
figure on it can be traced to a command. The record holds the same as data. It is kept
in ``docs/data/papers``, from which ``docs/fill_figures.py`` fills the documentation.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from blowfish_fast.advice.experiments.experiment import Experiment, Settings, Summary
from blowfish_fast.advice.experiments.result_files import (
    format_value,
    markdown_row,
    run_line,
    summary_paragraphs,
    verdict_line,
    with_errors,
)
from blowfish_fast.advice.experiments.runner import journal_header
from blowfish_fast.errors import InputError

from .collection import all_experiments
from .row_statistics import read_csv

OPENING = """\
# Results

Tables and figures of the papers, computed again with this library. The page is made
by `python -m experiments page` from the CSV files that `python -m experiments NAME`
writes; each section gives the paper's claim, what came out here, the protocol and the
trials of the run. A verdict is "reproduced" where the claim held, "beaten" where this
library does better than what the paper reports, and "not reproduced" otherwise, with
the amount. Where there are three trials or more, numbers carry their standard error and
a verdict says how often it stays the same when the trials are drawn again.

## How to read it beside the literature

- **The published DAWA figures rest on code that was not private.** Both public
  implementations of its first stage put no noise on buckets of one cell, half the
  noise that their proof needs on the others, and cut noisy costs off from below. An
  exact audit at 4 cells finds a loss of 2.60 times the epsilon of that stage, and
  more on longer domains. Here the first stage is private: the least-cost partition
  has the noise its proof needs on every candidate (repaired plainly, its error is
  about three to five times that of the public code), and the default is a partition
  that is sampled as a whole.
- **The published EFPA figures** come from a transform whose phases were released
  exactly and whose sensitivity was taken as 1 instead of 45 at 4096 cells. Here all
  that is published carries noise.
- **MWEM, StructureFirst and the grids** were run with the exact number of records
  under a definition that protects it. Here it is bought with a part of epsilon, or
  public by the policy.
- **The k-means of the Blowfish paper** takes the sensitivity of a cluster's sum from
  the longest edge (Lemma 6.1); a short edge that crosses the border of two clusters
  changes both sums by much more. The safe sensitivity under a distance threshold is
  that of differential privacy, so the gain that Figure 1 shows for it is not there to
  be had in this way; the printed noise is simulated beside the safe one, and marked.
- **The ordered hierarchical mechanism** is printed with too little noise in its first
  block (1.25 epsilon at worst); here all blocks have the same.
- **DAWA+Transformed** builds on DAWA's first stage, whose public code is the one
  above; **Matching+Transformed** is printed without the halving of epsilon that a
  policy with moves asks of a choice that is private when one record is added or
  removed. Here both have the noise of their proofs.

Every release below was seeded, and is therefore an experiment and not private
(`release.private` is False, as the column `private` of the CSV files says).
"""


class Result(NamedTuple):
    """What came out of one experiment."""

    experiment: Experiment
    settings: Settings
    summary: Summary
    verdict: str
    text: str
    """Its section of the page."""

    @property
    def outcome(self) -> str:
        """Whether the claim of the paper held: "reproduced" and the like."""
        return self.verdict.partition(":")[0]


def write_page(folder: Path) -> tuple[Path, list[str]]:
    """Write ``results.md`` and the record from all results in a folder.

    Parameters
    ----------
    folder : Path
        Where experiments wrote their files.

    Returns
    -------
    tuple of Path and list of str
        The page, and the names of the experiments on it.
    """
    finished = [
        experiment
        for experiment in all_experiments().values()
        if (folder / f"{experiment.name}.csv").is_file()
    ]
    if not finished:
        raise InputError(
            f"there are no results in {folder}; run experiments with --out {folder} "
            "first"
        )
    results = [_result(experiment, folder) for experiment in finished]
    verdicts = "\n".join(
        markdown_row(
            [f"[{result.experiment.title}](#{result.experiment.name})", result.verdict]
        )
        for result in results
    )
    page = folder / "results.md"
    page.write_text(
        OPENING
        + f"\n## Verdicts\n\n{_tally(results)}\n"
        + f"\n| what | verdict |\n|---|---|\n{verdicts}\n"
        + "".join(result.text for result in results)
    )
    _write_record(folder / "record", results)
    return page, [experiment.name for experiment in finished]


def _write_record(folder: Path, results: Sequence[Result]) -> None:
    """Write verdicts and tables as data."""
    folder.mkdir(exist_ok=True)
    told = []
    for experiment, settings, summary, verdict, _ in results:
        told.append(
            {
                "name": experiment.name,
                "title": experiment.title,
                "claim": experiment.claim,
                "outcome": verdict.partition(":")[0],
                "verdict": verdict,
                "protocol": f"{experiment.protocol} {run_line(settings)}",
                "notes": list(summary.notes),
            }
        )
        with (folder / f"{experiment.name}.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(summary.columns)
            for line in summary.lines:
                writer.writerow([format_value(value) for value in line])
    text = json.dumps(told, indent=1, ensure_ascii=False)
    (folder / "verdicts.json").write_text(text + "\n")


def _tally(results: Sequence[Result]) -> str:
    """Return how many claims held, and which did not, so that misses are found."""
    outcomes = [result.outcome for result in results]
    missed = [
        f"[{result.experiment.name}](#{result.experiment.name})"
        for result in results
        if result.outcome == "not reproduced"
    ]
    return (
        f"Of {len(outcomes)} tables and figures {outcomes.count('reproduced')} were "
        f"reproduced, {outcomes.count('beaten')} beaten and {len(missed)} not "
        f"reproduced{': ' if missed else ''}{', '.join(missed)}."
    )


def _result(experiment: Experiment, folder: Path) -> Result:
    """Return what the files of one experiment say."""
    journal = folder / f"{experiment.name}.journal"
    header = journal_header(journal)
    if "trials" not in header:
        raise InputError(
            f"{journal} is missing or damaged, and with it the settings of the run; "
            "run the experiment again"
        )
    settings = Settings(
        trials=int(header["trials"]),
        seed=int(header["seed"]),
        data=None if header["data"] == "generated" else folder,
        quick=bool(header["quick"]),
    )
    rows = read_csv(folder / f"{experiment.name}.csv")
    # The first line of a journal is its header.
    done = max(journal.read_bytes().count(b"\n") - 1, 0)
    wanted = len(experiment.tasks(settings))
    part = f"{done} of {wanted} tasks" if done < wanted else ""
    plain: Summary = experiment.summary(rows, settings)
    summary = with_errors(experiment, rows, settings, plain)
    paragraphs = [
        f'\n## <a id="{experiment.name}"></a>{experiment.title}',
        f"`python -m experiments {experiment.name}`",
        f"**The paper:** {experiment.claim}",
        *([f"**Unfinished:** {part}."] if part else []),
        *summary_paragraphs(experiment, settings, summary),
    ]
    verdict = verdict_line(summary, settings) + (f" (after {part})" if part else "")
    text = "\n\n".join(paragraphs) + "\n"
    return Result(experiment, settings, summary, verdict, text)
