"""All tables of a survey by the command line: one line in a job file."""

from __future__ import annotations

import csv
import json
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import application
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.parsing.policy import parse_policy
from blowfish_fast.apps.cli.parsing.workload import parse_tables, parse_workload
from blowfish_fast.apps.cli.release_job import read_facts
from blowfish_fast.data import frames
from blowfish_fast.errors import BlowfishError, InputError, ReleaseFileError
from blowfish_fast.mechanisms.tables.prior_tables import PriorTables
from tests.apps.cli.asking import refused

RUN = CliRunner()
JOB = """
[data]
source = "people.csv"
[domain]
age = "0:90:10"
sex = "categories:f,m"
region = "categories:1,2,3"
[policy]
kind = "attribute"
[workload]
kind = "tables:2"
[budget]
epsilon = 0.5
ledger = "survey.ledger"
total = 1.0
[mechanism]
records = 300
"""


@pytest.fixture(autouse=True, name="folder")
def folder_with_people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = np.random.default_rng(1)
    with open("people.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["region", "age", "sex"])
        for _ in range(300):
            age, sex = source.integers(0, 90), "fm"[source.integers(2)]
            lines.writerow([source.integers(1, 4), age, sex])
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def told(*words, code=0):
    done = RUN.invoke(application, [*words, "--json"])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout) if code == 0 else done.exception


@pytest.mark.long
def test_three_commands_lead_from_a_file_to_tables_and_a_report(folder):
    before = told("release", "job.toml", "--dry-run")
    assert (before["tables"], before["errors"]["tables"]) == (6, [3, 3])
    assert not (folder / "survey.ledger").exists()
    done = told("release", "job.toml", "--picture", "map.png")
    assert done["remaining"] == 0.5
    report = told("explain", "release.blowfish")
    assert (report["kind"], report["tables"]) == ("tables", 6)
    with open("tables/contents.csv", newline="") as file:
        contents = list(csv.DictReader(file))
    assert [one["table"] for one in contents][3:] == [
        "age x sex",
        "age x region",
        "sex x region",
    ]
    assert "eps = 0.5" in (folder / "tables" / "promise.txt").read_text()
    assert (folder / "map.png").stat().st_size > 1000
    out = bf.TablesRelease.load("release.blowfish")
    assert out.table("age").estimate.sum() == pytest.approx(300)


def test_mean_counts_stand_beside_errors_once_the_total_is_known(folder):
    (folder / "job.toml").write_text(JOB.replace("records = 300", ""))
    before = told("release", "job.toml", "--dry-run")
    assert before["columns"] == {"age": 9, "sex": 2, "region": 3}
    assert "mean_count_by_cell" not in before["errors"]
    told_before = RUN.invoke(application, ["release", "job.toml", "--dry-run"]).stdout
    assert "age 9, sex 2, region 3" in told_before
    done = told("release", "job.toml", "--report", "page.html")
    assert done["errors"]["mean_count_by_cell"][0] == pytest.approx(3 * 300 / 14)
    known = before["errors"]["rms_error"]
    assert done["errors"]["rms_error"] == pytest.approx(known)
    page = (folder / "page.html").read_text()
    assert "e+0" not in page.partition("How accurate the tables are")[2][:900]


def test_a_workbook_too_small_for_a_table_is_refused_before_the_charge(
    folder, monkeypatch
):
    pytest.importorskip("openpyxl")
    monkeypatch.setattr(frames, "MOST_ROWS", 20)
    words = ("release", "job.toml", "--table", "all.xlsx")
    assert refused(*words).received == "all.xlsx with 27"
    assert not (folder / "survey.ledger").exists()
    told(*words, "--workload", "tables:age,age+sex")
    told("release", "job.toml", "--overwrite")


def test_a_risk_is_stated_of_tables_as_of_cells(folder):
    words = ("release", "job.toml", "--dry-run", "--risk", "0.1:0.3", "--budget", "2")
    (folder / "job.toml").write_text(JOB.replace("epsilon = 0.5\n", ""))
    one, three = (told(*words, "--policy", name) for name in ("full", "attribute"))
    assert float(Fraction(one["epsilon"])) == pytest.approx(np.log(27 / 7))
    # Age, sex and region may all differ: three steps.
    assert float(Fraction(three["epsilon"])) == pytest.approx(np.log(27 / 7) / 3)


