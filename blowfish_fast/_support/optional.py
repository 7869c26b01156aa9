"""What loads on first use: names of our own packages, and optional dependencies."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import Any

from blowfish_fast._support.near_misses import missing_name
from blowfish_fast.errors import MissingExtraError


def attach(
    package: str,
    homes: Mapping[str, str],
    internal: Mapping[str, str] = MappingProxyType({}),
    guard: str = "",
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : str
        Full name of the package.
    homes : mapping of str to str
        From a module to the names that it gives, with spaces between them; an empty
        text stands for the module itself.
    internal : mapping of str to str
        The same for names that are reached alike and not public.
    guard : str
        ``"module:function"`` of the function that public functions go through before
        they are handed out.

    Returns
    -------
    getter : callable
        The package's ``__getattr__``; it hints at the nearest name where none fits.
    lister : callable
        Its ``__dir__``.
    public : list of str
        Its ``__all__``.
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
            raise AttributeError(missing_name(package, name, public))
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return public

    return __getattr__, __dir__, public


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or say which extra brings it.

    Parameters
    ----------
    module : str
        Full name of the module.
    extra : str
        The extra of this package that brings it.
    purpose : str
        What it is needed for; the message begins with it.

    Returns
    -------
    ModuleType
        The imported module.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise _missing(module, extra, purpose) from problem


def check_installed(module: str, *, extra: str, purpose: str) -> None:
    """Say which extra brings a package that is not there; load nothing.

    Parameters
    ----------
    module : str
        Full name of the module.
    extra : str
        The extra of this package that brings it.
    purpose : str
        What it is needed for; the message begins with it.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    if find_spec(module) is None:
        raise _missing(module, extra, purpose)


def _missing(module: str, extra: str, purpose: str) -> MissingExtraError:
    return MissingExtraError(
        f"{purpose} needs {module.split('.')[0]}, which is not installed; install it "
        f"with: pip install 'blowfish_fast[{extra}]'"
    )
