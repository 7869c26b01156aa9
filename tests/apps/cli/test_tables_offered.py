"""What a release of tables says when it is done, and what it offers to be asked."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

from blowfish_fast.apps.cli.main import application
from tests.apps.cli.test_tables_job import JOB, folder_with_people

RUN = CliRunner()
folder = folder_with_people
COLUMNS = {
    "edges": 'age = "0:90:10"\nsex = "categories:f,m"\n',
    "later edges": 'age = "15:90:5"\nsex = "categories:f,m"\n',
    "levels": 'sex = "categories:f,m"\nage = "0:90:10"\n',
}


@pytest.mark.long
@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_what_is_offered_to_be_asked_can_be_asked(folder, columns):
    job = JOB.replace(COLUMNS["edges"], columns)
    job = job.replace("[domain]", 'outside = "clamp"\n[domain]')
    (folder / "job.toml").write_text(job)
    done = RUN.invoke(application, ["release", "job.toml", "--choose", "data"])
    assert done.exit_code == 0, (done.output, done.exception)
    shown = " ".join(done.stdout.split())
    assert "these, and single columns, have intervals of the truth" in shown
    (offered,) = re.findall(r"for free: blowfish (answer .*?) What it means", shown)
    asked = RUN.invoke(application, shlex.split(offered))
    assert asked.exit_code == 0, (offered, asked.output, asked.exception)
