"""The map of tables that the data chose, and the pages about such a release."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.explanations import explain_release
from blowfish_fast.apps.cli.files.outputs import read_release, write_report
from blowfish_fast.apps.cli.release_questions import Question, asked_table
from blowfish_fast.errors import InputError, ReleaseFileError

pytest.importorskip("matplotlib")

SURVEY = bf.Domain((6, 3, 5), names=["age", "sex", "region"])
ASKED = bf.workloads.Tables(SURVEY, ways=2)


@pytest.fixture(name="path", scope="module")
def saved_release(tmp_path_factory):
    policy = bf.policies.AddRemove(SURVEY)
    mechanism = bf.ChosenTables(policy, ASKED, choose="data", epsilon=1)
    counts = np.random.default_rng(1).integers(0, 30, SURVEY.shape)
    path = tmp_path_factory.mktemp("chosen") / "out.blowfish"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanism.release(bf.Histogram(SURVEY, counts), rng=1).save(path)
    return path


def test_the_map_shows_cells_and_how_often(path):
    release = read_release(path)
    axes = bf.plotting.measured_tables(release)
    texts = [one.get_text() for one in axes.texts]
    assert {"6", "3", "5"} <= set(texts)
    assert axes.get_title().startswith("cells at which a table was measured")
    cells = release.measured_cells()
    assert cells[0,] == (6, 1)
    with pytest.raises(InputError, match="of ChosenTables"):
        bf.plotting.measured_tables([1])


def test_the_map_says_how_many_triples_it_does_not_draw():
    policy = bf.policies.AddRemove(SURVEY)
    asked = bf.workloads.Tables(SURVEY, ways=3)
    mechanism = bf.ChosenTables(policy, asked, choose="data", epsilon=4)
    counts = np.zeros(SURVEY.shape, dtype=int)
    counts[:3, 0], counts[3:, 1] = 100, 100
    counts[:3, 1, 2:], counts[3:, 0, 2:] = 900, 900
    release = mechanism.release(bf.Histogram(SURVEY, counts), rng=1)
    assert "age x sex x region" in release.measured["table"].tolist()
    title = bf.plotting.measured_tables(release).get_title()
    assert title.endswith("not drawn: 1 of three attributes")


def test_pages_and_answers_of_such_a_release(path, tmp_path):
    release = read_release(path)
    about, sections = explain_release(release, "out")
    assert sections[-1].heading == "What was measured"
    assert len(about["measured"]["table"]) == len(sections[-1].rows) - 1
    page = Path(tmp_path / "page.html")
    write_report(release, page, 0.95, name="out", whole=True)
    text = page.read_text()
    assert "<svg" in text
    assert "Only tables that were measured have intervals" in text
    table = asked_table(release, Question(by=("age", "region")))
    expected = release.fitted("age", "region").estimate
    assert (table.estimate == expected).all()
    path.with_name("bad.blowfish").write_bytes(path.read_bytes()[:-400])
    with pytest.raises(ReleaseFileError, match=r"bad\.blowfish"):
        read_release(path.with_name("bad.blowfish"))
