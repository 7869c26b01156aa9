"""Intervals of the population over many draws: how often they miss what is true of it.

Each setting draws a sample by its design and releases it, again and again. A release
holds many cells or groups, each with a number of people of its own, from none to
thousands; each is asked about, so that one release is as many draws of its design.

    everybody ---- the design ----> records ---- noise ----> release ----> intervals
       M_1, M_2, ...                                            hold M_1, M_2, ...?
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import sparse

import blowfish_fast as bf
from blowfish_fast.errors import IntervalError
from blowfish_fast.release.sampling.rates import PartOfBoth
from blowfish_fast.release.sampling.sampled_release import Sampled

CELLS = 200
GROUPS = 50
PEOPLE = np.resize([0, 1, 15, 150, 600, 3_000, 900, 240], CELLS)
"""How many people of the population lie in each cell; nobody in some."""
MANY = np.resize([1_500, 4_000, 2_500, 8_000], CELLS)
"""The same where the sampling is taken as normal."""
FEW = np.resize([0, 1, 5, 15, 40, 100, 300, 1_000], CELLS)
"""The same where the sampling is taken as normal though few records are drawn."""
RATE, BETA = 0.1, 0.05
LINE = bf.Domain.from_levels(range(CELLS), name="cell")
IDENTITY = bf.workloads.Identity(LINE)


def released(counts, policy, seed, epsilon="0.5"):
    """Release counts of a sample; by default noise is about as large as its error."""
    return bf.Laplace(policy, epsilon=epsilon).release(counts, rng=seed)


def outside(bounds, truth):
    """Mark the intervals that do not hold the truth."""
    slack = 1e-9 * (1 + np.abs(truth))
    return (truth < bounds[:, 0] - slack) | (truth > bounds[:, 1] + slack)


def of_counts(design, draw, people, rng, seed):
    """Ask for the number of people of each cell."""
    policy = bf.policies.Full(LINE)
    release = released(draw(rng, people), policy, seed).sampled(design)
    return outside(release.intervals(IDENTITY, of="population"), people)


def of_shares(policy, people, rng, seed):
    """Ask for shares in a superpopulation."""
    part = people / people.sum()
    release = released(rng.multinomial(6_000, part), policy, seed)
    shares = release.sampled(bf.sampling.Simple()).group_by("cell").relative_count()
    return outside(shares.intervals(of="population"), part)


def without_replacement(rng, people):
    return rng.multivariate_hypergeometric(people, int(RATE * people.sum()))


def with_replacement(rng, people):
    return rng.multinomial(int(RATE * people.sum()), people / people.sum())


def by_chance(rng, people):
    return rng.binomial(people, RATE)


def events(rng, people):
    return rng.poisson(people)


def of_normal_counts(people, epsilon, rng, seed):
    """Ask for the number of people of each cell, the sampling taken as normal."""
    design = bf.sampling.Bernoulli(str(RATE))
    policy = bf.policies.AddRemove(LINE)
    release = released(by_chance(rng, people), policy, seed, epsilon).sampled(design)
    asked = release.group_by("cell").in_population().count()
    return outside(asked.intervals(of="population", method="normal"), people)


def of_strata(people, epsilon, rng, seed):
    """Ask for numbers of people over two strata, drawn by unlike rates."""
    sizes = np.stack([people, np.roll(people, 1)])
    drawn = [
        rng.multivariate_hypergeometric(row, int(rate * row.sum()))
        for row, rate in zip(sizes, (0.05, 0.2), strict=True)
    ]
    region = bf.Domain.from_levels(["north", "south"], name="region")
    domain = bf.Domain.product(region, LINE)
    held = bf.policies.Blocks(domain, np.repeat([0, 1], CELLS))
    population = dict(zip(("north", "south"), sizes.sum(axis=1).tolist(), strict=True))
    design = bf.sampling.Stratified("region", population=population)
    release = released(np.stack(drawn), held, seed, epsilon).sampled(design)
    asked = release.group_by("cell").in_population().count()
    return outside(asked.intervals(of="population"), sizes.sum(axis=0))


def of_weights(people, epsilon, rng, seed):
    """Ask for numbers of people over three classes of weights."""
    weights = np.array([16, 8, 4])
    sizes = np.stack([people, people // 2, people // 4])
    drawn = rng.binomial(sizes, 1 / weights[:, None])
    classes = bf.Domain.from_levels(["heavy", "middle", "light"], name="weight")
    policy = bf.policies.Full(bf.Domain.product(classes, LINE))
    design = bf.sampling.Weighted("weight", values=weights.tolist())
    release = released(drawn, policy, seed, epsilon).sampled(design)
    asked = release.group_by("cell").in_population().count()
    return outside(asked.intervals(of="population"), sizes.sum(axis=0))


def of_cut_weights(rng, seed):
    """Ask for numbers of people with weights that are trimmed at several cuts."""
    weights = np.array([128, 32, 8])
    sizes = np.stack([MANY // 16, MANY // 4, MANY])
    drawn = rng.binomial(sizes, 1 / weights[:, None])
    classes = bf.Domain.from_levels(["heavy", "middle", "light"], name="weight")
    policy = bf.policies.Full(bf.Domain.product(classes, LINE))
    design = bf.sampling.Weighted(
        "weight",
        values=weights.tolist(),
        trimmed=[32, 16, 8],
        people=sizes.max(axis=1).tolist(),
    )
    release = released(drawn, policy, seed).sampled(design)
    people = release.group_by("cell").in_population().count()
    return outside(people.intervals(of="population"), sizes.sum(axis=0))


def of_sizes(epsilon, rng, seed):
    """Ask for shares of 0, of one in n, of nearly a half, of a half and of all."""
    records, cells = 1_000, bf.Domain.from_levels(range(4), name="cell")
    part = np.array([0.0, 1.0 / records, 0.499, 0.5])
    laplace = bf.Laplace(bf.policies.Full(cells), epsilon=epsilon)
    release = laplace.release(rng.multinomial(records, part), rng=seed)
    sampled = release.sampled(bf.sampling.Simple())
    shares = sampled.group_by("cell").relative_count().intervals(of="population")
    everybody = sampled.where().relative_count().interval(of="population")
    return outside(np.concatenate([shares, [everybody]]), np.append(part, 1.0))


def of_groups(measure, rng, seed):
    """Ask for means or quantiles of groups of a superpopulation."""
    values = bf.Domain.from_edges(range(7), name="value")
    groups = bf.Domain.from_levels(range(GROUPS), name="group")
    policy = bf.policies.Full(bf.Domain.product(groups, values))
    parts = np.random.default_rng(7).dirichlet(np.full(6, 2.0), GROUPS) / GROUPS
    counts = rng.multinomial(GROUPS * 150, parts.reshape(-1)).reshape(GROUPS, 6)
    release = released(counts, policy, seed).sampled(bf.sampling.Simple())
    asked = release.group_by("group")
    if measure == "mean":
        middles = np.arange(6) + 0.5
        bounds = asked.mean("value", middles).intervals(of="population")
        return outside(bounds, GROUPS * parts @ middles)
    bounds = asked.quantile("value", measure).intervals(of="population")
    cell = (GROUPS * parts.cumsum(axis=1) < measure).sum(axis=1)
    return (bounds[:, 0] > cell) | (bounds[:, 1] < cell + 1)


RARE, SMALL = 0.03, 50
"""Part of a group that has a rare value, and records of a group."""


def of_rare_values(measure, epsilon, rng, seed):
    """Ask for means or variances of small groups with a rare value."""
    rare = rng.binomial(SMALL, RARE, GROUPS)
    values = bf.Domain.from_edges(range(3), name="value")
    groups = bf.Domain.from_levels(range(GROUPS), name="group")
    policy = bf.policies.AddRemove(bf.Domain.product(groups, values))
    counts = np.stack([SMALL - rare, rare], axis=1)
    release = released(counts, policy, seed, epsilon).sampled(bf.sampling.Simple())
    asked, ends = release.group_by("group"), np.array([0.0, 1.0])
    if measure == "mean":
        answers, truth = asked.mean("value", ends), RARE
    else:
        answers, truth = asked.variance("value", ends), RARE * (1 - RARE)
    return outside(answers.intervals(of="population"), np.full(GROUPS, truth))


def of_rare_differences(epsilon, rng, seed):
    """Ask how far means of small groups with a rare value lie off a large one's."""
    sizes = np.append(np.full(GROUPS, SMALL), 400 * SMALL)
    rare = rng.binomial(sizes, RARE)
    values = bf.Domain.from_edges(range(3), name="value")
    groups = bf.Domain.from_levels(range(GROUPS + 1), name="group")
    policy = bf.policies.AddRemove(bf.Domain.product(groups, values))
    counts = np.stack([sizes - rare, rare], axis=1)
    drawn = released(counts, policy, seed, epsilon).sampled(bf.sampling.Simple())
    large, means = drawn.where(group=GROUPS), {"of": "mean", "name": "value"}
    bounds = [
        drawn.where(group=group)
        .difference(large, **means, values=[0.0, 1.0])
        .interval()
        for group in range(GROUPS)
    ]
    return outside(np.array(bounds), np.zeros(GROUPS))


