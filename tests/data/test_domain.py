"""Domains: which cells they have, what they refuse, and that they never change.

The cells are public and stated by the caller; no test here counts a record.
"""

from __future__ import annotations

import datetime
import pickle

import numpy as np
import pytest

from blowfish_fast import Domain, SparseHistogram, WideDomain, policies
from blowfish_fast.data.domain import MISSING, OUTSIDE
from blowfish_fast.errors import DomainError, PolicyError


def test_a_line_and_a_grid_know_their_cells():
    assert Domain(4096).shape == (4096,)
    assert Domain((3, 4)).size == 12
    assert Domain((3, 4), names=["age", "income"]).axis("income") == 1


def test_there_is_one_cell_fewer_than_edges():
    ages = Domain.from_edges(range(102), name="age")
    assert ages.size == 101
    assert ages.names == ("age",)


def test_products_join_attributes_in_order():
    ages = Domain.from_edges([0, 18, 65, 120], name="age")
    towns = Domain.from_levels(["Bern", "Basel"], name="town")
    both = Domain.product(ages, towns)
    assert both.shape == (3, 2)
    assert both.names == ("age", "town")


def test_equal_domains_are_equal_and_survive_json_and_pickle():
    ages = Domain.from_edges([0, 18, 65], name="age")
    assert Domain.from_dict(ages.to_dict()) == ages
    assert pickle.loads(pickle.dumps(ages)) == ages
    assert hash(Domain(3)) == hash(Domain([3]))
    assert Domain(3) != Domain(4)
    assert Domain(3) != 3


def test_a_domain_never_changes():
    with pytest.raises(AttributeError, match="never changes"):
        Domain(3).attributes = ()


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (0, "at least one cell"),
        (-3, "at least one cell"),
        ((4, 0), "at least one cell"),
        ((), "at least one cell"),
        (2.5, "whole numbers"),
        ("many", "whole numbers"),
        (True, "whole numbers"),
        ((2**20, 2**20), "at most 2\\^28"),
    ],
)
def test_bad_shapes_are_refused_with_a_reason(shape, words):
    with pytest.raises(DomainError, match=words):
        Domain(shape)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([1], "at least two"),
        ([0, 2, 1], "increase strictly"),
        ([0, 0, 1], "increase strictly"),
        ([0, float("inf")], "finite"),
        ([0, float("nan"), 1], "finite"),
    ],
)
def test_bad_edges_are_refused_with_a_reason(edges, words):
    with pytest.raises(DomainError, match=words):
        Domain.from_edges(edges)


def test_one_attribute_may_be_named_by_a_text():
    assert Domain(100, names="age") == Domain(100, names=["age"])
    with pytest.raises(DomainError, match="2 attributes, 1 names"):
        Domain((4, 5), names="ab")


def test_sizes_that_are_no_tuple_are_told_from_names():
    with pytest.raises(DomainError, match=r"such as Domain\(\(4, 5\)\); received 5"):
        Domain(4, 5)


def test_levels_and_names_must_differ():
    with pytest.raises(DomainError, match="twice"):
        Domain.from_levels(["a", "a"])
    with pytest.raises(DomainError, match="empty"):
        Domain.from_levels([])
    with pytest.raises(DomainError, match="must differ"):
        Domain((2, 2), names=["age", "age"])
    with pytest.raises(DomainError, match="one name per attribute"):
        Domain((2, 2), names=["age"])
    with pytest.raises(DomainError, match="at least one domain"):
        Domain.product()
    for other in ([Domain(2), Domain(3)], 3, "ages"):
        with pytest.raises(DomainError, match=r"Domain\.product\(\*domains\)"):
            Domain.product(Domain(2), other)
    with pytest.raises(DomainError, match="no attribute"):
        Domain(3).axis("age")


def test_dates_are_kept_in_the_coarsest_unit_that_holds_them():
    months = np.arange("2024-01", "2024-05", dtype="datetime64[M]")
    by_month = Domain.from_edges(months, name="day")
    # Months differ in length, so edges are kept as days since 1970.
    assert by_month.attributes[0].unit == "D"
    assert by_month.attributes[0].edges == (19723.0, 19754.0, 19783.0, 19814.0)
    assert by_month == Domain.from_dates(
        ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"], name="day"
    )
    objects = [datetime.date(2024, 1, day) for day in (1, 2, 9)]
    assert Domain.from_edges(objects).attributes[0].unit == "D"
    noon = Domain.from_dates(["2024-01-01", "2024-01-01T12:00", "2024-01-02"])
    assert noon.attributes[0].unit == "h"
    assert Domain.from_dict(noon.to_dict()) == noon
    assert pickle.loads(pickle.dumps(noon)) == noon


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (["2024-02-01", "2024-01-01"], "increase strictly"),
        (["2024-02-01", "May"], "must read like"),
        (["2024-02-01", None], "missing one"),
        ([1, 2, 3], "Numbers go to"),
        ([None, 4], "Numbers go to"),
        (["1600-01-01T00:00:00.000001", "2024-01-01"], "between 1684 and 2255"),
    ],
)
def test_bad_dates_are_refused_with_a_reason(edges, words):
    with pytest.raises(DomainError, match=words):
        Domain.from_dates(edges)


