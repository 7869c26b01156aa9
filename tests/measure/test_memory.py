"""What a release needs is known beforehand, and refused before it is charged."""

from __future__ import annotations

import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast._support import machine
from blowfish_fast.data import buckets
from blowfish_fast.data.buckets import cell_order, cells_along_curve
from blowfish_fast.errors import SizeError
from blowfish_fast.kernels.partition import rectangle_partition, rectangle_prior
from blowfish_fast.kernels.sampling import exponential_choice
from blowfish_fast.kernels.window_costs import rectangle_costs
from blowfish_fast.measure.strategies.trees import tree_weights
from blowfish_fast.mechanisms import dawa
from blowfish_fast.mechanisms.base import PIECE_BYTES
from blowfish_fast.mechanisms.hierarchy import NODE_BYTES, ROW_BYTES
from blowfish_fast.mechanisms.registry import MECHANISMS
from tests import measuring
from tests.own_process import found_by

MEASURED = [*measuring.cases()]
LINE = bf.Domain(64)

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    return found_by(measuring, "used", tmp_path_factory.mktemp("used"))


@pytest.mark.long
@linux
@pytest.mark.parametrize("name", MEASURED)
def test_releases_take_no_more_than_was_declared(used, name):
    sizes = [one for one in used if one[0] == name]
    assert sizes
    for _, _, needed, alone, kept in sizes:
        assert alone <= machine.BASE_BYTES + needed
        assert kept <= machine.BASE_BYTES + 2 * needed


@pytest.mark.long
@linux
@pytest.mark.parametrize("name", MEASURED)
def test_what_is_declared_is_no_fancy(used, name):
    _, _, needed, alone, kept = [one for one in used if one[0] == name][-1]
    assert needed <= 10 * max(alone, kept) + machine.BASE_BYTES


@pytest.mark.long
@linux
def test_too_little_memory_is_refused_uncharged(tmp_path):
    found = found_by(measuring, "refused", tmp_path)
    assert [one[0] for one in found] == list(MECHANISMS)
    for name, alone, kept, before, after in found:
        for said, consequence in ((alone, "drawn"), (kept, "charged")):
            assert said.startswith(f"{name} on 16,384 cells"), said
            assert f"can be had; nothing was {consequence}. Use fewer cells" in said
        assert (before, after) == ("0", "1")


def laplace(domain=LINE, **options):
    policy = bf.policies.Full(domain)
    return bf.Laplace(policy, bf.workloads.Identity(domain), epsilon=1, **options)


def test_the_need_is_stated_with_what_there_is(monkeypatch):
    monkeypatch.setattr(machine, "memory_room", lambda: 2.0**20)
    with pytest.raises(SizeError, match=r"need \d+ MiB .* and 1 MiB can be had; noth"):
        laplace().release(np.ones(64))
    ledger = bf.Ledger(None, epsilon=1, policy=bf.policies.Full(LINE))
    with pytest.raises(SizeError, match="nothing was charged"):
        ledger.release(laplace(), np.ones(64))
    with pytest.raises(SizeError, match="nothing was charged"):
        ledger.release_disjoint([(laplace(), np.ones(64))])
    assert ledger.spent == 0
    assert ledger.history() == []


def test_a_ledger_asks_for_twice_as_much(monkeypatch):
    line = bf.Domain(2**20)
    made = laplace(line)
    made.release(np.ones(2**20))
    needed = made.memory_needed()
    room = machine.BASE_BYTES + 1.5 * needed
    monkeypatch.setattr(machine, "memory_room", lambda: room)
    machine.check_memory(needed, "a release", "nothing happened")
    ledger = bf.Ledger(None, epsilon=1, policy=made.policy)
    with pytest.raises(SizeError, match="for a dry run, the draw and a copy"):
        ledger.release(made, np.ones(2**20))
    assert ledger.spent == 0


def test_parts_of_one_request_add_up(monkeypatch):
    made = laplace(bf.Domain(2**20))
    needed = made.memory_needed()
    room = machine.BASE_BYTES + 5.0 * needed
    monkeypatch.setattr(machine, "memory_room", lambda: room)
    ledger = bf.Ledger(None, epsilon=1, policy=made.policy)
    with pytest.raises(SizeError, match="on 3,145,728 cells"):
        ledger.release_disjoint([(made, np.ones(2**20))] * 3)
    assert ledger.spent == 0