def groups_of_strata(rng, seed):
    """Draw two strata that differ much by unlike rates, and release their groups."""
    north = 40 * np.random.default_rng(7).dirichlet(np.full(6, 2.0), GROUPS)
    people = np.rint(100 * np.stack([north, north[:, ::-1] ** 1.5])).astype(int)
    drawn = [
        rng.multivariate_hypergeometric(row.reshape(-1), size).reshape(GROUPS, 6)
        for row, size in zip(people, (9_000, 6_000), strict=True)
    ]
    region = bf.Domain.from_levels(["north", "south"], name="region")
    groups = bf.Domain.from_levels(range(GROUPS), name="group")
    values = bf.Domain.from_edges(range(7), name="value")
    domain = bf.Domain.product(region, groups, values)
    held = bf.policies.Blocks(domain, np.repeat([0, 1], 6 * GROUPS))
    sizes = people.sum(axis=(1, 2)).tolist()
    design = bf.sampling.Stratified(
        "region", population=dict(zip(("north", "south"), sizes, strict=True))
    )
    release = released(np.stack(drawn), held, seed).sampled(design)
    return release.group_by("group"), people.sum(axis=0)


def of_groups_of_strata(measure, method, rng, seed):
    """Ask for means, variances or medians of groups over two strata."""
    asked, people = groups_of_strata(rng, seed)
    parts, middles = people / people.sum(axis=1)[:, None], np.arange(6) + 0.5
    means = parts @ middles
    if measure == "median":
        cell = (2 * people.cumsum(axis=1) < people.sum(axis=1)[:, None]).sum(axis=1)
        answers = asked.quantile("value")
        bounds = answers.intervals(of="population", method=method)
        return (bounds[:, 0] > cell) | (bounds[:, 1] < cell + 1)
    if measure == "mean":
        answers, truth = asked.mean("value", middles), means
    else:
        answers = asked.variance("value", middles)
        truth = parts @ middles**2 - means**2
    return outside(answers.intervals(of="population", method=method), truth)


