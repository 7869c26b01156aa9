from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast import Domain, policies
from blowfish_fast.errors import PolicyError
from tests.reference import policy_graphs as reference


def test_cells_of_one_block_are_joined():
    policy = policies.Blocks(Domain(6), [0, 0, 1, 1, 1, 0])
    assert reference.listed(policy) == {(0, 1), (0, 5), (1, 5), (2, 3), (2, 4), (3, 4)}
    assert policy.distance(0, [0, 5, 2]).tolist() == [0, 1, np.inf]


def test_only_which_cells_share_a_label_matters():
    domain = Domain(5)
    one = policies.Blocks(domain, [7, 7, 3, 3, 7])
    assert one == policies.Blocks(domain, [0, 0, 1, 1, 0])
    assert hash(one) == hash(policies.Blocks(domain, [2**60, 2**60, 5, 5, 2**60]))
    assert one != policies.Blocks(domain, [0, 1, 1, 1, 0])
    assert one.labels.tolist() == [0, 0, 1, 1, 0]


def test_labels_may_have_the_shape_of_the_domain():
    grid = Domain((2, 3))
    assert policies.Blocks(grid, [[0, 0, 1], [2, 2, 1]]) == policies.Blocks(
        grid, [0, 0, 1, 2, 2, 1]
    )


def test_block_totals_are_public():
    parts = policies.Blocks(Domain(5), [4, 4, 9, 9, 4]).components()
    assert parts.labels.tolist() == [0, 0, 1, 1, 0]
    assert not parts.private.any()


def test_contiguous_bins_of_runs_stay_without_edges():
    policy = policies.Blocks(Domain(8), [0, 0, 0, 1, 1, 2, 2, 2])
    quotient = policy.project([0, 0, 1, 1, 2, 2, 3, 3])
    assert quotient == policies.Band(Domain(4), [1, 2, 3, 3])


def test_other_bins_are_joined_when_they_share_a_block():
    policy = policies.Blocks(Domain(6), [0, 1, 0, 1, 2, 2])
    quotient = policy.project([0, 1, 2, 2, 3, 3])
    assert reference.listed(quotient) == {(0, 2), (1, 2)}
    assert quotient.components().labels.tolist() == [0, 0, 0, 1]


def test_coarser_blocks_imply_finer_ones():
    domain = Domain(6)
    coarse = policies.Blocks(domain, [0, 0, 0, 1, 1, 1])
    fine = policies.Blocks(domain, [0, 0, 1, 2, 2, 2])
    assert coarse.implies(fine)
    assert not fine.implies(coarse)
    assert not coarse.implies(policies.Line(domain))
    assert coarse.implies(policies.Graph(domain, [[0, 2], [3, 5]]))
    assert policies.Blocks(domain, [0] * 6).implies(policies.Full(domain))
    assert not coarse.implies(policies.AddRemove(domain))


def test_single_cells_have_no_secret():
    policy = policies.Blocks(Domain(4), [0, 1, 2, 3])
    assert not policy.has_moves
    assert policy.edge_count == 0


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0, 1], "must cover the domain"),
        ([[0, 0], [1, 1], [1, 1]], "must cover the domain"),
        ([0, 0, 1, 1, 1, -1], "label of its own"),
        ([0, 0, 1, 1, 1, 0.5], "whole numbers"),
        (["a", "a", "b", "b", "b", "b"], "whole numbers"),
        ([[0, 0], [1]], "whole numbers"),
    ],
)
def test_labels_that_do_not_cover_are_refused(labels, message):
    with pytest.raises(PolicyError, match=message):
        policies.Blocks(Domain(6), labels)


def test_later_changes_of_the_labels_change_nothing():
    labels = np.array([0, 0, 1, 1])
    policy = policies.Blocks(Domain(4), labels)
    labels[:] = 0
    assert policy.sizes.tolist() == [2, 2]


def test_it_says_how_many_blocks_are_known():
    text = policies.Blocks(Domain(4), [0, 0, 1, 1]).describe()
    assert "which of the 2 blocks holds a person is not protected" in text
