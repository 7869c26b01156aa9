"""``blowfish warmup``, ``version`` and ``schema``: kernels, packages and formats."""

from __future__ import annotations

import platform
import sys
import time
from json import dumps
from typing import Annotated, Any, Literal

import typer

import blowfish_fast as bf
from blowfish_fast._support.compiler_watch import COMPILER
from blowfish_fast.apps.cli.options import Json
from blowfish_fast.apps.cli.printing import console, counter, show
from blowfish_fast.apps.description.shipped import shipped_schema

PACKAGES = (
    *("numpy", "numba", "llvmlite", "scipy", "rustworkx", "cryptography", "narwhals"),
    *("typer", "rich", "matplotlib", "pandas", "polars", "pyarrow"),
    *("ibis-framework", "duckdb", "fastapi"),
)


def run_warmup(json: Json = False) -> None:
    """Compile what every mechanism needs: later calls start at once."""
    from blowfish_fast.mechanisms.registry import MECHANISMS

    start = time.perf_counter()
    line, grid = bf.Domain(64), bf.Domain((16, 16))
    policies: list[bf.policies.Policy] = [
        bf.policies.AddRemove(line),
        bf.policies.Full(line),
        bf.policies.Line(line),
        bf.policies.AddRemove(grid),
        bf.policies.Full(grid),
    ]
    cases = [(name, policy) for name in MECHANISMS for policy in policies]
    with counter("compiling") as report, COMPILER.for_everything():
        for done, (name, policy) in enumerate(cases):
            report(done, len(cases), f"{name} under {type(policy).__name__}")
            _release_example(MECHANISMS[name], policy)
        asked = bf.workloads
        for implicit in (asked.AllRanges, asked.Prefixes, asked.Identity):
            policy = bf.policies.AddRemove(line)
            bf.Laplace(policy, implicit(line), epsilon=1).expected_total_error()
    seconds = time.perf_counter() - start
    if json:
        show({"ready": True, "mechanisms": list(MECHANISMS), "seconds": seconds})
    else:
        console.print(f"kernels are ready ({seconds:.1f} s)", highlight=False)


def _release_example(kind: Any, policy: bf.policies.Policy) -> None:
    """Release one example; a mechanism that refuses this policy has nothing to warm."""
    domain = policy.domain
    asked: bf.workloads.Workload = (
        bf.workloads.Ranges.random(domain, 8, rng=1)
        if domain.ndim == 1
        else bf.workloads.Rectangles.random(domain, 8, rng=1)
    )
    try:
        mechanism, data = kind.example(domain, policy, 1)
        release = mechanism.release(data)
        if release.interval_scope == "noise":
            release.intervals(asked, of="noise")
    except bf.BlowfishError:
        return


def run_version(json: Json = False) -> None:
    """Print the version; with --json all that a report needs."""
    version = _version_of("blowfish_fast")
    if not json:
        show(version)
        return
    show(
        {
            "version": version,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "packages": {name: _version_of(name) for name in PACKAGES},
        }
    )


def _version_of(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def run_schema(
    kind: Annotated[
        Literal["job", "table", "registry"],
        typer.Argument(
            metavar="KIND",
            help="job: the files of release; table: the explorer's descriptions; "
            "registry: entries of report --registry.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of job files, of the explorer's tables, or of entries."""
    schema = shipped_schema(kind)
    if as_json:
        show(schema)
    else:
        sys.stdout.write(dumps(schema, indent=2) + "\n")
