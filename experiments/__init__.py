"""The papers' tables and figures, each by one command."""

from __future__ import annotations

from blowfish_fast.advice.experiments.experiment import (
    Experiment,
    PaperVerdict,
    Row,
    Settings,
    Summary,
    Task,
    seed_of,
)
from blowfish_fast.advice.experiments.runner import Finished, run_experiment

from .collection import all_experiments, experiment_named

__all__ = [
    "Experiment",
    "Finished",
    "PaperVerdict",
    "Row",
    "Settings",
    "Summary",
    "Task",
    "all_experiments",
    "experiment_named",
    "run_experiment",
    "seed_of",
]
