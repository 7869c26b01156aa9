"""Settings that every test shares.

Generated values follow from fixed seeds, so that a run can be repeated. With
``BLOWFISH_SEED=7`` they follow from that seed; a failing run prints it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
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
    if sys.gettrace() is not None:
        _compile_untraced()


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
