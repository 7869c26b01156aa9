"""What a paper prints about k-means, and nobody may use."""

from __future__ import annotations

from blowfish_fast.errors import PolicyError
from blowfish_fast.measure.strategies.cluster_sums import CellGrid


def unsafe_paper_formula(policy):
    """Return the sensitivity of sums that Lemma 6.1 prints: twice the longest edge.

    2 max |A| under `Attribute`, 2 theta under an L1 `Threshold`, 2 max d(P) under
    `Blocks`. Not private: an edge of any length may cross the border of two clusters
    and change both sums by the distance of its ends from the origin.
    """
    if not policy.has_moves:
        raise PolicyError(
            f"Lemma 6.1 speaks of records that change their value; {policy!r} has no "
            "edge between two values"
        )
    grid = CellGrid(policy.domain)
    return 2.0 * grid.step * grid.longest_move(policy)
