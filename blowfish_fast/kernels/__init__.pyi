from .capi import c_entries as c_entries
from .fitting.bucket_curve import smooth_buckets as smooth_buckets
from .fitting.isotonic import isotonic_fit as isotonic_fit
from .fitting.isotonic import (
    non_negative_with_totals as non_negative_with_totals,
)
from .fitting.level_runs import fit_level_runs as fit_level_runs
from .fitting.lloyd import assigned_totals as assigned_totals
from .fitting.lloyd import cell_positions as cell_positions
from .fitting.lloyd import cluster_totals as cluster_totals
from .fitting.lloyd import nearest_clusters as nearest_clusters
from .fitting.lloyd import squared_distance_total as squared_distance_total
from .fitting.multiplicative_weights import (
    multiplicative_update as multiplicative_update,
)
from .fitting.multiscale_fit import multiscale_cells as multiscale_cells
from .fitting.neighbour_prior import mean_cells as mean_cells
from .fitting.neighbour_prior import median_cells as median_cells
from .fitting.piecewise_fit import knot_heights as knot_heights
from .fitting.piecewise_fit import piecewise_linear as piecewise_linear
from .fitting.posterior_mean import shrink_towards_zero as shrink_towards_zero
from .fitting.record_exchange import exchange_records as exchange_records
from .graph.column_distance import column_lengths as column_lengths
from .graph.column_distance import furthest_in_pairs as furthest_in_pairs
from .graph.column_distance import furthest_in_windows as furthest_in_windows
from .graph.column_distance import repeated_columns as repeated_columns
from .graph.constraint_cycles import SEVERAL as SEVERAL
from .graph.constraint_cycles import edge_changes as edge_changes
from .graph.constraint_cycles import longest_cycle as longest_cycle
from .graph.constraint_cycles import longest_open_path as longest_open_path
from .graph.edge_line_noise import Energies as Energies
from .graph.edge_line_noise import border_moments as border_moments
from .graph.edge_line_noise import cut_variances as cut_variances
from .graph.edge_line_noise import line_energies as line_energies
from .graph.edge_line_noise import line_levels as line_levels
from .graph.edge_line_noise import longest_edge as longest_edge
from .graph.edge_line_noise import range_borders as range_borders
from .graph.graph_distance import adjacency as adjacency
from .graph.graph_distance import band_distances as band_distances
from .graph.graph_distance import clique_pairs as clique_pairs
from .graph.graph_distance import component_labels as component_labels
from .graph.graph_distance import corner_distances as corner_distances
from .graph.graph_distance import group_members as group_members
from .graph.graph_distance import group_rows as group_rows
from .graph.graph_distance import pair_distances as pair_distances
from .graph.graph_distance import upper_pairs as upper_pairs
from .graph.graph_tree import breadth_first_tree as breadth_first_tree
from .graph.graph_tree import lowest_common as lowest_common
from .graph.graph_tree import path_crossings as path_crossings
from .graph.graph_tree import subtract_children as subtract_children
from .graph.graph_tree import subtree_totals as subtree_totals
from .graph.graph_tree import top_down_order as top_down_order
from .graph.range_sensitivity import largest_change_within as largest_change_within
from .graph.range_sensitivity import largest_edge_separation as largest_edge_separation
from .graph.range_sensitivity import largest_separation as largest_separation
from .graph.range_sensitivity import range_coverage as range_coverage
from .partition.cost_partition import (
    least_cost_partition_of_costs as least_cost_partition_of_costs,
)
from .partition.dyadic_partition import (
    sample_dyadic_partition as sample_dyadic_partition,
)
from .partition.dyadic_partition import sample_tree_of_costs as sample_tree_of_costs
from .partition.dyadic_partition import sampling_slack as sampling_slack
from .partition.dyadic_partition import tree_weights as tree_weights
from .partition.interval_partition import least_cost_partition as least_cost_partition
from .partition.interval_partition import least_cost_partitions as least_cost_partitions
from .partition.interval_partition import partition_cost as partition_cost
from .partition.kd_trees import gain_boxes as gain_boxes
from .partition.kd_trees import median_boxes as median_boxes
from .partition.kd_trees import median_cuts as median_cuts
from .partition.rectangle_partition import sample_rectangles as sample_rectangles
from .partition.rectangle_partition import (
    sample_rectangles_of_costs as sample_rectangles_of_costs,
)
from .partition.rectangle_prior import rectangle_slack as rectangle_slack
from .sampling.discrete_gaussian import gaussian as gaussian
from .sampling.discrete_laplace import geometric as geometric
from .sampling.discrete_laplace import laplace as laplace
from .sampling.discrete_laplace import subtract_geometric as subtract_geometric
from .sampling.exponential_choice import ABSENT as ABSENT
from .sampling.exponential_choice import NO_CANDIDATE as NO_CANDIDATE
from .sampling.exponential_choice import choose as choose
from .sampling.exponential_choice import choose_by_cost as choose_by_cost
from .sampling.half_width_bounds import GAUSSIAN_OFFSETS as GAUSSIAN_OFFSETS
from .sampling.half_width_bounds import gaussian_half_widths as gaussian_half_widths
from .sampling.half_width_bounds import interval_bounds as interval_bounds
from .sampling.half_width_bounds import laplace_half_widths as laplace_half_widths
from .sampling.word_sources import secure_words as secure_words
from .space.box_buckets import boxes_to_pieces as boxes_to_pieces
from .space.box_buckets import bucket_boxes as bucket_boxes
from .space.box_buckets import bucket_corners as bucket_corners
from .space.box_buckets import cells_of_boxes as cells_of_boxes
from .space.box_buckets import divide_boxes as divide_boxes
from .space.chosen_records import Texts as Texts
from .space.chosen_records import first_by_tag as first_by_tag
from .space.chosen_records import keyed_tags as keyed_tags
from .space.curve_intervals import rectangle_intervals as rectangle_intervals
from .space.even_cells import spread_evenly as spread_evenly
from .space.grid_boxes import runs_to_boxes as runs_to_boxes
from .space.hilbert import hilbert_order as hilbert_order
from .space.interval_pieces import bucket_landmarks as bucket_landmarks
from .space.interval_pieces import end_buckets as end_buckets
from .space.interval_pieces import intervals_to_pieces as intervals_to_pieces
from .space.interval_pieces import ranges_to_fractions as ranges_to_fractions
from .space.nearest_borders import EdgeBoxes as EdgeBoxes
from .space.nearest_borders import edge_boxes as edge_boxes
from .space.nearest_borders import nearest_edges as nearest_edges
from .space.point_location import NOWHERE as NOWHERE
from .space.point_location import OVERLAPPING as OVERLAPPING
from .space.point_location import edge_index as edge_index
from .space.point_location import first_clash as first_clash
from .space.point_location import locate_points as locate_points
from .space.record_cells import Targets as Targets
from .space.record_cells import cells_between_edges as cells_between_edges
from .space.record_cells import count_into as count_into
from .space.record_cells import count_tables as count_tables
from .space.record_cells import edge_guide as edge_guide
from .space.summed_area import box_columns as box_columns
from .space.summed_area import box_coverage as box_coverage
from .space.summed_area import fractional_rectangle_sums as fractional_rectangle_sums
from .space.summed_area import largest_box_separation as largest_box_separation
from .space.summed_area import largest_rectangle_sum as largest_rectangle_sum
from .space.summed_area import rectangle_sums as rectangle_sums
from .space.summed_area import step_slices as step_slices
from .space.summed_area import summed_area_table as summed_area_table
from .transform.fourier_rows import STEP_BITS as STEP_BITS
from .transform.fourier_rows import circle_sums as circle_sums
from .transform.fourier_rows import heaviest_column as heaviest_column
from .transform.fourier_rows import largest_turn as largest_turn
from .transform.haar_spread import haar_noise as haar_noise
from .transform.haar_spread import haar_spread_boxes as haar_spread_boxes
from .transform.haar_spread import haar_total_variance as haar_total_variance
from .transform.haar_spread import spread_boxes as spread_boxes
from .transform.haar_transform import haar_cell_variances as haar_cell_variances
from .transform.haar_transform import haar_cells as haar_cells
from .transform.haar_transform import haar_coefficients as haar_coefficients
from .transform.haar_transform import haar_path_sums as haar_path_sums
from .transform.haar_transform import haar_rows as haar_rows
from .transform.haar_transform import haar_worst_move as haar_worst_move
from .tree.block_spread import block_noise as block_noise
from .tree.block_spread import hat_diagonal as hat_diagonal
from .tree.block_spread import hierarchy_variances as hierarchy_variances
from .tree.block_spread import lift_cuts as lift_cuts
from .tree.block_spread import moment_bounds as moment_bounds
from .tree.block_spread import range_cuts as range_cuts
from .tree.block_trees import trees_over_blocks as trees_over_blocks
from .tree.block_trees import worst_block_move as worst_block_move
from .tree.fit import lower_bounds as lower_bounds
from .tree.fit import pruned_leaves as pruned_leaves
from .tree.fit import top_down_fit as top_down_fit
from .tree.fit import tree_fit as tree_fit
from .tree.least_squares_variances import node_variances as node_variances
from .tree.level_shares import shared_weights as shared_weights
from .tree.moments import tree_total_variance as tree_total_variance
from .tree.moments import tree_variances as tree_variances
from .tree.noise_rows import tree_noise as tree_noise
from .tree.paths import LeafDistances as LeafDistances
from .tree.paths import heaviest_pair as heaviest_pair
from .tree.paths import heaviest_path as heaviest_path
from .tree.paths import uncrossed_nodes as uncrossed_nodes
from .tree.shape import leaf_first_numbers as leaf_first_numbers
from .tree.shape import regular_tree as regular_tree
from .tree.shape import renumber_nodes as renumber_nodes
from .tree.shape import tree_levels as tree_levels
from .tree.shape import tree_of_parents as tree_of_parents
from .tree.shape import tree_totals as tree_totals
from .tree.spread import spread_pieces as spread_pieces
from .tree.spread import spread_ranges as spread_ranges
from .tree.spread import tree_spread_pieces as tree_spread_pieces
from .tree.spread import tree_spread_ranges as tree_spread_ranges
from .tree.whole_rounding import whole_families as whole_families
from .tree_scaling.budget_shares import allocate_budget as allocate_budget
from .tree_scaling.greedy_weights import greedy_scaling as greedy_scaling
from .tree_scaling.greedy_weights import (
    greedy_scaling_fractions as greedy_scaling_fractions,
)
from .tree_scaling.greedy_weights import (
    greedy_scaling_implicit as greedy_scaling_implicit,
)
from .tree_scaling.greedy_weights import greedy_scaling_pieces as greedy_scaling_pieces
from .tree_scaling.range_queries import sorted_ranges as sorted_ranges
from .tree_scaling.square_root_weights import design_family as design_family
from .tree_scaling.square_root_weights import design_pieces as design_pieces
from .tree_scaling.square_root_weights import design_ranges as design_ranges
from .tree_scaling.weight_sweeps import refine_scaling as refine_scaling
from .tree_scaling.weight_sweeps import safeguard_weight as safeguard_weight
from .tree_scaling.weight_sweeps import tune_fan_outs as tune_fan_outs
from .window_costs.all_intervals import interval_costs as interval_costs
from .window_costs.all_intervals import (
    least_cost_partition_all as least_cost_partition_all,
)
from .window_costs.baseline_costs import best_heads as best_heads
from .window_costs.baseline_costs import bisection_grid as bisection_grid
from .window_costs.baseline_costs import bucket_errors as bucket_errors
from .window_costs.baseline_costs import split_table as split_table
from .window_costs.baseline_costs import squares_grid as squares_grid
from .window_costs.count_grid import partition_grid as partition_grid
from .window_costs.count_grid import step_exponent as step_exponent
from .window_costs.rectangle_costs import SharedCosts as SharedCosts
from .window_costs.rectangle_costs import counts_within as counts_within
from .window_costs.rectangle_costs import least_even_cost as least_even_cost
from .window_costs.rectangle_costs import least_sum_of_costs as least_sum_of_costs
from .window_costs.rectangle_costs import price_within as price_within
from .window_costs.short_windows import window_deviations as window_deviations
from .window_costs.short_windows import window_pinball_costs as window_pinball_costs
from .window_costs.sorted_groups import group_sorted as group_sorted
from .window_costs.sorted_groups import group_squares as group_squares
from .window_costs.sorted_groups import merge_buckets as merge_buckets
from .window_costs.window_matching import window_mates as window_mates
