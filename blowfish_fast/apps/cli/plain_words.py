"""The one place that uses private names of typer: how options read what was typed.

Typer reads options with pydantic, which takes longer to load than many a command runs.
So options of texts and paths read them here, and leave everything else to typer. That
needs ``_runtime_param``, where an option of typer keeps its reader, and
``get_runtime_param``, which makes it. Tried with typer 0.29; a test says so when an
option keeps its reader elsewhere (`tests/apps/cli/test_application.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import typer


class PlainWords(NamedTuple):
    """Reads what was typed for an option: for texts and paths without pydantic.

    To load it takes typer longer than many a command; see `load_command`.
    """

    option: Any

    def coerce(self, value: Any, **more: Any) -> Any:
        """Return the value of the option; typer reads numbers, and whatever else.

        Parameters
        ----------
        value : object
            What was typed.
        **more : object
            What typer passes on to its own reader.

        Returns
        -------
        object
            The value for the command.
        """
        kind = self.option.type_descriptor.annotation
        if value is None:
            return () if self.option.multiple else None
        if kind in (str, Path) or kind == list[str]:
            return list(value) if kind == list[str] else kind(value)
        if isinstance(kind, type) and isinstance(value, kind):
            return value
        self.option._runtime_param = None
        return self.option.get_runtime_param().coerce(value, **more)


def switch_plainly(command: Any) -> None:
    """Let a command, and those inside it, read words plainly and show switches so."""
    plain_switches([*command.params, command.get_help_option(typer.Context(command))])
    for inner in getattr(command, "commands", {}).values():
        switch_plainly(inner)


def plain_switches(options: list[Any]) -> list[Any]:
    """Return options that read words plainly; a switch shows no word for a value."""
    for option in options:
        option._runtime_param = PlainWords(option)
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""
    return options
