"""What pages offer beyond a plain question, and that everybody can use them."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.server.keys import CURATOR

from .serving import AGES
from .test_browser import SIZES, Visit, browser, lines, playwright, site  # noqa: F401  fixtures

pytestmark = pytest.mark.browser


def violations(page):
    """Return what axe finds, as rule and place; where a rule held is not listed."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"resultTypes": ["violations"]}
    found = axe.run(page, options=options).response["violations"]
    return [(one["id"], one["nodes"][0]["target"]) for one in found]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(browser, site, size, scheme):  # noqa: F811
    with site.client("ann") as ann:
        ann.post("/api/ask", json={"question": AGES}).raise_for_status()
    visit = Visit(browser, site, "ann", size)
    visit.page.emulate_media(color_scheme=scheme)
    visit.page.goto(site.url)
    assert violations(visit.page) == []
    with visit:
        page = visit.page
        visit.priced()
        page.click("#history a")
        page.wait_for_selector("#answer.drawn .main-svg")
        page.click("#all-mechanisms summary")
        page.click("#about summary")
        assert violations(page) == []
    visit = Visit(browser, site, CURATOR, size)
    visit.page.emulate_media(color_scheme=scheme)
    with visit:
        page = visit.page
        page.wait_for_selector("#private.drawn .main-svg")
        page.click("#draw-trade-off")
        page.wait_for_selector("#draw-trade-off:not([disabled])")
        page.wait_for_selector("#columns td")
        assert violations(page) == []


def test_an_error_and_a_cost_are_turned_into_each_other(browser, site):  # noqa: F811
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        price = visit.priced()
        assert float(page.input_value("#spend")) == pytest.approx(price, rel=1e-2)
        alpha = float(page.input_value("#alpha"))
        page.fill("#spend", str(2 * price))
        page.wait_for_timeout(600)
        visit.priced()
        assert float(page.input_value("#alpha")) < alpha
        assert visit.priced() <= 2 * price * 1.01
        assert lines_marked(page) == 1


def lines_marked(page):
    return page.locator("#candidates tr.chosen:has-text('(chosen)')").count()


def test_an_answer_has_numbers_a_link_and_files(browser, site, tmp_path):  # noqa: F811
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        page.fill("#width", "16")
        page.wait_for_timeout(500)
        visit.priced()
        visit.asked()
        assert page.locator("#numbers tbody tr").count() == 4
        heads = page.locator("#numbers th").all_text_contents()
        assert heads == ["age", "records", "low", "high"]
        with page.expect_download() as saved:
            page.click("#save-csv")
        saved.value.save_as(tmp_path / "answer.csv")
        kept = (tmp_path / "answer.csv").read_text().splitlines()
        assert kept[0] == "age,records,low,high"
        assert kept[1].startswith("0 to 16,")
        with page.expect_download() as saved:
            page.click("#save-png")
        saved.value.save_as(tmp_path / "answer.png")
        assert (tmp_path / "answer.png").read_bytes().startswith(b"\x89PNG")
        visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.click("#copy-python")
        page.wait_for_selector("#notice:has-text('copied')")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert "bf.connect(" in copied
        found = {}
        exec(copied.replace("your secret", site.secrets["ann"]), found)
        found["client"].close()
        assert found["question"]["attribute"] == "age"
        shown = page.locator("#numbers td:nth-child(2)").all_text_contents()
        values = [float(one.replace(",", "")) for one in shown]
        assert found["answer"].values.tolist() == pytest.approx(values, abs=1)
        title = visit.text("#answer-title")
        page.reload()
        page.wait_for_selector("#answer.drawn .main-svg")
        assert visit.text("#answer-title") == title
        assert "Answered before" in visit.text("#answer-words")


def test_the_history_is_searched(browser, site):  # noqa: F811
    with site.client("ann") as ann:
        for kind in ("histogram", "cumulative"):
            question = {**AGES, "kind": kind}
            ann.post("/api/ask", json={"question": question}).raise_for_status()
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        visit.priced()
        page.fill("#history-search", "cumulative age")
        assert page.locator("#history tbody tr:visible").count() == 1
        page.fill("#history-search", "")
        assert page.locator("#history tbody tr:visible").count() == 2


