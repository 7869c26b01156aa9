"""``blowfish version``: what is installed here, as a report of a fault needs it."""

from __future__ import annotations

import platform

from blowfish_fast.apps.cli.options import Json
from blowfish_fast.apps.cli.printing import show

PACKAGES = (
    *("numpy", "numba", "llvmlite", "scipy", "rustworkx", "cryptography", "narwhals"),
    *("typer", "rich", "matplotlib", "pandas", "polars", "pyarrow"),
    *("ibis-framework", "duckdb", "fastapi"),
)


def run_version(json: Json = False) -> None:
    """Print the version; with --json all that a report needs."""
    found = _version_of("blowfish_fast")
    if not json:
        show(found)
        return
    show(
        {
            "version": found,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "packages": {name: _version_of(name) for name in PACKAGES},
        }
    )


def _version_of(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
