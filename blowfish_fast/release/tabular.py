"""Answers and intervals as tables and frames, and what these call a recipe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast.workloads import Identity

from .grants import BOUND_NAMES

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from blowfish_fast.data.frames import Table

STRATEGIES = {
    "cells": "vertex",
    "edge_noise": "edge",
    "ordered_hierarchy": "ordered_hierarchical",
    "prefix_sums": "ordered",
    "spanning_tree": "tree",
    "tree": "tuned_tree",
}
"""From the kind of a strategy to the name under which it is asked for."""


class Tabular(ABC):
    """Something with a table, which becomes a frame of any library."""

    @abstractmethod
    def to_table(self, confidence: float | None = 0.95) -> Table:
        """Return the answers in columns, with intervals unless `confidence` is None."""

    def to_pandas(self, confidence: float | None = 0.95) -> pandas.DataFrame:
        """Return `to_table` as a pandas data frame."""
        return self.to_table(confidence).to_pandas()

    def to_polars(self, confidence: float | None = 0.95) -> polars.DataFrame:
        """Return `to_table` as a polars data frame."""
        return self.to_table(confidence).to_polars()

    def to_arrow(self, confidence: float | None = 0.95) -> pyarrow.Table:
        """Return `to_table` as an arrow table."""
        return self.to_table(confidence).to_arrow()


def cell_table(source: Any, confidence: float | None) -> Table:
    """Return one row per cell: what it stands for, its estimate, its interval."""
    from blowfish_fast.data.frames import Table, cell_columns

    places = np.unravel_index(np.arange(source.domain.size), source.domain.shape)
    columns = cell_columns(source.domain, list(places))
    columns["estimate"] = source.estimate.reshape(-1)
    if confidence is not None and source.interval_scope == "noise":
        cells = Identity(source.domain)
        kind = source.interval_kind(cells, confidence)
        bounds = source.intervals(cells, confidence, of=kind)
        low, high = BOUND_NAMES[kind]
        columns[low], columns[high] = bounds.T
    return Table(columns, experiment=not source.private)


def recipe_name(release: Any) -> str:
    """Return the name under which the recipe of a release can be asked for again."""
    name = str(release.mechanism)
    return strategy_name(release.details) if name == "transformed" else name


def strategy_name(details: Any) -> str:
    """Return the name of the strategy that details of a release tell of."""
    kind = str(details.get("strategy", "transformed"))
    return STRATEGIES.get(kind, kind)
