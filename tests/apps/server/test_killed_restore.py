"""A restore that dies halfway leaves nothing that a server opens (issue 32, hole 6)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.apps.server.backups import UNFINISHED, back_up, restore
from blowfish_fast.apps.server.workspace import Workspace
from blowfish_fast.errors import InputError

from .serving import AGES, make_workspace

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def backup(tmp_path_factory):
    """Back up a server that has answered one question."""
    place = tmp_path_factory.mktemp("server")
    workspace = make_workspace(place)
    workspace.explorer("people").ask(AGES)
    workspace.close()
    assert run_command(["backup", str(place / "state"), str(place / "backup")]) == 0
    return place / "backup"


def test_killed_at_every_line_a_restore_is_all_or_nothing(backup):
    """Hole 6, a failure between two files: tables were open beside an older ledger."""
    command = [
        sys.executable,
        "-m",
        "tests.apps.server.killed_restore",
        str(backup.parent),
    ]
    # A process has one tracer. Coverage that follows children would be theirs, and
    # none of them would count its lines and die.
    alone = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COVERAGE_")
    }
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=alone
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found[-1] == [False, "closed", "closed"]
    assert {first for died, first, _ in found if died} == {"empty", "refused", "closed"}
    assert {after for *_, after in found} == {"closed"}
    assert len(found) > 40


def test_a_marked_folder_is_neither_served_nor_copied(tmp_path, backup):
    folder = tmp_path / "half"
    restore(backup, folder, nothing_since=True)
    (folder / UNFINISHED).write_text(json.dumps(["tables.json", "../outside"]))
    (tmp_path / "outside").write_text("stays")
    for use in (
        lambda: Workspace(folder),
        lambda: back_up(folder, tmp_path / "second"),
    ):
        with pytest.raises(InputError, match="has not ended, or has died"):
            use()
    restore(backup, folder, nothing_since=False)
    kept = json.loads((folder / "tables.json").read_text())
    assert kept["tables"]["people"]["closed"]
    assert (tmp_path / "outside").read_text() == "stays"
    assert not (folder / UNFINISHED).exists()


def test_a_mark_that_nobody_wrote_is_refused(tmp_path, backup):
    folder = tmp_path / "half"
    folder.mkdir()
    (folder / UNFINISHED).write_text("not JSON")
    with pytest.raises(InputError, match="not as `blowfish restore` has it"):
        restore(backup, folder, nothing_since=False)


def test_nobody_serves_a_folder_while_it_is_restored(tmp_path, backup):
    workspace = Workspace(tmp_path / "busy", samples=0)
    for one in ("ledgers", "deleted", "data", "logs"):
        (tmp_path / "busy" / one).rmdir()
    with pytest.raises(InputError, match="another server uses the folder"):
        restore(backup, tmp_path / "busy", nothing_since=False)
    workspace.close()
