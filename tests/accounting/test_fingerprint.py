"""Fingerprints: the same question alike in every process, another one different."""

from __future__ import annotations

import enum
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import blowfish_fast as bf
from blowfish_fast.accounting import fingerprint
from blowfish_fast.accounting.fingerprint import DEEPEST, question_digest
from blowfish_fast.errors import LedgerError
from blowfish_fast.mechanisms.registry import MECHANISMS

LINE = bf.Domain(8)
FULL = bf.policies.Full(LINE)
CELLS = bf.workloads.Identity(LINE)
PINNED = ["d69f377586660bbe", "f3cd4ead1923f8b1", "a9a5ff06118a15d2"]
PINNED_MECHANISMS = {
    "adaptive_grid": "7dc89901",
    "ahp": "23ce6ebd",
    "dawa": "c0c55f99",
    "efpa": "cc81efea",
    "hierarchical_kd_tree": "9354a442",
    "hierarchy": "27abddaa",
    "hybrid_tree": "36929a31",
    "kd_tree": "f5f8128a",
    "kmeans": "d27072c0",
    "laplace": "f5fdb4de",
    "matching": "6c2ca644",
    "mwem": "4b412f8d",
    "noise_first": "aeb991af",
    "ordered": "132cdbb1",
    "ordered_hierarchical": "6d98ccc9",
    "php": "a38d7b27",
    "privelet": "cb528e6f",
    "quad_tree": "d0c1313e",
    "structure_first": "2310013d",
    "transformed": "46f83727",
    "uniform_grid": "ef5fda8f",
}

TWICE = """
import blowfish_fast as bf
from blowfish_fast.accounting.fingerprint import question_digest
line = bf.Domain(8)
ranges = bf.workloads.Ranges.random(line, 5, rng=1)
print(question_digest(bf.Dawa(bf.policies.Full(line), ranges, epsilon=0.3)))
"""


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Plain:
    pass


class Slotted:
    __slots__ = ("size",)

    def __init__(self, size):
        self.size = size


def test_equal_questions_have_equal_fingerprints():
    one = bf.Laplace(FULL, CELLS, epsilon=0.5)
    other = bf.Laplace(
        bf.policies.Full(bf.Domain(8)), bf.workloads.Identity(LINE), epsilon="0.5"
    )
    assert question_digest(one) == question_digest(other)


def test_predictions_made_meanwhile_change_nothing():
    mechanism = bf.Laplace(FULL, CELLS, epsilon=0.5)
    before = question_digest(mechanism)
    mechanism.expected_error()
    mechanism.release([1] * 8, rng=1)
    assert question_digest(mechanism) == before


def test_the_fingerprint_is_the_same_in_another_process():
    root = str(Path(bf.__file__).parents[1])
    runs = [
        subprocess.run(
            [sys.executable, "-c", TWICE],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": root, "PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].strip()) == 64


def test_every_parameter_counts():
    ranges = bf.workloads.Ranges(LINE, [0], [3])
    grid = bf.workloads.Linear(LINE, sparse.csr_array(np.eye(8)))
    questions = [
        bf.Laplace(FULL, CELLS, epsilon=0.5),
        bf.Laplace(FULL, CELLS, epsilon=0.6),
        bf.Laplace(bf.policies.AddRemove(LINE), CELLS, epsilon=0.5),
        bf.Laplace(bf.policies.Line(LINE), CELLS, epsilon=0.5),
        bf.Laplace(FULL, ranges, epsilon=0.5),
        bf.Laplace(FULL, bf.workloads.Ranges(LINE, [0], [4]), epsilon=0.5),
        bf.Laplace(FULL, grid, epsilon=0.5),
        bf.Dawa(FULL, ranges, epsilon=0.5),
        bf.Dawa(FULL, ranges, epsilon=0.5, partition=None),
        bf.Dawa(FULL, ranges, epsilon=0.5, partition=bf.partitions.LeastCost()),
        bf.Dawa(FULL, ranges, epsilon=0.5, share=0.3),
        bf.Dawa(FULL, ranges, epsilon=0.5, strategy="uniform"),
    ]
    assert len({question_digest(one) for one in questions}) == len(questions)


def test_bins_of_the_same_number_are_different_questions():
    asked = []
    for labels in ([0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]):
        bins = FULL.project(labels)
        asked.append(bf.Laplace(bins, bf.workloads.Identity(bins.domain), epsilon=0.5))
    assert asked[0].policy == asked[1].policy
    assert question_digest(asked[0]) != question_digest(asked[1])