RATED = 5
"""Rates that are asked of one release."""


def of_rates(rng, seed):
    """Ask how many of a cell there are for each of another, neither a part of it."""
    people = MANY[: 2 * RATED]
    line = bf.Domain.from_levels(range(2 * RATED), name="cell")
    counts = rng.multinomial(4_000, people / people.sum())
    release = released(counts, bf.policies.AddRemove(line), seed)
    asked = release.sampled(bf.sampling.Simple()).where
    bounds = [
        asked(cell=cell).ratio(asked(cell=RATED + cell)).interval()
        for cell in range(RATED)
    ]
    return outside(np.array(bounds), people[:RATED] / people[RATED:])


def of_many_rates(rng, seed):
    """Ask the same of half of all cells and the others, by a normal law."""
    release = released(by_chance(rng, MANY), bf.policies.AddRemove(LINE), seed)
    source = Sampled(release.sampled(bf.sampling.Bernoulli(str(RATE))), 1 - BETA)
    half, cells = CELLS // 2, sparse.csr_array(np.eye(CELLS))
    part = PartOfBoth(source, cells[:half], cells[: half - 1 : -1]).bounds()
    truth = MANY[:half] / MANY[: half - 1 : -1]
    return outside(part, truth / (1 + truth))


def of_raked(rng, seed):
    """Ask for all four cells of a table with known margins, at once."""
    people = np.array([[1_300, 1_700], [700, 1_300]])
    sex = bf.Domain.from_levels(["F", "M"], name="sex")
    region = bf.Domain.from_levels(["north", "south"], name="region")
    margins = {
        "sex": dict(zip("FM", people.sum(axis=1).tolist(), strict=True)),
        "region": dict(
            zip(["north", "south"], people.sum(axis=0).tolist(), strict=True)
        ),
    }
    counts = rng.multivariate_hypergeometric(people.reshape(-1), 300).reshape(2, 2)
    policy = bf.policies.Full(bf.Domain.product(sex, region))
    release = released(counts, policy, seed).sampled(bf.sampling.Simple(5_000))
    try:
        raked = bf.sampling.rake(release, margins, confidence=1 - BETA)
    except IntervalError:
        # No table fits: what may happen with beta has happened.
        return np.array([True])
    bounds = np.stack([raked["population_low"], raked["population_high"]], axis=-1)
    return np.array([outside(bounds, people.reshape(-1)).any()])


