"""Tables of a job file in the words that a flag would take."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blowfish_fast.errors import InputError

from .spelling import KNOWN_TOTALS, names_a_file


def are_texts(value: Any) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def beside(folder: Path, name: str) -> str:
    """Return the path of a file that a job names; addresses stay as they are."""
    if "://" in name or name == "demo" or folder == Path():
        return name
    return str(folder / name)


def domain_words(stated: Mapping[str, Any], folder: Path) -> list[str]:
    """Return the cells of each column as --domain takes them."""
    plain = stated.get("cells")
    if len(stated) == 1 and isinstance(plain, int | str) and "=" not in str(plain):
        return [str(plain)]
    return [_column(name, cells, folder) for name, cells in stated.items()]


def _column(name: str, cells: Any, folder: Path) -> str:
    if isinstance(cells, list) and cells:
        if are_texts(cells):
            if any("," in one for one in cells):
                raise InputError(
                    f"categories of {name!r} hold a comma; list them in a file, one "
                    f'per line: {name} = "categories:@FILE"'
                )
            return f"{name}=categories:{','.join(cells)}"
        if all(_is_cut(one) for one in cells):
            return f"{name}=edges:{','.join(str(one) for one in cells)}"
    if isinstance(cells, str) and cells:
        kind, at, file = cells.partition("@")
        return f"{name}={kind}{at}{beside(folder, file)}" if at else f"{name}={cells}"
    if isinstance(cells, int) and not isinstance(cells, bool):
        return f"{name}={cells}"
    raise InputError(
        f'the cells of {name!r} in [domain] are "0:101:1", a list of categories, a '
        f"list of edges, or a number of cells; received {cells!r}"
    )


def _is_cut(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number or type(value) is datetime.date


def policy_words(stated: Mapping[str, Any], folder: Path) -> str | None:
    """Return a policy as --policy takes it; None where none is stated."""
    if not stated:
        return None
    known = stated.get("known", ())
    words = _words(
        stated,
        "policy",
        folder,
        [str(stated[name]) for name in ("theta", "size") if name in stated]
        + [str(stated[name]) for name in ("unit", "metric") if name in stated]
        + ([",".join(stated["factors"])] if "factors" in stated else []),
    )
    return f"{words}{KNOWN_TOTALS}{','.join(known)}" if known else words


def workload_words(stated: Mapping[str, Any], folder: Path) -> str | None:
    """Return a workload as --workload takes it; None where none is stated.

    A list of kinds is asked together.
    """
    if not stated:
        return None
    if isinstance(stated.get("kind"), list):
        if len(stated) > 1:
            raise InputError(
                "several workloads are a list of whole texts, such as "
                '["total", "ranges:50"]; received it beside '
                f"{', '.join(name for name in stated if name != 'kind')}"
            )
        parts = (
            _words({"kind": one}, "workload", folder, []) for one in stated["kind"]
        )
        return " | ".join(parts)
    return _words(
        stated,
        "workload",
        folder,
        ([str(stated["number"])] if "number" in stated else [])
        + ([",".join(stated["columns"])] if "columns" in stated else []),
    )


def _words(
    stated: Mapping[str, Any], table: str, folder: Path, settings: list[str]
) -> str:
    """Put a table into the words that a flag would take."""
    if "kind" not in stated:
        raise InputError(f"[{table}] needs a kind; received {', '.join(stated)}")
    kind, apart, rest = stated["kind"].partition(":")
    if apart and names_a_file(rest):
        rest = beside(folder, rest)
    elif not apart and table == "workload" and names_a_file(kind):
        kind = beside(folder, kind)
    if "file" in stated:
        settings = [beside(folder, stated["file"]), *settings]
    return ":".join([kind, *([rest] if apart else []), *settings])
