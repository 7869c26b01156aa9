"""The page on pictures shows what its script draws, and names every function."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import blowfish_fast as bf

DOCS = Path(__file__).parents[2] / "docs"
MOST_BYTES = 750_000
MOST_BYTES_OF_ONE = 300_000


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location(
        "make_pictures", DOCS / "make_pictures.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_is_there_and_described(script):
    pages = "\n".join(one.read_text() for one in DOCS.rglob("*.md"))
    shown = re.findall(r"!\[([^\]]+)\]\((?:\.\./)*_pictures/(\w+)\.png\)", pages)
    assert {name for _, name in shown} == {*script.PICTURES, "demo"}
    assert all(len(words) > 20 for words, _ in shown)
    files = {one.stem: one for one in (DOCS / "_pictures").iterdir()}
    assert set(files) == {*script.PICTURES, "demo"}
    assert max(one.stat().st_size for one in files.values()) < MOST_BYTES_OF_ONE
    assert sum(one.stat().st_size for one in files.values()) < MOST_BYTES


def test_pictures_of_the_readme_are_there():
    root = DOCS.parent
    shown = re.findall(
        r"!\[([^\]]+)\]\(([\w/.]+\.png)\)", (root / "README.md").read_text()
    )
    assert "docs/_pictures/demo.png" in [path for _, path in shown]
    for words, path in shown:
        assert len(words) > 20
        assert (root / path).read_bytes()[:4] == b"\x89PNG"


def test_the_page_names_every_function():
    page = (DOCS / "pictures.md").read_text()
    for name in bf.plotting.__all__:
        if name != "density":
            assert f"bf.plotting.{name}" in page


def test_pictures_come_from_seeded_releases(script):
    for name in ("histogram", "grid_map", "answers", "categories"):
        assert "seeded: an experiment" in script.PICTURES[name]().get_title()


@pytest.mark.long
def test_the_script_writes_a_file_per_picture(script, tmp_path, monkeypatch):
    few = {one: script.PICTURES[one] for one in ("policy_small", "budget")}
    monkeypatch.setattr(script, "PICTURES", few)
    script.main(tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "budget.png",
        "policy_small.png",
    ]
    assert (tmp_path / "budget.png").read_bytes()[:4] == b"\x89PNG"
