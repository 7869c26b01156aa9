"""The installed version, read when it is asked for."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("blowfish_fast")
except PackageNotFoundError:
    __version__ = "unknown"
