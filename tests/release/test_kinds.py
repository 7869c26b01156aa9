"""Kinds of releases stand beside each other, and none has a member that only raises.

Centres of clusters (`release.centres`) are tried with their mechanism.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import NoEstimateError, ReleaseFileError, SeededWarning
from blowfish_fast.release.certificates import Certificate

LINE = bf.Domain(16, names="age")
POLICY = bf.policies.AddRemove(LINE)
CELLS = bf.workloads.Identity(LINE)
COUNTS = np.arange(16) * 40


def certificate():
    ledger = bf.Ledger(epsilon=2, policy=POLICY)
    release = ledger.release(bf.Dawa(POLICY, CELLS, epsilon=1), COUNTS, rng=1)
    return ledger.certify(release, COUNTS, CELLS, epsilon=1, rng=2)


def tables():
    asked = bf.workloads.Tables(LINE, tables=[["age"]])
    return bf.Contingency(POLICY, asked, epsilon=1).release(
        bf.Histogram(LINE, COUNTS), rng=1
    )


def ranges():
    time = bf.WideDomain(2**40, names="time")
    asked = bf.workloads.Ranges(time, [0], [2**20])
    data = bf.SparseHistogram.from_records(time, {"time": np.arange(900) * 31})
    return bf.Dawa(bf.policies.AddRemove(time), asked, epsilon=1).release(data, rng=1)


KINDS = {
    bf.HistogramRelease: lambda: bf.Laplace(POLICY, epsilon=1).release(COUNTS, rng=1),
    bf.TablesRelease: tables,
    bf.SparseRelease: lambda: bf.SparseLaplace(POLICY, epsilon=1).release(
        COUNTS, rng=1
    ),
    bf.RangesRelease: ranges,
    bf.Centres: lambda: bf.KMeans(POLICY, clusters=2, epsilon=1).release(
        bf.Histogram(LINE, COUNTS), rng=1
    ),
    Certificate: certificate,
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_has_a_promise_and_a_file(kind, tmp_path):
    release = KINDS[kind]()
    assert type(release) is kind
    assert isinstance(release, bf.Release)
    assert not release.private
    assert release.explain() == f"{release!r}\n{release.guarantee}"
    path = tmp_path / "release.bf"
    with pytest.warns(SeededWarning, match="experiment"):
        release.save(path)
    for again in (
        bf.Release.load(path),
        kind.load(path),
        copy.copy(release),
        pickle.loads(pickle.dumps(release)),
    ):
        assert type(again) is kind
        assert again.to_bytes() == release.to_bytes()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_member_only_raises(kind):
    for name, member in inspect.getmembers_static(kind):
        getter = getattr(member, "fget", None) or getattr(member, "func", member)
        if name == "__getattr__" or not inspect.isfunction(getter):
            continue
        returned = getter.__annotations__.get("return", "")
        allowed = name in ("__setattr__", "__delattr__", "errors")
        assert allowed or returned not in ("NoReturn", "Never"), (
            f"{kind.__name__}.{name}"
        )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nothing_in_a_release_can_be_changed(kind):
    release = KINDS[kind]()
    with pytest.raises(FrozenInstanceError):
        release.mechanism = "another"
    with pytest.raises(FrozenInstanceError):
        del release.mechanism


def test_what_a_kind_lacks_is_answered_by_what_it_has():
    for kind, words in {
        bf.TablesRelease: "release.table",
        bf.SparseRelease: r"release.cells\(\)",
        bf.RangesRelease: r"release.buckets\(\)",
        bf.Centres: "release.centers",
    }.items():
        release = KINDS[kind]()
        with pytest.raises(NoEstimateError, match=words):
            _ = release.estimate
        assert not hasattr(release, "cdf")
        assert not hasattr(release, "_cells_of_nobody")


def test_what_selections_are_asked_is_named_with_the_selection():
    release = KINDS[bf.HistogramRelease]()
    way_out = r"release\.where\(\.\.\.\)\.in_population; where\(\) is all"
    with pytest.raises(NoEstimateError, match=way_out):
        _ = release.in_population
    with pytest.raises(NoEstimateError, match="See the attributes of its class"):
        _ = release.estimat


def test_a_file_of_nothing_is_refused():
    for content in (b"", b"PK and no more", b"{}"):
        with pytest.raises(ReleaseFileError):
            bf.Release.from_bytes(content)
