from __future__ import annotations

import pytest

from .serving import serving


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server that a whole file of tests shares."""
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def own_server(tmp_path):
    """A server of a test's own, with nothing charged yet."""
    with serving(tmp_path) as found:
        yield found
