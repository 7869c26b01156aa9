# %% [markdown]
# # The kernels alone
#
# `blowfish_fast.kernels` is a backend of its own: arrays in, arrays out, compiled by
# Numba, without policies, epsilon or classes. Other libraries can build on it. **A
# kernel promises nothing about privacy**: whoever calls it decides what goes in, how
# much noise is right, and what comes out.

# %%
import matplotlib.pyplot as plt
import numpy as np

from blowfish_fast import kernels
from blowfish_fast.measure.randomness import Randomness

generator = np.random.default_rng(2)

# %% [markdown]
# ## The least-cost partition
#
# The first stage of DAWA asks how to cut a histogram into buckets that are about even.
# A bucket costs its deviation from its own mean, plus a price for being a bucket. Here
# without noise, to see what the kernel does:

# %%
counts = np.concatenate(
    [
        generator.poisson(20, 70),
        generator.poisson(140, 26),
        generator.poisson(60, 100),
        generator.poisson(5, 60),
    ]
)
levels = counts.size.bit_length()
borders = kernels.least_cost_partition(counts, np.full(levels, 80.0), step=1.0)
sizes = np.diff(borders)
means = np.add.reduceat(counts, borders[:-1]) / sizes
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
axes.stairs(counts, color="#999999", label="counts")
axes.stairs(means, borders, color="#0072B2", linewidth=2, label="mean of each bucket")
axes.set_xlabel("cell")
axes.legend(frameon=False)
print(f"{counts.size} cells, {sizes.size} buckets")

# %% [markdown]
# The costs come from `window_deviations`: the sum of |x - mean| over every window of
# a length, in a few nanoseconds per window at any length. The same, by definition:

# %%
length = 64
windows = np.lib.stride_tricks.sliding_window_view(counts, length)
by_definition = np.abs(windows - windows.mean(axis=1, keepdims=True)).sum(axis=1)
print(np.allclose(kernels.window_deviations(counts, length), by_definition))

# %% [markdown]
# ## A walk through a grid
#
# `hilbert_order` numbers the cells of a grid of any shape so that neighbours along the
# walk are neighbours on the map.

# %%
shape = (16, 24)
row, column = np.unravel_index(kernels.hilbert_order(shape), shape)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(column, row, color="#0072B2", linewidth=1.5)
axes.plot(column[0], row[0], "o", color="#D55E00")
axes.set_aspect("equal")
_ = axes.set_title("a walk through 16 x 24 cells, from the dot on")

# %% [markdown]
# ## Exact noise
#
# Discrete Laplace noise, drawn without floating-point error. Random words come from a
# `Randomness`; with a seed for experiments, as here, and from the system's secure
# source without.

# %%
scale = 3
draws = Randomness(1).laplace(scale, 1, size=200_000)
values = np.arange(-15, 16)
share = np.array([(draws == value).mean() for value in values])
law = np.tanh(0.5 / scale) * np.exp(-np.abs(values) / scale)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.bar(values, share, color="#56B4E9", label="share of 200,000 draws")
axes.plot(values, law, "o", color="#D55E00", markersize=4, label="the law")
axes.legend(frameon=False)
print(f"largest difference {np.abs(share - law).max():.4f}")

# %% [markdown]
# ## A fit afterwards
#
# Prefix sums never decrease. `isotonic_fit` returns the closest sequence that
# does not either, in linear time. What is done to noisy values costs no privacy.

# %%
prefixes = np.cumsum(generator.poisson(2, 200))
noisy = prefixes + Randomness(2).laplace(20, 1, size=prefixes.size)
fitted = kernels.isotonic_fit(noisy)
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
axes.plot(noisy, ".", color="#999999", markersize=4, label="noisy prefixes")
axes.plot(fitted, color="#0072B2", linewidth=2, label="fitted")
axes.plot(
    prefixes, color="#D55E00", linestyle="--", linewidth=1, label="true (made up)"
)
axes.legend(frameon=False)
for name, one in (("noisy", noisy), ("fitted", fitted)):
    print(f"{name}: off by {np.sqrt(np.mean((one - prefixes) ** 2)):.1f}")
