"""Run the tests that reach a mutant's line, in a process of its own.

    parent: the package and the tests of one file, imported and collected
      |- child: all these tests, watched    ->  line -> tests that run it, seconds
      |- child: one mutant in the file      ->  those tests, quickest first, until
      |- ...                                    one fails

Where a run of the whole suite has noted which tests run a line, nothing is watched: the
line's tests, from the whole suite, are tried until one fails or their seconds are over;
one that fails must pass without the mutant.

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
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

from tests.command_server import untraced
from tests.generated import ALL

from .contexts import Contexts
from .rules import ROOT, Mutant, mutated_tree

# Before tests are imported, by this process or by one that it starts.
os.environ[ALL] = "1"

SITE = Path(__file__).parent / "startup"
CHOSEN = "BLOWFISH_MUTANT"
PATIENCE, LEAST_SECONDS = 20, 60
NOTICED, TOO_SLOW = 1, -1
MOST_STRICT = 20
MOST_TESTS = 150
"""Of those that run a line, the quickest."""
MOST_CASES, MOST_FRESH = 12, 40
"""Of a noted function so many cases come first; so many tests in a fresh process."""
QUIET = [
    *("-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *("-m", "not audit and not engines and not browser"),
]


Changed = list[tuple[FunctionType, CodeType]]
"""Functions, and the code that a mutant gives them."""


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


def _tests_in(files: list[str]) -> list[str]:
    """Return the functions of test files, one file after the other."""
    return [
        f"{file}::{name}"
        for file in files
        for name in re.findall(
            r"^def (test_\w+)", (ROOT / file).read_text(), re.MULTILINE
        )
    ]


@cache
def _imports(path: Path) -> str:
    tree = ast.parse(path.read_text())
    found = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
    return "\n".join(ast.unparse(one) for one in found)


def try_mutants(picked: list[Mutant], tests: list[str]) -> Outcome:
    """Try these mutants with these test files, in one session of pytest."""
    return _session(Trial(picked), tests)


def try_noted(picked: list[Mutant], data: Path, seconds: float) -> Outcome:
    """Try mutants with the tests that a run of the whole suite saw at their lines.

    ``seconds`` of CPU time are spent on the tests of one mutant. Where nothing was
    noted, as of lines that only other processes run, the tests of its file are taken.
    """
    contexts = Contexts(data)
    functions = {
        one: contexts.tests_of(one) or _tests_in(files_with_tests(ROOT / one.path))
        for one in picked
    }
    files = {one.partition("::")[0] for some in functions.values() for one in some}
    there = sorted(one for one in files if (ROOT / one).exists())
    return _session(NotedTrial(picked, functions, seconds), there)


def _session(trial: Trial, tests: list[str]) -> Outcome:
    folder = Path(f"{_quick_place()}/mutants-{os.getpid()}")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        ended = pytest.main([*QUIET, f"--basetemp={folder}", *tests], plugins=[trial])
    shutil.rmtree(folder, ignore_errors=True)
    if not trial.ended:
        raise SystemExit(f"the tests ended with {ended}\n{said.getvalue()}")
    return Outcome(len(trial.picked), trial.survivors, trial.fail_anyway)


def _quick_place() -> str:
    """Return where files do not wait for a disk, if there is such a place."""
    return "/dev/shm" if Path("/dev/shm").exists() else tempfile.gettempdir()


class Trial:
    """A session of pytest that tries mutants in place of running its tests."""

    def __init__(self, picked: list[Mutant]) -> None:
        self.picked = picked
        self.survivors: list[Mutant] = []
        self.fail_anyway: list[str] = []
        """Tests that fail without a mutant."""
        self.ended = False
        self._reached = Reached({}, {}, [])
        self._items: dict[str, Any] = {}
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
        self._items = {one.nodeid: one for one in session.items}
        with tempfile.TemporaryDirectory() as folder:
            self._note = Path(folder) / "note.json"
            self._prepare()
            for tried, mutant in enumerate(self.picked, 1):
                if self._survives(mutant):
                    self.survivors.append(mutant)
                    sys.stderr.write(f"     survived: {mutant}\n")
                if tried % 10 == 0:
                    sys.stderr.write(f"     {tried} of {len(self.picked)} tried\n")
        self.ended = True
        return True

    def _run(self, tests: list[str]) -> Iterator[str]:
        """Run tests one after the other; yield each name before its test."""
        items = [self._items[one] for one in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            yield item.nodeid
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def _prepare(self) -> None:
        """Find out which tests run which lines."""
        _in_child(self._watch, seconds=7200)
        self._reached = Reached(*json.loads(self._note.read_text()))
        self.fail_anyway = self._reached.failed

    def _watch(self) -> int:
        import coverage

        files = sorted({str(ROOT / one.path) for one in self.picked})
        watch = coverage.Coverage(data_file=None, include=files, config_file=False)
        watch.start()
        for name in self._run(list(self._items)):
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

    def _tests_of(self, mutant: Mutant, inside: Changed) -> list[str]:
        """Return the tests that may notice a mutant, the quickest first."""
        here = f"{mutant.path}:{mutant.line}"
        seconds = self._reached.seconds
        tests = self._reached.tests.get(here, []) if inside else list(seconds)
        tests = [one for one in tests if one and one not in self.fail_anyway]
        tests.sort(key=lambda one: (seconds[one], one))
        return self._strict_first(tests, MOST_TESTS)

    def _strict_first(self, tests: list[str], most: int) -> list[str]:
        """What noticed a mutant before notices the next one too, as a rule."""
        strict = [one for one in self._strict if one in tests]
        return list(dict.fromkeys([*strict, *tests[:most]]))

    def _survives(self, mutant: Mutant) -> bool:
        """Whether no test that runs the mutant's line fails."""
        path = ROOT / mutant.path
        code = _changed_code(path, mutant.number)
        inside = _replacements(code, _functions(path), mutant.line)
        tests = self._tests_of(mutant, inside)
        return not tests or not self._noticed(mutant, inside, tests)

    def _noticed(self, mutant: Mutant, inside: Changed, tests: list[str]) -> bool:
        """Whether a test fails, or does not end in time."""
        expected = sum(self._reached.seconds[one] for one in tests)
        limit = PATIENCE * expected + LEAST_SECONDS
        if not inside:
            return _fresh_process(tests, _name(mutant), limit) != ""
        return self._ends(tests, mutant, inside, (limit, limit))[0] != 0

    def _ends(
        self,
        tests: list[str],
        mutant: Mutant | None,
        inside: Changed,
        seconds: tuple[float, float],
    ) -> tuple[int, str]:
        """Run tests until one fails; return how it ended, and the last test.

        No test begins after the first number of seconds, of CPU time, and none goes on
        after the second.
        """

        def run() -> int:
            if mutant is not None:
                os.environ.update(_environment(_name(mutant)))
            for function, changed in inside:
                function.__code__ = changed
            for name in self._run(tests):
                if self._failed or sum(os.times()[:4]) > seconds[0]:
                    break
                self._note.write_text(name)
            if self._failed:
                self._note.write_text(self._failed[0])
            return NOTICED if self._failed else 0

        self._note.write_text("")
        ended = _in_child(run, seconds[1])
        last = self._note.read_text()
        if ended != 0 and mutant is not None:
            self._strict = list(dict.fromkeys([last, *self._strict]))[:MOST_STRICT]
        return ended, last


