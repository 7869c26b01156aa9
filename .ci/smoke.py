"""Try an installed package as a stranger would: release, save, load, answer.

    python .ci/smoke.py        inside the environment that is tried

Run by the part `wheels` of ``.ci/run``, from an empty folder, so that the package comes
from where pip put it and not from the checkout.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

import blowfish_fast as bf


def main() -> None:
    """Fail if any step does not do what the README says."""
    checkout = Path(__file__).resolve().parent.parent
    home = Path(bf.__file__).resolve()
    if checkout in home.parents and "site-packages" not in home.parts:
        raise SystemExit(f"{home} is the checkout, not an installed package")
    ages = bf.Domain.from_edges(range(102), name="age")
    data = bf.Histogram.from_records(ages, np.arange(1000) % 90)
    policy = bf.policies.Threshold(ages, theta=10)
    ranges = bf.workloads.Ranges.random(ages, 50, rng=1)
    release = bf.mechanisms.OrderedHierarchical(policy, ranges, epsilon=0.5).release(
        data
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ages.npz"
        release.save(path)
        again = bf.Release.load(path)
    answers = again.answer(ranges)
    if not np.array_equal(answers, release.answer(ranges)):
        raise SystemExit("a loaded release answers differently")
    intervals = again.intervals(ranges, confidence=0.95)
    inside = (intervals[:, 0] <= answers) & (answers <= intervals[:, 1])
    if not inside.all():
        raise SystemExit("answers lie outside their own intervals")
    found = {name: version(name) for name in ("numpy", "numba", "scipy", "typer")}
    found["python"] = ".".join(map(str, sys.version_info[:3]))
    sys.stdout.write(f"blowfish_fast {bf.__version__} works with {found}\n")


if __name__ == "__main__":
    main()