def settings():
    """Return each setting by its name: from a generator and a seed to misses."""
    everybody, partial = int(PEOPLE.sum()), functools.partial
    designs = {
        "simple": (bf.sampling.Simple(everybody), without_replacement),
        "simple, with replacement": (
            bf.sampling.Simple(everybody, replacement=True),
            with_replacement,
        ),
        "bernoulli": (bf.sampling.Bernoulli(str(RATE)), by_chance),
        "poisson": (bf.sampling.Poisson(), events),
    }
    counts = {
        name: partial(of_counts, design, draw, PEOPLE)
        for name, (design, draw) in designs.items()
    }
    return counts | {
        "superpopulation": partial(of_shares, bf.policies.Full(LINE), PEOPLE),
        "private number of records": partial(
            of_shares, bf.policies.AddRemove(LINE), PEOPLE
        ),
        "stratified": partial(of_strata, MANY, "0.5"),
        "weighted": partial(of_weights, MANY, "0.5"),
        # Hardly any noise and few records: a variance that is read off the sample is
        # then often far too small, and the normal law far from the sampling's own.
        **{
            f"few people at epsilon {epsilon}, {name}": partial(ask, FEW, epsilon)
            for epsilon in ("3", "12")
            for name, ask in (
                ("bernoulli taken as normal", of_normal_counts),
                ("stratified", of_strata),
                ("weighted", of_weights),
            )
        },
        **{
            f"{measure}s of small groups at epsilon {epsilon}": partial(
                of_rare_values, measure, epsilon
            )
            for measure in ("mean", "variance")
            for epsilon in ("3", "12")
        },
        "weighted, trimmed": of_cut_weights,
        "means": partial(of_groups, "mean"),
        "medians": partial(of_groups, 0.5),
        "quantiles at .01": partial(of_groups, 0.01),
        "quantiles at .99": partial(of_groups, 0.99),
        **{
            f"shares at n epsilon of {product:,}": partial(
                of_sizes, str(product / 1_000)
            )
            for product in (10, 1_000, 100_000)
        },
        "means of strata": partial(of_groups_of_strata, "mean", "normal"),
        "medians of strata": partial(of_groups_of_strata, "median", "normal"),
        "variances of strata": partial(of_groups_of_strata, "variance", "normal"),
        "means of strata, whatever the law": partial(
            of_groups_of_strata, "mean", "exact"
        ),
        "medians of strata, whatever the law": partial(
            of_groups_of_strata, "median", "exact"
        ),
        "rates": of_rates,
        "rates, sampling taken as normal": of_many_rates,
        "raked counts, all cells at once": of_raked,
        # No noise to speak of: what few records hide is all that may be missed.
        **{
            f"few people at epsilon 500, {name}": partial(ask, FEW, "500")
            for name, ask in (
                ("bernoulli taken as normal", of_normal_counts),
                ("stratified", of_strata),
                ("weighted", of_weights),
            )
        },
        **{
            f"{measure}s of small groups at epsilon 500": partial(
                of_rare_values, measure, "500"
            )
            for measure in ("mean", "variance")
        },
        "differences of means of small groups at epsilon 500": partial(
            of_rare_differences, "500"
        ),
    }


def asked_at_once(name):
    """Return how many answers a release of a setting has."""
    grouped = ("means", "medians", "quantiles", "variances", "differences")
    if name.startswith(grouped):
        return GROUPS
    if name == "rates, sampling taken as normal":
        return CELLS // 2
    if name.startswith(("shares at", "rates")):
        return RATED
    return 1 if name.startswith("raked") else CELLS


def sizes_of_cells(name):
    """Return how many people lie in each cell of a setting."""
    if name.startswith("few people"):
        return FEW
    return MANY if name.startswith(("stratified", "weighted")) else PEOPLE


def population_misses(draws, names=None):
    """Return the share of draws that each setting missed, and how many there were.

    Cells of one size are a row of their own, since a large cell must not hide a small
    one: "bernoulli, 15 people".
    """
    missed = {}
    for at, (name, ask) in enumerate(settings().items()):
        if names is not None and name not in names:
            continue
        rng = np.random.default_rng(1_000 + at)
        each = asked_at_once(name)
        rows = range(math.ceil(draws / each))
        marks = np.array([ask(rng, seed) for seed in rows])
        missed[name] = (float(marks.mean()), marks.size)
        if each == CELLS:
            sizes = sizes_of_cells(name)
            for place in range(len({*sizes.tolist()})):
                alike = marks[:, sizes == sizes[place]]
                label = f"{name}, cells of {sizes[place]:,}"
                missed[label] = (float(alike.mean()), alike.size)
    return missed
