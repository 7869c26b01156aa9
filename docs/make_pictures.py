"""Draw the pictures of ``docs/pictures.md``, from generated data and fixed seeds.

    python docs/make_pictures.py [FOLDER]

writes them into ``docs/_pictures``, where the page looks for them. Every release here
is seeded and says so in its title.

The README's ``demo.png`` has secure noise and differs at every run:

    blowfish demo --out docs/_pictures/demo.png
    python docs/make_pictures.py --reduce docs/_pictures/demo.png
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import blowfish_fast as bf

HERE = Path(__file__).parent
# Two dots for each of the page: sharp on phones and fine screens.
DOTS_PER_INCH = 180


def salaries() -> tuple[bf.Domain, Any]:
    """Return cells of 1000 from 0 to 256,000, and 50,000 generated records."""
    pay = bf.Domain.from_edges(range(0, 257_000, 1000), name="salary")
    generator = np.random.default_rng(7)
    records = np.clip(generator.lognormal(10.6, 0.45, 50_000), 0, 255_999)
    return pay, np.bincount((records // 1000).astype(np.int64), minlength=256)


def city() -> tuple[bf.Domain, Any]:
    """Return a map of 128 x 128 cells and 200,000 generated records around towns."""
    places = bf.Domain.product(
        bf.Domain.from_edges(np.linspace(50.8, 51.0, 129), name="latitude"),
        bf.Domain.from_edges(np.linspace(4.2, 4.5, 129), name="longitude"),
    )
    generator = np.random.default_rng(11)
    towns = generator.uniform(20, 108, size=(7, 2))
    sizes = generator.dirichlet(np.ones(7))
    chosen = generator.choice(7, size=200_000, p=sizes)
    spread = generator.uniform(2, 9, size=7)[chosen, None]
    points = towns[chosen] + generator.normal(size=(200_000, 2)) * spread
    cells = np.clip(points, 0, 127.999).astype(np.int64)
    counts = np.zeros((128, 128), dtype=np.int64)
    np.add.at(counts, (cells[:, 0], cells[:, 1]), 1)
    return places, counts


def released_salaries() -> bf.Release:
    """Release the salaries by DAWA, under the policy that hides who is there."""
    pay, counts = salaries()
    ranges = bf.workloads.AllRanges(pay)
    dawa = bf.Dawa(bf.policies.AddRemove(pay), ranges, epsilon=0.05)
    return dawa.release(counts, rng=3)


def released_city() -> bf.Release:
    """Release the map by DAWA."""
    places, counts = city()
    boxes = bf.workloads.Rectangles.random(places, 200, rng=1)
    dawa = bf.Dawa(bf.policies.AddRemove(places), boxes, epsilon=0.1)
    return dawa.release(counts, rng=3)


def histogram() -> Any:
    """Draw a release with intervals and buckets against last year's."""
    _, counts = salaries()
    earlier = np.random.default_rng(8).poisson(counts * 0.95)
    return bf.plotting.histogram(
        released_salaries(), reference=earlier, reference_name="generated, last year"
    )


def categories() -> Any:
    """Draw categories with whiskers."""
    levels = ["primary", "secondary", "vocational", "college", "university", "other"]
    schools = bf.Domain.from_levels(levels, name="education")
    schools = schools.with_extra_cells(missing=True)
    laplace = bf.Laplace(
        bf.policies.AddRemove(schools), bf.workloads.Identity(schools), epsilon=0.1
    )
    release = laplace.release([210, 640, 480, 330, 390, 60, 25], rng=1)
    return bf.plotting.histogram(release)


def answers() -> Any:
    """Draw five ranges."""
    pay, counts = salaries()
    asked = bf.workloads.Ranges(pay, [0, 20, 40, 60, 90], [20, 40, 60, 90, 256])
    earlier = np.random.default_rng(8).poisson(counts * 0.95)
    return bf.plotting.answers(
        released_salaries(),
        asked,
        reference=earlier,
        reference_name="generated, last year",
    )


