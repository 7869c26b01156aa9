# %% [markdown]
# # A city on a million cells
#
# Where do people live? A map of 1024 x 1024 cells is 2^20 counts, most of them zero.
# Noise on every cell would drown the streets, so the mechanism first finds regions that
# are about even, privately, and then measures regions instead of cells.
#
# The city is generated and the noise is seeded, so that the pictures stay what they
# are. **Real releases have no seed.**

# %%
import matplotlib.pyplot as plt
import numpy as np

import blowfish_fast as bf

generator = np.random.default_rng(3)
SIDE, PEOPLE = 1024, 400_000
centres = generator.uniform(0.15, 0.85, (12, 2)) * SIDE
spread = generator.uniform(12, 60, 12)
home = generator.choice(12, PEOPLE, p=generator.dirichlet(np.full(12, 2.0)))
places = centres[home] + generator.normal(size=(PEOPLE, 2)) * spread[home, None]
# Half of all people live along a grid of streets.
street = generator.random(PEOPLE) < 0.5
axis = generator.integers(0, 2, PEOPLE)
rows = np.arange(PEOPLE)[street]
places[rows, axis[street]] = np.round(places[rows, axis[street]] / 32) * 32

city = bf.Domain((SIDE, SIDE), names=["north", "east"])
data = bf.Histogram.from_records(city, places.astype(int), outside="clamp")
data

# %% [markdown]
# ## The promise
#
# Two homes up to 16 cells apart, in north and east together, must stay
# indistinguishable up to a factor e^eps: the street is learnt hardly better than it was
# known before, even by someone who knows all others. How many people live in the city
# is public.

# %%
policy = bf.policies.Threshold(city, theta=16)
print(policy.describe())

# %% [markdown]
# The graph has 282 million edges and is never written down. Of so many cells the
# picture shows how many edges lie between the middle and every other place: the fewer,
# the better two people are protected from being told apart.

# %%
axes = bf.plotting.policy_graph(policy)

# %% [markdown]
# ## Two releases
#
# `Laplace` adds noise to every cell. `Dawa` spends a part of epsilon on a partition of
# the map into rectangles, chosen from the data by an exact private draw, and the rest
# on their counts.

# %%
EPSILON = 0.5
questions = bf.workloads.Rectangles.random(city, 500, rng=1)
noisy = bf.Laplace(policy, questions, epsilon=EPSILON).release(data, rng=1)
regions = bf.Dawa(policy, questions, epsilon=EPSILON).release(data, rng=1)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", dpi=80)
for one, release in zip(axes, (noisy, regions), strict=True):
    bf.plotting.grid_map(release, axes=one, largest=30)

# %% [markdown]
# How far off are they? Rectangles of all sizes, and rectangles of 64 x 64 cells:

# %%
low = generator.integers(0, SIDE - 64, (500, 2))
blocks = bf.workloads.Rectangles(city, low, low + 64)
for asked, name in ((questions, "random rectangles"), (blocks, "64 x 64 cells")):
    truth = asked.answer(data.counts)
    for release in (noisy, regions):
        error = np.sqrt(np.mean((release.answer(asked) - truth) ** 2))
        print(f"{name:18} {release.mechanism:8} off by {error:7.1f} people")

# %% [markdown]
# (True answers are at hand because the city is made up.)
#
# ## Asking the release
#
# A release answers any number of further questions for nothing: it holds noisy values
# only. In the middle of the map:

# %%
middle = regions.where(north=slice(400, 600), east=slice(400, 600)).count()
print(f"about {float(middle):,.0f} people")
print(regions.guarantee)
