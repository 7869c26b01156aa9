"""Where compiled kernels are kept: in the user's cache, and in a platform wheel.

::

    kernels/compiled/target.json           versions and processor it was made for
    kernels/compiled/ROOM/NAME.nbi, .nbc   files of Numba, only read

A kernel is known by the contents of its file and of every kernel file that it imports,
not by a date. What a wheel brings runs only with the Python, numpy, Numba and llvmlite
it was made with, on a processor that has every feature it was made for; anything else
is compiled. Files of a wheel are trusted as the modules beside them are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import caching, config

from blowfish_fast._support.source_stamps import source_stamp

SHIPPED = Path(__file__).with_name("compiled")
IN_TREE: Any = caching.CacheImpl._locator_classes[1]  # its name depends on the version


def versions() -> dict[str, Any]:
    """Return what machine code of a wheel must agree with, beside the processor."""
    return {
        "python": sys.implementation.cache_tag,
        "numpy": np.__version__.split(".")[0],
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "vector_math": config.USING_SVML,
    }


@cache
def shipped_target(host: tuple[str, str, str]) -> tuple[str, str, str] | None:
    """Return Numba's key of what a wheel was made for, if that may run on `host`."""
    try:
        stated = json.loads((SHIPPED / "target.json").read_text())
    except OSError:
        return None
    triple, processor, features = stated["target"]
    fits = set(filter(None, features.split(","))) <= set(host[2].split(","))
    same = triple == host[0] and stated["versions"] == versions()
    return (triple, processor, features) if fits and same else None


class _ReadOnlyFolder(IN_TREE):  # type: ignore[misc]
    """The last resort: nothing can be written, and a wheel's kernels are read."""

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Any:
        return cls(function, file) if Path(file).exists() else None


class _Results(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Compiled functions, without a copy of their source."""

    _locator_classes = (*caching.CacheImpl._locator_classes, _ReadOnlyFolder)

    def reduce(self, result: Any) -> Any:
        return super().reduce(result._replace(type_annotation=""))


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's cache on disk, with our stamp, after the kernels of a platform wheel."""

    _impl_class = _Results

    def __init__(self, function: Callable[..., Any], part: str = "") -> None:
        super().__init__(function)
        base, stamp = self._impl.filename_base + part, source_stamp(function.__module__)
        room = SHIPPED / Path(function.__code__.co_filename).parent.name
        self._cache_file = caching.IndexDataCacheFile(self.cache_path, base, stamp)
        self._shipped_file = caching.IndexDataCacheFile(str(room), base, stamp)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        signature, host, code = self._index_key(sig, target_context.codegen())
        target = shipped_target(host)
        found = target and self._shipped_file.load((signature, target, code))
        if found:
            return self._impl.rebuild(target_context, found)
        return super()._load_overload(sig, target_context)

    def holds_any(self) -> bool:
        """Tell whether the function lies on disk or in the wheel, for any arguments."""
        files = (self._cache_file, self._shipped_file)
        return any(file._load_index() for file in files)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save what can be saved: a full disk must not end a release."""
        with suppress(OSError):
            super().save_overload(sig, data)
