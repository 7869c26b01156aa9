"""What the noisy result tells of the way in: said where it is so, and hardly else."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.release.second_look import look_again
from tests.apps.cli.asking import told

CONTRACTS = bf.Domain.from_levels(["Permanent", "Fixed"], name="contract")


def looked_at(counts, domain, epsilon=1, seed=1):
    policy, asked = bf.policies.Full(domain), bf.workloads.Identity(domain)
    return look_again(bf.Laplace(policy, asked, epsilon=epsilon).release(counts, seed))


def test_much_outside_is_said_with_its_share():
    extended = CONTRACTS.with_extra_cells(outside=True)
    (said,) = looked_at([10, 30, 960], extended)
    assert said.startswith("about 96 % of `contract` lies outside your categories")
    assert "spelled as in the file" in said
    assert looked_at([460, 500, 40], extended) == []
    ages = bf.Domain.from_edges([0, 18, 65, 120], name="age")
    (said,) = looked_at([5, 5, 0, 990], ages.with_extra_cells(outside=True))
    assert "outside your cells: are these its units" in said


def test_one_value_only_is_said():
    (said,) = looked_at([100_000, 3], CONTRACTS)
    assert (
        said
        == "nearly all records have one value, 'Permanent', of `contract`: is that so?"
    )
    (said,) = looked_at([0, 2, 90_000], CONTRACTS.with_extra_cells(missing=True))
    assert said.startswith("nearly all records miss the value of `contract`")
    ages = bf.Domain.from_edges([0, 18, 65], name="age")
    (said,) = looked_at([0, 50_000], ages)
    assert "18.0 to 65.0" in said


def test_noise_alone_says_nothing():
    extended = CONTRACTS.with_extra_cells(outside=True, missing=True)
    said = [
        one
        for seed in range(100)
        for one in looked_at([3, 4, 0, 1], extended, epsilon="0.1", seed=seed)
    ]
    assert len(said) <= 2, "once in 50 columns at most"


def test_every_column_of_several_is_looked_at():
    both = bf.Domain.product(
        CONTRACTS.with_extra_cells(outside=True),
        bf.Domain.from_levels(["f", "m"], name="sex"),
    )
    counts = np.array([[10, 20], [0, 10], [9000, 8000]])
    (said,) = looked_at(counts, both)
    assert "`contract`" in said
    survey = bf.Contingency(
        bf.policies.Full(both), bf.workloads.Tables(both, ways=1), epsilon=1
    )
    (said,) = look_again(survey.release(bf.Histogram(both, counts), rng=1))
    assert "`contract`" in said


def test_the_command_and_the_report_say_it(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("contract\n" + "permanent\n" * 960 + "Fixed\n" * 40)
    cells = ["--domain", "contract=categories:Permanent,Fixed", "--outside", "cell"]
    asked = ["--policy", "full", "--workload", "identity", "--mechanism", "laplace"]
    outputs = ["--out", "a.blowfish", "--report", "a.html", "--epsilon", "1"]
    found = told("release", "--data", "a.csv", *cells, *asked, *outputs)
    (said,) = found["remarks"]
    assert "% of `contract` lies outside your categories" in said
    assert "lies outside your categories" in (tmp_path / "a.html").read_text()


def test_the_explorer_says_it(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    from blowfish_fast.apps.explorer import Database, Explorer

    with duckdb.connect(str(tmp_path / "a.duckdb")) as made:
        made.execute(
            "CREATE TABLE t AS SELECT CASE WHEN range < 960 THEN 'permanent' ELSE "
            "'Fixed' END AS contract FROM range(1000)"
        )
    database = Database.connect(tmp_path / "a.duckdb")
    contract = {"name": "contract", "levels": ["Permanent", "Fixed"]}
    explorer = Explorer(
        {"name": "t", "attributes": [contract]}, database, epsilon=5, samples=0
    )
    question = {"kind": "histogram", "table": "t", "attribute": "contract"}
    answer = explorer.ask({**question, "cost": {"epsilon": 1}})
    assert "% of `contract` lies outside your categories" in answer.remarks[0]
    assert answer.to_dict()["remarks"] == list(answer.remarks)
    database.close()


def test_points_beyond_all_districts_are_about_systems_and_not_about_spelling():
    ring = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    shapes = [
        {"type": "Polygon", "coordinates": [[[x + at, y] for x, y in ring]]}
        for at in range(2)
    ]
    place = bf.Domain.from_polygons(bf.Districts.from_shapes(shapes, ["a", "b"]))
    swapped = {"lon": [50.5] * 900 + [0.5] * 100, "lat": [0.5] * 1000}
    data = bf.Histogram.from_records(place, swapped, outside="cell")
    laplace = bf.Laplace(bf.policies.AddRemove(data.domain), epsilon=1)
    (remark,) = look_again(laplace.release(data, rng=1))
    assert remark.startswith("about 90 % of `district` lies outside your districts")
