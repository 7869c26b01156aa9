"""One page about a release: what it tells, and that it loads nothing."""

from __future__ import annotations

import html
import html.parser
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.explanations import explain_attack
from blowfish_fast.apps.cli.files import outputs
from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import InputError

RUN = CliRunner()


class Page(html.parser.HTMLParser):
    """The headings, texts and addresses of a page."""

    def __init__(self, text):
        super().__init__()
        self.open, self.headings, self.addresses = [], [], []
        self.alone = {"meta", "br", "img", "link", "use", "path", "rect", "stop"}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.alone:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.alone:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ages = bf.Domain.from_edges(range(0, 81, 10), name="age <b>")
    mech = bf.Laplace(bf.policies.Full(ages), bf.workloads.Identity(ages), epsilon=1)
    mech.release(np.arange(8) * 9).save("ages")
    people = bf.Domain.product(ages, bf.Domain.from_levels(["f", "m"], name="sex"))
    tables = bf.workloads.Tables(people, ways=2)
    together = bf.Contingency(bf.policies.Full(people), tables, epsilon=1)
    together.release(bf.Histogram(people, np.full((8, 2), 20)), rng=1).save("tables")
    return tmp_path


def told(*words):
    done = RUN.invoke(application, ["report", *words, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def test_a_page_tells_promise_numbers_accuracy_and_source(folder):
    assert told("ages", "--out", "ages.html", "--round") == {"report": "ages.html"}
    text = (folder / "ages.html").read_text()
    page = Page(text)
    assert page.open == []
    assert page.headings[0] == "Counts by age <b>"
    assert "<b>" not in text.replace("&lt;b&gt;", "")
    assert {
        "What stays secret",
        "What an attacker can learn",
        "How exact it is",
        "What is not promised",
        "The numbers",
        "How to cite it",
    } <= set(page.headings)
    assert '<svg role="img" aria-label="Counts by age &lt;b&gt;, drawn"' in text
    assert ">count</th>" in text
    assert "<script" not in text
    assert all(one.startswith("#") for one in page.addresses)


def test_a_seeded_release_of_many_tables_is_marked(folder):
    told("tables", "--out", "tables.html")
    text = (folder / "tables.html").read_text()
    assert "protects nobody" in text
    assert {"How accurate the tables are", "The tables"} <= set(Page(text).headings)


def test_the_first_tables_stand_on_the_page_with_their_first_cells(folder, monkeypatch):
    monkeypatch.setattr(outputs, "FIRST_TABLES", 2)
    monkeypatch.setattr(outputs, "FIRST_ROWS", 5)
    told("tables", "--out", "tables.html", "--round")
    text = (folder / "tables.html").read_text()
    assert Page(text).open == []
    saved = bf.TablesRelease.load("tables")
    for names in saved.asked[:2]:
        assert f"<h3>{html.escape(' x '.join(names))}</h3>" in text
    assert "<h3>age &lt;b&gt; x sex</h3>" not in text
    assert text.count(">fitted</th>") == text.count(">whole</th>") == 2
    assert "And 3 more cells" in text
    assert "And 1 more table." in text
    first = saved.table(*saved.asked[0]).to_table(0.95)
    assert f"{float(first['low'][0]):,.1f}"[:4] in text


@pytest.mark.parametrize(
    ("out", "reason"), [("page.pdf", "written as .html"), ("ages.html", "exists")]
)
def test_what_cannot_be_written_is_refused(folder, out, reason):
    (folder / "ages.html").write_text("")
    done = RUN.invoke(application, ["report", "ages", "--out", out])
    assert isinstance(done.exception, InputError)
    assert reason in str(done.exception)


@pytest.mark.parametrize(
    ("policy", "epsilon", "wanted"),
    [
        ("AddRemove", 1, ["2.72, and of at most 20.1", "at most 23 are there"]),
        ("Full", 1, ["one record changes its value to any other", "23 have it."]),
        ("Line", "0.5", ["1.65, and of at most 4.49", "rather than a value one step"]),
        ("Full", 40, ["at most 100 have it."]),
    ],
)
def test_the_promise_is_told_in_chances_and_in_people(policy, epsilon, wanted):
    cells = bf.Domain(4)
    under = getattr(bf.policies, policy)(cells)
    budget = bf.Laplace(under, epsilon=epsilon).budget
    told = " ".join(explain_attack(under, budget)[0].sentences)
    for words in wanted:
        assert words in told
    # A factor of e^120 would tell nobody anything.
    assert ("by a factor" in told) == (float(epsilon) < 4)


def test_in_rho_no_single_chance_is_bounded():
    under = bf.policies.AddRemove(bf.Domain(4))
    told = explain_attack(under, bf.Gaussian(under, rho="0.1").budget)[0].sentences
    assert "by a factor" not in " ".join(told)
    assert "may come to think that at most" in told[0]
    assert "but for a probability of 1e-09" in told[0]
