"""The heaviest paths and pairs by listing every leaf and every two leaves."""

from __future__ import annotations

from itertools import combinations

from .tree_inference import node_rows


def path_sums(rates, leaves, branching):
    """Return the sum of rates over the nodes that hold each leaf."""
    holds = node_rows(leaves, branching).astype(bool)
    return [sum(int(rate) for rate in rates[holds[:, leaf]]) for leaf in range(leaves)]


def heaviest_pair(rates, leaves, branching):
    """Return the largest sum of rates over nodes that hold exactly one of two."""
    holds = node_rows(leaves, branching).astype(bool)
    return max(
        (
            sum(int(rate) for rate in rates[holds[:, one] ^ holds[:, two]])
            for one, two in combinations(range(leaves), 2)
        ),
        default=0,
    )