def groups() -> Any:
    """Draw median pay by age and region, from a release over three attributes."""
    regions = ["north", "south", "coast"]
    people = bf.Domain.product(
        bf.Domain.from_edges(range(20, 71, 5), name="age"),
        bf.Domain.from_edges(range(0, 121_000, 2000), name="pay"),
        bf.Domain.from_levels(regions, name="region"),
    )
    generator = np.random.default_rng(5)
    ages = generator.uniform(20, 70, 60_000)
    places = generator.choice(3, 60_000, p=[0.5, 0.35, 0.15])
    middle = 30_000 + 700 * (ages - 20) - 11 * (ages - 20) ** 2
    spread = generator.lognormal(0.0, 0.35, ages.size)
    records = {
        "age": ages,
        "pay": middle * spread * np.array([1.0, 0.85, 1.25])[places],
        "region": np.array(regions)[places],
    }
    data = bf.Histogram.from_records(people, records, outside={"pay": "clamp"})
    laplace = bf.Laplace(
        bf.policies.Full(people), bf.workloads.Identity(people), epsilon=1
    )
    release = laplace.release(data, rng=2)
    return bf.plotting.groups(release.group_by("age", "region").quantile("pay"))


def districts() -> Any:
    """Draw counts of counties with their intervals, from nested districts."""
    blocks = np.arange(400)
    table = {"county": blocks // 50, "tract": blocks // 10, "block": blocks}
    nest = bf.Nesting.from_columns(table, ["county", "tract", "block"])
    asked = nest.workload(county=1, tract=1, block=1)
    nested = bf.Nested(bf.policies.AddRemove(nest.domain), asked, epsilon="0.2")
    people = np.random.default_rng(1).poisson(2 + blocks % 150 / 40)
    return bf.plotting.groups(nested.release(people, rng=1).level("county"))


def grid_map() -> Any:
    """Draw a map with its buckets."""
    return bf.plotting.grid_map(released_city(), buckets=True)


def noise_map() -> Any:
    """Draw the noise of the same map."""
    return bf.plotting.grid_map(released_city(), show="standard_error")


def policy_small() -> Any:
    """Draw a threshold policy on ten ages."""
    ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    return bf.plotting.policy_graph(bf.policies.Threshold(ages, theta=2))


def policy_absent() -> Any:
    """Draw the policy under which presence is a secret."""
    towns = bf.Domain.from_levels(["Bern", "Basel", "Chur", "Geneva", "Lugano"])
    return bf.plotting.policy_graph(bf.policies.AddRemove(towns))


def policy_large() -> Any:
    """Draw a threshold policy on a million cells."""
    grid = bf.Domain((1024, 1024), names=("north", "east"))
    policy = bf.policies.Threshold(grid, theta=100, metric="l2")
    return bf.plotting.policy_graph(policy)


def error_curves() -> Any:
    """Draw error against epsilon."""
    pay, _ = salaries()
    return bf.plotting.error_against_epsilon(
        bf.policies.Threshold(pay, theta=8),
        bf.workloads.AllRanges(pay),
        [0.01, 0.03, 0.1, 0.3, 1],
        ["ordered_hierarchical", "ordered", "cells", "dawa"],
        records=50_000,
        rng=2014,
    )


def tradeoff() -> Any:
    """Draw error against theta."""
    pay, _ = salaries()
    return bf.plotting.tradeoff_over_theta(
        pay, bf.workloads.AllRanges(pay), [1, 2, 4, 8, 16, 32, 64, 128], epsilon=0.1
    )


def budget() -> Any:
    """Draw the ledger of two analysts."""
    pay, counts = salaries()
    policy = bf.policies.AddRemove(pay)
    ledger = bf.Ledger(epsilon=1, policy=policy)
    ledger.allot("ana", 0.5)
    ledger.allot("ben", 0.4)
    asked = [
        ("all salaries", 0.1, "ana"),
        ("first look", 0.05, "ben"),
        ("medians", 0.2, "ana"),
        ("by region", 0.15, "ben"),
        ("final table", 0.1, "ana"),
    ]
    for number, (request, epsilon, analyst) in enumerate(asked):
        laplace = bf.Laplace(policy, bf.workloads.Identity(pay), epsilon=epsilon)
        ledger.release(laplace, counts, request, rng=number, analyst=analyst)
    return bf.plotting.budget_over_time(ledger, along="charges")


def tutorial() -> Any:
    """Draw the salaries of the tutorial, released under a threshold of 10,000."""
    pay = bf.Domain.from_edges(range(0, 200_001, 1_000), name="salary")
    people = np.random.default_rng(7).lognormal(mean=10.86, sigma=0.45, size=20_000)
    data = bf.Histogram.from_records(pay, people.clip(0, 200_000))
    policy = bf.policies.Threshold(pay, theta=10_000, unit="value")
    ranges = bf.workloads.AllRanges(pay)
    made = bf.mechanisms.OrderedHierarchical(policy, ranges, epsilon=0.5)
    return bf.plotting.histogram(made.release(data, rng=1))


def people() -> Any:
    """Draw the incomes of the made-up people, as the example job releases them."""
    from blowfish_fast.apps.cli.files.data_source import made_up_people

    incomes = bf.Domain.from_edges(range(0, 120_001, 1_000), name="income")
    records = {"income": made_up_people()["income"]}
    data = bf.Histogram.from_records(incomes, records, outside="clamp")
    policy = bf.policies.Threshold(incomes, theta=5000, unit="value")
    ranges = bf.workloads.Ranges.random(incomes, 500, rng=1)
    best = bf.compare(policy, ranges, epsilon=0.5).best.mechanism
    return bf.plotting.histogram(best.release(data, rng=1))


def beliefs() -> Any:
    """Draw how sure somebody can become, against epsilon."""
    from matplotlib import pyplot

    epsilons = np.linspace(0.02, 3, 150)
    _, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for prior, colour in ((0.5, "C0"), (0.1, "C1"), (0.01, "C2")):
        after = [float(bf.risk(prior, epsilon=float(one), steps=1)) for one in epsilons]
        axes.plot(epsilons, after, color=colour, label=f"{prior:.0%} before")
    axes.set(xlabel="epsilon", ylabel="belief afterwards, at most", ylim=(0, 1))
    axes.legend(frameon=False)
    return axes


def known_totals() -> Any:
    """Draw what known totals cost: the error of a cell with and without them."""
    from matplotlib import pyplot

    sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    table = bf.Domain.product(sexes, bf.Domain.from_edges(range(101), name="age"))
    cells = bf.workloads.Identity(table)
    plain = bf.policies.Full(table)
    totals = bf.policies.MarginalConstraints(table, ["sex"])
    epsilons = [0.1, 0.2, 0.5, 1, 2]
    _, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for policy, name in (
        (plain.with_constraints(totals), "totals by sex are known"),
        (plain, "nothing is known"),
    ):
        errors = [
            bf.Laplace(policy, cells, epsilon=one).expected_error(cells)[0] ** 0.5
            for one in epsilons
        ]
        axes.plot(epsilons, errors, marker="o", label=name)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="error of a cell")
    axes.legend(frameon=False)
    return axes


