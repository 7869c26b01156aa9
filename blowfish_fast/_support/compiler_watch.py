"""What the compiler of the kernels is at: told when it begins, and timed."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock


class CompilerWatch:
    """Seconds that went into compiling, who is told, and whether it is wanted at all.

    A process that runs one command (`alone`) may do without: loading takes longer.
    """

    def __init__(self) -> None:
        self.tell: Callable[[], None] | None = None
        self.alone, self.wanted = False, True
        self._depth, self._since, self._spent = 0, 0.0, 0.0
        self._collects = True
        self._silences = 0
        self._lock = Lock()

    @property
    def seconds(self) -> float:
        """All that was spent since the process began."""
        with self._lock:
            running = time.perf_counter() - self._since if self._depth else 0.0
            return self._spent + running

    @contextmanager
    def in_silence(self) -> Iterator[None]:
        """Tell nobody for a while: what is compiled may depend on a private choice."""
        with self._lock:
            self._silences += 1
        try:
            yield
        finally:
            with self._lock:
                self._silences -= 1

    def spare(self, little: bool) -> None:
        """Do without the compiler if one command is all, and there is little to do.

        Parameters
        ----------
        little : bool
            Whether plain Python is done before the compiler would be loaded, or would
            have compiled. It is decided by public facts and sizes of files, before any
            kernel is loaded: later it changes nothing.
        """
        if self.alone:
            self.wanted = not little

    def begin(self) -> None:
        """Note that a function is being compiled; those it calls are inside it."""
        with self._lock:
            self._depth += 1
            first = self._depth == 1
            if first:
                self._since = time.perf_counter()
                # Compiling makes many objects and little garbage.
                self._collects = gc.isenabled()
                gc.disable()
            tell = None
            if first and not self._silences:
                tell, self.tell = self.tell, None
        if tell is not None:
            tell()

    def end(self) -> None:
        """Note that it is done."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._spent += time.perf_counter() - self._since
                if self._collects:
                    gc.enable()


COMPILER = CompilerWatch()
SHORT_FILE = 2**15
"""Bytes of a saved release that is asked, drawn and explained in plain Python."""
SHORT_TABLE = 2**20
"""Bytes of a table that is counted in plain Python, if its cells are few."""


def is_short(path: str | Path, most: int) -> bool:
    """Tell whether a file is there and has at most so many bytes.

    Parameters
    ----------
    path : str or Path
        Where it would be.
    most : int
        The greatest number of bytes.

    Returns
    -------
    bool
        Whether it is a file and short; what is no file (an address) is not.
    """
    try:
        return Path(path).is_file() and Path(path).stat().st_size <= most
    except (OSError, ValueError):
        return False


def compiled_before(module: str) -> bool:
    """Tell whether compiled kernels of a module lie where they are looked for."""
    ours, named = Path(__file__).parents[1] / "kernels", "NUMBA_CACHE_DIR"
    usual = [ours, Path.home() / ".cache" / "numba"]
    places = (
        [ours / "compiled", Path(os.environ[named])] if named in os.environ else usual
    )
    return any(True for place in places for _ in place.rglob(f"{module}.*.nbi"))
