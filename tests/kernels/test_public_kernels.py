"""The stable interface of ``blowfish_fast.kernels``, promised in ``docs/backend.md``.

A signature that changes fails here. If the change is meant, and announced as the page
says, write the table anew:

    python -m tests.kernels.public_calls > tests/kernels/public_signatures.json
"""

from __future__ import annotations

import copy
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from blowfish_fast import kernels
from blowfish_fast.errors import BlowfishError, InputError, SizeError
from blowfish_fast.kernels._arguments import refuse_odd_arguments

from .public_calls import calls, plain_signatures, signatures, words

pytestmark = pytest.mark.kernel

HERE = Path(__file__).parent
CALLS = calls()
NAMES = sorted(CALLS)
REPEATABLE = sorted(set(NAMES) - {"secure_words"})
"""All but the source of words, which is another one every time."""

IN_PLACE = {"subtract_geometric": 0}
"""Kernels that say they change an argument, and its place."""

FOLLOWS_ITS_INPUT = {
    "rectangle_sums", "subtree_totals", "summed_area_table", "subtract_children",
}  # fmt: skip
"""Whole numbers in, whole numbers out; floats in, floats out."""

LOGARITHMS_OF_FLOATS = {"shrink_towards_zero"}
"""Iterations on floats: rounding the input to 32 bits shows in the result."""

INTEGERS_ONLY = {"gaussian", "geometric", "laplace"}
"""Whole numbers stored as floats are refused: scales are exact ratios."""


def _arrays(values):
    return [one for one in values if isinstance(one, np.ndarray)]


def _flat(result):
    if isinstance(result, tuple):
        return [part for one in result for part in _flat(one)]
    return [result]


def _kind(value):
    if isinstance(value, np.ndarray):
        return value.dtype.name
    return "None" if value is None else type(value).__name__


def _run(name, arguments=None):
    call = CALLS[name]
    given = copy.deepcopy(call.arguments) if arguments is None else arguments
    result = getattr(kernels, name)(*given, **call.options)
    # What is changed in place is what is compared.
    return given[IN_PLACE[name]] if name in IN_PLACE else result


def _same(first, second):
    return all(
        np.array_equal(one, two)
        for one, two in zip(_flat(first), _flat(second), strict=True)
    )


def _varied(name, change):
    return [
        change(one) if isinstance(one, np.ndarray) else one
        for one in copy.deepcopy(CALLS[name].arguments)
    ]


def test_every_public_kernel_has_a_call_and_a_frozen_signature():
    frozen = json.loads((HERE / "public_signatures.json").read_text())
    assert set(kernels.__all__) == set(CALLS)
    assert signatures() == frozen


def test_the_page_lists_every_kernel_as_it_is():
    page = (HERE.parent.parent / "docs" / "backend.md").read_text()
    listed = dict(re.findall(r"^\*\*`(\w+)(\(.*\))`\*\*", page, flags=re.MULTILINE))
    assert listed == plain_signatures()


@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_has_an_example_that_runs_as_a_doctest(name):
    assert ">>>" in getattr(kernels, name).__doc__


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_results_are_fresh_contiguous_and_of_the_stated_kinds(name):
    arguments = copy.deepcopy(CALLS[name].arguments)
    result = getattr(kernels, name)(*arguments, **CALLS[name].options)
    assert " ".join(_kind(one) for one in _flat(result)) == CALLS[name].returns
    for one in _arrays(_flat(result)):
        assert one.flags.c_contiguous
        assert one.flags.writeable
        assert not any(np.shares_memory(one, given) for given in _arrays(arguments))
    unchanged = [
        np.array_equal(one, two)
        for one, two in zip(arguments, CALLS[name].arguments, strict=True)
        if isinstance(one, np.ndarray)
    ]
    if name in IN_PLACE:
        unchanged.pop(IN_PLACE[name])
    assert all(unchanged)