def own_mechanism() -> Any:
    """Draw the example of a mechanism from outside beside DAWA."""
    from matplotlib import pyplot

    from examples.outside_mechanism.equal_widths import EqualWidths

    pay, _ = salaries()
    policy, ranges = bf.policies.AddRemove(pay), bf.workloads.AllRanges(pay)
    asked: Any = {"mechanisms": [EqualWidths, "dawa", "laplace"], "records": 50_000}
    epsilons = [0.01, 0.03, 0.1, 0.3, 1]
    advice = [
        bf.recommend(policy, ranges, epsilon=one, trials=1, **asked) for one in epsilons
    ]
    _, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for name in ("equal_widths", "laplace", "dawa"):
        errors = [one[name].error for one in advice]
        axes.plot(epsilons, errors, marker="o", label=name)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="typical error")
    axes.legend(frameon=False)
    return axes


def seeded() -> Any:
    """Draw a seeded release, which says so."""
    line = bf.Domain(16)
    mechanism = bf.Laplace(
        bf.policies.Full(line), bf.workloads.Identity(line), epsilon=1
    )
    return bf.plotting.histogram(mechanism.release([10] * 16, rng=7))


def spiky_bucket(epsilon: float | None) -> Any:
    """Draw a dense cell in a bucket, with noise intervals or with certified ones."""
    line = bf.Domain(64)
    policy, cells = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    counts = np.zeros(64, dtype=np.int64)
    counts[16:24] = 60, 0, 10, 3, 20, 0, 5, 30
    wide = bf.mechanisms.StructureFirst(policy, cells, epsilon="0.2", buckets=4)
    ledger = bf.Ledger(epsilon=9, policy=policy)
    release = ledger.release(wide, counts, rng=5)
    if epsilon is not None:
        found = ledger.certify(release, counts, cells, epsilon=epsilon, rng=2)
        release = release.certified(found)
    axes = bf.plotting.histogram(release)
    # Generated counts: true ones are never drawn.
    places = np.arange(64) + 0.5
    axes.plot(places, counts, "k.", markersize=4, label="generated count")
    axes.set_ylim(-3, 70)
    axes.legend(frameon=False, fontsize="small")
    return axes


