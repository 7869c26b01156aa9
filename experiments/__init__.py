"""The papers' tables and figures, each by one command."""

from __future__ import annotations

from blowfish_fast.advice.experiments.experiment import (
    Experiment,
    Row,
    Settings,
    Summary,
    Task,
    Verdict,
    seed_of,
)
from blowfish_fast.advice.experiments.runner import Finished, run_experiment

from .collection import all_experiments, experiment_named

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
