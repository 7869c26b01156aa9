"""Words of the command line as public facts: domains, policies and workloads.

    domain     4096, 64x64, age=0:101:1, ...       (``domain_words``)
    policy     add_remove, full, line, attribute   one word
               threshold:5                         at most 5 cells apart
               threshold:5000:value                at most 5000 apart, by the edges
               threshold:2:linf                    on a grid: l1, l2 or linf
               blocks:10, blocks:8x8               runs or tiles of cells
               blocks:labels.csv                   a block for each category or cell
               graph:edges.csv                     pairs of categories or cells
               product:line,full                   one policy per column
               full+known:sex                      towards those who know its totals
    workload   identity, prefixes, all_ranges,     one word
               total
               ranges:2000, rectangles:500         random ones, always the same
               ranges:asked.csv, rectangles:a.npy  starts and ends, half-open, in cells
               marginals:age,sex                   the table over these columns

Every refusal gives the rule, the words received and the forms there are.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.apps.cli.files.array_files import names_a_file, numbers_from_file
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError
from blowfish_fast.policies import (
    POLICIES,
    Blocks,
    Graph,
    MarginalConstraints,
    Policy,
    Product,
    Threshold,
)
from blowfish_fast.workloads import (
    AllRanges,
    Identity,
    Marginals,
    Prefixes,
    Ranges,
    Rectangles,
    Total,
    Workload,
)

from .domain import parsed_domain
from .nearest_word import nearest

__all__ = [
    "POLICY_FORMS",
    "WORKLOAD_FORMS",
    "nearest",
    "parsed_domain",
    "parsed_policy",
    "parsed_workload",
]

SEED_OF_QUERIES = 1
QUERIES = 2000
MOST_QUERIES = 10**7
METRICS = ("l1", "l2", "linf")
PLAIN_POLICIES = ("add_remove", "full", "line", "attribute")
PLAIN_WORKLOADS: dict[str, type[Workload]] = {
    "all_ranges": AllRanges,
    "identity": Identity,
    "prefixes": Prefixes,
    "total": Total,
}
KNOWN_TOTALS = "+known:"
"""Parts a policy from the columns whose totals are public."""
POLICY_FORMS = (
    f"{', '.join(PLAIN_POLICIES)}, threshold:THETA (:value, :l2 or :linf), "
    "blocks:SIZE, blocks:FILE, graph:FILE or product:POLICY,POLICY, each with "
    "+known:COLUMN where the totals of a column are public"
)
WORKLOAD_FORMS = (
    f"{', '.join(PLAIN_WORKLOADS)}, ranges:NUMBER, rectangles:NUMBER, ranges:FILE, "
    "rectangles:FILE or marginals:COLUMN,COLUMN"
)


def parsed_policy(words: str, domain: Domain) -> Policy:
    """Return the policy of ``full``, ``threshold:10`` or another form.

    Examples
    --------
    >>> parsed_policy("threshold:3", Domain(9)).edge_count
    21
    >>> parsed_policy("product:line,full", Domain((3, 4))).edge_count
    26
    """
    words, _, known = words.strip().partition(KNOWN_TOTALS)
    if known:
        return knowing(parsed_policy(words, domain), known, domain)
    name, _, setting = words.partition(":")
    makers = {
        "threshold": _threshold,
        "blocks": _blocks,
        "graph": _graph,
        "product": _product,
    }
    if name in makers and setting:
        return makers[name](setting, domain, words)
    if name in PLAIN_POLICIES and not setting:
        made: Any = POLICIES[name]
        policy: Policy = made(domain)
        return policy
    raise InputError(
        f"the policy is one of {POLICY_FORMS}; received {words!r}"
        f"{nearest(name, [*PLAIN_POLICIES, *makers])}"
    )


def knowing(policy: Policy, known: str, domain: Domain) -> Policy:
    """Return the policy towards those who know the totals of some columns."""
    columns = [_column(one, domain) for one in known.split(",")]
    return policy.with_constraints(MarginalConstraints(domain, columns))


def parsed_workload(words: str, domain: Domain) -> Workload:
    """Return the workload of ``identity``, ``ranges:2000`` or another form.

    Examples
    --------
    >>> parsed_workload("ranges:50", Domain(9)).queries
    50
    """
    name, _, setting = words.strip().partition(":")
    if name in ("ranges", "rectangles") and re.fullmatch("[0-9]*", setting):
        kind = Ranges if name == "ranges" else Rectangles
        number = int(setting[:12] or QUERIES)
        if not 1 <= number <= MOST_QUERIES:
            raise InputError(
                f"a workload of random {name} has 1 to {MOST_QUERIES:,} of them; "
                f"received {words!r}. All of them are all_ranges"
            )
        return kind.random(domain, number, rng=SEED_OF_QUERIES)
    if name in ("ranges", "rectangles") and names_a_file(setting):
        return _asked_in(Path(setting), domain, boxes=name == "rectangles")
    if names_a_file(words):
        return _asked_in(Path(words.strip()), domain, boxes=domain.ndim > 1)
    if name == "marginals" and setting:
        return Marginals(domain, [_column(one, domain) for one in setting.split(",")])
    if name in PLAIN_WORKLOADS and not setting:
        made: Any = PLAIN_WORKLOADS[name]
        workload: Workload = made(domain)
        return workload
    known = [*PLAIN_WORKLOADS, "ranges", "rectangles", "marginals"]
    raise InputError(
        f"the workload is one of {WORKLOAD_FORMS}; received {words!r}"
        f"{nearest(name, known)}"
    )


def _threshold(setting: str, domain: Domain, words: str) -> Policy:
    number, *choices = setting.split(":")
    chosen: dict[str, Any] = {}
    for one in choices:
        kind = "metric" if one in METRICS else "unit"
        if kind in chosen or one not in (*METRICS, "cells", "value"):
            raise InputError(
                "a threshold is threshold:THETA, then :cells or :value, and on grids "
                f":l1, :l2 or :linf; received {words!r}"
            )
        chosen[kind] = one
    try:
        theta = float(number)
    except ValueError:
        raise InputError(
            f"a threshold is threshold:THETA with a number, as in threshold:5; "
            f"received {words!r}"
        ) from None
    if not math.isfinite(theta):
        raise InputError(f"theta must be finite; received {words!r}. Use full")
    whole = int(theta) if theta == int(theta) else theta
    return Threshold(domain, whole, **chosen)


def _blocks(setting: str, domain: Domain, words: str) -> Policy:
    if names_a_file(setting):
        from .policy_files import labels_from_file

        return Blocks(domain, labels_from_file(Path(setting), domain))
    sides = setting.lower().split("x")
    if not all(re.fullmatch("0*[1-9][0-9]{0,17}", one) for one in sides):
        raise InputError(
            "blocks are blocks:SIZE with a number of cells, blocks:8x8 on a grid, or "
            f"blocks:FILE with a label for each cell; received {words!r}"
        )
    sizes = [int(one) for one in sides]
    if len(sizes) == 1:
        sizes *= domain.ndim
    if len(sizes) != domain.ndim:
        raise InputError(
            f"blocks need one size, or one per column of the domain, which has "
            f"{domain.ndim}; received {words!r}"
        )
    return Blocks(domain, _tiles(domain, sizes))


def _tiles(domain: Domain, sizes: list[int]) -> IntArray:
    """Return the tile of each cell, `sizes` cells per side, numbered in C order."""
    labels = np.zeros((1,) * domain.ndim, dtype=np.int64)
    for axis, (cells, size) in enumerate(zip(domain.shape, sizes, strict=True)):
        along = np.arange(cells) // size
        shape = [cells if one == axis else 1 for one in range(domain.ndim)]
        labels = labels * (int(along[-1]) + 1) + along.reshape(shape)
    return np.ascontiguousarray(labels)


def _graph(setting: str, domain: Domain, words: str) -> Policy:
    if not names_a_file(setting):
        raise InputError(
            "a graph is graph:FILE, a .csv with two categories, or two cell numbers, "
            f"per line; received {words!r}"
        )
    from .policy_files import edges_from_file

    return Graph(domain, edges_from_file(Path(setting), domain))


def _product(setting: str, domain: Domain, words: str) -> Policy:
    parts = [one.strip() for one in setting.split(",")]
    if len(parts) != domain.ndim:
        raise InputError(
            f"a product names one policy per column of the domain, which has "
            f"{domain.ndim}; received {words!r}"
        )
    factors = [
        parsed_policy(one, domain.marginal(axis)) for axis, one in enumerate(parts)
    ]
    return Product(*factors, domain=domain)


def _column(word: str, domain: Domain) -> str | int:
    stripped = word.strip()
    known = [name for name in domain.names if name is not None]
    if stripped in known:
        return stripped
    if re.fullmatch("[0-9]{1,9}", stripped) and int(stripped) < domain.ndim:
        return int(stripped)
    numbers = "0" if domain.ndim == 1 else f"0 to {domain.ndim - 1}"
    raise InputError(
        f"there is no column {stripped!r} in the domain{nearest(stripped, known)}; it "
        f"has {', '.join(known) or f'no names, and the numbers {numbers}'}"
    )


def _asked_in(path: Path, domain: Domain, *, boxes: bool) -> Workload:
    """Return the queries of a file: starts, then ends, of each column."""
    rows: FloatArray = numbers_from_file(path, "queries, starts then ends")
    wanted = 2 * domain.ndim if boxes else 2
    if rows.ndim != 2 or rows.shape[1] != wanted:
        raise InputError(
            f"each line of {path} needs {wanted} numbers, the starts and then the "
            f"(exclusive) ends; received shape {rows.shape}"
        )
    if boxes:
        return Rectangles(domain, rows[:, : domain.ndim], rows[:, domain.ndim :])
    return Ranges(domain, rows[:, 0], rows[:, 1])
