"""What was predicted for a job's public facts, kept for the next command about them.

    dry run   facts -> all mechanisms predicted -> name, reasons, error  -> kept
    release   the same facts                    -> name, reasons, error  <- kept

Predicting loads the compiler and every kernel, which takes longer than all the rest of
a dry run. Domain, policy, queries, budget and the package's sources make the key; no
data is among them. What cannot be kept or read is predicted again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import blowfish_fast
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

MOST_KEPT = 64
MOST_QUERIES = 2**16
"""More are not spelled out for a key."""


def memory_file() -> Path:
    """Return the file of what is kept, in the folder of the user's caches."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "blowfish_fast" / "choices.json"


def key_of(policy: Policy, workload: Workload, budget: Budget, name: str) -> str | None:
    """Return what stands for all public facts; None where they are too many."""
    if workload.queries > MOST_QUERIES:
        return None
    facts = [policy.to_dict(), workload.to_dict(), workload.declared, budget.to_dict()]
    text = json.dumps([_sources(), name, *facts], default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def recall(key: str | None) -> dict[str, Any] | None:
    """Return what was kept under a key."""
    found = _read().get(key or "")
    return found if isinstance(found, dict) else None


def remember(key: str | None, found: dict[str, Any]) -> None:
    """Keep what was found, and the latest of what was kept before."""
    if key is None:
        return
    kept = dict(list(_read().items())[-MOST_KEPT + 1 :]) | {key: found}
    with contextlib.suppress(OSError, RuntimeError):
        path = memory_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(kept), encoding="utf-8")
        fresh.replace(path)


def _read() -> dict[str, Any]:
    try:
        kept = json.loads(memory_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _sources() -> tuple[int, ...]:
    """Return what changes with any edit of the package."""
    folder = Path(blowfish_fast.__file__).parent
    found = [one.stat() for one in folder.rglob("*.py")]
    latest = max(one.st_mtime_ns for one in found)
    return len(found), sum(one.st_size for one in found), latest
