"""How commands end: codes for programs, a line for people, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
import typer

from blowfish_fast import errors
from blowfish_fast.apps.cli import exit_codes
from blowfish_fast.apps.cli.exit_codes import report_error
from blowfish_fast.apps.cli.main import Commands, application, run, run_command


def typed(capsys, *words):
    """Return exit code, output and error output of a command."""
    code = run_command(words)
    found = capsys.readouterr()
    return code, found.out, found.err


def failing(monkeypatch, problem):
    """Let `blowfish version` raise this."""

    def fail(_):
        raise problem

    monkeypatch.setattr("blowfish_fast.apps.cli.commands.warmup.show", fail)


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (errors.InputError("the rule"), 2),
        (errors.LedgerError("the rule"), 2),
        (errors.BudgetError("the rule"), 3),
        (errors.MissingExtraError("the rule"), 4),
        (FileNotFoundError(2, "the rule", "some.csv"), 2),
        (MemoryError(), 2),
        (ZeroDivisionError("the rule"), 5),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else str(one),
)
def test_each_error_has_its_code_and_no_traceback(capsys, monkeypatch, problem, code):
    monkeypatch.delenv(exit_codes.TRACEBACK, raising=False)
    failing(monkeypatch, problem)
    found, out, err = typed(capsys, "version")
    assert found == code
    assert out == ""
    assert "the rule" in err or "memory" in err
    assert "Traceback" not in err
    found, out, err = typed(capsys, "version", "--json")
    assert (found, out) == (code, "")
    plain = json.loads(err)
    assert plain["exit_code"] == code
    assert plain["error"]["kind"] == type(problem).__name__
    assert plain["error"]["message"]


def test_a_fault_says_how_to_see_where_it_arose(capsys, monkeypatch):
    failing(monkeypatch, RuntimeError("surprise"))
    monkeypatch.delenv(exit_codes.TRACEBACK, raising=False)
    _, _, err = typed(capsys, "version")
    assert "BLOWFISH_TRACEBACK=1" in err
    assert "blowfish version --json" in err
    monkeypatch.setenv(exit_codes.TRACEBACK, "1")
    code, _, err = typed(capsys, "version")
    assert code == 5
    assert "Traceback" in err
    assert "surprise" in err


def test_what_was_noted_on_the_way_up_is_told(capsys):
    problem = errors.BudgetError("too much.")
    problem.add_note("eps = 1 is charged")
    assert report_error(problem, as_json=False) == 3
    assert "too much. eps = 1 is charged" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["nothing"], ["demo", "--colour"], ["answer"]])
def test_words_that_are_not_understood_end_with_2(capsys, words):
    code, out, err = typed(capsys, *words)
    assert code == 2
    assert out == ""
    assert "blowfish" in err
    code, out, err = typed(capsys, *words, "--json")
    assert code == 2
    assert json.loads(err)["exit_code"] == 2


def test_a_check_that_found_something_ends_with_1(capsys, tmp_path):
    code, _, _ = typed(capsys, "ledger", "verify", str(tmp_path / "none"))
    assert code == 1
    code, out, _ = typed(capsys, "ledger", "verify", str(tmp_path / "none"), "--json")
    assert code == 1
    assert json.loads(out)["intact"] is False


def test_an_interruption_is_one_line(capsys, monkeypatch):
    stop = KeyboardInterrupt()
    stop.add_note("run the same command to continue")
    failing(monkeypatch, stop)
    code, out, err = typed(capsys, "version")
    assert (code, out) == (130, "")
    assert err == "interrupted. run the same command to continue\n"
    code, _, err = typed(capsys, "version", "--json")
    assert code == 130


def test_an_interrupted_audit_says_how_to_go_on(capsys, monkeypatch, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("blowfish_fast.audit.walk.audit_everything", stop)
    code, _, err = typed(capsys, "audit", "--quick", "--out", str(tmp_path))
    assert code == 130
    assert "run the same command to continue" in err


@pytest.mark.long
@pytest.mark.parametrize("kept", [signal.SIG_DFL, signal.SIG_IGN])
def test_ctrl_c_reaches_a_running_command(kept):
    # The signal comes from inside the command, so it is running however slow we are.
    # A parent in the background ignores it, and its children inherit that.
    code = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from blowfish_fast.apps.cli.commands import warmup\n"
        "from blowfish_fast.apps.cli.main import run_command\n"
        "def work(_):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "warmup.show = work\n"
        "sys.exit(run_command(['version']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=lambda: signal.signal(signal.SIGINT, kept),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.stderr


def test_ctrl_c_is_answered_while_words_are_read(capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Commands, "parse_args", stop)
    code, out, err = typed(capsys, "version")
    assert (code, out, err) == (130, "", "interrupted\n")


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="there are no such pipes")
@pytest.mark.parametrize("words", [["--help"], ["version"], ["version", "--json"]])
def test_a_closed_pipe_ends_quietly(words):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "blowfish_fast", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert done.stderr == ""


def test_the_command_and_the_module_are_one():
    from importlib.metadata import entry_points

    (command,) = entry_points(group="console_scripts", name="blowfish")
    assert command.load() is run
    done = subprocess.run(
        [sys.executable, "-m", "blowfish_fast", "version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.strip()[0].isdigit()


def test_exits_of_commands_keep_their_code(capsys, monkeypatch):
    failing(monkeypatch, typer.Exit(7))
    assert typed(capsys, "version")[0] == 7
    assert typed(capsys, "version", "--json")[0] == 7
    assert application.info.name == "blowfish"
