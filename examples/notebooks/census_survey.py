# %% [markdown]
# # All tables of a survey
#
# A statistics office publishes every table of one and two attributes of a survey. The
# product of all attributes is never made: the tables are measured together, made to
# agree, and their errors are known before anything is spent. The people are made up and
# the noise is seeded; **real releases have no seed.**

# %%
import numpy as np

import blowfish_fast as bf

source = np.random.default_rng(7)
people = 20_000
age = np.clip(source.gamma(4.0, 11.0, people), 0, 99)
school = np.clip(source.normal(2.2 + 0.6 * (age < 45), 1.0, people).round(), 0, 4)
works = (age > 17) & (age < 66) & (source.random(people) < 0.62 + 0.08 * school)
pay = np.where(works, np.clip(source.normal(3 + school, 1.5, people).round(), 1, 9), 0)
survey = {
    "age": age,
    "school": school.astype(int),
    "work": np.where(works, "yes", "no"),
    "pay": pay.astype(int),
    "sex": source.choice(["f", "m"], people),
    "region": source.choice(list("abcdefgh"), people),
    "rooms": np.clip(source.poisson(2.5, people), 0, 7),
    "car": source.choice(["none", "one", "more"], people, p=[0.3, 0.5, 0.2]),
}
domain = bf.WideDomain.product(
    bf.Domain.from_edges(range(0, 101, 5), name="age"),
    bf.Domain(5, names=["school"]),
    bf.Domain.from_levels(["yes", "no"], name="work"),
    bf.Domain(10, names=["pay"]),
    bf.Domain.from_levels(["f", "m"], name="sex"),
    bf.Domain.from_levels(list("abcdefgh"), name="region"),
    bf.Domain(8, names=["rooms"]),
    bf.Domain.from_levels(["none", "one", "more"], name="car"),
)
f"{domain.size:,} cells in all"

# %% [markdown]
# ## What a promise costs, before anything is spent
#
# Under `AddRemove` nobody can tell whether a person is in the survey at all. A
# `TablePolicy` by attribute says less, that one answer of a person stays secret, and
# needs half of the noise here.

# %%
asked = bf.workloads.Tables(domain, ways=2)
for policy in (bf.policies.AddRemove(domain), bf.policies.TablePolicy(domain, {})):
    print(policy.neighbours)
    print(bf.Contingency(policy, asked, epsilon=1).plan(records=people), end="\n\n")

# %% [markdown]
# Errors beside mean counts say which tables will be of use. A field of the map is the
# table of its row and column; above 1, its error exceeds its counts.

# %%
policy = bf.policies.AddRemove(domain)
mechanism = bf.Contingency(policy, asked, epsilon=1)
bf.plotting.table_errors(mechanism.plan(records=people))

# %% [markdown]
# ## The release
#
# Records are counted once, into the tables that the plan measures. Any two tables agree
# on what they share.

# %%
ledger = bf.Ledger(epsilon=1, policy=policy)
data = bf.TableCounts.from_records(mechanism, survey)
out = ledger.release(mechanism, data, rng=1)
out.table("work", "sex").to_pandas().round(1)

# %%
both, alone = out.table("age", "work").estimate, out.table("work").estimate
print(np.abs(both.sum(axis=0) - alone).max() < 1e-6)

# %% [markdown]
# Each table is a release of its own, and can be drawn as one.

# %%
bf.plotting.histogram(out.table("age"))

# %% [markdown]
# Questions go to the table of their attributes, with intervals that hold the true
# count with a confidence of 95 %.

# %%
print(out.where(age=slice(20, 40), work="yes").count())
print(out.group_by("car").count())

# %% [markdown]
# ## Tables without negatives, and synthetic records
#
# Fitted tables have no negative counts; with `whole=True` they are whole and agree
# exactly. Synthetic records follow the tables of two attributes; what holds in three or
# more at once is kept only as far as it follows from those.

# %%
print(out.fitted("school", "work", whole=True).estimate.astype(int).tolist())
records = out.sample(rng=2)
worst = out.misplaced(records).to_pandas().sort_values("misplaced").tail(3)
worst.round(3)

# %% [markdown]
# `out.save_tables("tables")` writes a folder of CSV files with a contents page and the
# promise, `out.save_tables("tables.xlsx")` one workbook.
