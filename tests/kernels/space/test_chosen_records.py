"""Which records of each person are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast.kernels._jit import COMPILED
from blowfish_fast.kernels.graph.graph_distance import group_rows
from blowfish_fast.kernels.space.chosen_records import (
    FEW,
    LANES,
    Texts,
    first_by_tag,
    keyed_tags,
)
from tests.generated import example_count
from tests.reference.chosen_records import kept_rows, tag

pytestmark = [
    pytest.mark.kernel,
    # Words wrap around; plain Python warns of it, compiled code does not.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]


def texts_of(values):
    lines = [str(one).encode() for one in values]
    ends = np.cumsum([len(one) for one in lines], dtype=np.int64)
    starts = ends - [len(one) for one in lines]
    return Texts(np.frombuffer(b"".join(lines), np.uint8), starts, ends)


@pytest.mark.parametrize("length", [0, 1, 30, 50, 51, 52, 53, 60, 64, 119, 120, 200])
def test_tags_are_md5(length):
    # Around a block of 64 bytes and its last 8, which hold the length.
    key = "k" * length
    persons, records = np.array([7, -1, 10**12]), np.array([0, 5, 99])
    tags = keyed_tags(
        np.frombuffer(key.encode(), dtype=np.uint8),
        texts_of(persons),
        texts_of(records),
    )
    assert [f"{int(one):016x}" for one in tags] == [
        tag(key, person, record)[:16]
        for person, record in zip(persons, records, strict=True)
    ]


# Enough rows for two batches, and texts of one to three blocks in each.
def test_tags_of_short_and_long_texts_side_by_side_are_md5():
    rows = 2 * LANES - 7 if COMPILED else 9
    rng = np.random.default_rng(5)
    sizes = rng.integers(0, 90, (2, rows))
    words = [["x" * size for size in line] for line in sizes]
    texts = [
        Texts(np.frombuffer(b"x" * 200, np.uint8), 3 + 0 * line, 3 + line)
        for line in sizes
    ]
    tags = keyed_tags(np.frombuffer(b"key", np.uint8), *texts)
    wanted = [tag("key", *pair)[:16] for pair in zip(*words, strict=True)]
    assert [f"{int(one):016x}" for one in tags] == wanted


@settings(deadline=None, max_examples=example_count(50))
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=40),
    st.integers(1, 5),
    st.integers(0, 9),
)
def test_keeps_what_the_definition_keeps(rows, most, key):
    persons, records = (np.array(one) for one in zip(*rows, strict=True))
    large = np.flatnonzero(np.bincount(persons)[persons] > most)
    _, mine = np.unique(persons[large], return_inverse=True)
    starts, order = group_rows(mine, mine.max(initial=-1) + 1)
    tags = keyed_tags(
        np.frombuffer(str(key).encode(), dtype=np.uint8),
        texts_of(persons[large]),
        texts_of(records[large]),
    )
    kept = np.ones(persons.size, dtype=bool)
    kept[large] = first_by_tag(starts, order, tags, most)
    wanted = kept_rows(persons.tolist(), records.tolist(), most, key)
    assert np.flatnonzero(kept).tolist() == wanted


@pytest.mark.parametrize("rows", [FEW, FEW + 1, 3 * FEW])
def test_rows_with_equal_tags_are_kept_or_dropped_together(rows):
    rng = np.random.default_rng(rows)
    tags = rng.integers(0, 2**64, rows, dtype=np.uint64)
    tags[rng.permutation(rows)[:3]] = np.partition(tags, 9)[9]
    order = np.argsort(tags, kind="stable")
    for most in range(1, rows):
        kept = first_by_tag(np.array([0, rows]), np.arange(rows), tags, most)
        first = [int(one) for one in order if (tags <= tags[one]).sum() <= most]
        assert np.flatnonzero(kept).tolist() == sorted(first)
