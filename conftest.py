"""What tests and the examples in docstrings share: pictures drawn off the screen.

An example that draws leaves its figure open, and matplotlib warns at twenty of them.
Nothing is kept from one run to the next: what a test works out is worked out in it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["BLOWFISH_CACHE_DIR"] = ""


@pytest.fixture(autouse=True)
def closed_pictures() -> Iterator[None]:
    """Close every figure that a test or an example drew."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
