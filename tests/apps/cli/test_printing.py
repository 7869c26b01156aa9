"""What commands print: JSON on the output alone, everything else beside it."""

from __future__ import annotations

import datetime
import io
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from blowfish_fast.apps.cli import printing


def test_plain_values_are_what_json_can_hold():
    found = printing.plain(
        {
            1: np.array([1.5, np.inf]),
            "two": (np.int64(2), float("nan"), np.bool_(True)),
            "part": Fraction(1, 3),
            "where": Path("a/b"),
            "day": datetime.date(2024, 5, 1),
            "days": np.array(["2024-05-01"], dtype="datetime64[D]"),
        }
    )
    assert found == {
        "1": [1.5, None],
        "two": [2, None, True],
        "part": "1/3",
        "where": "a/b",
        "day": "2024-05-01",
        "days": ["2024-05-01"],
    }


@pytest.mark.parametrize(
    "value",
    [{}, {"a": []}, {"a": [1, 2]}, {"a": [{"b": 1}, [2]], "ü": {"c": "[x]"}}, [[], {}]],
)
def test_json_texts_read_back(value):
    assert json.loads(printing.json_text(value)) == value


def test_lists_of_plain_values_stay_on_one_line():
    assert printing.json_text({"a": [1, 2, 3]}) == '{\n  "a": [1, 2, 3]\n}'


def test_results_and_remarks_go_apart(capsys):
    printing.show({"a": "[bold]"})
    printing.show("a [sentence] " + "long " * 40)
    printing.remark("beside", word="refused")
    found = capsys.readouterr()
    assert '"a": "[bold]"' in found.out
    assert len(found.out.splitlines()) == 4
    assert found.err == "refused: beside\n"


def test_columns_of_numbers_end_at_the_right(capsys):
    printing.show_table(["name", "size"], [["a", "5"], ["b", "1,000"]], title="t")
    assert capsys.readouterr().out.splitlines()[2] == " a         5 "


def test_names_are_broken_so_that_numbers_are_not(capsys, monkeypatch):
    monkeypatch.setattr(printing, "console", printing.Screen(width=60))
    numbers = ["1,234,567.8"] * 4
    printing.show_table(["a long name of it"] * 4, [numbers])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split() == numbers
    assert lines[0].split() == ["a"] * 4


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.000"),
        (0.01234, "0.0123"),
        (1.5, "1.500"),
        (123.4, "123.4"),
        (5e6, "5,000,000"),
    ],
)
def test_numbers_have_four_digits(value, text):
    assert printing.four_digits(value) == text


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_a_terminal_and_never_on_the_output(
    capsys, monkeypatch, terminal
):
    screen = printing.Screen(
        file=io.StringIO(), force_terminal=terminal, width=100, _environ={}
    )
    monkeypatch.setattr(printing, "remarks", screen)
    with printing.spinner("working") as step:
        step("first")
        printing.show("result")
    with printing.counter("trying") as step:
        step(3, 7, "last one")
    shown = screen.file.getvalue()
    assert ("working: first" in shown) is terminal
    assert ("3/7" in shown) is terminal
    assert capsys.readouterr().out == "result\n"


def test_things_are_counted_in_words():
    assert printing.plural(1, "charge") == "1 charge"
    assert printing.plural(2000, "edge") == "2,000 edges"


def test_tables_show_brackets_as_they_are(capsys):
    printing.show_pairs("[t]", [("[bold]", "[/x]")])
    printing.show_table(["[a]"], [["[red]"]])
    found = capsys.readouterr().out
    for text in ("[t]", "[bold]", "[/x]", "[a]", "[red]"):
        assert text in found


def test_control_characters_of_foreign_names_reach_no_terminal(capsys):
    foreign = "ann\x1b[2J\x9b1A\rbob\u202e"
    printing.show_pairs(foreign, [(foreign, foreign)])
    printing.show_table([foreign], [[foreign]], title=foreign)
    printing.show(foreign)
    printing.remark(foreign)
    found = "".join(capsys.readouterr())
    assert found.count(r"ann\x1b[2J\x9b1A\rbob\u202e") == 8
    assert all(one.isprintable() or one == "\n" for one in found)


def test_a_closed_pipe_is_left_to_the_end_of_the_command():
    with pytest.raises(BrokenPipeError):
        printing.Screen().on_broken_pipe()
