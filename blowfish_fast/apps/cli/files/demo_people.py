"""Made-up people to try everything on: nobody's records, always the same."""

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

EXAMPLE_JOB = f"""\
# A private release, stated once.
#   see what it would cost and promise:   blowfish release FILE --dry-run
#   release:                              blowfish release FILE
# Lines marked (two columns) take the place of those for one.

[data]
source = "{DEMO_NAME}.csv"    # .csv .parquet .npy .duckdb, or postgres://...
missing = "refuse"               # or "cell": a cell of their own; or "clamp"
outside = {{ income = "clamp" }}   # into the end cells; or "cell", or "refuse"
# encoding = "cp1252"            # of a CSV file that is not written in UTF-8
# decimal = ","                  # numbers like 1.234,5
# dates = "DD.MM.YYYY"           # unless they read like 2024-05-31
# blanks = ["-", "n.a."]         # missing, beside empty and NA

[domain]                         # public: stated here, never read off the data
income = "0:120000:1000"         # from : to : width of a cell; dates by month
# district = {list(DISTRICTS)!r}     # (two columns)

[policy]                         # what must stay indistinguishable: no default
kind = "threshold"               # add_remove full line attribute blocks graph product
theta = 5000                     # two incomes at most 5000 apart ...
unit = "value"                   # ... measured by the domain; or "cells"
# kind = "product"               # (two columns) one policy for each
# factors = ["threshold:5000:value", "full"]    # (two columns)
# known = ["district"]           # (two columns) its exact totals are public already

[workload]                       # what will be asked: noise is spent where it counts
kind = "ranges"                  # identity prefixes all_ranges rectangles marginals
number = 500
# kind = "identity"              # (two columns) every cell

[mechanism]
name = "best"                    # chosen from public facts; or dawa, laplace, ...
# records = 10000                # a rough number; then "best" tries adaptive ones too

[budget]
epsilon = 0.5                    # or by accuracy: alpha = 100 and beta = 0.05;
                                 # or by risk: risk = "0.1:0.9"
ledger = "{DEMO_NAME}.ledger"
total = 2.0                      # of a ledger that does not exist yet
request = "incomes"              # asked again under this name, it costs nothing

[output]
release = "{DEMO_NAME}.blowfish"
table = "{DEMO_NAME}-released.csv"
picture = "{DEMO_NAME}.png"
# round = true                   # publish whole counts that add up
# report = "{DEMO_NAME}.html"    # one page: promise, picture, numbers, accuracy
"""


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
