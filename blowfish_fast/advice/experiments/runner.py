"""Runs an experiment: tasks in several processes, every finished one kept on disk.

The rows depend on the settings alone, not on the number of processes. A run that is
stopped leaves its finished tasks in the journal; the same command goes on from there.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blowfish_fast._support.machine import worker_processes
from blowfish_fast.errors import InputError
from blowfish_fast.mechanisms.base import _version

from .datasets import check_data, fingerprint
from .experiment import Experiment, Row, Settings, Summary, Task
from .result_files import with_errors, write_csv, write_figure, write_summary

Progress = Callable[[int, int, str], None]

SECONDS_BETWEEN_FILES = 2.0
"""A CSV is written anew at most this often while tasks finish."""


@dataclass(frozen=True)
class Finished:
    """What a run left: rows, their summary, and the files.

    Attributes
    ----------
    experiment : Experiment
        The experiment.
    settings : Settings
        What was asked for.
    rows : list[Row]
        All rows.
    summary : Summary
        Their summary.
    files : tuple[Path, ...]
        What was written.
    """

    experiment: Experiment
    settings: Settings
    rows: list[Row]
    summary: Summary
    files: tuple[Path, ...]


def settings_for(
    experiment: Experiment,
    out: Path,
    *,
    trials: int | None = None,
    seed: int | None = None,
    data: Path | None = None,
    quick: bool = False,
    anew: bool = False,
) -> Settings:
    """Return the settings that the words ask for.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    out : Path
        The folder of the results.
    trials : int, optional
        How often; the paper's number by default, one in the short form.
    seed : int, optional
        Where chance begins. Without it the run that is in the folder goes on; a new run
        draws one and writes it down.
    data : Path, optional
        A folder of data sets; None for generated ones.
    quick : bool, default False
        Whether the run is a short one.
    anew : bool, default False
        Whether an earlier run in the folder is left out of account.

    Returns
    -------
    Settings
        The settings.
    """
    if seed is None:
        header = {} if anew else journal_header(_journal_path(experiment, out))
        seed = int(header.get("seed", secrets.randbits(32)))
    if trials is None:
        trials = experiment.quick_trials if quick else experiment.trials
    return Settings(trials=trials, seed=seed, data=data, quick=quick)


def run_experiment(
    experiment: Experiment,
    settings: Settings,
    out: Path,
    *,
    processes: int = 1,
    progress: Progress | None = None,
    anew: bool = False,
    figure: bool = True,
) -> Finished:
    """Do all tasks that are not done yet, then write CSV, figure, words.

    The experiment is pickled for other processes, so its class stands in a module.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    settings : Settings
        What is asked for.
    out : Path
        The folder of the results.
    processes : int, default 1
        How many processes work.
    progress : Progress, optional
        Gets tasks done, tasks in all and the last key.
    anew : bool, default False
        Whether what an earlier run has left in the folder is discarded.
    figure : bool, default True
        Whether a figure is drawn, which needs the extra ``plot``.

    Returns
    -------
    Finished
        What the run left.

    Raises
    ------
    InputError
        If data are missing, or the folder holds a run of other settings.
    """
    if processes < 1:
        raise InputError(f"processes must be at least 1; received {processes}")
    check_data(settings.data, experiment.needs)
    tasks = experiment.tasks(settings)
    assert len({task.key for task in tasks}) == len(tasks), "keys must differ"
    journal = _journal(experiment, settings, out, anew)
    csv = out / f"{experiment.name}.csv"
    left = [task for task in tasks if task.key not in journal.done]
    if progress is not None:
        progress(len(tasks) - len(left), len(tasks), "")
    written = time.monotonic()
    try:
        for key, rows in _run_tasks(experiment, settings, left, processes):
            journal.add(key, rows)
            if progress is not None:
                progress(len(journal.done), len(tasks), key)
            if time.monotonic() - written > SECONDS_BETWEEN_FILES:
                write_csv(csv, _rows(journal, tasks))
                written = time.monotonic()
    finally:
        # Also on the way out of an interruption.
        write_csv(csv, _rows(journal, tasks))
    rows = _rows(journal, tasks)
    summary = experiment.summary(rows, settings)
    files = [csv]
    picture = out / f"{experiment.name}.png"
    if figure:
        write_figure(picture, experiment, settings, rows, summary)
        files.append(picture)
    words = out / f"{experiment.name}.md"
    sure = with_errors(experiment, rows, settings, summary)
    write_summary(words, experiment, settings, sure, picture if figure else None)
    return Finished(experiment, settings, rows, summary, (*files, words))


def work(experiment: Experiment, task: Task, settings: Settings) -> list[Row]:
    """Do one task; every row says that its noise was seeded.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    task : Task
        The task.
    settings : Settings
        What was asked for.

    Returns
    -------
    list[Row]
        The rows.
    """
    rows = experiment.run(task, settings)
    return [{**row, "private": False} for row in rows]


def _run_tasks(
    experiment: Experiment, settings: Settings, tasks: Sequence[Task], processes: int
) -> Iterator[tuple[str, list[Row]]]:
    if processes == 1 or len(tasks) <= 1:
        for task in tasks:
            yield task.key, work(experiment, task, settings)
        return
    waiting: dict[Future[list[Row]], str] = {}
    with worker_processes(min(processes, len(tasks))) as pool:
        for task in tasks:
            waiting[pool.submit(work, experiment, task, settings)] = task.key
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                yield waiting.pop(future), future.result()


def _journal_path(experiment: Experiment, out: Path) -> Path:
    return out / f"{experiment.name}.journal"


def _journal(
    experiment: Experiment, settings: Settings, out: Path, anew: bool
) -> TaskJournal:
    header: dict[str, Any] = {
        "experiment": experiment.name,
        **experiment.parameters,
        "trials": settings.trials,
        "seed": settings.seed,
        "quick": settings.quick,
        "data": fingerprint(settings.data, experiment.needs),
        "version": _version(),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not os.access(out, os.W_OK):
            raise PermissionError(f"no permission to write in {out}")
        results = out / f"{experiment.name}.csv"
        if results.exists() and not (anew or _journal_path(experiment, out).exists()):
            raise FileExistsError(f"{results} is there, and not from such a run")
        return TaskJournal(_journal_path(experiment, out), header, anew=anew)
    except OSError as problem:
        raise InputError(
            f"results cannot be written to {out} ({problem}); choose another folder "
            "with --out"
        ) from None


def _rows(journal: TaskJournal, tasks: Sequence[Task]) -> list[Row]:
    return [row for task in tasks for row in journal.done.get(task.key, [])]


class TaskJournal:
    """Finished tasks on disk, so that an interrupted run goes on where it was.

    The first line is the header of settings, each other one ``{"task": key, "rows":
    [...]}``. A line is forced to the disk in one piece; one that was cut off is dropped
    when it is read.

    Parameters
    ----------
    path : Path
        The file.
    header : Mapping[str, object]
        The settings. A journal of other settings is refused.
    anew : bool
        Whether an earlier journal is discarded.
    """

    def __init__(self, path: Path, header: Mapping[str, Any], *, anew: bool) -> None:
        self.path = path
        self.header = dict(header)
        self.done: dict[str, list[Row]] = {}
        if path.exists() and not anew:
            self._take_up()
        else:
            path.write_text(json.dumps(self.header) + "\n")

    def add(self, key: str, rows: Sequence[Row]) -> None:
        """Append one finished task.

        Parameters
        ----------
        key : str
            Its key.
        rows : Sequence[Row]
            Its rows.
        """
        self.done[key] = list(rows)
        line = json.dumps({"task": key, "rows": self.done[key]}) + "\n"
        with self.path.open("ab", buffering=0) as file:
            file.write(line.encode())
            os.fsync(file.fileno())

    def _take_up(self) -> None:
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines()
        try:
            header = json.loads(lines[0]) if lines else {}
            for line in lines[1:]:
                entry = json.loads(line)
                self.done[entry["task"]] = entry["rows"]
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{self.path} is not a journal of finished tasks; move it away, or "
                "start anew with --anew"
            ) from None
        differing = [
            f"{name} {header.get(name)!r} there, {value!r} asked"
            for name, value in self.header.items()
            if header.get(name) != value
        ]
        if differing and lines:
            raise InputError(
                f"{self.path.parent} holds a run with other settings "
                f"({'; '.join(differing)}); choose another folder with --out, or "
                "discard that run with --anew"
            )
        if not lines:
            self.path.write_text(json.dumps(self.header) + "\n")
        elif len(whole) < len(content):
            os.truncate(self.path, len(whole))


def journal_header(path: Path) -> dict[str, Any]:
    """Return the first line of a journal; empty when there is none to read."""
    try:
        with path.open() as file:
            header = json.loads(file.readline())
    except (OSError, ValueError):
        return {}
    return header if isinstance(header, dict) else {}
