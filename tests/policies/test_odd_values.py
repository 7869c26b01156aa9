"""Whatever is handed to a policy is accepted, or refused with a reason of our own."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast import policies as P
from blowfish_fast.errors import InputError, PolicyError

LINE, GRID = bf.Domain(8), bf.Domain((3, 4))
NAMED = bf.Domain((3, 2), names=["age", "sex"])
OBJECTS = np.full(8, object())

ODD = {
    "none": None,
    "truth": True,
    "negative": -7,
    "fraction": 2.5,
    "nan": math.nan,
    "infinite": math.inf,
    "huge": 10**400,
    "text": "x",
    "bytes": b"x",
    "empty list": [],
    "ragged": [[1], [1, 2]],
    "mapping": {"a": 1},
    "set": {1, 2},
    "object": object(),
    "function": len,
    "date": np.datetime64("2020-01-01"),
    "empty array": np.zeros(0),
    "matrix": np.zeros((2, 3)),
    "nan matrix": np.full((1, 8), math.nan),
    "objects": OBJECTS,
    "rows of objects": OBJECTS[None],
    "texts": np.array(["a"] * 8),
    "complex": np.arange(8) * 1j,
    "huge numbers": [10**400] * 8,
    "exact": Fraction(1, 3),
    "marks": np.ones(8, dtype=bool),
    "repeated": np.ones(8),
}

STATED = {
    "full": P.Full(LINE),
    "line": P.Line(LINE),
    "by value": P.Threshold(bf.Domain.from_edges([0, 1, 3, 9]), 2, unit="value"),
    "grid": P.Threshold(GRID, 1),
    "blocks": P.Blocks(LINE, [0, 0, 1, 1, 1, 2, 2, 2]),
    "band": P.Band(LINE, [1, 3, 3, 4, 5, 6, 7, 7]),
    "graph": P.Graph(LINE, [[0, 1], [1, 5], [6, -1]]),
    "projection": P.Line(LINE).project([0, 1, 0, 2, 1, 2, 3, 3]),
    "product": P.Product(P.Line(bf.Domain(3)), P.Full(bf.Domain(4))),
    "attribute": P.Attribute(GRID),
    "add or remove": P.AddRemove(GRID),
    "with absent": P.WithAbsent(P.Line(LINE)),
    "persons": P.Line(LINE).per_person(2),
    "known counts": P.Full(LINE).with_constraints(P.CountConstraints(LINE, [[1] * 8])),
    "table": P.TablePolicy(NAMED, {}),
}

DOORS = {
    "distance": lambda policy, odd: policy.distance([0, 1], odd),
    "joins": lambda policy, odd: policy.joins(odd, 0),
    "edges": lambda policy, odd: list(policy.edges(odd)),
    "edges_up_to": lambda policy, odd: policy.edges_up_to(odd),
    "largest_change": lambda policy, odd: policy.largest_change(odd),
    "bandwidth": lambda policy, odd: odd is not None and policy.bandwidth(odd),
    "sides": lambda policy, odd: policy.grid_moves(odd, 5),
    "steps": lambda policy, odd: policy.grid_moves(policy.domain.shape, odd),
    "project": lambda policy, odd: policy.project(odd),
    "implies": lambda policy, odd: policy.implies(odd),
    "constraints": lambda policy, odd: policy.with_constraints(odd),
    "persons": lambda policy, odd: policy.per_person(odd, person=odd, count=odd),
}

MADE = {
    "unit": lambda odd: P.Threshold(LINE, 1, unit=odd),
    "metric": lambda odd: P.Threshold(GRID, 1, metric=odd),
    "theta": lambda odd: P.Threshold(GRID, odd),
    "blocks": lambda odd: P.Blocks(LINE, odd),
    "far": lambda odd: P.Band(LINE, odd),
    "edges": lambda odd: P.Graph(LINE, odd),
    "source": lambda odd: P.Projection(odd, odd),
    "bins": lambda odd: P.Projection(P.Full(LINE), odd),
    "factor": lambda odd: P.Product(odd),
    "domain of a product": lambda odd: P.Product(STATED["full"], domain=odd),
    "length": lambda odd: P.WithAbsent(P.Line(LINE), odd),
    "by attribute": lambda odd: P.TablePolicy(NAMED, odd),
    "presence": lambda odd: P.TablePolicy(NAMED, {}, odd),
    "masks": lambda odd: P.CountConstraints(LINE, odd),
    "axes": lambda odd: P.MarginalConstraints(GRID, odd),
    "corners": lambda odd: P.RectangleConstraints(LINE, odd, odd),
    "base": lambda odd: P.Constrained(odd, STATED["known counts"].constraints),
    "start": lambda odd: STATED["known counts"].constraints.lifts(odd, 0),
    "end": lambda odd: STATED["known counts"].constraints.lowers(0, odd),
    "plain data": P.from_dict,
}


def refused(call, *values):
    """Return whether a call was refused; any other error than ours is raised."""
    try:
        call(*values)
    except bf.BlowfishError:
        return True
    return False


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("policy", STATED)
def test_doors_of_every_family_accept_or_refuse(policy, door):
    given = [refused(DOORS[door], STATED[policy], odd) for odd in ODD.values()]
    assert sum(given) > len(ODD) / 2


@pytest.mark.parametrize("made", MADE)
def test_what_a_policy_is_made_from_is_read_or_refused(made):
    assert sum(refused(MADE[made], odd) for odd in ODD.values()) > len(ODD) / 2


def test_the_reasons_are_given():
    line = STATED["line"]
    for odd, words in (([[0.0] * 7], "shape \\(1, 7\\)"), (np.nan, "finite numbers")):
        with pytest.raises(PolicyError, match=words):
            line.largest_change(odd)
    for order in ([0] * 8, range(7), np.eye(8, dtype=int)):
        with pytest.raises(PolicyError, match="each of the 8 cells once"):
            line.bandwidth(order)
    for shape in ((9,), (0,), (4, 2)):
        with pytest.raises(PolicyError, match="sides of 1 to"):
            line.grid_moves(shape, 5)
    with pytest.raises(InputError, match="chunk must be at least 1; received 0"):
        line.edges(0)
    with pytest.raises(InputError, match="most must be one whole number"):
        line.edges_up_to("many")
    with pytest.raises(PolicyError, match="compared one by one"):
        line.joins([0, 1], [1, 2, 3])


def test_whole_numbers_in_floats_are_read():
    values = np.arange(8) ** 2
    assert STATED["line"].largest_change([values]).value == 13
    assert STATED["blocks"].bandwidth(np.arange(8.0)[::-1]) is not None
    assert STATED["grid"].grid_moves([3, 4], 9).tolist() == [[0, 1], [1, 0]]
