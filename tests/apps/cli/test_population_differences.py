"""Differences in the population, asked on the command line, with p-values."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.printing import chance_texts
from blowfish_fast.errors import IntervalError

from .asking import refused, run, told

SEXES = bf.Domain.from_levels(["F", "M"], name="sex")
WORK = bf.Domain.from_levels(["employed", "looking", "neither"], name="work")
AGES = bf.Domain.from_edges([15, 35, 55, 75], name="age")
PEOPLE = bf.Domain.product(SEXES, WORK, AGES)
BEFORE = np.array(
    [
        [[300, 500, 200], [90, 80, 20], [250, 100, 300]],
        [[350, 550, 250], [90, 70, 20], [200, 30, 150]],
    ]
)
NOW = BEFORE + np.array([[[-60], [70], [0]], [[0], [0], [0]]])
ASKED = ("--of", "population")
WAVES = ("answer", "now.blowfish", "--with", "before.blowfish", "--how", "difference")
SHARE = ("--share", "--where", "work=looking")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with two waves, with designs and without."""
    monkeypatch.chdir(tmp_path)
    laplace = bf.Laplace(bf.policies.Full(PEOPLE), epsilon=1)
    for seed, (name, counts) in enumerate({"before": BEFORE, "now": NOW}.items()):
        release = laplace.release(counts, rng=seed + 1)
        release.save(f"plain-{name}.blowfish")
        release.sampled(bf.sampling.Simple(60_000)).save(f"{name}.blowfish")
    return tmp_path


def bounds(line):
    return line["population_low"], line["population_high"]


def loaded():
    return [bf.Release.load(f"{name}.blowfish") for name in ("now", "before")]


def test_waves_are_compared_with_interval_and_p_value():
    answers = told(*WAVES, *ASKED, *SHARE)
    (line,) = answers["answers"]
    now, before = loaded()
    expected = now.where(work="looking").difference(before.where(work="looking"))
    assert line["measure"] == "population_share"
    assert line["difference"] == pytest.approx(expected)
    assert bounds(line) == pytest.approx(expected.interval())
    assert line["p_value"] == pytest.approx(expected.p_value())
    assert line["p_value"] < 1e-3
    assert 0 < line["noise_share"] < 1
    assert answers["confidence"] == 0.95
    for words in ("both samples", "asked once", "nobody to be in both", "60,000"):
        assert words in answers["interval"]
    narrow = told(*WAVES, *ASKED, *SHARE, "--confidence", "0.5")["answers"][0]
    assert narrow["population_low"] > line["population_low"]
    assert "p_value" in run(*WAVES, *ASKED, *SHARE)


def test_numbers_of_people_are_compared_by_default():
    (line,) = told(*WAVES, *ASKED, "--where", "work=looking")["answers"]
    now, before = (release.where(work="looking") for release in loaded())
    expected = now.difference(before, of="count")
    assert line["measure"] == "population_count"
    assert line["difference"] == pytest.approx(expected)
    people = [release.in_population().count() for release in (now, before)]
    assert expected == pytest.approx(people[0] - people[1], rel=1e-6)
    share = now.difference(before)
    # Both are of 60,000 people.
    assert expected.interval() == pytest.approx(
        [60_000 * end for end in share.interval()]
    )
    assert expected.p_value() == pytest.approx(share.p_value(), rel=0.02)


@pytest.mark.long
def test_groups_of_waves_have_a_line_each(folder):
    out = ("--out", "lines.csv")
    answers = told(*WAVES, *ASKED, *SHARE, "--by", "sex", "--by", "age", *out)
    lines = answers["answers"]
    assert [(line["sex"], line["age_from"]) for line in lines[:4]] == [
        ("F", 15),
        ("F", 35),
        ("F", 55),
        ("M", 15),
    ]
    assert "multiplies it by 6" in answers["interval"]
    now, before = loaded()
    chosen = {"sex": "F", "work": "looking", "age": slice(35, 55)}
    expected = now.where(chosen).difference(before.where(chosen))
    assert lines[1]["difference"] == pytest.approx(expected)
    assert lines[1]["p_value"] == pytest.approx(expected.p_value())
    with open("lines.csv", encoding="utf-8") as file:
        first = next(csv.DictReader(file))
    assert float(first["p_value"]) == pytest.approx(lines[0]["p_value"])


@pytest.mark.long
def test_groups_of_one_release_are_compared():
    words = ("--where", "sex=F", "--where", "work=looking", "--minus", "sex=M")
    (line,) = told("answer", "now.blowfish", *ASKED, "--share", *words)["answers"]
    now, _ = loaded()
    looking = now.where(work="looking")
    expected = looking.where(sex="F").difference(looking.where(sex="M"))
    assert line["difference"] == pytest.approx(expected)
    assert line["minus"] == "sex=M"
    assert line["p_value"] == pytest.approx(expected.p_value())
    said = run("answer", "now.blowfish", *ASKED, "--share", *words)
    assert "over the draw of the sample and the noise" in said
    by_age = told("answer", "now.blowfish", *ASKED, *words, "--by", "age")["answers"]
    assert len(by_age) == 3
    assert "minus" not in by_age[0]


