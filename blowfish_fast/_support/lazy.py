"""Public names of a package that load on first use.

Serves the package itself, ``kernels`` and ``explorer``: one table from module to
names, and a stub (``__init__.pyi``) beside it that says the same to type checkers.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

NOTHING: dict[str, str] = {}


def attach(
    package: str,
    homes: Mapping[str, str],
    internal: Mapping[str, str] = NOTHING,
    guard: str = "",
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping
        From a module below the package to the names that it gives, with spaces
        between them; an empty text stands for the module itself, by its last name.
    internal : mapping
        The same for names that the package uses itself: reached alike, not public.
    guard : str
        Module and function, ``"module:function"``, through which public functions are
        handed out.
    """
    modules = {home.rpartition(".")[2]: home for home, names in homes.items()
               if not names}  # fmt: skip
    attributes = {name: home for home, names in homes.items() for name in names.split()}
    public = sorted({*modules, *attributes} - {"__version__"})
    for home, names in internal.items():
        attributes |= dict.fromkeys(names.split(), home)
        if not names:
            modules[home.rpartition(".")[2]] = home

    def __getattr__(name: str) -> Any:
        if name in modules:
            value: Any = importlib.import_module(f"{package}.{modules[name]}")
        elif name in attributes:
            home = importlib.import_module(f"{package}.{attributes[name]}")
            value = getattr(home, name)
            if guard and name in public and not isinstance(value, type):
                module, _, function = guard.partition(":")
                home = importlib.import_module(f"{package}.{module}")
                value = getattr(home, function)(value)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return public

    return __getattr__, __dir__, public
