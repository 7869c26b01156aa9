"""The command line as tests ask it: what it prints, what it tells, what it refuses."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import BlowfishError

RUN = CliRunner()


def run(*words, code=0):
    """Return what is printed, on one line."""
    done = RUN.invoke(application, [*words], env={"COLUMNS": "100"})
    assert done.exit_code == code, (done.output, done.exception)
    return " ".join(done.stdout.split())


def told(*words, code=0):
    """Return what is told as JSON."""
    done = RUN.invoke(application, [*words, "--json"])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout)


def refused(*words):
    """Return the error that stops a command."""
    done = RUN.invoke(application, [*words])
    assert isinstance(done.exception, BlowfishError), (done.output, done.exception)
    return done.exception