def test_flags_state_the_ways_and_a_workbook(folder):
    pytest.importorskip("openpyxl")
    told(
        "release", "job.toml", "--tables", "1", "--table", "all.xlsx", "--epsilon", "1"
    )
    assert (folder / "all.xlsx").exists()
    text = RUN.invoke(application, ["explain", "release.blowfish"]).stdout
    assert "How accurate the tables are" in text


def test_whole_tables_agree_to_the_last_record(folder):
    told("release", "job.toml", "--round", "--table", "whole", "--report", "page.html")

    def read(name):
        with open(folder / "whole" / name, newline="") as file:
            return list(csv.DictReader(file))

    shares = [float(one["whole_misplaced"]) for one in read("contents.csv")]
    assert len(shares) == 6
    assert 0 <= min(shares) < max(shares) < 0.2
    by_sex = {one["sex"]: float(one["whole"]) for one in read("002_sex.csv")}
    both = read("004_age_sex.csv")
    for sex, many in by_sex.items():
        cells = [float(one["whole"]) for one in both if one["sex"] == sex]
        assert sum(cells) == many
        assert min(cells) >= 0
    assert "How accurate the tables are" in (folder / "page.html").read_text()


def test_a_database_counts_like_the_file(folder):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("ibis")
    with duckdb.connect("people.duckdb") as connection:
        connection.execute("CREATE TABLE people AS FROM 'people.csv'")
    words = ("release", "job.toml", "--data", "people.duckdb", "--epsilon", "1")
    assert told(*words, "--table", "db")["data"].startswith("table people")
    assert (folder / "db" / "contents.csv").exists()


def test_what_is_there_is_kept_and_nothing_is_charged(folder):
    (folder / "tables").mkdir()
    problem = told("release", "job.toml", code=1)
    assert isinstance(problem, ReleaseFileError | SystemExit | BlowfishError)
    assert not (folder / "survey.ledger").exists()
    told("release", "job.toml", "--overwrite")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--table", "all.csv"), "a folder, or to one .xlsx"),
        (("--tables", "4"), "at most the 3 attributes"),
        (("--workload", "tables:age+wage"), "no column 'wage'"),
        (("--count-column", "age"), "counted from records"),
        (("--policy", "line"), "one ordered attribute"),
        (("--certify", "0.1"), "hold the truth without a certificate"),
        (("--mechanism", "laplace"), "released together by contingency"),
    ],
)
def test_what_cannot_be_is_refused_before_the_charge(words, reason, folder):
    done = RUN.invoke(application, ["release", "job.toml", *words])
    assert done.exit_code != 0
    said = done.output + str(done.exception)
    assert reason in " ".join(said.split())
    assert not (folder / "survey.ledger").exists()


def test_words_for_tables_and_unions():
    survey = bf.Domain((9, 2, 4), names=["age", "sex", "job"])
    assert len(parse_tables("tables:2", survey).tables) == 6
    assert parse_tables("tables:job,sex+age", survey).tables == ((2,), (0, 1))
    both = parse_workload("identity | total", survey)
    assert both.queries == 73
    assert isinstance(parse_workload("tables:1", survey), bf.workloads.Tables)
    with pytest.raises(InputError, match="several with"):
        parse_workload("everything", survey)


POLICIES_OF_SURVEYS = [
    ('kind = "full"', "whole records", False),
    ('kind = "full"\npresence = true', "whole records", 1),
    ('kind = "attribute"', {}, False),
    ('kind = "attribute"\npresence = 4', {}, 4),
    ('kind = "attribute"\npresence = 3.5', {}, 3.5),
    (
        'kind = "attribute"\ncolumns = {age = "line", sex = "public"}\npresence = true',
        {"age": "line", "sex": "public"},
        1,
    ),
    (
        'kind = "attribute"\n[policy.columns]\nregion = "graph:pairs.csv"',
        {"region": "graph"},
        False,
    ),
    (
        'kind = "product"\nfactors = ["threshold:2", "public", "full"]',
        {"age": "threshold", "sex": "public"},
        False,
    ),
]


