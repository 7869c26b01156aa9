"""Run the whole suite once on small data: does every benchmark still work?

    python asv_benchmarks/run_quick.py               everything
    python asv_benchmarks/run_quick.py kernels       what matches a regular expression
    python asv_benchmarks/run_quick.py --asv         the same through asv

asv starts a process for each of some hundred cases. Here they run in one process, one
after the other, after asv has looked for them once (``asv check``):

    module -> class -> parameters -> setup, then time_*, track_* or peakmem_*, once

With --asv, configuration, machine file and results go to a temporary folder. Neither
form needs git or a network. Ends with status 1 if a benchmark fails. The times mean
nothing; what has become slower is found by ``ratio_check.py``.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import re
import site
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
METHODS = ("time_", "track_", "peakmem_", "mem_")


class Case(NamedTuple):
    """One method of one benchmark class, with one choice of its parameters."""

    name: str
    home: type
    method: str
    parameters: tuple[Any, ...]


def all_cases() -> Iterator[Case]:
    """Find what asv would run, in the small form that the environment asks for."""
    for path in sorted((HERE / "benchmarks").glob("[a-z]*.py")):
        module = importlib.import_module(f"benchmarks.{path.stem}")
        for home in list(vars(module).values()):
            if not isinstance(home, type) or home.__module__ != module.__name__:
                continue
            for method in (one for one in dir(home) if one.startswith(METHODS)):
                # A class without the call that it times only serves others.
                if getattr(home, "__abstractmethods__", None):
                    continue
                name = f"{path.stem}.{home.__name__}.{method}"
                for chosen in itertools.product(*_axes(home)):
                    yield Case(f"{name}{chosen}", home, method, chosen)


def _axes(home: type) -> list[list[Any]]:
    axes = list(getattr(home, "params", []))
    several = axes and isinstance(axes[0], list | tuple)
    return axes if several else [axes] if axes else []


def run_here(patterns: list[str]) -> int:
    """Run every case that matches in this process; return how many failed."""
    failed = left_out = ran = 0
    spent: dict[str, float] = {}
    for case in all_cases():
        if patterns and not any(re.search(one, case.name) for one in patterns):
            continue
        start = process_time()
        try:
            benchmark = case.home()
            if hasattr(benchmark, "setup"):
                benchmark.setup(*case.parameters)
            getattr(benchmark, case.method)(*case.parameters)
            ran += 1
        except NotImplementedError:
            left_out += 1  # how a benchmark says that a case does not apply
        except Exception:
            failed += 1
            sys.stdout.write(f"{case.name} failed\n{traceback.format_exc()}\n")
        module = case.name.partition(".")[0]
        spent[module] = spent.get(module, 0) + process_time() - start
    for module, seconds in sorted(spent.items()):
        sys.stdout.write(f"{module:12} {seconds:6.1f} s\n")
    sys.stdout.write(f"{ran} ran, {left_out} do not apply, {failed} failed\n")
    return failed + (ran == 0)


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


def run_through_asv(folder: Path, patterns: list[str]) -> bool:
    """Run what matches the patterns in processes of asv."""
    chosen = [word for pattern in patterns for word in ("--bench", pattern)]
    # Forked processes share the imports, which cost more than most calls.
    return run_asv(
        folder,
        "run",
        "--quick",
        "--python=same",
        "--show-stderr",
        "--launch-method=forkserver",
        *chosen,
    )


def main(words: list[str]) -> int:
    """Run what matches the patterns; return 0 if all of it worked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", help="regular expressions of names")
    parser.add_argument("--asv", action="store_true", help="each case in a process")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_configuration(folder)
        worked = run_asv(folder, "machine", "--yes", quiet=True)
        if options.asv:
            worked = worked and run_through_asv(folder, options.patterns)
        else:
            worked = worked and run_asv(folder, "check", "--python=same", quiet=True)
    if not options.asv:
        # Read when the benchmarks are imported, so it must be set before.
        os.environ["BLOWFISH_BENCHMARKS"] = "small"
        worked = run_here(options.patterns) == 0 and worked
    verdict = "all ran" if worked else "some failed, see above"
    sys.stdout.write(f"\nbenchmarks: {verdict}\n")
    return int(not worked)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