class NotedTrial(Trial):
    """A trial of mutants whose tests were noted by a run of the whole suite."""

    def __init__(
        self, picked: list[Mutant], functions: dict[Mutant, list[str]], seconds: float
    ) -> None:
        super().__init__(picked)
        self._functions = functions
        self._limit = seconds
        self._passes: dict[str, bool] = {}

    def _prepare(self) -> None:
        """Sort the cases by their functions."""
        self._cases: dict[str, list[str]] = {}
        for name in self._items:
            self._cases.setdefault(name.partition("[")[0], []).append(name)

    def _tests_of(self, mutant: Mutant, inside: Changed) -> list[str]:
        """Return some cases of each function, then the others."""
        first, later = [], []
        for function in self._functions[mutant]:
            cases = self._cases.get(function, [])
            some = cases[:: max(1, len(cases) // MOST_CASES)]
            first += some
            later += [one for one in cases if one not in some]
        return self._strict_first([*first, *later], len(first) + len(later))

    def _noticed(self, mutant: Mutant, inside: Changed, tests: list[str]) -> bool:
        """Whether a test fails that passes without the mutant."""
        hard = PATIENCE * self._limit
        for _ in range(MOST_STRICT):
            tests = [one for one in tests if self._passes.get(one, True)]
            if inside:
                ended, last = self._ends(tests, mutant, inside, (self._limit, hard))
                if ended == 0:
                    return False
            else:
                last = _fresh_process(tests[:MOST_FRESH], _name(mutant), hard)
                if last == "":
                    return False
            if last not in self._items or self._passes_alone(last):
                return True
        return False

    def _passes_alone(self, test: str) -> bool:
        """Whether a test passes without a mutant, in a small part of its seconds."""
        if test not in self._passes:
            ended, _ = self._ends([test], None, [], (self._limit, self._limit))
            self._passes[test] = ended == 0
            self.fail_anyway += [] if ended == 0 else [test]
        return self._passes[test]


def _name(mutant: Mutant) -> str:
    return f"{mutant.path}:{mutant.number}"


def _changed_code(path: Path, number: int) -> CodeType:
    return compile(mutated_tree(path, number), str(path), "exec")


def _functions(path: Path) -> dict[tuple[str, int], list[FunctionType]]:
    """Return the functions that came from a file, by name and first line."""
    found: dict[tuple[str, int], list[FunctionType]] = {}
    # What was frozen once tests were collected is not listed otherwise.
    gc.unfreeze()
    for one in gc.get_objects():
        # Not isinstance: it would ask weak references to what is gone for their class.
        if type(one) is FunctionType and one.__code__.co_filename == str(path):
            key = (one.__code__.co_qualname, one.__code__.co_firstlineno)
            found.setdefault(key, []).append(one)
    return found


def _replacements(
    code: CodeType, functions: dict[tuple[str, int], list[FunctionType]], line: int
) -> Changed:
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


def _fresh_process(tests: list[str], chosen: str, seconds: float) -> str:
    """Return the test that fails in a process that imports the mutant, or "".

    Where the tests cannot be collected, or do not end, that is said in its place.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *QUIET, "-x", "-rfE", *tests],
            env=untraced() | _environment(chosen),
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return "no end"
    if done.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[1] if failed else "nothing collected"


def _in_child(work: Callable[[], int], seconds: float) -> int:
    """Run work in a forked process; return its exit code."""
    child = os.fork()
    if child == 0:
        os.setsid()
        sys.settrace(None)
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
