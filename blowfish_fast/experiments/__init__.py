"""The papers' tables and figures, each by one command."""

from __future__ import annotations

from .base import Experiment, Row, Settings, Summary, Task, Verdict, seed_of
from .collection import all_experiments, experiment_named
from .runner import Finished, run_experiment

__all__ = [
    "Experiment",
    "Finished",
    "Row",
    "Settings",
    "Summary",
    "Task",
    "Verdict",
    "all_experiments",
    "experiment_named",
    "run_experiment",
    "seed_of",
]
