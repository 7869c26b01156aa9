"""What pages offer beyond a plain question, and that everybody can use them."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.server.keys import CURATOR

from .serving import AGES
from .test_browser import SIZES, Visit, browser, expect, site  # noqa: F401  fixtures

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
    visit.listens()
    assert violations(visit.page) == []
    with visit:
        page = visit.page
        visit.priced()
        page.click("#history a")
        visit.drawn("#answer")
        page.click("#all-mechanisms summary")
        page.click("#about summary")
        assert violations(page) == []
    visit = Visit(browser, site, CURATOR, size)
    visit.page.emulate_media(color_scheme=scheme)
    with visit:
        page = visit.page
        visit.drawn("#private")
        page.click("#draw-trade-off")
        expect(page.locator("#draw-trade-off")).to_be_enabled()
        visit.drawn("#trade-off")
        for part in ("policy", "all-tables", "account", "people", "data"):
            visit.tab(part)
            assert violations(page) == []


def test_an_error_and_a_cost_are_turned_into_each_other(browser, site):  # noqa: F811
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        price = visit.priced()
        assert float(page.input_value("#spend")) == pytest.approx(price, rel=1e-2)
        alpha = float(page.input_value("#alpha"))
        page.fill("#spend", str(2 * price))
        assert visit.priced() <= 2 * price * 1.01
        assert float(page.input_value("#alpha")) < alpha
        visit.count("#candidates tr.chosen:has-text('(chosen)')", 1)


def test_an_answer_that_is_overtaken_is_not_drawn(browser, site):  # noqa: F811
    """The first preview is held back until a later one was drawn."""
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        visit.see("#thresholds > div:nth-child(3) h3", "threshold 32")
        page.evaluate(
            """() => {
                const soon = window.fetch;
                window.fetch = (...asked) => soon(...asked).then((answer) =>
                    new Promise((done) => { window.letGo = () => done(answer); }));
                window.atOnce = () => { window.fetch = soon; };
            }"""
        )
        page.fill("#thetas", "3")
        page.click("#preview")
        page.wait_for_function("() => window.letGo !== undefined")
        page.evaluate("window.atOnce()")
        page.fill("#thetas", "7")
        page.click("#preview")
        expect(page.locator("#thresholds h3")).to_have_text(["Private, threshold 7"])
        drawn = page.evaluate(
            """async () => {
                window.letGo();
                await new Promise((done) => setTimeout(done, 50));
                return document.querySelector("#thresholds").innerText;
            }"""
        )
        assert "threshold 7" in drawn
        assert "threshold 3" not in drawn


def test_a_price_that_is_overtaken_does_not_open_the_button(browser, site):  # noqa: F811
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        visit.priced()
        page.evaluate(
            """() => {
                const soon = window.fetch;
                window.fetch = (...asked) => soon(...asked).then((answer) =>
                    new Promise((done) => { window.letGo = () => done(answer); }));
            }"""
        )
        page.fill("#alpha", "150")
        page.wait_for_function("() => window.letGo !== undefined")
        # The price of 150 comes while 0.01 is being written, which is too dear.
        page.fill("#alpha", "0.01")
        opened = page.evaluate(
            """async () => {
                window.letGo();
                await new Promise((done) => setTimeout(done, 50));
                return !document.querySelector("#ask").disabled;
            }"""
        )
        assert not opened


def test_an_answer_has_numbers_a_link_and_files(browser, site, tmp_path):  # noqa: F811
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        page.fill("#width", "16")
        visit.priced()
        visit.asked()
        visit.count("#numbers tbody tr", 4)
        heads = page.locator("#numbers th")
        expect(heads).to_have_text(["age", "records", "low", "high"])
        with page.expect_download() as saved:
            page.click("#save-csv")
        saved.value.save_as(tmp_path / "answer.csv")
        kept = (tmp_path / "answer.csv").read_text().splitlines()
        assert kept[0].startswith("age,records,low,high,raw estimate,age from,age to,")
        assert kept[0].endswith(",epsilon,alpha,confidence,as of,question")
        assert saved.value.suggested_filename.startswith("people_histogram_of_age")
        assert kept[1].startswith("0 to 16,")
        with page.expect_download() as saved:
            page.click("#save-png")
        saved.value.save_as(tmp_path / "answer.png")
        assert (tmp_path / "answer.png").read_bytes().startswith(b"\x89PNG")
        visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.click("#copy-python")
        visit.see("#notice", "copied")
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
        visit.drawn("#answer")
        visit.see("#answer-title", title)
        visit.see("#answer-words", "Answered before")
        visit.told()


def test_the_history_is_searched(browser, site):  # noqa: F811
    with site.client("ann") as ann:
        for kind, width in (("histogram", 4), ("cumulative", 4), ("histogram", 1)):
            question = {**AGES, "kind": kind, "width": width}
            ann.post("/api/ask", json={"question": question}).raise_for_status()
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        visit.priced()
        # A third answer is not compared, and the page says why.
        for at in range(3):
            page.locator("#history tbody input").nth(at).click()
        visit.see("#notice", "two answers are compared at a time")
        expect(page.locator("#history tbody input").nth(2)).not_to_be_checked()
        visit.count("#compared tbody", 2)
        page.fill("#history-search", "cumulative age")
        visit.count("#history tbody tr:visible", 1)
        page.fill("#history-search", "")
        visit.count("#history tbody tr:visible", 3)


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
        visit.priced()
        visit.asked()
        visit.see("#answer-title", "sex = f, pay from 1000 to the end")
        for at, head in enumerate(["age", "sex", "records"]):
            expect(page.locator("#numbers th").nth(at)).to_have_text(head)


def test_a_budget_buys_an_adaptive_mechanism_and_a_certificate(browser, site):  # noqa: F811
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        visit.priced()
        page.fill("#width", "1")
        page.fill("#spend", "0.5")
        page.select_option("#mechanism", "dawa")
        visit.priced()
        visit.see("#why", "No error is promised")
        visit.asked()
        visit.see("#answer-words", "noise only")
        visit.see("#numbers", "noise only: low")
        page.fill("#certify-cost", "0.5")
        page.click("#certify")
        page.click("#confirm-yes")
        visit.see("#certificate", "of the true counts")
    spent = float(site.workspace.explorer("people").ledger.spent)
    assert spent == pytest.approx(1.0)


def test_a_curator_closes_raises_and_deletes(browser, site):  # noqa: F811
    with site.client("ann") as ann:
        ann.post("/api/ask", json={"question": AGES}).raise_for_status()
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        visit.drawn("#private")
        visit.count("#steps .done", 5)
        visit.tab("account")
        page.fill("#raised", "7")
        page.fill("#raise-why", "a second wave")
        page.click("text=Raise the budget")
        page.click("#confirm-yes")
        visit.see("#budget", "a second wave")
        page.click("#close-table")
        page.click("#confirm-yes")
        visit.see("#budget", "Closed")
        page.click("#delete-table")
        page.click("#confirm button[value=no]")
        assert site.workspace.tables == ["people"]
        page.click("#delete-table")
        with page.expect_navigation():
            page.click("#confirm-yes")
        visit.listens()
    assert site.workspace.tables == []


def test_many_analysts_keep_the_page_short(browser, site):  # noqa: F811
    for at in range(60):
        site.workspace.keys.make("analyst", f"analyst {at:02}")
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        visit.drawn("#private")
        visit.tab("people")
        visit.count("#analysts tbody tr:visible", 12)
        page.fill("#analyst-search", "analyst 5")
        visit.count("#analysts tbody tr:visible", 10)


def test_what_a_curator_sees_is_about_what_the_form_says(browser, site):  # noqa: F811
    rows = "".join(f"{at},{at % 40}\n" for at in range(200))
    site.workspace.add_csv("visits", f"patient,years\n{rows}".encode())
    years = {"name": "years", "cells": {"start": 0, "stop": 64, "width": 1}}
    whose = {"population": "patients", "person": "patient", "at_most": 1}
    visits = {"name": "visits", "attributes": [years], **whose}
    site.workspace.add_table(visits, epsilon=1)
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        visit.see("#truth-title", "histogram of age, by 2 cells")
        page.select_option("#policy-kind", "threshold")
        page.fill("#theta", "9")
        page.click("#draw-trade-off")
        expect(page.locator("#draw-trade-off")).to_be_enabled()
        expect(page.locator("#trade-off-table")).to_be_visible()
        # Another question: the curve goes, and the policy that was chosen stays.
        page.select_option("#kind", "cumulative")
        expect(page.locator("#trade-off-table")).to_be_hidden()
        visit.count("#trade-off .trace", 0)
        visit.see("#graph-words", "at most 9.")
        visit.value("#policy-kind", "threshold")
        page.select_option("#kind", "histogram2d")
        page.select_option("#second", "pay")
        visit.see("#bins-words", "pay from 0 to 4000; 3 bins.")
        page.select_option("#kind", "histogram")
        visit.tab("account")
        expect(page.locator("#clone-form")).to_be_visible()
        # Another table: its own answers, which nobody has to ask for.
        page.select_option("#table", "visits")
        visit.see("#truth-title", "histogram of years")
        expect(page.locator("#clone-form")).to_be_hidden()
        expect(page.locator("#delete-table")).to_be_hidden()
