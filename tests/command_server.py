"""Commands of `blowfish` in processes that share what packages take to load.

One process imports numba, matplotlib and the like, and every module of this package,
and forks for each command. The child runs the command as the console script does, and
ends as a process of its own: most of a short command's time is the loading. Modules of
this package hold no state that a command could leave to the next one, and what a
command loads by itself is seen by tests that start whole processes
(`tests/apps/cli/test_without_compiler.py`).

    python command_server.py       reads {"words", "folder", "out"} by lines,
                                   writes the exit code of each
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn, Self

SECONDS = 120
# What commands load that is not ours; a package that is not installed is left out.
# DuckDB starts threads when it is loaded, and its threads do not survive a fork.
OTHERS = (
    *("numpy", "scipy.linalg", "scipy.sparse", "scipy.stats", "scipy.optimize"),
    *("numba", "numba.np.arraymath", "matplotlib.pyplot", "pandas", "pyarrow.csv"),
    *("openpyxl", "typer", "rich.console", "rich.table"),
)

TRACED = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")


def untraced() -> dict[str, str]:
    """Return the environment of a process whose lines other tests run, and note."""
    return {name: os.environ[name] for name in os.environ if name not in TRACED}


class CommandServer:
    """Runs words of the command line in a folder; returns exit code and output."""

    def __init__(self, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, words: list[str], folder: Path) -> tuple[int, str]:
        """Run one command to its end."""
        out = folder.parent / f"{folder.name}.out"
        told = {"words": words, "folder": str(folder), "out": str(out)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline()), out.read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def obey(told: dict[str, Any]) -> NoReturn:
    """Run a command in this process, a child, and end it."""
    signal.alarm(SECONDS)
    os.chdir(told["folder"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    out = os.open(told["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for here, there in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(here, there)
    sys.argv = [str(Path(sys.executable).with_name("blowfish")), *told["words"]]
    from blowfish_fast.apps.cli.main import run

    code: object = 0
    try:
        run()
    except SystemExit as ended:
        code = ended.code
    # Modules that the server loaded are not taken apart, which would take a second.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def own_modules() -> list[str]:
    """Return the modules of this package, but for those that run when loaded."""
    root = Path(__file__).parent.parent
    files = sorted(root.glob("blowfish_fast/**/*.py"))
    return [
        ".".join(file.relative_to(root).with_suffix("").parts)
        for file in files
        if not file.stem.startswith("__")
    ]


def main() -> None:
    """Load what is there, then fork for each line that is read."""
    for name in (*OTHERS, *own_modules()):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            obey(json.loads(line))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
