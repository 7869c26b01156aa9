"""Run the whole suite once on small data: does every benchmark still work?

    python asv_benchmarks/run_quick.py               everything
    python asv_benchmarks/run_quick.py kernels       what matches a regular expression

Uses the interpreter that runs it, with the package installed there. Configuration,
machine file and results go to a temporary folder; neither git nor network is needed.
Ends with status 1 if a benchmark fails. The times it prints mean nothing.
"""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def write_configuration(folder: Path) -> None:
    """Write the suite's configuration with every output inside `folder`."""
    settings = json.loads((HERE / "asv.conf.json").read_text())
    settings["repo"] = str(HERE.parent)
    settings["benchmark_dir"] = str(HERE / "benchmarks")
    for output in ("env_dir", "results_dir", "html_dir"):
        settings[output] = str(folder / output)
    (folder / "asv.conf.json").write_text(json.dumps(settings))


def quick_environment(folder: Path) -> dict[str, str]:
    """Return an environment whose home, where asv keeps its machine file, is `folder`.

    Packages installed for one user stay visible: their place is named explicitly.
    """
    return {
        **os.environ,
        "HOME": str(folder),
        "USERPROFILE": str(folder),
        "PYTHONUSERBASE": site.getuserbase(),
        "BLOWFISH_BENCHMARKS": "small",
    }


def run_asv(folder: Path, *arguments: str, quiet: bool = False) -> bool:
    """Run one asv command, showing what it says; return whether all of it worked."""
    command = [sys.executable, "-m", "asv", *arguments]
    said: list[str] = []
    with subprocess.Popen(
        [*command, "--config", str(folder / "asv.conf.json")],
        env=quick_environment(folder),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            said.append(line.rstrip())
            if not quiet:
                sys.stdout.write(line)
                sys.stdout.flush()
    worked = process.returncode == 0 and not any(
        line.endswith(" failed") for line in said
    )
    if quiet and not worked:
        sys.stdout.write("\n".join(said))
    return worked


def main(patterns: list[str]) -> int:
    """Run what matches the patterns; return 0 if all of it worked."""
    chosen = [word for pattern in patterns for word in ("--bench", pattern)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_configuration(folder)
        # Forked processes share the imports, which cost more than most calls.
        worked = run_asv(folder, "machine", "--yes", quiet=True) and run_asv(
            folder,
            "run",
            "--quick",
            "--python=same",
            "--show-stderr",
            "--launch-method=forkserver",
            *chosen,
        )
    verdict = "all ran" if worked else "some failed, see above"
    sys.stdout.write(f"\nbenchmarks: {verdict}\n")
    return int(not worked)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
