# %% [markdown]
# # Choosing theta
#
# A threshold policy keeps values up to `theta` apart indistinguishable. A small theta
# promises little and costs little; a large one comes close to "any two values". Theta
# is a statement about people, so no formula chooses it. This notebook shows what there
# is to weigh: what the error becomes, what an attacker may learn, and what an accuracy
# costs. None of it reads data, so none of it spends anything.

# %%
import matplotlib.pyplot as plt
import numpy as np

import blowfish_fast as bf

ages = bf.Domain.from_edges(range(101), name="age")
ranges = bf.workloads.AllRanges(ages)

# %% [markdown]
# ## What theta means

# %%
for theta in (1, 10, 100):
    print(f"theta = {theta}: {bf.policies.Threshold(ages, theta=theta).describe()}\n")

# %% [markdown]
# ## The error
#
# For each theta, the least error per range over all mechanisms that the policy admits,
# at epsilon = 0.5:

# %%
axes = bf.plotting.tradeoff_over_theta(ages, ranges, [1, 2, 5, 10, 20, 50], epsilon=0.5)

# %% [markdown]
# And at a fixed theta, what more epsilon would buy:

# %%
axes = bf.plotting.error_against_epsilon(
    bf.policies.Threshold(ages, theta=10), ranges, [0.05, 0.1, 0.2, 0.5, 1, 2]
)

# %% [markdown]
# ## What an attacker may learn
#
# Before the release, an attacker believes with probability 0.1 that Ann is 34. However
# much they know about everybody else, `bf.risk` bounds what they can believe
# afterwards: for two candidate values within theta of each other one step of the policy
# lies between them, farther apart more.

# %%
print("distance   theta=1  theta=5  theta=10  theta=20")
for distance in (1, 5, 10, 20):
    beliefs = [
        float(bf.risk(0.1, epsilon=0.5, steps=-(-distance // theta)))
        for theta in (1, 5, 10, 20)
    ]
    print(f"{distance:8}   " + "   ".join(f"{one:6.2f}" for one in beliefs))

# %% [markdown]
# Read it by rows. An attacker who wants to tell two ages 10 years apart is held to a
# belief of 0.15 with theta = 10, and can reach 0.94 with theta = 1. So theta is the
# largest difference that must stay hidden. If it does no harm to learn that Ann is
# rather 34 than 64, but it would to learn that she is rather 34 than 44, then 10 is
# enough.
#
# ## The price of an accuracy
#
# The other way round: all prefix counts within 100, except with probability 0.05. How
# much epsilon does each theta need?

# %%
prefixes = bf.workloads.Prefixes(ages)
thetas = [1, 2, 5, 10, 20, 50]
prices = [
    float(
        bf.translate(
            bf.policies.Threshold(ages, theta=theta), prefixes, alpha=100, beta=0.05
        ).epsilon
    )
    for theta in thetas
]
full = bf.translate(bf.policies.Full(ages), prefixes, alpha=100, beta=0.05)
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.loglog(thetas, prices, "o-", color=bf.plotting.palette.ESTIMATE)
axes.axhline(float(full.epsilon), color="grey", linestyle="--", linewidth=1)
axes.text(1, float(full.epsilon) * 0.97, "any two ages", va="top", color="grey")
axes.set_xticks(thetas, labels=[str(one) for one in thetas])
axes.set_yticks([0.1, 0.2, 0.5], labels=["0.1", "0.2", "0.5"])
axes.minorticks_off()
axes.set_xlabel("theta, years")
axes.set_ylabel("epsilon needed")
for theta, price in zip(thetas, prices, strict=True):
    print(f"theta = {theta:2}: epsilon {price:.3f}")

# %% [markdown]
# ## One release at the chosen theta
#
# The ages are made up and the noise is seeded, to keep this page as it is. **Real
# releases have no seed.**

# %%
generator = np.random.default_rng(5)
records = 100 * generator.beta(2, 3, 30_000)
data = bf.Histogram.from_records(ages, records)
policy = bf.policies.Threshold(ages, theta=10)
release = bf.mechanisms.OrderedHierarchical(policy, ranges, epsilon=0.5).release(
    data, rng=1
)
axes = bf.plotting.histogram(release)
print(release.guarantee)
