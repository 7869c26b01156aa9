"""Files and the page that is made from them."""

from __future__ import annotations

import json

import pytest

from blowfish_fast.advice.experiments.experiment import PaperVerdict, Settings, Summary
from blowfish_fast.advice.experiments.result_files import (
    format_value,
    markdown_table,
    run_line,
    verdict_line,
    write_csv,
)
from blowfish_fast.advice.experiments.runner import run_experiment
from blowfish_fast.errors import InputError
from experiments.collection import experiment_named
from experiments.results_page import write_page
from experiments.row_statistics import read_csv

SUMMARY = Summary(
    ["set", "error"], [["a", 1234.5], ["b", None]], PaperVerdict("beaten", "x")
)


def test_rows_come_back_as_they_were(tmp_path):
    rows = [
        {"set": "a, b", "error": 1.25e-7, "trial": 0, "private": False, "note": None},
        {"set": 'c "d"', "error": 3.0, "trial": 1, "private": False, "note": "x\ny"},
    ]
    write_csv(tmp_path / "rows.csv", rows)
    assert read_csv(tmp_path / "rows.csv") == rows
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_no_rows_are_a_file_too(tmp_path):
    write_csv(tmp_path / "rows.csv", [])
    assert read_csv(tmp_path / "rows.csv") == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.123456, "0.123"),
        (999.6, "1,000"),
        (1234.5, "1,234"),
        (2.5e9, "2.50e+09"),
        (float("nan"), "nan"),
        (12, "12"),
        ("a", "a"),
    ],
)
def test_numbers_are_shown_short(value, text):
    assert format_value(value) == text


def test_a_table_is_markdown():
    assert markdown_table(SUMMARY).splitlines() == [
        "| set | error |",
        "|---|---|",
        "| a | 1,234 |",
        "| b | - |",
    ]


def test_a_bar_inside_a_cell_ends_no_cell():
    bars = Summary(["mean |noise|", "set"], [["|x|", 2]], PaperVerdict("beaten", "x"))
    assert markdown_table(bars).splitlines() == [
        "| mean \\|noise\\| | set |",
        "|---|---|",
        "| \\|x\\| | 2 |",
    ]


def test_the_verdict_warns_of_other_data(tmp_path):
    real = Settings(trials=2, seed=1, data=tmp_path)
    assert verdict_line(SUMMARY, real) == "beaten: x"
    assert "generated" in verdict_line(SUMMARY, Settings(trials=2, seed=1))
    quick = Settings(trials=1, seed=1, quick=True)
    assert "short form" in verdict_line(SUMMARY, quick)
    assert "2 trials, seed 1, data: from files" in run_line(real)
    assert "1 trial, seed 1, data: generated" in run_line(quick)


def test_the_page_is_made_from_the_files(tmp_path):
    experiment = experiment_named("dawa-table1")
    settings = Settings(trials=1, seed=5, quick=True)
    run_experiment(experiment, settings, tmp_path, figure=False)
    page, names = write_page(tmp_path)
    text = page.read_text()
    assert names == ["dawa-table1"]
    assert experiment.claim in text
    assert experiment.protocol in text
    assert "1 trial, seed 5" in text
    assert "not private" in text
    assert "Of 1 tables and figures" in text
    # A row changed in the file is a number changed on the page.
    rows = read_csv(tmp_path / "dawa-table1.csv")
    rows[0]["buckets"] = 987654
    write_csv(tmp_path / "dawa-table1.csv", rows)
    assert "987654" in write_page(tmp_path)[0].read_text()
    # The record says the same as data.
    assert "987654" in (tmp_path / "record" / "dawa-table1.csv").read_text()
    (told,) = json.loads((tmp_path / "record" / "verdicts.json").read_text())
    assert told["claim"] == experiment.claim
    assert told["verdict"].startswith(told["outcome"])
    assert told["verdict"] in page.read_text()
    assert experiment.protocol in told["protocol"]


def test_the_page_says_what_is_unfinished(tmp_path):
    settings = Settings(trials=1, seed=5, quick=True)
    experiment = experiment_named("dawa-table1")
    run_experiment(experiment, settings, tmp_path, figure=False)
    assert "Unfinished" not in write_page(tmp_path)[0].read_text()
    journal = tmp_path / "dawa-table1.journal"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:4]))
    text = write_page(tmp_path)[0].read_text()
    assert "**Unfinished:** 3 of 6 tasks" in text
    assert "(after 3 of 6 tasks) |" in text


def test_a_page_of_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="no results"):
        write_page(tmp_path)


def test_results_without_their_settings_are_refused(tmp_path):
    settings = Settings(trials=1, seed=5, quick=True)
    experiment = experiment_named("dawa-table1")
    run_experiment(experiment, settings, tmp_path, figure=False)
    (tmp_path / "dawa-table1.journal").unlink()
    with pytest.raises(InputError, match="settings of the run"):
        write_page(tmp_path)
