"""Generated and changed inputs through every door: refused, or right, never worse.

The long form is ``python -m tests.fuzz --inputs 1000000``.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from tests.fuzz.doors import Door, all_doors, kernel_doors, value_doors
from tests.fuzz.run import Failure, try_door

from .fuzz import ledger_doors, question_doors

READERS = {one.name: one for one in all_doors() if not one.kernel}
KERNEL_INPUTS = 1000


@pytest.fixture(scope="module", autouse=True)
def _clean():
    yield
    ledger_doors.forget()
    question_doors.forget()


@pytest.mark.parametrize("name", sorted(READERS))
@settings(max_examples=15, suppress_health_check=list(HealthCheck), database=None)
@given(rng=st.randoms(use_true_random=False))
def test_readers_accept_or_refuse(name, rng):
    found = try_door(READERS[name], rng)
    assert not isinstance(found, Failure), str(found)


@pytest.mark.parametrize("name", sorted(READERS))
def test_readers_meet_both_good_and_bad_values(name):
    if name == "Domain.from_h3":
        pytest.importorskip("h3", reason="pip install 'blowfish_fast[h3]'")
    outcomes = set()
    for number in range(1000):
        outcomes.add(try_door(READERS[name], random.Random(f"{name} {number}")))
        if len(outcomes) > 1:
            break
    assert outcomes == {True, False}


@pytest.mark.long
def test_kernels_stay_within_their_arrays():
    # Without the compiler every index is checked; the long form has compiled checks.
    root = Path(bf.__file__).parents[1]
    given = ["--inputs", str(KERNEL_INPUTS), "--door", "kernels."]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *given, "--workers", "1", "--worker", "0"],
        cwd=root,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes, doors, _, failures = json.loads(done.stdout.splitlines()[-1])
    assert failures == []
    assert sum(outcomes.values()) == KERNEL_INPUTS
    assert doors == len(bf.kernels.__all__)
    assert min(outcomes["accepted"], outcomes["refused"]) > KERNEL_INPUTS // 5


def test_doors_are_found_without_being_named():
    readers = {one.name for one in value_doors()}
    for name in ("Domain.from_edges", "Histogram.from_records"):
        assert name in readers
    assert {"HistogramRelease.load", "HistogramRelease.from_bytes"} <= readers
    assert "policies.from_dict" in readers
    kernels = {one.name.removeprefix("kernels.") for one in kernel_doors()}
    assert kernels == set(bf.kernels.__all__)


def arguments_of_nothing(_rng):
    return [], {}


@pytest.mark.parametrize("kernel", [False, True])
def test_what_is_not_documented_is_a_failure(kernel):
    def door(problem):
        def call():
            raise problem

        return Door("planted", call, arguments_of_nothing, kernel)

    rng = random.Random(1)
    for problem in (KeyError("x"), IndexError("x"), ZeroDivisionError("x")):
        found = try_door(door(problem), rng)
        assert isinstance(found, Failure)
        assert type(problem).__name__ in found.trace
    assert try_door(door(bf.errors.InputError("said so")), rng) is False
    plain = try_door(door(ValueError("a plain one")), rng)
    assert (plain is False) if kernel else isinstance(plain, Failure)


def test_a_refusal_that_was_charged_is_a_failure(monkeypatch):
    class Leaky(bf.Laplace):
        def _run(self, private):
            if private.dry_run:
                return super()._run(private)
            raise bf.BlowfishError("after the charge")

    line = bf.Domain(2)
    made = Leaky(bf.policies.Full(line), bf.workloads.Identity(line), epsilon=1)
    monkeypatch.setattr(ledger_doors, "_asked", lambda _name: (made, None))
    with pytest.raises(AssertionError, match="a refusal was charged"):
        ledger_doors.release_with("leaky", np.ones(2))
