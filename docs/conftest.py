"""What pytest leaves alone here, and where the examples of the pages run."""

from __future__ import annotations

from pathlib import Path

import pytest

# Settings and tools, which need more than the tests do; pages are collected.
collect_ignore_glob = ["*.py", "_extensions/*"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the examples of a page write files without leaving them in the tree."""
    monkeypatch.chdir(tmp_path)
