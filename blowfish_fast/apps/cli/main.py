"""The ``blowfish`` command: its commands by panel, and how it runs and ends.

A command is a function in ``commands/NAME.py``, or a group of them. Nothing heavy is
imported to print a help page or to complete a word: a command imports its work when it
is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup

from blowfish_fast._support.compiler_watch import COMPILER

from .commands.answer import run_answer
from .commands.audit import run_audit
from .commands.backup import run_backup, run_restore
from .commands.certify import run_certify
from .commands.compare import run_compare
from .commands.demo import run_demo
from .commands.draw import run_draw
from .commands.experiment import run_experiment
from .commands.explain import run_explain
from .commands.ledger import ledger
from .commands.policy import policy
from .commands.recommend import run_recommend
from .commands.release import run_release
from .commands.report import run_report
from .commands.serve import run_serve
from .commands.version import run_version
from .commands.warmup import run_warmup
from .exit_codes import (
    DONE,
    INTERRUPTED,
    PIPE_CLOSED,
    report_error,
    report_interruption,
)

PANELS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Releasing": {
        "demo": run_demo,
        "release": run_release,
        "explain": run_explain,
        "answer": run_answer,
        "certify": run_certify,
        "draw": run_draw,
        "report": run_report,
    },
    "Choosing": {"recommend": run_recommend, "compare": run_compare, "policy": policy},
    "Budget": {"ledger": ledger},
    "Trust": {"audit": run_audit, "experiment": run_experiment},
    "Explorer and tools": {
        "serve": run_serve,
        "backup": run_backup,
        "restore": run_restore,
        "warmup": run_warmup,
        "version": run_version,
    },
}
"""Every command, in the order of the help page."""
ORDER = [name for commands in PANELS.values() for name in commands]


class Commands(TyperGroup):
    """All commands, in the order of `ORDER`; an interruption ends with one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, panel by panel."""
        return ORDER

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, its switches without a word for a value.

        typer would print ``--dry-run <bool>``, and whoever follows that and types
        ``--dry-run true`` names a job file.
        """
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            _switch_plainly(found, ctx)
        return found

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl-C is reported in a line, not in a traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            report_interruption(stop)
            raise typer.Exit(INTERRUPTED) from None


def _switch_plainly(command: Any, ctx: Any) -> None:
    for option in [*command.params, command.get_help_option(ctx)]:
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        _switch_plainly(inner, ctx)


application = typer.Typer(
    name="blowfish",
    cls=Commands,
    help="Private histograms, range counts and maps under Blowfish policies.",
    epilog="Start with: blowfish demo. Every command takes --help and --json.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
for _panel, _commands in PANELS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            application.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            application.command(_name, rich_help_panel=_panel)(_command)


def run() -> None:
    """Run the ``blowfish`` command and end with its exit code; see ``exit_codes``."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(words: Sequence[str]) -> int:
    """Run the command that the words name, and return its exit code."""
    as_json = "--json" in words
    COMPILER.tell = None if as_json else _say_compiling
    _take_named_shell(words)
    try:
        # For programs, wrong words are reported as JSON; for people, in typer's box.
        code = application(
            args=list(words), prog_name="blowfish", standalone_mode=not as_json
        )
        sys.stdout.flush()
    except SystemExit as end:
        # typer turns a closed pipe into the code of a failed check.
        if isinstance(end.__context__, BrokenPipeError):
            _discard_output()
            return PIPE_CLOSED
        # While words are read, typer hears Ctrl-C itself, and says nothing.
        unsaid = getattr(end.__context__, "__cause__", None)
        if isinstance(unsaid, KeyboardInterrupt):
            report_interruption(unsaid)
            return INTERRUPTED
        return _flush(end.code if isinstance(end.code, int) else DONE)
    except KeyboardInterrupt as stop:
        report_interruption(stop)
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    except Exception as problem:
        return report_error(problem, as_json=as_json)
    return code if isinstance(code, int) else DONE


def _say_compiling() -> None:
    """Say why the first command takes longer, on a terminal and off it."""
    from .printing import remark

    remark("compiling, once: later commands start at once (`blowfish warmup` does all)")


def _take_named_shell(words: Sequence[str]) -> None:
    """Let a shell that is named count; typer would look for one above the process.

    There is none in a container, in a timed job or behind a service.
    """
    asked = ("--install-completion", "--show-completion")
    for option, shell in pairwise(words):
        if option in asked and not shell.startswith("-"):
            os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"


def _flush(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    return code


def _discard_output() -> None:
    """Point the output nowhere, so that the interpreter's last flush is quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
