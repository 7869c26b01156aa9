"""The console is made before any test: it keeps the width that it was made with."""

from __future__ import annotations

from pathlib import Path

import pytest

import blowfish_fast.apps.cli.printing  # noqa: F401


@pytest.fixture(autouse=True)
def empty_memory(tmp_path_factory: pytest.TempPathFactory, monkeypatch) -> Path:
    """Let every test predict for itself; return where predictions are kept."""
    path = tmp_path_factory.mktemp("memory") / "choices.json"
    memory = "blowfish_fast.apps.cli.mechanism_choice"
    monkeypatch.setattr(f"{memory}.memory_file", lambda: path)
    # Sources that are edited while tests run do not matter to them.
    monkeypatch.setattr(f"{memory}._sources", lambda: (0, 0, 0))
    return path


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with nothing in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
