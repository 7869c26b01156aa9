"""One server per folder: a lock that ends with the process that holds it.

Two servers over one folder would plan, count and log side by side, each with limits and
sessions of its own; the second is refused.
"""

from __future__ import annotations

import os
from pathlib import Path

from blowfish_fast.errors import InputError


class FolderLock:
    """Holds a folder until it is released or the process ends."""

    def __init__(self, folder: Path) -> None:
        path = folder / "lock"
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            import fcntl

            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            # Windows has no such locks; ledgers are locked by themselves.
            pass
        except OSError:
            os.close(self._handle)
            raise InputError(
                f"another server uses the folder {folder.name!r}",
                way_out="Stop it first, or name another --folder",
            ) from None
        os.ftruncate(self._handle, 0)
        os.write(self._handle, str(os.getpid()).encode())

    def release(self) -> None:
        """Let go of the folder."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
