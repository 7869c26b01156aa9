"""The version stands in one place; changelog, CI and benchmarks keep their word."""

from __future__ import annotations

import ast
import base64
import hashlib
import importlib
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version as installed
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOLDERS = ("blowfish_fast", "tests", "docs", "examples", "asv_benchmarks", ".ci")
TEXT = (".py", ".md", ".toml", ".json", ".yaml", ".html", ".ipynb", "")
SECTIONS = (
    "Privacy",
    "Added",
    "Changed",
    "Faster",
    "Fixed",
    "Removed",
    "Known limits",
    "Formats",
)


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
        # Most texts do not hold it at all, which is found out without a pattern.
        if PROJECT["version"] in (text := path.read_text()) and spelled.search(text)
    }
    assert found == set()


def test_the_citation_says_what_the_project_says():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["title"] == PROJECT["name"]
    assert citation["license"] == PROJECT["license"]
    assert citation["keywords"] == PROJECT["keywords"]
    # The five papers that the README names.
    papers = (ROOT / "README.md").read_text().split("## Papers")[1]
    for paper in citation["references"]:
        assert paper["authors"][0]["family-names"] in papers
    assert len(citation["references"]) == 5


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


@pytest.mark.long
@pytest.mark.parametrize("failures", [0, 1, 2])
def test_what_fails_in_a_browser_once_is_named_and_twice_is_an_error(
    tmp_path, failures
):
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = browser: in a browser\n")
    (tmp_path / "test_page.py").write_text(
        "import pathlib, pytest\n"
        "@pytest.mark.browser\n"
        "def test_a_page():\n"
        "    tries = pathlib.Path(__file__).with_name('tries')\n"
        "    before = len(tries.read_text()) if tries.exists() else 0\n"
        "    tries.write_text('x' * (before + 1))\n"
        f"    assert before >= {failures}\n"
    )
    python = Path(sys.executable).parent
    said = subprocess.run(
        ["bash", str(ROOT / ".ci" / "browser_tests"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{python}:{os.environ['PATH']}"},
    )
    assert said.returncode == (1 if failures == 2 else 0), said.stdout + said.stderr
    assert ("UNSTABLE" in said.stdout) == (failures == 1)
    assert ("failed once, tried again alone" in said.stdout) == (failures > 0)
    tries = 1 if failures == 0 else 2
    assert (tmp_path / "tries").read_text() == "x" * tries


def test_every_audit_lies_where_its_part_looks():
    script = (ROOT / ".ci" / "run").read_text()
    (places,) = re.findall(r"-m audit .* --dist loadfile (.+)$", script, re.MULTILINE)
    folders = [ROOT / place for place in places.split()]
    marked = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"pytest\.mark\.audit", path.read_text())
    ]
    assert len(marked) > 10
    for path in marked:
        assert any(path.is_relative_to(folder) for folder in folders), path


def test_every_generated_test_lies_in_a_file_that_its_part_collects(request):
    """The part `fresh` collects the files that its pattern finds, and no others.

    A generated test could escape it in two ways. Its file may import hypothesis in a
    form that the pattern misses, or the test may come from a module that only helps
    tests. Of the tests that this very run collected, pytest itself says which are
    generated.
    """
    script = (ROOT / ".ci" / "run").read_text()
    ((files, pattern),) = re.findall(
        r"grep -rlE --include='([^']+)' '([^']+hypothesis)' tests\)", script
    )
    collected, importing = set(), set()
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text()
        # A module that never says the name does not import it.
        tree = ast.parse(text if "hypothesis" in text else "")
        imported = imports_of_hypothesis(tree)
        if not path.match(files):
            makers = imported & {"hypothesis", "given", "stateful"}
            assert not makers or path.name == "conftest.py", (path, makers)
            continue
        if imported:
            importing.add(path)
        if re.search(pattern, text, re.MULTILINE):
            collected.add(path)
    assert len(importing) > 100
    assert collected == importing
    generated = {
        item.path
        for item in request.session.items
        if item.get_closest_marker("hypothesis")
    }
    assert generated <= collected


def imports_of_hypothesis(tree):
    """Return the names under hypothesis that a module imports, at any depth.

    The package as a whole counts as `hypothesis`, `hypothesis.stateful` as `stateful`.
    """
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, *rest = name.split(".")
            if package == "hypothesis":
                found.add(rest[0] if rest else package)
    return found


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


FIGURES = (
    *("speed.machines", "speed.ratios", "speed.waits"),
    *("speed.cores", "speed.large", "speed.limits", "speed.records"),
)


