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


def compiled_before(module: str) -> bool:
    """Tell whether compiled kernels of a module lie where they are looked for."""
    ours, named = Path(__file__).parents[1] / "kernels", "NUMBA_CACHE_DIR"
    usual = [ours, Path.home() / ".cache" / "numba"]
    places = (
        [ours / "compiled", Path(os.environ[named])] if named in os.environ else usual
    )
    return any(True for place in places for _ in place.rglob(f"{module}.*.nbi"))
