"""The ``blowfish`` command: its commands by panel, and how it runs and ends.

A command is ``run_NAME`` in ``commands/NAME.py`` (`HOMES` lists the others), or a group
of that name there. It is imported when it is typed: help and completion stay fast.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from blowfish_fast._support.compiler_watch import COMPILER

from .exit_codes import (
    DONE,
    INTERRUPTED,
    PIPE_CLOSED,
    REFUSED,
    report_error,
    report_interruption,
)
from .plain_words import plain_switches, switch_plainly

PANELS = {
    "Releasing": {
        "demo": (
            "Release a made-up map of 2^20 cells several times: "
            "error, time and promise."
        ),
        "release": (
            "Release a table privately: what is secret, "
            "what is asked, what it may cost."
        ),
        "start": "Draft a job file from the header of a file and a public code book.",
        "first-look": "Look once at every column of a file, charged once.",
        "next": "Release the next month, week or day from the same job.",
        "explain": (
            "Say in plain words what a job, a release or a mechanism means. Free."
        ),
        "answer": "Ask a saved release, with intervals. Free.",
        "certify": (
            "Find out how far a release is off the truth, for a little more budget."
        ),
        "draw": "Draw a saved release, the errors of many tables, or a series. Free.",
        "report": "Write one page: promise, picture, table, accuracy. Free.",
    },
    "Choosing": {
        "recommend": "Say which mechanism to use, and why.",
        "compare": "Predict the error of every mechanism, best first. Free.",
        "translate": (
            "Say which epsilon gives which accuracy, before any data is read. Free."
        ),
        "policy": "Say or draw what a policy keeps indistinguishable.",
        "persons": (
            "Choose how many records of a person to count; "
            "with --up-to, say what that loses."
        ),
    },
    "Budget": {
        "ledger": "Open a budget, see what is left, and check its chain.",
    },
    "Trust": {
        "audit": "Check every promise of every mechanism; code 1: one is broken.",
        "experiment": "Compare mechanisms by their error on data that are not secret.",
    },
    "Explorer and tools": {
        "serve": "Serve the explorer to a curator and analysts.",
        "backup": "Copy a server's folder, ledgers and all, while the server runs.",
        "restore": "Make a server's folder from a backup, after checking all of it.",
        "schema": (
            "Print the JSON Schema of job files, of the explorer's tables, or of "
            "entries."
        ),
        "warmup": "Compile what every mechanism needs: later calls start at once.",
        "version": "Print the version; with --json all that a report needs.",
    },
}
"""Every command by panel, in the order of the help page, with the first sentence of its
own page. It stands here so that the first page imports no command; a test holds the two
against each other.
"""
HOMES = {
    "first-look": "first_look",
    "recommend": "compare",
    "report": "draw",
    "backup": "serve",
    "restore": "serve",
    "schema": "warmup",
    "version": "warmup",
}
"""Modules of the commands that share one."""
ONE_COMMAND, WHOLE_WARMUP = "10 to 30 s of a core", "two minutes of a core"
"""How long the kernels of one command, and those of all, take to compile."""
OPTIONS_ELSEWHERE = {
    "--average": "--mean",
    "--avg": "--mean",
    "--median": "--quantile 0.5",
    "--total": "--sum",
    "--stddev": "--std",
    "--filter": "--where",
    "--groupby": "--by",
    "--group-by": "--by",
    "--eps": "--epsilon",
    "--file": "--data",
    "--input": "--data",
    "--output": "--out",
    "--plot": "--picture",
}
"""What options are called that other programs call otherwise."""
YOUNG_OBJECTS = 200_000
"""New objects between two searches for garbage."""
ORDER = [name for commands in PANELS.values() for name in commands]


def sentence_of(name: str) -> str:
    """Return what a command does, as the first help page says it; none is loaded."""
    return next(commands[name] for commands in PANELS.values() if name in commands)


def load_command(name: str) -> Any:
    """Return a command with its options, its switches without a word for a value.

    Whoever followed typer's ``--dry-run <bool>`` would name a job file "true".
    """
    home = import_module(f"{__package__}.commands.{HOMES.get(name, name)}")
    function = getattr(home, f"run_{name.replace('-', '_')}", None)
    application = typer.Typer(add_completion=False)
    if function is None:
        application = getattr(home, name)
    else:
        application.command(name)(function)
    command = get_command(application)
    switch_plainly(command)
    return command


@contextmanager
def _end_plainly() -> Iterator[None]:
    """Turn Ctrl-C and a closed pipe into exit codes, before typer sees them."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt as stop:
        report_interruption(stop)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The interpreter's last flush goes nowhere, too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from None


