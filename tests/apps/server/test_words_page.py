"""Words that nobody listed, in a real browser: described, priced, listed."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.server.keys import CURATOR

from .test_browser import SIZES, Visit, browser, playwright, site  # noqa: F401  fixtures
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
        page.wait_for_selector("#private.drawn .main-svg")
        # A table without words is not asked for them.
        assert page.is_disabled("#kind option[value=frequent]")
        page.fill("#data-name", "searches")
        page.set_input_files("#data-file", file)
        page.click("#data-form button")
        page.wait_for_selector("#columns tr:has-text('word')")
        page.select_option("[aria-label='kind of word']", "words")
        assert not page.is_visible("[aria-label='levels of word']")
        page.fill("[aria-label='symbols of word']", "z-a")
        page.click("text=Add the table")
        marked = page.locator("[aria-label='symbols of word'][aria-invalid=true]")
        playwright.expect(marked).to_have_count(1)
        assert "goes forward" in marked.get_attribute("title")
        visit.problems.clear()
        page.fill("[aria-label='symbols of word']", "a-z")
        page.fill("[aria-label='longest word of word']", "12")
        with page.expect_navigation():
            page.click("text=Add the table")
        page.wait_for_selector("#private.drawn .main-svg")
        page.select_option("#table", "searches")
        # The only question there is, and its threshold in place of a preview.
        playwright.expect(page.locator("#kind")).to_have_value("frequent")
        page.wait_for_selector("#preview-error:has-text('at length 5')")
        page.wait_for_selector("#graph-words:has-text('Any two words')")
        assert violations(page) == []
        page.fill("#analyst-name", "ann")
        page.fill("#analyst-epsilon", "0.9")
        page.click("text=Add, or change the allotment")
        page.wait_for_selector("#analysts tr:has-text('ann'):has-text('0.9')")
    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        visit.priced()
        page.select_option("#table", "searches")
        page.wait_for_selector("#why:has-text('at length 5')")
        page.fill("#spend", "0.5")
        page.fill("#false-values", "0.000001")
        page.wait_for_selector("#why:has-text('e-07 values')")
        assert visit.priced() == 0.5
        visit.asked()
        page.wait_for_selector("#numbers tbody tr:has-text('weather')")
        shown = page.locator("#numbers tbody td:nth-child(1)").all_text_contents()
        assert shown == ["news", "weather"]
        assert "may be missing" in visit.text("#answer-words")
        assert violations(page) == []
    explorer = site.workspace.explorer("searches")
    assert explorer.table.attribute("word").words.longest == 12
    assert float(explorer.ledger.spent) == 0.5
