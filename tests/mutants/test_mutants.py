"""The harness notices what it should, and its list of equivalents is true."""

from __future__ import annotations

import weakref
from pathlib import Path

import pytest
from coverage import CoverageData

from .contexts import Contexts
from .equivalents import accepted
from .rules import ROOT, mutants, mutated_tree
from .runner import _functions, files_with_tests, try_mutants, try_noted

CHECKED = '''"""A file."""

def share(part, whole, check):
    """Return a share."""
    check_part(part)
    if part < 0:
        raise ValueError(f"{part + 1} of {whole - 1}")
    return 2 * min(part, whole) / (whole + 1)
'''


def test_every_rule_finds_its_places_and_leaves_messages_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.mutants.rules.ROOT", tmp_path)
    path = tmp_path / "share.py"
    path.write_text(CHECKED)
    found = {(one.rule, one.after) for one in mutants(path)}
    assert found == {
        ("dropped check", "pass"),
        ("dropped check", "if False:"),
        ("swapped comparison", "part <= 0"),
        ("off by one", "1"),
        ("arithmetic", "2 * min(part, whole) * (whole + 1)"),
        ("factor of two", "min(part, whole)"),
        ("extreme", "max"),
        ("off by one", "whole"),
    }


@pytest.mark.long
@pytest.mark.parametrize("room", ["measure", "accounting"])
def test_every_mutant_of_the_border_compiles(room: str) -> None:
    # The first and the last of each file: all come from the same rules.
    for path in sorted((ROOT / "blowfish_fast" / room).rglob("*.py")):
        found = mutants(path)
        for one in {0, len(found) - 1} if found else ():
            code = compile(mutated_tree(path, one), str(path), "exec")
            assert code != compile(path.read_text(), str(path), "exec")


def test_equivalents_are_mutants_that_exist_and_are_explained() -> None:
    known = accepted()
    found = {
        one.key for path in {key[0] for key in known} for one in mutants(ROOT / path)
    }
    assert sorted(set(known) - found) == []
    assert [key for key, why in known.items() if len(why.split()) < 4] == []


@pytest.mark.long
def test_functions_are_found_beside_weak_references_to_what_is_gone() -> None:
    gone = weakref.proxy({1, 2})
    with pytest.raises(ReferenceError):
        len(gone)
    assert _functions(Path(__file__))


@pytest.mark.long
def test_a_dropped_check_of_the_ledger_is_noticed() -> None:
    unnamed = files_with_tests(ROOT / "blowfish_fast/_support/machine.py")
    assert "tests/privacy/test_walk.py" in unnamed
    check = "blowfish_fast/accounting/journal_file.py"
    dropped = [one for one in mutants(ROOT / check) if one.rule == "dropped check"]
    outcome = try_mutants(dropped[:2], files_with_tests(ROOT / check))
    assert (outcome.tried, outcome.survivors, outcome.failed) == (2, [], [])


@pytest.mark.long
def test_a_changed_default_is_tried_in_a_fresh_process() -> None:
    # It is worked out where the function is made, not inside its code.
    name = "blowfish_fast/accounting/composition.py"
    (default,) = (
        one
        for one in mutants(ROOT / name)
        if (one.rule, one.after) == ("truth", "True") and "scoped: bool" in one.before
    )
    outcome = try_mutants([default], ["tests/accounting/test_composition.py"])
    assert (outcome.survivors, outcome.failed) == ([], [])


WATCH = "blowfish_fast/_support/compiler_watch.py"
TOLD = (
    "tests._support.test_compiler_watch"
    ".test_compiling_is_told_once_however_deep_it_goes"
)


def noted(folder: Path, ran: dict[str, dict[str, list[tuple[int, int]]]]) -> Path:
    """Write what coverage would have noted: the arcs of each file by test."""
    data = CoverageData(str(folder / "data"))
    for test, arcs in ran.items():
        data.set_context(test)
        data.add_arcs({str(ROOT / path): some for path, some in arcs.items()})
    data.write()
    return folder / "data"


@pytest.mark.long
def test_tests_of_the_whole_suite_are_found_by_what_coverage_noted(
    tmp_path: Path,
) -> None:
    found = mutants(ROOT / WATCH)
    (first,) = (one for one in found if one.before == "first = self._depth == 1")
    (after,) = (
        one for one in found if one.line > first.line and one.after == "tell is None"
    )
    data = noted(
        tmp_path,
        {
            "": {WATCH: [(-1, after.line)]},
            TOLD: {WATCH: [(-1, first.line), (first.line, after.line)]},
            "tests.test_docs.test_of_no_file": {WATCH: [(-1, after.line)]},
        },
    )
    own = TOLD.replace(".", "/").replace("/test_compiling", ".py::test_compiling")
    contexts = Contexts(data)
    assert contexts.tests_of(first) == [own]
    # The one that ran less comes first.
    assert contexts.tests_of(after) == ["tests/test_docs.py::test_of_no_file", own]
    # That one is not there any more. A line that nothing ran has its file's tests.
    fine = next(one for one in found if one.rule == "truth" and one.after == "True")
    outcome = try_noted([after, fine], data, 20.0)
    assert (outcome.tried, outcome.survivors, outcome.failed) == (2, [fine], [])


def test_what_is_outside_every_body_is_tried_by_what_uses_it(tmp_path: Path) -> None:
    name = "blowfish_fast/accounting/composition.py"
    text = (ROOT / name).read_text().splitlines()
    found = mutants(ROOT / name)
    (default,) = (one for one in found if "scoped: bool = False" in one.before)
    # No mutant of its own: its value is a power of two.
    constant = default._replace(line=_line(text, "MOST_WALKED ="))
    data = noted(
        tmp_path,
        {
            "tests.x.test_body": {name: [(-1, default.line + 15)]},
            "tests.x.test_use": {name: [(-1, _line(text, "> MOST_WALKED"))]},
            "tests.x.test_elsewhere": {WATCH: [(-1, 30)]},
        },
    )
    contexts = Contexts(data)
    assert contexts.tests_of(default) == ["tests/x.py::test_body"]
    assert contexts.tests_of(constant) == ["tests/x.py::test_use"]


def _line(text: list[str], part: str) -> int:
    return next(at for at, line in enumerate(text, 1) if part in line)
