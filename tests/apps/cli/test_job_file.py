"""Job files: what they state, what they refuse, what flags override."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.files.data_source import EXAMPLE_JOB
from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.apps.cli.parsing.domain import parse_table
from blowfish_fast.apps.cli.parsing.job import KNOWN, Job
from blowfish_fast.apps.cli.release_job import (
    check_complete,
    parse_treatments,
    read_facts,
)
from blowfish_fast.apps.explorer.catalog import AttributeSpec
from blowfish_fast.errors import BlowfishError, InputError
from blowfish_fast.workloads import Identity

TREATED = parse_table(["age=0:9:3", "income=0:9:3", "town=categories:Bern,Chur"])


def stated(text):
    return Job.from_dict(tomllib.loads(text))


def test_the_example_states_a_whole_release():
    job = stated(EXAMPLE_JOB)
    assert job.policy == "threshold:5000:value"
    assert job.workload == "ranges:500"
    assert job.domain == ["income=0:120000:1000"]
    assert (job.epsilon, job.total) == ("0.5", "2.0")
    assert job.outside == {"income": "clamp"}
    assert read_facts(job).domain.size == 120
    elsewhere = {"ledger_domain", "policies", "sample"}
    assert set(tomllib.loads(EXAMPLE_JOB)) == set(KNOWN) - elsewhere


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "line"', "line"),
        ('kind = "threshold:3"', "threshold:3"),
        ('kind = "threshold"\ntheta = 2\nmetric = "linf"', "threshold:2:linf"),
        ('kind = "threshold"\ntheta = 2.5\nunit = "value"', "threshold:2.5:value"),
        ('kind = "blocks"\nsize = 4', "blocks:4"),
        ('kind = "graph"\nfile = "e.csv"', "graph:e.csv"),
        (
            'kind = "product"\nfactors = ["line", "threshold:2"]',
            "product:line,threshold:2",
        ),
    ],
)
def test_a_policy_becomes_the_words_of_a_flag(text, words):
    assert stated(f"[policy]\n{text}").policy == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "identity"', "identity"),
        ('kind = "rectangles"\nnumber = 30', "rectangles:30"),
        ('kind = "tables"\nways = 2', "tables:2"),
        ('kind = "marginals"\ncolumns = ["age", "sex"]', "marginals:age,sex"),
        ('kind = "ranges"\nfile = "asked.csv"', "ranges:asked.csv"),
        ('kind = ["total", "ranges:asked.csv"]', "total | ranges:asked.csv"),
    ],
)
def test_a_workload_becomes_the_words_of_a_flag(text, words):
    assert stated(f"[workload]\n{text}").workload == words


def test_domains_take_texts_lists_and_numbers():
    job = stated(
        '[domain]\nage = "0:101:1"\nsex = ["f", "m"]\nincome = [0, 1e4, 5e4]\n'
        "day = [2024-01-01, 2024-02-01]\nfloor = 12\n"
    )
    assert job.domain == [
        "age=0:101:1",
        "sex=categories:f,m",
        "income=edges:0,10000.0,50000.0",
        "day=edges:2024-01-01,2024-02-01",
        "floor=12",
    ]
    assert stated('[domain]\ncells = "64x64"').domain == ["64x64"]
    assert stated("[domain]\ncells = 4096").domain == ["4096"]


def test_files_are_looked_for_beside_the_job(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(
        '[data]\nsource = "people.csv"\n[policy]\nkind = "graph:edges.csv"\n'
        '[domain]\ntown = "categories:@towns.txt"\n[workload]\nkind = "asked.npy"\n'
        '[output]\nrelease = "out.blowfish"\n[budget]\nledger = "book"\n'
    )
    job = Job.from_file(path)
    assert job.data == str(tmp_path / "people.csv")
    assert job.policy == f"graph:{tmp_path / 'edges.csv'}"
    assert job.domain == [f"town=categories:@{tmp_path / 'towns.txt'}"]
    assert job.workload == str(tmp_path / "asked.npy")
    assert job.release == str(tmp_path / "out.blowfish")
    assert job.ledger == str(tmp_path / "book")
    address = Job.from_dict({"data": {"source": "duckdb://x"}}, tmp_path)
    assert address.data == "duckdb://x"


def test_flags_override_the_file():
    job = stated(EXAMPLE_JOB)
    changed = job.overridden(Job(policy="full", alpha="10"))
    assert changed.policy == "full"
    assert (changed.epsilon, changed.alpha) == (None, "10")
    in_rho = Job(alpha="40", beta="0.1", delta="1e-9")
    assert in_rho.budget is None
    assert in_rho.overridden(Job(alpha="10")).delta == "1e-9"
    assert in_rho.overridden(Job(epsilon="1")).delta is None
    assert changed.workload == job.workload
    back = changed.overridden(Job(epsilon="1", domain=["age=0:10:1"]))
    assert (back.epsilon, back.alpha, back.beta) == ("1", None, None)
    assert back.domain == ["age=0:10:1"]
    assert "alpha" not in back.to_dict()


def test_missing_parts_are_told_all_at_once():
    with pytest.raises(BlowfishError) as caught:
        check_complete(Job(mechanism="best", domain=["age=0:9:1"]))
    lines = str(caught.value).splitlines()
    assert lines[0] == "3 parts are missing:"
    assert [one.split()[:3] for one in lines[1:]] == [
        ["state", "the", "data:"],
        ["state", "the", "policy,"],
        ["state", "either", "--epsilon"],
    ]


def test_passwords_are_not_shown():
    job = Job(data="postgres://ann:secret@host:5432/people")
    assert job.to_dict()["data"] == "postgres://ann:***@host:5432/people"
    assert Job(data="people.csv").shown_data == "people.csv"


def test_stray_values_may_be_treated_by_column():
    assert parse_treatments("cell", TREATED) == "cell"
    assert parse_treatments(None, TREATED) is None
    by_column = parse_treatments("age=cell, income=clamp", TREATED)
    assert by_column == {0: "cell", 1: "clamp"}
    # A word for all others leaves categories alone where it is clamp.
    mixed = parse_treatments("clamp,income=cell", TREATED)
    assert mixed == {0: "clamp", 1: "cell"}
    mixed = parse_treatments("age=refuse,cell", TREATED)
    assert mixed == {0: "refuse", 1: "cell", 2: "cell"}
    awkward = parse_table(['"a,b=c"=0:9:3'])
    assert parse_treatments('"a,b=c"=cell', awkward) == {0: "cell"}
    assert parse_treatments("other=cell,age=cell", TREATED, others=True) == {0: "cell"}
    with pytest.raises(InputError, match="no column 'aeg'"):
        parse_treatments("aeg=cell", TREATED)
    job = stated('[data]\nmissing = {age = "cell"}')
    assert parse_treatments(job.missing, TREATED) == {0: "cell"}


TREATMENTS = ("missing", "outside")
REST = "[workload]\nkind = 'identity'\n[budget]\nepsilon = 1"
DOORS = {
    "words for all columns": 'missing = "cell"\noutside = "clamp,town=cell"',
    "a table by column": 'missing = {age = "cell", income = "cell", town = "cell"}\n'
    'outside = {age = "clamp", income = "clamp", town = "cell"}',
    "words by column": 'missing = "age=cell,income=cell,town=cell"\n'
    'outside = "town=cell,clamp"',
}


@pytest.mark.parametrize("door", DOORS)
def test_rules_by_column_mean_the_same_in_every_door(door, tmp_path):
    cells = 'age = "0:9:3"\nincome = "0:9:3"\ntown = "categories:Bern,Chur"\n'
    rest = f"[domain]\n{cells}[policy]\nkind = 'full'\n{REST}"
    job = stated(f"[data]\n{DOORS[door]}\n{rest}")
    specs = [
        AttributeSpec(name=name, cells={"start": 0, "stop": 9, "width": 3})
        for name in ("age", "income")
    ]
    specs.append(AttributeSpec(name="town", levels=["Bern", "Chur"]))
    explored = bf.Domain.product(*(spec.domain() for spec in specs))
    facts = read_facts(job)
    assert facts.domain == explored
    ledger = tmp_path / "new.ledger"
    words = [f"--domain={cells}" for cells in job.domain]
    rules = [f"--{rule}={as_flag(getattr(job, rule))}" for rule in TREATMENTS]
    made = ["ledger", "create", str(ledger), *words, *rules]
    assert run_command([*made, "--policy", "full", "--epsilon", "1"]) == 0
    with bf.Ledger(ledger) as book:
        assert book.policy.domain.attributes == explored.attributes
    strays = {"age": [-5, None], "income": [99, 0], "town": ["Thun", None]}
    counted = bf.Histogram.from_records(
        TREATED,
        strays,
        missing="cell",
        outside={"age": "clamp", "income": "clamp", "town": "cell"},
    )
    assert counted.domain == explored
    again = bf.Histogram._counted(facts.counting, strays)
    assert again.counts.tolist() == counted.counts.tolist()


def as_flag(rule):
    if isinstance(rule, str):
        return rule
    return ",".join(f"{name}={word}" for name, word in rule.items())


def test_what_is_said_of_a_column_goes_before_what_is_said_of_all():
    job = stated(
        '[data]\nmissing = "cell"\n[domain]\n'
        'age = { cells = {start = 0, stop = 9, width = 3}, missing = "none" }\n'
        'town = { levels = ["Bern", "Chur"] }\n'
        f"[policy]\nkind = 'full'\n{REST}"
    )
    assert job.missing == "cell,age=refuse"
    assert read_facts(job).domain.shape == (3, 3)


def test_help_says_that_rules_may_be_stated_by_column(capsys):
    for words in (["release"], ["ledger", "create"], ["ledger", "amend"]):
        assert run_command([*words, "--help"]) == 0
        shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert shown.count("age=cell,town=refuse for some columns") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[polcy]\nkind = 'line'", r"no table \[polcy\] \(did you mean 'policy'\?\)"),
        ("policy = 'line'", r"\[policy\] of a job file is a table"),
        ("[policy]\nkynd = 'line'", r"did you mean 'kind'"),
        ("[policy]\ntheta = 3", "needs a kind"),
        ("[policy]\nkind = 3", "is a text; received 3"),
        ("[policy]\nkind = 'threshold'\ntheta = true", "is a number"),
        ("[workload]\nkind = 'ranges'\nnumber = 2.5", "is a whole number"),
        ("[workload]\nkind = []", "a text, or a list of texts"),
        ("[workload]\nkind = ['total']\nnumber = 2", "a list of whole texts"),
        (
            "[workload]\nkind = 'ranges'\nways = 2",
            "those of kind = \"tables\"; received 'ranges'",
        ),
        ("[budget]\nepsilonn = 1", "did you mean 'epsilon'"),
        ("[budget]\nseed = 1", "it takes epsilon, rho"),
        ("[data]\nmissing = 3", "a text, or a table"),
        ("[domain]\nage = true", "the cells of 'age'"),
        ("[domain]\nage = [1, 'b']", "the cells of 'age'"),
        ("[policy]\nkind = 'product'\nfactors = [1]", "a list of texts"),
    ],
)
def test_what_is_misspelt_is_refused_with_the_nearest_name(text, message):
    with pytest.raises(BlowfishError, match=message):
        stated(text)


def test_a_file_of_a_windows_editor_is_read(tmp_path):
    file = tmp_path / "job.toml"
    file.write_bytes(b"\xef\xbb\xbf" + EXAMPLE_JOB.replace("\n", "\r\n").encode())
    assert Job.from_file(file).policy == "threshold:5000:value"


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(BlowfishError, match="--example"):
        Job.from_file(tmp_path / "nowhere.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[data\n")
    with pytest.raises(BlowfishError, match="is no TOML file"):
        Job.from_file(broken)
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(BlowfishError, match=r"not written in UTF-8; .*--example"):
        Job.from_file(broken)
    table = tmp_path / "people.csv"
    table.write_text("age;sex\n30;f\n")
    with pytest.raises(BlowfishError, match=r"TOML file: .*; state a table with --d"):
        Job.from_file(table)
    with pytest.raises(BlowfishError, match="cannot be read"):
        Job.from_file(Path(tmp_path))


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("domain", "state the domain"),
        ("policy", "which has no default"),
    ],
)
def test_what_is_left_unsaid_is_asked_for(left_out, message):
    content = tomllib.loads(EXAMPLE_JOB)
    del content[left_out]
    with pytest.raises(BlowfishError, match=message):
        read_facts(Job.from_dict(content))


def test_without_a_workload_single_cells_are_asked():
    content = tomllib.loads(EXAMPLE_JOB)
    del content["workload"]
    assert isinstance(read_facts(Job.from_dict(content)).workload, Identity)


def test_everything_odd_in_a_job_file_is_told_at_once():
    with pytest.raises(InputError) as told:
        stated('[wrokload]\nkind = "line"\n[budget]\nepsilom = 1\nrho = "lots"\n')
    for reason in (
        "3 parts",
        "did you mean 'workload'",
        "'epsilom'",
        "received 'lots'",
    ):
        assert reason in str(told.value)
