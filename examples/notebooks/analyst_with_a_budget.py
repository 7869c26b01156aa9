# %% [markdown]
# # An analyst with a budget
#
# A curator puts a table behind an `Explorer`: what is public about its columns, what
# must stay secret, and how much epsilon may be spent in all. An analyst says how
# accurate an answer has to be, sees its price before asking, and gets numbers with
# intervals until the budget is spent. Records never leave the database.
#
# The visits are made up. The noise here is real, secure noise without a seed, as it is
# whenever a ledger pays: run the notebook again and the answers differ a little.

# %%
import ibis
import matplotlib.pyplot as plt
import numpy as np

import blowfish_fast as bf
from blowfish_fast.errors import BudgetError

database = ibis.duckdb.connect()
database.raw_sql("SELECT setseed(0.4)")
_ = database.raw_sql(
    """
    CREATE TABLE visits AS
    SELECT least(greatest(45 + 20 * (random() + random() + random() - 1.5), 0), 99) age,
           CASE WHEN random() < 0.6 THEN 'east' ELSE 'west' END AS ward,
           DATE '2024-01-01' + (random() * 364)::INTEGER AS day
    FROM range(50000)
    """
)

# %% [markdown]
# ## The curator's side
#
# Ranges and levels are stated, never read from the records. Ages up to 5 years apart
# stay indistinguishable, and so do any two wards and any two days.

# %%
table = {
    "name": "visits",
    "attributes": [
        {"name": "age", "cells": {"start": 0, "stop": 100, "width": 1}},
        {"name": "ward", "levels": ["east", "west"]},
        {
            "name": "day",
            "dates": [f"2024-{month:02}-01" for month in range(1, 13)] + ["2025-01-01"],
        },
    ],
    "policies": {"age": {"kind": "threshold", "theta": 5}},
}
explorer = bf.explorer.Explorer(table, database, epsilon=1)
print(explorer.ledger.policy.describe())

# %% [markdown]
# ## What would it cost?
#
# The analyst wants the number of visits by age, in steps of 10 years, each within 150
# of the truth except with probability 0.05. `explain` finds the cheapest mechanism that
# promises this. It reads no data and costs nothing.

# %%
question = {
    "kind": "histogram",
    "table": "visits",
    "attribute": "age",
    "width": 10,
    "cost": {"alpha": 150, "beta": 0.05},
}
plan = explorer.explain(question)
print(f"{plan['mechanism']}: epsilon {plan['cost']:.4f} of {plan['remaining']:.2f}")
for candidate in plan["candidates"][:4]:
    print("  ", candidate["name"], candidate.get("epsilon"))

# %% [markdown]
# A stricter accuracy costs more. The price for several values of alpha:

# %%
alphas = np.array([20, 40, 80, 160, 320])
costs = [
    explorer.explain({**question, "cost": {"alpha": int(a), "beta": 0.05}})["cost"]
    for a in alphas
]
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.loglog(alphas, costs, "o-", color=bf.plotting.palette.ESTIMATE)
axes.axhline(1, color="grey", linestyle="--", linewidth=1)
axes.text(alphas[-1], 0.95, "whole budget", ha="right", va="top", color="grey")
axes.set_xticks(alphas, labels=[str(one) for one in alphas])
axes.set_yticks([0.05, 0.1, 0.2, 0.5, 1], labels=["0.05", "0.1", "0.2", "0.5", "1"])
axes.minorticks_off()
axes.set_xlabel("alpha: largest error, in visits")
_ = axes.set_ylabel("price, epsilon")

# %% [markdown]
# ## Asking

# %%
answer = explorer.ask(question, request="ages by decade")
for start, value, (low, high) in zip(
    range(0, 100, 10), answer.values, answer.intervals, strict=False
):
    print(f"age {start:2} to {start + 9}: {value:8.0f}   [{low:7.0f}, {high:7.0f}]")
print()
print(answer.promise)

# %% [markdown]
# Asked again, the same answer comes back and nothing is charged: averaging many answers
# to remove the noise does not work.

# %%
again = explorer.ask(question, request="ages by decade")
print(again.replayed, (again.values == answer.values).all())

# %% [markdown]
# More questions: ages added up from below, in one ward; and visits by month and ward.

# %%
explorer.ask(
    {
        "kind": "cumulative",
        "table": "visits",
        "attribute": "age",
        "filters": [{"attribute": "ward", "values": ["east"]}],
        "cost": {"alpha": 200, "beta": 0.05},
    },
    request="ages in the east",
)
explorer.ask(
    {
        "kind": "histogram2d",
        "table": "visits",
        "attributes": ["day", "ward"],
        "cost": {"alpha": 100, "beta": 0.05},
    },
    request="months and wards",
)
print(f"spent {float(explorer.ledger.spent):.4f}")

# %% [markdown]
# ## The end of the budget
#
# What cannot be paid is refused before anything is drawn.

# %%
try:
    explorer.ask({**question, "width": 1, "cost": {"epsilon": 0.9}})
except BudgetError as refusal:
    print(refusal)

# %%
axes = bf.plotting.budget_over_time(explorer.ledger)

# %% [markdown]
# The ledger keeps every charge. On disk it survives crashes: a charge is written before
# anything is drawn, so nothing is ever released unpaid.

# %%
for entry in explorer.history():
    print(f"{float(entry.epsilon):.4f}  {entry.state:8} {entry.request[2:]}")

# %% [markdown]
# ## Without a database: a session
#
# `bf.Session` asks a histogram one question at a time, paid from a ledger in the same
# way. The histogram itself can be counted where the table is:

# %%
ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
wards = bf.Domain.from_levels(["east", "west"], name="ward")
data = bf.Histogram.from_ibis(bf.Domain.product(ages, wards), database.table("visits"))
ledger = bf.Ledger(epsilon=1, policy=bf.policies.AddRemove(data.domain))
session = bf.Session(ledger, data)
children = session.noisy_count(age=slice(0, 20), epsilon=0.25)
by_ward = session.partition("ward").noisy_count(epsilon=0.25)
print("children and teenagers:", round(float(children)))
print("by ward:", {name: round(float(one)) for name, one in by_ward.items()})
print("left:", float(ledger.remaining))

# %% [markdown]
# The two wards together cost no more than one of them, because a person is in one ward
# only. For many questions, one release that answers them all is cheaper:
# see `salary_three_policies.ipynb`.