def noise_only() -> Any:
    """Draw what noise intervals hold: not the truth."""
    return spiky_bucket(None)


def certified() -> Any:
    """Draw what a certificate adds."""
    return spiky_bucket(1.0)


def weekly() -> Any:
    """Draw 26 weeks of generated visits: running totals by symptom, at one price."""
    symptoms = bf.Domain.from_levels(["fever", "cough", "rash"], name="symptom")
    policy = bf.policies.AddRemove(symptoms)
    ledger = bf.Ledger(rho="0.1", policy=policy)
    weeks = bf.Series(ledger, column="received", every="week", totals=True, frozen=True)
    generator = np.random.default_rng(5)
    season = 6 + 5 * np.sin(np.linspace(0, np.pi, 26))
    counts = generator.poisson(season[:, None] * np.array([1.0, 1.6, 0.5]))
    gaussian = bf.Gaussian(policy, bf.workloads.Identity(symptoms), rho="0.1")
    for number in range(26):
        name = f"{date(2025, 9, 1) + timedelta(weeks=number):%G-W%V}"
        weeks.release(name, gaussian, list(counts[: number + 1]), rng=number)
    return bf.plotting.series(weeks, by="symptom")


def connections() -> Any:
    """Draw a day of generated connections, released to the nanosecond."""
    terms: Any = {"start": "2000-01-01", "step": "1ns", "cells": 2**60}
    time = bf.WideDomain.from_steps(**terms, name="time")
    generator = np.random.default_rng(6)
    hours = np.concatenate(
        [generator.normal(9, 1, 30_000), generator.normal(15, 2, 50_000)]
    )
    moments = np.datetime64("2024-03-01", "ns") + (hours % 24 * 3.6e12).astype(np.int64)
    data = bf.SparseHistogram.from_records(time, {"time": moments})
    asked = bf.workloads.Ranges.between(time, ["2024-03-01"], ["2024-03-02"])
    dawa = bf.Dawa(bf.policies.AddRemove(time), asked, epsilon="0.1")
    return bf.plotting.buckets(dawa.release(data, rng=1), part="2024-03-01")


