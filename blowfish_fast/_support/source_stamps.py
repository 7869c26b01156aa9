"""By which contents of files a compiled kernel is known, without loading any of them.

A stamp follows the file and every kernel file that it imports, and theirs. It is told
before the compiler is loaded, so that what lies on disk is not taken for compiled where
it was compiled from other sources.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

KERNELS = "blowfish_fast.kernels"
_ROOT = Path(__file__).parents[2]
_LOADER: Any = __spec__.loader


@cache
def source_stamp(name: str) -> str:
    """Return what changes whenever code that a module's kernels run changes.

    Parameters
    ----------
    name : str
        The full name of a module, which need not be loaded if it is a kernel file.

    Returns
    -------
    str
        A digest of its text and of those of all kernel files that it imports.

    Raises
    ------
    OSError
        If there is no such file.

    Examples
    --------
    >>> len(source_stamp("blowfish_fast.kernels.tree_scaling.weight_sweeps"))
    64
    """
    text, package = _text_and_package(name)
    stamp = hashlib.sha256(text)
    for statement in ast.parse(import_head(text)).body:
        if not isinstance(statement, ast.ImportFrom):
            continue
        home = "." * statement.level + (statement.module or "")
        room = resolve_name(home, package)
        for word in ("", *(imported.name for imported in statement.names)):
            part = f"{room}.{word}".rstrip(".")
            # What is no module of ours is a function, and has no file.
            with suppress(OSError):
                if part.startswith(KERNELS):
                    stamp.update(source_stamp(part).encode())
    return stamp.hexdigest()


def import_head(text: bytes) -> bytes:
    """Return a file up to the end of its last import; to parse the rest takes longer.

    No import holds an empty line, and none at the left edge follows the first kernel.

    Parameters
    ----------
    text : bytes
        What the file holds.

    Returns
    -------
    bytes
        Its beginning; nothing where it imports no names.
    """
    before, mark, last = (b"\n" + text).rpartition(b"\nfrom ")
    return before + mark + last.partition(b"\n\n")[0] if mark else b""


def _text_and_package(name: str) -> tuple[bytes, str]:
    """Read a module where it was loaded from, or where it would be."""
    module: Any = sys.modules.get(name)
    if module is not None:
        return module.__loader__.get_data(module.__file__), module.__package__
    path = _ROOT.joinpath(*name.split("."))
    try:
        return _LOADER.get_data(str(path.with_suffix(".py"))), name.rpartition(".")[0]
    except OSError:
        return _LOADER.get_data(str(path / "__init__.py")), name
