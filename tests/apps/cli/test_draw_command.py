"""``blowfish draw``: a picture of what was released."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import BlowfishError

pytest.importorskip("matplotlib")


@pytest.fixture
def saved(tmp_path):
    def save(*sizes):
        domain = bf.Domain(sizes)
        laplace = bf.Laplace(
            bf.policies.AddRemove(domain), bf.workloads.Identity(domain), epsilon=1
        )
        path = tmp_path / f"{len(sizes)}.blowfish"
        laplace.release(np.ones(sizes, int)).save(path)
        return path

    return save


def draw(*words):
    return CliRunner().invoke(application, ["draw", *map(str, words)])


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(12,), (6, 5), (6, 5, 2), (5, 8, 9)], ids=str)
@pytest.mark.parametrize(
    ("suffix", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml")], ids=["png", "svg"]
)
def test_a_saved_release_is_drawn(saved, tmp_path, sizes, suffix, begin):
    out = tmp_path / f"picture.{suffix}"
    done = draw(saved(*sizes), "--out", out)
    assert done.exit_code == 0, (done.output, done.exception)
    assert out.read_bytes().startswith(begin)
    assert len(out.read_bytes()) > 5000


def test_what_cannot_be_drawn_is_refused_with_the_way_out(saved, tmp_path):
    out = tmp_path / "picture.png"
    path = saved(4)
    found = json.loads(draw(path, "--out", out, "--json").stdout)
    assert found["picture"] == str(out)
    three = ["--by", "0", "--by", "1", "--by", "2"]
    refusals = [
        ([path, "--out", out], "--overwrite"),
        ([path, "--out", tmp_path / "picture.jpg"], ".svg"),
        ([saved(2, 2, 2), *three, "--out", tmp_path / "three.png"], "received 3"),
        ([tmp_path / "nothing", "--out", tmp_path / "new.png"], "nothing"),
    ]
    for words, reason in refusals:
        problem = draw(*words).exception
        assert isinstance(problem, BlowfishError)
        assert reason in str(problem)
    assert draw(path, "--out", out, "--overwrite").exit_code == 0


def test_counts_are_drawn_by_the_columns_that_are_named(tmp_path, monkeypatch):
    ages = bf.Domain.from_edges([0, 20, 40, 60], name="age")
    towns = bf.Domain.from_levels(["Bern", "Chur"], name="town")
    domain = bf.Domain.product(
        ages, towns, bf.Domain.from_levels(["f", "m"], name="sex")
    )
    laplace = bf.Laplace(
        bf.policies.AddRemove(domain), bf.workloads.Identity(domain), epsilon=1
    )
    path = tmp_path / "people.blowfish"
    laplace.release(np.ones((3, 2, 2), int)).save(path)
    drawn = []
    groups = bf.plotting.groups

    def watched(answers, **more):
        drawn.append(answers.attributes)
        return groups(answers, **more)

    monkeypatch.setattr(bf.plotting, "groups", watched)
    assert draw(path, "--out", tmp_path / "a.png").exit_code == 0
    by = ["--by", "sex", "--by", "town"]
    assert draw(path, "--out", tmp_path / "b.png", *by).exit_code == 0
    assert drawn == [("age", "town"), ("sex", "town")]
