"""One description of a table: job files, flags and ledgers read the explorer's keys.

A description is the JSON that ``serve --tables`` takes. Whatever else reads it, or
reads the same keys in another spelling, must come to the same cells and policy.
"""

from __future__ import annotations

import json
import tomllib
from types import SimpleNamespace

import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.apps.cli.parsing.domain import parse_domain, parse_table
from blowfish_fast.apps.cli.parsing.file_lines import key_lines
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.parsing.policy import parse_policy, parse_table_policy
from blowfish_fast.apps.cli.release_job import Facts, read_facts
from blowfish_fast.apps.description.tables import job_of_table, read_description
from blowfish_fast.apps.explorer.catalog import AttributeSpec, PolicySpec, as_table
from blowfish_fast.data.records import domain_with_rules
from blowfish_fast.errors import InputError
from blowfish_fast.policies import Blocks

AGE = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 5}}
WARD = {"name": "ward", "levels": ["emergency", "heart", "a, b", 'c"d']}
VISITS = {
    "name": "visits",
    "attributes": [AGE | {"extras_joined": "end"}, WARD | {"missing": "none"}],
    "policies": {
        "age": {"kind": "threshold", "theta": 10, "unit": "value"},
        "ward": {"kind": "blocks", "blocks": [["emergency", 'c"d'], ["heart", "a, b"]]},
    },
    "person": "patient",
    "record": "visit",
    "at_most": 5,
    "presence": 2,
}
# Each table says something in a way of its own: a column under another name, presence
# alone, missing values that nothing is joined to.
TABLES = [
    VISITS,
    {"name": "ages", "attributes": [AGE | {"column": "years", "outside": "cell"}]},
    {"name": "seen", "attributes": [AGE, WARD], "presence": "only"},
    {
        "name": "apart",
        "attributes": [AGE | {"extras_joined": "apart"}],
        "policies": {"age": {"kind": "line"}},
    },
]


@pytest.fixture
def tables(tmp_path):
    path = tmp_path / "tables.json"
    path.write_text(json.dumps(TABLES))
    return path


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["name"])
def test_a_ledger_of_a_description_has_the_policy_of_the_explorer(
    table, tables, tmp_path, capsys
):
    words = ["ledger", "create", str(tmp_path / "book"), "--epsilon", "1"]
    words += ["--description", str(tables), "--table", table["name"]]
    assert run_command(words) == 0, capsys.readouterr()
    with bf.Ledger(tmp_path / "book") as ledger:
        of_ledger = ledger.policy
    of_explorer = as_table(table).policy()
    if table["name"] == "ages":
        # The explorer calls the column "age", and the command line calls it "years", as
        # the records do. So the domains differ in the name.
        assert of_ledger.domain.names == ("years",)
        assert of_ledger.domain.shape == of_explorer.domain.shape
    else:
        assert of_ledger.domain.attributes == of_explorer.domain.attributes
        assert of_ledger.implies(of_explorer)


@pytest.mark.parametrize("joined", ["all", "end", "apart"])
@pytest.mark.parametrize(
    "policy",
    [
        {"kind": "full"},
        {"kind": "line"},
        {"kind": "threshold", "theta": 2},
        {"kind": "blocks", "blocks": [[0, 3], [1, 2]]},
    ],
    ids=lambda policy: policy["kind"],
)
def test_policies_of_job_files_are_those_of_the_explorer(policy, joined):
    cells = {"cells": {"start": 0, "stop": 20, "width": 5}, "extras_joined": joined}
    cells |= {"missing": "cell", "outside": "clamp"}
    spec = AttributeSpec(name="age", **cells)
    job = Job.from_dict({"domain": {"age": cells}, "policies": {"age": policy}})
    domain, _ = domain_with_rules(parse_table(job.domain), job.outside, job.missing)
    assert domain == spec.domain()
    assert parse_policy(job.policy, domain) == PolicySpec(**policy).over(spec)


def test_a_graph_beside_public_missing_values_keeps_its_edges(tmp_path):
    (tmp_path / "edges.csv").write_text("0,2\n")
    domain = parse_domain("age=3").with_extra_cells(missing=True)
    policy = parse_policy(f"graph:{tmp_path}/edges.csv+extras:apart", domain)
    assert [edge for part in policy.edges() for edge in part.tolist()] == [[0, 2]]


def test_cells_for_stray_values_of_every_column_are_said_at_once():
    plain = parse_domain(["age=4", "pay=3"])
    domain = plain.with_extra_cells(missing=True, outside=["pay"])
    # The sentence follows from the domain alone, so no other facts of a job are stated.
    words = Facts.extra_cells.fget(SimpleNamespace(domain=domain))
    assert words == ["(missing) of every column", "(outside) of pay"]


def test_flags_take_listed_blocks_and_what_missing_values_are_joined_to():
    domain = parse_domain(["ward=categories:heart,surgery,children", "age=4"])
    words = 'attribute:ward=blocks:heart|"surgery"/children,age=line+extras:end'
    table = parse_table_policy(words, domain)
    # Neither column has a cell for missing values, so nothing is joined to one.
    assert table == parse_table_policy(words.replace("+extras:end", ""), domain)
    wards = parse_domain("ward=categories:heart,surgery,children")
    ward = parse_policy("blocks:heart|surgery/children", wards)
    assert isinstance(ward, Blocks)
    assert ward.components().labels.tolist() == [0, 0, 1]


