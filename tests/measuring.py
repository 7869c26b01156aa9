"""A process that measures what releases take, and asks for what it cannot have.

Run by ``test_memory``: ``python measuring.py SCENARIO FOLDER``; prints JSON. The
scenario ``used_up_to_a_million`` takes a minute and is for people.
"""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

import blowfish_fast as bf
from blowfish_fast.errors import BlowfishError, SizeError
from blowfish_fast.mechanisms.registry import MECHANISMS

QUICK_SECONDS = 0.03
SIZES = (2**16, 2**18)


def held(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise AssertionError(field)


def rough_counts(domain):
    """Counts without two neighbours alike, so that many buckets are worth having."""
    return np.random.default_rng(1).integers(0, 1000, size=domain.shape)


def registered(name, cells):
    domain = bf.Domain(cells)
    policy = bf.policies.AddRemove(domain)
    made, data = MECHANISMS[name].example(domain, policy, 1)
    return made, data if name == "kmeans" else rough_counts(domain)


def on_a_map(cells):
    side = round(cells**0.5)
    domain = bf.Domain((side, side))
    asked = bf.workloads.Rectangles.random(domain, 2000, rng=1)
    return bf.Dawa(bf.policies.Full(domain), asked, epsilon=1), rough_counts(domain)


def many_ranges(cells):
    domain = bf.Domain(cells)
    asked = bf.workloads.Ranges.random(domain, 4 * cells, rng=1)
    return bf.Dawa(bf.policies.Full(domain), asked, epsilon=1), rough_counts(domain)


def on_edges(cells):
    domain = bf.Domain(cells)
    policy = bf.policies.Threshold(domain, theta=8)
    identity = bf.workloads.Identity(domain)
    made = bf.Laplace(policy, identity, epsilon=1, strategy="edges")
    return made, rough_counts(domain)


def cases():
    """Name every case: what is registered, and what has many pieces or edges."""
    made = {
        name: lambda cells, name=name: registered(name, cells) for name in MECHANISMS
    }
    return made | {
        "dawa on a map": on_a_map,
        "dawa with many ranges": many_ranges,
        "laplace on edges": on_edges,
    }


def measured(action):
    """Return how far the peak rose above what was held before, and CPU seconds."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before, start = held("VmRSS"), process_time()
    action()
    return held("VmHWM") - before, process_time() - start


def released(made, data, ledger=None):
    if ledger is None:
        return lambda: made.release(data)
    return lambda: ledger.release(made, data)


def stored(made, data):
    """Return what a release through a ledger on disk takes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger")
        with bf.Ledger(path, epsilon=1, policy=made.policy) as ledger:
            return measured(released(made, data, ledger))[0]


def used(_folder, sizes=SIZES):
    """Measure releases of growing size, the smallest also through a ledger."""
    found = []
    for name, make in cases().items():
        released(*make(2**8))()
        for cells in sizes:
            made, data = make(cells)
            alone, seconds = measured(released(made, data))
            kept = stored(*make(cells)) if cells == sizes[0] else 0
            found.append([name, cells, made.memory_needed(), alone, kept])
            if seconds > QUICK_SECONDS:
                break
    return found


def used_up_to_a_million(folder):
    return used(folder, (2**20,))


def refused(folder):
    """Ask under an address limit, then without it; return what was said and spent."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    found = []
    for name in MECHANISMS:
        registered(name, 2**8)[0].release(registered(name, 2**8)[1])
        made, data = registered(name, 2**14)
        with bf.Ledger(folder / name, epsilon=1, policy=made.policy) as ledger:
            limit = held("VmSize") + 2**25
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
            said = []
            for ask in (released(made, data), released(made, data, ledger)):
                try:
                    ask()
                    said.append("released")
                except SizeError as problem:
                    said.append(str(problem))
                except (BlowfishError, MemoryError) as problem:
                    said.append(f"not foreseen: {problem!r}")
            spent = str(ledger.spent)
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            ledger.release(made, data)
            found.append([name, *said, spent, str(ledger.spent)])
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