def test_the_performance_page_is_the_one_that_its_figures_make(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "asv_benchmarks"))
    generator = importlib.import_module("performance_page")
    assert generator.main(["--check"]) == 0
    page = generator.PAGE.read_text()
    for folder in generator.RECORDED.iterdir():
        assert f"**{folder.name}**: one virtual core" in page
        assert f"| on {folder.name} | ratio |" in page
    pages = generator.filler()
    others = pages.figures() | dict.fromkeys(FIGURES, "?")
    monkeypatch.setattr(pages, "figures", lambda: others)
    monkeypatch.setattr(generator, "filler", lambda: pages)
    assert generator.main(["--check"]) == 1


@pytest.fixture
def simulate_cores(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "asv_benchmarks"))
    return importlib.import_module("simulate_cores")


def test_listed_jobs_go_to_the_core_that_is_free_first(simulate_cores):
    listed = simulate_cores.Listed(threads=4, seconds=[3.0, 1.0, 1.0, 1.0])
    assert [listed.makespan(cores) for cores in (1, 2, 4, 16)] == [6.0, 3.0, 3.0, 3.0]


@pytest.mark.parametrize(("in_order", "expected"), [(True, 9.0), (False, 7.0)])
def test_blocks_wait_for_states_and_closes(simulate_cores, in_order, expected):
    # A job of 2 and a close of 1 for each of 4 blocks, on 2 cores with 3 buffers.
    seconds = {(block, 0): 2.0 for block in range(4)}
    seconds |= {(block, simulate_cores.CLOSE): 1.0 for block in range(4)}
    blocked = simulate_cores.Blocked(2, 4, seconds, [in_order])
    assert blocked.makespan(1) == 12.0
    assert blocked.makespan(2) == expected


def test_jobs_of_a_release_are_recorded_and_change_nothing(simulate_cores):
    line = bf.Domain(2**16)
    asked = bf.workloads.Ranges(line, [0, 9], [5, 2**16])
    dawa = bf.Dawa(bf.policies.AddRemove(line), asked, epsilon=1)
    counts = np.arange(2**16) // 512
    alone = dawa.release(counts, rng=1)
    with simulate_cores.recorded(4) as recorder:
        together = dawa.release(counts, rng=1)
    assert recorder.stages
    assert np.array_equal(alone.answer(asked), together.answer(asked))
    cpu = sum(sum(stage.seconds) for stage in recorder.stages)
    assert recorder.seconds(cpu, 4) <= recorder.seconds(cpu, 1)
    assert recorder.seconds(cpu, 1) == pytest.approx(cpu)


@pytest.mark.long
def test_large_releases_say_what_they_took(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "asv_benchmarks"))
    measure_large = importlib.import_module("measure_large")
    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc")
    kinds = ["steps", "map", "grid", "rectangles", "towns"]
    assert measure_large.main(["--power", "12", "--kind", *kinds]) == 0
    printed = capsys.readouterr().out
    assert printed.count('"declared GiB"') == len(kinds)
    assert all(f"2^12, {kind}: " in printed for kind in kinds)


class Machine:
    """A clock of its own, and work that takes as long as it is told."""

    def __init__(self, ratio_check, monkeypatch):
        self.now = 0.0
        self.busy = 1.0
        self.checked = ratio_check
        monkeypatch.setattr(ratio_check, "process_time", lambda: self.now)
        monkeypatch.setattr(
            ratio_check, "REFERENCES", {"sort": lambda cells: self.work(1e-3)}
        )

    def work(self, seconds):
        disturbed = itertools.cycle([1.0] * 20 + [2.0] * 30)

        def call():
            self.now += seconds * self.busy * next(disturbed)

        return call

    def task(self, name, seconds):
        return self.checked.Task(name, 4096, "sort", lambda: self.work(seconds))


@pytest.fixture
def machine(ratio_check, monkeypatch):
    return Machine(ratio_check, monkeypatch)


@pytest.mark.parametrize(("times", "named"), [(1.1, set()), (1.25, {"one"})])
def test_a_kernel_that_takes_a_quarter_more_is_named(
    ratio_check, machine, times, named
):
    tasks = [machine.task("one", 3e-3), machine.task("other", 2e-3)]
    recorded = ratio_check.measure(tasks)
    planted = [machine.task("one", 3e-3 * times), tasks[1]]
    found = ratio_check.suspicions(planted, recorded)
    assert set(found) == named
    for one in found.values():
        assert one.proved
        assert one.excess == pytest.approx(times, rel=0.02)


def test_one_quiet_attempt_acquits(ratio_check, machine):
    recorded = ratio_check.measure([machine.task("one", 3e-3)])
    attempts = iter((4.5e-3, 4.2e-3, 3e-3, 9e-3))
    unsteady = machine.task("one", 3e-3)._replace(
        prepare=lambda: machine.work(next(attempts))
    )
    assert ratio_check.suspicions([unsteady], recorded) == {}
    assert next(attempts) == 9e-3