def test_a_release_takes_columns_of_a_described_table(tables):
    typed = Job(
        description=str(tables),
        data_table="visits",
        domain=["age=0:100:10"],
        workload="identity",
        epsilon="1",
    )
    job = Job.stated(None, typed)
    assert job.ledger_domain is not None
    assert (job.person, job.record, job.at_most) == ("patient", "visit", 5)
    facts = read_facts(job)
    # Ten cells of ages, and one for missing values.
    assert facts.domain.shape == (11,)
    assert facts.ledger_policy.domain.names == ("age", "ward")


def test_a_file_of_records_is_described_by_one_of_several_tables(tables, tmp_path):
    records = tmp_path / "ages.csv"
    records.write_text("years\n" + "41\n" * 30)
    words = ["--data", str(records), "--workload", "identity", "--epsilon", "1"]
    named = ["release", "--description", str(tables), "--data-table", "ages", *words]
    # A file has no tables of its own: the name is that of the description.
    assert run_command([*named, "--dry-run"]) == 0
    assert run_command(["release", "--data-table", "ages", *words, "--dry-run"]) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[budget]\n\nepsilom = 1", r"^line 3: \[budget\] has no 'epsilom'"),
        ("[data]\nat_most = 'a'", r"^line 2: 'at_most' of \[data\] is a whole"),
        ("\n[bujet]\nx = 1", r"^line 2: a job file has no table \[bujet\]"),
        ("[domain]\nage = '0:9:1'\nsex = {level = ['f']}", "^line 3: .*'level'"),
        ("[domain.sex]\nlevel = ['f']", "^line 1: the description of 'sex'"),
        ("[policy]\ntheta = 1", r"^line 1: \[policy\] needs a kind"),
        ("[workload]\nkind = ['total']\nways = 1", "^line 1: several workloads"),
        (
            "[domain]\nage = 9\n[policies]\nage = {kind = 'lines'}",
            r"^line 3: 'kind' of 'age' in \[policies\] is full or line",
        ),
    ],
)
def test_a_refusal_names_the_key_and_the_line(text, reason, tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        Job.from_file(path)


def test_a_description_of_a_column_is_found_at_its_heading():
    text = '[policies."my age"]\nkind = "line"\n[data]\n"source" = "a"\n'
    assert key_lines(text) == {
        ("policies", "my age"): 1,
        ("data", ""): 3,
        ("data", "source"): 4,
    }


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("line", "is a table of kind, theta, unit, blocks; received 'line'"),
        ({"kind": "line", "theta": 1}, "'theta' belongs to kind = 'threshold'"),
        ({"kind": "blocks"}, "'blocks' belongs to kind = 'blocks'"),
        ({"kind": "threshold", "theta": "far"}, "is a number; received 'far'"),
        ({"kind": "blocks", "blocks": ["a"]}, "is a list of lists"),
    ],
)
def test_a_policy_by_keys_is_refused_by_its_key(policy, reason):
    with pytest.raises(InputError, match=reason):
        Job.from_dict({"domain": {"age": 9}, "policies": {"age": policy}})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[policies.sex]\nkind = 'line'", "there is no 'sex' among age"),
        ("[policy]\nkind = 'line'\n[policies.age]\nkind = 'line'", "both, with kind"),
        (
            "domain.t = {levels = ['a'], extras_joined = 'end'}\npolicy.kind = 'full'",
            r"State \[policies.t\]",
        ),
    ],
)
def test_parts_of_a_job_file_that_contradict_each_other_are_refused(text, reason):
    stated = tomllib.loads(text)
    stated.setdefault("domain", {"age": 9})
    with pytest.raises(InputError, match=reason):
        Job.from_dict(stated)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("line+extras:middle", "or .extras:apart"),
        ("blocks:a|b/b|c", "exactly one block"),
        ("blocks:a|b", "exactly one block"),
    ],
)
def test_odd_blocks_and_odd_places_of_missing_values_are_refused(words, reason):
    with pytest.raises(InputError, match=reason):
        parse_policy(words, parse_domain("town=categories:a,b,c"))


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({**VISITS, "population": "patients"}, "shares the budget of a population"),
        ({"attributes": [{"name": "word", "words": {}}]}, "words that nobody listed"),
        ({"attributes": [AGE, AGE]}, "a column of its own"),
        ({"attributes": [AGE | {"missing": "drop"}]}, "cell or none"),
        ({**VISITS, "presence": "only"}, "Leave the policies out"),
    ],
)
def test_what_only_the_explorer_keeps_is_refused(table, reason):
    with pytest.raises(InputError, match=reason):
        job_of_table(table)


def test_files_of_descriptions_that_leave_something_open_are_refused(
    tmp_path, tables, capsys
):
    with pytest.raises(InputError, match="describes visits, ages, seen, apart"):
        read_description(tables)
    with pytest.raises(InputError, match="received 'visit'"):
        read_description(tables, "visit")
    single = tmp_path / "single.json"
    single.write_text(json.dumps(VISITS))
    assert read_description(single)["person"] == "patient"
    single.write_text(json.dumps({**VISITS, "policy": {}}))
    with pytest.raises(InputError, match=r"has no 'policy'.*policies"):
        read_description(single)
    with pytest.raises(InputError, match="blowfish schema table"):
        read_description(tmp_path / "none.json")
    words = ["ledger", "create", str(tmp_path / "book"), "--epsilon", "1"]
    policy_twice = ["--description", str(tables), "--policy", "full"]
    assert run_command([*words, *policy_twice]) == 2
    policy_alone = ["--policy", "full"]
    assert run_command([*words, *policy_alone]) == 2
    errors = capsys.readouterr().err
    assert "beside --description" in errors
    assert "Give --domain for every column and --policy" in errors