@pytest.mark.long
def test_means_count_records_at_the_middle_of_their_cells():
    words = ("--mean", "age", "--where", "sex=F", "--minus", "sex=M")
    answers = told("answer", "now.blowfish", *ASKED, *words)
    now, _ = loaded()
    women, men = now.where(sex="F"), now.where(sex="M")
    expected = women.difference(men, of="mean", name="age")
    middles = women.difference(men, of="mean", name="age", values=[25, 45, 65])
    (line,) = answers["answers"]
    assert line["difference"] == pytest.approx(expected) == pytest.approx(middles)
    low, high = expected.interval()
    assert line["population_low"] == pytest.approx(low)
    assert line["population_high"] == pytest.approx(high)
    # Cells are twenty years wide.
    assert middles.interval()[0] - low > 18 < high - middles.interval()[1]
    assert "middle of its cell" in answers["interval"]
    assert "anywhere inside" in answers["interval"]
    share = told("answer", "now.blowfish", *ASKED, "--share", *words[2:])
    assert "middle" not in share["interval"]


def test_designs_may_be_stated_when_asking():
    plain = [word.replace("now", "plain-now") for word in WAVES]
    plain = [word.replace("before", "plain-before") for word in plain]
    sample = ("--sample", "simple:60000")
    stated = told(*plain, *ASKED, *SHARE, *sample)["answers"]
    assert stated == told(*WAVES, *ASKED, *SHARE)["answers"]
    problem = refused(*plain, *ASKED, *SHARE)
    assert isinstance(problem, IntervalError)
    assert problem.code == "no_sampling_design"


def test_answers_are_held_against_a_stated_number():
    ask = ("answer", "now.blowfish", *ASKED)
    now, _ = loaded()
    looking = now.where(work="looking")
    share = looking.relative_count()
    shares = told(*ask, *SHARE, "--against", "0.09")
    assert shares["answers"][0]["p_value"] == share.p_value(0.09)
    assert '"it is 0.09 in the population"' in shares["interval"]
    assert "asked once" in shares["interval"]
    groups = told(*ask, "--mean", "age", "--by", "sex", "--against", "45")
    expected = now.group_by("sex").mean("age").p_values(45)
    assert [line["p_value"] for line in groups["answers"]] == expected.tolist()
    assert "multiplies it by 2" in groups["interval"]
    people = told(*ask, "--where", "work=looking", "--against", "3000")["answers"]
    assert people[0]["p_value"] == looking.in_population().count().p_value(3000)
    per = ("--where", "work=looking", "--per", "work=looking,employed")
    force = now.where(work=["looking", "employed"])
    for words, method in (((), None), (("--method", "normal"), "normal")):
        rated = told(*ask, *per, "--against", "0.13", *words)
        rate = looking.ratio(force).p_value("0.13", method=method)
        assert rated["answers"][0]["p_value"] == rate
        assert '"it is 0.13 in the population"' in rated["interval"]


def test_no_p_value_is_shown_as_nothing():
    shown = run(*WAVES, *ASKED, *SHARE)
    p = told(*WAVES, *ASKED, *SHARE)["answers"][0]["p_value"]
    assert p < 1e-4
    assert f"{p:.3g}" in shown.replace("\n", "")
    assert chance_texts([0.99999, 0.001]) == ["1", "0.001"]


def test_differences_are_held_against_a_stated_one():
    now, before = loaded()
    change = now.where(work="looking").difference(before.where(work="looking"))
    answers = told(*WAVES, *ASKED, *SHARE, "--against", "0.05")
    assert answers["answers"][0]["p_value"] == change.p_value("0.05") > 0.05
    assert '"the difference is 0.05"' in answers["interval"]
    fallen = told(*WAVES, *ASKED, *SHARE, "--against", "-0.05")["answers"][0]
    assert fallen["p_value"] == change.p_value(-0.05) <= change.p_value() < 0.05
    assert change.p_value(float(change)) == 1.0


def test_a_number_to_compare_with_is_one_and_is_about_the_population():
    ask = ("answer", "now.blowfish")
    plain = refused(*ask, *SHARE, "--against", "0.09")
    assert "leave --against out" in str(plain)
    for words in ("many", "nan", "8 %"):
        for more in ((), ("--minus", "sex=M"), ("--per", "sex=M")):
            wrong = refused(*ask, *ASKED, "--where", "sex=F", *more, "--against", words)
            assert "--against 0.08 for 8 %" in str(wrong)


