"""The installed version, read when it is asked for."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("blowfish_fast")
