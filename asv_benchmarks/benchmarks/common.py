"""Sizes, data and the shape that all benchmarks share.

Nothing is read from files: counts are generated from fixed seeds.

    dense       |||:|||||:||    waves with Poisson noise; few distinct values
    sparse      .  . |   .      one cell in twenty, with a heavy tail
    distinct    :|.|:.!|.:|     almost no value occurs twice
    fractions                   uniform in [0, 1), as float64
"""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from time import process_time
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import Domain, Histogram, policies, workloads
from blowfish_fast.errors import BlowfishError
from blowfish_fast.kernels.sampling.word_sources import WordStream
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.mechanisms.registry import MECHANISMS

# What another process kept would be read instead of worked out.
os.environ["BLOWFISH_CACHE_DIR"] = ""
# run_quick.py asks for the small form: one size each, to see that everything works.
SMALL = os.environ.get("BLOWFISH_BENCHMARKS") == "small"
QUERIES = 200 if SMALL else 2000
EPSILON = "0.1"
Call = Callable[[], object]


def sizes(largest: int = 20, *, smallest: int = 12) -> list[int]:
    """Return powers of two that grow by fours, or the smallest alone."""
    if SMALL:
        return [2**smallest]
    return [2**power for power in range(smallest, largest + 1, 2)]


class Timed(ABC):
    """CPU time of one call, prepared and called once outside the clock.

    The first call compiles, or loads the compiled code; asv repeats `setup` before
    each sample, so what was prepared is kept for as long as the parameters stay.
    """

    timer = staticmethod(process_time)
    timeout = 300
    params: ClassVar[list[Any]] = sizes()
    param_names: ClassVar[list[str]] = ["cells"]

    _prepared: tuple[Any, ...] | None = None
    _call: Call

    def __init_subclass__(cls) -> None:
        """Take the names of the parameters from `prepare`."""
        cls.param_names = [*inspect.signature(cls.prepare).parameters][1:]

    @abstractmethod
    def prepare(self, *parameters: Any) -> Call:
        """Return the call to be timed."""

    def setup(self, *parameters: Any) -> None:
        if self._prepared != parameters:
            self._call = self.prepare(*parameters)
            self._call()
            self._prepared = parameters

    def time_call(self, *parameters: Any) -> None:
        self._call()


def words() -> WordStream:
    """Return a stream of random words, the same in every run."""
    return Randomness(seed=1).stream()


def counts(kind: str, cells: int) -> np.ndarray:
    """Return the cells of one kind."""
    generator = np.random.default_rng(cells)
    if kind == "dense":
        wave = 1.2 + np.sin(np.arange(cells) * (40.0 / cells))
        return generator.poisson(50 * wave)
    if kind == "sparse":
        heavy = np.minimum(generator.zipf(1.5, size=cells), 10**7)
        return np.where(generator.random(cells) < 0.05, heavy, 0)
    if kind == "distinct":
        return generator.integers(0, 2**30, size=cells)
    if kind == "fractions":
        return generator.random(cells)
    raise ValueError(f"no data of kind {kind!r}")


def side(cells: int) -> int:
    """Return the side of a square grid of so many cells, a power of four."""
    return 1 << (cells.bit_length() // 2)


def line(cells: int, kind: str = "dense") -> tuple[Domain, Histogram]:
    """Return one attribute and its counts."""
    domain = Domain(cells)
    return domain, Histogram(domain, counts(kind, cells))


def grid(cells: int) -> tuple[Domain, Histogram]:
    """Return a square map: a few towns in an empty country."""
    edge = side(cells)
    generator = np.random.default_rng(cells)
    centres = generator.random((12, 2)) * edge
    spreads = edge * generator.uniform(0.01, 0.1, size=12)
    towns = generator.integers(0, 12, size=4 * cells)
    offsets = generator.normal(size=(towns.size, 2)) * spreads[towns][:, None]
    places = np.clip(centres[towns] + offsets, 0, edge - 1).astype(np.int64)
    flat = np.bincount(places[:, 0] * edge + places[:, 1], minlength=edge * edge)
    domain = Domain((edge, edge))
    return domain, Histogram(domain, flat.reshape(edge, edge))


def ranges(domain: Domain, queries: int = QUERIES) -> workloads.Ranges:
    """Return uniform random ranges."""
    return workloads.Ranges.random(domain, queries, rng=1)


def rectangles(domain: Domain, queries: int = QUERIES) -> workloads.Rectangles:
    """Return uniform random rectangles."""
    return workloads.Rectangles.random(domain, queries, rng=1)


def policies_over(domain: Domain) -> list[policies.Policy]:
    """Return policies in the order in which a mechanism is tried with them."""
    simple = [policies.AddRemove(domain), policies.Full(domain)]
    return simple + ([policies.Line(domain)] if domain.ndim == 1 else [])


def registered_example(name: str, cells: int) -> tuple[Mechanism, Histogram]:
    """Return a mechanism's own example, on the first setting that it accepts.

    Some mechanisms ask for a line policy, some for a grid. One that accepts nothing
    here is an error, not a gap in the table.
    """
    edge = side(cells)
    refusals = []
    for domain in (Domain(cells), Domain((edge, edge))):
        for policy in policies_over(domain):
            try:
                return MECHANISMS[name].example(domain, policy, EPSILON)
            except BlowfishError as refusal:
                refusals.append(f"{policy!r}: {refusal}")
    raise RuntimeError(f"{name} refused every setting:\n" + "\n".join(refusals))
