"""Run the tests that reach a mutant's line, in a process of its own.

    parent: the package and the tests of one file, imported and collected
      |- child: all these tests, watched    ->  line -> tests that run it, seconds
      |- child: one mutant in the file      ->  those tests, quickest first, until
      |- ...                                    one fails

A child puts the changed code into the functions of the file, wherever they went; files
are never written. What is not inside a function needs a fresh import, and so do the
processes that tests start: they find the mutant by ``startup/sitecustomize.py``.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

from .rules import ROOT, Mutant, mutated_tree

SITE = Path(__file__).parent / "startup"
CHOSEN = "BLOWFISH_MUTANT"
PATIENCE, LEAST_SECONDS = 20, 60
NOTICED, TOO_SLOW = 1, -1
MOST_STRICT = 20
MOST_TESTS = 150
"""Of those that run a line, the quickest."""
QUIET = [
    *("-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *("-m", "not audit and not engines and not browser"),
]


class Reached(NamedTuple):
    """Which tests run which lines, and how long each test takes."""

    tests: dict[str, list[str]]
    """By ``file:line``."""
    seconds: dict[str, float]
    failed: list[str]


class Outcome(NamedTuple):
    """What became of some mutants."""

    tried: int
    survivors: list[Mutant]
    failed: list[str]
    """Tests that fail without a mutant; they are left out."""


class MutantLoader(importlib.machinery.SourceFileLoader):
    """Loads one file with one change; no compiled file is read or written."""

    number = 0

    def get_code(self, fullname: str) -> CodeType:
        """Return the changed code."""
        return _changed_code(Path(self.path), self.number)


class MutantFinder(importlib.abc.MetaPathFinder):
    """Answers for one module."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number
        parts = path.relative_to(ROOT).with_suffix("").parts
        self.name = ".".join(one for one in parts if one != "__init__")

    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return where the changed module comes from."""
        if name != self.name:
            return None
        loader = MutantLoader(name, str(self.path))
        loader.number = self.number
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


def install() -> None:
    """Put the mutant named in the environment, if any, in its file's place."""
    chosen = os.environ.get(CHOSEN, "")
    if chosen:
        path, _, number = chosen.rpartition(":")
        sys.meta_path.insert(0, MutantFinder(ROOT / path, int(number)))


def files_with_tests(path: Path) -> list[str]:
    """Return the test files of a source file: its mirror, and what imports from it.

    They stand in the tests of its room or in those of privacy; where none imports from
    it, all that name something of it will do.
    """
    inside = path.relative_to(ROOT / "blowfish_fast")
    mirrored = ROOT / "tests" / inside.parent / f"test_{path.stem}.py"
    names = re.findall(r"^(?:def|class) ([A-Za-z]\w+)", path.read_text(), re.MULTILINE)
    wanted = re.compile(rf"\b(?:{'|'.join([path.stem, *names])})\b")
    places = sorted((ROOT / "tests" / inside.parts[0]).rglob("test_*.py"))
    places += sorted((ROOT / "tests" / "privacy").glob("test_*.py"))
    places += sorted((ROOT / "tests").glob("test_*.py"))
    found = [mirrored] if mirrored.exists() else []
    found += [one for one in places if wanted.search(_imports(one))]
    if not found:
        found = [one for one in places if wanted.search(one.read_text())]
    return list(dict.fromkeys(str(one.relative_to(ROOT)) for one in found))


def _imports(path: Path) -> str:
    tree = ast.parse(path.read_text())
    found = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
    return "\n".join(ast.unparse(one) for one in found)


def try_mutants(picked: list[Mutant], tests: list[str]) -> Outcome:
    """Try these mutants with these test files, in one session of pytest."""
    trial = Trial(picked)
    folder = Path(f"{_quick_place()}/mutants-{os.getpid()}")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        ended = pytest.main([*QUIET, f"--basetemp={folder}", *tests], plugins=[trial])
    shutil.rmtree(folder, ignore_errors=True)
    if trial.reached is None:
        raise SystemExit(f"the tests ended with {ended}\n{said.getvalue()}")
    return Outcome(len(picked), trial.survivors, trial.reached.failed)


def _quick_place() -> str:
    """Return where files do not wait for a disk, if there is such a place."""
    return "/dev/shm" if Path("/dev/shm").exists() else tempfile.gettempdir()