@pytest.mark.parametrize(("lines", "stated", "far"), POLICIES_OF_SURVEYS)
def test_a_job_file_states_every_policy_of_tables(lines, stated, far, folder):
    (folder / "pairs.csv").write_text("category,category\n1,2\n2,3\n")
    (folder / "jobs").mkdir()
    text = JOB.replace('kind = "attribute"', lines).replace("pairs", "../pairs")
    (folder / "jobs" / "job.toml").write_text(text)
    job = Job.from_file(folder / "jobs" / "job.toml")
    facts = read_facts(job)
    survey, policy = facts.domain, facts.policy
    graphs = {
        "line": lambda one: bf.policies.Line(one),
        "threshold": lambda one: bf.policies.Threshold(one, 2),
        "public": lambda one: bf.policies.Blocks(one, np.arange(one.size)),
        "graph": lambda one: bf.policies.Graph(one, [[0, 1], [1, 2]]),
    }
    by_attribute = None
    if stated != "whole records":
        by_attribute = {
            name: graphs[kind](survey.marginal([name])) for name, kind in stated.items()
        }
    expected = bf.policies.TablePolicy(survey, by_attribute, far)
    assert policy == expected
    assert policy.implies(expected)
    assert expected.implies(policy)
    # Small domains state the same words over all cells.
    plain = parse_policy(job.policy, survey)
    assert plain.has_bottom == expected.has_bottom
    assert plain.distance(0, [6, 1, -1]).tolist() == (
        expected.through(["age", "sex", "region"]).distance(0, [6, 1, -1]).tolist()
    )


@pytest.mark.parametrize("epsilon", ["1", "1e4"])
def test_public_columns_are_exact_where_the_number_of_people_is_public(epsilon, folder):
    words = ("--epsilon", epsilon, "--budget", "1e5", "--overwrite")
    told("release", "job.toml", "--policy", "attribute:sex=public", *words)
    out = bf.TablesRelease.load("release.blowfish")
    with open("people.csv", newline="") as file:
        women = sum(row["sex"] == "f" for row in csv.DictReader(file))
    assert out.table("sex").estimate.tolist() == [women, 300 - women]
    assert "sex" in str(out.guarantee).partition("public, and tables of them alone")[2]
    assert "in sex, values are public" in str(out.guarantee)


def test_presence_at_a_distance_costs_what_it_says(folder):
    def error(policy):
        words = ("--dry-run", "--tables", "1", "--policy", policy)
        return told("release", "job.toml", *words)["expected_error"]

    assert error("attribute+presence") > 1.2 * error("attribute+presence:4")
    assert error("attribute+presence:4") == pytest.approx(error("attribute"), rel=0.1)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("attribute:age", "each column is named once"),
        ("attribute:age=line,age=full", "each column is named once"),
        ("attribute:wage=line", "no column 'wage'"),
        ("attribute:age=lime", "did you mean 'line'"),
        ("attribute+presence:0.5", "at least one edge away"),
        ("attribute+presence:far", "one edge away"),
        ("attribute+presence4", "one edge away"),
        ("add_remove+presence:2", "moves alone"),
        ("product:line,public", "one policy per column"),
        ("public", "the policy is one of"),
        ("attribute+known:sex+presence", "moves alone"),
    ],
)
def test_policies_that_mean_nothing_are_refused_before_the_charge(
    words, reason, folder
):
    problem = refused("release", "job.toml", "--policy", words)
    assert reason in " ".join(str(problem).split())
    assert not (folder / "survey.ledger").exists()


def test_a_ledger_of_more_columns_takes_presence_and_columns(folder):
    columns = ["age=0:90:10", "sex=categories:f,m"]
    ages = ("--domain", columns[0], "--workload", "identity", "--epsilon", "0.5")
    table = (part for one in columns for part in ("--ledger-domain", one))
    words = ("--data", "people.csv", "--ledger", "two.ledger", "--budget", "1", *table)
    told("release", *words, *ages, "--policy", "line+presence:2")
    policy = bf.Ledger("two.ledger").policy
    assert policy.presence == 2
    assert list(policy.by_attribute) == ["age"]