def test_plain_values_are_told_apart():
    values = [
        None, True, 1, 1.0, "1", b"1", Fraction(1), Decimal(1), [1], (1,), {1},
        {1: 1}, {"1": 1}, np.array([1]), np.array([1.0]), np.array([[1]]),
        np.array([1], dtype=object), np.float32(1), Colour.RED, Colour.BLUE, Plain(),
        Slotted(1), Slotted(2), Plain, Slotted, [[1], []], [[], [1]], len,
    ]  # fmt: skip
    assert len({question_digest(one) for one in values}) == len(values)


def test_the_order_of_a_mapping_does_not_count():
    assert question_digest({"a": 1, "b": 2}) == question_digest({"b": 2, "a": 1})


@pytest.mark.parametrize(
    "value", [lambda: 1, np.random.default_rng(1)], ids=["lambda", "generator"]
)
def test_what_does_not_say_what_it_is_is_refused(value):
    with pytest.raises(LedgerError, match="fingerprint"):
        question_digest(value)


def test_endless_objects_are_refused():
    loop = Plain()
    loop.inner = [loop]
    with pytest.raises(LedgerError, match="without end"):
        question_digest(loop)


def _nested(levels, around):
    value = b"innermost"
    for _ in range(levels):
        value = around(value)
    return value


@pytest.mark.parametrize(
    ("around", "levels"),
    [
        (lambda one: [one], DEEPEST),
        (lambda one: frozenset([one]), DEEPEST - 1),
        # A mapping's pairs are a level of their own.
        (lambda one: {"a": one}, DEEPEST // 2),
    ],
    ids=["list", "set", "mapping"],
)
def test_so_many_levels_and_no_more_have_a_fingerprint(around, levels):
    assert question_digest(_nested(levels, around))
    with pytest.raises(LedgerError, match="without end"):
        question_digest(_nested(levels + 1, around))


def test_a_changed_mechanism_is_another_question():
    mechanism = bf.Laplace(FULL, CELLS, epsilon=0.5)
    before = question_digest(mechanism)
    mechanism.policy = bf.policies.Line(LINE)
    assert question_digest(mechanism) != before
    fresh = bf.Laplace(bf.policies.Line(LINE), CELLS, epsilon=0.5)
    assert question_digest(mechanism) == question_digest(fresh)
    mechanism.remark = "an attribute more"
    assert question_digest(mechanism) != question_digest(fresh)


def test_a_plan_that_is_released_again_is_not_described_again(monkeypatch):
    mechanism = bf.Laplace(FULL, CELLS, epsilon=0.5)
    before = question_digest(mechanism)
    described = []
    whole = fingerprint._whole_digest

    def counted(value, depth):
        described.append(value)
        return whole(value, depth)

    monkeypatch.setattr(fingerprint, "_whole_digest", counted)
    assert question_digest(mechanism) == before
    assert mechanism not in described


def test_what_an_object_keeps_for_itself_does_not_count():
    one, other = Plain(), Plain()
    one.size = other.size = 3
    one._kept = [1, 2]
    assert question_digest(one) == question_digest(other)


def test_fingerprints_last_from_version_to_version():
    # Ledgers on disk hold them: a question that was paid for must be found again.
    laplace = bf.Laplace(FULL, CELLS, epsilon=0.5)
    gaussian = bf.Gaussian(FULL, CELLS, rho=0.5)
    values = (np.float64(1), "text", None, {"a": (1, 2.5)}, np.arange(3))
    found = [question_digest(one)[:16] for one in (laplace, gaussian, values)]
    assert found == PINNED


@pytest.mark.parametrize("name", PINNED_MECHANISMS)
def test_a_mechanism_keeps_its_fingerprint_wherever_its_parts_move(name):
    line = bf.Domain(16)
    asked, _ = MECHANISMS[name].example(line, bf.policies.AddRemove(line), 1)
    assert question_digest(asked)[:8] == PINNED_MECHANISMS[name]


class Axis:
    """Stands for the axis of a domain, which got fields since ledgers know it."""

    def __init__(self, **fields):
        vars(self).update(fields)


def test_fields_that_were_added_later_count_where_they_are_set():
    before, plain = Axis(size=3), Axis(size=3, steps=None, keys=None)
    stepped = Axis(size=3, steps=5, keys=None)
    assert question_digest(plain) == question_digest(before)
    assert question_digest(stepped) != question_digest(before)
    assert question_digest(Axis(size=None)) != question_digest(Axis())
