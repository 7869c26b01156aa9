"""Each database in turn: DuckDB always, the others where `engines` are asked for."""

from __future__ import annotations

import importlib.util
import os

import pytest

from .engines_at_hand import ENGINES, INSTALL, NEEDS, POSTGRES


@pytest.fixture(
    scope="module",
    params=[
        "duckdb",
        POSTGRES,
        pytest.param("spark", marks=pytest.mark.engines),
    ],
)
def engine(request, tmp_path_factory):
    absent = [one for one in NEEDS[request.param] if not importlib.util.find_spec(one)]
    if absent and os.environ.get("BLOWFISH_NOTHING_SKIPPED"):
        pytest.fail(f"{', '.join(absent)} should have been installed")
    if absent:
        pytest.skip(f"needs {', '.join(absent)}: {INSTALL[request.param]}")
    with ENGINES[request.param](tmp_path_factory.mktemp(request.param)) as made:
        yield made
