"""The table of C entries: code, ctypes prototypes and header say the same."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numba.core import config

from blowfish_fast.kernels.capi.c_entries import (
    ENTRIES,
    KINDS,
    c_type,
    compile_entry,
    declaration,
    header,
)
from blowfish_fast.kernels.capi.into_buffers import BAD_SIZE, ERRORS


def test_the_header_declares_every_entry_flag_and_error():
    text = header()
    for name, prototype in ENTRIES.items():
        assert declaration(name) in text
        assert f"(*{name}_t)" in text
        assert prototype.remark in text
    for code, (word, _) in ERRORS.items():
        assert f"#define BLOWFISH_{word} ({code})" in text


@pytest.mark.parametrize("name", ENTRIES)
def test_the_table_gives_every_argument_of_the_function_its_kind(name):
    entry = ENTRIES[name]
    assert len(entry.arguments) == len(inspect.signature(entry.function).parameters)
    expected = tuple(KINDS[kind][1] for kind, _ in entry.arguments)
    assert c_type(name)._argtypes_ == expected


@pytest.mark.skipif(config.DISABLE_JIT, reason="C entries are machine code")
@pytest.mark.parametrize(
    "changes", [{"room": 11}, {"room": 0}, {"weighted": 1}, {"queries": -1}], ids=str
)
def test_weights_of_sizes_that_do_not_fit_are_not_computed(changes):
    name = "blowfish_greedy_weights"
    filled = {"starts": np.array([0, 2]), "ends": np.array([5, 4])}
    filled |= {"weights": np.ones(2), "scaling": np.zeros(12)}
    numbers = {"queries": 2, "weighted": 2, "leaves": 5, "fan_out": 2, "flags": 1}
    numbers |= {"room": 12, **changes}
    arguments = [
        numbers[word]
        if kind == "number"
        else filled[word].ctypes.data_as(KINDS[kind][1])
        for kind, word in ENTRIES[name].arguments
    ]
    assert c_type(name)(compile_entry(name).address)(*arguments) == BAD_SIZE
    assert not filled["scaling"].any()
