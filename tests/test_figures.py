"""A figure stands in one place: pages say what the recorded data say, or link to it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from experiments.collection import all_experiments

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FIGURE = re.compile(
    r"(?<![\w.])(?:\d+ of \d+\b|(?:\d[\d,]*)?\.\d+ (?:of|times)\b|\d+(?:\.\d+)?x\b)"
)
"""What was measured is told as a part of a whole, or as a multiple."""

RECORDS = (
    *("proofs", "reference", "notebooks", "project", "data"),
    *("audit.md", "performance.md"),
    *("how_the_defaults_were_chosen.md", "trust.md"),
)
"""Records of measurements themselves, each with its command, and what is not prose."""

WORKED_OUT = {
    ("what_a_policy_means.md", "4.4 of"): "a distance in an example",
    ("chosen_tables.md", "0.08 of"): "the bound in the code, PLAN_BOUND",
    ("contingency.md", "0.089 of"): "of the table above it",
    ("come_from_other_libraries.md", "0.92 of"): "the variance of a law",
}
"""Figures that are no measurements, or stand beside their table, with the reason."""


def load_filler():
    """Return the script that fills pages, as a module."""
    spec = importlib.util.spec_from_file_location("fill", DOCS / "fill_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FILLER = load_filler()
PAGES = FILLER.pages()


def loose_figures(text: str) -> list[str]:
    """Return figures of a page that are neither filled in nor beside a link."""
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    loose = []
    for paragraph in re.split(r"\n\s*\n|\n(?=[-|*] |\d+\. )", prose):
        filled = FILLER.PLACE.sub("", paragraph)
        if "](" not in filled:
            loose += FIGURE.findall(re.sub(r"`[^`]*`", "", filled))
    return loose


def test_pages_say_what_the_data_say():
    figures = FILLER.figures()
    named = set()
    for page in PAGES:
        text = page.read_text()
        assert FILLER.fill(text, figures) == text, f"{page}: run docs/fill_figures.py"
        named |= {name for _, name, _, _ in FILLER.PLACE.findall(text)}
    assert named <= set(figures)
    assert len(named) > 10


def test_every_experiment_has_its_verdict_and_its_table():
    told = FILLER.read_verdicts()
    assert {one["name"] for one in told} == set(all_experiments())
    assert all(len(FILLER.read_table(one["name"])) > 0 for one in told)
    assert all(one["verdict"].startswith(one["outcome"]) for one in told)


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if not set(RECORDS) & {*page.parts} and page.parent != ROOT
    ],
    ids=lambda page: str(page.relative_to(DOCS)),
)
def test_a_figure_in_prose_is_filled_in_or_leads_to_its_table(page):
    loose = loose_figures(page.read_text())
    assert [one for one in loose if (page.name, one) not in WORKED_OUT] == []


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("It was best in 57 of 75 settings.", ["57 of 75"]),
        ("It was best in 57 of 75 settings ([table](accuracy.md)).", []),
        ("In <!-- figure a.b -->57 of 75<!-- end --> settings.", []),
        ("It has 1.08 of the error.\n\nSee [table](accuracy.md).", ["1.08 of"]),
        ("It takes .4 times as long.", [".4 times"]),
        ("```\n57 of 75\n```", []),
    ],
)
def test_a_loose_figure_is_seen(text, loose):
    assert loose_figures(text) == loose


def test_a_page_that_names_no_such_figure_is_an_error():
    with pytest.raises(KeyError):
        FILLER.fill("<!-- figure nowhere -->1<!-- end -->", {})
    assert FILLER.fill("<!-- figure a -->1<!-- end -->", {"a": "2"}) == (
        "<!-- figure a -->2<!-- end -->"
    )
