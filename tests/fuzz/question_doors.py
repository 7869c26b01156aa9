"""Doors through which questions enter: workloads, their answers, coarser cells, paths.

    Linear(domain, X)   Ranges(domain, X, Y)   workload.answer(X)   domain.coarsened(X)

X is ragged, made of objects, or has numbers beyond every type. A refusal is one of the
package's own errors; ValueError, TypeError and OverflowError must not come out.
"""

from __future__ import annotations

import functools
import math
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

import blowfish_fast as bf

from .examples import domains, histograms
from .values import anything, mutated, scalar

HUGE = (10**400, -(10**400), 1e308, 2**63, 2**1030, Fraction(10**400, 3), math.inf)


@functools.cache
def workloads():
    """Return a workload of every kind, over small domains."""
    line, grid = domains()[:2]
    ask = bf.workloads
    return [
        ask.Identity(line),
        ask.Total(line),
        ask.Prefixes(line),
        ask.AllRanges(line),
        ask.Ranges(line, [0, 3], [4, 8]),
        ask.Rectangles(grid, [[0, 0]], [[2, 2]]),
        ask.Marginals(grid, (0,)),
        ask.Linear(grid, np.eye(12)[:2]),
        ask.Sum(line, np.arange(8)),
        ask.Tables(grid, ways=1),
    ]


def ragged(rng):
    """Return nested lists of uneven length, objects or huge numbers."""
    kind = rng.randrange(4)
    if kind == 0:
        return [[1] * rng.randrange(4) for _ in range(rng.randrange(1, 5))]
    if kind == 1:
        made = np.empty(rng.randrange(1, 13), dtype=object)
        made[:] = [scalar(rng) for _ in range(made.size)]
        return made
    if kind == 2:
        return [rng.choice((0, 1, *HUGE)) for _ in range(rng.choice((8, 12)))]
    return anything(rng)


def answer(workload, counts):
    """Answer questions from foreign counts."""
    return workload.answer(counts)


def answer_arguments(rng):
    workload = rng.choice(workloads())
    good = np.arange(workload.domain.size).reshape(workload.domain.shape)
    kind = rng.randrange(3)
    if kind == 0:
        return [workload, good if rng.random() < 0.3 else mutated(rng, good)], {}
    if kind == 1:
        return [workload, mutated(rng, good.tolist())], {}
    return [workload, ragged(rng)], {}


def coarsen(data, groups):
    """Merge the cells of a domain, or of counts over it."""
    return data.coarsened(groups)


def coarsen_arguments(rng):
    usual = [
        {"age": [0, 2.5, 9]},
        {"kind": {"x": ["a", "b"], "y": ["c"]}},
        {0: [0, 4, 8]},
        {"age": [Fraction(0), 9]},
    ]
    data = rng.choice([*domains(), *histograms()])
    groups = rng.choice(usual)
    kind = rng.randrange(5)
    if kind == 0:
        groups = {rng.choice(list(groups)): ragged(rng)}
    elif kind == 1:
        groups = anything(rng)
    elif kind == 2:
        groups = mutated(rng, groups)
    return [data, groups], {}


def ask_linear(domain, matrix):
    """Build linear questions and find their sensitivity."""
    asked = bf.workloads.Linear(domain, matrix)
    bf.sensitivity(bf.policies.Full(domain), asked)
    return asked


def linear_arguments(rng):
    domain = rng.choice(domains())
    good = [[rng.choice((0, 1, -2, 0.5)) for _ in range(domain.size)] for _ in "ab"]
    kind = rng.randrange(4)
    if kind == 0:
        good[0][0] = rng.choice(HUGE)
    elif kind == 1:
        good = mutated(rng, good)
    elif kind == 2:
        good = ragged(rng)
    return [domain, good], {}


def ask_ranges(domain, starts, ends):
    """Build ranges and ask for something about them."""
    asked = bf.workloads.Ranges(domain, starts, ends)
    asked.answer(np.ones(domain.shape))
    return asked


def ranges_arguments(rng):
    ends = [0, 2], [3, 5]
    if rng.random() < 0.8:
        ends = tuple(rng.choice((mutated(rng, one), ragged(rng))) for one in ends)
    return [domains()[0], *ends], {}


@functools.cache
def _folder():
    made = Path(tempfile.mkdtemp(prefix="fuzz"))
    (made / "folder").mkdir()
    (made / "text").write_text("not a ledger\n")
    (made / "empty").write_bytes(b"")
    (made / "broken_link").symlink_to(made / "nowhere" / "file")
    return made


def open_path(path):
    """Open or create a ledger at a foreign place, and close it."""
    with bf.Ledger(path, epsilon=1, policy=bf.policies.Full(domains()[0])) as ledger:
        ledger.verify()


def path_arguments(rng):
    inside = ("folder", "text", "empty", "broken_link", "no/where", "x" * 300)
    inside += ("new", "a\x00b", "new\n", "\udcff", "folder/", "text/below")
    if rng.random() < 0.2:
        # A path is text or a Path; nothing else may open a file in the working folder.
        return [rng.choice((b"bytes", 7.5, [], object(), True, "", "\x00"))], {}
    name = rng.choice(inside)
    if name.startswith("new"):
        (_folder() / name).unlink(missing_ok=True)
    place = f"{_folder()}/{name}"
    return [place if rng.random() < 0.5 else Path(place)], {}


def forget():
    """Remove the files."""
    shutil.rmtree(_folder(), ignore_errors=True)
    _folder.cache_clear()


QUESTIONS = {
    "workload.answer of any counts": (answer, answer_arguments),
    "coarsened by any groups": (coarsen, coarsen_arguments),
    "workloads.Linear of any matrix": (ask_linear, linear_arguments),
    "workloads.Ranges of any ends": (ask_ranges, ranges_arguments),
    "Ledger, at any path": (open_path, path_arguments),
}
