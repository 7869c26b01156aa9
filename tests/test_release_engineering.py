"""The version stands in one place; changelog, CI and benchmarks keep their word."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version as installed
from pathlib import Path

import pytest

import blowfish_fast as bf

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOLDERS = ("blowfish_fast", "tests", "docs", "examples", "asv_benchmarks", ".ci")
TEXT = (".py", ".md", ".toml", ".json", ".yaml", ".html", ".ipynb", "")
SECTIONS = ("Privacy", "Added", "Changed", "Faster", "Fixed", "Removed", "Known limits")


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text_files():
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in TEXT:
                yield path


def test_the_version_is_written_once():
    spelled = re.compile(rf"(?<![\d.]){re.escape(PROJECT['version'])}(?![\d.])")
    found = {
        str(path.relative_to(ROOT))
        for path in text_files()
        if spelled.search(path.read_text())
    }
    assert found == set()


def test_the_package_and_the_command_print_that_version():
    assert bf.__version__ == installed("blowfish_fast") == PROJECT["version"]
    done = subprocess.run(
        [sys.executable, "-m", "blowfish_fast", "version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert PROJECT["version"] in done.stdout


def versions_of_the_changelog():
    """Return (heading, section names in order, text by section) of each version."""
    text = (ROOT / "CHANGELOG.md").read_text()
    for entry in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = entry.partition("\n")
        parts = re.split(r"^### (.+)\n", body, flags=re.MULTILINE)
        yield heading, parts[1::2], dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_newest_entry_of_the_changelog_is_this_version():
    heading, _, _ = next(versions_of_the_changelog())
    assert re.fullmatch(
        rf"{re.escape(PROJECT['version'])} \((unreleased|\d{{4}}-\d\d-\d\d)\)", heading
    )


def test_every_version_opens_with_what_touches_a_guarantee():
    for heading, names, texts in versions_of_the_changelog():
        assert names[0] == "Privacy", heading
        assert [one for one in SECTIONS if one in names] == names, heading
        assert all("- " in text for text in texts.values()), heading


def test_every_dependency_states_its_oldest_version():
    oldest = load(ROOT / ".ci" / "oldest_dependencies.py").oldest
    every = oldest(PROJECT, sorted(PROJECT["optional-dependencies"]))
    core = oldest(PROJECT, [])
    assert set(core) < set(every)
    assert {"numpy", "numba", "scipy"} < set(core)
    for name, bound in core.items():
        have = [int(part) for part in re.findall(r"\d+", installed(name))]
        assert have >= [int(part) for part in bound.split(".")], name


def test_a_dependency_without_a_lower_bound_is_refused():
    oldest = load(ROOT / ".ci" / "oldest_dependencies.py").oldest
    project = {
        "name": "x",
        "dependencies": ["numpy>=2.0,<3", "x[more]"],
        "optional-dependencies": {"more": ["scipy[all] >= 1.13 ; python_version>'3'"]},
    }
    assert oldest(project, []) == {"numpy": "2.0", "scipy": "1.13"}
    project["dependencies"].append("rich")
    with pytest.raises(SystemExit, match="rich: no lower bound"):
        oldest(project, [])


def test_ci_names_its_parts_as_the_guide_does():
    said = subprocess.run(
        ["bash", str(ROOT / ".ci" / "run"), "--list"],
        capture_output=True,
        text=True,
        check=True,
    )
    parts = said.stdout.split()
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    table = guide.partition("| part | what | minutes |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, flags=re.MULTILINE) == parts
    wrong = subprocess.run(
        ["bash", str(ROOT / ".ci" / "run"), "nothing_of_the_kind"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert wrong.returncode == 2
    assert "checks" in wrong.stderr


def test_the_guide_names_files_that_exist():
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:\w+|\.ci)/[\w./]+)`", guide)
    assert len(named) > 15
    for path in named:
        assert "NAME" in path or (ROOT / path).exists(), path


def test_hooks_come_from_the_environment_and_not_from_a_network():
    yaml = pytest.importorskip("yaml")
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [one["repo"] for one in hooks] == ["local"]
    assert {one["language"] for one in hooks[0]["hooks"]} == {"system"}


def test_whitespace_is_checked(tmp_path):
    complaints = load(ROOT / ".ci" / "whitespace.py").complaints
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("x = 1\n")
    bad.write_text("x = 1  \ny = 2")
    assert complaints(good) == []
    assert [one.partition(": ")[2] for one in complaints(bad)] == [
        "the last line has no end",
        "blanks at the end of the line",
    ]


@pytest.fixture
def ratio_check(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "asv_benchmarks"))
    return importlib.import_module("ratio_check")


def test_the_performance_page_is_the_one_that_its_figures_make(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "asv_benchmarks"))
    generator = importlib.import_module("performance_page")
    figures = json.loads(generator.FIGURES.read_text())
    ratios = json.loads(generator.RATIOS.read_text())
    assert generator.PAGE.read_text() == generator.page(figures, ratios)


def half_as_much_again(call):
    turn = iter(range(10**9))

    def slower():
        call()
        if next(turn) % 2:
            call()

    return slower


def test_a_kernel_that_takes_half_as_much_again_is_named(ratio_check):
    wanted = ("hilbert_order", "discrete_laplace")
    tasks = [task for task in ratio_check.all_tasks() if task.name in wanted]
    found = ratio_check.measure(tasks, rounds=10)
    recorded = {name: one.ratio for name, one in found.items()}
    planted = [
        task._replace(prepare=lambda task=task: half_as_much_again(task.prepare()))
        if task.name == "hilbert_order"
        else task
        for task in tasks
    ]
    named = ratio_check.slower(planted, recorded, attempts=4, rounds=10)
    assert set(named) == {"hilbert_order"}


def test_ratios_of_another_machine_are_reported_only(ratio_check, capsys):
    task = ratio_check.Task("sums", 4096, "sort", lambda: lambda: sum(range(4096)))
    kept = {
        "recorded on": ratio_check.fingerprint(),
        "kernels": {"sums": {"ratio": 1e-6}},
    }
    assert ratio_check.check([task], kept, attempts=2, rounds=2) == 1
    assert "REGRESSION: sums" in capsys.readouterr().out
    kept["recorded on"] = {"processor": "another"}
    assert ratio_check.check([task], kept, attempts=2, rounds=2) == 0
    assert "reported only" in capsys.readouterr().out


def test_every_kernel_of_the_check_is_recorded(ratio_check):
    recorded = json.loads(ratio_check.RECORDED.read_text())["kernels"]
    assert set(recorded) == {task.name for task in ratio_check.all_tasks()}
