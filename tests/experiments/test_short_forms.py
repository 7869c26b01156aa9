"""The short form of every experiment, on generated data."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("matplotlib")

from blowfish_fast.advice.experiments.experiment import Settings
from blowfish_fast.advice.experiments.runner import run_experiment
from experiments.collection import all_experiments
from experiments.row_statistics import read_csv

REQUIRED = {
    "dawa-table1",
    "dawa-table2",
    *(f"dawa-fig{number}" for number in range(3, 8)),
    "blowfish-fig1",
    "blowfish-fig2",
    "transformed-fig4",
    "transformed-fig5",
}


def test_all_experiments_of_these_papers_are_there():
    assert set(all_experiments()) >= REQUIRED


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_the_short_form_writes_rows_figure_and_verdict(name, tmp_path):
    experiment = all_experiments()[name]
    settings = Settings(trials=1, seed=5, quick=True)
    finished = run_experiment(experiment, settings, tmp_path)
    assert finished.rows
    assert finished.summary.lines
    for line in finished.summary.lines:
        assert len(line) == len(finished.summary.columns)
    picture = (tmp_path / f"{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    words = (tmp_path / f"{name}.md").read_text()
    assert experiment.claim in words
    assert f"{name}.png" in words
    assert finished.summary.verdict.outcome in words
    assert "experiments, not private" in words
    for row in finished.rows:
        for value in row.values():
            assert not isinstance(value, float) or math.isfinite(value)
    # What the page reads back from the file says the same.
    read = read_csv(tmp_path / f"{name}.csv")
    assert experiment.summary(read, settings).verdict == finished.summary.verdict


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_a_part_of_the_rows_can_be_shown(name, tmp_path):
    """An interrupted run is summed up from the tasks that finished."""
    from matplotlib.figure import Figure

    experiment = all_experiments()[name]
    settings = Settings(trials=1, seed=5, quick=True)
    first = experiment.tasks(settings)[0]
    assert experiment.summary([], settings).verdict.outcome == "not reproduced"
    rows = experiment.run(first, settings)
    experiment.summary(rows, settings)
    experiment.draw(rows, Figure(layout="constrained"))
    experiment.draw([], Figure(layout="constrained"))