def test_several_filters_and_several_attributes(browser, site):  # noqa: F811
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        visit.priced()
        page.fill("#alpha", "300")
        page.select_option("#kind", "marginal")
        page.select_option("#filter", "sex")
        page.click("#add-filter")
        page.select_option("#filter-2", "pay")
        page.fill("#filter-low-2", "1000")
        page.wait_for_timeout(600)
        visit.priced()
        visit.asked()
        title = visit.text("#answer-title")
        assert "sex = f, pay from 1000 to the end" in title
        heads = page.locator("#numbers th").all_text_contents()
        assert heads[:3] == ["age", "sex", "records"]


def test_a_budget_buys_an_adaptive_mechanism_and_a_certificate(browser, site):  # noqa: F811
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        visit.priced()
        page.fill("#width", "1")
        page.fill("#spend", "0.5")
        page.select_option("#mechanism", "dawa")
        page.wait_for_timeout(600)
        visit.priced()
        assert "No error is promised" in visit.text("#why")
        visit.asked()
        assert "noise only" in visit.text("#answer-words")
        assert "noise only: low" in visit.text("#numbers")
        page.fill("#certify-cost", "0.5")
        page.click("#certify")
        page.click("#confirm-yes")
        page.wait_for_selector("#certificate:has-text('of the true counts')")
    spent = float(site.workspace.explorer("people").ledger.spent)
    assert spent == pytest.approx(1.0)


def test_a_curator_closes_raises_and_deletes(browser, site):  # noqa: F811
    with site.client("ann") as ann:
        ann.post("/api/ask", json={"question": AGES}).raise_for_status()
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        page.wait_for_selector("#private.drawn .main-svg")
        assert page.locator("#steps .done").count() == 5
        page.fill("#raised", "7")
        page.fill("#raise-why", "a second wave")
        page.click("text=Raise the budget")
        page.click("#confirm-yes")
        page.wait_for_selector("#budget:has-text('a second wave')")
        page.click("#close-table")
        page.click("#confirm-yes")
        page.wait_for_selector("#budget:has-text('Closed')")
        page.click("#delete-table")
        page.click("#confirm button[value=no]")
        assert site.workspace.tables == ["people"]
        page.click("#delete-table")
        with page.expect_navigation():
            page.click("#confirm-yes")
    assert site.workspace.tables == []


def test_many_analysts_keep_the_page_short(browser, site):  # noqa: F811
    for at in range(60):
        site.workspace.keys.make("analyst", f"analyst {at:02}")
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        page.wait_for_selector("#private.drawn .main-svg")
        page.wait_for_selector("#analysts tbody tr")
        assert page.locator("#analysts tbody tr:visible").count() == 12
        page.fill("#analyst-search", "analyst 5")
        assert page.locator("#analysts tbody tr:visible").count() == 10


def test_what_a_curator_sees_is_about_what_the_form_says(browser, site):  # noqa: F811
    rows = "".join(f"{at},{at % 40}\n" for at in range(200))
    site.workspace.add_csv("visits", f"patient,years\n{rows}".encode())
    years = {"name": "years", "cells": {"start": 0, "stop": 64, "width": 1}}
    whose = {"population": "patients", "person": "patient", "at_most": 1}
    visits = {"name": "visits", "attributes": [years], **whose}
    site.workspace.add_table(visits, epsilon=1)
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        page.wait_for_selector("#truth-title:has-text('histogram of age, by 2 cells')")
        page.select_option("#policy-kind", "threshold")
        page.fill("#theta", "9")
        page.click("#draw-trade-off")
        page.wait_for_selector("#draw-trade-off:not([disabled])")
        assert page.is_visible("#trade-off-table")
        # Another question: the curve goes, and the policy that was chosen stays.
        page.select_option("#kind", "cumulative")
        assert page.is_hidden("#trade-off-table")
        assert lines(page, "#trade-off .trace") == 0
        page.wait_for_selector("#graph-words:has-text('at most 9.')")
        assert page.input_value("#policy-kind") == "threshold"
        page.select_option("#kind", "histogram2d")
        page.select_option("#second", "pay")
        assert "pay from 0 to 4000; 3 bins." in visit.text("#bins-words")
        page.select_option("#kind", "histogram")
        assert page.is_visible("#clone-form")
        # Another table: its own answers, which nobody has to ask for.
        page.select_option("#table", "visits")
        page.wait_for_selector("#truth-title:has-text('histogram of years')")
        assert page.is_hidden("#clone-form")
        assert page.is_hidden("#delete-table")
