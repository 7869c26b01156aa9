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
    "description": "Made-up visits to wards. Patients are protected with all their "
    "visits, of which at most 5 are counted, and so is whether they came at all.",
    "attributes": [
        {
            "name": "age",
            "cells": {"start": 0, "stop": 100, "width": 5},
            "missing": "none",
        },
        {"name": "ward", "levels": ["emergency", "heart", "children", "surgery"]},
    ],
    "presence": True,
    "person": "patient",
    "record": "visit",
    "at_most": 5,
}


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
            "age INTEGER NOT NULL, ward TEXT)"
        )
        connection.execute("INSERT INTO visits SELECT * FROM came")
    finally:
        connection.close()


def _visits(rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return visits of patients, some of whom come far more often than others."""
    times = np.minimum(rng.zipf(2.2, PATIENTS), 200)
    patient = np.repeat(np.arange(PATIENTS), times)
    age = np.clip(rng.gamma(4.0, 12.0, PATIENTS), 0, 99).astype(np.int64)[patient]
    wards = np.array(VISITS["attributes"][1]["levels"], dtype=object)
    ward = wards[rng.choice(wards.size, patient.size, p=[0.4, 0.3, 0.1, 0.2])]
    return {
        "patient": patient.tolist(),
        "visit": list(range(patient.size)),
        "age": age.tolist(),
        "ward": ward.tolist(),
    }
