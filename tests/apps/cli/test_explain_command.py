"""``blowfish explain``: plain sentences that say what is true."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.explanations import (
    LABELS,
    attack_section,
    certainties,
    docstring_labels,
    exactness_section,
    explain_mechanism,
    explain_release,
    limits_section,
)
from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.strategies.strategy_choice import MEANINGS, NAMES
from blowfish_fast.mechanisms.certifier import Certifier
from blowfish_fast.mechanisms.registry import OWN

pytestmark = pytest.mark.usefixtures("empty_folder")

RUN = CliRunner()
LINE = bf.Domain(16, names=["band"])


def explained(*words):
    done = RUN.invoke(application, ["explain", *words], env={"COLUMNS": "80"})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


@pytest.mark.parametrize("name", OWN)
def test_every_mechanism_is_explained_by_its_six_labels(name):
    found = docstring_labels(OWN[name])
    for label in LABELS:
        assert found[label], label
        assert "`" not in found[label]
    _, sections = explain_mechanism(name)
    assert len(sections) == 1 + len(LABELS)
    assert all(section.sentences for section in sections)
    assert explained(name).startswith(name)


def test_every_strategy_is_explained():
    assert set(MEANINGS) == set(NAMES)
    assert "one draw per policy edge" in explained("edges")


def test_a_job_is_explained_before_anything_is_spent(empty_folder):
    RUN.invoke(application, ["release", "--demo-data"])
    before = sorted(empty_folder.iterdir())
    said = " ".join(explained("blowfish-people.toml").split())
    for words in (
        "differ by at most 5,000",
        "One release spends eps = 0.5",
        "it would begin with 2.0",
        "records per query",
        "The number of records is public",
        "values up to 24 steps apart",
    ):
        assert words in said
    assert sorted(empty_folder.iterdir()) == before
    found = json.loads(explained("blowfish-people.toml", "--json"))
    assert found["kind"] == "job"
    assert found["epsilon"] == "1/2"
    assert found["expected_error"] > 0
    assert found["certainty"][1]["steps"] == 24
    policy = bf.policies.Threshold(
        bf.Domain.from_edges(range(0, 120001, 1000), name="income"), 5000, unit="value"
    )
    sure = bf.risk("0.1", epsilon="0.5", policy=policy)
    assert found["certainty"][1]["any_value"] == float(sure)
    bf.Ledger("blowfish-people.ledger", epsilon=2, policy=policy).close()
    again = " ".join(explained("blowfish-people.toml").split())
    assert "2 of 2 remains in blowfish-people.ledger: enough for 4" in again


def test_a_release_is_explained_from_its_file():
    policy = bf.policies.AddRemove(LINE)
    asked = bf.workloads.Identity(LINE)
    release = bf.Laplace(policy, asked, epsilon=1).release([9] * 16)
    release.save("out.blowfish")
    said = " ".join(explained("out.blowfish").split())
    for words in ("16 cells, made by laplace", "secure generator", "whether they are"):
        assert words in said
    assert "The number of records is public" not in said
    found = json.loads(explained("out.blowfish", "--json"))
    assert found["promise"] == str(release.guarantee)
    low, high = release.intervals(asked, 0.95)[0]
    assert found["half_width"] == pytest.approx((high - low) / 2)
    seeded = bf.Dawa(policy, asked, epsilon=1).release([9] * 16, rng=1)
    seeded.save("seeded.blowfish")
    assert "protects nobody" in explained("seeded.blowfish")


def test_certified_cells_are_explained_by_what_their_certificate_says():
    line = bf.Domain(64)
    cells, policy = bf.workloads.Identity(line), bf.policies.AddRemove(line)
    counts = np.repeat([0, 40, 0], [30, 4, 30])
    release = bf.Dawa(policy, cells, epsilon="0.1").release(counts, rng=1)
    found = Certifier(release, cells, epsilon=1).release(counts, rng=2)
    told = exactness_section(release.certified(found)).sentences
    assert str(found) in told
    assert not any("Each interval holds" in one for one in told)


def test_what_is_paid_in_rho_is_explained_without_factors_of_epsilon():
    policy = bf.policies.Threshold(LINE, theta=2)
    asked = bf.workloads.AllRanges(LINE)
    mechanism = bf.Ordered(policy, asked, epsilon=1, delta="1e-9")
    mechanism.release([9] * 16).save("out.blowfish")
    bf.Ledger("people.ledger", rho="0.1", policy=policy).close()
    status = RUN.invoke(application, ["ledger", "status", "people.ledger"])
    for said in (explained("out.blowfish"), status.stdout):
        words = " ".join(said.split())
        assert "cannot be told apart beyond what rho allows" in words.replace("│ ", "")
        assert not re.search(r"\beps", words)
    assert "contributed k records is protected by k^2 rho only" in " ".join(
        explained("out.blowfish").split()
    )
    with bf.Ledger("people.ledger") as ledger:
        assert "e^eps" not in ledger._repr_html_()


def test_what_an_attacker_can_learn_depends_on_the_policy():
    full = certainties(
        bf.policies.Full(LINE),
        bf.Laplace(
            bf.policies.Full(LINE), bf.workloads.Identity(LINE), epsilon=1
        ).budget,
    )
    assert all(one.one_step == one.any_value for one in full)
    blocks = bf.policies.Blocks(LINE, [0] * 8 + [1] * 8)
    budget = bf.Laplace(blocks, bf.workloads.Identity(LINE), epsilon=1).budget
    section = attack_section(blocks, budget, certainties(blocks, budget))
    assert "become certain" in " ".join(section.sentences)
    assert section.rows[1][-1] == "100.0%"
    limits = limits_section(blocks, budget).sentences
    assert "2 parts" in " ".join(limits)
    assert "Whoever contributed k records is protected by e^(k * eps) only." in limits
    limits = limits_section(blocks.per_person(3), budget).sentences
    assert "A group of k people is protected by e^(k * eps) only." in limits
    assert "Whoever" not in " ".join(limits)
    wide = bf.policies.Line(bf.Domain(2**14))
    asked = bf.workloads.Prefixes(wide.domain)
    budget = bf.Ordered(wide, asked, epsilon=1).budget
    section = attack_section(wide, budget, certainties(wide, budget))
    assert "one step apart" in section.sentences[-1]
    assert len(section.rows[0]) == 2


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        ("dawwa", "did you mean 'dawa'"),
        ("nowhere.blowfish", "there is no release file"),
        ("nowhere.toml", "--example"),
        ("text.txt", "not a release file"),
    ],
)
def test_what_cannot_be_explained_is_refused(subject, message, empty_folder):
    (empty_folder / "text.txt").write_text("nothing")
    done = RUN.invoke(application, ["explain", subject])
    assert isinstance(done.exception, BlowfishError)
    assert message in str(done.exception)


def test_a_table_that_was_measured_again_in_the_same_way_is_one_line():
    sides = [bf.Domain(4, names=[name]) for name in "abcdef"]
    policy = bf.policies.Product(*map(bf.policies.Full, sides))
    asked = bf.workloads.Tables(policy.domain, ways=2)
    mechanism = bf.ChosenTables(policy, asked, choose="data", epsilon=1)
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 3, 3_000)
    columns = {side.names[0]: hidden + rng.integers(0, 2, 3_000) for side in sides}
    counted = bf.TableCounts.from_records(mechanism, columns)
    release = mechanism.release(counted, rng=1)
    _, sections = explain_release(release, "tables")
    section = next(one for one in sections if one.heading == "What was measured")
    head, *rows = section.rows
    assert head[-1] == "times"
    assert len({row[:-1] for row in rows}) == len(rows)
    assert sum(int(row[-1]) for row in rows) == len(release.measured["table"])
    assert any(int(row[-1]) > 1 for row in rows)
