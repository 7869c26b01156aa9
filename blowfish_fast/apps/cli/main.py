"""The root of the command line: panels, order of the commands, shared options.

    root.py  <--  release_group.py  answering_group.py  choosing_group.py  ...
                  each registers its commands here and imports their work when called
    application.py imports all groups, and so holds every command

Nothing heavy is imported to print a help page or to complete a word.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import completions
from .exit_codes import INTERRUPTED, say_interrupted

RELEASING = "Releasing"
CHOOSING = "Choosing"
BUDGET = "Budget"
TRUST = "Trust"
TOOLS = "Explorer and tools"
ORDER = (
    *("demo", "release", "explain", "answer"),
    *("recommend", "compare", "policy"),
    "ledger",
    *("audit", "experiment"),
    *("serve", "warmup", "version"),
)
"""The commands as the help page lists them; others follow by their own names."""


class Commands(TyperGroup):
    """All commands, in the order of `ORDER`; an interruption ends with one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, panel by panel."""
        found = list(self.commands)
        return sorted(
            found, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)
        )

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
        """Run a command; Ctrl-C is told in a line, not in a traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            say_interrupted(stop)
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

Json = Annotated[bool, typer.Option("--json", help="Print plain JSON.")]

Cells = Annotated[
    list[str],
    typer.Option(
        "--cells",
        "--domain",
        metavar="CELLS",
        help="The cells: 4096, 64x64, age=0:101:1, sex=categories:f,m, ...; repeated "
        "for each column.",
        show_default=False,
    ),
]
PolicyWords = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="What stays indistinguishable: full, add_remove, line, attribute, "
        "threshold:5, blocks:10, graph:FILE, product:line,full.",
        autocompletion=completions.policies,
        show_default=False,
    ),
]
WorkloadWords = Annotated[
    str,
    typer.Option(
        "--workload",
        metavar="WORKLOAD",
        help="What will be asked: identity, prefixes, all_ranges, total, ranges:2000, "
        "rectangles:FILE, marginals:age,sex.",
        autocompletion=completions.workloads,
        show_default=False,
    ),
]
Epsilon = Annotated[
    str,
    typer.Option(
        metavar="NUMBER", help="What one release may spend.", show_default=False
    ),
]
