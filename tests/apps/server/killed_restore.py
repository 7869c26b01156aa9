"""A process whose children restore a backup and are killed at every line of it.

Run by ``test_killed_restore``: ``python -m tests.apps.server.killed_restore FOLDER``,
where FOLDER holds ``backup`` and ``people.duckdb``. Each child kills itself before
another line of ``backups.py``; then a server tries to open what is left, and the same
restore is begun again. Prints a JSON list with, for each kill, what the server found
before and after: "refused", "closed", "open" or "empty".
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from blowfish_fast.apps.server import backups
from blowfish_fast.apps.server.workspace import Workspace
from blowfish_fast.errors import InputError

MOST = 2000


def restore_until(line, backup, folder):
    """Restore in a child that dies before line number `line`; say whether it did."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == signal.SIGKILL
    left = line

    def follow(frame, event, _argument):
        nonlocal left
        if frame.f_code.co_filename != backups.__file__:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return follow

    sys.settrace(follow)
    backups.restore(backup, folder, nothing_since=False)
    os._exit(0)


def opened(folder, database):
    """Say what a server finds in a folder."""
    if not folder.exists():
        return "empty"
    try:
        workspace = Workspace(folder, database=database, samples=0)
    except InputError as refusal:
        return "refused" if refusal.code == "restore_unfinished" else str(refusal)
    try:
        states = {workspace.explorer(one).closed for one in workspace.tables}
        ledgers = [*(folder / "ledgers").glob("*")]
    finally:
        workspace.close()
    if states:
        return "closed" if states == {True} else "open"
    return "orphaned" if ledgers else "empty"


def contents(folder):
    """Return the files of a folder by name and content: one try for each such state."""
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    return tuple((str(one.relative_to(folder)), one.read_bytes()) for one in files)


def tried(folder, backup, database):
    """Say what a server finds now, and after the same restore was run again."""
    first = opened(folder, database)
    if first == "empty" and folder.exists():
        # The server has made it its own, with nothing of the backup in it.
        shutil.rmtree(folder)
    if first in ("empty", "refused"):
        backups.restore(backup, folder, nothing_since=False)
    return first, opened(folder, database)


def main(place):
    found, outcomes = [], {}
    backup, database = place / "backup", place / "people.duckdb"
    folder = place / "restored"
    for line in range(1, MOST):
        died = restore_until(line, backup, folder)
        state = contents(folder)
        if state not in outcomes:
            outcomes[state] = tried(folder, backup, database)
        found.append((died, *outcomes[state]))
        shutil.rmtree(folder, ignore_errors=True)
        if not died:
            break
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
