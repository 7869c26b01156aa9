"""Optional dependencies, imported on first use with a helpful refusal."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import ModuleType

from blowfish_fast.errors import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise _missing(module, extra, purpose) from problem


def check_installed(module: str, *, extra: str, purpose: str) -> None:
    """Say which extra brings a package that is not there; load nothing."""
    if find_spec(module) is None:
        raise _missing(module, extra, purpose)


def _missing(module: str, extra: str, purpose: str) -> MissingExtraError:
    return MissingExtraError(
        f"{purpose} needs {module.split('.')[0]}, which is not installed; install it "
        f"with: pip install 'blowfish_fast[{extra}]'"
    )
