"""Optional dependencies, imported on first use with a helpful refusal."""

from __future__ import annotations

import importlib
from types import ModuleType

from blowfish_fast.errors import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise MissingExtraError(
            f"{purpose} needs {module.split('.')[0]}, which is not installed; "
            f"install it with: pip install 'blowfish_fast[{extra}]'"
        ) from problem
