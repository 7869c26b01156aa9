"""Words that nobody listed, in a real browser: described, priced, listed."""

from __future__ import annotations

import re

import pytest

from blowfish_fast.apps.server.keys import CURATOR

from .test_browser import SIZES, Visit, browser, expect, site  # noqa: F401  fixtures
from .test_pages import violations

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("size", SIZES)
def test_words_are_described_and_the_frequent_ones_listed(
    browser,  # noqa: F811
    site,  # noqa: F811
    tmp_path,
    size,
):
    file = tmp_path / "searches.csv"
    file.write_text("word\n" + 900 * "Weather\n" + 700 * "news\n" + 3 * "rare\n")
    with Visit(browser, site, CURATOR, size) as visit:
        page = visit.page
        visit.drawn("#private")
        # A table without words is not asked for them.
        expect(page.locator("#kind option[value=frequent]")).to_be_disabled()
        visit.tab("data")
        page.fill("#data-name", "searches")
        page.set_input_files("#data-file", file)
        page.click("#data-form button")
        visit.count("#columns tr:has-text('word')", 1)
        page.select_option("[aria-label='kind of word']", "words")
        expect(page.locator("[aria-label='levels of word']")).to_be_hidden()
        page.fill("[aria-label='symbols of word']", "z-a")
        page.click("text=Add the table")
        marked = page.locator("[aria-label='symbols of word'][aria-invalid=true]")
        expect(marked).to_have_count(1)
        expect(marked).to_have_attribute("title", re.compile("goes forward"))
        visit.problems.clear()
        page.fill("[aria-label='symbols of word']", "a-z")
        page.fill("[aria-label='longest word of word']", "12")
        with page.expect_navigation():
            page.click("text=Add the table")
        visit.listens()
        visit.tab("policy")
        visit.drawn("#private")
        page.select_option("#table", "searches")
        # The only question there is, and its threshold in place of a preview.
        visit.value("#kind", "frequent")
        visit.see("#preview-error", "at length 5")
        visit.see("#graph-words", "Any two words")
        assert violations(page) == []
        visit.tab("people")
        page.fill("#analyst-name", "ann")
        page.fill("#analyst-epsilon", "0.9")
        page.click("text=Add, or change the allotment")
        visit.count("#analysts tr:has-text('ann'):has-text('0.9')", 1)
    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        visit.priced()
        page.select_option("#table", "searches")
        visit.see("#why", "at length 5")
        page.fill("#spend", "0.5")
        page.fill("#false-values", "0.000001")
        assert visit.priced() == 0.5
        visit.see("#why", "e-07 values")
        visit.asked()
        words = page.locator("#numbers tbody td:nth-child(1)")
        expect(words).to_have_text(["news", "weather"])
        visit.see("#answer-words", "may be missing")
        assert violations(page) == []
    explorer = site.workspace.explorer("searches")
    assert explorer.table.attribute("word").words.longest == 12
    assert float(explorer.ledger.spent) == 0.5