def test_weights_of_tables_are_said_in_words(folder):
    survey = bf.Domain((9, 2, 4), names=["age", "sex", "job"])
    asked = parse_tables("tables:1 | tables:age+sex*9, sex*0.5", survey)
    assert asked.tables == ((0,), (1,), (2,), (0, 1))
    assert asked.weights == (1.0, 1.5, 1.0, 9.0)
    with pytest.raises(InputError, match="positive number"):
        parse_tables("tables:age*-1", survey)

    def error(*more):
        kinds = '["tables:2"' + "".join(f', "{one}"' for one in more) + "]"
        text = JOB.replace('"tables:2"', kinds)
        (folder / "job.toml").write_text(text)
        facts = read_facts(Job.from_file(folder / "job.toml"))
        mechanism = bf.Contingency(facts.policy, facts.workload, epsilon=1)
        return mechanism.expected_error("age", "sex")[0]

    assert error("tables:age+sex*99") < 0.9 * error()


def test_tables_or_heavy_cells_are_asked_of_more_cells_than_memory_holds(folder):
    wide = [part for at in range(14) for part in ("--domain", f"a{at}=9")]
    words = ("--data", "people.csv", "--policy", "add_remove", "--epsilon", "1", *wide)
    for workload in ("tables:2 | total", "total"):
        problem = refused("release", *words, "--workload", workload)
        assert "heavy ones are listed" in problem.rule
        assert problem.received == f"--workload {workload}"


def test_only_tables_of_a_former_export_are_replaced(folder):
    told("release", "job.toml")
    mine = folder / "tables" / "notes.txt"
    mine.write_text("mine")
    told("release", "job.toml", "--tables", "1", "--overwrite")
    held = sorted(one.name for one in (folder / "tables").iterdir())
    assert held == [
        *("001_age.csv", "002_sex.csv", "003_region.csv"),
        *("contents.csv", "notes.txt", "promise.txt"),
    ]
    assert mine.read_text() == "mine"


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.txt": "years of work"},
        {"contents.csv": "file\nthesis.txt\n", "promise.txt": "", "thesis.txt": ""},
        {"contents.csv": "file\n../people.csv\n", "promise.txt": ""},
        {"contents.csv": "file\n001_age.csv\n", "001_age.csv": "of somebody else"},
        {
            "contents.csv": "file\n001_age.csv\n",
            "promise.txt": "",
            "002_sex.csv": "not in the list",
        },
        {"contents.csv": "a,b\n1,2\n", "promise.txt": ""},
    ],
)
def test_a_folder_of_other_files_is_refused_before_the_charge(files, folder):
    place = folder / "work"
    place.mkdir()
    for name, text in files.items():
        (place / name).write_text(text)
    words = ("release", "job.toml", "--table", "work", "--overwrite")
    for more in ((), ("--dry-run",)):
        problem = refused(*words, *more)
        assert "holds other files" in problem.received
        assert "Name a new or an empty folder" in problem.way_out
    assert {one.name: one.read_text() for one in place.iterdir()} == files
    assert (folder / "people.csv").exists()
    assert not (folder / "survey.ledger").exists()


@pytest.mark.parametrize("name", ["notes", "book.xlsx"])
def test_a_file_is_no_folder_and_a_folder_is_no_workbook(name, folder):
    pytest.importorskip("openpyxl")
    place = folder / name
    place.mkdir() if name == "book.xlsx" else place.write_text("mine")
    said = refused("release", "job.toml", "--table", name, "--overwrite")
    assert "choose another name for the table" in str(said)
    assert place.exists()
    assert not (folder / "survey.ledger").exists()


def test_intervals_in_the_files_hold_at_the_confidence_that_is_asked(folder):
    told("release", "job.toml", "--confidence", "0.5", "--table", "half")
    out = bf.TablesRelease.load("release.blowfish")
    assert "at least 50 %" in (folder / "half" / "promise.txt").read_text()
    with open("half/004_age_sex.csv", newline="") as file:
        rows = [(float(row["low"]), float(row["high"])) for row in csv.DictReader(file)]
    table = out.table("age", "sex")
    cells = bf.workloads.Identity(table.domain)
    # Files show no count below 0; intervals are widened to estimates below it.
    assert np.allclose(rows, np.maximum(table.intervals(cells, 0.5), 0))
    assert not np.allclose(rows, np.maximum(table.intervals(cells), 0))
    problem = refused("release", "job.toml", "--confidence", "1.5", "--overwrite")
    assert "confidence" in str(problem)
    wide = told("answer", "release.blowfish", "--by", "sex")["answers"]
    narrow = told("answer", "release.blowfish", "--by", "sex", "--confidence", "0.5")
    for one, other in zip(wide, narrow["answers"], strict=True):
        assert one["low"] < other["low"] < other["high"] < one["high"]


