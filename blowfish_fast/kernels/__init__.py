"""Compiled kernels: arrays in, arrays out, usable without the rest of the package.

Names load on first use, so that importing this package does not import Numba.

>>> from blowfish_fast import kernels
>>> kernels.window_deviations([1, 1, 5, 5], 2)
array([0., 4., 0.])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import c_entries as c_entries
    from .all_intervals import interval_costs, least_cost_partition_all
    from .box_buckets import boxes_to_pieces, bucket_boxes
    from .box_division import cells_of_boxes, divide_boxes
    from .bucket_merge import merge_buckets
    from .cost_choice import choose_by_cost
    from .count_grid import partition_grid
    from .curve_intervals import rectangle_intervals
    from .discrete_laplace import geometric, laplace, subtract_geometric
    from .dyadic_partition import sample_dyadic_partition, sampling_slack
    from .exponential_choice import choose
    from .graph_tree import (
        breadth_first_tree,
        lowest_common,
        subtree_totals,
        without_children,
    )
    from .greedy_weights import greedy_scaling, greedy_scaling_fractions
    from .grid_boxes import runs_to_boxes
    from .haar_moments import haar_total_variance
    from .haar_spread import haar_spread_boxes
    from .haar_transform import (
        haar_cell_variances,
        haar_cells,
        haar_coefficients,
        haar_path_sums,
        haar_rows,
        haar_worst_move,
    )
    from .hilbert import hilbert_order
    from .implicit_weights import greedy_scaling_implicit
    from .interval_partition import least_cost_partition, partition_cost
    from .interval_pieces import intervals_to_pieces, ranges_to_fractions
    from .isotonic import isotonic_between, isotonic_increasing
    from .kd_gain import gain_boxes
    from .kd_split import box_order, median_boxes, median_cuts
    from .known_totals import non_negative_with_totals
    from .multiplicative_weights import pulled_masses
    from .multiscale_fit import multiscale_cells
    from .parent_fit import parent_tree_fit
    from .parent_spread import parent_tree_spread
    from .parent_tree import leaf_first_numbers, tree_of_parents
    from .piece_weights import greedy_scaling_pieces
    from .posterior_mean import shrink_towards_zero
    from .rectangle_partition import sample_rectangles
    from .sorted_groups import group_sorted
    from .sorted_squares import group_squares
    from .summed_area import (
        fractional_rectangle_sums,
        rectangle_sums,
        summed_area_table,
    )
    from .tree_inference import tree_least_squares, tree_totals
    from .tree_moments import tree_total_variance
    from .tree_paths import heaviest_pair, heaviest_path
    from .tree_shape import tree_levels
    from .tree_spread import tree_spread_pieces, tree_spread_ranges
    from .weight_sweeps import refine_scaling
    from .window_deviation import window_deviations
    from .window_matching import window_mates
    from .window_pinball import window_pinball_costs

_HOMES = {
    "box_order": "kd_split",
    "boxes_to_pieces": "box_buckets",
    "breadth_first_tree": "graph_tree",
    "bucket_boxes": "box_buckets",
    "cells_of_boxes": "box_division",
    "choose": "exponential_choice",
    "choose_by_cost": "cost_choice",
    "divide_boxes": "box_division",
    "fractional_rectangle_sums": "summed_area",
    "gain_boxes": "kd_gain",
    "geometric": "discrete_laplace",
    "greedy_scaling": "greedy_weights",
    "greedy_scaling_fractions": "greedy_weights",
    "greedy_scaling_implicit": "implicit_weights",
    "greedy_scaling_pieces": "piece_weights",
    "group_sorted": "sorted_groups",
    "group_squares": "sorted_squares",
    "haar_cell_variances": "haar_transform",
    "haar_cells": "haar_transform",
    "haar_coefficients": "haar_transform",
    "haar_path_sums": "haar_transform",
    "haar_rows": "haar_transform",
    "haar_spread_boxes": "haar_spread",
    "haar_total_variance": "haar_moments",
    "haar_worst_move": "haar_transform",
    "heaviest_pair": "tree_paths",
    "heaviest_path": "tree_paths",
    "hilbert_order": "hilbert",
    "interval_costs": "all_intervals",
    "intervals_to_pieces": "interval_pieces",
    "isotonic_between": "isotonic",
    "isotonic_increasing": "isotonic",
    "laplace": "discrete_laplace",
    "leaf_first_numbers": "parent_tree",
    "least_cost_partition": "interval_partition",
    "least_cost_partition_all": "all_intervals",
    "lowest_common": "graph_tree",
    "median_boxes": "kd_split",
    "median_cuts": "kd_split",
    "merge_buckets": "bucket_merge",
    "multiscale_cells": "multiscale_fit",
    "non_negative_with_totals": "known_totals",
    "parent_tree_fit": "parent_fit",
    "parent_tree_spread": "parent_spread",
    "partition_cost": "interval_partition",
    "partition_grid": "count_grid",
    "pulled_masses": "multiplicative_weights",
    "ranges_to_fractions": "interval_pieces",
    "rectangle_intervals": "curve_intervals",
    "rectangle_sums": "summed_area",
    "refine_scaling": "weight_sweeps",
    "runs_to_boxes": "grid_boxes",
    "sample_dyadic_partition": "dyadic_partition",
    "sample_rectangles": "rectangle_partition",
    "sampling_slack": "dyadic_partition",
    "shrink_towards_zero": "posterior_mean",
    "subtract_geometric": "discrete_laplace",
    "subtree_totals": "graph_tree",
    "summed_area_table": "summed_area",
    "tree_least_squares": "tree_inference",
    "tree_levels": "tree_shape",
    "tree_of_parents": "parent_tree",
    "tree_spread_pieces": "tree_spread",
    "tree_spread_ranges": "tree_spread",
    "tree_total_variance": "tree_moments",
    "tree_totals": "tree_inference",
    "window_deviations": "window_deviation",
    "window_mates": "window_matching",
    "window_pinball_costs": "window_pinball",
    "without_children": "graph_tree",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "c_entries":
            return importlib.import_module(f"{__name__}.c_entries")
        if name in _HOMES:
            module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
            value = getattr(module, name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "box_order",
    "boxes_to_pieces",
    "breadth_first_tree",
    "bucket_boxes",
    "cells_of_boxes",
    "choose",
    "choose_by_cost",
    "divide_boxes",
    "fractional_rectangle_sums",
    "gain_boxes",
    "geometric",
    "greedy_scaling",
    "greedy_scaling_fractions",
    "greedy_scaling_implicit",
    "greedy_scaling_pieces",
    "group_sorted",
    "group_squares",
    "haar_cell_variances",
    "haar_cells",
    "haar_coefficients",
    "haar_path_sums",
    "haar_rows",
    "haar_spread_boxes",
    "haar_total_variance",
    "haar_worst_move",
    "heaviest_pair",
    "heaviest_path",
    "hilbert_order",
    "interval_costs",
    "intervals_to_pieces",
    "isotonic_between",
    "isotonic_increasing",
    "laplace",
    "leaf_first_numbers",
    "least_cost_partition",
    "least_cost_partition_all",
    "lowest_common",
    "median_boxes",
    "median_cuts",
    "merge_buckets",
    "multiscale_cells",
    "non_negative_with_totals",
    "parent_tree_fit",
    "parent_tree_spread",
    "partition_cost",
    "partition_grid",
    "pulled_masses",
    "ranges_to_fractions",
    "rectangle_intervals",
    "rectangle_sums",
    "refine_scaling",
    "runs_to_boxes",
    "sample_dyadic_partition",
    "sample_rectangles",
    "sampling_slack",
    "shrink_towards_zero",
    "subtract_geometric",
    "subtree_totals",
    "summed_area_table",
    "tree_least_squares",
    "tree_levels",
    "tree_of_parents",
    "tree_spread_pieces",
    "tree_spread_ranges",
    "tree_total_variance",
    "tree_totals",
    "window_deviations",
    "window_mates",
    "window_pinball_costs",
    "without_children",
]
