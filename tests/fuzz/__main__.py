"""The long form: ``python -m tests.fuzz --inputs 1000000``.

Every worker is a process of its own, with bounds checks in compiled code, an address
limit, and a watchdog that ends it if an input takes too long. Inputs follow from the
seed, so a failure can be run again: ``--door NAME --only NUMBER``. The first run
compiles every kernel anew, with bounds checks, into ``--cache``.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ADDRESS_LIMIT = 8 * 2**30
MOST_FAILURES = 3
"""Of one door; it is then left alone."""
FIRST_INPUTS = 60
COMPILING = 20
"""Patience with the first inputs of a door, which may have to wait for the compiler."""


def main():
    """Read the options, then work, or let others work."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30.0, help="for one input")
    parser.add_argument("--door", default="", help="part of a name")
    parser.add_argument("--only", type=int, help="one input of that number")
    parser.add_argument(
        "--cache", default=str(Path(tempfile.gettempdir(), "fuzz-numba"))
    )
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is None and options.only is None:
        sys.exit(supervise(options))
    failures = work(options)
    sys.exit(1 if failures else 0)


def work(options):
    """Run one share of the inputs, and print what came of it as one line of JSON."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_LIMIT, hard))
    from .doors import all_doors
    from .examples import instances
    from .ledger_doors import forget
    from .question_doors import forget as forget_paths
    from .run import Failure, try_door

    instances()
    faulthandler.enable()

    doors = [one for one in all_doors() if options.door in one.name]
    worker = options.worker or 0
    numbers = range(worker, options.inputs, options.workers)
    if options.only is not None:
        numbers = [options.only]
    seen, broken, outcomes, failures = Counter(), Counter(), Counter(), []
    start = time.process_time()
    for number in numbers:
        door = doors[number // options.workers % len(doors)]
        if options.only is not None:
            (door,) = doors
        if broken[door.name] >= MOST_FAILURES:
            continue
        seen[door.name] += 1
        patience = COMPILING if seen[door.name] <= FIRST_INPUTS else 1
        faulthandler.dump_traceback_later(patience * options.seconds, exit=True)
        found = try_door(door, random.Random(f"{options.seed} {door.name} {number}"))
        if isinstance(found, Failure):
            failures.append(f"input {number}: {found}")
            outcomes["failed"] += 1
            broken[door.name] += 1
        else:
            outcomes["accepted" if found else "refused"] += 1
    faulthandler.cancel_dump_traceback_later()
    forget()
    forget_paths()
    seconds = time.process_time() - start
    sys.stdout.write(json.dumps([outcomes, len(doors), seconds, failures]) + "\n")
    return failures


def supervise(options):
    """Start the workers, add up what they found, and say it."""
    environment = os.environ | {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": options.cache,
    }
    command = [sys.executable, "-m", "tests.fuzz", *sys.argv[1:], "--worker"]
    started = time.monotonic()
    workers = [
        subprocess.Popen(
            [*command, str(number)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(options.workers)
    ]
    total, seconds, broken, doors = Counter(), 0.0, [], 0
    for worker in workers:
        out, err = worker.communicate()
        try:
            outcomes, doors, spent, failures = json.loads(out.splitlines()[-1])
        except (IndexError, ValueError):
            broken.append(f"a worker ended with code {worker.returncode}:\n{err}")
            continue
        total += Counter(outcomes)
        seconds += spent
        broken += failures
    for one in broken:
        sys.stdout.write(one + "\n\n")
    sys.stdout.write(
        f"{sum(total.values()):,} inputs through {doors} doors: {total['accepted']:,} "
        f"accepted, {total['refused']:,} refused, {len(broken):,} failures; "
        f"{seconds:,.0f} CPU seconds, {time.monotonic() - started:,.0f} in all\n"
    )
    return 1 if broken or not total else 0


if __name__ == "__main__":
    main()