class Trial:
    """A session of pytest that tries mutants in place of running its tests."""

    def __init__(self, picked: list[Mutant]) -> None:
        self.picked = picked
        self.reached: Reached | None = None
        self.survivors: list[Mutant] = []
        self._seconds: dict[str, float] = {}
        self._failed: list[str] = []
        self._strict: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note, in a child, what became of a test."""
        at = report.nodeid
        self._seconds[at] = self._seconds.get(at, 0.0) + report.duration
        if report.failed:
            self._failed.append(at)

    def pytest_runtestloop(self, session: Any) -> bool:
        """Watch the tests once, then try every mutant."""
        if session.testsfailed:
            return True
        items = {one.nodeid: one for one in session.items}
        with tempfile.TemporaryDirectory() as folder:
            self._note = Path(folder) / "note.json"
            _in_child(lambda: self._watch(list(items.values())), seconds=7200)
            self.reached = Reached(*json.loads(self._note.read_text()))
            for mutant in self.picked:
                if self._survives(mutant, items, self.reached):
                    self.survivors.append(mutant)
                    sys.stderr.write(f"     survived: {mutant}\n")
        return True

    def _run(self, items: list[Any]) -> Iterator[str]:
        """Run tests one after the other; yield each name before its test."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            yield item.nodeid
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def _watch(self, items: list[Any]) -> int:
        import coverage

        files = sorted({str(ROOT / one.path) for one in self.picked})
        watch = coverage.Coverage(data_file=None, include=files, config_file=False)
        watch.start()
        for name in self._run(items):
            watch.switch_context(name)
        watch.stop()
        data = watch.get_data()
        lines = {
            f"{Path(path).relative_to(ROOT)}:{line}": who
            for path in files
            for line, who in data.contexts_by_lineno(path).items()
        }
        self._note.write_text(json.dumps([lines, self._seconds, self._failed]))
        return 0

    def _survives(
        self, mutant: Mutant, items: dict[str, Any], reached: Reached
    ) -> bool:
        """Whether no test that runs the mutant's line fails."""
        path = ROOT / mutant.path
        code = _changed_code(path, mutant.number)
        inside = _replacements(code, _functions(path), mutant.line)
        here = f"{mutant.path}:{mutant.line}"
        tests = reached.tests.get(here, []) if inside else list(reached.seconds)
        tests = [one for one in tests if one and one not in reached.failed]
        tests.sort(key=lambda one: (reached.seconds[one], one))
        # What noticed a mutant before notices the next one too, as a rule.
        strict = [one for one in self._strict if one in tests]
        tests = list(dict.fromkeys([*strict, *tests[:MOST_TESTS]]))
        if not tests:
            return True
        expected = sum(reached.seconds[one] for one in tests)
        chosen = f"{mutant.path}:{mutant.number}"
        if not inside:
            return _fresh_process(tests, chosen, PATIENCE * expected + LEAST_SECONDS)

        def run() -> int:
            os.environ.update(_environment(chosen))
            for function, changed in inside:
                function.__code__ = changed
            for _ in self._run([items[one] for one in tests]):
                if self._failed:
                    break
            self._note.write_text("\n".join(self._failed[:1]))
            return NOTICED if self._failed else 0

        self._note.write_text("")
        ended = _in_child(run, PATIENCE * expected + LEAST_SECONDS)
        noticed = self._note.read_text()
        self._strict = (
            [noticed, *self._strict][:MOST_STRICT] if noticed else self._strict
        )
        return ended == 0


def _changed_code(path: Path, number: int) -> CodeType:
    return compile(mutated_tree(path, number), str(path), "exec")


def _functions(path: Path) -> dict[tuple[str, int], list[FunctionType]]:
    """Return the functions that came from a file, by name and first line."""
    found: dict[tuple[str, int], list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == str(path):
            key = (one.__code__.co_qualname, one.__code__.co_firstlineno)
            found.setdefault(key, []).append(one)
    return found


def _replacements(
    code: CodeType, functions: dict[tuple[str, int], list[FunctionType]], line: int
) -> list[tuple[FunctionType, CodeType]]:
    """Return the functions that hold a line, with their changed code.

    None where no function's code has changed: a default is worked out outside.
    """
    found = []
    waiting = [code]
    while waiting:
        one = waiting.pop()
        waiting += [part for part in one.co_consts if isinstance(part, CodeType)]
        key = (one.co_qualname, one.co_firstlineno)
        within = key[1] <= line <= max(at for _, _, at in one.co_lines() if at)
        for function in functions.get(key, []) if within else []:
            same = len(one.co_freevars) == len(function.__code__.co_freevars)
            if same and one != function.__code__:
                found.append((function, one))
    return found


def _environment(chosen: str) -> dict[str, str]:
    paths = [str(SITE), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {CHOSEN: chosen, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _fresh_process(tests: list[str], chosen: str, seconds: float) -> bool:
    """Whether all tests pass in a process that imports the mutant."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *QUIET, "-x", *tests],
            env=os.environ | _environment(chosen),
            cwd=ROOT,
            check=False,
            capture_output=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _in_child(work: Callable[[], int], seconds: float) -> int:
    """Run work in a forked process; return its exit code."""
    child = os.fork()
    if child == 0:
        os.setsid()
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        ended = NOTICED
        try:
            ended = work()
        finally:
            os._exit(ended)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TOO_SLOW
