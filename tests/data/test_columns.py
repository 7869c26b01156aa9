"""Tables of every library give the same columns."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import blowfish_fast.data.columns as reading
from blowfish_fast import Domain, Histogram
from blowfish_fast.data.columns import as_column, record_blocks
from blowfish_fast.data.places.districts import Districts
from blowfish_fast.errors import InputError

DOMAIN = Domain.product(
    Domain.from_edges([0, 10, 20, 30], name="age"),
    Domain.from_levels(["F", "M"], name="sex"),
    Domain.from_dates(["2024-01-01", "2024-02-01", "2024-03-01"], name="day"),
)
ROWS = {
    "day": [datetime.date(2024, 1, 5), datetime.date(2024, 2, 6), None, None],
    "age": [3, 12, None, 25],
    "sex": ["F", None, "M", "M"],
    "unused": [1, 2, 3, 4],
}
STRAY = {"missing": "cell"}


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame(ROWS)


def pandas_nullable():
    frame = pandas_frame()
    days = pytest.importorskip("pandas").to_datetime(frame["day"])
    return frame.assign(
        age=frame["age"].astype("Int64"), sex=frame["sex"].astype("category"), day=days
    )


def polars_frame():
    return pytest.importorskip("polars").DataFrame(ROWS)


def polars_lazy():
    return polars_frame().lazy()


def polars_category():
    polars = pytest.importorskip("polars")
    return polars_frame().with_columns(polars.col("sex").cast(polars.Categorical))


def arrow_table():
    return pytest.importorskip("pyarrow").table(ROWS)


def arrow_batch():
    return arrow_table().to_batches()[0]


def arrow_reader():
    return arrow_table().to_reader(max_chunksize=2)


def mapping_of_series():
    frame = pandas_frame()
    return {name: frame[name] for name in frame}


def sequence_of_arrow_arrays():
    table = arrow_table()
    return [table[name].chunk(0) for name in ("age", "sex", "day")]


def structured_array():
    days = np.array(["2024-01-05", "2024-02-06", "NaT", "NaT"], dtype="M8[D]")
    ages = np.array([3, 12, np.nan, 25])
    rows = np.zeros(4, dtype=[("day", "M8[D]"), ("age", "f8"), ("sex", "O")])
    rows["day"], rows["age"], rows["sex"] = days, ages, ROWS["sex"]
    return rows


TABLES = [
    pandas_frame,
    pandas_nullable,
    polars_frame,
    polars_lazy,
    polars_category,
    arrow_table,
    arrow_batch,
    arrow_reader,
    mapping_of_series,
    sequence_of_arrow_arrays,
    structured_array,
    lambda: ROWS,
    lambda: [ROWS["age"], ROWS["sex"], ROWS["day"]],
]


@pytest.mark.parametrize("at", range(len(TABLES)))
def test_every_kind_of_table_gives_the_same_histogram(at):
    expected = np.zeros((4, 3, 3), dtype=int)
    for place in ((0, 0, 0), (1, 2, 1), (3, 1, 2), (2, 1, 2)):
        expected[place] = 1
    data = Histogram.from_records(DOMAIN, TABLES[at](), **STRAY)
    assert (data.counts == expected).all()


def test_chunks_are_read_one_after_the_other():
    live = []

    def chunks():
        for start in range(0, 12, 4):
            live.append(start)
            yield {
                "age": [start, start + 1],
                "sex": ["F", "M"],
                "day": ["2024-01-01"] * 2,
            }

    taken = record_blocks(chunks(), DOMAIN)
    next(taken)
    assert live == [0]
    whole = Histogram.from_records(DOMAIN, chunks())
    assert whole.counts.sum() == 6
    frames = iter([pandas_frame(), polars_frame(), arrow_table()])
    assert Histogram.from_records(DOMAIN, frames, **STRAY).counts.sum() == 12
    assert Histogram.from_records(DOMAIN, iter([])).counts.sum() == 0


def test_long_columns_are_cut_into_blocks(monkeypatch, generator):
    monkeypatch.setattr(reading, "BLOCK", 7)
    line = Domain(5, names=["x"])
    column = generator.integers(0, 5, 40)
    blocks = [block[0].size for block in record_blocks(column, line)]
    assert blocks == [7, 7, 7, 7, 7, 5]
    data = Histogram.from_records(line, column)
    assert (data.counts == np.bincount(column, minlength=5)).all()


def test_attributes_without_names_take_columns_in_order():
    polars = pytest.importorskip("polars")
    grid = Domain((2, 3))
    frame = polars.DataFrame({"a": [0, 1], "b": [2, 2]})
    assert Histogram.from_records(grid, frame).counts.tolist() == [[0, 0, 1], [0, 0, 1]]
    series = polars.Series([0, 1, 1])
    assert Histogram.from_records(Domain(2), series).counts.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"age": [1]}, r"lack the attributes \['sex', 'day'\]"),
        ([[1], ["F"]], "3 attributes, 2 columns"),
        (np.zeros((5, 2)), "one record per row"),
        ([[1, 2], ["F"], ["2024-01-01"]], "same length"),
        ([[[1], [2]], ["F"], ["2024-01-01"]], "one-dimensional"),
        ([[[1], [2, 3]], ["F"], ["2024-01-01"]], "one-dimensional"),
    ],
)
def test_misfits_are_refused_with_a_reason(table, words):
    with pytest.raises(InputError, match=words):
        Histogram.from_records(DOMAIN, table)


def test_lists_of_mixed_values_are_not_spelled_out():
    assert as_column(["a", None]).tolist() == ["a", None]
    assert as_column([1, "a"]).tolist() == [1, "a"]
    assert as_column(range(3)).tolist() == [0, 1, 2]


BOX = Domain.from_box((4, 2), lon=(6.0, 10.0), lat=(46.0, 48.0))
LON, LAT = [6.5, 9.9, 9.9, 7.2], [46.5, 47.5, 47.5, 46.1]
COUNTS = [[1, 0], [1, 0], [0, 0], [0, 2]]


def test_a_table_of_longitudes_and_latitudes_becomes_a_map():
    map_of = Histogram.from_records(BOX, {"lat": LAT, "lon": LON})
    assert map_of.counts.tolist() == COUNTS
    with pytest.raises(InputError, match=r"columns lack the attributes \['lat'\]"):
        Histogram.from_records(BOX, {"lon": LON})


def test_the_points_of_geopandas_become_a_map():
    geopandas = pytest.importorskip("geopandas")
    points = geopandas.points_from_xy(LON, LAT)
    table = geopandas.GeoDataFrame({"sex": list("FFMM")}, geometry=points, crs=4326)
    assert Histogram.from_records(BOX, table).counts.tolist() == COUNTS
    both = Domain.product(BOX, Domain.from_levels(["F", "M"], name="sex"))
    assert Histogram.from_records(both, table).counts.sum(axis=2).tolist() == COUNTS
    with pytest.raises(InputError, match="are degrees"):
        Histogram.from_records(BOX, table.to_crs(3857))


def test_points_of_geopandas_meet_districts_of_any_system():
    geopandas = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    squares = [shapely.box(x, 46, x + 1, 48) for x in (6, 7)]
    shapes = geopandas.GeoSeries(squares, crs=4326)
    points = geopandas.points_from_xy([6.5, 7.5, 7.6], [47.0, 47.0, 46.5])
    table = geopandas.GeoDataFrame({"sex": list("FFM")}, geometry=points, crs=4326)
    sexes = Domain.from_levels(["F", "M"], name="sex")
    for system in (4326, 3857):
        districts = Districts.from_shapes(shapes.to_crs(system), ["west", "east"])
        assert districts.system == f"EPSG:{system}"
        both = Domain.product(Domain.from_polygons(districts, name="place"), sexes)
        for own in (4326, 2056):
            counted = Histogram.from_records(both, table.to_crs(own)).counts
            assert counted.tolist() == [[1, 0], [1, 1]]
    lost = geopandas.GeoDataFrame({"sex": list("FFM")}, geometry=points)
    with pytest.raises(InputError, match="received points without one"):
        Histogram.from_records(both, lost)


def test_columns_of_a_frame_are_never_guessed_where_one_attribute_has_a_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"other": [2, 2], "age": [0, 1]})
    half_named = Domain((2, 3), names=("age", None))
    with pytest.raises(InputError, match=r"lack the attributes \[None\]"):
        Histogram.from_records(half_named, frame)
    counted = Histogram.from_records(Domain((3, 2)), frame).counts
    assert counted.tolist() == [[0, 0], [0, 0], [1, 1]]


class Points:
    """What geopandas calls a geometry."""

    x, y = np.array(LON), np.array(LAT)


def test_points_are_read_where_a_table_has_no_such_columns():
    pandas = pytest.importorskip("pandas")

    class WithPoints(pandas.DataFrame):  # type: ignore[name-defined]
        geometry = Points()

    table = WithPoints({"town": [1, 2, 3, 4]})
    assert Histogram.from_records(BOX, table).counts.tolist() == COUNTS
    own = WithPoints({"lon": LON, "lat": [46.5] * 4})
    assert Histogram.from_records(BOX, own).counts[:, 1].sum() == 0
    with pytest.raises(InputError, match="columns lack the attributes"):
        Histogram.from_records(Domain.from_edges([0, 1], name="age"), table)
