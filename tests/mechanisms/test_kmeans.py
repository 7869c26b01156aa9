"""k-means end to end: centres, budgets, refusals, and the sensitivity as printed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements
from blowfish_fast.errors import (
    BlowfishError,
    CountsError,
    DomainError,
    EpsilonError,
    InputError,
    NoEstimateError,
    PolicyError,
    ReleaseFileError,
)
from blowfish_fast.measure.handle import Account
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies.cluster_sums import ClusterSums
from blowfish_fast.mechanisms import kmeans
from blowfish_fast.mechanisms.kmeans import evenly_spread
from blowfish_fast.mechanisms.registry import MECHANISMS
from blowfish_fast.policies import (
    AddRemove,
    Attribute,
    Blocks,
    Full,
    Graph,
    Line,
    Product,
    Threshold,
)
from tests.reference import lloyd as reference
from tests.reference.paper_kmeans import unsafe_paper_formula

BOX = bf.Domain((100, 80))
HEAPS = np.array([[20.0, 20.0], [80.0, 15.0], [25.0, 65.0], [70.0, 60.0]])
SMALL = bf.Domain((5, 6))
LINE = bf.Domain(12)


def heaps(records, seed=0):
    rng = np.random.default_rng(seed)
    points = HEAPS[rng.integers(0, 4, records)] + rng.normal(0, 5, (records, 2))
    return np.clip(points, 0, [100, 80])


POLICIES = [
    AddRemove(SMALL),
    Full(SMALL),
    Attribute(SMALL),
    Threshold(SMALL, theta=2),
    Threshold(SMALL, theta=1.5, metric="l2"),
    Blocks(SMALL, np.arange(30) // 4),
    Product(Line(bf.Domain(5)), Full(bf.Domain(6))),
    Graph(SMALL, [[0, 1], [1, 17], [20, -1]]),
    Line(LINE),
    Blocks(LINE, np.arange(12)),
    Full(bf.Domain(1)),
    AddRemove(bf.Domain(1)),
    Full(SMALL).with_constraints(bf.policies.MarginalConstraints(SMALL, 0)),
]


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_every_policy_is_served_and_audited(policy):
    mechanism, points = bf.KMeans.example(policy.domain, policy, 2)
    prices = audit_measurements(mechanism, points)
    assert all(price.passed for price in prices), prices
    assert len(prices) == mechanism.rounds + 1
    release = mechanism.release(points, rng=1)
    assert release.centers.shape == (2, policy.domain.ndim)
    assert (release.centers >= mechanism.grid.low).all()
    assert (release.centers <= mechanism.grid.high).all()
    assert release.guarantee.epsilon == 2
    assert MECHANISMS["kmeans"] is bf.KMeans


def test_lemma_6_1_as_printed_fails_the_audit(monkeypatch):
    class Printed(ClusterSums):
        def worst_edge(self, weights, policy, power=1):
            size, total = self._heaviest(weights)
            return 2 * size + total * 2 * self.grid.longest_move(policy)

    policy = Threshold(SMALL, theta=1)
    mechanism, points = bf.KMeans.example(SMALL, policy, 2)
    assert all(price.passed for price in audit_measurements(mechanism, points))
    monkeypatch.setattr(kmeans, "ClusterSums", Printed)
    mechanism, points = bf.KMeans.example(SMALL, policy, 2)
    broken = audit_measurements(mechanism, points)
    assert not all(price.passed for price in broken)
    assert max(price.worst / price.charged for price in broken) > Fraction(5, 4)


def test_without_noise_it_is_lloyds_algorithm():
    points = heaps(3000)
    start = [[10, 10], [90, 10], [10, 70], [90, 70]]
    mechanism = bf.KMeans(Full(BOX), epsilon=10**8, start=start)
    release = mechanism.release(points, rng=0)
    snapped = np.floor(np.minimum(points, [99.9, 79.9])) + 0.5
    expected = reference.lloyd(snapped, start, 10)
    np.testing.assert_allclose(release.centers, expected, atol=1e-3)
    np.testing.assert_array_equal(release.details["history"][0], start)
    assert release.details["history"].shape == (11, 4, 2)
    assert release.objective(points) == pytest.approx(
        reference.objective(points, release.centers)
    )


def test_singleton_blocks_cluster_exactly_at_any_epsilon():
    points = heaps(500)
    policy = Blocks(BOX, np.arange(BOX.size))
    release = bf.KMeans(policy, epsilon=0.001).release(points)
    snapped = np.floor(np.minimum(points, [99.9, 79.9])) + 0.5
    start = bf.KMeans(policy, epsilon=1).start
    np.testing.assert_allclose(
        release.centers, reference.lloyd(snapped, start, 10), atol=1e-9
    )
    assert release.details["assigned"] == "parts"


def test_whole_blocks_get_exact_sizes():
    points = heaps(2000)
    tiles = np.add.outer(np.arange(100) // 10 * 8, np.arange(80) // 10)
    mechanism = bf.KMeans(Blocks(BOX, tiles), epsilon=0.5)
    release = mechanism.release(points, rng=1)
    assert release.details["sizes"].sum() == 2000
    best = release.objective(points) / reference.objective(points, HEAPS)
    assert best < 1.5
    by_points = bf.KMeans(Blocks(BOX, tiles), epsilon=0.5, assign="points")
    assert by_points.release(points).details["assigned"] == "points"


@pytest.mark.parametrize("policy", [Full(BOX), AddRemove(BOX)], ids=repr)
def test_private_centres_come_close_to_the_non_private_objective(policy):
    points = heaps(20000)
    start = [[10, 10], [90, 10], [10, 70], [90, 70]]
    best = reference.objective(points[::10], reference.lloyd(points, start, 10)) * 10
    ratios = [
        bf.KMeans(policy, epsilon=epsilon, start=start).release(points, rng=3)
        for epsilon in (1, 4)
    ]
    near, nearer = (release.objective(points) / best for release in ratios)
    assert nearer < 1.1
    assert near < 1.5


def test_the_budget_is_shared_by_the_rounds_and_charged_in_full():
    mechanism = bf.KMeans(Full(SMALL), 2, epsilon="0.7", rounds=3)
    account = Account(mechanism.epsilon)
    points = mechanism._counts(np.ones((5, 2)))
    mechanism._run(mechanism._handle(points, account, Randomness(1)))
    third = Fraction(7, 30)
    assert [call.budget for call in account.calls] == [third] * 3
    assert [call.kind for call in account.calls] == ["measure"] * 3
    assert account.spent == Fraction(7, 10)


def test_half_of_a_round_goes_to_sizes_unless_stated():
    for share in (Fraction(1, 2), Fraction(1, 4)):
        mechanism = bf.KMeans(Full(SMALL), 2, epsilon=1, rounds=1, share=share)
        strategy = ClusterSums(mechanism.grid, mechanism.start, share=share)
        scales = strategy.scales(Full(SMALL), Fraction(1))
        size, total = int(scales.rates[0]), int(scales.rates[-1])
        spent = 2 * size / (2 * size + total * 2 * mechanism.grid.radius)
        assert spent == pytest.approx(float(share), rel=1e-3)


def test_constraints_are_paid_for():
    constrained = Full(SMALL).with_constraints(
        bf.policies.MarginalConstraints(SMALL, 0)
    )
    assert constrained.group_size == 5
    widths = []
    for policy in (Full(SMALL), constrained):
        mechanism = bf.KMeans(policy, 2, epsilon=1, rounds=1)
        handle = mechanism._handle(None, Account(Fraction(1)), None)
        widths.append(mechanism._run(handle).measurements[0].scales.widths[0])
    assert widths[1] == pytest.approx(5 * widths[0], rel=1e-3)


def test_no_points_and_one_cluster_work():
    nothing = bf.KMeans(AddRemove(BOX), epsilon=1).release(np.zeros((0, 2)), rng=1)
    assert nothing.centers.shape == (4, 2)
    one = bf.KMeans(Full(BOX), 1, epsilon=50).release(heaps(4000), rng=1)
    np.testing.assert_allclose(one.centers[0], heaps(4000).mean(axis=0), atol=1)
    assert one.details["sizes"].tolist() == [4000]
    on_line = bf.KMeans(Full(LINE), 2, epsilon=100).release(np.arange(13.0), rng=1)
    assert on_line.centers.shape == (2, 1)


def test_a_histogram_gives_what_its_points_give():
    cells = np.floor(heaps(800)).clip(0, [99, 79])
    histogram = bf.Histogram.from_records(BOX, cells)
    mechanism = bf.KMeans(Full(BOX), epsilon=1)
    np.testing.assert_array_equal(
        mechanism.release(histogram, rng=5).centers,
        mechanism.release(cells + 0.25, rng=5).centers,
    )
    np.testing.assert_array_equal(
        mechanism.release(cells + 0.25, rng=5).centers,
        mechanism.release((cells + 0.25).astype(np.float32), rng=5).centers,
    )


def test_a_large_domain_is_never_listed():
    cube = bf.Domain((200, 200, 200))
    points = np.random.default_rng(1).uniform(0, 200, (2000, 3))
    release = bf.KMeans(Full(cube), epsilon=1, rounds=2).release(points, rng=1)
    assert release.centers.shape == (4, 3)


def test_the_release_says_what_it_holds(tmp_path):
    mechanism = bf.KMeans(Full(BOX), epsilon=1, rounds=2)
    release = mechanism.release(heaps(300), rng=7)
    assert not release.private
    assert mechanism.release(heaps(300)).private
    assert release.interval_scope == "nothing"
    assert not hasattr(release, "estimate")
    asked = bf.workloads.Identity(BOX)
    with pytest.raises(BlowfishError, match="no estimate"):
        release.answer(asked)
    with pytest.raises(NoEstimateError, match=r"release\.centers"):
        release.intervals(asked)
    with pytest.raises(ValueError, match="read-only"):
        release.centers[0] = 0
    assert "centre of its cell" in str(release.guarantee)
    assert "seeded" in repr(release)
    again = mechanism.release(heaps(300), rng=7)
    np.testing.assert_array_equal(release.centers, again.centers)
    path = tmp_path / "centers.json"
    release.save(path)
    loaded = bf.Centres.load(path)
    np.testing.assert_array_equal(loaded.centers, release.centers)
    np.testing.assert_array_equal(loaded.details["history"], release.details["history"])
    assert loaded.guarantee == release.guarantee
    assert loaded.domain == release.domain
    assert repr(loaded) == repr(release)
    path.write_text("{}")
    with pytest.raises(ReleaseFileError, match="fresh copy"):
        bf.Centres.load(path)
    with pytest.raises(ReleaseFileError, match="no release file"):
        bf.Centres.load(tmp_path / "nowhere.json")


def test_lemma_6_1_prints_twice_the_longest_edge():
    grid = bf.Domain((10, 30))
    assert unsafe_paper_formula(Full(grid)) == 2 * (9 + 29)
    assert unsafe_paper_formula(Attribute(grid)) == 2 * 29
    assert unsafe_paper_formula(Threshold(grid, theta=7)) == 2 * 7
    tiles = np.add.outer(np.arange(10) // 5 * 3, np.arange(30) // 10)
    assert unsafe_paper_formula(Blocks(grid, tiles)) == 2 * (4 + 9)
    with pytest.raises(PolicyError, match="no edge between two values"):
        unsafe_paper_formula(AddRemove(grid))


@pytest.mark.parametrize("axes", [1, 2, 4])
def test_centres_start_spread_over_the_box(axes):
    spread = evenly_spread(64, axes)
    assert ((spread >= 0) & (spread < 1)).all()
    gaps = np.abs(spread[:, None] - spread[None]).max(axis=-1) + np.eye(64)
    assert gaps.min() > 0.3 / 64
    np.testing.assert_allclose(spread.mean(axis=0), 0.5, atol=0.05)


def test_bad_input_is_refused_before_anything_is_drawn():
    with pytest.raises(PolicyError, match="state the policy first"):
        bf.KMeans(BOX, epsilon=1)
    for clusters in (0, -1, 2.5, True, "4"):
        with pytest.raises(InputError, match="clusters must be"):
            bf.KMeans(Full(BOX), clusters, epsilon=1)
    with pytest.raises(InputError, match="rounds must be at least 1"):
        bf.KMeans(Full(BOX), epsilon=1, rounds=0)
    with pytest.raises(InputError, match="assign must be"):
        bf.KMeans(Full(BOX), epsilon=1, assign="blocks")
    with pytest.raises(EpsilonError, match="share"):
        bf.KMeans(Full(BOX), epsilon=1, share=1)
    with pytest.raises(InputError, match="start must hold 4 centres"):
        bf.KMeans(Full(BOX), epsilon=1, start=[[1, 1]])
    with pytest.raises(InputError, match="start must lie in the box"):
        bf.KMeans(Full(BOX), 1, epsilon=1, start=[[1, 81]])
    with pytest.raises(DomainError, match="levels have none"):
        bf.KMeans(Full(bf.Domain.from_levels(["a", "b"])), epsilon=1)
    mechanism = bf.KMeans(Full(BOX), epsilon=1)
    for points in ([[50, 80.5]], [[np.nan, 1]], [[-1, 1]]):
        with pytest.raises(CountsError, match="some do not"):
            mechanism.release(points)
    with pytest.raises(DomainError, match=r"shape \(n, 2\)"):
        mechanism.release([1, 2, 3])
    with pytest.raises(InputError, match="must be numbers"):
        mechanism.release([["a", "b"]])
    with pytest.raises(DomainError, match="build both over one Domain"):
        mechanism.release(bf.Histogram(LINE, np.ones(12)))


@pytest.mark.parametrize("records", [2**40, 2**40 + 1, 2**43 + 1, 2**61])
def test_no_number_of_records_is_refused(records):
    """A hole of the kind of issue 32's fifth: 2^40 records, and not one more."""
    many = np.zeros(BOX.shape, dtype=np.int64)
    many[0, 0] = records
    strategy = bf.KMeans(bf.policies.AddRemove(BOX), 1, epsilon=1)
    assert strategy.release(bf.Histogram(BOX, many), rng=1).centers.shape == (1, 2)
    rows = ClusterSums(strategy.grid, strategy.start)
    size, *sums = rows.rows(many.reshape(-1)).tolist()
    corner = strategy.grid.coordinates_of(np.zeros((1, 2), dtype=np.int32))[0]
    assert size == records
    assert sums == [max(records * one, -(2**62)) for one in corner.tolist()]


def test_cells_without_a_place_are_refused():
    ages = bf.Domain.from_edges(range(5), name="age").with_extra_cells(missing=True)
    with pytest.raises(bf.errors.DomainError, match="has no place on age"):
        bf.KMeans(bf.policies.Full(ages), 2, epsilon=1)
