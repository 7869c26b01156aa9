"""Least squares over tables against dense matrices; noise laws against coefficients."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import IntervalError, ReleaseFileError, SizeError
from blowfish_fast.measure.noise import Scales, laplace_variance
from blowfish_fast.measure.strategies.tables import residuals
from blowfish_fast.measure.strategies.tables.residuals import (
    NoisyTables,
    ResidualFit,
    TableNoise,
    closure,
)
from tests.reference.table_algebra import (
    dense_fit,
    noise_coefficients,
    table_matrix,
)

SIZES = (3, 2, 4, 2)
EVERY = [one for k in range(5) for one in combinations(range(4), k)]
NONE = Scales(np.zeros(0, np.int64), 1, np.zeros(0, np.bool_))


def measured_sets(generator):
    """Return some tables that hold all pairs, with scales of their noise."""
    chosen = [one for one in EVERY if generator.random() < 0.6]
    pairs = combinations(range(4), 2)
    if not all(any(set(p) <= set(one) for one in chosen) for p in pairs):
        chosen.append((0, 1, 2, 3))
    widths = generator.uniform(2, 9, len(chosen))
    tables = tuple(dict.fromkeys(chosen))
    widths = widths[: len(tables)]
    none = np.zeros(len(tables), dtype=np.bool_)
    return NoisyTables(SIZES, tables, laplace_variance(widths), widths, none)


def shapes(tables):
    return [[SIZES[axis] for axis in one] for one in tables]


@pytest.mark.parametrize("trial", range(6))
def test_estimates_and_variances_are_those_of_dense_least_squares(trial):
    generator = np.random.default_rng(trial)
    measured = measured_sets(generator)
    values = [generator.integers(-5, 50, shape) for shape in shapes(measured.tables)]
    fit = ResidualFit(measured, values)
    cells, covariance = dense_fit(SIZES, measured.tables, measured.variances, values)
    for table in (one for one in EVERY if 0 < len(one) < 3):
        rows = table_matrix(SIZES, table)
        assert np.allclose(fit.table(table).reshape(-1), rows @ cells, atol=1e-9)
        variances = np.diag(rows @ covariance @ rows.T)
        assert np.allclose(variances, TableNoise.of(measured, table).cell_variance())


@pytest.mark.parametrize("trial", range(4))
def test_the_law_of_queries_is_that_of_their_coefficients(trial):
    generator = np.random.default_rng(10 + trial)
    measured = measured_sets(generator)
    every = noise_coefficients(SIZES, measured.tables, measured.variances)
    widths = np.repeat(
        measured.widths, [np.prod(s, dtype=int) for s in shapes(measured.tables)]
    )
    for table in ((2,), (0, 2), (0, 1, 3)):
        if measured.information(table) == 0:
            continue
        cells = int(np.prod(shapes([table])[0]))
        queries = np.concatenate(
            [np.eye(cells), generator.integers(-2, 3, (5, cells)).astype(float)]
        )
        asked = bf.workloads.Linear(bf.Domain(cells), queries)
        form = asked.explicit_form(Buckets.single_cells(cells))
        spread = TableNoise.of(measured, table).spread(form, NONE)
        sizes = np.abs(queries @ table_matrix(SIZES, table) @ every) * widths
        assert np.allclose(spread.square, (sizes**2).sum(axis=1), rtol=1e-9)
        assert np.allclose(spread.largest[:cells], sizes[:cells].max(axis=1))
        assert (spread.largest >= sizes.max(axis=1) * (1 - 1e-9)).all()


def test_exact_tables_are_kept_and_carry_no_noise(generator):
    tables = ((), (1,), (0, 1), (1, 2))
    exact = np.array([True, True, False, False])
    widths = np.array([0.0, 0.0, 3.0, 3.0])
    variances = np.where(exact, 0.0, 18.0)
    measured = NoisyTables(SIZES, tables, variances, widths, exact)
    counts = generator.integers(0, 9, SIZES)
    sums = [counts.sum(axis=tuple(i for i in range(4) if i not in t)) for t in tables]
    noisy = [
        one if known else one + generator.integers(-4, 5, one.shape)
        for one, known in zip(sums, exact, strict=True)
    ]
    fit = ResidualFit(measured, noisy)
    assert np.allclose(fit.table((1,)), sums[1])
    assert TableNoise.of(measured, (1,)).cell_variance() == 0
    assert np.allclose(fit.table((0, 1)).sum(axis=0), sums[1])
    assert fit.table(()) == pytest.approx(counts.sum())


def test_a_table_whose_attributes_were_measured_apart_is_refused():
    none = np.zeros(2, dtype=np.bool_)
    apart = NoisyTables((2, 2), ((0,), (1,)), np.ones(2), np.ones(2), none)
    with pytest.raises(IntervalError, match="measured apart"):
        TableNoise.of(apart, (0, 1))
    fit = ResidualFit(apart, [np.array([1, 2]), np.array([2, 1])])
    with pytest.raises(IntervalError, match="measured apart"):
        fit.table((0, 1))


def test_the_closure_lists_every_subset_once():
    assert closure([(0, 1), (1, 2)]) == [(), (0,), (1,), (2,), (0, 1), (1, 2)]


def some_noise():
    none = np.zeros(2, dtype=np.bool_)
    measured = NoisyTables(
        SIZES, ((0, 1), (1, 2)), np.full(2, 18.0), np.full(2, 3.0), none
    )
    return TableNoise.of(measured, (0, 1))


def test_single_cells_as_a_formula_vary_as_much_as_those_listed():
    noise, cells = some_noise(), Buckets.single_cells(6)
    single = bf.workloads.Identity(bf.Domain(6))
    listed = noise.spread(single.explicit_form(cells), NONE).variance.sum()
    assert noise.total_variance(single.form(cells), NONE) == pytest.approx(listed)
    every = bf.workloads.Prefixes(bf.Domain(6))
    listed = noise.spread(every.explicit_form(cells), NONE).variance.sum()
    assert noise.total_variance(every.form(cells), NONE) == pytest.approx(listed)


def test_a_table_made_from_others_is_not_measured_again():
    noise, full = some_noise(), bf.policies.Full(bf.Domain(6))
    assert noise.exact_rows(full).size == 0
    assert noise.rows(np.arange(6)).size == 0
    with pytest.raises(IntervalError, match="estimated from several measured ones"):
        noise.worst_edge(np.zeros(0, np.int64), full)
    with pytest.raises(IntervalError, match="estimated from several measured ones"):
        noise.infer(np.zeros(0, np.int64), NONE)


def test_queries_over_too_many_cells_are_refused(monkeypatch):
    asked = bf.workloads.Ranges(bf.Domain(6), [0, 1], [4, 6])
    form = asked.explicit_form(Buckets.single_cells(6))
    monkeypatch.setattr(residuals, "MOST_COEFFICIENTS", 8)
    with pytest.raises(SizeError, match="ask fewer at a time"):
        some_noise().spread(form, NONE)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"shape": []}, "a shape that no table has"),
        ({"shape": [3, 0]}, "a shape that no table has"),
        ({"shape": [3]}, "does not fit its shape"),
        ({"squares": [1.0, 1.0, 1.0]}, "does not fit its shape"),
        ({"pulls": [-1.0, 0.0, 0.0, 0.0]}, "impossible numbers"),
        ({"information": [0.0, 1.0, 1.0, 1.0]}, "impossible numbers"),
        ({"least": -1.0}, "impossible numbers"),
        ({"least": float("inf")}, "impossible numbers"),
    ],
)
def test_the_law_of_a_table_in_a_file_is_checked(changed, reason):
    packed = some_noise().pack()
    again = TableNoise.unpack(packed)
    assert again.cell_variance() == some_noise().cell_variance()
    with pytest.raises(ReleaseFileError, match=reason):
        TableNoise.unpack({**packed, **changed})
