"""``blowfish answer``: questions to a release on disk, with intervals."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import BlowfishError

RUN = CliRunner()
COUNTS = np.arange(40).reshape(20, 2) * 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with releases of people by age and sex, of ages, and of days."""
    where = tmp_path_factory.mktemp("releases")
    ages = bf.Domain.from_edges(range(0, 101, 5), name="age")
    people = bf.Domain.product(ages, bf.Domain.from_levels(["f", "m"], name="sex"))
    days = bf.Domain.from_dates(["2024-01-01", "2024-02-01", "2024-03-01"], name="day")
    cells = bf.workloads.Identity
    made = {
        "people": bf.Laplace(bf.policies.Full(people), cells(people), epsilon=1),
        "ages": bf.Laplace(bf.policies.AddRemove(ages), cells(ages), epsilon="1/2"),
        "days": bf.Laplace(bf.policies.Full(days), cells(days), epsilon=1),
        "plain": bf.Laplace(
            bf.policies.Full(bf.Domain(64)), cells(bf.Domain(64)), epsilon=1
        ),
        "mwem": bf.mechanisms.Mwem(
            bf.policies.Full(ages), bf.workloads.Prefixes(ages), epsilon=1, rounds=2
        ),
    }
    made["by sex"] = bf.Laplace(
        bf.policies.Full(people),
        bf.workloads.Marginals(people, ["sex"]),
        epsilon=1,
        strategy="queries",
    )
    data = {
        "people": COUNTS,
        "by sex": COUNTS,
        "days": [30, 50],
        "plain": np.full(64, 9),
    }
    for name, mechanism in made.items():
        release = mechanism.release(data.get(name, COUNTS.sum(axis=1)), rng=5)
        release.save(where / name)
    return where


@pytest.fixture
def ask(folder, monkeypatch):
    """Return what types a question in that folder."""
    monkeypatch.chdir(folder)

    def typed(*words, columns="120"):
        return RUN.invoke(
            application, ["answer", *map(str, words)], env={"COLUMNS": columns}
        )

    return typed


