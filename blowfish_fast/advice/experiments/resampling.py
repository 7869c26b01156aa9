"""How far a table would move with another seed: its trials drawn again, many times.

    rows of trials 0 1 2 3  --draw with replacement-->  1 1 3 0  --summary-->  a table
                                                        2 0 0 3  --summary-->  a table

The spread of a number over such tables is its standard error, and a verdict is as sure
as the part of them that agrees with it (the bootstrap).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .experiment import Experiment, Row, Settings, Summary, Value
from .result_files import format_value

DRAWS = 50


def with_errors(
    experiment: Experiment, rows: Sequence[Row], settings: Settings, summary: Summary
) -> Summary:
    """Return a summary whose numbers carry standard errors, and how sure it is.

    As it is where fewer than three trials tell them apart.
    """
    by_trial: dict[tuple[Value, Value], list[Row]] = {}
    for row in rows:
        # A sample of queries is a part of chance as well.
        by_trial.setdefault((row.get("sample"), row.get("trial")), []).append(row)
    always = [
        row for (_, trial), one in by_trial.items() if trial is None for row in one
    ]
    trials = [one for (_, trial), one in by_trial.items() if trial is not None]
    if len(trials) < 3:
        return summary
    generator = np.random.default_rng(settings.seed)
    drawn = []
    for _ in range(DRAWS):
        taken = generator.integers(0, len(trials), len(trials))
        again = [row for one in taken for row in trials[one]]
        drawn.append(experiment.summary([*again, *always], settings))
    lines = [
        [_with_error(value, place, column, drawn) for column, value in enumerate(line)]
        for place, line in enumerate(summary.lines)
    ]
    verdict = summary.verdict
    if verdict is not None:
        outcomes = [one.verdict.outcome for one in drawn if one.verdict is not None]
        kept = outcomes.count(verdict.outcome)
        sure = f"{verdict.by}; so judged in {kept} of {DRAWS} redrawings of the trials"
        verdict = replace(verdict, by=sure)
    return replace(summary, lines=lines, verdict=verdict)


def _with_error(value: Value, line: int, column: int, drawn: list[Summary]) -> Value:
    """Return a number with the spread of its place in the tables drawn again."""
    if not isinstance(value, float):
        return value
    others = [one.lines[line][column] for one in drawn if line < len(one.lines)]
    numbers = [one for one in others if isinstance(one, float)]
    if len(numbers) < len(drawn):
        return value
    error = float(np.std(numbers, ddof=1))
    return f"{format_value(value)} ± {error:.2g}" if error > 0.0 else value