def test_cells_for_stray_and_missing_values_come_last_and_have_no_edges():
    both = Domain.product(
        Domain.from_edges([0, 18, 65], name="age"),
        Domain.from_levels(["F", "M"], name="sex"),
    )
    extended = both.with_extra_cells(outside="age", missing=True)
    assert extended.shape == (4, 3)
    age, sex = extended.attributes
    assert age.extras == (OUTSIDE, MISSING)
    assert (age.extra_cell(OUTSIDE), age.extra_cell(MISSING)) == (2, 3)
    # `edges` are those of all cells; `cuts` are those of the cells that have any.
    assert age.edges is None
    assert age.cuts == (0.0, 18.0, 65.0)
    assert sex.levels == ("F", "M", MISSING)
    assert sex.extra_cell(OUTSIDE) is None
    assert extended.with_extra_cells(missing=["sex"]) == extended
    assert extended.with_extra_cells(outside=["sex"]).attributes[1].levels == (
        "F",
        "M",
        OUTSIDE,
        MISSING,
    )
    assert both.with_extra_cells() == both
    assert Domain.from_dict(extended.to_dict()) == extended
    with pytest.raises(DomainError, match="already a level"):
        Domain.from_levels(["a", MISSING]).with_extra_cells(missing=True)


def test_axes_are_found_by_name_or_number():
    both = Domain((3, 4), names=["age", "income"])
    assert both.axis(1) == both.axis("income") == 1
    assert both.axes(["income", 0]) == (1, 0)
    assert both.marginal("income") == Domain(4, names=["income"])
    for wrong in ("size", 2, -1, True, None):
        with pytest.raises(DomainError, match="no attribute"):
            both.axis(wrong)
    with pytest.raises(DomainError, match="each once"):
        both.axes(["age", 0])


def test_levels_are_plain_values():
    assert Domain.from_levels(np.array([3, 5])).attributes[0].levels == (3, 5)
    for wrong in (None, float("nan"), datetime.date(2024, 1, 1), (1, 2)):
        with pytest.raises(DomainError, match="a level is a text"):
            Domain.from_levels(["a", wrong])


@pytest.mark.parametrize("wrong", ["FM", {"sex": ["F", "M"]}, {"F", "M"}])
def test_levels_are_a_list_in_the_order_of_their_cells(wrong):
    # A mapping would be read as its keys: one level "sex", which no record has.
    with pytest.raises(DomainError, match="levels are a list, in the order"):
        Domain.from_levels(wrong)


def test_a_wide_domain_is_counted_but_not_held():
    wide = WideDomain.product(Domain(2**20, names=["a"]), Domain(2**28))
    assert wide.size == 2**48
    assert wide.marginal("a") == Domain(2**20, names=["a"])
    assert isinstance(WideDomain.product(wide, Domain(2)).marginal([0, 1]), WideDomain)
    assert pickle.loads(pickle.dumps(wide)) == wide
    assert wide != Domain(3)
    wider = WideDomain.product(wide, Domain(2**20))
    assert wider.size == 2**68
    with pytest.raises(DomainError, match=r"numbers at most 2\^62 .* Contingency"):
        SparseHistogram.from_records(wider, [[0], [0], [0]])
    assert policies.Full(wide).domain == wide
    with pytest.raises(PolicyError, match="stated in cells of one attribute"):
        policies.Line(wide)
    with pytest.raises(
        DomainError, match=r"at most 2\^28 = 268,435,456 cells; .* SparseHistogram"
    ):
        Domain.product(wide)


def test_a_box_has_sides_by_name_and_equal_cells():
    box = Domain.from_box((4, 2), lon=(6.0, 10.0), lat=(46.0, 48.0))
    assert box.names == ("lon", "lat")
    assert box.attributes[0].cuts == (6.0, 7.0, 8.0, 9.0, 10.0)
    assert Domain.from_box(3, x=(0, 3), y=(0, 9)).shape == (3, 3)
    for cells, sides in [
        (0, {"x": (0, 1)}),
        (2, {}),
        (2, {"x": (1, 0)}),
        (2, {"x": (0, float("nan"))}),
        (2, {"x": 3}),
    ]:
        with pytest.raises(DomainError, match=r"a box has sides by name|lowest and hi"):
            Domain.from_box(cells, **sides)
