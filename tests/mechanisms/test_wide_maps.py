"""Maps of 2^30 x 2^30 cells: rectangles, intervals of the truth, files, refusals."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import (
    DomainError,
    InputError,
    LedgerError,
    PolicyError,
    ReleaseFileError,
    WorkloadError,
)
from blowfish_fast.mechanisms import dawa

SIDE = 2**30
EAST = bf.WideDomain.from_steps(start=1000, cells=SIDE, name="east")
NORTH = bf.WideDomain.from_steps(cells=SIDE, name="north")
MAP = bf.WideDomain.product(EAST, NORTH)
P, W = bf.policies, bf.workloads

RNG = np.random.default_rng(1)
CENTRES = RNG.integers(2**28, 2**29, (12, 2))
PLACES = np.abs(
    CENTRES[RNG.integers(0, 12, 8000)] + RNG.normal(scale=2.0**18, size=(8000, 2))
).astype(np.int64)
DATA = bf.SparseHistogram.from_records(
    MAP, {"east": PLACES[:, 0] + 1000, "north": PLACES[:, 1]}
)
SIDES = (2.0 ** RNG.uniform(14, 29, (120, 2))).astype(np.int64)
LOWS = np.maximum(PLACES[:120] - SIDES // 2, 0)
HIGHS = np.minimum(LOWS + SIDES, SIDE)
ASKED = W.Rectangles(MAP, LOWS, HIGHS)
TRUE = np.array(
    [
        ((low <= PLACES) & (high > PLACES)).all(axis=1).sum()
        for low, high in zip(LOWS, HIGHS, strict=True)
    ]
)


def released(rng=1, policy=None, data=DATA, **budget):
    mechanism = bf.Dawa(policy or P.AddRemove(MAP), ASKED, **(budget or {"epsilon": 1}))
    return mechanism.release(data, rng=rng)


@functools.cache
def shared_release():
    """Return the release that most tests ask, drawn when the first one needs it."""
    return released()


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "0.1"}], ids=str)
@pytest.mark.parametrize("kind", ["add_remove", "full", "persons"])
def test_rectangles_hold_the_truth(kind, budget):
    policy, data = {"full": P.Full(MAP)}.get(kind, P.AddRemove(MAP)), DATA
    if kind == "persons":
        policy = policy.per_person(2)
        columns = {"east": PLACES[:, 0] + 1000, "north": PLACES[:, 1]}
        columns["who"] = np.arange(8000) // 2
        data = bf.SparseHistogram.from_records(MAP, columns, person="who", at_most=2)
    release = released(rng=4, policy=policy, data=data, **budget)
    answers = release.answer(ASKED)
    low, high = release.intervals(ASKED, of="truth").T
    assert ((low > TRUE) | (high < TRUE)).mean() <= 0.05
    assert ((low <= answers) & (answers <= high)).all()
    assert np.abs(answers - TRUE).mean() < 0.1 * TRUE.mean()
    narrow = release.intervals(ASKED, of="noise")
    assert np.diff(narrow).mean() < (high - low).mean()
    assert release.holds_truth(ASKED).all()


def test_answers_are_sums_of_boxes_by_area():
    boxes, totals = shared_release().boxes, shared_release().totals
    for query in range(5):
        low = np.maximum(boxes[:, 0], LOWS[query])
        high = np.minimum(boxes[:, 1], HIGHS[query])
        part = np.maximum(high - low, 0).astype(float).prod(axis=1)
        area = (boxes[:, 1] - boxes[:, 0]).astype(float).prod(axis=1)
        expected = (part / area * totals).sum()
        assert shared_release().answer(ASKED)[query] == pytest.approx(
            expected, abs=1e-6
        )
    assert (shared_release().standard_errors(ASKED) > 0).all()


def test_few_rectangles_at_a_time_give_the_same(monkeypatch):
    answers, ends = (
        shared_release().answer(ASKED),
        shared_release().intervals(ASKED, together=True),
    )
    home = "blowfish_fast.release.wide.ranges_release"
    monkeypatch.setattr(f"{home}.PIECES_AT_ONCE", 3)
    np.testing.assert_allclose(shared_release().answer(ASKED), answers)
    np.testing.assert_allclose(shared_release().intervals(ASKED, together=True), ends)
    assert shared_release().answer(W.Rectangles(MAP, LOWS[:0], HIGHS[:0])).shape == (0,)


def test_rectangles_are_selected_by_values():
    low, high = LOWS[0], HIGHS[0]
    chosen = shared_release().where(
        east=slice(int(low[0]) + 1000, int(high[0]) + 1000),
        north=slice(int(low[1]), int(high[1])),
    )
    assert chosen.count() == pytest.approx(shared_release().answer(ASKED)[0])
    ends = chosen.interval()
    assert ends == pytest.approx(tuple(shared_release().intervals(ASKED)[0]))
    assert "x [" in repr(chosen)
    halves = shared_release().where(north=[slice(0, 2**29), slice(2**29, SIDE)])
    whole = shared_release().where()
    assert halves.count() == pytest.approx(whole.count())
    assert whole.count() == pytest.approx(shared_release().totals.sum())
    values = [[int(low[0]) + 1000, int(low[1])]], [[int(high[0]) + 1000, int(high[1])]]
    named = W.Rectangles.between(MAP, *values)
    assert shared_release().answer(named)[0] == pytest.approx(chosen.count())


def test_buckets_are_a_table_of_boxes_and_files_keep_them(tmp_path):
    table = shared_release().buckets()
    assert list(table)[:4] == ["east_from", "east_to", "north_from", "north_to"]
    assert table["east_from"].min() == 1000
    assert table["east_to"].max() == SIDE + 1000
    assert list(shared_release().to_table(None))[-1] == "count"
    back = bf.RangesRelease.from_bytes(shared_release().to_bytes())
    np.testing.assert_array_equal(back.answer(ASKED), shared_release().answer(ASKED))
    np.testing.assert_array_equal(back.boxes, shared_release().boxes)
    assert len(shared_release().to_dict()["totals"]) == len(shared_release())


def test_a_file_whose_buckets_are_no_boxes_is_refused():
    measurement = shared_release().measurements[0]
    edges = measurement.buckets.edges.copy()
    edges[1] += 1
    wrong = measurement._replace(buckets=bf.data.buckets.Buckets(edges))
    fields = {
        "domain": MAP,
        "mechanism": "dawa",
        "guarantee": shared_release().guarantee,
    }
    bad = bf.RangesRelease(measurement=wrong, details={}, version="0", **fields)
    with pytest.raises(ReleaseFileError, match="boxes that make it up"):
        bf.RangesRelease.from_bytes(bad.to_bytes())


def test_any_number_of_buckets_finds_room(monkeypatch):
    monkeypatch.setattr(dawa, "MOST_MAP_PIECES", 2)
    crowded = released()
    assert len(crowded) == len(shared_release())
    mechanism = bf.Dawa(P.AddRemove(MAP), ASKED, epsilon=1)
    assert mechanism.memory_needed() < 2**30


def test_maps_that_are_small_or_uneven_are_released():
    for shape in ((3, 5), (1, 7), (2**20, 2)):
        grid = bf.WideDomain(shape, names=("a", "b"))
        whole = W.Rectangles(grid, [[0, 0]], [list(shape)])
        data = bf.SparseHistogram.from_records(grid, {"a": [0] * 50, "b": [1] * 50})
        release = bf.Dawa(P.Full(grid), whole, epsilon=1).release(data, rng=1)
        # Under Full the number of records is public.
        assert release.answer(whole)[0] == pytest.approx(50)


def test_what_a_map_does_not_offer_is_refused():
    cube = bf.WideDomain((2**10, 2**10, 2**10))
    long = bf.WideDomain((2**51, 4))
    corner = [[0, 0]], [[1, 1]]
    for build, error, why in (
        (lambda: W.Ranges(MAP, [0], [1]), WorkloadError, "Use Rectangles"),
        (
            lambda: bf.Dawa(P.AddRemove(MAP), W.Identity(MAP), epsilon=1),
            WorkloadError,
            "rectangles are asked",
        ),
        (
            lambda: bf.Dawa(
                P.AddRemove(cube),
                W.Rectangles(cube, [[0, 0, 0]], [[1, 1, 1]]),
                epsilon=1,
            ),
            DomainError,
            "rectangles of two",
        ),
        (
            lambda: bf.Dawa(P.AddRemove(long), W.Rectangles(long, *corner), epsilon=1),
            DomainError,
            r"2\^50",
        ),
        (lambda: W.Rectangles.between(MAP, [[1]], [[2]]), WorkloadError, "corners"),
        (
            lambda: shared_release().answer(W.Identity(MAP)),
            InputError,
            "answers rectangles",
        ),
        (lambda: shared_release().where({0: 5, "east": 7}), InputError, "stated once"),
    ):
        with pytest.raises(error, match=why):
            build()
    handle = bf.measure.handle
    from blowfish_fast.data.wide.map_curve import MapCurve

    with pytest.raises(PolicyError, match="every two cells"):
        handle.policy_along(P.Line(bf.WideDomain(2**40)), MapCurve(4, 4))


def test_a_ledger_keeps_maps_and_tells_scores_apart(tmp_path):
    policy = P.AddRemove(MAP)

    def by(score):
        partition = bf.partitions.Descent(score=score)
        return bf.Dawa(policy, ASKED, epsilon=1, partition=partition)

    with bf.Ledger(tmp_path / "map.ledger", epsilon=2, policy=policy) as ledger:
        first = ledger.release(by("unevenness"), DATA, request="map")
        again = ledger.release(by("unevenness"), DATA, request="map")
        assert float(ledger.remaining) == 1
        with pytest.raises(LedgerError, match="another question"):
            ledger.release(by("records"), DATA, request="map")
    np.testing.assert_array_equal(first.answer(ASKED), again.answer(ASKED))
    assert bf.recommend(policy, ASKED, epsilon=1).best.name == "dawa"
