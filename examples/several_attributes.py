"""A table of several attributes, from records to private answers and back to records.

A hospital has visits with an age, a ward, a day and a cost. Some ages are missing and
some costs lie beyond the largest public edge. In order:

    records    chunk by chunk, stray values in public cells of their own
    policy     whether a visit took place at all is a secret
    release    one histogram over age x ward x month x cost, paid from a ledger
    questions  counts, sums, means and groups, with intervals; free
    records    synthetic ones, drawn from the release
    belief     how sure someone could have become of one patient's value
    session    the other model: one question at a time, each paid for

Run it with ``python examples/several_attributes.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import blowfish_fast as bf
from blowfish_fast.release.group_answers import Estimate

VISITS = 200_000
WARDS = ("surgery", "children", "heart", "other")
MONTHS = np.arange("2024-01", "2025-02", dtype="datetime64[M]")


def domain() -> bf.Domain:
    """Return the public cells; nothing here depends on the records."""
    return bf.Domain.product(
        bf.Domain.from_edges(range(0, 101, 10), name="age"),
        bf.Domain.from_levels(WARDS, name="ward"),
        bf.Domain.from_dates(MONTHS, name="day"),
        bf.Domain.from_edges([0, 100, 300, 1000, 3000, 10_000], name="cost"),
    ).with_extra_cells(missing="age", outside="cost")


def records(rng: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
    """Yield the visits in chunks, as a database would."""
    for _ in range(4):
        visits = VISITS // 4
        ward = rng.choice(4, size=visits, p=[0.3, 0.15, 0.2, 0.35])
        age = np.clip(rng.normal(np.array([50, 8, 65, 40])[ward], 12), 0, 99.9)
        age[rng.random(visits) < 0.02] = np.nan
        day = np.datetime64("2024-01-01") + rng.integers(0, 366, visits)
        cost = rng.lognormal(np.array([7.5, 5.5, 7.8, 5.8])[ward], 0.8)
        yield {"age": age, "ward": np.array(WARDS)[ward], "day": day, "cost": cost}


def shown(answer: Estimate, digits: int = 0) -> str:
    """Write an answer with its interval."""
    held = "truth" if answer.holds_truth else "noise"
    low, high = answer.interval(0.95, of=held)
    words = "95 % sure" if held == "truth" else "noise only"
    return f"{answer:,.{digits}f}  ({words}: {low:,.{digits}f} to {high:,.{digits}f})"


def main() -> dict[str, float]:
    """Go through the steps; return some of the figures printed."""
    cells = domain()
    data = bf.Histogram.from_records(cells, records(np.random.default_rng(5)))
    print(f"{data!r}: {cells.size:,} cells")

    policy = bf.policies.AddRemove(cells)
    ledger = bf.Ledger(epsilon=1.0, policy=policy)
    laplace = bf.Laplace(policy, bf.workloads.Identity(cells), epsilon=0.5)
    release = ledger.release(laplace, data, rng=1)

    heart = release.where(ward="heart", age=slice(40, 75))
    print(f"heart, 40 to 75          {shown(heart.count())}")
    print(f"  of all visits          {shown(heart.relative_count(), 4)}")
    costs = heart.where(cost=slice(None))
    print(f"  their mean cost        {shown(costs.mean('cost'))}")
    spring = heart.where(day=slice("2024-03", "2024-06"))
    print(f"  March to May           {shown(spring.count())}")
    print(f"age unknown              {shown(release.where(age='(missing)').count())}")
    print("mean age by ward")
    known = release.where(age=slice(None))
    for ward, mean in known.group_by("ward").mean("age").items():
        print(f"  {ward:<22} {shown(mean, 1)}")

    table = release.sample(rng=2)
    print(f"synthetic records        {table!r}")
    again = bf.Histogram.from_records(cells, table.columns)
    children = float(again.marginal("ward").counts[1])

    belief = bf.risk(0.05, epsilon=ledger.spent, policy=policy)
    print(f"a guess of 5 % could have become {float(belief):.1%}")

    session = bf.Session(ledger, data)
    by_ward = session.partition("ward").noisy_count(epsilon=0.1, rng=3)
    print("asked one by one, all wards for one charge")
    for ward, count in by_ward.items():
        print(f"  {ward:<22} {shown(count)}")
    print(f"left in the ledger       eps = {float(ledger.remaining):g}")
    return {
        "heart": float(heart.count()),
        "children": children,
        "by_ward": float(sum(by_ward.values())),
    }


if __name__ == "__main__":
    main()
