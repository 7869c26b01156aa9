"""What tests and the examples in docstrings share: pictures drawn off the screen.

An example that draws leaves its figure open, and matplotlib warns at twenty of them.
Nothing is kept from one run to the next: what a test works out is worked out in it.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["BLOWFISH_CACHE_DIR"] = ""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """Collect without looking for garbage, and never look at what was collected again.

    Twenty thousand tests, and the modules that hold them, live to the end of a run. The
    garbage collector would walk through all of them time and again, which takes a third
    of the CPU seconds of collecting, in each worker.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        _import_own_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def _import_own_share(config: pytest.Config) -> None:
    """Import a worker's share of the test files, before it collects them all.

    pytest rewrites the assertions of a file where it is first imported, and keeps the
    result beside it. In a fresh clone that takes longer than everything else of
    collecting; workers that go through the files in one order would all do it.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    named = {(config.rootpath / name.partition("::")[0]) for name in config.args}
    files = sorted(
        file
        for place in named
        for file in (place.rglob("test_*.py") if place.is_dir() else [place])
        if file.name.startswith("test_") and file.suffix == ".py"
    )
    number, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    share = slice(number * len(files) // workers, (number + 1) * len(files) // workers)
    for file in files[share]:
        module = ".".join(file.relative_to(config.rootpath).with_suffix("").parts)
        # Collecting says what is wrong with a file, or why it is skipped.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(module)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Iterator[object]:
    """Look for examples in docstrings only where a file of tests has any.

    Looking through all that the others import finds nothing and takes seconds.
    """
    option = parent.config.option
    asked = option.doctestmodules
    if file_path.name.startswith("test_") and file_path.suffix == ".py":
        option.doctestmodules = asked and b">>>" in file_path.read_bytes()
    try:
        return (yield)
    finally:
        option.doctestmodules = asked


@pytest.fixture(autouse=True)
def closed_pictures() -> Iterator[None]:
    """Close every figure that a test or an example drew."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