def kept_of(ratio_check, tasks):
    return json.loads(json.dumps(ratio_check.record(tasks, runs=1)))


def test_a_regression_ends_with_status_one(ratio_check, machine, capsys):
    kept = kept_of(ratio_check, [machine.task("one", 3e-3)])
    assert ratio_check.check([machine.task("one", 3e-3)], kept) == 0
    assert "no kernel takes more than 1.2" in capsys.readouterr().out
    assert ratio_check.check([machine.task("one", 4e-3)], kept) == 1
    assert "REGRESSION: one takes 1.33" in capsys.readouterr().out


def test_where_numpy_is_slower_too_nothing_is_judged(ratio_check, machine, capsys):
    kept = kept_of(ratio_check, [machine.task("one", 3e-3)])
    machine.busy = 1.5
    assert ratio_check.check([machine.task("one", 4e-3)], kept) == 0
    assert "NOT JUDGED: one takes 1.33" in capsys.readouterr().out


def test_ratios_of_another_machine_are_reported_only(ratio_check, machine, capsys):
    kept = kept_of(ratio_check, [machine.task("one", 3e-3)])
    kept["recorded on"] = {"processor": "another"}
    assert ratio_check.check([machine.task("one", 9e-3)], kept) == 0
    assert "reported only" in capsys.readouterr().out


def test_real_kernels_can_be_measured(ratio_check):
    tasks = [task for task in ratio_check.all_tasks() if "hilbert" in task.name]
    found = ratio_check.measure(tasks, rounds=1)
    assert set(found) == {"hilbert_order"}
    assert found["hilbert_order"].ratio > 0


def test_every_kernel_of_the_check_is_recorded(ratio_check):
    files = sorted(ratio_check.FOLDER.glob("*/ratios.json"))
    assert files
    for file in files:
        recorded = json.loads(file.read_text())["kernels"]
        assert set(recorded) == {task.name for task in ratio_check.all_tasks()}


def test_where_nothing_is_recorded_ratios_are_reported_only(
    ratio_check, machine, capsys, monkeypatch, tmp_path
):
    tasks = [machine.task("one", 3e-3)]
    monkeypatch.setattr(ratio_check, "all_tasks", lambda: tasks)
    assert ratio_check.main(["--file", str(tmp_path / "none" / "ratios.json")]) == 0
    assert "reported only" in capsys.readouterr().out


def test_a_platform_wheel_records_every_file_and_names_its_platform(tmp_path):
    module = load(ROOT / ".ci" / "platform_wheel.py")
    described = tmp_path / "files" / "some-1.dist-info"
    described.mkdir(parents=True)
    (described / "RECORD").write_text("old.py,,\n")
    (described / "WHEEL").write_text(
        "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    (tmp_path / "files" / "some.py").write_text("1\n")
    made = tmp_path / "some-1-cp311-none-linux_x86_64.whl"
    module.write_wheel(tmp_path / "files", made, "cp311-none-linux_x86_64")
    with zipfile.ZipFile(made) as packed:
        wheel = packed.read("some-1.dist-info/WHEEL").decode().splitlines()
        record = packed.read("some-1.dist-info/RECORD").decode().splitlines()
        names = packed.namelist()
    assert wheel[1:] == ["Root-Is-Purelib: false", "Tag: cp311-none-linux_x86_64"]
    rows = [row.split(",") for row in record]
    assert sorted(row[0] for row in rows) == sorted(names)
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"1\n").digest()).decode()
    assert ["some.py", f"sha256={digest.rstrip('=')}", "2"] in rows
    assert ["some-1.dist-info/RECORD", "", ""] in rows


def test_the_conda_recipe_has_the_dependencies_of_the_project():
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    recipe = ROOT / "deploy" / "conda" / "meta.yaml"

    def load_file_data(name, *, from_recipe_dir):
        # As conda-build does: relative to the folder of the recipe.
        assert from_recipe_dir
        return tomllib.loads((recipe.parent / name).read_text())

    template = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    text = template.from_string(recipe.read_text())
    read = yaml.safe_load(text.render(load_file_data=load_file_data, PYTHON="python"))
    assert read["package"] == {key: PROJECT[key] for key in ("name", "version")}
    python = f"python {PROJECT['requires-python']}"
    assert read["requirements"]["run"] == [python, *PROJECT["dependencies"]]
    assert "flit_core>=3.12,<5" in read["requirements"]["host"]
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert read["build"]["entry_points"] == scripts
    assert (recipe.parent / read["source"]["path"]).resolve() == ROOT
    assert (ROOT / read["about"]["license_file"]).is_file()
    assert read["about"]["license"] == PROJECT["license"]