@pytest.mark.parametrize("name", REPEATABLE)
def test_the_same_words_give_the_same_result(name):
    assert _same(_run(name), _run(name))


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(REPEATABLE) - set(IN_PLACE)))
def test_read_only_and_strided_arrays_are_accepted(name):
    def read_only(array):
        array.flags.writeable = False
        return array

    def strided(array):
        room = np.zeros((2 * len(array), *array.shape[1:]), dtype=array.dtype)
        room[::2] = array
        return room[::2]

    for change in (read_only, strided):
        assert _same(_run(name, _varied(name, change)), _run(name))


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(REPEATABLE) - set(IN_PLACE)))
def test_lists_and_other_dtypes_are_accepted(name):
    def narrow(array):
        small = {"int64": np.int32, "float64": np.float32}
        return array.astype(small.get(array.dtype.name, array.dtype))

    def exchanged(array):
        if array.dtype == np.int64:
            return array.astype(np.float64)
        whole = array.dtype == np.float64 and (array == np.rint(array)).all()
        return array.astype(np.int64) if whole else array

    changes = [np.ndarray.tolist]
    if name not in LOGARITHMS_OF_FLOATS:
        changes.append(narrow)
    if name not in INTEGERS_ONLY:
        changes.append(exchanged)
    expected = _run(name)
    for change in changes:
        result = _run(name, _varied(name, change))
        assert _same(result, expected)
        if name not in FOLLOWS_ITS_INPUT:
            assert [_kind(one) for one in _flat(result)] == [
                _kind(one) for one in _flat(expected)
            ]


def _broken(array):
    yield "short", array[:-1]
    yield "long", np.concatenate([array, array])
    yield "empty", array[:0]
    yield "axis", array[None]
    yield "scalar", array.reshape(-1)[0]
    if array.dtype == np.int64:
        yield "beyond", array + 1000
        yield "before", array - 1000


@pytest.mark.parametrize("name", NAMES)
def test_wrong_shapes_and_places_are_refused_or_harmless(name):
    # Without the compiler a place out of bounds is an IndexError, which fails here;
    # with it, what was accepted must give the same result twice.
    refused = 0
    for place, array in enumerate(CALLS[name].arguments):
        if not isinstance(array, np.ndarray):
            continue
        for _, wrong in _broken(array):
            results = []
            for _ in range(2):
                arguments = copy.deepcopy(list(CALLS[name].arguments))
                arguments[place] = copy.copy(wrong)
                try:
                    results.append(_run(name, arguments))
                except BlowfishError:
                    refused += 1
            assert len(results) in (0, 2)
            assert len(results) == 0 or _same(*results)
    several = len(_arrays(CALLS[name].arguments)) > 1
    assert refused > 0 or not several