def test_a_report_of_many_tables_is_called_by_their_number(folder):
    told("release", "job.toml", "--report", "page.html")
    assert "<h1>6 tables of 3 columns</h1>" in (folder / "page.html").read_text()


def test_questions_to_many_tables_are_put_to_the_table_of_their_columns(folder):
    told("release", "job.toml")
    out = bf.TablesRelease.load("release.blowfish")

    def answers(*words):
        return told("answer", "release.blowfish", *words)["answers"]

    assert answers()[0]["estimate"] == pytest.approx(300)
    counts = [one["count"] for one in answers("--by", "region")]
    # No count below 0 is shown.
    assert counts == pytest.approx(np.maximum(out.table("region").estimate, 0))
    young = answers("--where", "age=0:20", "--by", "sex")
    both = out.table("age", "sex").estimate[:2].sum(axis=0)
    assert [one["count"] for one in young] == pytest.approx(np.maximum(both, 0))
    mean = float(out.table("age").where().mean("age"))
    assert answers("--mean", "age")[0]["estimate"] == pytest.approx(mean)
    text = RUN.invoke(application, ["answer", "release.blowfish"]).stdout
    assert "region" in text.partition("What can be asked")[2]


def test_columns_that_were_measured_apart_are_refused(folder):
    told("release", "job.toml", "--tables", "1")
    for words in (("--where", "age=0:20", "--by", "sex"), ("--workload", "identity")):
        said = str(refused("answer", "release.blowfish", *words))
        assert "measured apart" in said
    pair = refused("answer", "release.blowfish", "--where", "age=0:20", "--by", "sex")
    assert "age x sex, which were measured apart" in str(pair)
    assert pair.code == "table_measured_apart"


def test_whoever_reads_many_tables_as_one_release_is_told_what_they_are(folder):
    told("release", "job.toml")
    words = ("--data", "people.csv", "--workload", "identity", "--epsilon", "0.1")
    said = str(refused("certify", "release.blowfish", *words))
    with pytest.raises(ReleaseFileError) as problem:
        bf.HistogramRelease.load("release.blowfish")
    for message in (said, str(problem.value)):
        assert "holds many tables" in message
        assert "blowfish answer FILE --by COLUMN" in message
        assert "damaged" not in message


@pytest.mark.long
def test_three_commands_lead_to_tables_that_the_data_chose(folder):
    (folder / "job.toml").write_text(
        JOB.replace('"tables:2"', '"tables:2"\nchoose = "data"')
    )
    before = told("release", "job.toml", "--dry-run")
    assert before["mechanism"] == "chosen_tables"
    assert "of 300 records would be put into a wrong cell" in before["because"][0]
    assert before["expected_error"] is None
    assert not (folder / "survey.ledger").exists()
    words = ["--picture", "map.png", "--report", "a.html", "--synthetic", "made.csv"]
    done = told("release", "job.toml", *words, "--certify", "0.2")
    assert 0 < done["certified"]["mean"] <= done["certified"]["worst"]
    assert "This is false with a probability" in done["error"]
    assert "certified" in told("explain", "release.blowfish")
    assert done["tables"] == 6
    assert done["problems"] == []
    with open("made.csv", newline="") as file:
        assert {"age", "sex", "region"} == set(next(csv.DictReader(file)))
    assert done["measured"]["table"][:3] == ["age", "sex", "region"]
    assert done["remaining"] == 0.5
    out = bf.ChosenTablesRelease.load("release.blowfish")
    assert len(out.sample(10, rng=1)) == 10
    assert "What was measured" in (folder / "a.html").read_text()
    told("release", "job.toml", "--overwrite", "--request", "again")
    again = ["release", "job.toml", "--overwrite", "--request", "again"]
    shown = " ".join(RUN.invoke(application, again).stdout.split())
    assert "measured, of 6 that were asked" in shown
    assert "how far it is off is not known" in shown


