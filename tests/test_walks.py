"""How many files a reader opens who follows a call: walks through the package.

    python -m tests.test_walks      a table: files, calls, and each file's calls

A walk runs twice, once to import and compile, once under a profiler, in all threads
that it starts. Files of the package whose functions are called count; the code of
modules does not. The most that is allowed may be lowered, never raised without a word
in the closing note.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import httpx
import numpy as np
import pytest

import blowfish_fast as bf

# Not by `from`: walks are no tests of that file, and no mutant of it is tried by them.
import blowfish_fast._support.compiler_watch as watch
from tests.apps.server.serving import AGES, make_workspace

PACKAGE = str(Path(bf.__file__).parent)
LINE = bf.Domain(1024)
COUNTS = np.random.default_rng(1).poisson(20, 1024)


def counts_to_release() -> bf.Release:
    asked = bf.workloads.Ranges.random(LINE, 200, rng=1)
    dawa = bf.Dawa(bf.policies.AddRemove(LINE), asked, epsilon="0.5")
    # Whether kernels lie on disk must not decide where it leads.
    with watch.COMPILER.for_everything():
        return dawa.release(COUNTS)


def threshold_to_sensitivity() -> object:
    policy = bf.policies.Threshold(LINE, theta=10)
    return bf.sensitivity(policy, bf.workloads.Ranges.random(LINE, 200, rng=1))


def product_to_sensitivity() -> object:
    rows = bf.policies.Line(bf.Domain(32))
    columns = bf.policies.Threshold(bf.Domain(20), theta=3)
    policy = bf.policies.Product(rows, columns)
    asked = bf.workloads.Rectangles.random(policy.domain, 100, rng=1)
    return bf.sensitivity(policy, asked)


def intervals_of_a_release() -> Callable[[], object]:
    asked = bf.workloads.Ranges.random(LINE, 200, rng=1)
    made = bf.mechanisms.Ordered(bf.policies.Line(LINE), asked, epsilon=1)
    release = made.release(COUNTS, rng=1)
    return lambda: release.intervals(asked, confidence=0.9)


def csv_to_release() -> object:
    from blowfish_fast.apps.cli.main import run_command

    with tempfile.TemporaryDirectory() as folder:
        people = Path(folder) / "people.csv"
        people.write_text("age\n" + "".join(f"{20 + at % 60}\n" for at in range(500)))
        words = f"release --data {people} --domain age=16:91:5 --policy line --workload"
        words += f" prefixes --epsilon 1 --mechanism ordered --out {folder}/a.blowfish"
        # What was predicted before is not looked up.
        with patch.dict(os.environ, BLOWFISH_CACHE_DIR=folder):
            return run_command(words.split())


@cache
def explorer_app() -> tuple[Any, str, Any]:
    from blowfish_fast.apps.server.keys import CURATOR, RateLimit
    from blowfish_fast.apps.server.web_app import make_app

    folder = tempfile.TemporaryDirectory()
    workspace = make_workspace(Path(folder.name), epsilon=50.0)
    free = RateLimit(capacity=1e9, per_second=1e9)
    secret = workspace.keys.make("curator", CURATOR)
    return make_app(workspace, requests=free, logins=free), secret, folder


# A more accurate question each time: what stored answers can say is free.
ACCURACIES = itertools.count(80, -1)


def question_over_http() -> object:
    app, secret, _ = explorer_app()
    question = {**AGES, "cost": {"alpha": next(ACCURACIES), "beta": 0.05}}

    async def asked() -> httpx.Response:
        sent = {"Authorization": f"Bearer {secret}"}
        carried = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=carried, base_url="http://127.0.0.1", headers=sent
        ) as client:
            return await client.post("/api/ask", json={"question": question})

    answer = asyncio.run(asked())
    assert answer.status_code == 200, answer.text
    assert not answer.json()["replayed"]
    return answer


WALKS: dict[str, tuple[Callable[[], object], int]] = {
    "counts to Release, Dawa 1-D": (counts_to_release, 39),
    "Threshold to sensitivity of Ranges": (threshold_to_sensitivity, 12),
    "Product to sensitivity of Rectangles": (product_to_sensitivity, 13),
    "release.intervals, Ordered": (intervals_of_a_release(), 13),
    "a CSV file to a release, by the command line": (csv_to_release, 54),
    "a question over HTTP": (question_over_http, 59),
}


def files_passed(walk: Callable[[], object]) -> Counter[str]:
    """Return the calls of a walk's second run, by file."""
    found: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        inside = code.co_filename.startswith(PACKAGE)
        if event == "call" and inside and code.co_flags & 1:
            found[code.co_filename.removeprefix(PACKAGE + "/")] += 1

    walk()
    # What earlier tests left behind is closed here and not during the walk.
    gc.collect()
    gc.disable()
    before = sys.getprofile()
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        walk()
    finally:
        sys.setprofile(before)
        threading.setprofile(before)
        gc.enable()
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", WALKS)
def test_a_walk_stays_within_its_files(name: str) -> None:
    walk, most = WALKS[name]
    passed = files_passed(walk)
    assert 5 < len(passed) <= most, sorted(passed)


if __name__ == "__main__":
    for name, (walk, _) in WALKS.items():
        passed = files_passed(walk)
        sys.stdout.write(f"{name}: {len(passed)} files, {passed.total()} calls\n")
        sys.stdout.writelines(f"{calls:8}  {at}\n" for at, calls in passed.items())
