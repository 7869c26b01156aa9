"""Samples on the command line: ``--sample``, ``[sample]``, ``--of population``.

Words of designs (`apps.cli.parsing.sample`), jobs that keep them, questions about the
population, and what tables and pages say of it (`apps.cli.files.population_page`).
"""

from __future__ import annotations

import csv
import html
import json
import tomllib
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.files.population_page import (
    population_columns,
    population_section,
    with_population,
)
from blowfish_fast.apps.cli.options import offer_samples
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.parsing.sample import parse_sample
from blowfish_fast.apps.cli.parsing.sample_table import TAKEN
from blowfish_fast.apps.cli.parsing.schemas import job_schema
from blowfish_fast.errors import InputError, IntervalError
from blowfish_fast.release.sampling.designs import DESIGNS

from .asking import refused, run, told

SEXES = bf.Domain.from_levels(["F", "M"], name="sex")
AGES = bf.Domain.from_edges(range(15, 76, 10), name="age")
PEOPLE = bf.Domain.product(SEXES, AGES)
COUNTS = np.array([[90, 280, 300, 290, 190, 20], [110, 320, 330, 310, 220, 30]])
ODD = bf.Domain.product(
    bf.Domain.from_levels(["no:rth", "so,uth"], name="re:gion"),
    bf.Domain.from_levels([1, 2], name="class"),
)
JOB = """
[data]
source = "people.csv"
[domain]
sex = ["F", "M"]
age = "15:75:10"
[policy]
kind = "full"
[workload]
kind = "identity"
[mechanism]
name = "laplace"
[budget]
epsilon = 1
[output]
release = "drawn.blowfish"
table = "drawn.csv"
report = "drawn.html"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with releases of a sample, and with its records."""
    monkeypatch.chdir(tmp_path)
    release = bf.Laplace(bf.policies.Full(PEOPLE), epsilon=1).release(COUNTS, rng=1)
    release.save("plain.blowfish")
    release.sampled(bf.sampling.Simple(60_000)).save("drawn.blowfish")
    rows = [
        f"{sex},{20 + 10 * age}"
        for at, sex in enumerate("FM")
        for age in range(6)
        for _ in range(COUNTS[at, age])
    ]
    (tmp_path / "people.csv").write_text("\n".join(["sex,age", *rows]))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "design"),
    [
        ("simple", bf.sampling.Simple()),
        ("simple:48_842", bf.sampling.Simple(48_842)),
        ("simple:50:replacement", bf.sampling.Simple(50, replacement=True)),
        ("simple::replacement", bf.sampling.Simple(replacement=True)),
        ("bernoulli:0.05", bf.sampling.Bernoulli("1/20")),
        ("poisson", bf.sampling.Poisson()),
        (
            'stratified:"re:gion":"no:rth"=5,"so,uth"=8',
            bf.sampling.Stratified("re:gion", {"no:rth": 5, "so,uth": 8}),
        ),
        ("stratified:class:1=5,2=8", bf.sampling.Stratified("class", {1: 5, 2: 8})),
        ("weighted:class:64,32", bf.sampling.Weighted("class", (64, 32))),
    ],
)
def test_designs_are_said_in_words(words, design):
    assert parse_sample(words, ODD) == design


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("cluster:40", "alike"),
        ("two-stage", "alike"),
        ("raked:age", "one record changes everybody's weight"),
        ("quota", "with which chance"),
        ("haphazard", "a sample is simple, bernoulli"),
        ("simple:many", "whole"),
        ("simple:5:again", "is stated as"),
        ("poisson:3", "is stated as"),
        ("bernoulli:2", "between 0 and 1"),
        ("weighted:class", "is stated as"),
        ("weighted:class:much,little", "numbers with commas"),
        ("weighted:class:4", "one weight for each"),
        ("stratified:class:1", "LEVEL=PEOPLE"),
        ("stratified:class:1=5", "every level"),
        ("absent.toml", "no job file"),
    ],
)
def test_words_that_are_no_design_are_refused_with_the_reason(words, reason):
    with pytest.raises(InputError, match=reason):
        parse_sample(words, ODD)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('drawn = "simple"', "simple"),
        ('drawn = "simple"\npopulation = 60000', "simple:60000"),
        (
            'drawn = "simple"\npopulation = 9\nreplacement = true',
            "simple:9:replacement",
        ),
        ('drawn = "simple"\nreplacement = true', "simple::replacement"),
        ('drawn = "bernoulli"\nrate = 0.05', "bernoulli:0.05"),
        ('drawn = "poisson"', "poisson"),
        (
            'drawn = "stratified"\ncolumn = "sex"\npopulation = { F = 5, M = 8 }',
            'stratified:"sex":"F"=5,"M"=8',
        ),
        (
            'drawn = "weighted"\ncolumn = "sex"\nweights = [8, 4]',
            'weighted:"sex":8,4',
        ),
    ],
)
def test_a_job_file_says_the_same_and_its_schema_knows_it(table, words, folder):
    stated = f"{JOB}\n[sample]\n{table}\n"
    jsonschema.validate(tomllib.loads(stated), job_schema())
    (folder / "job.toml").write_text(stated)
    assert Job.from_file(folder / "job.toml").sample == words
    assert parse_sample("job.toml", PEOPLE) == parse_sample(words, PEOPLE)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("population = 5", "says how the records were drawn"),
        ('drawn = "clusters"', "alike"),
        ('drawn = "poisson"\nrate = 0.5', "takes nothing else"),
        ('drawn = "weighted"\ncolumn = "sex"', "takes column and weights"),
        ('drawn = "simple"\npopulation = { F = 5 }', "one number otherwise"),
        ('drawn = "simple"\npopulation = "all"', "a whole number, or a table"),
        ('drawn = "weighted"\ncolumn = "sex"\nweights = []', "a list of numbers"),
        ('drawn = "simple"\nsize = 5', "has no 'size'"),
    ],
)
def test_a_job_file_with_another_sample_is_refused(table, reason, folder):
    (folder / "job.toml").write_text(f"{JOB}\n[sample]\n{table}\n")
    with pytest.raises(InputError, match=reason):
        Job.from_file(folder / "job.toml")
    with pytest.raises(InputError, match=reason):
        parse_sample("job.toml", PEOPLE)


