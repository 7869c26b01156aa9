"""What a release is written to: whole counts, workbooks, pages; epsilon by risk."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from tests.apps.cli.asking import refused, told

pytestmark = pytest.mark.usefixtures("empty_folder")

AGES = bf.Domain.from_edges(range(16, 92), name="age")
FACTS = [
    *("release", "--data", "demo", "--domain", "age=16:91:1", "--policy", "line"),
    *("--workload", "prefixes", "--epsilon", "0.5"),
]


@pytest.mark.long
def test_whole_counts_a_workbook_and_a_page_are_written(empty_folder):
    openpyxl = pytest.importorskip("openpyxl")
    words = [*FACTS, "--round", "--table", "ages.xlsx", "--report", "ages.html"]
    assert told(*words)["files"]["report"] == "ages.html"
    book = openpyxl.load_workbook(empty_folder / "ages.xlsx")
    assert "eps = 0.5" in book["promise"]["A1"].value
    names, *rows = [[one.value for one in row] for row in book["table"].rows]
    counts = [row[names.index("count")] for row in rows]
    assert len(rows) == 75
    assert all(isinstance(one, int) and one >= 0 for one in counts)
    release = bf.Release.load("release.blowfish")
    assert sum(counts) == round(release.estimate.sum()) == 10_000
    assert "The numbers" in (empty_folder / "ages.html").read_text()


def test_epsilon_follows_from_a_risk():
    words = FACTS[:-2]
    found = told(*words, "--risk", "0.1:0.3", "--policy", "full", "--dry-run")
    epsilon = bf.advice.largest_epsilon("0.1", "0.3", policy=bf.policies.Full(AGES))
    assert found["epsilon"] == str(epsilon)
    assert "from believing it with more than 0.3" in found["because"][0]
    assert "state either" in str(refused(*FACTS, "--risk", "0.1:0.3"))
    assert "two probabilities" in str(refused(*words, "--risk", "often"))
