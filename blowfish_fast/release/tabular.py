"""Answers and intervals as tables and frames, and what these call a recipe."""

from __future__ import annotations

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


class Tabular:
    """Cells or groups with estimates, as a table and as a frame of any library."""

    def to_table(self: Any, confidence: float | None = 0.95) -> Table:
        """Return one row per cell: what it stands for, its estimate, its interval.

        Columns `low` and `high` hold the true count, `noise_low` and `noise_high` the
        noise alone; all are left out with ``confidence=None``, or if nothing is known.
        """
        from blowfish_fast.data.frames import Table, cell_columns

        places = np.unravel_index(np.arange(self.domain.size), self.domain.shape)
        columns = cell_columns(self.domain, list(places))
        columns["estimate"] = self.estimate.reshape(-1)
        if confidence is not None and self.interval_scope == "noise":
            cells = Identity(self.domain)
            kind = self.interval_kind(cells, confidence)
            low, high = BOUND_NAMES[kind]
            columns[low], columns[high] = self.intervals(cells, confidence, of=kind).T
        return Table(columns, experiment=not self.private)

    def to_pandas(self, confidence: float | None = 0.95) -> pandas.DataFrame:
        """Return `to_table` as a pandas data frame."""
        return self.to_table(confidence).to_pandas()

    def to_polars(self, confidence: float | None = 0.95) -> polars.DataFrame:
        """Return `to_table` as a polars data frame."""
        return self.to_table(confidence).to_polars()

    def to_arrow(self, confidence: float | None = 0.95) -> pyarrow.Table:
        """Return `to_table` as an arrow table."""
        return self.to_table(confidence).to_arrow()


def recipe_name(release: Any) -> str:
    """Return the name under which the recipe of a release can be asked for again."""
    name = str(release.mechanism)
    return strategy_name(release.details) if name == "transformed" else name


def strategy_name(details: Any) -> str:
    """Return the name of the strategy that details of a release tell of."""
    kind = str(details.get("strategy", "transformed"))
    return STRATEGIES.get(kind, kind)
