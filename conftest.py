"""What tests and the examples in docstrings share: pictures drawn off the screen.

An example that draws leaves its figure open, and matplotlib warns at twenty of them.
Nothing is kept from one run to the next: what a test works out is worked out in it.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["BLOWFISH_CACHE_DIR"] = ""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect without looking for garbage, and never look at what was collected again.

    Twenty thousand tests, and the modules that hold them, live to the end of a run. The
    garbage collector would walk through all of them time and again, which takes a third
    of the CPU seconds of collecting, in each worker.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


@pytest.fixture(autouse=True)
def closed_pictures() -> Iterator[None]:
    """Close every figure that a test or an example drew."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
