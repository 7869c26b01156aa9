"""Runs: the same for a seed, kept when interrupted, refused when mixed."""

from __future__ import annotations

import json

import pytest

from blowfish_fast.advice.experiments import runner
from blowfish_fast.advice.experiments.experiment import Settings, Task, seed_of
from blowfish_fast.advice.experiments.runner import TaskJournal
from blowfish_fast.errors import InputError
from experiments.collection import experiment_named
from experiments.row_statistics import read_csv

# Six tasks without noise: they run in no time.
LIGHT = "dawa-table1"
NOISY = "dawa-fig5"


def run(out, name=LIGHT, *, seed=3, trials=1, **options):
    settings = Settings(trials=trials, seed=seed, quick=True)
    return runner.run_experiment(
        experiment_named(name), settings, out, figure=False, **options
    )


@pytest.mark.long
def test_rows_depend_on_the_seed_and_not_on_the_number_of_processes(tmp_path):
    alone = run(tmp_path / "one", NOISY)
    shared = run(tmp_path / "two", NOISY, processes=2)
    other = run(tmp_path / "other", NOISY, seed=4)
    first = (tmp_path / "one" / f"{NOISY}.csv").read_bytes()
    assert (tmp_path / "two" / f"{NOISY}.csv").read_bytes() == first
    assert alone.rows == shared.rows
    assert other.rows != alone.rows


def test_every_row_is_marked_as_an_experiment(tmp_path):
    finished = run(tmp_path)
    assert finished.rows
    assert {row["private"] for row in finished.rows} == {False}
    assert {row["private"] for row in read_csv(tmp_path / f"{LIGHT}.csv")} == {False}


def test_an_interrupted_run_leaves_its_rows_and_goes_on(tmp_path, monkeypatch):
    whole = run(tmp_path / "whole")
    calls = []

    def stop_at_four(done, total, key):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", progress=stop_at_four)
    left = read_csv(tmp_path / "cut" / f"{LIGHT}.csv")
    assert left == read_csv(tmp_path / "whole" / f"{LIGHT}.csv")[:4]

    original = runner.work

    def counted(experiment, task, settings):
        calls.append(task.key)
        return original(experiment, task, settings)

    monkeypatch.setattr(runner, "work", counted)
    again = run(tmp_path / "cut")
    assert len(calls) == 2
    assert again.rows == whole.rows
    assert again.summary == whole.summary


def test_a_failing_task_keeps_what_was_finished(tmp_path, monkeypatch):
    original = runner.work

    def failing(experiment, task, settings):
        if task.key.startswith("adult"):
            raise RuntimeError("out of order")
        return original(experiment, task, settings)

    monkeypatch.setattr(runner, "work", failing)
    with pytest.raises(RuntimeError):
        run(tmp_path)
    assert len(read_csv(tmp_path / f"{LIGHT}.csv")) == 3


def test_a_line_cut_off_is_dropped(tmp_path):
    whole = run(tmp_path)
    journal = tmp_path / f"{LIGHT}.journal"
    journal.write_bytes(journal.read_bytes()[:-20])
    assert run(tmp_path).rows == whole.rows
    for line in journal.read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize("change", [{"seed": 4}, {"trials": 2}])
def test_other_settings_are_not_mixed_in(tmp_path, change):
    run(tmp_path)
    with pytest.raises(InputError, match="other settings"):
        run(tmp_path, **change)
    assert run(tmp_path, anew=True, **change).settings.trials == change.get("trials", 1)


def test_a_foreign_journal_is_refused(tmp_path):
    path = tmp_path / "x.journal"
    path.write_text("no journal\n")
    with pytest.raises(InputError, match="not a journal"):
        TaskJournal(path, {"seed": 1}, anew=False)


def test_without_a_seed_the_run_in_the_folder_goes_on(tmp_path):
    experiment = experiment_named(LIGHT)
    first = runner.settings_for(experiment, tmp_path, quick=True)
    runner.run_experiment(experiment, first, tmp_path, figure=False)
    assert runner.settings_for(experiment, tmp_path, quick=True) == first
    fresh = runner.settings_for(experiment, tmp_path, quick=True, anew=True)
    assert fresh.seed != first.seed


def test_the_papers_number_of_trials_is_the_default(tmp_path):
    clusters = experiment_named("blowfish-fig1")
    assert runner.settings_for(clusters, tmp_path).trials == 50
    assert runner.settings_for(clusters, tmp_path, quick=True).trials == 1


@pytest.mark.parametrize("trials", [0, -3, 2.5, True])
def test_wrong_numbers_of_trials_are_refused(trials):
    with pytest.raises(InputError, match="trials"):
        Settings(trials=trials, seed=1)


def test_other_wrong_settings_are_refused(tmp_path):
    with pytest.raises(InputError, match="seed"):
        Settings(trials=1, seed=-1)
    with pytest.raises(InputError, match="processes"):
        run(tmp_path, processes=0)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        run(blocked)


def test_progress_counts_up_to_the_number_of_tasks(tmp_path):
    seen = []
    run(tmp_path, progress=lambda done, total, key: seen.append((done, total)))
    assert seen[0] == (0, 6)
    assert seen[-1] == (6, 6)


def test_seeds_differ_by_every_word():
    settings = Settings(trials=1, seed=1)
    assert len({seed_of(settings, "a", n) for n in range(50)}) == 50
    assert seed_of(settings, "ab", "c") != seed_of(settings, "a", "bc")
    assert seed_of(settings) != seed_of(Settings(trials=1, seed=2))


def test_a_task_needs_nothing_but_a_key():
    assert Task("one").arguments == {}