def asked_as_json(ask, *words):
    done = ask(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_groups_beside_missing_ones_are_named_as_conditions_are_written(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    ages = bf.Domain.from_edges([0.0, 2.5, 50.0], name="age")
    ages = ages.with_extra_cells(missing=True)
    laplace = bf.Laplace(bf.policies.Full(ages), epsilon=1000)
    laplace.release([3, 4, 5], rng=1).save(tmp_path / "ages")
    asked = RUN.invoke(application, ["answer", "ages", "--by", "age", "--json"])
    rows = json.loads(asked.stdout)["answers"]
    assert [row["age"] for row in rows] == ["0..2.5", "2.5..50", "(missing)"]
    for row in rows[:2]:
        words = ["answer", "ages", "--where", f"age={row['age']}", "--json"]
        again = json.loads(RUN.invoke(application, words).stdout)["answers"]
        assert again[0]["estimate"] == pytest.approx(row["count"])


def test_ranges_are_counted_in_values_with_intervals(ask, folder):
    found = asked_as_json(ask, "ages", "--range", "20:40", "--range", "0..17")
    release = bf.Release.load(folder / "ages")
    for row, part in zip(found["answers"], (slice(20, 40), slice(0, 17)), strict=True):
        answer = release.where(age=part).count()
        assert row["count"] == pytest.approx(float(answer))
        held = (row["low"], row["high"])
        assert held == pytest.approx(answer.interval(0.95, of="truth"))
    assert found["epsilon"] == "1/2"
    assert "holds the true count with probability at least 0.95." in found["interval"]


def test_whole_cells_are_not_said_to_be_cut(ask):
    found = asked_as_json(ask, "ages", "--range", "20:40")
    assert "holds the true count with probability at least 0.95." in found["interval"]


def test_a_file_of_queries_is_answered_line_by_line(ask, tmp_path):
    queries, out = tmp_path / "asked.csv", tmp_path / "answers.csv"
    queries.write_text("age_from,age_to,sex\n20,40,f\n,18,\n65,,m\n")
    done = ask("people", "--ranges", queries, "--out", out, "--confidence", "0.9")
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [one["age_from"] for one in rows] == ["20", "", "65"]
    assert all(float(one["low"]) < float(one["count"]) for one in rows)
    assert "Each interval holds the true count" in done.output
    assert "written:" in done.stderr
    one = asked_as_json(ask, "people", "--where", "age=20:40", "--where", "sex=f")
    assert one["answers"][0]["estimate"] == pytest.approx(float(rows[0]["count"]))


@pytest.mark.parametrize("text", ["from,to\n20,40\n", "20,40\n", "age\n20:40\n"])
def test_one_column_may_be_named_in_several_ways(ask, tmp_path, text):
    (tmp_path / "asked.csv").write_text(text)
    found = asked_as_json(ask, "ages", "--ranges", tmp_path / "asked.csv")
    direct = asked_as_json(ask, "ages", "--range", "20:40")
    assert found["answers"][0]["count"] == direct["answers"][0]["count"]


def test_columns_of_questions_do_not_hide_those_of_answers(ask, tmp_path):
    (tmp_path / "asked.csv").write_text("low,high\n20,40\n")
    found = asked_as_json(ask, "ages", "--ranges", tmp_path / "asked.csv")
    (row,) = found["answers"]
    assert (row["low_asked"], row["high_asked"]) == (20, 40)
    assert row["low"] < row["count"] < row["high"]


def test_selections_have_counts_sums_and_means(ask):
    words = ("people", "--where", "age=20:42", "--count", "--sum", "age")
    rows = asked_as_json(ask, *words, "--mean", "age")["answers"]
    assert [one["measure"] for one in rows] == ["count", "sum", "mean"]
    assert all(one["low"] <= one["estimate"] <= one["high"] for one in rows)
    assert 20 < rows[2]["estimate"] < 42


def test_groups_are_cells_or_lie_between_edges(ask):
    rows = asked_as_json(
        ask, "people", "--by", "age=0,18,65,100", "--by", "sex", "--mean", "age"
    )["answers"]
    assert len(rows) == 6
    assert rows[0]["mean"] < 18
    done = ask("days", "--by", "day")
    assert "2024-01-01" in done.output


def test_quantiles_are_values_or_dates(ask):
    (median,) = asked_as_json(ask, "ages", "--quantile", "0.5")["answers"]
    assert median["low"] <= median["age"] <= median["high"]
    (day,) = asked_as_json(ask, "days", "--quantile", "0.5")["answers"]
    assert day["day"].startswith("2024-02")
    done = ask("ages", "--quantile", "0.5")
    assert "All intervals together hold the true values" in " ".join(
        done.output.split()
    )


def test_a_standard_deviation_has_an_interval(ask):
    found = asked_as_json(ask, "people", "--std", "age", "--where", "sex=f")["answers"]
    assert found[0]["measure"] == "std"
    assert found[0]["low"] <= found[0]["estimate"] <= found[0]["high"]
    assert (
        len(asked_as_json(ask, "people", "--std", "age", "--by", "sex")["answers"]) == 2
    )


def test_quantiles_of_groups_and_selections(ask):
    words = ("people", "--quantile", "0.5", "--quantile", "0.9", "--of", "age")
    answers = asked_as_json(ask, *words, "--by", "sex")["answers"]
    assert [(one["sex"], one["quantile"]) for one in answers] == [
        *(("f", 0.5), ("m", 0.5), ("f", 0.9), ("m", 0.9)),
    ]
    assert all(one["low"] <= one["age"] <= one["high"] for one in answers)
    (only,) = asked_as_json(ask, *words[:3], "--of", "age", "--where", "sex=f")[
        "answers"
    ]
    assert only["age"] == answers[0]["age"]


def test_quantiles_leave_out_who_has_no_value(ask, folder):
    ages = bf.Domain.from_edges(range(0, 101, 5), name="age")
    cells = ages.with_extra_cells(missing=True)
    mech = bf.Laplace(bf.policies.Full(cells), bf.workloads.Identity(cells), epsilon=1)
    mech.release([5] * 20 + [500], rng=1).save(folder / "missing")
    found = asked_as_json(ask, "missing", "--quantile", "0.5")["answers"][0]
    assert found["where"] == "all with a value of age"
    assert found["low"] <= 50 <= found["high"]


@pytest.mark.parametrize("measure", ["--mean", "--sum", "--std"])
def test_means_leave_out_who_has_no_value_and_say_so(ask, folder, measure):
    ages = bf.Domain.from_edges(range(0, 101, 5), name="age")
    cells = ages.with_extra_cells(missing=True)
    mech = bf.Laplace(bf.policies.Full(cells), bf.workloads.Identity(cells), epsilon=1)
    mech.release([50] * 20 + [5000], rng=1).save(folder / "missing")
    found = asked_as_json(ask, "missing", measure, "age")
    (plain,) = asked_as_json(ask, "missing", measure, "age", "--where", "age=0:100")[
        "answers"
    ]
    (answer,) = found["answers"]
    assert answer["estimate"] == plain["estimate"]
    assert (answer["low"], answer["high"]) == (plain["low"], plain["high"])
    assert "Records whose age is missing are left out." in found["interval"]
    assert found["answers"][0]["where"] == "all with a value of age"


def test_rounded_answers_agree_with_each_other(ask, folder):
    by_sex = asked_as_json(ask, "people", "--by", "sex", "--round")["answers"]
    whole = asked_as_json(ask, "people", "--round")["answers"][0]["estimate"]
    assert sum(one["count"] for one in by_sex) == whole
    assert all(one["count"] == int(one["count"]) >= 0 for one in by_sex)
    done = ask("people", "--by", "sex", "--round", "--out", "groups.xlsx")
    assert done.exit_code == 0
    book = pytest.importorskip("openpyxl").load_workbook(folder / "groups.xlsx")
    assert book.sheetnames == ["promise", "table"]
    assert [row[0].value for row in book["table"].rows] == ["sex", "f", "m"]


@pytest.mark.parametrize(
    ("words", "columns"),
    [
        ("identity", {"axis0", "count", "low", "high"}),
        ("prefixes", {"to_cell", "count", "low", "high"}),
        ("ranges:3", {"from_cell", "to_cell", "count", "low", "high"}),
        ("total", {"query", "count", "low", "high"}),
    ],
)
def test_workloads_are_asked_in_words(ask, words, columns):
    assert (
        set(asked_as_json(ask, "plain", "--workload", words)["answers"][0]) == columns
    )


def test_boxes_are_asked_in_words(ask):
    row = asked_as_json(ask, "people", "--workload", "rectangles:2")["answers"][0]
    assert {"age_from_cell", "sex_to_cell"} <= set(row)
    boxes = asked_as_json(ask, "people", "--range", "20:40,f")["answers"]
    assert boxes[0]["age,sex"] == "20:40,f"


def test_long_tables_are_cut_for_people_only(ask):
    done = ask("plain", "--workload", "identity")
    assert "and 24 more" in done.output
    assert len(asked_as_json(ask, "plain", "--workload", "identity")["answers"]) == 64


def test_without_a_question_all_records_are_counted(ask):
    done = ask("people")
    said = " ".join(done.output.split())
    for words in ("all records", "What can be asked", "age goes from 0 to 100", "Free"):
        assert words in said
    assert "an experiment" in said


def test_releases_that_cover_nothing_say_so(ask, tmp_path):
    found = asked_as_json(ask, "mwem", "--range", "20:40", "--range", "0:5")
    assert "low" not in found["answers"][0]
    assert found["confidence"] is None
    assert "no interval is known" in found["interval"]
    done = ask("mwem", "--by", "age", "--out", tmp_path / "t.csv")
    assert done.exit_code == 0, done.output
    assert (
        (tmp_path / "t.csv")
        .read_text()
        .startswith("age_from,age_to,count,experiment\n")
    )


def test_tables_are_written_as_parquet_too(ask, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    ask("people", "--by", "sex", "--out", tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").column_names == [
        *("sex", "count", "low", "high")
    ]
    again = ask("people", "--by", "sex", "--out", tmp_path / "t.parquet")
    assert "exists already" in str(again.exception)
    more = ["--out", tmp_path / "t.parquet", "--overwrite"]
    assert ask("people", "--count", *more).exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "nothing"),
        (["ages", "--range", "20:40", "--quantile", "0.5"], "one kind of question"),
        (["ages", "--range", "20:40", "--ranges", "q.csv"], "as words"),
        (["ages", "--range", "40:20"], "start before it ends"),
        (["ages", "--range", "young"], "is no number"),
        (["people", "--range", "20:40"], "one part for each"),
        (["people", "--where", "agee=20:40"], "did you mean 'age'"),
        (["people", "--where", "sex=x"], "'f', 'm'"),
        (["people", "--where", "age"], "COLUMN=LOW:HIGH"),
        (["people", "--where", "age=0:5,10:15", "--sum", "sex"], "levels"),
        (["people", "--by", "sex", "--sum", "age", "--mean", "age"], "ask for one of"),
        (["plain", "--by", "0=1,5"], "by cell"),
        (["people", "--quantile", "0.5"], "say of which column"),
        (["people", "--quantile", "0.5", "--of", "sex"], "in no order"),
        (["people", "--of", "age"], "ask for quantiles alone"),
        (["ages", "--quantile", "0.5", "--mean", "age"], "ask for quantiles alone"),
        (["ages", "--quantile", "2"], "from 0 to 1"),
        (["ages", "--workload", "range"], "did you mean 'ranges'"),
        (["ages", "--confidence", "1"], "confidence"),
        (["ages", "--out", "t.txt"], ".csv, .xlsx"),
    ],
)
def test_bad_questions_are_refused(ask, words, message):
    done = ask(*words)
    assert isinstance(done.exception, BlowfishError | FileNotFoundError), done.output
    assert message in str(done.exception)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age_from,age_until\n1,2\n", "did you mean 'age_to'"),
        ("age_from,age_to\n1\n", "needs 2 values"),
        ("age_from,age_to\n", "holds no query"),
        ("", "empty"),
        ("age\n0:5,10:15\n", "needs 1 values"),
        ('age\n"0:5,10:15"\n', "one run of cells"),
    ],
)
def test_bad_files_of_queries_are_refused(ask, tmp_path, text, message):
    (tmp_path / "asked.csv").write_text(text)
    done = ask("ages", "--ranges", tmp_path / "asked.csv")
    assert isinstance(done.exception, BlowfishError), done.output
    assert message in str(done.exception)


