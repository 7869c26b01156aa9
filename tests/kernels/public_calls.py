"""An example call of every public kernel, for the tests of the stable interface."""

from __future__ import annotations

import inspect
import json
import sys
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np


class Call(NamedTuple):
    """Arguments of a call that succeeds, and what comes back."""

    arguments: tuple[Any, ...]
    options: dict[str, Any]
    returns: str
    """Dtypes of the arrays and names of the scalars returned, in order."""


def words(position: int, count: int) -> np.ndarray:
    """Give the same scattered words at a position every time."""
    # Positions of rare continuations lie beyond 2^63.
    places = np.arange(count, dtype=np.uint64) + np.uint64(position % 2**64)
    with np.errstate(over="ignore"):
        mixed = places * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))


def _call(*arguments: Any, returns: str, **options: Any) -> Call:
    return Call(arguments, options, returns)


def _tree() -> Any:
    from blowfish_fast import kernels

    return kernels.regular_tree(3, 2)


def _whole(*values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def _real(*values: Any) -> np.ndarray:
    return np.array(values, dtype=np.float64)


GRID = np.array([[9, 9, 0, 0], [9, 9, 1, 0]], dtype=np.int64)
LOWS, HIGHS = _whole([0, 0], [0, 2]), _whole([2, 2], [2, 4])
PARENTS = _whole(1, -1, 1, 2)
TABLE = np.pad(GRID.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
RUNS = (_whole(0, 1, 2), _whole(0, 1), _whole(2, 3), _real(1.0, 2.0))
ENDS = (_whole(0, 1), _real(0.5, 1.0), _whole(2, 1), _real(1.0, 1.0))
NODES = 6  # of a binary tree over three leaves
CELLS = _whole(2, 3, 8, 1, 0, 2, 0, 4, 2, 4)


def calls() -> dict[str, Call]:
    """Return the calls by the name of the kernel."""
    ints, reals = "int64", "float64"
    rows = "int64 int64"
    pieces = "int64 int64 int64 float64"
    spread = "float64 float64 float64 float64 float64"
    return {
        "boxes_to_pieces": _call(
            _real([0, 1]),
            _real([2, 3.5]),
            np.stack([LOWS, HIGHS], axis=1),
            returns=pieces,
        ),
        "breadth_first_tree": _call(
            _whole(0, 1, 3, 4), _whole(1, 0, 2, 1), _whole(1, 0, 2), returns=ints
        ),
        "bucket_boxes": _call(
            _whole(0, 1, 3, 4, 2, 5), _whole(0, 4, 6), (2, 3), returns=ints
        ),
        "cells_of_boxes": _call(LOWS, HIGHS, (2, 4), returns=rows),
        "choose": _call(words, 0, _whole([0, 0, 0], [0, 512, 0]), 8, returns=ints),
        "choose_by_cost": _call(
            words, 0, _whole([7, 5, 9], [1, 1, 1]), Fraction(3), returns=ints
        ),
        "divide_boxes": _call(
            LOWS, HIGHS, _whole([1, 2], [2, 1]), returns="int64 int64 int64"
        ),
        "fractional_rectangle_sums": _call(
            TABLE, _real([0.5, 0]), _real([2, 1.5]), returns=reals
        ),
        "gain_boxes": _call(
            GRID, cell_variance=0.1, price=1, caution=2, depth=9, returns=rows
        ),
        "geometric": _call(words, 0, _whole(3, 5), _whole(1, 2), returns=ints),
        "greedy_scaling": _call(
            _whole(0, 1), _whole(3, 2), _real(1, 2), 3, 2, returns=reals
        ),
        "greedy_scaling_fractions": _call(
            *ENDS, _real(1, 2), 3, 2, returns="float64 float"
        ),
        "greedy_scaling_implicit": _call(
            "all_ranges", _whole(0, 1, 4, 6), 2, returns="float64 float"
        ),
        "greedy_scaling_pieces": _call(
            *RUNS, _real(1, 2), 3, 2, returns="float64 float"
        ),
        "group_sorted": _call(_whole(0, 0, 1, 7, 8, 90), 3.0, returns=ints),
        "group_squares": _call(_whole(0, 0, 0, 0, 40, 43, 90), 1.0, 20.0, returns=ints),
        "haar_cell_variances": _call(_real(1, 2, 1, 1), returns=reals),
        "haar_cells": _call(_real(8, 4, 4, 2), returns=reals),
        "haar_coefficients": _call(_real(1, 1, 0, 0), returns=reals),
        "haar_path_sums": _call(_whole(1, 10, 100, 1000), returns=ints),
        "haar_rows": _call(_whole(5, 1, 2, 0), returns=ints),
        "haar_spread_boxes": _call(
            _real(8, 4, 1, 1),
            _real(2, 1, 1, 1),
            (4,),
            _whole(0, 1),
            _whole([0]),
            _whole([3]),
            _real(1),
            returns=spread,
        ),
        "haar_total_variance": _call(
            _real(4, 4), "all_ranges", _whole(0, 1, 2), returns="float"
        ),
        "haar_worst_move": _call(_whole(1, 10, 100, 1000), returns="int"),
        "heaviest_pair": _call(_whole(1, 4, 3, 2, 0, 5), _tree(), returns="int"),
        "heaviest_path": _call(_whole(1, 4, 3, 2, 0, 5), _tree(), returns="int"),
        "hilbert_order": _call((2, 3), returns=ints),
        "interval_costs": _call(_whole(2, 3, 8), step=0.5, returns=ints),
        "intervals_to_pieces": _call(
            _whole(0, 1),
            _whole(1),
            _whole(6),
            _real(1),
            _whole(0, 2, 5, 9),
            returns=pieces,
        ),
        "isotonic_fit": _call(_real(-1, 3, 1, 9), low=0, high=8, returns=reals),
        "gaussian": _call(words, 0, _whole(30, 500), _whole(1, 2), returns=ints),
        "laplace": _call(words, 0, _whole(3, 5), _whole(1, 2), returns=ints),
        "leaf_first_numbers": _call(_whole(-1, 0, 0, 1, 1), returns=ints),
        "least_cost_partition": _call(
            CELLS, _real(2, 2, 2, 2), step=2.0**-8, returns=ints
        ),
        "least_cost_partition_all": _call(
            CELLS, _real(*[2] * 10), step=2.0**-8, returns=ints
        ),
        "least_cost_partition_of_costs": _call(
            _whole([0, 5, 1, 1, 5], [0, 0, 6, 1, 6]), _whole(1, 2), returns=ints
        ),
        "lowest_common": _call(
            PARENTS, _whole(1, 0, 2, 3), _whole(0, 3), _whole(3, 2), returns=ints
        ),
        "median_boxes": _call(
            GRID, level=0.5, slack=0, count=99, mode="or", depth=9, returns=rows
        ),
        "median_cuts": _call(_real(5, 1, 1, 1, 7), _whole(0, 4, 5), returns=ints),
        "merge_buckets": _call(_real(1, 2, 1, 9, 8), 3.0, returns=ints),
        "multiscale_cells": _call(
            _real(9, 22, 29, 40),
            np.array([False, False, False, True]),
            2.0,
            returns=reals,
        ),
        "non_negative_with_totals": _call(
            _real(5, 3, -1), _whole(0, 0, 0), _real(6), returns=reals
        ),
        "partition_cost": _call(CELLS, _whole(0, 2, 3, 10), returns="float"),
        "partition_grid": _call(1024, 4.0, returns="float int"),
        "multiplicative_update": _call(
            _real(5, 5, 2), *RUNS, _real(8, 3), total=12.0, returns=reals
        ),
        "ranges_to_fractions": _call(
            _whole(1),
            _whole(6),
            _whole(0, 2, 5, 9),
            returns="int64 float64 int64 float64",
        ),
        "rectangle_intervals": _call(
            _whole(0, 1, 2, 5, 4, 3),
            _whole(0, 1, 2, 5, 4, 3),
            (2, 3),
            _real([0, 0], [0, 1]),
            _real([2, 2], [2, 3]),
            returns=pieces,
        ),
        "rectangle_sums": _call(TABLE, LOWS, HIGHS, returns=ints),
        "refine_scaling": _call(*ENDS, _real(1, 2), 3, 2, returns="float64 float"),
        "regular_tree": _call(5, 2, returns="Tree"),
        "runs_to_boxes": _call(
            _whole(0, 3),
            _whole(1, 5, 9),
            _whole(3, 7, 11),
            _real(1, 1, 1),
            (3, 4),
            returns=pieces,
        ),
        "sample_dyadic_partition": _call(CELLS, words, rate=4, penalty=1, returns=ints),
        "sample_rectangles": _call(GRID, words, rate=9, penalty=1, returns=rows),
        "sampling_slack": _call(1024, returns="Fraction"),
        "shrink_towards_zero": _call(
            _real(0.4, -1.2, 25), _real(1, 1, 1), _whole(1, 1, 1), returns=reals
        ),
        "subtract_geometric": _call(_whole(5, 6, 7), words, 0, 2.5, returns="None"),
        "subtree_totals": _call(
            _whole(1, 2, 3, 4), PARENTS, _whole(1, 0, 2, 3), returns=ints
        ),
        "summed_area_table": _call(GRID, returns=ints),
        "tree_fit": _call(_real(*range(NODES)), np.ones(NODES), _tree(), returns=reals),
        "tree_levels": _call(5, 2, returns=rows),
        "tree_of_parents": _call(_whole(3, 3, 4, 4, -1), returns="Tree"),
        "tree_spread_pieces": _call(
            np.ones(NODES), np.ones(NODES), _tree(), *RUNS, returns=spread
        ),
        "tree_spread_ranges": _call(
            np.ones(NODES), np.ones(NODES), _tree(), *ENDS, returns=spread
        ),
        "tree_total_variance": _call(
            np.ones(NODES), _tree(), "all_ranges", _whole(0, 1, 4, 6), returns="float"
        ),
        "tree_totals": _call(_whole(1, 2, 3), _tree(), returns=ints),
        "window_deviations": _call(CELLS, 4, returns=reals),
        "window_mates": _call(
            _whole(3, 9, 4, 8), window=2, grid=0, price=5, returns=ints
        ),
        "window_pinball_costs": _call(CELLS, 4, 3, 4, returns=ints),
        "secure_words": _call(returns="WordStream"),
        "subtract_children": _call(_whole(1, 10, 7, 4), PARENTS, returns=ints),
    }


def signatures() -> dict[str, str]:
    """Return the signature of every public kernel, as text."""
    from blowfish_fast import kernels

    return {
        name: str(inspect.signature(getattr(kernels, name))).replace("'", "")
        for name in sorted(kernels.__all__)
    }


def plain_signatures() -> dict[str, str]:
    """Return the arguments of every public kernel and their defaults, no types."""
    from blowfish_fast import kernels

    plain = {}
    for name in sorted(kernels.__all__):
        signature = inspect.signature(getattr(kernels, name))
        bare = [
            one.replace(annotation=inspect.Parameter.empty)
            for one in signature.parameters.values()
        ]
        plain[name] = str(inspect.Signature(bare))
    return plain


if __name__ == "__main__":
    # python -m tests.kernels.public_calls > tests/kernels/public_signatures.json
    sys.stdout.write(json.dumps(signatures(), indent=1) + "\n")
