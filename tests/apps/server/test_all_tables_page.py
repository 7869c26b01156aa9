"""The map of accurate tables in a real browser."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.server.keys import CURATOR

from .test_browser import SIZES, Visit, browser, site  # noqa: F401  fixtures
from .test_pages import violations

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("size", SIZES)
def test_a_curator_sees_which_tables_are_accurate(browser, site, size):  # noqa: F811
    with Visit(browser, site, CURATOR, size) as visit:
        page = visit.page
        visit.tab("all-tables")
        page.wait_for_selector("#all-tables-columns input")
        page.fill("#all-tables-records", "400")
        page.click("#all-tables-form button")
        page.wait_for_selector("#all-tables-map.drawn .heatmaplayer image")
        visit.count("#all-tables-list tbody tr", 6)
        visit.see("#all-tables-words", "6 tables for epsilon = 1 in all.")
        visit.see("#all-tables-words", "below their mean counts")
        command = "blowfish release --tables 2 --choose plan --records 400"
        visit.see("#all-tables-words", command)
        assert violations(page) == []
        page.uncheck("#all-tables-columns input[value=pay]")
        page.fill("#all-tables-records", "")
        page.click("#all-tables-form button")
        visit.see("#all-tables-words", "3 tables")
        assert "mean counts" not in visit.text("#all-tables-words")
        page.select_option("#all-tables-choose", "data")
        page.click("#all-tables-form button")
        visit.see("#all-tables-words", "--choose data")
        visit.see("#all-tables-words", "The data choose, privately")
        visit.picture("all-tables")
