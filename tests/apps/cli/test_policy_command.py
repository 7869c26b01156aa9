"""``blowfish policy``: what a policy promises, in words and as a picture."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.commands.policy import policy_facts
from blowfish_fast.apps.cli.main import application

RUN = CliRunner()


def typed(*words):
    return RUN.invoke(application, ["policy", *words], env={"COLUMNS": "120"})


def test_a_policy_is_described():
    done = typed("describe", "--cells", "age=0:100:5", "--policy", "threshold:2")
    said = " ".join(done.output.split())
    for words in ("promise", "age values", "37 edges", "all cells are"):
        assert words in said


def test_the_json_form_can_be_read_back():
    words = ("--cells", "age=0:100:5", "--cells", "sex=categories:f,m")
    done = typed("describe", *words, "--policy", "product:line,full", "--json")
    found = json.loads(done.stdout)
    assert bf.policies.from_dict(found["policy"]).edge_count == found["edges"]
    assert found["cells"] == 40
    assert found["presence_is_secret"] is False


@pytest.mark.parametrize(
    ("words", "components"),
    [
        ("blocks:4", "10; the number of people in each is public"),
        ("add_remove", "1, all cells are connected; no count is public"),
        ("full", "1, all cells are connected; the number of people is public"),
    ],
)
def test_components_tell_what_is_public(words, components):
    done = typed("describe", "--cells", "40", "--policy", words)
    assert components in " ".join(done.output.split())


def test_some_counts_may_be_public():
    line = bf.Domain(4)
    policy = bf.policies.Graph(line, [(0, 1), (2, -1), (3, -1)])
    facts = policy_facts(policy)
    assert (facts["components"], facts["public_counts"]) == (2, 1)


@pytest.mark.long
@pytest.mark.parametrize("cells", ["8", "2000", "30x40"])
def test_a_policy_is_drawn(tmp_path, cells):
    out = tmp_path / "policy.png"
    done = typed("draw", "--cells", cells, "--policy", "threshold:2", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "cannot be told apart" in done.output
    assert out.read_bytes().startswith(b"\x89PNG")
    words = ("draw", "--cells", cells, "--policy", "threshold:2", "--out", str(out))
    assert "exists already" in str(typed(*words).exception)
    assert typed(*words, "--overwrite").exit_code == 0


def test_drawing_speaks_json(tmp_path):
    out = tmp_path / "policy.svg"
    words = ("--cells", "8", "--policy", "line", "--out", str(out), "--json")
    assert json.loads(typed("draw", *words).stdout)["picture"] == str(out)
