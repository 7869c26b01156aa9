"""The command line: words into calls."""

from __future__ import annotations


def main() -> None:
    """Run the ``blowfish`` command; deliberate errors end without a traceback."""
    import sys

    from ..errors import BlowfishError
    from .application import application

    try:
        application()
    except BlowfishError as problem:
        from rich.console import Console

        Console(stderr=True).print(f"[bold red]refused:[/] {problem}", highlight=False)
        sys.exit(2)


__all__ = ["main"]