def test_every_design_has_words_and_keys():
    assert set(TAKEN) == set(DESIGNS)
    assert job_schema()["properties"]["sample"]["properties"]["drawn"]["enum"] == [
        *DESIGNS
    ]
    assert [word for word, _ in offer_samples("s")] == [
        "simple",
        "simple:",
        "stratified:",
    ]


@pytest.mark.long
def test_a_job_keeps_how_its_records_were_drawn(folder):
    text = f'{JOB}\n[sample]\ndrawn = "simple"\npopulation = 60000\n'
    (folder / "job.toml").write_text(text)
    said = run("release", "job.toml", "--dry-run", "--overwrite")
    assert "sample a simple random sample of 60,000 people, on your word" in said
    told("release", "job.toml", "--overwrite", "--seed", "1")
    release = bf.Release.load("drawn.blowfish")
    assert release.design == bf.sampling.Simple(60_000)
    with open("drawn.csv", encoding="utf-8") as file:
        first = next(csv.DictReader(file))
    assert float(first["population_low"]) < 60_000 * 90 / COUNTS.sum()
    assert float(first["population_high"]) > 60_000 * 90 / COUNTS.sum()
    assert 0 < float(first["noise_share"]) < 1
    page = html.unescape((folder / "drawn.html").read_text())
    assert "What it says of the population" in page
    assert "a simple random sample of 60,000 people. Nothing here can check" in page
    assert "by noise" in page
    assert "population low" in page


@pytest.mark.parametrize(
    "words",
    [
        ("--workload", "tables:2"),
        ("--mechanism", "kmeans"),
        ("--person", "who", "--at-most", "1"),
    ],
)
def test_jobs_whose_release_could_not_keep_a_sample_are_refused(words, folder):
    (folder / "job.toml").write_text(JOB)
    problem = refused(
        "release", "job.toml", "--sample", "simple", "--overwrite", *words
    )
    assert "keeps how its records were drawn" in str(problem)