def test_what_has_no_difference_is_refused():
    ask = ("answer", "now.blowfish")
    minus = ("--where", "sex=F", "--minus", "sex=M")
    assert "Ask --of population" in str(refused(*ask, *minus))
    assert "Leave one of them out" in str(refused(*WAVES, *ASKED, *minus))
    assert "--count, --share or --mean" in str(refused(*WAVES, *ASKED, "--std", "age"))
    median = ("--quantile", "0.5", "--of", "age")
    assert "--count, --share or --mean" in str(refused(*WAVES, *ASKED, *median))
    two = refused(*ask, *ASKED, *minus, "--share", "--count")
    assert "one of --count, --share and --mean" in str(two)
    exact = refused(*WAVES, *ASKED, "--method", "exact")
    assert "no exact law" in str(exact)
    assert "Leave --round out" in str(refused(*WAVES, *ASKED, "--round"))
    three = refused(*WAVES, "--with", "plain-now.blowfish", *ASKED)
    assert "about two releases" in str(three)
    summed = ("--with", "before.blowfish", "--how", "sum")
    assert "how these records were drawn" in str(refused(*ask, *summed, *ASKED, *minus))
    for name in ("now", "before"):
        release = bf.Release.load(f"plain-{name}.blowfish")
        release.sampled(bf.sampling.Simple()).save(f"{name}.blowfish")
    assert "no number of people" in str(refused(*WAVES, *ASKED))


@pytest.mark.parametrize(
    ("design", "scale"),
    [
        (bf.sampling.Bernoulli("0.05"), 20),
        (bf.sampling.Poisson(), 1),
        (bf.sampling.Weighted("sex", [8, 8]), 8),
    ],
)
def test_differences_of_numbers_by_design(design, scale):
    now, before = (
        bf.Release.load(f"plain-{name}.blowfish").sampled(design).where(work="looking")
        for name in ("now", "before")
    )
    change = now.difference(before, of="count")
    counts = [release.in_population().count() for release in (now, before)]
    assert change == pytest.approx(counts[0] - counts[1])
    parts = [count.variance_parts() for count in counts]
    both = change.variance_parts()
    assert both.sampling == pytest.approx(sum(part.sampling for part in parts))
    assert both.noise == pytest.approx(sum(part.noise for part in parts))
    assert change == pytest.approx(scale * 210, rel=0.1)


def test_numbers_of_people_of_strata_are_compared():
    held = bf.policies.Blocks(PEOPLE, np.repeat([0, 1], 9))
    strata = bf.sampling.Stratified("sex", {"F": 20_000, "M": 60_000})
    waves = []
    for seed, counts in enumerate((NOW, BEFORE)):
        release = bf.Laplace(held, epsilon=1).release(counts, rng=seed)
        waves.append(release.sampled(strata).where(work="looking"))
    change = waves[0].difference(waves[1], of="count")
    counts = [wave.in_population().count() for wave in waves]
    assert change == pytest.approx(counts[0] - counts[1])
    parts = [count.variance_parts() for count in counts]
    both = change.variance_parts()
    assert both.sampling == pytest.approx(
        sum(part.sampling for part in parts), rel=1e-6
    )
    assert both.noise == pytest.approx(sum(part.noise for part in parts))


FORCE = ("--where", "work=looking", "--per", "work=looking,employed")


def rate_of(release, **chosen):
    force = release.where(work=["looking", "employed"], **chosen)
    return release.where(work="looking", **chosen).ratio(force)


@pytest.mark.long
def test_rates_divide_by_another_group():
    answers = told("answer", "now.blowfish", *ASKED, *FORCE)
    (line,) = answers["answers"]
    now, before = loaded()
    rate = rate_of(now)
    assert line["rate"] == pytest.approx(rate)
    assert bounds(line) == pytest.approx(rate.interval())
    assert line["per"] == "work=looking,employed"
    assert line["measure"] == "population_rate"
    assert "Of the variance" in answers["interval"]
    normal = ("--method", "normal", "--by", "sex")
    women, _ = told("answer", "now.blowfish", *ASKED, *FORCE, *normal)["answers"]
    assert women["sex"] == "F"
    expected = rate_of(now, sex="F").interval(method="normal")
    assert bounds(women) == pytest.approx(expected)
    (wave,) = told(*WAVES, *ASKED, *FORCE)["answers"]
    change = rate.difference(rate_of(before))
    assert wave["difference"] == pytest.approx(change)
    assert wave["p_value"] == pytest.approx(change.p_value())
    minus = ("--where", "sex=F", "--minus", "sex=M")
    (groups,) = told("answer", "now.blowfish", *ASKED, *FORCE, *minus)["answers"]
    apart = rate_of(now, sex="F").difference(rate_of(now, sex="M"))
    assert groups["difference"] == pytest.approx(apart)
    assert groups["per"] == "work=looking,employed"


def test_what_is_no_rate_is_refused():
    ask = ("answer", "now.blowfish")
    assert "Ask --of population" in str(refused(*ask, *FORCE))
    problem = refused(*ask, *ASKED, *FORCE, "--share")
    assert "nothing else is measured" in str(problem)
    waves = refused(*WAVES, *ASKED, *FORCE, "--mean", "age")
    assert "nothing else is measured" in str(waves)
