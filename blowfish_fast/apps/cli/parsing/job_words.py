"""Tables of a job file in the words that flags take: columns, policy and workload.

One parser reads both, so that a job and a command mean the same:

    [domain]                                 --domain
    age = "0:101:1"                          age=0:101:1
    sex = ["f", "m"]                         sex=categories:f,m
    height = [0, 150, 200]                   height=edges:0,150,200

    [policy]                                 --policy
    kind = "threshold"
    theta = 5
    presence = true                          threshold:5+presence:1

    [workload]                               --workload
    kind = ["total", "ranges:50"]            total | ranges:50

A file that a job names stands beside the job, and a file that a flag names in the
folder where the command runs. So names of files are joined to the folder of the job.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blowfish_fast.apps.cli.options import names_a_file
from blowfish_fast.apps.description.columns import described_cells
from blowfish_fast.apps.description.policies import PRESENCE, described_policies
from blowfish_fast.data.listed_items import written_item
from blowfish_fast.errors import InputError

from .file_lines import Key, told_with_line

KNOWN_TOTALS = "+known:"
"""Stands between a policy and the names of the columns whose totals are public."""
COUNTS = ("theta", "size", "number", "ways")
"""Keys of [policy] and [workload] whose value is a number."""
SETTINGS = ("file", *COUNTS, "unit", "metric", "factors", "columns")
"""Keys whose values follow the kind of a policy or workload, in this order."""
TABLE_OPTIONS = ("choose", "prior", "always", "rounds", "model_cells")
"""What [workload] says of tables that the data choose."""


def is_number(value: Any) -> bool:
    """Return whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def are_texts(value: Any) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def beside(folder: Path, name: str) -> str:
    """Return the path of a file that a job names; addresses stay as they are.

    Parameters
    ----------
    folder : Path
        Where the job file is.
    name : str
        The name of a file, an address, or "demo".

    Returns
    -------
    str
        A path; addresses and "demo" as they are.
    """
    if "://" in name or name == "demo" or folder == Path():
        return name
    return str(folder / name)


def domain_words(
    stated: Mapping[str, Any], folder: Path, lines: Mapping[Key, int]
) -> list[str]:
    """Return the cells of each column as --domain takes them.

    Parameters
    ----------
    stated : mapping
        The table [domain]: the cells of each column, or "cells" alone.
    folder : Path
        Where the job file is.
    lines : mapping
        The line of each key, for messages.

    Returns
    -------
    list of str
        A text for each column, as ``--domain`` takes it.
    """
    plain = stated.get("cells")
    # "cells" alone is no column of that name: it states cells without a column.
    if len(stated) == 1 and isinstance(plain, int | str) and "=" not in str(plain):
        return [str(plain)]
    words = []
    for name, cells in stated.items():
        with told_with_line(lines, "domain", name):
            words.append(_column(name, cells, folder))
    return words


def _column(name: str, cells: Any, folder: Path) -> str:
    """Return the words of a column; a list of texts is one of categories.

    A text is taken as it is, unless it names a file: ``edges: @FILE``, ``categories
    @FILE``, ``polygons: FILE`` or ``h3: FILE``, which is looked for beside the job; so
    is the file of a description.
    """
    called = written_item(name)
    if isinstance(cells, list) and cells:
        if are_texts(cells):
            return f"{called}=categories:{','.join(map(written_item, cells))}"
        if all(is_number(edge) or type(edge) is datetime.date for edge in cells):
            return f"{called}=edges:{','.join(str(edge) for edge in cells)}"
    if isinstance(cells, Mapping):
        cells = described_cells(name, cells)
    if isinstance(cells, str) and cells:
        file = re.fullmatch(
            r"(\s*(?:(?:edges|categories)(?:\s*:|\s)\s*@|(?:polygons|h3)\s*:\s*))(.*)",
            cells,
        )
        if file is not None:
            return f"{called}={file[1]}{beside(folder, file[2].strip())}"
        return f"{called}={cells}"
    if isinstance(cells, int) and not isinstance(cells, bool):
        return f"{called}={cells}"
    raise InputError(
        f'the cells of {name!r} in [domain] are "0:101:1", a list of categories, a '
        f"list of edges, a number of cells, or a description such as "
        f"{{ levels = [...] }}; received {cells!r}"
    )