def test_kernels_may_run_in_several_threads_at_once():
    expected = {name: _run(name) for name in REPEATABLE}
    jobs = [name for name in REPEATABLE for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for name, result in zip(jobs, pool.map(_run, jobs), strict=True):
            assert _same(result, expected[name]), name


@pytest.mark.parametrize("name", NAMES)
def test_arrays_that_hold_no_real_numbers_are_refused(name):
    changes = {
        "objects": lambda one: one.astype(object),
        "nothing": lambda one: np.full(one.shape, None, dtype=object),
        "complex": lambda one: one + 1j,
        "texts": lambda one: one.astype(str),
        "dates": lambda one: np.zeros(one.shape, dtype="M8[D]"),
    }
    for place, one in enumerate(CALLS[name].arguments):
        if not isinstance(one, np.ndarray):
            continue
        for change in changes.values():
            given = list(copy.deepcopy(CALLS[name].arguments))
            given[place] = change(one)
            with pytest.raises(InputError, match="arrays of real numbers"):
                _run(name, given)


def test_lists_of_texts_are_refused_and_lists_of_numbers_read():
    assert kernels.window_deviations([1, 1, 5, 5], 2).tolist() == [0, 4, 0]
    for wrong in (["1", "1", "5"], [1j, 2, 3], ["a", 1, 2]):
        with pytest.raises(InputError, match="arrays of real numbers"):
            kernels.window_deviations(wrong, 2)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_array_at_all_is_refused_as_bad_input(name):
    call = CALLS[name]
    places = [at for at, one in enumerate(call.arguments) if _is_array(one)]
    for at in places:
        for odd in ("abc", {}, [[1], [1, 2]]):
            given = list(copy.deepcopy(call.arguments))
            given[at] = odd
            with pytest.raises(BlowfishError):
                getattr(kernels, name)(*given, **call.options)
    with pytest.raises(TypeError, match=re.escape(f"{name}(")):
        getattr(kernels, name)(*call.arguments, **call.options, no_such_word=1)


@pytest.mark.parametrize("name", NAMES)
def test_masked_values_are_refused(name):
    for place, one in enumerate(CALLS[name].arguments):
        if _is_array(one):
            given = list(copy.deepcopy(CALLS[name].arguments))
            given[place] = np.ma.array(one, mask=True)
            with pytest.raises(InputError, match="masked"):
                _run(name, given)


NOT_NUMBERS = {
    "hilbert_order": [("34",), (b"34",)],
    "isotonic_fit": [([3.0, 1.0, 2.0], None, {"low": "3"})],
    "median_boxes": [
        ([[1, 2]], {"level": "3", "slack": 0, "count": 9, "mode": "or", "depth": 1})
    ],
}


@pytest.mark.parametrize("name", NOT_NUMBERS)
def test_texts_that_look_like_numbers_are_no_numbers(name):
    for case in NOT_NUMBERS[name]:
        options = case[-1] if isinstance(case[-1], dict) else {}
        with pytest.raises(InputError, match="texts only where"):
            getattr(kernels, name)(*case[: len(case) - bool(options)], **options)


TREE = kernels.regular_tree(3, 2)
LARGE = np.full(6, 2**62)

REFUSED = {
    "a fraction among rates": lambda: kernels.heaviest_path([0.5] * 6, TREE),
    "a negative rate": lambda: kernels.heaviest_pair([-1, 0, 0, 0, 0, 0], TREE),
    "rates whose sum turns negative": lambda: kernels.heaviest_path(LARGE, TREE),
    "counts whose sum turns negative": lambda: kernels.tree_totals(LARGE[:3], TREE),
    "counts of uint64": lambda: kernels.tree_totals(
        np.array([2**63, 1, 1], dtype=np.uint64), TREE
    ),
    "a fraction among totals": lambda: kernels.window_mates(
        [0.5, 1, 2], window=2, grid=0, price=5
    ),
    "a fraction among weights": lambda: kernels.choose(words, 0, [[0.5, 1]], 8),
    "a fraction among rows": lambda: kernels.haar_worst_move([0.5, 1.0]),
    "nan in a fit": lambda: kernels.isotonic_fit([1.0, np.nan, 3.0]),
    "nan in a fit with totals": lambda: kernels.non_negative_with_totals(
        [1.0, np.nan], [0, 0], [3.0]
    ),
    "nan in a corner": lambda: kernels.boxes_to_pieces(
        [[0.0, np.nan]], [[2.0, 2.0]], [[[0, 0], [2, 2]]]
    ),
    "counts whose differences wrap": lambda: kernels.haar_rows([2**62] * 3),
    "rates whose path wraps": lambda: kernels.haar_path_sums([2**62] * 4),
    "rates of a grid whose path wraps": lambda: kernels.haar_path_sums(
        np.full((4, 4), 2**60)
    ),
    "rates whose move wraps": lambda: kernels.haar_worst_move([2**62] * 4),
    "a negative rate of a move": lambda: kernels.haar_worst_move([3, -1]),
    "values whose sum wraps": lambda: kernels.subtree_totals(
        LARGE[:4], [1, -1, 1, 2], [1, 0, 2, 3]
    ),
    "totals whose difference wraps": lambda: kernels.subtract_children(
        [-(2**62)] * 4, [1, -1, 1, 2]
    ),
    "cells whose sum wraps": lambda: kernels.summed_area_table([[2**62, 2**62]]),
    "cells of uint64": lambda: kernels.summed_area_table(
        np.array([[2**64 - 1]], dtype=np.uint64)
    ),
    "sorted values whose sum wraps": lambda: kernels.group_sorted(LARGE, 1.0),
    "sides whose product wraps": lambda: kernels.divide_boxes(
        [[0]], [[2**62]], [[2**20]]
    ),
    "costs whose difference wraps": lambda: kernels.choose_by_cost(
        words, 0, [[-(2**62) - 5, 2**62]], 1
    ),
    "a variance of nan": lambda: kernels.tree_fit(np.ones(6), [np.nan] * 6, TREE),
    "a measured total of nan": lambda: kernels.tree_fit(
        [1, 1, 1, np.nan, 1, 1], np.ones(6), TREE
    ),
    "an infinite total": lambda: kernels.tree_fit([np.inf] * 6, np.ones(6), TREE),
    "a running total of nan": lambda: kernels.multiscale_cells(
        [np.nan, 2.0], [False, True], 1.0
    ),
    "a slab of nan": lambda: kernels.median_cuts([np.nan, 1.0], [0, 2]),
    "an infinite slab": lambda: kernels.median_cuts([np.inf, 1.0], [0, 2]),
    "a cost limit of nan": lambda: kernels.median_boxes(
        [[1, 2]], level=np.nan, slack=0, count=9, mode="or", depth=1
    ),
    "counts of nan for a choice": lambda: kernels.sample_rectangles(
        [[np.nan, 1.0]], words, rate=9, penalty=1
    ),
    "a negative place of words": lambda: kernels.choose(words, -1, [[0, 1]], 8),
    "a bucket without cells": lambda: kernels.shrink_towards_zero([1.0], [1.0], [0]),
    "a walk longer than memory": lambda: kernels.hilbert_order((2**40, 2**40)),
    "a walk longer than a number": lambda: kernels.hilbert_order((2**62, 4)),
    "a cube longer than memory": lambda: kernels.hilbert_order((2**21,) * 3),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_cut_or_overflow_is_refused(case):
    with pytest.raises(InputError):
        REFUSED[case]()


READS_PARTS = {
    "fractional_rectangle_sums",
    "least_cost_partition_of_costs",
    "rectangle_sums",
}
"""Kernels that read parts of a table: what they do not read may be anything."""

SPREADS = {
    "haar_cells",
    "haar_coefficients",
    "intervals_to_pieces",
    "rectangle_sums",
    "fractional_rectangle_sums",
    "runs_to_boxes",
    "subtract_children",
    "subtree_totals",
    "summed_area_table",
}
"""Kernels that hand on what they are given: nan and infinities show in the result."""

NOT_MEASURED = {
    ("haar_cell_variances", 0),
    ("haar_spread_boxes", 0),
    ("haar_total_variance", 0),
    ("tree_fit", 1),
    ("tree_spread_pieces", 0),
    ("tree_spread_ranges", 0),
    ("tree_total_variance", 0),
}
"""Variances, of which infinity says that nothing was measured."""

ENDLESS = {
    ("boxes_to_pieces", 0),
    ("boxes_to_pieces", 1),
    ("fractional_rectangle_sums", 1),
    ("fractional_rectangle_sums", 2),
    ("rectangle_intervals", 3),
    ("rectangle_intervals", 4),
}
"""Corners of boxes, which lie anywhere: what is outside the grid is not counted."""

EMPTY_WITH_NAN = {"fractional_rectangle_sums", "rectangle_intervals"}
"""Kernels of boxes to which a corner of nan is that of a box without cells."""


def _shows(result):
    floats = [one for one in _flat(result) if not isinstance(one, int)]
    return not all(np.isfinite(one).all() for one in floats if one is not None)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(IN_PLACE)))
