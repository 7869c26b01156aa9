"""``blowfish warmup``: compile every kernel by running every mechanism once."""

from __future__ import annotations

import time

from blowfish_fast.apps.cli.printing import console, counting, show, steps_bar
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import BlowfishError
from blowfish_fast.mechanisms.laplace import Laplace
from blowfish_fast.mechanisms.registry import MECHANISMS
from blowfish_fast.policies import AddRemove, Full, Line, Policy
from blowfish_fast.workloads import (
    AllRanges,
    Identity,
    Prefixes,
    Ranges,
    Rectangles,
    Workload,
)


def run_warmup(*, as_json: bool) -> None:
    """Release small examples of everything and ask them for intervals."""
    start = time.perf_counter()
    line, grid = Domain(64), Domain((16, 16))
    policies: list[Policy] = [
        AddRemove(line),
        Full(line),
        Line(line),
        AddRemove(grid),
        Full(grid),
    ]
    cases = [(name, policy) for name in MECHANISMS for policy in policies]
    with steps_bar() as bar:
        report = counting(bar, "compiling")
        for done, (name, policy) in enumerate(cases):
            report(done, len(cases), f"{name} under {type(policy).__name__}")
            _run(name, policy)
        for implicit in (AllRanges(line), Prefixes(line), Identity(line)):
            Laplace(AddRemove(line), implicit, epsilon=1).expected_total_error()
    seconds = time.perf_counter() - start
    if as_json:
        show({"ready": True, "mechanisms": list(MECHANISMS), "seconds": seconds})
    else:
        console.print(f"kernels are ready ({seconds:.1f} s)", highlight=False)


def _run(name: str, policy: Policy) -> None:
    """Release one example; a mechanism that refuses this policy has nothing to warm."""
    domain = policy.domain
    asked: Workload = (
        Ranges.random(domain, 8, rng=1)
        if domain.ndim == 1
        else Rectangles.random(domain, 8, rng=1)
    )
    try:
        mechanism, data = MECHANISMS[name].example(domain, policy, 1)
        release = mechanism.release(data)
        if release.interval_scope == "noise":
            release.intervals(asked)
    except BlowfishError:
        return
