"""``blowfish version``: what is installed here, as a report of a fault needs it."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

from blowfish_fast.apps.cli.printing import show

PACKAGES = (
    *("numpy", "numba", "llvmlite", "scipy", "rustworkx", "cryptography", "narwhals"),
    *("typer", "rich", "matplotlib", "pandas", "polars", "pyarrow"),
    *("ibis-framework", "duckdb", "fastapi"),
)


def run_version(*, as_json: bool) -> None:
    """Print the version, or as JSON all versions that matter; null: not installed."""
    found = installed("blowfish_fast")
    if not as_json:
        show(found)
        return
    show(
        {
            "version": found,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "packages": {name: _installed(name) for name in PACKAGES},
        }
    )


def _installed(name: str) -> str | None:
    try:
        return installed(name)
    except PackageNotFoundError:
        return None
