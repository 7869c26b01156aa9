"""The command line as a whole: help pages, completion, weight."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
import typer
from rich.text import Text
from typer.main import get_command
from typer.testing import CliRunner

from blowfish_fast.apps.cli import main, options
from blowfish_fast.apps.cli.main import (
    OPTIONS_ELSEWHERE,
    ORDER,
    PANELS,
    application,
    load_command,
    run_command,
    sentence_of,
)
from blowfish_fast.apps.cli.plain_words import PlainWords, plain_switches
from blowfish_fast.mechanisms.registry import (
    LIST_MECHANISMS,
    MECHANISMS,
    RHO_LIST_MECHANISMS,
    RHO_MECHANISMS,
    TABLE_MECHANISMS,
)

HEAVY = ("numba", "scipy", "matplotlib", "pandas", "ibis", "numpy")


def leaves(command, path=()):
    """Return every command that does something, by its words."""
    below = getattr(command, "commands", None)
    if not below:
        return {path: command}
    found = {}
    for name, one in below.items():
        found.update(leaves(one, (*path, name)))
    return found


COMMANDS = {
    path: one
    for name in ORDER
    for path, one in leaves(load_command(name), (name,)).items()
}


@pytest.mark.parametrize("name", ORDER)
def test_the_first_page_says_of_each_command_what_its_own_page_says(name):
    sentence = sentence_of(name)
    assert sentence.endswith(".")
    assert " ".join(load_command(name).help.split()).startswith(sentence)


@pytest.mark.long
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_speaks_json_and_explains_itself(path):
    options = {name for one in COMMANDS[path].params for name in one.opts}
    assert "--json" in options
    done = CliRunner().invoke(application, [*path, "--help"], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    assert max(map(len, done.output.splitlines())) <= 80
    for one in COMMANDS[path].params:
        assert getattr(one, "help", None), one.name
        # A word in brackets that nobody escaped is taken for markup, and vanishes.
        assert Text.from_markup(one.help).plain == one.help.replace("\\[", "[")


def test_the_help_page_is_grouped():
    done = CliRunner().invoke(application, ["--help"], env={"COLUMNS": "80"})
    places = [done.output.find(f"\n{panel}:\n") for panel in PANELS]
    assert -1 not in places
    assert places == sorted(places)


def test_help_and_completion_load_nothing_heavy():
    code = (
        "import sys\n"
        "from blowfish_fast.apps.cli.main import run_command\n"
        "assert run_command(['--help']) == 0\n"
        "assert run_command(['compare', '--help']) == 0\n"
        f"print([one for one in {HEAVY!r} if one in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    # The package itself may bring numpy, as `import blowfish_fast` does.
    assert done.stderr.strip() in ("[]", "['numpy']")


def completed(words):
    """Return what bash would offer after these words."""
    asked = {
        "_BLOWFISH_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "blowfish_fast"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.split()


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["blowfish", "re"], ["release", "report", "recommend"]),
        (["blowfish", "ledger", "h"], ["history"]),
        (["blowfish", "audit", "--mechanism", "ord"], ["ordered"]),
        (["blowfish", "compare", "--policy", "thr"], ["threshold:"]),
        (["blowfish", "release", "--workload", "id"], ["identity"]),
    ],
    ids=lambda one: one[-1],
)
def test_the_shell_completes_words(words, offered):
    assert completed(words)[: len(offered)] == offered


@pytest.mark.long
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_the_shell_that_is_named_is_printed(shell):
    done = subprocess.run(
        [sys.executable, "-m", "blowfish_fast", "--show-completion", shell],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "_BLOWFISH_COMPLETE" in done.stdout
    marks = {"bash": "COMPREPLY", "zsh": "#compdef", "fish": "--command blowfish"}
    assert [name for name in marks if marks[name] in done.stdout] == [shell]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--show-completion", "bash"], True),
        (["--show-completion"], False),
        (["--show-completion", "--json"], False),
        (["release", "job.toml"], False),
    ],
)
def test_a_shell_that_is_named_is_not_looked_for(monkeypatch, words, told):
    monkeypatch.setattr(main.os, "environ", found := {})
    main._take_named_shell(words)
    assert bool(found) == told


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_completion_is_installed_and_works_in_bash(tmp_path):
    home = {**os.environ, "HOME": str(tmp_path)}
    words = [sys.executable, "-m", "blowfish_fast", "--install-completion", "bash"]
    subprocess.run(words, env=home, capture_output=True, check=True)
    (script,) = tmp_path.rglob("blowfish.sh")
    command = tmp_path / "blowfish"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m blowfish_fast "$@"\n')
    command.chmod(0o755)
    typed = (
        f"source '{script}'; PATH='{tmp_path}':$PATH; COMP_WORDS=(blowfish led); "
        'COMP_CWORD=1; _blowfish_completion blowfish; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", typed], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "ledger"


def test_offers_are_what_there_is():
    offered = {name for name, _ in options.offer_mechanisms("")}
    assert offered == {*MECHANISMS, *RHO_MECHANISMS, *TABLE_MECHANISMS}
    # No command lists heavy cells, so none of those mechanisms is offered to one.
    assert offered.isdisjoint({*LIST_MECHANISMS, *RHO_LIST_MECHANISMS})
    for offers in (options.offer_policies(""), options.offer_workloads("")):
        assert all(about for _, about in offers)


def test_offered_policies_and_workloads_are_understood():
    from blowfish_fast.apps.cli.parsing.policy import NEIGHBOURS, PLAIN_POLICIES
    from blowfish_fast.apps.cli.parsing.workload import PLAIN_WORKLOADS

    plain = {name for name, _ in options.offer_policies("") if not name.endswith(":")}
    assert plain == {*PLAIN_POLICIES, NEIGHBOURS}
    plain = {name for name, _ in options.offer_workloads("") if not name.endswith(":")}
    assert plain == set(PLAIN_WORKLOADS)


def test_modules_of_the_folder_are_found_only_where_one_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", before := list(sys.path))
    for named in (None, [], ["laplace"]):
        options.look_here_for(named)
        assert str(tmp_path) not in sys.path
    for _ in range(2):
        options.look_here_for(["laplace", "own:Class"])
    assert sys.path.count(str(tmp_path)) == 1
    assert sys.path is before


def test_typer_keeps_the_reader_of_an_option_where_plain_words_put_theirs():
    """If this fails: a new typer; look at apps/cli/plain_words.py."""
    application = typer.Typer(add_completion=False)
    application.command()(lambda name="nobody": None)
    (option,) = plain_switches(get_command(application).params)
    reader = option.get_runtime_param()
    assert isinstance(reader, PlainWords)
    assert reader.option is option


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("answer --median", "--quantile 0.5"),
        ("answer --total", "--sum"),
        ("release --file", "--data"),
        # What a command does not have is not named.
        ("schema --median", None),
    ],
)
def test_options_that_other_programs_call_otherwise_are_named(typed, named, capfd):
    assert run_command(typed.split()) == 2
    said = capfd.readouterr().err
    assert "No such option" in said
    assert (f"(Possible options: {named})" in said) is (named is not None)


def test_every_option_that_is_named_exists_somewhere():
    options = {
        name
        for command in ORDER
        for option in load_command(command).params
        for name in option.opts
    }
    assert {here.split(" ")[0] for here in OPTIONS_ELSEWHERE.values()} <= options
    assert not options & set(OPTIONS_ELSEWHERE)