@pytest.mark.long
def test_a_sample_is_released_by_what_can_be_asked_about_the_population(folder):
    (folder / "job.toml").write_text(JOB.replace('name = "laplace"', 'name = "best"'))
    words = ("release", "job.toml", "--overwrite", "--records", "500")
    sample = ("--sample", "simple:60000")
    drawn = told(*words, *sample, "--dry-run")
    assert drawn["population"] == "ask it with --of population"
    assert any("follows the sample" in sentence for sentence in drawn["because"])
    told(*words, *sample, "--seed", "1")
    ask = ("answer", "drawn.blowfish", "--of", "population", "--mean", "age")
    assert "population_low" in told(*ask)["answers"][0]
    assert told(*words, "--dry-run")["population"] is None
    other = run(*words, *sample, "--dry-run", "--mechanism", "mwem")
    assert "mwem may follow the data" in other
    assert "ask it with" not in other


def test_a_design_that_does_not_fit_is_refused_before_anything_is_charged(folder):
    (folder / "job.toml").write_text(JOB)
    words = ("--sample", "weighted:sex:4", "--ledger", "l", "--budget", "2")
    problem = refused("release", "job.toml", "--overwrite", *words)
    assert "one weight for each" in str(problem)
    assert not (folder / "l").exists()


def test_a_share_of_the_population_has_both_errors_in_its_interval():
    words = ("--where", "sex=F", "--share", "--of", "population")
    (line,) = told("answer", "drawn.blowfish", *words)["answers"]
    release = bf.Release.load("drawn.blowfish")
    share = release.where(sex="F").in_population().relative_count()
    assert line["measure"] == "population_share"
    assert line["estimate"] == pytest.approx(share)
    assert [line["population_low"], line["population_high"]] == pytest.approx(
        share.interval()
    )
    assert line["noise_share"] == pytest.approx(share.variance_parts().noise_share)
    (of_records,) = told("answer", "drawn.blowfish", *words[:3])["answers"]
    assert of_records["measure"] == "relative_count"
    assert of_records["low"] > line["population_low"]
    said = run("answer", "drawn.blowfish", *words)
    assert "Of the variance, " in said
    assert "Nothing here can check that." in said


def test_the_design_may_be_stated_when_asking():
    words = ("--by", "sex", "--of", "population")
    stated = told("answer", "plain.blowfish", "--sample", "simple:60000", *words)
    assert stated == {
        **told("answer", "drawn.blowfish", *words),
        "release": "plain.blowfish",
    }
    first, second = stated["answers"]
    people = first["population_count"] + second["population_count"]
    assert people == pytest.approx(60_000)
    assert "noise_share is the part" in stated["interval"]
    assert stated["confidence"] == 0.95
    report = told(
        "report", "plain.blowfish", "--sample", "simple", "--out", "page.html"
    )
    page = html.unescape(Path(report["report"]).read_text(encoding="utf-8"))
    assert "of a superpopulation" in page
    assert "population share" in page


def test_means_quantiles_and_ranges_of_the_population():
    release = bf.Release.load("drawn.blowfish")
    ask = ("answer", "drawn.blowfish", "--of", "population")
    (mean,) = told(*ask, "--mean", "age")["answers"]
    expected = release.where().mean("age").interval(of="population")
    assert [mean["population_low"], mean["population_high"]] == pytest.approx(expected)
    median = told(*ask, "--quantile", "0.5", "--of", "age", "--by", "sex")["answers"]
    groups = release.group_by("sex").quantile("age").intervals(of="population")
    assert [line["population_low"] for line in median] == groups[:, 0].tolist()
    assert "noise_share" not in median[0]
    ranges = told(*ask, "--range", "F,15:45", "--method", "normal")["answers"]
    boxes = bf.workloads.Rectangles(PEOPLE, [[0, 0]], [[1, 3]])
    normal = release.intervals(boxes, of="population", method="normal")[0]
    line = ranges[0]
    assert [line["population_low"], line["population_high"]] == pytest.approx(normal)
    cells = told(*ask, "--workload", "identity")
    assert "With probability at least 95 %" in cells["interval"]
    assert len(cells["answers"]) == 12


