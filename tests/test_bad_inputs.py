"""Every registered mechanism and every kind of bad data: an error, nothing charged."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import CountsError, DomainError, InputError, WorkloadError
from blowfish_fast.mechanisms.registry import MECHANISMS

LINE = bf.Domain(8)


def with_first(value, dtype=np.float64):
    """Return a change that puts `value` into the first place."""

    def change(data):
        changed = np.array(data, dtype=dtype)
        changed.flat[0] = value
        return changed

    return change


POINTS_AND_COUNTS = {
    "nan": (with_first(np.nan), InputError),
    "infinity": (with_first(np.inf), InputError),
    "minus infinity": (with_first(-np.inf), InputError),
    "negative": (with_first(-1), InputError),
    "beyond all integers": (with_first(1e300), InputError),
    "missing": (with_first(None, object), InputError),
    "a text": (with_first("3", object), InputError),
    "a complex number": (with_first(1j, complex), InputError),
    "dates": (lambda data: np.asarray(data).astype(int).astype("M8[D]"), InputError),
    "ragged": (lambda _data: [[1, 2], [3]], InputError),
    "nothing": (lambda _data: None, InputError),
    "one number": (lambda _data: 5, InputError),
    "a name": (lambda _data: "histogram", InputError),
    "a mapping": (lambda _data: {"counts": [1]}, InputError),
    "an axis too many": (lambda data: np.asarray(data)[..., None, None], InputError),
    "another domain": (
        lambda _data: bf.Histogram(bf.Domain(9), np.ones(9)),
        DomainError,
    ),
    "other names": (
        lambda _data: bf.Histogram(
            bf.Domain.from_edges(range(9), name="age"), np.ones(8)
        ),
        DomainError,
    ),
}
COUNTS_ONLY = {
    "an empty list": (lambda _data: [], CountsError),
    "a fraction": (with_first(1.5), CountsError),
    "too short": (lambda data: np.asarray(data)[:-1], CountsError),
    "too long": (lambda data: np.append(data, 1), CountsError),
    "2^62": (with_first(2**62, np.int64), CountsError),
    "unsigned 2^64 - 1": (with_first(2**64 - 1, np.uint64), CountsError),
    "beyond 64 bits": (with_first(2**70, object), CountsError),
    "a total of 2^62": (lambda data: np.full(len(data), 2**60), CountsError),
    "truth values": (lambda data: np.asarray(data) > 0, CountsError),
}
KINDS = POINTS_AND_COUNTS | COUNTS_ONLY


def asked(name):
    """Return an example that suits the mechanism: counts, or points for clusters."""
    full = bf.policies.Full(LINE)
    made, data = MECHANISMS[name].example(LINE, full, 1)
    return made, getattr(data, "counts", data)


def takes_points(name):
    return np.shape(asked(name)[1]) != LINE.shape


CASES = [
    (name, kind)
    for name in sorted(MECHANISMS)
    for kind in (POINTS_AND_COUNTS if takes_points(name) else KINDS)
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_bad_data_is_refused_and_costs_nothing(name, kind):
    change, expected = KINDS[kind]
    made, data = asked(name)
    ledger = bf.Ledger(None, epsilon=1, policy=made.policy)
    bad = change(data)
    for ask in (
        lambda: made.release(bad, rng=1),
        lambda: ledger.release(made, bad),
        lambda: ledger.release(made, bad, "a request"),
        lambda: ledger.release_disjoint([(made, data), (made, bad)]),
    ):
        with pytest.raises(expected) as caught:
            ask()
        assert len(str(caught.value)) > 20
        assert ledger.spent == 0
        assert ledger.history() == []


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_a_refused_request_may_be_asked_again(name):
    made, data = asked(name)
    ledger = bf.Ledger(None, epsilon=1, policy=made.policy)
    with pytest.raises(InputError):
        ledger.release(made, np.full((1, 2, 3), np.nan), "a request")
    ledger.release(made, data, "a request")
    assert ledger.spent == 1


@pytest.mark.parametrize("name", [one for one in MECHANISMS if not takes_points(one)])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64, object])
def test_counts_above_2_to_the_53_are_released(name, dtype):
    made, data = asked(name)
    large = np.array(data, dtype=dtype)
    large[0] = 2**53 + 2
    ledger = bf.Ledger(None, epsilon=1, policy=made.policy)
    release = ledger.release(made, large)
    assert ledger.spent == 1
    # The number of records is public here, and most mechanisms keep it.
    assert np.isfinite(release.estimate).all()
    assert abs(release.estimate.sum() / 2**53 - 1) < 1


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
def test_large_counts_are_kept_to_the_last_digit(dtype):
    counts = np.array([2**53 + 1, 2**60 + 1, 3], dtype=dtype)
    kept = bf.Histogram(bf.Domain(3), counts).counts
    assert kept.tolist() == [2**53 + 1, 2**60 + 1, 3]


@pytest.mark.parametrize(
    "values",
    [[np.nan], [np.inf], [-1.0], [8.5], ["x"], [None], [1e300], [1j]],
    ids=str,
)
def test_records_out_of_the_domain_are_refused(values):
    with pytest.raises(InputError):
        bf.Histogram.from_records(bf.Domain.from_edges(range(9)), values)


AGES = bf.Domain.from_edges(range(5), name="age")
NOT_NUMBERS = {
    "ragged": [1, [2, 3], 4, 5],
    "arrays among numbers": [np.zeros(2), 3, 4, 5],
    "objects": [object()] * 4,
    "classes": np.array([Exception] * 4),
    "texts": ["1", "2", "3", "4"],
    "bytes": [b"1"] * 4,
    "complex": np.full(4, 1j),
    "dates": np.full(4, "2024-01-01", dtype="M8[D]"),
}


@pytest.mark.parametrize("counts", NOT_NUMBERS.values(), ids=NOT_NUMBERS)
@pytest.mark.parametrize(
    "asked",
    [
        bf.workloads.Identity(AGES),
        bf.workloads.Prefixes(AGES),
        bf.workloads.Total(AGES),
        bf.workloads.Linear(AGES, [[1, 2, 3, 4]]),
        bf.workloads.Marginals(AGES, [0]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_workloads_answer_numbers_only(asked, counts):
    with pytest.raises(CountsError, match=r"must be (an array of )?numbers"):
        asked.answer(counts)


def test_counts_beyond_signed_integers_are_answered_in_floating_point():
    giant = np.full(4, 2**64 - 1, dtype=np.uint64)
    assert bf.workloads.Total(AGES).answer(giant).tolist() == [2.0**66]


@pytest.mark.parametrize("huge", [10**400, 1e308, -(2.0**401), 2**2000])
def test_coefficients_whose_squares_overflow_are_refused(huge):
    refused = "must lie below 3e\\+120|must be (a )?numeric|must be numbers"
    with pytest.raises(WorkloadError, match=refused):
        bf.workloads.Sum(AGES, [0, huge, 0, -1])
    with pytest.raises(WorkloadError, match=refused):
        bf.workloads.Linear(AGES, [[0, huge, 0, -1]])


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "\ud800"], ids=repr)
def test_what_is_no_name_of_a_file_is_no_ledger(path):
    with pytest.raises(InputError, match="no file can be named"):
        bf.Ledger(path, epsilon=1, policy=bf.policies.Full(AGES))
    with pytest.raises(InputError, match="no file can be named"):
        bf.Ledger(path)


@pytest.mark.parametrize(
    "groups",
    [3, "age", [1, 2], {"age": 2}, {"age": None}, {"age": [[0, 1], [2]]}, {0: len}],
    ids=repr,
)
def test_cells_are_merged_by_edges_or_levels_only(groups):
    data = bf.Histogram(AGES, [1, 2, 3, 4])
    for read in (AGES.coarsened, data.coarsened):
        with pytest.raises(DomainError, match="cells are merged by the edges"):
            read(groups)


RAGGED = [[1], [2, 3]]
STRANGE = [True, 0, 1.5, object(), np.array(1), np.array([1, 2]), RAGGED, ...]


@pytest.mark.parametrize("value", STRANGE)
def test_a_progress_that_cannot_be_called_costs_nothing(value):
    line = bf.Domain(4)
    policy = bf.policies.Full(line)
    asked = bf.Laplace(policy, bf.workloads.Identity(line), epsilon="0.1")
    with pytest.raises(bf.BlowfishError, match="progress is a function"):
        asked.release([1, 2, 3, 4], progress=value)
    with bf.Ledger(None, epsilon=1, policy=policy) as ledger:
        with pytest.raises(bf.BlowfishError, match="progress is a function"):
            ledger.release(asked, [1, 2, 3, 4], progress=value)
        parts = [(asked, [1, 2, 3, 4])] * 2
        with pytest.raises(bf.BlowfishError, match="progress is a function"):
            ledger.release_disjoint(parts, by="ids", progress=value)
        assert ledger.spent == 0


GRID = bf.Domain((2, 3), names=["a", "b"])
NAMED = bf.workloads.Tables
LISTS = {
    "names": (lambda value: bf.Domain((2, 3), names=value), "names are texts"),
    "tables": (lambda value: NAMED(GRID, value), "a list of sets of attributes"),
    "weights": (lambda value: NAMED(GRID, ["a"], weights=value), "one weight per"),
    "axes": (lambda value: GRID.axes([value, value]), "attribute"),
    "policies": (bf.policies.Full(GRID).implies, "policies are compared"),
    "population": (
        lambda value: bf.Population("p", person="id", tables=value, epsilon=1),
        "tables are given by name and policy",
    ),
}


@pytest.mark.parametrize("value", [True, 1.5, object(), np.array(1), ...])
@pytest.mark.parametrize("door", LISTS)
def test_lists_that_are_none_are_refused_in_words(door, value):
    ask, reason = LISTS[door]
    with pytest.raises(bf.BlowfishError, match=reason):
        ask(value)


@pytest.mark.parametrize("parts", [None, True, [1, 2], np.array([1, 2]), RAGGED, []])
def test_parts_that_are_none_cost_nothing(parts):
    with bf.Ledger(None, epsilon=1, policy=bf.policies.Full(GRID)) as ledger:
        with pytest.raises(bf.BlowfishError, match='by="ids" takes a list of'):
            ledger.release_disjoint(parts)
        assert ledger.spent == 0


def test_names_that_cannot_be_told_apart_are_refused():
    with pytest.raises(DomainError, match="names are texts"):
        bf.Domain((2, 3), names=RAGGED)


@pytest.mark.parametrize("value", [-1, 1.5, "seed", object(), np.array([None])])
def test_a_seed_that_is_none_is_refused_in_words(value):
    line = bf.Domain(9)
    release = bf.Laplace(
        bf.policies.Full(line), bf.workloads.Identity(line), epsilon=1
    ).release(range(9), rng=1)
    for door in (
        lambda: bf.workloads.Ranges.random(line, 3, rng=value),
        lambda: bf.workloads.Ranges.clustered(line, 3, rng=value),
        lambda: release.sample(3, rng=value),
    ):
        with pytest.raises(bf.BlowfishError, match="rng must be a seed"):
            door()


def test_a_ragged_number_is_no_number():
    with pytest.raises(bf.BlowfishError, match="epsilon must be a finite number"):
        bf.Ledger(None, epsilon=RAGGED, policy=bf.policies.Full(bf.Domain(4)))
    with pytest.raises(bf.BlowfishError, match="about is a mapping"):
        bf.Ledger(None, epsilon=1, policy=bf.policies.Full(bf.Domain(4)), about=3)
