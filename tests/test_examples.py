"""Every example runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.command_server import untraced

# `test_scale_simulation` runs the one that is left out.
EXAMPLES = [
    path
    for path in sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
    if path.stem != "scale_simulation"
]


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(path, tmp_path):
    arguments = []
    if path.stem == "partition_table":
        np.save(tmp_path / "steps.npy", np.repeat([3, 40, 0, 9], 16))
        arguments = [str(tmp_path), "--trials", "1", "--workloads", "1"]
    if path.stem in ("default_gains", "fresh_lines", "map_choice"):
        cells = np.arange(64).reshape(8, 8) % 7 * 30
        if path.stem != "fresh_lines":
            np.save(tmp_path / "map.npy", cells)
        if path.stem != "map_choice":
            np.save(tmp_path / "line.npy", cells.ravel())
        arguments = [str(tmp_path), "--trials", "1"]
    if path.stem in ("recommend_gain", "partition_share"):
        (tmp_path / "1d").mkdir()
        np.save(tmp_path / "1d" / "steps.npy", np.repeat([3, 40, 0, 9], 32))
        arguments = [str(tmp_path), "--trials", "1"]
        arguments += ["--cells", "64"] if path.stem == "recommend_gain" else []
    if path.stem == "spike_gain":
        arguments = ["--trials", "1", "--cells", "64"]
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=untraced(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
