"""Compiled kernels: arrays in, arrays out, usable without the rest of the package.

Names load on first use, so that importing this package does not import Numba.

>>> from blowfish_fast import kernels
>>> kernels.window_deviations([1, 1, 5, 5], 2)
array([0., 4., 0.])
"""

from __future__ import annotations

from blowfish_fast._support.optional import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "fitting.isotonic": "isotonic_fit non_negative_with_totals",
        "fitting.multiplicative_weights": "multiplicative_update",
        "fitting.multiscale_fit": "multiscale_cells",
        "fitting.posterior_mean": "shrink_towards_zero",
        "graph.graph_tree": "breadth_first_tree lowest_common subtract_children "
        "subtree_totals",
        "partition.cost_partition": "least_cost_partition_of_costs",
        "partition.dyadic_partition": "sample_dyadic_partition sampling_slack",
        "partition.interval_partition": "least_cost_partition partition_cost",
        "partition.kd_trees": "gain_boxes median_boxes median_cuts",
        "partition.rectangle_partition": "sample_rectangles",
        "sampling.discrete_gaussian": "gaussian",
        "sampling.discrete_laplace": "geometric laplace subtract_geometric",
        "sampling.exponential_choice": "choose choose_by_cost",
        "sampling.word_sources": "secure_words",
        "space.box_buckets": "boxes_to_pieces bucket_boxes cells_of_boxes divide_boxes",
        "space.curve_intervals": "rectangle_intervals",
        "space.grid_boxes": "runs_to_boxes",
        "space.hilbert": "hilbert_order",
        "space.interval_pieces": "intervals_to_pieces ranges_to_fractions",
        "space.summed_area": "fractional_rectangle_sums rectangle_sums "
        "summed_area_table",
        "transform.haar_spread": "haar_spread_boxes haar_total_variance",
        "transform.haar_transform": "haar_cell_variances haar_cells "
        "haar_coefficients haar_path_sums haar_rows haar_worst_move",
        "tree.fit": "tree_fit",
        "tree.moments": "tree_total_variance",
        "tree.paths": "heaviest_pair heaviest_path",
        "tree.shape": "leaf_first_numbers regular_tree tree_levels tree_of_parents "
        "tree_totals",
        "tree.spread": "tree_spread_pieces tree_spread_ranges",
        "tree_scaling.greedy_weights": "greedy_scaling greedy_scaling_fractions "
        "greedy_scaling_implicit greedy_scaling_pieces",
        "tree_scaling.weight_sweeps": "refine_scaling",
        "window_costs.all_intervals": "interval_costs least_cost_partition_all",
        "window_costs.count_grid": "partition_grid",
        "window_costs.short_windows": "window_deviations window_pinball_costs",
        "window_costs.sorted_groups": "group_sorted group_squares merge_buckets",
        "window_costs.window_matching": "window_mates",
    },
    # Used inside the package; no promise of compatibility.
    internal={
        "capi.c_entries": "",
        "fitting.level_runs": "fit_level_runs",
        "fitting.lloyd": "assigned_totals cell_positions cluster_totals "
        "nearest_clusters squared_distance_total",
        "fitting.neighbour_prior": "mean_cells median_cells",
        "fitting.piecewise_fit": "knot_heights piecewise_linear",
        "fitting.record_exchange": "exchange_records",
        "fitting.bucket_curve": "smooth_buckets",
        "graph.column_distance": "column_lengths furthest_in_pairs "
        "furthest_in_windows repeated_columns",
        "graph.constraint_cycles": "SEVERAL edge_changes longest_cycle "
        "longest_open_path",
        "graph.edge_line_noise": "Energies border_moments cut_variances line_energies "
        "line_levels longest_edge range_borders",
        "graph.graph_distance": "adjacency band_distances clique_pairs "
        "component_labels corner_distances group_members group_rows pair_distances "
        "upper_pairs",
        "graph.graph_tree": "path_crossings top_down_order",
        "graph.range_sensitivity": "largest_change_within largest_edge_separation "
        "largest_separation range_coverage",
        "partition.dyadic_partition": "sample_tree_of_costs tree_weights",
        "partition.interval_partition": "least_cost_partitions",
        "partition.rectangle_partition": "sample_rectangles_of_costs",
        "partition.rectangle_prior": "rectangle_slack",
        "sampling.exponential_choice": "ABSENT NO_CANDIDATE",
        "sampling.half_width_bounds": "GAUSSIAN_OFFSETS gaussian_half_widths "
        "interval_bounds laplace_half_widths",
        "space.box_buckets": "bucket_corners",
        "space.chosen_records": "Texts first_by_tag keyed_tags",
        "space.even_cells": "spread_evenly",
        "space.interval_pieces": "bucket_landmarks end_buckets",
        "space.nearest_borders": "EdgeBoxes edge_boxes nearest_edges",
        "space.point_location": "NOWHERE OVERLAPPING edge_index "
        "first_clash locate_points",
        "space.record_cells": "Targets cells_between_edges count_into count_tables "
        "edge_guide",
        "space.summed_area": "box_columns box_coverage largest_box_separation "
        "largest_rectangle_sum step_slices",
        "transform.fourier_rows": "STEP_BITS circle_sums heaviest_column largest_turn",
        "transform.haar_spread": "haar_noise spread_boxes",
        "tree.block_spread": "block_noise hat_diagonal hierarchy_variances "
        "lift_cuts moment_bounds range_cuts",
        "tree.block_trees": "trees_over_blocks worst_block_move",
        "tree.fit": "lower_bounds pruned_leaves top_down_fit",
        "tree.moments": "tree_variances",
        "tree.least_squares_variances": "node_variances",
        "tree.level_shares": "shared_weights",
        "tree.noise_rows": "tree_noise",
        "tree.shape": "renumber_nodes",
        "tree.paths": "LeafDistances uncrossed_nodes",
        "tree.spread": "spread_pieces spread_ranges",
        "tree.whole_rounding": "whole_families",
        "tree_scaling.budget_shares": "allocate_budget",
        "tree_scaling.range_queries": "sorted_ranges",
        "tree_scaling.square_root_weights": "design_family design_pieces design_ranges",
        "tree_scaling.weight_sweeps": "safeguard_weight tune_fan_outs",
        "window_costs.baseline_costs": "best_heads bisection_grid bucket_errors "
        "split_table squares_grid",
        "window_costs.count_grid": "step_exponent",
        "window_costs.rectangle_costs": "SharedCosts counts_within least_even_cost "
        "least_sum_of_costs price_within",
    },
    guard="_arguments:refuse_odd_arguments",
)