@pytest.mark.parametrize(
    ("records", "decided", "sentence"),
    [
        ("100000", "contingency", "the plan of public sizes is followed"),
        ("20", "data", "The data choose, privately"),
        (None, None, "The number of records, with noise where it is secret, decides"),
    ],
)
def test_the_best_way_to_choose_follows_public_numbers(
    folder, records, decided, sentence
):
    (folder / "job.toml").write_text(JOB.replace("records = 300", ""))
    words = ["release", "job.toml", "--dry-run", "--choose", "best"]
    before = told(*words, *([] if records is None else ["--records", records]))
    assert before["mechanism"] == "chosen_tables"
    assert sentence in before["because"][-1]
    assert ("errors" in before) == (decided == "contingency")


def test_choices_of_tables_are_refused_where_they_say_nothing():
    assert "Leave --mechanism or --choose out" in str(
        refused(
            *("release", "job.toml", "--mechanism", "contingency"),
            *("--choose", "data"),
        )
    )
    assert 'choose must be "best"' in str(
        refused("release", "job.toml", "--choose", "coin")
    )
    assert "Ask for tables" in str(
        refused("release", "job.toml", "--workload", "identity", "--choose", "data")
    )
    made = ("release", "job.toml", "--synthetic", "made.csv")
    assert "Ask for tables" in str(refused(*made, "--workload", "identity"))
    by_name = told("release", "job.toml", "--mechanism", "chosen_tables", "--dry-run")
    assert by_name["mechanism"] == "chosen_tables"


def test_last_years_release_is_a_prior_of_this_years(folder, monkeypatch):
    told("release", "job.toml", "--out", "last_year.blowfish")
    seen = []
    genuine = PriorTables.log_ratios

    def watched(self, *words):
        seen.append(sorted(self.tables))
        return genuine(self, *words)

    monkeypatch.setattr(PriorTables, "log_ratios", watched)
    (folder / "job.toml").write_text(
        JOB.replace(
            '"tables:2"', '"tables:2"\nchoose = "data"\nprior = "last_year.blowfish"'
        )
    )
    done = told("release", "job.toml", "--overwrite", "--request", "this year")
    assert done["mechanism"] == "chosen_tables"
    assert seen == [[(0, 1), (0, 2), (1, 2)]]


def test_a_prior_is_refused_where_it_says_nothing():
    prior = ("--prior", "last_year.blowfish")
    assert "beside the plan of public sizes" in str(
        refused("release", "job.toml", *prior)
    )
    assert "Ask for tables, --tables 2, or leave --prior out" in str(
        refused("release", "job.toml", "--workload", "identity", *prior)
    )


def test_job_files_and_options_say_which_tables_are_always_measured(folder):
    (folder / "job.toml").write_text(
        JOB.replace(
            '"tables:2"',
            '["tables:2"]\nchoose = "data"\nalways = ["sex x region"]\nrounds = 1\n'
            "model_cells = 4096",
        )
    )
    done = told("release", "job.toml")
    steps = zip(done["measured"]["table"], done["measured"]["step"], strict=True)
    assert ("sex x region", "always") in steps
    out = bf.ChosenTablesRelease.load("release.blowfish")
    assert out.details["steps"].count("chosen") == 1
    words = ("--always", "age+sex", "--rounds", "0", "--model-cells", "64")
    again = told("release", "job.toml", *words, "--overwrite", "--request", "again")
    assert set(again["measured"]["step"]) == {"single", "always"}
    assert again["measured"]["table"][-1] == "age x sex"
    few = ("--model-cells", "8", "--dry-run", "--overwrite")
    assert "at most 8" in str(refused("release", "job.toml", *few))


@pytest.mark.parametrize(
    "words", [("--always", "age x sex"), ("--rounds", "3"), ("--model-cells", "64")]
)
def test_what_is_about_chosen_tables_is_refused_elsewhere(words):
    flag = words[0]
    planned = refused("release", "job.toml", *words)
    assert f"{flag} beside the plan of public sizes" in str(planned)
    other = refused("release", "job.toml", "--workload", "identity", *words)
    assert f"Ask for tables, --tables 2, or leave {flag} out" in str(other)
