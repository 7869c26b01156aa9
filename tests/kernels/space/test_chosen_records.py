"""Which records of each person are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast.kernels.graph.graph_distance import group_rows
from blowfish_fast.kernels.space.chosen_records import (
    decimal_texts,
    first_by_tag,
    keyed_tags,
    rows_of_large_groups,
)
from tests.reference.chosen_records import kept_rows, tag

pytestmark = pytest.mark.kernel

NUMBERS = st.integers(-(2**63), 2**63 - 1)


# Words wrap around; plain Python warns of it, compiled code does not.
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@settings(deadline=None, max_examples=50)
@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_decimal_texts_are_those_of_python(values):
    texts = decimal_texts(np.array(values))
    read = [
        bytes(texts.data[start:end]).decode()
        for start, end in zip(texts.starts, texts.ends, strict=True)
    ]
    assert read == [str(one) for one in values]


@pytest.mark.parametrize("length", [0, 1, 30, 50, 51, 52, 53, 60, 64, 119, 120, 200])
def test_tags_are_md5(length):
    # Around a block of 64 bytes and its last 8, which hold the length.
    key = "k" * length
    persons, records = np.array([7, -1, 10**12]), np.array([0, 5, 99])
    tags = keyed_tags(
        np.frombuffer(key.encode(), dtype=np.uint8),
        decimal_texts(persons),
        decimal_texts(records),
        np.arange(3),
    )
    assert [f"{int(high):016x}{int(low):016x}" for high, low in tags] == [
        tag(key, person, record)
        for person, record in zip(persons, records, strict=True)
    ]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=40),
    st.integers(1, 5),
    st.integers(0, 9),
)
def test_keeps_what_the_definition_keeps(rows, most, key):
    persons, records = (np.array(one) for one in zip(*rows, strict=True))
    starts, order = group_rows(persons, 5)
    large = rows_of_large_groups(starts, order, most)
    tags = keyed_tags(
        np.frombuffer(str(key).encode(), dtype=np.uint8),
        decimal_texts(persons),
        decimal_texts(records),
        large,
    )
    kept = first_by_tag(starts, order, tags, most)
    wanted = kept_rows(persons.tolist(), records.tolist(), most, key)
    assert np.flatnonzero(kept).tolist() == wanted


def test_second_halves_decide_where_first_halves_meet():
    starts, rows = np.array([0, 3]), np.arange(3)
    tags = np.array([[5, 9], [5, 2], [5, 4]], dtype=np.uint64)
    assert first_by_tag(starts, rows, tags, 2).tolist() == [False, True, True]
