"""A workspace to try everything on: made-up salaries and visits, policies, analysts.

Nothing is downloaded; the people are drawn from a fixed seed and stand for nobody.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

PEOPLE = 50_000
PATIENTS = 8_000

SALARIES: dict[str, Any] = {
    "name": "salaries",
    "description": "Made-up people: age, yearly salary in thousands, department.",
    "attributes": [
        {
            "name": "salary",
            "cells": {"start": 0, "stop": 256, "width": 1},
            "missing": "none",
        },
        {
            "name": "age",
            "cells": {"start": 16, "stop": 80, "width": 1},
            "missing": "none",
        },
        {
            "name": "department",
            "levels": ["care", "finance", "logistics", "research", "sales"],
        },
    ],
}

VISITS: dict[str, Any] = {
    "name": "visits",
    "description": "Made-up visits to wards in 2024. Patients are protected with all "
    "their visits, of which at most 5 are counted, and so is whether they came at all. "
    "Some ages are missing.",
    "attributes": [
        {
            "name": "age",
            "cells": {"start": 0, "stop": 100, "width": 5},
            "extras_joined": "end",
        },
        {"name": "ward", "levels": ["emergency", "heart", "children", "surgery"]},
        {
            "name": "day",
            "dates": [f"2024-{month:02}-01" for month in range(1, 13)] + ["2025-01-01"],
            "missing": "none",
        },
    ],
    "policies": {"age": {"kind": "threshold", "theta": 10, "unit": "value"}},
    "presence": 2,
    "person": "patient",
    "record": "visit",
    "at_most": 5,
}

TABLES = [SALARIES, VISITS]


def make_demo(path: Path) -> None:
    """Write the demo's database."""
    import duckdb

    rng = np.random.default_rng(2014)
    age = np.clip(rng.gamma(9.0, 4.6, PEOPLE) + 10, 16, 79).astype(np.int64)
    department = rng.choice(5, PEOPLE, p=[0.3, 0.1, 0.25, 0.15, 0.2])
    base = np.array([38.0, 62.0, 34.0, 58.0, 44.0])[department]
    salary = np.round(base * rng.lognormal(0.0, 0.35, PEOPLE) * (0.6 + age / 100), 1)
    names = np.array(SALARIES["attributes"][2]["levels"], dtype=object)[department]
    names[rng.random(PEOPLE) < 0.01] = None
    connection = duckdb.connect(str(path))
    try:
        connection.execute(
            "CREATE TABLE salaries (salary DOUBLE NOT NULL, age INTEGER NOT NULL, "
            "department TEXT)"
        )
        columns = {"salary": salary, "age": age, "department": names}
        import pyarrow

        people = pyarrow.table({key: list(value) for key, value in columns.items()})
        connection.register("people", people)
        connection.execute("INSERT INTO salaries SELECT * FROM people")
        connection.register("came", pyarrow.table(_visits(rng)))
        connection.execute(
            "CREATE TABLE visits (patient INTEGER NOT NULL, visit INTEGER NOT NULL, "
            "age INTEGER, ward TEXT, day DATE NOT NULL)"
        )
        connection.execute("INSERT INTO visits SELECT * FROM came")
    finally:
        connection.close()


def _visits(rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return visits of patients, some of whom come far more often than others."""
    times = np.minimum(rng.zipf(2.2, PATIENTS), 200)
    patient = np.repeat(np.arange(PATIENTS), times)
    ages = np.clip(rng.gamma(4.0, 12.0, PATIENTS), 0, 99).astype(np.int64)
    known = rng.random(PATIENTS) > 0.03
    age = [int(ages[one]) if known[one] else None for one in patient]
    day = np.datetime64("2024-01-01") + rng.integers(0, 366, patient.size)
    wards = np.array(VISITS["attributes"][1]["levels"], dtype=object)
    ward = wards[rng.choice(wards.size, patient.size, p=[0.4, 0.3, 0.1, 0.2])]
    return {
        "patient": patient.tolist(),
        "visit": list(range(patient.size)),
        "age": age,
        "ward": ward.tolist(),
        "day": day.tolist(),
    }