def test_what_is_no_finite_number_is_refused_or_shows(name, odd):
    for place, one in enumerate(CALLS[name].arguments):
        if not isinstance(one, np.ndarray) or one.dtype == bool:
            continue
        if odd == np.inf and (name, place) in NOT_MEASURED:
            continue
        for at in range(one.size):
            given = list(copy.deepcopy(CALLS[name].arguments))
            given[place] = one.astype(np.float64)
            given[place].flat[at] = odd
            try:
                # Without the compiler, infinity less infinity is warned of.
                with np.errstate(all="ignore"):
                    result = _run(name, given)
            except BlowfishError:
                continue
            shown = name in SPREADS and _shows(result)
            unread = name in READS_PARTS and _same(result, _run(name))
            # A box may be without an end on either side.
            known = np.isinf(odd) or name in EMPTY_WITH_NAN
            outside = (name, place) in ENDLESS and known
            assert shown or unread or outside, (place, at)


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("name", REPEATABLE)
def test_numbers_of_numpy_are_read_as_those_of_python(name, kind):
    # The sum of a place and a uint64 is a double in compiled code: such a call once
    # read another place of memory.
    def changed(value):
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if not plain or abs(value) > 100 or kind(value) != value:
            return value
        whole = isinstance(value, int)
        return value if whole and issubclass(kind, np.floating) else kind(value)

    if name in IN_PLACE:
        return
    call = CALLS[name]
    given = [changed(one) for one in copy.deepcopy(call.arguments)]
    options = {word: changed(one) for word, one in call.options.items()}
    assert _same(getattr(kernels, name)(*given, **options), _run(name))


