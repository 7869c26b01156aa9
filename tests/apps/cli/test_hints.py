"""Whatever the program tells people to type works: hints, comments, examples."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest
from typer.testing import CliRunner

from blowfish_fast.apps.cli.files.data_source import EXAMPLE_JOB
from blowfish_fast.apps.cli.main import ORDER, application, load_command

pytestmark = pytest.mark.usefixtures("empty_folder")

RUN = CliRunner()
SAMPLE = re.search(r"(?m)(?:^# .*\n)+", EXAMPLE_JOB[EXAMPLE_JOB.index("# [sample]") :])[
    0
]
"""A table of the example that is a comment as a whole."""
COMMENTED = [
    line[2:].partition("  #")[0].strip()
    for line in EXAMPLE_JOB.replace(SAMPLE, "").splitlines()
    if re.match(r"# \w+ = ", line) and "(two columns)" not in line
]


def typed(words):
    """Type a command as it is printed; return what it prints."""
    name, *rest = shlex.split(words)
    assert name == "blowfish"
    done = RUN.invoke(application, rest, env={"COLUMNS": "400"})
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.output


def commands_in(text):
    """Return the commands that lines of a text name."""
    return [
        one.strip() for one in re.findall(r"(blowfish [a-z].*?)(?:`|$)", text, re.M)
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        "--cells age=16:91:5 --policy line --workload prefixes",
        "--cells district=categories:centre,east,north,south,west --policy full "
        "--workload identity",
        "--cells joined=2020-01-01:2024-01-01:month --policy line --workload prefixes",
        "--cells age=16:91:25 --cells income=0:200000:50000 --policy full --workload "
        "identity --mechanism queries",
        "--cells age=16:91:25 --cells income=0:200000:50000 --policy full --workload "
        "tables:2",
    ],
)
def test_what_a_release_suggests_can_be_typed(words):
    text = typed(f"blowfish release --data demo --epsilon 1 {words}")
    suggested = commands_in(text)
    assert any("explain" in one for one in suggested)
    for one in suggested:
        typed(one)


def test_the_ledger_that_a_release_reminds_of_can_be_made():
    words = "blowfish release --data demo --epsilon 1 --cells age=16:91:5 "
    words += "--policy line --workload prefixes --dry-run"
    reminder = typed(words).splitlines()[-1]
    (stated,) = re.findall(r"--ledger FILE --budget TOTAL", reminder)
    said = typed(f"{words} {stated.replace('FILE', 'book').replace('TOTAL', '2')}")
    assert "book" in said


@pytest.mark.long
def test_made_up_people_come_with_commands_that_work():
    suggested = commands_in(typed("blowfish release --demo-data"))
    assert len(suggested) == 2
    for one in suggested:
        typed(one)


@pytest.mark.long
@pytest.mark.parametrize("line", COMMENTED)
def test_each_comment_of_the_example_can_be_uncommented(empty_folder, line):
    typed("blowfish release --demo-data")
    path = empty_folder / "blowfish-people.toml"
    text = path.read_text()
    (commented,) = [one for one in text.splitlines() if one.startswith(f"# {line}")]
    path.write_text(text.replace(commented, commented[2:]))
    name = line.partition(" =")[0]
    assert any(name in table for table in tomllib.loads(path.read_text()).values())
    typed(f"blowfish release {path.name} --dry-run")


def test_the_sample_of_the_example_can_be_uncommented(empty_folder):
    typed("blowfish release --demo-data")
    path = empty_folder / "blowfish-people.toml"
    stated = "\n".join(line[2:] for line in SAMPLE.splitlines()) + "\n"
    path.write_text(path.read_text().replace(SAMPLE, stated))
    assert tomllib.loads(path.read_text())["sample"]["population"] == 60_000
    typed(f"blowfish release {path.name} --dry-run")


def test_the_example_states_two_columns_in_its_comments(empty_folder):
    typed("blowfish release --demo-data")
    path = empty_folder / "blowfish-people.toml"
    lines = path.read_text().splitlines()
    marked = {
        at: line[2:].partition(" =")[0]
        for at, line in enumerate(lines)
        if "(two columns)" in line and re.match(r"# \w+ = ", line)
    }
    assert [*marked.values()] == ["district", "kind", "factors", "known", "kind"]
    for at in marked:
        lines[at] = lines[at][2:]
    single = ("theta =", "unit =", "number =", 'kind = "threshold"', 'kind = "ranges"')
    kept = [one for one in lines if not one.startswith(single)]
    path.write_text("\n".join(one for one in kept if "known =" not in one))
    assert "600" in typed(f"blowfish explain {path.name}")
    path.write_text("\n".join(kept).replace('kind = "product"', 'kind = "full"'))
    facts = tomllib.loads(path.read_text())
    assert facts["policy"]["known"] == ["district"]


@pytest.mark.parametrize("name", ["dawa", "laplace"])
def test_mechanisms_that_the_example_names_fit_it(name):
    assert name in EXAMPLE_JOB
    typed("blowfish release --demo-data")
    typed(f"blowfish release blowfish-people.toml --mechanism {name} --dry-run")


@pytest.mark.parametrize(
    "words", ["--alpha 100 --beta 0.05", "--risk 0.1:0.9"], ids=lambda one: one[2:6]
)
def test_other_ways_to_state_the_budget_fit_the_example(words):
    for one in re.findall(r"[\d.:]+", words):
        assert one in EXAMPLE_JOB
    typed("blowfish release --demo-data")
    typed(f"blowfish release blowfish-people.toml {words} --dry-run")


EXAMPLES = [
    example
    for name in ORDER
    for command in [load_command(name)]
    for example in re.findall(r"Example: (blowfish .*)", command.help or "")
]


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_help_pages_can_be_typed(empty_folder, example):
    (empty_folder / "visits.csv").write_text("patient,age\np1,3\np1,7\np2,5\n")
    (empty_folder / "visits.toml").write_text(
        '[data]\nsource = "visits.csv"\nperson = "patient"\n[domain]\nage = "0:9:3"\n'
        '[policy]\nkind = "add_remove"\n[budget]\nepsilon = 0.5\n'
    )
    (empty_folder / "ages.toml").write_text(
        '[data]\nsource = "demo"\noutside = "clamp"\n[domain]\nage = "0:100:5"\n'
        '[policy]\nkind = "add_remove"\n[workload]\nkind = "all_ranges"\n'
        '[mechanism]\nname = "dawa"\n[budget]\nepsilon = 1\n'
    )
    (empty_folder / "survey.csv").write_text("age,sex\n31,f\n44,m\n")
    (empty_folder / "people.toml").write_text(
        '[data]\nsource = "survey.csv"\n[domain]\nage = "0:100:20"\n'
        'sex = ["f", "m"]\n[policy]\nkind = "add_remove"\n'
    )
    (empty_folder / "codes.csv").write_text("column,value\nsex,f\nsex,m\n")
    (empty_folder / "arrivals.csv").write_text("age,received\n3,2025-11-03\n")
    (empty_folder / "weekly.toml").write_text(
        '[data]\nsource = "arrivals.csv"\nseries = "received:week:2025-W45"\n'
        '[domain]\nage = "0:9:3"\n[policy]\nkind = "add_remove"\n'
        '[mechanism]\nname = "laplace"\n[workload]\nkind = "identity"\n'
        '[budget]\nepsilon = 0.5\nledger = "book"\ntotal = 1\n'
        '[output]\nrelease = "weekly.blowfish"\n'
    )
    typed("blowfish release ages.toml --out ages.blowfish")
    assert typed(example).strip()


def test_several_commands_give_an_example():
    assert len(EXAMPLES) >= 4


def test_the_example_that_errors_point_to_is_printed():
    done = RUN.invoke(application, ["release", "nowhere.toml"])
    (command,) = commands_in(str(done.exception))
    assert tomllib.loads(typed(command))["domain"]
