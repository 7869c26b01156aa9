"""``blowfish warmup``: compile every kernel by running every mechanism once."""

from __future__ import annotations

import time

from rich.progress import track

from ..domain import Domain
from ..mechanisms.registry import MECHANISMS
from ..policies import AddRemove, Full, Policy
from ..workloads import AllRanges, Identity, Prefixes, Ranges, Rectangles, Workload
from .printing import console


def run_warmup() -> None:
    """Release small examples of everything and ask them for intervals."""
    start = time.perf_counter()
    line, grid = Domain(64), Domain((16, 16))
    cases: list[tuple[str, Policy, Workload]] = [
        (name, policy(domain), workload)
        for name in MECHANISMS
        for policy in (AddRemove, Full)
        for domain, workloads in (
            (line, (Ranges.random(line, 8, rng=1), Identity(line))),
            (grid, (Rectangles.random(grid, 8, rng=1),)),
        )
        for workload in workloads
    ]
    for name, policy, workload in track(cases, description="compiling", transient=True):
        mechanism, data = MECHANISMS[name].example(policy.domain, policy, 1)
        mechanism.release(data).intervals(workload)
    for implicit in (AllRanges(line), Prefixes(line), Identity(line)):
        MECHANISMS["laplace"](
            AddRemove(line), implicit, epsilon=1
        ).expected_total_error()
    console.print(
        f"kernels are ready ({time.perf_counter() - start:.1f} s)", highlight=False
    )
