"""The schema of job files says what is read, and its keys are the explorer's."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from blowfish_fast.apps.cli.commands.ledger import Stated
from blowfish_fast.apps.cli.files.data_source import EXAMPLE_JOB
from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.apps.cli.parsing.domain import parse_domain
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.parsing.schemas import job_schema
from blowfish_fast.apps.description.columns import DISTRICTS, column_schema
from blowfish_fast.apps.description.shipped import part_of_table, shipped_schema
from blowfish_fast.apps.explorer.catalog import AttributeSpec, EqualCells
from blowfish_fast.apps.explorer.questions import StatedBudget, table_schema
from blowfish_fast.errors import InputError
from tests.apps.explorer.people import TABLE

DOCS = Path(__file__).parents[3] / "docs"
COLUMNS = """
age = { cells = { start = 0, stop = 100, width = 10 }, outside = "clamp" }
sex = { levels = ["f", "m", "not, said"], missing = "cell" }
income = { edges = [0, 10, 100.5] }
day = { dates = [2024-01-01, 2024-02-01, 2024-03-01], missing = "none" }
"""
WORDS = """
age = "0:100:10"
sex = ["f", "m", "not, said"]
income = "edges:0,10,100.5"
day = "edges:2024-01-01,2024-02-01,2024-03-01"
"""


def jobs_of_the_documents():
    """Return every job file that a page shows whole."""
    for page in sorted(DOCS.rglob("*.md")):
        for block in page.read_text().split("```toml\n")[1:]:
            text = block.partition("```")[0]
            if "[domain]" in text:
                yield tomllib.loads(text)


def plain(stated):
    return json.loads(json.dumps(stated, default=str))


def test_every_job_file_that_is_shown_follows_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    check = jsonschema.Draft202012Validator(job_schema())
    shown = [tomllib.loads(EXAMPLE_JOB), *jobs_of_the_documents()]
    assert len(shown) > 3
    for stated in shown:
        assert [problem.message for problem in check.iter_errors(plain(stated))] == []
    for wrong in (
        {"data": {"sauce": "people.csv"}},
        {"budget": {"epsilon": "much"}},
        {"polices": {}},
        {"policies": {"age": {"kind": "lines"}}, "domain": {"age": 9}},
        {"domain": {"age": {"cells": {"start": 0}}}},
        {"domain": {"age": {"levels": ["a"], "edges": [0, 1]}}},
    ):
        assert not check.is_valid(wrong)
        with pytest.raises(InputError):
            Job.from_dict(wrong)


def test_tables_of_the_explorer_follow_theirs():
    jsonschema = pytest.importorskip("jsonschema")
    check = jsonschema.Draft202012Validator(shipped_schema("table"))
    assert check.is_valid(TABLE.to_dict())
    assert not check.is_valid({**TABLE.to_dict(), "epsilon": 1})


def test_the_shipped_schemas_are_those_of_the_classes():
    """If this fails: python .ci/schemas.py --write."""
    assert shipped_schema("table") == plain(table_schema())
    assert shipped_schema("job") == plain(job_schema())


def test_a_budget_has_the_same_keys_and_limits_everywhere():
    limits = part_of_table("StatedBudget")["properties"]
    assert limits.keys() == StatedBudget.model_fields.keys()
    stated = shipped_schema("job")["properties"]["budget"]["properties"]
    assert limits.keys() <= stated.keys()
    assert {stated[key]["exclusiveMinimum"] for key in limits} == {0}
    assert {entry.name for entry in fields(Stated)} == limits.keys()


def test_keys_of_a_described_column_are_those_of_the_explorer():
    schema = column_schema()
    shared = schema["properties"].keys() - DISTRICTS.keys()
    assert shared < AttributeSpec.model_fields.keys()
    cells = schema["properties"]["cells"]["properties"]
    assert cells.keys() == EqualCells.model_fields.keys()
    stated = tomllib.loads(COLUMNS)
    spec = [AttributeSpec(name=name, **keys) for name, keys in stated.items()]
    job = Job.from_dict({"domain": stated})
    for column, described in zip(
        spec, parse_domain(job.domain).attributes, strict=True
    ):
        (own,) = column.domain().without_extra_cells().attributes
        assert (described.name, described.size) == (own.name, own.size)
        assert described.edges == own.edges


def test_words_and_keys_state_the_same_cells():
    described, worded = (
        Job.from_dict({"domain": tomllib.loads(text)}) for text in (COLUMNS, WORDS)
    )
    assert parse_domain(described.domain) == parse_domain(worded.domain)
    assert described.outside == {"age": "clamp"}
    assert described.missing == {"sex": "cell", "day": "refuse"}
    assert (worded.outside, worded.missing) == (None, None)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"level": ["a"]}, r"has no 'level'.*levels"),
        ({}, "one of cells, edges, dates, levels, file; received none of them"),
        ({"levels": ["a"], "edges": [1, 2]}, "received edges, levels"),
        ({"levels": []}, "'levels' of 'age' in .domain. is a list"),
        ({"edges": ["a", "b"]}, "are numbers"),
        ({"file": "tracts.gpkg"}, "a file and an id"),
        ({"file": "t.gpkg", "id": "g", "lon": "x"}, "lon and lat both or neither"),
        ({"file": "t.gpkg", "id": "a:b"}, "'id' of 'age' in .domain. names a column"),
        ({"file": 5, "id": "a"}, "'file' of 'age' in .domain. is a text"),
        ({"file": "t.gpkg", "id": "a", "step": "b"}, "'step' .* is a number"),
        ({"levels": ["a"], "id": "b"}, "'id' .* is said of districts"),
        ({"dates": [1, 2]}, "are dates"),
        ({"cells": {"start": 0, "stop": 1}}, "the numbers start, stop, width"),
        ({"cells": {"start": 0, "stop": 1, "width": "a"}}, "the numbers start"),
        ({"levels": ["a"], "missing": "drop"}, "cell or none; received 'drop'"),
    ],
)
def test_what_no_description_has_is_refused_by_its_key(keys, reason):
    with pytest.raises(InputError, match=reason):
        Job.from_dict({"domain": {"age": keys}})


def test_a_rule_of_a_column_goes_before_that_of_all():
    column = {"age": {"levels": ["a"], "missing": "cell"}}
    stated = Job.from_dict({"data": {"missing": "refuse"}, "domain": column})
    assert stated.missing == "refuse,age=cell"
    both = Job.from_dict({"data": {"missing": {"sex": "clamp"}}, "domain": column})
    assert both.missing == {"sex": "clamp", "age": "cell"}


@pytest.mark.parametrize(("kind", "key"), [("job", "budget"), ("table", "attributes")])
def test_the_command_prints_a_schema(kind, key, capsys):
    for more in ([], ["--json"]):
        assert run_command(["schema", kind, *more]) == 0
        assert key in json.loads(capsys.readouterr().out)["properties"]
