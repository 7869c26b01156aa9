"""Finished tasks on disk, so that an interrupted run goes on where it was.

    line 1    {"experiment": ..., "seed": ..., "trials": ..., "data": ...}
    line 2..  {"task": key, "rows": [...]}         one whole line per finished task

A line is written in one piece and forced to the disk; what an interruption cut off is
an unfinished last line, which is dropped when the journal is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from blowfish_fast.errors import InputError

from .experiment import Row


class TaskJournal:
    """The journal of one experiment in one folder."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.header = dict(header)
        self.done: dict[str, list[Row]] = {}

    @classmethod
    def open(cls, path: Path, header: Mapping[str, Any], *, anew: bool) -> Self:
        """Begin a journal, or take up the one that is there.

        A journal of other settings is refused unless `anew` asks to discard it.
        """
        journal = cls(path, header)
        if path.exists() and not anew:
            journal._take_up()
        else:
            path.write_text(json.dumps(journal.header) + "\n")
        return journal

    def add(self, key: str, rows: Sequence[Row]) -> None:
        """Append one finished task."""
        self.done[key] = list(rows)
        line = json.dumps({"task": key, "rows": self.done[key]}) + "\n"
        with self.path.open("ab", buffering=0) as file:
            file.write(line.encode())
            os.fsync(file.fileno())

    def _take_up(self) -> None:
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines()
        try:
            found = json.loads(lines[0]) if lines else {}
            for line in lines[1:]:
                entry = json.loads(line)
                self.done[entry["task"]] = entry["rows"]
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{self.path} is not a journal of finished tasks; move it away, or "
                "start anew with --anew"
            ) from None
        differing = [
            f"{name} {found.get(name)!r} there, {value!r} asked"
            for name, value in self.header.items()
            if found.get(name) != value
        ]
        if differing and lines:
            raise InputError(
                f"{self.path.parent} holds a run with other settings "
                f"({'; '.join(differing)}); choose another folder with --out, or "
                "discard that run with --anew"
            )
        if not lines:
            self.path.write_text(json.dumps(self.header) + "\n")
        elif len(whole) < len(content):
            os.truncate(self.path, len(whole))


def journal_header(path: Path) -> dict[str, Any]:
    """Return the first line of a journal; empty when there is none to read."""
    try:
        with path.open() as file:
            header = json.loads(file.readline())
    except (OSError, ValueError):
        return {}
    return header if isinstance(header, dict) else {}
