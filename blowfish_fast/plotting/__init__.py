"""Pictures of releases, policies, errors and budgets; needs the extra ``plot``.

Every function returns the axes it drew on, those of a new figure or those given by
``axes=``, and shows nothing by itself. Only public values are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blowfish_fast._support import palette
from blowfish_fast._support.near_misses import hints_of

from .budget_steps import budget_over_time
from .choropleths import choropleth
from .error_curves import error_against_epsilon, tradeoff_over_theta
from .histograms import histogram
from .maps import density, grid_map, measured_tables, table_errors
from .policy_graphs import policy_graph
from .query_answers import answers, groups
from .series_bands import series
from .wide import buckets, listed_cells

__all__ = [
    "answers",
    "buckets",
    "budget_over_time",
    "choropleth",
    "density",
    "error_against_epsilon",
    "grid_map",
    "groups",
    "histogram",
    "listed_cells",
    "measured_tables",
    "palette",
    "policy_graph",
    "series",
    "table_errors",
    "tradeoff_over_theta",
]
__dir__ = sorted(__all__).copy

if not TYPE_CHECKING:
    # Checkers of types would take it for a package that has every name.
    __getattr__ = hints_of(__name__, __all__)
