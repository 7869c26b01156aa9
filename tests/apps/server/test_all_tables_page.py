"""The map of accurate tables in a real browser."""

from __future__ import annotations

import json

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
        command = "--tables 2 --choose plan --records 400 --epsilon 1"
        visit.see("#all-tables-command", command)
        with page.expect_download() as saved:
            page.click("#all-tables-save")
        assert saved.value.suggested_filename == "people.json"
        described = json.loads(saved.value.path().read_text())
        assert [one["name"] for one in described["attributes"]] == ["age", "sex", "pay"]
        visit.see("#all-tables-list thead", "mean count")
        assert violations(page) == []
        page.uncheck("#all-tables-columns input[value=pay]")
        page.fill("#all-tables-records", "")
        page.click("#all-tables-form button")
        visit.see("#all-tables-words", "3 tables")
        assert "mean counts" not in visit.text("#all-tables-words")
        assert "mean count" not in visit.text("#all-tables-list thead")
        page.select_option("#all-tables-choose", "data")
        page.click("#all-tables-form button")
        visit.see("#all-tables-command", "--choose data --epsilon 1")
        visit.see("#all-tables-words", "The data choose, privately")
        visit.picture("all-tables")


def test_numbers_lose_no_digit_and_intervals_no_width(browser, site):  # noqa: F811
    with Visit(browser, site, CURATOR) as visit:
        shown = visit.page.evaluate(
            """import("/static/api.js").then((texts) => [
                texts.number(16384), texts.number(1234.56), texts.number(0.123456),
                texts.intervalWords(1234566, 1234572),
                texts.intervalWords(44999.96, 55000.04),
                texts.intervalWords(0.12341, 0.56789, "and"), texts.endOf(0.3, 1, true),
            ])"""
        )
        assert shown == [
            "16,384",
            "1,235",
            "0.1235",
            "1,234,566 to 1,234,572",
            "44,999 to 55,001",
            "0.1234 and 0.5679",
            "0.3",
        ]
