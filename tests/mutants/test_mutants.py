"""The harness notices what it should, and its list of equivalents is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from .equivalents import accepted
from .rules import ROOT, mutants, mutated_tree
from .runner import files_with_tests, try_mutants

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


def test_a_dropped_check_of_the_ledger_is_noticed() -> None:
    unnamed = files_with_tests(ROOT / "blowfish_fast/_support/cores.py")
    assert "tests/privacy/test_walk.py" in unnamed
    check = "blowfish_fast/accounting/journal_file.py"
    dropped = [one for one in mutants(ROOT / check) if one.rule == "dropped check"]
    outcome = try_mutants(dropped[:2], files_with_tests(ROOT / check))
    assert (outcome.tried, outcome.survivors, outcome.failed) == (2, [], [])


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
