"""Start-up, on purpose: import and first release, each in a new process.

Warm means that compiled code lies in the cache on disk; cold that the cache is empty.
All of it is CPU time of the new process: what one waits for on an idle machine.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from typing import Any, ClassVar

from .common import SMALL

IMPORT = """
import sys, time
start = time.process_time()
import blowfish_fast
sys.stdout.write(str(time.process_time() - start))
"""

FIRST_RELEASE = """
import sys, time
start = time.process_time()
import numpy
import blowfish_fast as bf
cells = 4096
if sys.argv[1] == "dawa map":
    domain = bf.Domain((64, 64))
    workload = bf.workloads.Rectangles.random(domain, 200, rng=1)
else:
    domain = bf.Domain(cells)
    workload = bf.workloads.Ranges.random(domain, 200, rng=1)
data = bf.Histogram(domain, (numpy.arange(cells) % 7).reshape(domain.shape))
policy = bf.policies.AddRemove(domain)
if sys.argv[1] == "laplace":
    mechanism = bf.Laplace(policy, workload, epsilon=1)
elif sys.argv[1] == "dawa least cost":
    partition = bf.partitions.LeastCost()
    mechanism = bf.Dawa(policy, workload, epsilon=1, partition=partition)
else:
    mechanism = bf.Dawa(policy, workload, epsilon=1)
mechanism.release(data).answer(workload)
sys.stdout.write(str(time.process_time() - start))
"""

RELEASES = ["laplace", "dawa", "dawa least cost", "dawa map"]


def in_new_process(
    program: str, *arguments: str, cache: str | None = None, folder: str | None = None
) -> float:
    """Run a program that prints one number, with a cache and in a folder if named."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(ran.stdout)


class Import:
    """CPU seconds of ``import blowfish_fast``: it loads numpy and nothing heavier."""

    timeout = 120

    def setup(self) -> None:
        in_new_process(IMPORT)

    def track_import(self) -> float:
        return min(in_new_process(IMPORT) for _ in range(1 if SMALL else 5))

    track_import.unit = "seconds"  # type: ignore[attr-defined]


class FirstRelease:
    """CPU seconds from before the import to the first answers."""

    timeout = 600
    params: ClassVar[list[Any]] = [RELEASES]
    param_names: ClassVar[list[str]] = ["release"]

    def setup(self, release: str) -> None:
        in_new_process(FIRST_RELEASE, release)

    def track_warm(self, release: str) -> float:
        times = range(1 if SMALL else 3)
        return min(in_new_process(FIRST_RELEASE, release) for _ in times)

    track_warm.unit = "seconds"  # type: ignore[attr-defined]


class FirstReleaseCold:
    """The same with an empty cache: every kernel on the way is compiled."""

    timeout = 600
    params: ClassVar[list[Any]] = [RELEASES]
    param_names: ClassVar[list[str]] = ["release"]

    def setup(self, release: str) -> None:
        if SMALL:
            raise NotImplementedError("compiling everything anew is no quick check")

    def track_cold(self, release: str) -> float:
        with tempfile.TemporaryDirectory() as cache:
            return in_new_process(FIRST_RELEASE, release, cache=cache)

    track_cold.unit = "seconds"  # type: ignore[attr-defined]


COMMAND = """
import contextlib, io, os, sys, time
start = time.process_time()
from blowfish_fast._support.compiler_watch import COMPILER
from blowfish_fast.apps.cli.main import run_command
COMPILER.alone = True
with contextlib.redirect_stdout(io.StringIO()):
    assert run_command(sys.argv[1:]) == 0
sys.stdout.write(str(time.process_time() - start))
"""

FACTS = ["--domain", "income=0:200000:1000", "--policy", "line"]
FACTS += ["--workload", "ranges:500", "--epsilon", "0.5"]
SAVED, JOB, PEOPLE = (f"blowfish-people.{end}" for end in ("blowfish", "toml", "csv"))
COMMANDS = {
    "help": ["--help"],
    "answer": ["answer", SAVED, "--where", "income=30000:50000"],
    "explain": ["explain", SAVED],
    "explain job": ["explain", JOB],
    "draw": ["draw", SAVED, "--out", "a.png", "--overwrite"],
    "report": ["report", SAVED, "--out", "a.html", "--overwrite"],
    "dry run": ["release", JOB, "--overwrite", "--dry-run"],
    "new dry run": ["release", "--data", "demo", *FACTS[:-3], "identity", "--dry-run"],
    "release": ["release", JOB, "--overwrite", "--request"],
    "first look": ["first-look", PEOPLE, "--epsilon", "1", "--overwrite"],
    "compare": ["compare", *FACTS],
    "start": ["start", PEOPLE, "--out", "draft.toml", "--overwrite"],
    "ledger": ["ledger", "status", "blowfish-people.ledger"],
}
LAST_WORDS = {
    "new dry run": lambda: ["--epsilon", f"{random.random():.9f}"],
    "release": lambda: [f"{random.random():.9f}"],
}
"""What was predicted before is remembered, and what was released: these are new."""


class Command:
    """CPU seconds of commands in a new process; kernels were compiled before."""

    timeout = 600
    params: ClassVar[list[Any]] = [list(COMMANDS)]
    param_names: ClassVar[list[str]] = ["command"]

    def setup(self, command: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        for words in (["release", "--demo-data"], ["release", JOB]):
            in_new_process(COMMAND, *words, folder=self.folder.name)

    def teardown(self, command: str) -> None:
        self.folder.cleanup()

    def track_command(self, command: str) -> float:
        times = []
        for _ in range(1 if SMALL else 3):
            last = LAST_WORDS.get(command, list)()
            words = [*COMMANDS[command], *last]
            times.append(in_new_process(COMMAND, *words, folder=self.folder.name))
        return min(times)

    track_command.unit = "seconds"  # type: ignore[attr-defined]
