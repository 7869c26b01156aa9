# %% [markdown]
# # A labour-force survey
#
# Two waves of a survey ask different people in four regions whether they work. Two
# errors stand between a published rate and the rate of the country: the draw of the
# sample and the noise that protects it. One interval counts both. The people are made
# up and the noise is seeded; **real releases have no seed.**

# %%
import matplotlib.pyplot as plt
import numpy as np

import blowfish_fast as bf

source = np.random.default_rng(11)
regions = ["north", "east", "south", "west"]
inhabitants = dict(zip(regions, [30_000, 45_000, 60_000, 65_000], strict=True))
asked_in = dict(zip(regions, [1_200, 1_200, 1_600, 1_600], strict=True))
of_work = ["employed", "looking", "neither"]
truth = {  # parts of the people of a region, by wave
    1: [[0.58, 0.05, 0.37], [0.60, 0.04, 0.36], [0.52, 0.09, 0.39], [0.57, 0.06, 0.37]],
    2: [[0.58, 0.05, 0.37], [0.59, 0.05, 0.36], [0.49, 0.12, 0.39], [0.57, 0.06, 0.37]],
}
people = {
    wave: np.array(
        [
            np.round(np.multiply(parts, inhabitants[region])).astype(int)
            for region, parts in zip(regions, rows, strict=True)
        ]
    )
    for wave, rows in truth.items()
}
drawn = {
    wave: np.array(
        [
            source.multivariate_hypergeometric(row, asked_in[region])
            for region, row in zip(regions, counts, strict=True)
        ]
    )
    for wave, counts in people.items()
}
drawn[1]

# %% [markdown]
# ## Strata
#
# How many people were asked in each region is public by design, so the policy says it:
# with a block for each region, nobody can tell what somebody's work is, and the region
# of a respondent is no secret. Each wave costs epsilon = 1/4 of its own respondents.

# %%
domain = bf.Domain.product(
    bf.Domain.from_levels(regions, name="region"),
    bf.Domain.from_levels(of_work, name="work"),
)
policy = bf.policies.Blocks(domain, np.repeat(np.arange(4), 3))
design = bf.sampling.Stratified("region", population=inhabitants)
mechanism = bf.Laplace(policy, epsilon="0.25")
first, second = (
    mechanism.release(drawn[wave], rng=wave).sampled(design) for wave in (1, 2)
)
print(first.guarantee)

# %% [markdown]
# ## The unemployment rate
#
# Those who look for work, over those who work or look. Numerator and denominator both
# carry noise, and both vary with the sample; `ratio` tests every rate that is possible.


# %%
def rate(wave, **where):
    force = wave.where(work=["employed", "looking"], **where)
    return wave.where(work="looking", **where).ratio(force)


rates = {region: rate(first, region=region) for region in regions}
for region, (employed, looking, _) in zip(regions, people[1], strict=True):
    low, high = rates[region].interval()
    print(
        f"{region:6} {rates[region]:6.1%}, from {low:6.1%} to {high:6.1%};"
        f" made up with {looking / (employed + looking):6.1%}"
    )
print(rate(first).variance_parts())
print(rate(first).sentence())

# %% [markdown]
# The strata add up by their people, not by their respondents: the country's rate is
# that of 200,000 people, though the north was asked twice as densely as the west.

# %%
country = rate(first)
low, high = country.interval()
looking, force = people[1][:, 1].sum(), people[1][:, :2].sum()
print(
    f"{country:.2%}, from {low:.2%} to {high:.2%}; made up with {looking / force:.2%}"
)

# %% [markdown]
# ## Two waves
#
# Did the rate change? The p-value counts the noise of both waves and the draws of both
# samples. Four regions are four questions, so each p-value counts four times: by itself
# the interval of the north leaves 0 out, though nothing was made to change there.

# %%
changes = {
    region: rate(second, region=region).difference(rates[region]) for region in regions
}
for region, change in changes.items():
    low, high = change.interval()
    print(
        f"{region:6} {100 * change:+5.1f} points, from {100 * low:+5.1f} to "
        f"{100 * high:+5.1f}; p = {min(1.0, 4 * change.p_value()):.3f} of four"
    )
whole = rate(second).difference(country)
print(f"country {100 * whole:+.1f} points, p = {whole.p_value():.4f}")

# %%
figure, axes = plt.subplots(figsize=(6.4, 3.2))
for shift, (name, wave) in zip(
    (-0.12, 0.12), {"first": first, "second": second}.items(), strict=True
):
    each = [rate(wave, region=region) for region in regions]
    ends = np.array([one.interval() for one in each])
    centre = np.array(each, dtype=float)
    axes.errorbar(
        np.arange(4) + shift,
        100 * centre,
        yerr=100 * np.abs(ends.T - centre),
        fmt="o",
        capsize=3,
        label=f"{name} wave",
    )
axes.set_xticks(range(4), regions)
axes.set_ylabel("unemployment rate, %")
axes.set_ylim(0)
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Wages, with weights
#
# Wages are asked in another survey. Employees of large firms were drawn with the chance
# 1 / 16, those of small ones with 1 / 64, so that a record stands for 16 or 64 people.
# These classes are public facts of the frame; weights that were calibrated on the
# sample would be none, and are refused. Without weights the median of the *records* is
# that of large firms, which pay more.

# %%
edges = np.arange(0, 4_001, 100)
firms, weights = ["large", "small"], [16, 64]
wages = {
    "large": np.clip(source.gamma(9.0, 200.0, 48_000), 0, 3_999),
    "small": np.clip(source.gamma(7.0, 170.0, 64_000), 0, 3_999),
}
counts = np.array(
    [
        np.histogram(wages[firm][source.random(wages[firm].size) < 1 / weight], edges)[
            0
        ]
        for firm, weight in zip(firms, weights, strict=True)
    ]
)
payroll = bf.Domain.product(
    bf.Domain.from_levels(firms, name="firm"), bf.Domain.from_edges(edges, name="wage")
)
survey = bf.Laplace(bf.policies.AddRemove(payroll), epsilon=1).release(counts, rng=3)
weighted = survey.sampled(bf.sampling.Weighted("firm", values=weights))
low, high = weighted.where().quantile("wage").interval(of="population")
everybody = np.concatenate(list(wages.values()))
print(f"records: median {float(survey.where().quantile('wage')):,.0f}")
print(f"people:  median between {low:,.0f} and {high:,.0f}")
print(f"made up with a median of {np.median(everybody):,.0f}")
small = weighted.where(firm="small").in_population().count()
low, high = small.interval()
print(f"small firms employ {small:,.0f} people, from {low:,.0f} to {high:,.0f}")

# %%
bf.plotting.groups(survey.group_by("wage", "firm").count())
