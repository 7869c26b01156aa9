"""Made-up people to try everything on: nobody's records, always the same.

    person  age  income  district  joined
    1       34   41200   north     2021-03-17

Drawn from a fixed seed, so examples in the documentation come out alike everywhere.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from blowfish_fast._support.typing import AnyArray

SEED = 2014
PEOPLE = 10_000
DISTRICTS = ("centre", "east", "north", "south", "west")
FIRST_DAY = np.datetime64("2020-01-01")
DAYS = 1461
OLDEST = 90
LARGEST_INCOME = 199_900

DEMO_NAME = "blowfish-people"
"""Stem of the files that ``blowfish release --demo-data`` writes."""


def made_up_people() -> dict[str, AnyArray]:
    """Return the columns of the made-up table."""
    rng = np.random.default_rng(SEED)
    age = np.clip(16 + rng.gamma(4.5, 7.5, PEOPLE), 16, OLDEST).astype(np.int64)
    district = rng.choice(len(DISTRICTS), PEOPLE, p=[0.34, 0.2, 0.12, 0.22, 0.12])
    level = np.array([46.0, 31.0, 38.0, 34.0, 41.0])[district] * 1000
    career = 0.55 + 0.6 * np.exp(-(((age - 50) / 22.0) ** 2))
    income = np.round(level * career * rng.lognormal(0.0, 0.45, PEOPLE), -2)
    joined = FIRST_DAY + np.floor(DAYS * rng.beta(1.6, 1.0, PEOPLE)).astype(np.int64)
    return {
        "person": np.arange(1, PEOPLE + 1),
        "age": age,
        "income": np.minimum(income, LARGEST_INCOME).astype(np.int64),
        "district": np.array(DISTRICTS, dtype=object)[district],
        "joined": joined,
    }


def write_demo_people(path: Path) -> None:
    """Write the made-up table as CSV."""
    columns = made_up_people()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(one.tolist() for one in columns.values()), strict=True))
    path.write_text(text.getvalue(), encoding="utf-8")