def test_what_others_leave_is_not_read_for_every_release(monkeypatch):
    found = iter([5.0 * 2**20, 7.0 * 2**20])
    monkeypatch.setattr(machine, "_free_memory", lambda: next(found))
    monkeypatch.setattr(machine, "_container_room", lambda: float("inf"))
    machine._left_by_others.cache_clear()
    assert [machine._left_by_others(-one) for one in (1, 1, 2)] == [
        5.0 * 2**20,
        5.0 * 2**20,
        7.0 * 2**20,
    ]


def test_an_unused_compiler_needs_room_too(monkeypatch):
    monkeypatch.setattr(machine, "memory_room", lambda: 2.0**28)
    monkeypatch.setattr(machine, "sys", SimpleNamespace(modules={"numba": None}))
    machine.check_memory(0, "a release", "nothing happened")
    monkeypatch.setattr(machine, "sys", SimpleNamespace(modules={}))
    with pytest.raises(SizeError, match="704 MiB"):
        machine.check_memory(0, "a release", "nothing happened")


@pytest.mark.parametrize("shape", [(64,), (16, 16), (13, 29), (6, 7, 8)])
def test_pieces_of_rectangles_are_bounded(shape):
    domain = bf.Domain(shape)
    asked = bf.workloads.Rectangles.random(domain, 100, rng=3)
    form = asked.explicit_form(cell_order(domain))
    assert form.pointers[-1] <= asked._pieces()


def test_pieces_of_other_queries():
    grid = bf.Domain((4, 4))
    workloads = bf.workloads
    for formula in (workloads.AllRanges(LINE), workloads.Identity(grid)):
        assert formula._pieces() == 0
    assert workloads.Ranges(LINE, [0, 2], [5, 9])._pieces() == 2
    assert workloads.Linear(LINE, np.eye(64)[:3])._pieces() == 3
    assert workloads.Marginals(grid, [0])._pieces() == 16


def test_sizes_and_no_data_decide():
    small, large = laplace().memory_needed(), laplace(bf.Domain(128)).memory_needed()
    assert large == 2 * small
    assert laplace(strategy="edges").memory_needed() - small == PIECE_BYTES * 63 * 32


def test_limits_of_container_and_system_are_read(tmp_path):
    assert machine._container_room(str(tmp_path)) == float("inf")
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 700\ninactive_file 150\n")
    assert machine._container_room(str(tmp_path)) == 250
    (tmp_path / "memory.max").write_text("max\n")
    assert machine._container_room(str(tmp_path)) == float("inf")
    table = tmp_path / "meminfo"
    assert machine._free_memory(str(table)) == float("inf")
    table.write_text("MemTotal:  9 kB\nMemAvailable:  5 kB\n")
    assert machine._free_memory(str(table)) == 5 * 1024
    assert machine.memory_room() > 0


@linux
def test_the_noise_that_a_tree_keeps_for_intervals_is_counted():
    cells = 2**15
    line = bf.Domain(cells)
    asked = bf.workloads.Ranges(line, [0, 5], [9, cells])
    policy = bf.policies.AddRemove(line)
    made = bf.Hierarchy(policy, asked, epsilon=1, fan_out=2)
    counts = np.arange(cells) % 50
    made.release(counts, rng=1).intervals(asked)
    # Releases of one mechanism share what they were prepared with.
    made = bf.Hierarchy(policy, asked, epsilon=1, fan_out=2)
    tracemalloc.start()
    release = made.release(counts, rng=1)
    before = tracemalloc.get_traced_memory()[0]
    release.intervals(asked)
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Two nodes for each cell, of which all of a level are alike: a few numbers each.
    assert kept - before < 0.5 * NODE_BYTES * 2 * cells
    assert most - before < NODE_BYTES * 2 * cells
    assert most <= made.memory_needed()
    # A release alone takes less: what intervals keep comes on top.
    assert most > 1.2 * before


