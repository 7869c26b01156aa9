"""What the compiler of the kernels is at: told when it begins, and timed."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from types import FunctionType
from typing import Any

from blowfish_fast._support.source_stamps import KERNELS, source_stamp


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
        self._plain_work, self._eager = 0, False
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

    @contextmanager
    def for_everything(self) -> Iterator[None]:
        """Compile whatever runs for a while, however little it has to do."""
        self._eager = True
        try:
            yield
        finally:
            self._eager = False

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

    def forgoes(self, work: int) -> bool:
        """Tell whether a piece of work is done sooner in plain Python, and note it.

        It is as long as all such pieces together take less than compiling would.

        Parameters
        ----------
        work : int
            Cells and queries together, or what else is public and tells how long it
            takes.

        Returns
        -------
        bool
            Whether to do without the compiler this time.
        """
        with self._lock:
            little = self._plain_work + work <= PLAIN_WORK
            plain = little and not self._eager
            self._plain_work += work if plain else 0
        return plain

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


PLAIN_WORK = 2**14
"""Cells and queries that plain Python tunes trees for in less time than the compiler
needs for these kernels."""
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
    """Tell whether kernels of a module, as it is now, lie where they are looked for.

    Parameters
    ----------
    module : str
        The module within the kernels, ``"tree_scaling.weight_sweeps"``.

    Returns
    -------
    bool
        Whether this Python compiled one of them from these sources: files of Numba
        begin with the stamp, which is read without the compiler. What a platform wheel
        brings counts too.
    """
    places = [KERNEL_FILES / "compiled", *_written_places()]
    stamp = source_stamp(f"{KERNELS}.{module}").encode()
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    pattern = f"{module.rpartition('.')[2]}.*.{python}*.nbi"
    files = (file for place in places for file in place.rglob(pattern))
    return any(_holds(file, stamp) for file in files)


KERNEL_FILES = Path(__file__).parents[1] / "kernels"
"""The folder of the kernels' sources; Numba keeps machine code beside them."""


def _written_places() -> list[Path]:
    """Return the folders that machine code is written to, the first that takes it."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return [Path(os.environ["NUMBA_CACHE_DIR"])]
    return [KERNEL_FILES, Path.home() / ".cache" / "numba"]


def can_keep_kernels() -> bool:
    """Tell whether what is compiled now is found on disk by the next process.

    Returns
    -------
    bool
        Whether one of the folders of machine code can be written to, or be made. A
        read-only one, as a container has it, keeps nothing.
    """
    for place in _written_places():
        there = next(held for held in (place, *place.parents) if held.exists())
        if os.access(there, os.W_OK):
            return True
    return False


def _holds(file: Path, stamp: bytes) -> bool:
    try:
        return stamp in file.read_bytes()
    except OSError:
        return False


@cache
def in_plain_python(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that `kernel` was compiled from, and all it calls, plain.

    Kernels that are run so by choice compute the same bits either way: sums in the
    order written, products in place of powers, nothing fused.

    Parameters
    ----------
    kernel : callable
        A kernel; plain Python stays as it is.

    Returns
    -------
    callable
        The same function without the compiler.

    Examples
    --------
    >>> from blowfish_fast.kernels.tree_scaling.weight_sweeps import (
    ...     optimal_share_within,
    ... )
    >>> in_plain_python(optimal_share_within)(0.0, 1.0, 1.0, 1.0)
    0.0
    """
    function: Any = getattr(kernel, "py_func", kernel)
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        if hasattr(names.get(name), "py_func"):
            names[name] = in_plain_python(names[name])
    return FunctionType(
        function.__code__, names, function.__name__, function.__defaults__
    )


def is_ready(kernel: Callable[..., Any]) -> bool:
    """Tell whether a kernel runs without being compiled first.

    Parameters
    ----------
    kernel : callable
        A kernel.

    Returns
    -------
    bool
        Whether it was compiled in this process, lies on disk, or is plain Python.
    """
    if not hasattr(kernel, "py_func"):
        return True
    dispatcher: Any = kernel
    return bool(dispatcher.signatures) or dispatcher._cache.holds_any()