def test_questions_about_the_population_that_are_none_are_refused():
    plain, drawn = ("answer", "plain.blowfish"), ("answer", "drawn.blowfish")
    asked = ("--of", "population")
    problem = refused(*plain, *asked)
    assert isinstance(problem, IntervalError)
    assert problem.code == "no_sampling_design"
    assert "leave --sample out" in str(refused(*plain, "--sample", "simple"))
    other = refused(*drawn, *asked, "--sample", "simple")
    assert "says that its records are" in str(other)
    assert "leave --method out" in str(refused(*plain, "--method", "exact"))
    assert "one column" in str(refused(*drawn, "--of", "age", "--of", "sex"))
    two = refused(*drawn, *asked, "--of", "age", "--of", "sex")
    assert "one column" in str(two)
    assert "in place of a sum" in str(refused(*drawn, *asked, "--sum", "age"))
    about = ("certify", "drawn.blowfish", "--epsilon", "0.1", "--dry-run")
    assert "not off the population" in str(refused(*about, *asked))


def test_unequal_records_have_no_estimate_of_a_quantile():
    words = ("--sample", "weighted:sex:8,4", "--of", "population")
    ask = ("answer", "plain.blowfish", *words)
    assert "no estimate" in str(refused(*ask, "--quantile", "0.5", "--of", "age"))
    assert "no estimate" in str(refused(*ask, "--std", "age"))
    (line,) = told(*ask, "--where", "sex=F")["answers"]
    assert line["estimate"] == pytest.approx(8 * COUNTS[0].sum(), rel=0.05)


def test_a_column_of_that_name_is_named_by_its_number():
    towns = bf.Domain.from_edges(range(0, 60, 10), name="population")
    release = bf.Laplace(bf.policies.Full(towns), epsilon=1).release([9] * 5, rng=1)
    release.sampled(bf.sampling.Simple()).save("towns.blowfish")
    ask = ("answer", "towns.blowfish", "--quantile", "0.5")
    assert "--of 0" in str(refused(*ask, "--of", "population"))
    (line,) = told(*ask, "--of", "0", "--of", "population")["answers"]
    assert line["population_low"] <= line["population"] <= line["population_high"]


def test_releases_without_a_design_of_their_own_are_refused(folder):
    wide = bf.Domain.from_edges(range(5), name="x")
    mechanism = bf.Laplace(bf.policies.Full(wide), epsilon=1)
    for name in "ab":
        mechanism.release([9] * 4, rng=ord(name)).save(name)
    words = ("--with", "b", "--how", "sum", "--sample", "simple", "--of", "population")
    assert "made of several" in str(refused("answer", "a", *words))
    assert population_columns(bf.Release.load("a"), 0.95) == {}
    assert population_section(bf.Release.load("a"), 0.95) == []


def test_cells_of_merged_buckets_have_no_columns_of_the_population():
    line = bf.Domain.from_edges(range(65), name="x")
    dawa = bf.Dawa(
        bf.policies.AddRemove(line),
        epsilon=0.5,
        workload=bf.workloads.Prefixes(line),
    )
    release = dawa.release(np.repeat([5, 40, 8, 30], 16), rng=3)
    assert release.measurements[0].buckets.count < 64
    drawn = release.sampled(bf.sampling.Simple())
    assert population_columns(drawn, 0.95) == {}
    (section,) = population_section(drawn, 0.95)
    assert section.rows == ()
    many = bf.Domain.from_edges(range(1100), name="x")
    laplace = bf.Laplace(bf.policies.Full(many), epsilon=1)
    wide = laplace.release(np.ones(1099, int), rng=1)
    assert population_columns(wide.sampled(bf.sampling.Simple()), 0.95) == {}
    table = with_population(wide.to_table(), wide.sampled(bf.sampling.Simple()), 0.95)
    assert "population_low" not in table.columns
    first = population_columns(wide.sampled(bf.sampling.Bernoulli("0.5")), 0.95, 3)
    assert np.isfinite(first["population_low"]).sum() == 3
    assert json.dumps(section.to_dict())
