"""The kept notebooks are made from their sources, ran through, and tell nothing else.

``python examples/notebooks/build.py --check`` executes them anew; here they are read.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
NAMES = (
    "analyst_with_a_budget",
    "choosing_theta",
    "city_map",
    "kernels_alone",
    "salary_three_policies",
    "census_survey",
    "audit_of_strangers",
    "labour_force",
)
MOST_BYTES = 1_500_000


def builder():
    path = FOLDER / "build.py"
    spec = importlib.util.spec_from_file_location("notebook_builder", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


BUILD = builder()


def kept(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text())


def text_of(lines):
    return lines if isinstance(lines, str) else "".join(lines)


def outputs(notebook):
    return [one for cell in notebook["cells"] for one in cell.get("outputs", [])]


def test_every_source_is_kept_as_a_notebook():
    assert sorted(BUILD.sources()) == sorted(NAMES)
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


def test_a_source_is_cut_at_its_marks():
    text = "left out\n# %% [markdown]\n# # Title\n#\n# words\n\n# %%\nx = 1\nx\n"
    assert list(BUILD.cells_of(text)) == [
        ("markdown", "# Title\n\nwords"),
        ("code", "x = 1\nx"),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_is_made_from_its_source(name):
    cells = list(BUILD.cells_of((FOLDER / f"{name}.py").read_text()))
    found = [(one["cell_type"], text_of(one["source"])) for one in kept(name)["cells"]]
    assert found == [tuple(cell) for cell in cells], "run examples/notebooks/build.py"
    assert cells[0].kind == "markdown"
    assert cells[0].text.startswith("# ")


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_ran_without_error_or_warning(name):
    notebook = kept(name)
    code = [one for one in notebook["cells"] if one["cell_type"] == "code"]
    numbers = [one["execution_count"] for one in code]
    assert numbers == list(range(1, len(code) + 1))
    for one in outputs(notebook):
        assert one["output_type"] in ("stream", "display_data", "execute_result")
        assert one.get("name") != "stderr"


@pytest.mark.parametrize("name", NAMES)
def test_pictures_and_words_are_there(name):
    shown = outputs(kept(name))
    assert sum("image/png" in one.get("data", {}) for one in shown) >= 2
    assert any(one["output_type"] == "stream" for one in shown)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_tells_of_the_machine(name):
    for one in outputs(kept(name)):
        data = one.get("data", {})
        words = [text_of(value) for kind, value in data.items() if "png" not in kind]
        said = "\n".join([text_of(one.get("text", "")), *words])
        assert not re.search(r"(/[\w.-]+){3,}|[A-Z]:\\|Warning|0x[0-9a-f]{6}", said)


def test_a_notebook_without_its_packages_keeps_what_it_printed(monkeypatch, capsys):
    pytest.importorskip("nbformat")
    before = (FOLDER / "audit_of_strangers.ipynb").read_bytes()
    monkeypatch.setitem(BUILD.NEEDS, "audit_of_strangers", ("no_such_package",))
    for words in ([], ["--check"]):
        monkeypatch.setattr("sys.argv", ["build.py", "audit_of_strangers", *words])
        assert BUILD.main() == 0
    assert "not executed, since no_such_package" in capsys.readouterr().out
    assert (FOLDER / "audit_of_strangers.ipynb").read_bytes() == before


def test_all_of_them_stay_small():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.ipynb")) < MOST_BYTES
