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


def write_configuration(folder: Path) -> Path:
    """Write the suite's configuration with every output inside `folder`."""
    settings = json.loads((HERE / "asv.conf.json").read_text())
    settings["repo"] = str(HERE.parent)
    settings["benchmark_dir"] = str(HERE / "benchmarks")
    for output in ("env_dir", "results_dir", "html_dir"):
        settings[output] = str(folder / output)
    path = folder / "asv.conf.json"
    path.write_text(json.dumps(settings))
    return path


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


def main(patterns: list[str]) -> int:
    """Run what matches the patterns; return 0 if all of it worked."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        configuration = str(write_configuration(folder))
        environment = quick_environment(folder)

        def asv(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "asv", *arguments, "--config", configuration],
                env=environment,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )

        machine = asv("machine", "--yes")
        if machine.returncode:
            sys.stdout.write(machine.stdout)
            return 1
        chosen = [word for pattern in patterns for word in ("--bench", pattern)]
        # Forked processes share the imports, which cost more than most calls.
        launch = ("--launch-method", "forkserver")
        ran = asv("run", "--quick", "--python=same", "--show-stderr", *launch, *chosen)
        sys.stdout.write(ran.stdout)
    failed = ran.returncode != 0 or " failed" in ran.stdout
    verdict = "some failed, see above" if failed else "all ran"
    sys.stdout.write(f"\nbenchmarks: {verdict}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
