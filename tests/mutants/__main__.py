"""Plant small bugs by rule and see whether the tests notice.

python -m tests.mutants                            the private border and accounting
python -m tests.mutants FILE FOLDER                every mutant of these
python -m tests.mutants --sample 60 --seed 7       so many, drawn evenly
python -m tests.mutants --package --sample 300     drawn from the whole package
python -m tests.mutants --rule "dropped check"     those of one rule
python -m tests.mutants --list FILE                the mutants alone
python -m tests.mutants --near FILE                by the tests that import from FILE
python -m tests.mutants --contexts build/coverage/data   by the tests of each line

The last one asks what ``BLOWFISH_CONTEXTS=test_function .ci/run tests without_jit
coverage`` noted, and takes the tests that run a mutant's line from the whole suite.

Exit code 1 where a mutant survives that `equivalents.toml` does not explain, or where
fewer than ``--floor`` per cent are noticed. Kernels are tried as plain Python. Each run
prints its seed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import subprocess
import sys
from collections import Counter
from pathlib import Path

from .equivalents import accepted
from .rules import ROOT, Key, Mutant, mutants
from .runner import files_with_tests, try_mutants, try_noted

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
    parser.add_argument("--rule", help='some alone, such as "dropped check"')
    parser.add_argument(
        "--floor", type=float, default=100.0, help="per cent that must be noticed"
    )
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument(
        "--near", action="store_true", help="survivors do not go on to the whole room"
    )
    parser.add_argument(
        "--contexts", type=Path, help="what coverage noted of every test"
    )
    parser.add_argument(
        "--seconds", type=float, default=40.0, help="CPU time for one mutant's tests"
    )
    parser.add_argument("--numbered", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    places = options.paths or ([PACKAGE] if options.package else ROOMS)
    if options.numbered:
        wanted = [tuple(one.split()) for one in sys.stdin]
        places = sorted({ROOT / path for path, _ in wanted})
    files = [
        path
        for place in places
        for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))
    ]
    found = [
        one
        for path in files
        for one in mutants(path.resolve())
        if options.rule in (None, one.rule)
    ]
    if options.numbered:
        named = {(one.path, str(one.number)): one for one in found}
        chosen = [named[one] for one in wanted]
        return _try_all(chosen, len(chosen), options)
    if options.list:
        sys.stdout.write("".join(f"{one}\n" for one in found))
        return 0
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    if options.sample is not None:
        found = _drawn(found, seed)[: options.sample]
    sys.stdout.write(f"{len(found):,} mutants, seed {seed}\n")
    known = accepted()
    left = [one for one in found if one.key not in known]
    return _try_all(left, len(found), options)


def _try_all(found: list[Mutant], drawn: int, options: argparse.Namespace) -> int:
    """Try mutants with the tests of their files, and survivors with their rooms'."""
    kernels = [one for one in found if one.path.startswith("blowfish_fast/kernels/")]
    code = 0
    if kernels and os.environ.get("NUMBA_DISABLE_JIT") != "1":
        code = _without_compiler(kernels, options)
        found = [one for one in found if one not in kernels]
    survivors: list[Mutant] = []
    if options.contexts is not None and found:
        outcome = try_noted(found, options.contexts, options.seconds)
        survivors = outcome.survivors
        for test in outcome.failed:
            sys.stdout.write(f"     fails without a mutant: {test}\n")
    for room in [] if options.contexts else sorted({_room(one) for one in found}):
        picked = [one for one in found if _room(one) == room]
        files = sorted({one.path for one in picked})
        tests = {test for path in files for test in files_with_tests(ROOT / path)}
        outcome = try_mutants(picked, sorted(tests))
        left = outcome.survivors
        rest = [] if options.near else sorted({*_tests_of_room(room)} - tests)
        if left and rest:
            sys.stdout.write(f"{len(left)} of {room} go on to the tests of the room\n")
            left = try_mutants(left, rest).survivors
        survivors += left
        sys.stdout.write(f"{len(picked) - len(left):4} of {len(picked):4}  {room}\n")
        for one in outcome.failed:
            sys.stdout.write(f"     fails without a mutant: {one}\n")
    for survivor in survivors:
        sys.stdout.write(f"survived: {survivor}\n")
    tried = len(found)
    sys.stdout.write(
        f"{tried:,} tried, {tried - len(survivors):,} noticed, {len(survivors):,} "
        f"survived; {drawn - tried - len(kernels):,} are equivalent and explained\n"
    )
    return code or int(100 * (tried - len(survivors)) < options.floor * tried)


def _drawn(found: list[Mutant], seed: int) -> list[Mutant]:
    """Return mutants in a drawn order, which other lines of a file do not change.

    Lines with the same text are told apart by their order.
    """
    seen: Counter[Key] = Counter()
    ranks = {}
    for one in found:
        again = (seen[one.key],) if seen[one.key] else ()
        ranks[one] = hashlib.sha256(repr((seed, one.key, *again)).encode()).digest()
        seen[one.key] += 1
    return sorted(found, key=lambda one: ranks[one])


def _room(mutant: Mutant) -> str:
    inside = Path(mutant.path).relative_to("blowfish_fast")
    return inside.parts[0] if len(inside.parts) > 1 else ""


def _tests_of_room(room: str) -> list[str]:
    """Return all test files of a room; mechanisms try the private border too."""
    rooms = [room, "mechanisms"] if room == "measure" else [room]
    places = [
        path for one in rooms for path in (ROOT / "tests" / one).rglob("test_*.py")
    ]
    return [str(path.relative_to(ROOT)) for path in places]


def _without_compiler(found: list[Mutant], options: argparse.Namespace) -> int:
    """Try kernels as plain Python: what is compiled does not see the change."""
    if not found:
        return 0
    return subprocess.run(
        [
            *(sys.executable, "-m", "tests.mutants", "--numbered"),
            *(f"--floor={options.floor}", *(["--near"] if options.near else [])),
            *([f"--contexts={options.contexts}"] if options.contexts else []),
            f"--seconds={options.seconds}",
        ],
        input="".join(f"{one.path} {one.number}\n" for one in found),
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