def test_only_nodes_that_may_differ_are_counted_with_rows_of_their_own():
    line = bf.Domain(64)
    cells = bf.workloads.Identity(line)
    blocks = bf.policies.Blocks(line, np.arange(64) // 8)
    one, several, private = (
        bf.Hierarchy(policy, cells, epsilon=1).memory_needed()
        for policy in (bf.policies.Full(line), blocks, bf.policies.AddRemove(line))
    )
    assert one == private == several - ROW_BYTES * (64 * 3 // 2 + 64)


def test_every_table_of_a_workload_may_touch_every_cell():
    domain = bf.Domain((3, 2, 4), names=["age", "sex", "town"])
    asked = bf.workloads.Tables(domain, [("age",), ("age", "sex")])
    assert asked._pieces() == 2 * 24


def test_an_address_limit_without_a_reading_leaves_infinite_room(monkeypatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _which: (2**40, 2**40))
    assert machine._address_room() < 2**40

    def unread(path):
        raise OSError(path)

    monkeypatch.setattr(machine, "_contents", unread)
    assert machine._address_room() == float("inf")


def test_a_table_without_free_memory_leaves_infinite_room(tmp_path):
    table = tmp_path / "meminfo"
    table.write_text("MemTotal:  1024 kB\n")
    assert machine._free_memory(str(table)) == float("inf")
    table.write_text("MemTotal:  1024 kB\nMemAvailable:  7 kB\n")
    assert machine._free_memory(str(table)) == 7 * 1024


def large_dawa(cells, policy=bf.policies.AddRemove, **budget):
    line = bf.Domain(cells)
    asked = bf.workloads.Ranges(line, [0, 5], [9, cells])
    return bf.Dawa(policy(line), asked, **(budget or {"epsilon": 4}))


@pytest.mark.long
@linux
@pytest.mark.parametrize(
    ("policy", "kind", "epsilon"),
    [
        (bf.policies.AddRemove, bf.workloads.Ranges, 4),
        (bf.policies.Full, bf.workloads.AllRanges, 4),
        (bf.policies.AddRemove, bf.workloads.Identity, 4),
        (bf.policies.AddRemove, bf.workloads.Identity, "0.1"),
        (bf.policies.Line, bf.workloads.Ranges, 4),
    ],
)
def test_a_bucket_for_every_cell_of_a_long_line_is_declared(
    monkeypatch, policy, kind, epsilon
):
    # What holds beyond 2^22 cells is let begin here, where a test is quick.
    for module in (dawa, tree_weights):
        monkeypatch.setattr(module, "MOST_PAIRED", 2**10)
    cells = 2**19

    def dawa_on(cells):
        line = bf.Domain(cells)
        places = ([0, 5], [9, cells]) if kind is bf.workloads.Ranges else ()
        counts = np.random.default_rng(1).integers(0, 2**30, cells)
        return bf.Dawa(policy(line), kind(line, *places), epsilon=epsilon), counts

    few, counts = dawa_on(2**12)
    few.release(counts, rng=1)  # loads kernels, which take memory once
    made, counts = dawa_on(cells)
    tracemalloc.start()
    release = made.release(counts, rng=1)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert release.details["buckets"] == cells
    assert most <= made.memory_needed() <= 1.7 * most


def rectangles_of(side, fit=None):
    grid = bf.Domain((side, side))
    boxes = bf.workloads.Rectangles.random(grid, 3, rng=1)
    cut = bf.partitions.DyadicRectangles()
    policy = bf.policies.AddRemove(grid)
    return bf.Dawa(policy, boxes, epsilon=40, partition=cut, fit=fit)


@pytest.mark.long
@linux
@pytest.mark.parametrize("fit", [None, "non_negative"])
def test_a_bucket_for_every_cell_of_a_large_map_is_declared(fit, monkeypatch):
    # What holds beyond 2^22 cells is let begin here, where a test is quick.
    for module in (dawa, tree_weights):
        monkeypatch.setattr(module, "MOST_PAIRED", 2**10)
    monkeypatch.setattr(tree_weights, "LARGE", 2**10)
    monkeypatch.setattr(buckets, "MOST_KEPT_CELLS", 2**10)
    side = 512
    generator = np.random.default_rng(1)
    few, counts = rectangles_of(64, fit), generator.poisson(30, (side, side))
    few.release(counts[:64, :64], rng=1)  # loads kernels
    made = rectangles_of(side, fit)
    tracemalloc.start()
    release = made.release(counts, rng=1)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert release.details["buckets"] == counts.size
    assert most <= made.memory_needed()
    if fit is not None:
        # Halves of the map take more than the tree, and were not measured beyond.
        assert made.memory_needed() >= bf.Dawa.cell_bytes * counts.size
        return
    assert made.memory_needed() <= 1.2 * most
    # The corners of all buckets come last, when the tree is fitted, and nobody holds
    # the curve through the cells until then.
    assert most < 130 * counts.size


@linux
def test_cells_that_wait_take_no_more_than_the_lattice_did(monkeypatch):
    # Every node asks for halves, so that each cell waits, and settles, on its own.
    side = 256
    counts = np.random.default_rng(1).integers(0, 2**20, (side, side))
    costs = rectangle_costs.dyadic_rectangle_costs(counts, 3, 4)

    def halves(words, position, table, bits):
        # A bucket is the first choice of all, halves come next.
        return np.ones(len(table), dtype=np.int64), None

    def nothing(position, count):
        return np.zeros(count, dtype=np.uint64)

    tracemalloc.start()
    weights = rectangle_prior.fixed_point_weights((side, side), rate=1, penalty=1)
    lattice = [rectangle_partition.lattice_totals(costs, weights)]
    costs.clear()
    monkeypatch.setattr(exponential_choice, "weigh_block", halves)
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    windows = rectangle_partition.choose_windows(lattice.pop(), nothing)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(windows) == counts.size
    assert most - before < 24 * counts.size


@pytest.mark.parametrize("shape", [(4, 8), (5, 3), (2, 4, 3)])
def test_the_curve_of_a_large_map_is_the_same_and_not_held(shape, monkeypatch):
    domain = bf.Domain(shape)
    held = cell_order(domain)
    assert cell_order(domain) is held
    assert cells_along_curve(domain) is held.order
    monkeypatch.setattr(buckets, "MOST_KEPT_CELLS", domain.size - 1)
    anew = cell_order(domain)
    assert anew is not cell_order(domain)
    assert anew.curve == held.curve
    for order in (anew.order, cells_along_curve(domain)):
        assert order is not held.order
        np.testing.assert_array_equal(order, held.order)
        assert not order.flags.writeable


def test_large_maps_are_declared_by_how_they_are_cut():
    assert rectangles_of(8192).memory_needed() <= 8.6 * 2**30
    # Here a test may choose the adaptive grid, which takes more.
    tested = by_default(4096).memory_needed()
    assert tested > 1.8 * rectangles_of(4096).memory_needed()
    # Beyond there is no test, and the default is what is cut by name.
    assert by_default(8192).memory_needed() == rectangles_of(8192).memory_needed()


def by_default(side):
    grid = bf.Domain((side, side))
    boxes = bf.workloads.Rectangles.random(grid, 3, rng=1)
    return bf.Dawa(bf.policies.AddRemove(grid), boxes, epsilon=40)


@linux
@pytest.mark.parametrize("shape", [(256, 256), (32, 32, 64), (8, 16, 16, 32)])
def test_a_box_for_every_cell_on_both_levels_of_a_grid_is_declared(shape):
    def grid_on(shape):
        grid = bf.Domain(shape)
        boxes = bf.workloads.Rectangles.random(grid, 3, rng=1)
        policy = bf.policies.AddRemove(grid)
        return bf.AdaptiveGrid(policy, boxes, epsilon=40, records=10**9)

    few = shape[:1] + (2,) * (len(shape) - 1)
    grid_on(few).release(np.full(few, 30), rng=1)  # loads kernels
    made, counts = grid_on(shape), np.random.default_rng(1).poisson(30, shape)
    tracemalloc.start()
    release = made.release(counts, rng=1)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert release.details["buckets"] == counts.size
    assert most <= made.memory_needed() <= 1.5 * most
    # Boxes of the first level are gone when the second is arranged, and what comes in
    # the order of rows when it has been put into that of nodes.
    assert len(shape) > 2 or most < 330 * counts.size


def test_long_lines_are_declared_by_what_is_asked():
    assert large_dawa(2**26).memory_needed() <= 10 * 2**30 + 2**20
    assert large_dawa(2**28).memory_needed() <= 40 * 2**30 + 2**20
    line = large_dawa(2**26, bf.policies.Line).memory_needed()
    assert line > large_dawa(2**26, bf.policies.Full).memory_needed()
    assert large_dawa(2**26, rho=1).memory_needed() > line
    threshold = bf.policies.Threshold(bf.Domain(2**23), theta=8)
    ranges = bf.workloads.Ranges(threshold.domain, [0], [9])
    unmeasured = bf.Dawa(threshold, ranges, epsilon=1)
    assert unmeasured.memory_needed() >= bf.Dawa.cell_bytes * 2**23


def test_trees_that_are_tuned_at_once_do_not_grow_with_cores(monkeypatch):
    assert [tree_weights.trees_at_once(2**n) for n in (16, 18, 22, 23)] == [8, 2, 2, 1]
    asked = []

    def cores(most):
        asked.append(most)
        return 1

    monkeypatch.setattr(tree_weights, "usable_cores", cores)
    large_dawa(2**17).release(np.arange(2**17) * 977 % 2**20, rng=1)
    assert asked
    assert max(asked) <= 4
