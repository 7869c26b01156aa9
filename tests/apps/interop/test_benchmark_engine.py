"""The engine: ``Run(Q, x, epsilon, seed)`` as DPBench and ektelo call theirs."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import blowfish_fast as bf
from blowfish_fast.apps.interop import Engine
from blowfish_fast.apps.interop.other_libraries import domain_of, workload_of
from blowfish_fast.errors import (
    BlowfishError,
    DomainError,
    InputError,
    PolicyError,
    WorkloadError,
)
from blowfish_fast.mechanisms.registry import MECHANISMS

X = np.array([0, 0, 90, 90, 90, 91, 1, 0, 0, 3, 0, 0, 7, 7, 7, 7])
GRID = np.add.outer(X[:8], X[:8])


def foreign_query(*ranges):
    """Build a query with the attributes of theirs: both ends included."""
    return SimpleNamespace(ranges=list(ranges))


def foreign_workload(queries, shape):
    return SimpleNamespace(query_list=queries, domain_shape=shape)


def test_the_signature_is_theirs():
    assert list(inspect.signature(Engine.Run).parameters) == [
        "self",
        "Q",
        "x",
        "epsilon",
        "seed",
    ]
    engine = Engine.dpbench("dawa")
    assert engine.short_name == "Dawa"
    assert engine.init_params == {"mechanism": "dawa", "policy": "add_remove"}
    assert repr(engine) == "Engine('dawa', policy='add_remove')"


def test_dpbench_means_that_a_record_is_added_or_removed():
    release = Engine.dpbench("laplace").release(None, X, 0.5, seed=1)
    assert release.guarantee.policy["kind"] == "add_remove"
    (measured,) = release.measurements
    # Their identity engine draws Laplace noise of scale 1 / epsilon; so do we.
    rates = measured.scales.rates
    assert np.allclose(measured.scales.unit / rates[rates > 0], 2.0)
    assert (rates > 0).sum() == X.size


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_mechanism_can_be_reached(name):
    engine = Engine(name, policy="full")
    outcomes = []
    for counts in (X, GRID):
        if name == "kmeans":
            outcomes.append(engine.release(None, counts, 2.0, 1).centers.shape[1])
            with pytest.raises(InputError, match="centers"):
                engine.Run(None, counts, 2.0, 1)
            continue
        try:
            estimate = engine.Run(None, counts, 2.0, seed=1)
        except BlowfishError:
            outcomes.append(None)
            continue
        assert estimate.shape == counts.shape
        assert estimate.dtype == np.float64
        np.testing.assert_array_equal(estimate, engine.Run(None, counts, 2.0, 1))
        outcomes.append(estimate)
    assert any(one is not None for one in outcomes)


def test_a_seed_marks_an_experiment_and_none_is_secure():
    engine = Engine.dpbench("laplace")
    assert not engine.release(None, X, 1.0, seed=3).private
    assert engine.release(None, X, 1.0).private
    assert not np.array_equal(engine.Run(None, X, 1.0), engine.Run(None, X, 1.0))


def test_the_estimate_is_that_of_the_mechanism():
    line = bf.Domain(16)
    ranges = bf.workloads.Ranges(line, [0, 3], [4, 16])
    dawa = bf.Dawa(bf.policies.AddRemove(line), ranges, epsilon=0.7, share=0.25)
    engine = Engine.dpbench("dawa", options={"share": 0.25})
    expected = dawa.release(X, rng=5).estimate
    np.testing.assert_array_equal(engine.Run(ranges, X, 0.7, 5), expected)
    theirs = foreign_workload(
        [foreign_query(((0,), (3,), 1.0)), foreign_query(((3,), (15,), 1.0))], (16,)
    )
    np.testing.assert_array_equal(engine.Run(theirs, X, 0.7, 5), expected)


def test_an_option_that_a_mechanism_lacks_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"Dawa has no option 'shar'.*'share'"):
        Engine.dpbench("dawa", options={"shar": 0.25})
    with pytest.raises(InputError, match="no option 'epsilon'"):
        Engine("laplace", policy="full", options={"epsilon": 1})
    engine = Engine.dpbench("dawa", options={"share": 0.25})
    assert engine.init_params["share"] == 0.25
    assert repr(engine).endswith("options={'share': 0.25})")

    class Loose(bf.Laplace):
        """Takes whatever it is given, as some mechanisms from outside do."""

        name = "loose"

        def __init__(self, policy, workload=None, *, epsilon=None, **more):
            super().__init__(policy, workload, epsilon=epsilon)

    assert Engine.dpbench(Loose, options={"any": 1}).options == {"any": 1}


def test_flat_counts_keep_their_shape_on_a_grid():
    queries = foreign_workload([foreign_query(((0, 0), (3, 7), 1.0))], (8, 8))
    engine = Engine.dpbench("laplace")
    flat = engine.Run(queries, GRID.reshape(-1), 1.0, 2)
    assert flat.shape == (64,)
    np.testing.assert_array_equal(flat.reshape(8, 8), engine.Run(queries, GRID, 1.0, 2))


def test_foreign_queries_answer_as_theirs_do():
    line, grid = bf.Domain(16), bf.Domain((8, 8))
    one = foreign_query(((2,), (5,), 1.0))
    union = foreign_query(((0,), (1,), 2.0), ((1,), (3,), 1.0))
    box = foreign_query(((1, 2), (3, 4), 1.0))
    cases = [
        ([one], line, X, [X[2:6].sum()]),
        ([one, union], line, X, [X[2:6].sum(), 2 * X[:2].sum() + X[1:4].sum()]),
        (foreign_workload([box], (8, 8)), grid, GRID, [GRID[1:4, 2:5].sum()]),
        (np.eye(16)[:3], line, X, X[:3]),
        (sparse.csr_matrix(np.tri(16)), line, X, X.cumsum()),
        (SimpleNamespace(get_matrix=lambda: np.tri(16)), line, X, X.cumsum()),
        (SimpleNamespace(matrix=np.tri(16)), line, X, X.cumsum()),
        (bf.workloads.Prefixes(line), line, X, X.cumsum()),
    ]
    for queries, domain, counts, expected in cases:
        assert domain_of(queries, counts) == domain
        answers = workload_of(queries, domain).answer(counts)
        np.testing.assert_allclose(answers, expected)
    assert isinstance(workload_of([one], line), bf.workloads.Ranges)
    box_workload = workload_of([box], grid)
    assert isinstance(box_workload, bf.workloads.Rectangles)


def test_the_policy_is_always_stated():
    with pytest.raises(PolicyError, match="state the policy"):
        Engine("dawa")
    with pytest.raises(PolicyError):
        Engine("dawa", policy="nothing")
    line = Engine("ordered", policy=lambda domain: bf.policies.Line(domain))
    assert line.release(None, X, 1.0, 1).guarantee.policy["kind"] == "line"
    fixed = Engine("ordered", policy=bf.policies.Line(bf.Domain(16)))
    assert fixed.Run(None, X, 1.0, 1).shape == (16,)
    with pytest.raises(DomainError, match="as a function"):
        fixed.Run(None, X[:8], 1.0, 1)
    with pytest.raises(PolicyError, match="returned"):
        Engine("laplace", policy=lambda domain: 3).Run(None, X, 1.0)


def test_malformed_calls_are_refused():
    engine = Engine.dpbench("laplace")
    with pytest.raises(InputError, match="no mechanism"):
        Engine("magic", policy="full")
    for queries in ("ranges", np.ones((2, 5)), 7, [], foreign_workload([], (16,))):
        with pytest.raises(WorkloadError):
            engine.Run(queries, X, 1.0)
    with pytest.raises(DomainError):
        engine.Run(bf.workloads.Identity(bf.Domain(4)), X, 1.0)
    with pytest.raises(WorkloadError):
        engine.Run([foreign_query(((2,), (99,), 1.0))], X, 1.0)
    for counts in (-X, X + 0.5):
        with pytest.raises(BlowfishError):
            engine.Run(None, counts, 1.0)


def test_an_engine_takes_classes_of_the_package_and_from_outside():
    from examples.outside_mechanism.equal_widths import EqualWidths

    ranges = np.tril(np.ones((16, 16)))
    for kind in (bf.Laplace, EqualWidths):
        engine = Engine.dpbench(kind)
        assert (engine.short_name, engine.mechanism) == (kind.__name__, kind.name)
        assert engine.Run(ranges, X, 1.0, seed=3).shape == (16,)
    same = Engine.dpbench("laplace").Run(ranges, X, 1.0, seed=3)
    assert np.array_equal(Engine.dpbench(bf.Laplace).Run(ranges, X, 1.0, seed=3), same)
    with pytest.raises(InputError, match="subclass of Mechanism"):
        Engine.dpbench(bf.Domain)


@pytest.mark.parametrize("counts", [[[1], [1, 2]], "abc", {}, None, [1j, 2]], ids=str)
def test_what_holds_no_counts_is_refused_as_bad_input(counts):
    engine = Engine.dpbench("laplace")
    for queries in (None, bf.workloads.Identity(bf.Domain(2))):
        with pytest.raises(InputError):
            engine.Run(queries, counts, 1.0, seed=1)