ODD_ARGUMENTS = {
    "a number for a tree": (
        lambda: kernels.tree_fit(np.ones(6), np.ones(6), 7),
        "7 for tree, which is a tree",
    ),
    "a list for a number": (
        lambda: kernels.merge_buckets([1.0, 2.0], [1, 2]),
        r"\[1, 2\] for price, which is a number",
    ),
    "nan for a whole number": (
        lambda: kernels.regular_tree(3, float("nan")),
        "nan for fan_out, which is a whole number",
    ),
    "a mapping for an array": (
        lambda: kernels.tree_totals({}, TREE),
        "dict for leaf_counts, which is an array",
    ),
    "a complex number": (
        lambda: kernels.merge_buckets([1.0, 2.0], 1j),
        "kernels take real numbers",
    ),
}


@pytest.mark.parametrize("case", ODD_ARGUMENTS)
def test_an_argument_of_another_kind_is_named(case):
    call, said = ODD_ARGUMENTS[case]
    with pytest.raises(InputError, match=said):
        call()


@pytest.mark.parametrize("name", ["laplace", "geometric", "gaussian"])
@pytest.mark.parametrize("size", [(2, 3), [4], -1, True, 2.0, "4", np.array([1, 2])])
def test_draws_lie_in_one_row_of_a_whole_size(name, size):
    # A shape once repeated one draw along an axis, and wrote behind the array.
    with pytest.raises(InputError):
        getattr(kernels, name)(words, 0, 5, 2, size=size)
    assert kernels.laplace(words, 0, 5, 2, size=np.int8(3)).shape == (3,)


def test_large_numbers_that_still_fit_are_added_exactly():
    rates = np.array([2**60, 2**60, 2**61, 1])
    paths = kernels.haar_path_sums(rates).tolist()
    assert paths == [2**62, 2**62, 2**61 + 1, 2**61 + 1]
    assert kernels.haar_worst_move(rates) == 2**61 + 2**61 + 1
    assert kernels.haar_rows([2**62, -(2**61)]).tolist() == [2**61, 3 * 2**61]
    assert kernels.summed_area_table([[2**62, 2**61]])[1].tolist() == [
        0,
        2**62,
        3 * 2**61,
    ]


def test_large_rates_that_still_fit_are_priced_exactly():
    rates = np.array([2**60, 2**60, 1, 2**61, 2, 2**60])
    assert kernels.heaviest_path(rates, TREE) == 2**60 + 2**61 + 2**60


@pytest.mark.parametrize("dtype", [np.float16, ">i8", ">f8", np.uint8, bool])
def test_sums_along_a_tree_read_every_kind_of_number(dtype):
    parents = [1, -1, 1, 2]
    values = np.array([1, 0, 1, 1], dtype=dtype)
    totals = kernels.subtree_totals(values, parents, [1, 0, 2, 3])
    assert totals.tolist() == [1, 3, 2, 1]
    assert kernels.subtract_children(totals, parents).tolist() == [1, 0, 1, 1]


def test_what_memory_or_the_compiler_refuses_is_an_error_of_the_package():
    class TypingError(Exception):
        __module__ = "numba.core.errors"

    def kernel(problem):
        raise problem

    guarded = refuse_odd_arguments(kernel)
    with pytest.raises(SizeError, match="memory does not hold"):
        guarded(MemoryError("Allocation failed"))
    with pytest.raises(InputError, match="of a kind that kernels do not read"):
        guarded(TypingError("a page of text"))
    with pytest.raises(KeyboardInterrupt):
        guarded(KeyboardInterrupt())


def _is_array(value):
    return isinstance(value, np.ndarray)
