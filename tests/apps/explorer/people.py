"""A made-up table with every awkward value, as columns, and its public description."""

from __future__ import annotations

import numpy as np

from blowfish_fast.apps.explorer import TableSpec

SIZE = 3000


def columns(seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.integers(-5, 110, SIZE).astype(float)
    age[::50] = np.nan
    age[3::400] = np.inf
    age[4::400] = -np.inf
    age[6::97] = 99.5
    pay = np.round(rng.normal(3000, 2000, SIZE), 2)
    pay[::90] = np.inf
    pay[5::90] = -np.inf
    pay[7::200] = 500.0
    pay[9::200] = 5000.0
    sex = rng.choice(["f", "m", "o'x\"; --"], SIZE).astype(object)
    sex[::70] = None
    rooms = rng.integers(0, 6, SIZE)
    day = np.datetime64("2024-01-01T00:00") + rng.integers(-100, 400 * 24, SIZE).astype(
        "timedelta64[h]"
    )
    return {"age": age, "pay": pay, "sex": sex, "rooms": rooms, "day": day}


TABLE = TableSpec(
    name="people",
    attributes=[
        {"name": "age", "cells": {"start": 0, "stop": 100, "width": 1}},
        {"name": "pay", "edges": [0, 500, 1000, 1500, 2000, 5000], "outside": "cell"},
        {"name": "sex", "levels": ["f", "m"]},
        {"name": "rooms", "levels": [0, 1, 2, 3, 4], "missing": "none"},
        {
            "name": "day",
            "dates": ["2024-01-01", "2024-02-01", "2024-07-01", "2025-01-01"],
        },
    ],
)


def cells_by_definition(name: str, values: np.ndarray) -> np.ndarray:
    """Return the cell of each record, one record at a time, from the stated rules."""
    spec = TABLE.attribute(name)
    (axis,) = spec.domain().attributes
    found = []
    for value in values.tolist() if name != "day" else values:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            found.append(axis.extra_cell("(missing)"))
        elif axis.levels is not None:
            known = axis.levels[: axis.regular]
            outside = axis.extra_cell("(outside)")
            found.append(known.index(value) if value in known else outside)
        else:
            cuts = (
                [np.datetime64(one) for one in spec.dates] if spec.dates else axis.cuts
            )
            below = sum(value >= cut for cut in cuts)
            if below == len(cuts) and value == cuts[-1] and not spec.dates:
                below -= 1
            if 1 <= below < len(cuts):
                found.append(below - 1)
            elif spec.clamped:
                found.append(min(max(below - 1, 0), len(cuts) - 2))
            else:
                found.append(axis.extra_cell("(outside)"))
    return np.array(found)