def test_a_confidence_near_one_is_not_told_as_certainty(ask):
    found = asked_as_json(ask, "ages", "--count", "--confidence", "0.99999")
    assert "at least 0.99999." in found["interval"]


def test_a_range_the_wrong_way_round_is_refused_as_it_was_written(ask):
    done = ask("ages", "--range", "40:20")
    assert isinstance(done.exception, BlowfishError)
    assert "received '40:20'" in str(done.exception)


def test_what_was_not_measured_is_said_to_be_a_guess(ask, monkeypatch):
    measured = asked_as_json(ask, "by sex", "--by", "sex")
    assert "at least 0.95" in measured["interval"]
    found = asked_as_json(ask, "by sex", "--where", "age=20:40")
    assert "low" not in found["answers"][0]
    assert "may be far off" in found["interval"]
    done = RUN.invoke(application, ["explain", "by sex"], env={"COLUMNS": "300"})
    assert "Only the queries it was made for were measured" in done.output
    assert "nothing else was lost" not in done.output


@pytest.mark.long
def test_a_short_question_is_answered_without_the_compiler(folder, ask):
    code = (
        "import sys\n"
        "from blowfish_fast.apps.cli import main\n"
        "try:\n    main.run()\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        "print('numba' in sys.modules, file=sys.stderr)"
    )
    words = ["answer", "ages", "--where", "age=20:40", "--count", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.split() == ["False"]
    (plain,) = json.loads(done.stdout)["answers"]
    told = RUN.invoke(application, words)
    (compiled,) = json.loads(told.stdout)["answers"]
    assert plain == pytest.approx(compiled)