class Commands(TyperGroup):
    """All commands, panel by panel; the first page is plain, and there at once."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and sentences of the commands.

        Parameters
        ----------
        ctx : Context
            Typer's context; not used.
        formatter : HelpFormatter
            It takes a section for each panel.
        """
        for panel, commands in PANELS.items():
            with formatter.section(panel):
                formatter.write_dl(
                    [(name, self.commands[name].help) for name in commands]
                )

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the first help page."""
        return plain_switches(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is typed, loaded.

        Parameters
        ----------
        ctx : Context
            Typer's context.
        args : list of str
            The words that were typed.

        Returns
        -------
        tuple
            The name of the command, the command (None if there is none), and the
            other words.
        """
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if command is None else load_command(str(name)), rest

    def make_context(self, *words: Any, **more: Any) -> Any:
        """Read the words; help pages are printed here.

        Parameters
        ----------
        *words : object
            What typer passes; it goes on unchanged.
        **more : object
            The same, by name.

        Returns
        -------
        Context
            Typer's context.
        """
        with _end_plainly():
            return super().make_context(*words, **more)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _end_plainly():
            return super().invoke(ctx)


application = typer.Typer(
    name="blowfish",
    cls=Commands,
    help="Private histograms, range counts and maps under Blowfish policies.",
    epilog="Start with: blowfish demo. Every command takes --help and --json.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _name in ORDER:
    application.command(_name, help=sentence_of(_name))(lambda: None)


def run() -> None:
    """Run the ``blowfish`` command and end with its exit code; see ``exit_codes``."""
    COMPILER.alone = True
    # Importing makes many objects and little garbage: no need to search them often.
    gc.set_threshold(YOUNG_OBJECTS)
    code = run_command(sys.argv[1:])
    # The interpreter would look for garbage among all that was imported, several times.
    gc.freeze()
    sys.exit(code)


def run_command(words: Sequence[str]) -> int:
    """Run the command that the words name, and return its exit code."""
    as_json = "--json" in words
    COMPILER.tell = None if as_json else partial(_say_compiling, [*words[:1]])
    _take_named_shell(words)
    try:
        code = application(
            args=list(words), prog_name="blowfish", standalone_mode=False
        )
    except Exception as problem:
        _name_option(problem)
        if hasattr(problem, "show") and not as_json:
            problem.show()
            return REFUSED
        return report_error(problem, as_json=as_json)
    return code if isinstance(code, int) else DONE


def _name_option(problem: Any) -> None:
    """Name the option of this command that another program calls as it was typed."""
    here = OPTIONS_ELSEWHERE.get(getattr(problem, "option_name", ""), "")
    command = getattr(getattr(problem, "ctx", None), "command", None)
    options = {
        name for option in getattr(command, "params", []) for name in option.opts
    }
    if here.split(" ")[0] in options:
        problem.possibilities = [here]


def _say_compiling(command: Sequence[str]) -> None:
    """Say why a first command takes longer, and how long, on a terminal and off it."""
    from .printing import remark

    if "warmup" in command:
        remark(f"compiling every kernel, once: {WHOLE_WARMUP}")
        return
    remark(
        f"compiling kernels, once: {ONE_COMMAND}; later commands of this kind start at "
        f"once (`blowfish warmup` compiles all of them, {WHOLE_WARMUP})"
    )


def _take_named_shell(words: Sequence[str]) -> None:
    """Take the shell that is named; typer would look for one and may find none."""
    asked = ("--install-completion", "--show-completion")
    for option, shell in pairwise(words):
        if option in asked and not shell.startswith("-"):
            os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
