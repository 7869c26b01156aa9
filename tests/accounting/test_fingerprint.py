"""Fingerprints: the same question alike in every process, another one different."""

from __future__ import annotations

import enum
import inspect
import subprocess
import sys
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import blowfish_fast as bf
from blowfish_fast.accounting import fingerprint
from blowfish_fast.accounting.fingerprint import DEEPEST, question_digest
from blowfish_fast.accounting.registered_names import REGISTERED_NAMES
from blowfish_fast.errors import LedgerError
from blowfish_fast.mechanisms.registry import MECHANISMS, OWN

LINE = bf.Domain(8)
FULL = bf.policies.Full(LINE)
CELLS = bf.workloads.Identity(LINE)
PINNED = ["b8a3ec03a0a696e3", "e3df8a66797931f3", "a9a5ff06118a15d2"]
PINNED_MECHANISMS = {
    "adaptive_grid": "0c2fd084",
    "ahp": "e6aa9514",
    "dawa": "78eed0d5",
    "efpa": "a8b216b5",
    "hierarchical_kd_tree": "693dca38",
    "hierarchy": "dad8ee8c",
    "hybrid_tree": "0ecae76d",
    "kd_tree": "247e1022",
    "kmeans": "91f27b99",
    "laplace": "7a85aa97",
    "matching": "7a4d9fd2",
    "mwem": "08979c19",
    "noise_first": "fe9b7586",
    "ordered": "d734b7a8",
    "ordered_hierarchical": "c5ea78e0",
    "php": "04a83863",
    "privelet": "b49905a7",
    "quad_tree": "ecc8e3df",
    "structure_first": "9bd157a6",
    "transformed": "f3257b37",
    "uniform_grid": "f15fdffa",
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


@pytest.mark.long
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


def test_no_fingerprint_holds_a_path_of_the_package(monkeypatch):
    # What the whole registry is made of has a registered name.
    names = set()
    lasting = fingerprint._lasting_name

    def noted(kind):
        names.add(lasting(kind))
        return lasting(kind)

    monkeypatch.setattr(fingerprint, "_lasting_name", noted)
    line, grid = bf.Domain(16), bf.Domain((4, 4))
    for kind in OWN.values():
        for domain in (line, grid):
            with suppress(bf.BlowfishError):
                asked, _ = kind.example(domain, bf.policies.AddRemove(domain), 1)
                question_digest(asked)
    assert "dawa" in names
    assert not [name for name in names if name.startswith("blowfish_fast")]


def test_everything_that_may_stand_in_a_question_is_registered():
    public = [
        part
        for room in (bf.workloads, bf.partitions)
        for part in (getattr(room, name) for name in room.__all__)
        if isinstance(part, type) and not inspect.isabstract(part)
    ]
    tools = {"Form", "Fractions", "Implicit", "Pieces", "Partition"}
    named = {part.__name__ for part in public} - tools
    named |= {kind.__name__ for kind in OWN.values()}
    assert named <= REGISTERED_NAMES.keys()
    assert all(REGISTERED_NAMES[kind.__name__] == kind.name for kind in OWN.values())


def test_registered_names_are_the_names_of_one_class_each():
    assert len(set(REGISTERED_NAMES.values())) == len(REGISTERED_NAMES)
    assert not [name for name in REGISTERED_NAMES.values() if "." in name]


def test_a_strangers_class_is_never_taken_for_a_registered_one():
    class Ranges:
        pass

    Ranges.__module__ = "blowfish_fast_plugins.ranges"
    name = fingerprint._lasting_name(Ranges)
    assert name.startswith("blowfish_fast_plugins.ranges.")
    assert fingerprint._lasting_name(bf.workloads.Ranges) == "ranges"


def test_a_class_that_nobody_registered_goes_by_its_own_name():
    assert fingerprint._lasting_name(bf.Ledger) == "blowfish_fast.Ledger"


def test_sparse_rows_count_by_their_content():
    rows = np.eye(8)[:3]
    one = bf.workloads.Linear(LINE, sparse.csr_array(rows))
    other = bf.workloads.Linear(LINE, sparse.csc_matrix(rows))
    twice = bf.workloads.Linear(LINE, sparse.csr_array(2 * rows))
    assert question_digest(one) == question_digest(other)
    assert question_digest(one) != question_digest(twice)
