"""The command line: words into calls."""

from __future__ import annotations


def main() -> None:
    """Run the ``blowfish`` command and end with its exit code; see ``endings``."""
    import sys

    from .running import ended

    sys.exit(ended(sys.argv[1:]))


__all__ = ["main"]
