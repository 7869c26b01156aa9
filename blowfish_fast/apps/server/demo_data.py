"""A database to try everything on: made-up people from a fixed seed."""

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
            "unit": "thousand a year",
            "missing": "none",
        },
        {
            "name": "age",
            "cells": {"start": 16, "stop": 80, "width": 1},
            "unit": "years",
            "missing": "none",
        },
        {
            "name": "department",
            "levels": ["care", "finance", "logistics", "research", "sales"],
        },
    ],
}
MONTHS = [f"2024-{month:02}-01" for month in range(1, 13)] + ["2025-01-01"]
DAY = {"name": "day", "dates": MONTHS, "missing": "none"}
OF_PATIENTS = {"person": "patient", "presence": 2, "population": "patients"}
VISITS: dict[str, Any] = {
    "name": "visits",
    "description": "Made-up visits to wards in 2024. Patients are protected with all "
    "their visits, of which at most 5 are counted, and so is whether they came at all. "
    "Some ages are missing.",
    "attributes": [
        {
            "name": "age",
            "cells": {"start": 0, "stop": 100, "width": 5},
            "unit": "years",
            "extras_joined": "end",
        },
        {"name": "ward", "levels": ["emergency", "heart", "children", "surgery"]},
        DAY,
    ],
    "policies": {"age": {"kind": "threshold", "theta": 10, "unit": "value"}},
    "record": "visit",
    "at_most": 5,
    **OF_PATIENTS,
}
TESTS: dict[str, Any] = {
    "name": "tests",
    "description": "Made-up blood tests of the same patients, with whom it shares one "
    "budget. At most 3 tests of a patient are counted; some results are missing, and "
    "which ones is public.",
    "attributes": [
        {
            "name": "glucose",
            "cells": {"start": 2, "stop": 22, "width": 0.5},
            "unit": "mmol/l",
            "extras_joined": "apart",
        },
        DAY,
    ],
    "policies": {"glucose": {"kind": "threshold", "theta": 1, "unit": "value"}},
    "record": "test",
    "at_most": 3,
    **OF_PATIENTS,
}

TABLES = [SALARIES, VISITS, TESTS]
COLUMNS = {
    "salaries": "salary DOUBLE NOT NULL, age INTEGER NOT NULL, department TEXT",
    "visits": "patient INTEGER NOT NULL, visit INTEGER NOT NULL, age INTEGER, "
    "ward TEXT, day DATE NOT NULL",
    "tests": "patient INTEGER NOT NULL, test INTEGER NOT NULL, glucose DOUBLE, "
    "day DATE NOT NULL",
}


def make_demo(path: Path) -> None:
    """Write the demo's database."""
    import duckdb
    import pyarrow

    rng = np.random.default_rng(2014)
    rows = {"salaries": _salaries(rng), "visits": _visits(rng), "tests": _tests(rng)}
    connection = duckdb.connect(str(path))
    try:
        for name, columns in COLUMNS.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            connection.register("made_up", pyarrow.table(rows[name]))
            connection.execute(f"INSERT INTO {name} SELECT * FROM made_up")
    finally:
        connection.close()


def _salaries(rng: np.random.Generator) -> dict[str, list[Any]]:
    age = np.clip(rng.gamma(9.0, 4.6, PEOPLE) + 10, 16, 79).astype(np.int64)
    department = rng.choice(5, PEOPLE, p=[0.3, 0.1, 0.25, 0.15, 0.2])
    base = np.array([38.0, 62.0, 34.0, 58.0, 44.0])[department]
    salary = np.round(base * rng.lognormal(0.0, 0.35, PEOPLE) * (0.6 + age / 100), 1)
    names = np.array(SALARIES["attributes"][2]["levels"], dtype=object)[department]
    names[rng.random(PEOPLE) < 0.01] = None
    return {"salary": list(salary), "age": list(age), "department": list(names)}


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


def _tests(rng: np.random.Generator) -> dict[str, list[Any]]:
    patient = np.sort(rng.integers(0, PATIENTS, 2 * PATIENTS))
    glucose = np.round(rng.lognormal(1.75, 0.25, patient.size), 1).astype(object)
    glucose[rng.random(patient.size) < 0.05] = None
    day = np.datetime64("2024-01-01") + rng.integers(0, 366, patient.size)
    return {
        "patient": patient.tolist(),
        "test": list(range(patient.size)),
        "glucose": glucose.tolist(),
        "day": day.tolist(),
    }
