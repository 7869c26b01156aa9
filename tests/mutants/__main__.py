"""Plant small bugs by rule and see whether the tests notice.

python -m tests.mutants                            the private border and accounting
python -m tests.mutants FILE FOLDER                every mutant of these
python -m tests.mutants --sample 60 --seed 7       so many, drawn evenly
python -m tests.mutants --package --sample 300     drawn from the whole package
python -m tests.mutants --list FILE                the mutants alone

Exit code 1 where a mutant survives that `equivalents.toml` does not explain. Kernels
are tried as plain Python. Each run prints its seed.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from .equivalents import accepted
from .rules import ROOT, Mutant, mutants
from .runner import Outcome, try_file

PACKAGE = ROOT / "blowfish_fast"
ROOMS = (PACKAGE / "measure", PACKAGE / "accounting")


def main() -> int:
    """Read the options, try the mutants, say who survived."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__
    )
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--sample", type=int, help="how many; every one if left out")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--numbered", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    places = options.paths or ([PACKAGE] if options.package else ROOMS)
    if options.numbered:
        wanted = {tuple(one.split()) for one in sys.stdin}
        places = sorted({ROOT / path for path, _ in wanted})
    files = [
        path
        for place in places
        for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))
    ]
    found = [one for path in files for one in mutants(path.resolve())]
    if options.numbered:
        chosen = [one for one in found if (one.path, str(one.number)) in wanted]
        return _try_all(chosen, len(chosen))
    if options.list:
        sys.stdout.write("".join(f"{one}\n" for one in found))
        return 0
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    if options.sample is not None:
        found = random.Random(seed).sample(found, min(options.sample, len(found)))
    sys.stdout.write(f"{len(found):,} mutants, seed {seed}\n")
    known = accepted()
    return _try_all([one for one in found if one.key not in known], len(found))


def _try_all(found: list[Mutant], drawn: int) -> int:
    by_file = defaultdict(list)
    for one in found:
        by_file[one.path].append(one)
    code = 0
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        code = _without_compiler(
            [
                one
                for path in list(by_file)
                if path.startswith("blowfish_fast/kernels/")
                for one in by_file.pop(path)
            ]
        )
    tried = survived = 0
    for path, wanted in sorted(by_file.items()):
        outcome = try_file(path, wanted)
        tried += outcome.tried
        survived += len(outcome.survivors)
        _say(outcome)
    sys.stdout.write(
        f"{tried:,} tried, {tried - survived:,} noticed, {survived:,} survived; "
        f"{drawn - len(found):,} are equivalent and explained\n"
    )
    return code or int(survived > 0)


def _without_compiler(found: list[Mutant]) -> int:
    """Try kernels as plain Python: what is compiled does not see the change."""
    if not found:
        return 0
    return subprocess.run(
        [sys.executable, "-m", "tests.mutants", "--numbered"],
        input="".join(f"{one.path} {one.number}\n" for one in found),
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    ).returncode


def _say(outcome: Outcome) -> None:
    noticed = outcome.tried - len(outcome.survivors)
    sys.stdout.write(f"{noticed:4} of {outcome.tried:4}  {outcome.path}\n")
    for one in outcome.failed:
        sys.stdout.write(f"     fails without a mutant: {one}\n")
    for survivor in outcome.survivors:
        sys.stdout.write(f"     survived: {survivor}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