def policy_words(
    stated: Mapping[str, Any], folder: Path, lines: Mapping[Key, int]
) -> str | None:
    """Return a policy as --policy takes it; None where none is stated.

    Parameters
    ----------
    stated : mapping
        The tables of the file. [policy] states a policy of the whole domain by its
        kind, [policies] those of columns by the keys of the explorer. Beside
        [policies], [policy] may still say what is known and whether presence is
        secret.
    folder : Path
        Where the job file is.
    lines : mapping
        The line of each key, for messages.

    Returns
    -------
    str or None
        The text that ``--policy`` takes.

    Raises
    ------
    InputError
        If both tables state a policy, or one of them is wrong.
    """
    whole, by_column = stated.get("policy", {}), stated.get("policies", {})
    if not whole and not by_column:
        return None
    public, presence = whole.get("known", ()), whole.get("presence", False)
    columns = stated.get("ledger_domain", {}) or stated.get("domain", {})
    if by_column:
        with told_with_line(lines, "policy"):
            _refuse_both(whole)
        with told_with_line(lines, "policies"):
            words = described_policies(by_column, columns)
    else:
        with told_with_line(lines, "policy"):
            words = _words(whole, "policy", folder)
            _refuse_joined(columns)
    if public:
        words = f"{words}{KNOWN_TOTALS}{','.join(public)}"
    if presence is False:
        return words
    return f"{words}{PRESENCE}:{1 if presence is True else presence}"


def _refuse_both(whole: Mapping[str, Any]) -> None:
    """Refuse a policy in [policy], where [policies] states that of each column."""
    beside = [name for name in whole if name not in ("known", "presence")]
    if beside:
        raise InputError(
            "a policy is stated in [policy], or column by column in [policies]",
            received=f"both, with {', '.join(beside)} in [policy]",
            way_out="Leave one of them out; presence and known may stand in [policy]",
        )


def _refuse_joined(columns: Mapping[str, Any]) -> None:
    """Refuse extra cells that are joined, where no column has a policy of its own."""
    for name, cells in columns.items():
        if isinstance(cells, Mapping) and "extras_joined" in cells:
            raise InputError(
                f"'extras_joined' of {name!r} in [domain] goes with a policy of that "
                "column in [policies]",
                received="a policy of the whole domain in [policy]",
                way_out=f"State [policies.{name}], or leave 'extras_joined' out",
            )


def workload_words(
    stated: Mapping[str, Any], folder: Path, lines: Mapping[Key, int]
) -> str | None:
    """Return a workload as --workload takes it; a list of kinds is asked together.

    Parameters
    ----------
    stated : mapping
        The table [workload].
    folder : Path
        Where the job file is.
    lines : mapping
        The line of each key, for messages.

    Returns
    -------
    str or None
        The text that ``--workload`` takes; a list of kinds is joined by "|".
    """
    # Which tables are measured are options by themselves, and no part of the words.
    stated = {
        name: value for name, value in stated.items() if name not in TABLE_OPTIONS
    }
    with told_with_line(lines, "workload"):
        if not stated or not isinstance(stated.get("kind"), list):
            return _words(stated, "workload", folder) if stated else None
        if len(stated) > 1:
            raise InputError(
                "several workloads are a list of whole texts, such as "
                '["total", "ranges:50"]; received it beside '
                f"{', '.join(name for name in stated if name != 'kind')}"
            )
        parts = (_words({"kind": kind}, "workload", folder) for kind in stated["kind"])
        return " | ".join(parts)


def _words(stated: Mapping[str, Any], table: str, folder: Path) -> str:
    """Put a table into the words that a flag would take: kind, then settings.

    A kind may hold settings itself, as in "ranges:50". A table of columns gives each of
    them words of its own: ``product:age=line,sex=full``.
    """
    if "kind" not in stated:
        raise InputError(f"[{table}] needs a kind; received {', '.join(stated)}")
    kind, apart, rest = stated["kind"].partition(":")
    if "ways" in stated and kind != "tables":
        raise InputError(f'ways are those of kind = "tables"; received {kind!r}')
    if apart and (names_a_file(rest) or names_a_file(rest.rpartition(":")[0])):
        rest = beside(folder, rest)
    elif not apart and table == "workload" and names_a_file(kind):
        kind = beside(folder, kind)
    words = [kind, rest] if apart else [kind]
    for name in SETTINGS:
        value = stated.get(name)
        if isinstance(value, Mapping):
            parts = (
                (column, _words({"kind": own}, table, folder))
                for column, own in value.items()
            )
            words.append(",".join(f"{column}={own}" for column, own in parts))
        elif isinstance(value, list):
            words.append(",".join(value))
        elif value is not None:
            words.append(beside(folder, value) if name == "file" else str(value))
    return ":".join(words)