def speed() -> Any:
    """Draw how times grow with cells, cores and records, as recorded."""
    from matplotlib import pyplot

    recorded = HERE.parent / "asv_benchmarks" / "recorded" / "aarch64"
    kernels = json.loads((recorded / "performance.json").read_text())["kernels"]
    releases = json.loads((recorded / "cores.json").read_text())["20"]
    limits = json.loads((recorded / "limits.json").read_text())
    figure, axes = pyplot.subplots(2, 2, figsize=(5.6, 4.2))
    growth, gains, beside, records = axes.flat
    for name in SHOWN_KERNELS:
        sizes = np.array(kernels[name]["parameters"][0], dtype=float)
        # Of several settings, which change fastest, the first.
        settings = len(kernels[name]["seconds"]) // sizes.size
        times = 1e9 * np.array(kernels[name]["seconds"][::settings]) / sizes
        growth.plot(sizes, times, marker="o", markersize=3, label=name)
    growth.set_ylim(2, 20_000)  # above, the names
    growth.set_xlabel("cells, leaves or draws")
    growth.set_ylabel("CPU nanoseconds each")
    for name, seconds in releases.items():
        cores = sorted(map(int, seconds))
        gain = [seconds["1"] / seconds[str(one)] for one in cores]
        gains.plot(cores, gain, marker="o", markersize=3, label=name.replace("`", ""))
    gains.set_xticks(cores, map(str, cores))
    gains.set_xlabel("cores (simulated)")
    gains.set_ylabel("times as fast as on one")
    for name, called in BESIDE_LIMITS.items():
        each = limits["by cells"][name]
        sizes = 2.0 ** np.array([*map(int, each)])
        beside.plot(sizes, [*each.values()], marker="o", markersize=3, label=called)
    beside.set_ylim(0.1, 10**7)
    beside.set_xlabel("cells")
    beside.set_ylabel("CPU nanoseconds a cell")
    for name, each in limits["by records"].items():
        sizes = 10.0 ** np.array([*map(int, each)])
        records.plot(sizes, [*each.values()], marker="o", markersize=3, label=name)
    records.set_ylim(1, 1000)
    records.set_xlabel("records, into 1,000 cells")
    records.set_ylabel("CPU nanoseconds a record")
    for panel in (growth, beside, records):
        panel.set_yscale("log")
    for panel in axes.flat:
        panel.set_xscale("log", base=10 if panel is records else 2)
        panel.legend(fontsize=5, frameon=False)
    gains.set_xticks(cores, map(str, cores))
    figure.tight_layout()
    return growth


BESIDE_LIMITS = {
    "opendp": "OpenDP, noise",
    "dawa": "Dawa, 2000 ranges",
    "laplace": "Laplace",
    "noise": "exact secure noise",
    "numpy": "numpy's noise",
    "copy": "plain copy",
}
SHOWN_KERNELS = (
    *("DiscreteLaplace", "SummedAreaTable", "TreeLeastSquares"),
    *("DyadicQuantileCosts", "SampleDyadicPartition"),
)

PICTURES: dict[str, Callable[[], Any]] = {
    one.__name__: one
    for one in (
        *(histogram, categories, answers, groups, districts, grid_map, noise_map),
        *(policy_small, policy_absent, policy_large),
        *(error_curves, tradeoff, budget),
        *(tutorial, people, beliefs, known_totals, own_mechanism, seeded),
        *(noise_only, certified, weekly, connections, speed),
    )
}


def main(folder: Path) -> None:
    """Draw every picture into a folder."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        figure, drawn = draw().figure, BytesIO()
        figure.savefig(drawn, dpi=DOTS_PER_INCH)
        pyplot.close(figure)
        reduce_colours(drawn, folder / f"{name}.png", 32 if name == "speed" else 256)


def reduce_colours(drawn: BytesIO | Path, out: Path, colours: int = 256) -> None:
    """Write a picture in few colours: all it needs, in a third of the bytes."""
    from PIL import Image
    from PIL.Image import Dither

    picture = Image.open(drawn).convert("RGB").quantize(colours, dither=Dither.NONE)
    picture.save(out, optimize=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--reduce"]:
        reduce_colours(Path(sys.argv[2]), Path(sys.argv[2]), 128)
    else:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "_pictures")
