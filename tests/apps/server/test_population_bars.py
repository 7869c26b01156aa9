"""A sample is described, asked and shown as the population, in a real browser."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.server.keys import CURATOR

from .test_browser import SIZES, Visit, browser, expect, site  # noqa: F401  fixtures
from .test_pages import violations

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("size", SIZES)
def test_a_sample_is_described_and_its_population_shown_on_demand(
    browser,  # noqa: F811
    site,  # noqa: F811
    tmp_path,
    size,
):
    file = tmp_path / "survey.csv"
    file.write_text("work\n" + 700 * "paid\n" + 300 * "idle\n")
    with Visit(browser, site, CURATOR, size) as visit:
        page = visit.page
        visit.drawn("#private")
        visit.tab("data")
        page.fill("#data-name", "survey")
        page.set_input_files("#data-file", file)
        page.click("#data-form button")
        visit.count("#columns tr:has-text('work')", 1)
        page.fill("[aria-label='levels of work']", "paid, idle")
        expect(page.locator("#drawn-of")).to_be_disabled()
        page.select_option("#drawn", "simple")
        page.fill("#drawn-of", "48842")
        page.fill("#description-epsilon", "5")
        with page.expect_navigation():
            page.click("text=Add the table")
        visit.listens()
    site.workspace.explorer("survey").ledger.allot("ann", 4)
    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        page.select_option("#table", "people")
        visit.priced()
        visit.asked()
        # Nobody said how these people were drawn.
        expect(page.locator("#population-line")).to_be_hidden()
        page.select_option("#table", "survey")
        page.fill("#alpha", "20")
        visit.priced()
        visit.asked()
        visit.see("#sample-words", "a simple random sample of 48,842 people")
        # Never unasked: the answer is about these records.
        expect(page.locator("#of-population")).not_to_be_checked()
        visit.see("#numbers th:nth-child(2)", "records")
        page.check("#of-population")
        visit.see("#numbers th:nth-child(2)", "people")
        visit.see("#numbers th:nth-child(3)", "population: low")
        visit.see("#answer-words", "over the draw of the sample and the noise")
        visit.see("#answer-words", "Nothing here can check that")
        visit.see("#answer-words", "from privacy noise")
        visit.count("#answer .errorbar", 2)
        width = page.locator("#answer .errorbar path").first
        assert "3px" in width.get_attribute("style")
        assert violations(page) == []
        visit.picture("population-bars")
        page.uncheck("#of-population")
        visit.see("#numbers th:nth-child(2)", "records")


def test_weights_are_described_and_their_classes_added_up(
    browser,  # noqa: F811
    site,  # noqa: F811
    tmp_path,
):
    file = tmp_path / "survey.csv"
    file.write_text("region\n" + 700 * "north\n" + 300 * "south\n")
    with Visit(browser, site, CURATOR, "desk") as visit:
        page = visit.page
        visit.drawn("#private")
        visit.tab("data")
        page.fill("#data-name", "survey")
        page.set_input_files("#data-file", file)
        page.click("#data-form button")
        visit.count("#columns tr:has-text('region')", 1)
        page.fill("[aria-label='levels of region']", "north, south")
        expect(page.locator("#drawn-classes")).to_be_hidden()
        page.select_option("#drawn", "weighted")
        expect(page.locator("#drawn-of")).to_be_disabled()
        page.select_option("#drawn-column", "region")
        page.fill("#drawn-classes", "10, 225")
        page.fill("#description-epsilon", "5")
        with page.expect_navigation():
            page.click("text=Add the table")
        visit.listens()
    stated = site.workspace.explorer("survey").table.sample
    assert (stated.column, stated.weights) == ("region", [10.0, 225.0])
    site.workspace.explorer("survey").ledger.allot("ann", 4)
    with Visit(browser, site, "ann", "desk") as visit:
        page = visit.page
        page.select_option("#table", "survey")
        page.fill("#alpha", "20")
        visit.priced()
        visit.asked()
        visit.see("#sample-words", "with the chance 1 / weight, in 2 classes")
        expect(page.locator("#together-label")).to_be_hidden()
        page.check("#of-population")
        visit.see("#numbers th:nth-child(2)", "people")
        visit.count("#numbers tbody tr", 2)
        visit.see("#together-label", "Added up over region")
        page.check("#together")
        visit.count("#numbers tbody tr", 1)
        visit.see("#numbers tbody", "all")
        added = "In the population: histogram of region, added up over region"
        expect(page.locator("#answer-title")).to_have_text(added)
        assert violations(page) == []
        page.uncheck("#together")
        visit.count("#numbers tbody tr", 2)
        page.uncheck("#of-population")
        visit.see("#numbers th:nth-child(2)", "records")
