"""Scenarios that need a process of their own: limits, other users, fresh memory.

A module of scenarios ends with a call by name that prints what it found as JSON:

    python tests/measuring.py used FOLDER      prints [["dawa", ...], ...]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import blowfish_fast as bf


def found_by(module, scenario, folder):
    """Run a scenario of a module in a fresh process; return the JSON it printed."""
    return json.loads(printed_by(module, scenario, folder))


def printed_by(module, scenario, folder):
    """Run a scenario of a module in a fresh process, to its end; return its output."""
    paths = [str(Path(bf.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, module.__file__, scenario, str(folder)],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
