"""Settings that every test shares.

Generated values follow from fixed seeds, so that a run can be repeated. With
``BLOWFISH_SEED=7`` they follow from that seed; a failing run prints it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

SEED = os.environ.get("BLOWFISH_SEED", "")

# Python's own start-up file has the same name as the first where Debian made it; the
# second runs under the Python that QGIS was installed for.
collect_ignore = ["mutants/startup", "release/places/qgis_reader.py"]

settings.register_profile(
    "project",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fresh", settings.get_profile("project"), derandomize=False, database=None
)
settings.load_profile("fresh" if SEED else "project")


def pytest_configure(config: pytest.Config) -> None:
    if SEED and not config.getoption("--hypothesis-seed"):
        config.option.hypothesis_seed = SEED
    works = hasattr(config, "workerinput")
    tracer = sys.gettrace()
    if tracer is not None:
        _compile_untraced()
        if not works and config.getoption("numprocesses", None):
            # It hands out tests and prints what workers say, and runs none.
            sys.settrace(None)
            config.add_cleanup(lambda: sys.settrace(tracer))
    if works and os.environ.get("NUMBA_CACHE_DIR"):
        _compile_once(Path(os.environ["NUMBA_CACHE_DIR"]) / "compiling")


def _compile_untraced() -> None:
    """Keep a tracer out of the compiler, which takes 1.6 times as long under one."""
    from numba.core import dispatcher

    kernels: Any = dispatcher.Dispatcher
    compiled = kernels.compile

    def untraced(self: Any, signature: Any) -> Any:
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return compiled(self, signature)
        finally:
            sys.settrace(tracer)

    kernels.compile = untraced


def _compile_once(folder: Path) -> None:
    """Let a worker wait for a kernel that another is compiling, and load it then.

    Workers meet the same kernels in their first minutes and would compile many of them
    twice. Kernels that call each other wait in one order, callers before the called,
    and no kernel calls its callers, so no two workers wait for one another.
    """
    from numba.core import dispatcher
    from numba.core.compiler_lock import global_compiler_lock

    folder.mkdir(parents=True, exist_ok=True)
    kernels: Any = dispatcher.Dispatcher
    compiled = kernels.compile
    own: set[str] = set()

    def once(self: Any, signature: Any) -> Any:
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        # What a test compiles for itself, no other process knows. A kernel that this
        # one compiles now may need itself, for other types.
        if not name.startswith("blowfish_fast.kernels.") or name in own:
            return compiled(self, signature)
        # The lock of the compiler comes first: of the threads of one process, none
        # waits for a file that another holds.
        with global_compiler_lock, (folder / name).open("w") as place:
            fcntl.flock(place, fcntl.LOCK_EX)
            own.add(name)
            try:
                return compiled(self, signature)
            finally:
                own.remove(name)
                # Closing would not do: a process forked off meanwhile has it open.
                fcntl.flock(place, fcntl.LOCK_UN)

    kernels.compile = once


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that hold an address: two workers would not agree on the tests."""
    addressed = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if addressed:
        raise pytest.UsageError(f"give this case a name of its own: {addressed[0]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run kernels' tests untraced: a tracer sees nothing of what is compiled.

    Their runs as plain Python are traced, in a part of their own, which the interface
    to C does not have.
    """
    tracer = sys.gettrace()
    plain = os.environ.get("NUMBA_DISABLE_JIT") == "1" or "capi" in item.path.parts
    if tracer is None or plain or item.get_closest_marker("kernel") is None:
        return (yield)
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int) -> None:
    if SEED and exitstatus:
        terminalreporter.write_line(f"drawn with BLOWFISH_SEED={SEED}")


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(20141)
