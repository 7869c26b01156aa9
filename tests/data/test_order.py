"""The public order of cells along which mechanisms for a line see a grid."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.order import cell_order


def test_one_attribute_keeps_its_order():
    along = cell_order(Domain(7))
    assert along.order is None
    assert along.are_single_cells


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (2, 3, 4)])
def test_several_attributes_visit_every_cell_once(shape):
    along = cell_order(Domain(shape))
    assert along.are_single_cells
    assert sorted(along.order) == list(range(int(np.prod(shape))))
    assert along.curve == (len(shape) == 2)


def test_neighbours_on_the_curve_are_neighbours_on_the_grid():
    places = np.stack(
        np.unravel_index(cell_order(Domain((8, 8))).order, (8, 8)), axis=1
    )
    assert (np.abs(np.diff(places, axis=0)).sum(axis=1) == 1).all()


def test_an_order_is_found_once():
    assert cell_order(Domain((5, 6))) is cell_order(Domain((5, 6), names=["x", "y"]))
