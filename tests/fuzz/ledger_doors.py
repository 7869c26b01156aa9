"""The doors of a ledger: foreign files, and foreign data for every mechanism.

Whatever comes in, a refusal must leave the books as they were.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

import blowfish_fast as bf
from blowfish_fast.mechanisms.registry import MECHANISMS

from .examples import policies
from .values import anything, array, mutated, mutated_bytes


@functools.cache
def _folder():
    return Path(tempfile.mkdtemp(prefix="fuzz"))


@functools.cache
def written_ledger():
    """Return the bytes of a ledger on disk with two charges."""
    path = _folder() / "good"
    full = policies()[0]
    with bf.Ledger(path, epsilon=1, policy=full) as ledger:
        cells = bf.workloads.Identity(full.domain)
        for request in ("one", "two"):
            ledger.release(bf.Laplace(full, cells, epsilon=0.1), range(8), request)
    for ending in ("-wal", "-shm"):
        path.with_name("good" + ending).unlink(missing_ok=True)
    return path.read_bytes()


def open_ledger(content):
    """Open changed bytes as a ledger and read everything in it."""
    path = _folder() / "changed"
    for ending in ("", "-wal", "-shm"):
        path.with_name("changed" + ending).unlink(missing_ok=True)
    path.write_bytes(content)
    with bf.Ledger(path) as ledger:
        ledger.verify()
        for entry in ledger.history():
            assert entry.epsilon > 0


@functools.cache
def _asked(name):
    for policy in policies():
        try:
            made, data = MECHANISMS[name].example(policy.domain, policy, 1)
            made.release(data, rng=1)
        except bf.BlowfishError:
            continue
        return made, data
    raise AssertionError(f"no policy suits {name}")


def release_with(name, data):
    """Release foreign data through a ledger in memory; count what a refusal cost."""
    made, _ = _asked(name)
    ledger = bf.Ledger(None, epsilon=1, policy=made.policy)
    try:
        ledger.release(made, data, vouched=True)
    except bf.BlowfishError:
        assert ledger.spent == 0, "a refusal was charged"
        assert ledger.history() == []
        raise
    assert ledger.spent == 1


def ledger_arguments(rng):
    content = written_ledger()
    if rng.random() < 0.1:
        return [mutated_bytes(rng, b"SQLite format 3\x00")], {}
    return [mutated_bytes(rng, content)], {}


def data_arguments(rng):
    name = rng.choice(sorted(MECHANISMS))
    _, data = _asked(name)
    counts = getattr(data, "counts", data)
    kind = rng.randrange(4)
    if kind == 0:
        return [name, mutated(rng, counts.tolist())], {}
    return [name, (mutated, array, anything)[kind - 1](*_for(kind, rng, counts))], {}


def _for(kind, rng, counts):
    return (rng, counts) if kind == 1 else (rng,)


def forget():
    """Remove the files."""
    shutil.rmtree(_folder(), ignore_errors=True)
    _folder.cache_clear()
    written_ledger.cache_clear()
