"""What hospitals ask, in the analyst's page: means, SQL, missing values, drill-down."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="pip install 'blowfish_fast[browser]'")

from blowfish_fast.apps.server.keys import CURATOR

from .serving import AGES
from .test_browser import Visit, browser, site  # noqa: F401  fixtures
from .test_lost_records import add_visits

pytestmark = pytest.mark.browser


def test_means_by_group_are_asked_and_shown(browser, site):  # noqa: F811
    from playwright.sync_api import expect

    with Visit(browser, site, "ann") as visit:
        page = visit.page
        page.select_option("#kind", "mean")
        page.select_option("#group", "sex")
        page.fill("#at-least", "80")
        page.fill("#alpha", "6")
        visit.priced()
        visit.asked()
        visit.count("#numbers tbody tr", 2)
        expect(page.locator("#numbers th").nth(1)).to_have_text("mean of age")
        visit.see("#answer-title", "mean of age by sex")
        visit.see("#answer-words", "groups of at least 80 records")


def test_sql_is_read_priced_and_asked(browser, site):  # noqa: F811
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        page.click("#sql-box summary")
        page.fill(
            "#sql", "SELECT sex, COUNT(*) FROM people WHERE age < 32 GROUP BY sex"
        )
        page.click("#read-sql")
        visit.see("#sql-words", "histogram of sex, age from the start to 32")
        visit.priced()
        visit.asked()
        visit.see("#answer-title", "histogram of sex, age from the start to 32")
        page.fill("#sql", "SELECT MAX(age) FROM people")
        page.click("#read-sql")
        visit.see("#notice", "quantiles")
        # What has no question is refused, and the page says why.
        assert visit.problems
        visit.problems.clear()


def test_missing_values_are_a_row_and_a_bar_is_drilled_into(browser, site):  # noqa: F811
    from playwright.sync_api import expect

    with Visit(browser, site, "ann") as visit:
        page = visit.page
        page.select_option("#attribute", "sex")
        page.check("#missing")
        visit.priced()
        visit.asked()
        visit.count("#numbers tbody tr", 3)
        expect(page.locator("#numbers tbody tr").last).to_contain_text("(missing)")
        page.locator("#answer .bars .point path").first.click(force=True)
        visit.see("#notice", "only records where sex is f")
        expect(page.locator("#filter")).to_have_value("sex")
        visit.priced()


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_what_is_left_out_of_persons_is_seen_and_told(browser, site, size):  # noqa: F811
    from playwright.sync_api import expect

    add_visits(site)
    with Visit(browser, site, CURATOR, size) as visit:
        page = visit.page
        page.select_option("#table", "visits")
        visit.see("#truth-title", "age")
        visit.see("#truth", "at most 3 of a person")
        visit.picture("truth-beside-truncated")
        page.click("text=Budget and charges")
        visit.see("#lost-words", "Of 440 records of 201 persons")
        expect(page.locator("#lost tr.chosen")).to_contain_text("3 (in force)")
        page.fill("#lost-up-to", "20")
        page.fill("#lost-cost", "1")
        page.click("text=Measure once")
        page.click("#confirm button[value=yes]")
        visit.see("#lost-told", "Analysts read: At most 3 records of a person")
        visit.picture("lost-records")
    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        page.select_option("#table", "visits")
        page.click("#about summary")
        visit.see("#lost", "At most 3 records of a person are counted; of those up to")
        visit.picture("lost-records")


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_saved_questions_stand_on_a_board_for_free(browser, site, size):  # noqa: F811
    from playwright.sync_api import expect

    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        visit.priced()
        visit.asked()
        page.fill("#save-name", "ages of all")
        page.click("#save-form button")
        visit.count("#saved li", 1)
        dear = {**AGES, "kind": "cumulative", "cost": {"alpha": 30, "beta": 0.05}}
        explorer = site.workspace.explorer("people")
        site.workspace.save_question("analyst ann", "totals", dear)
        spent = explorer.ledger.spent
        page.reload()
        visit.listens()
        visit.count("#saved li", 2)
        page.click("#show-board")
        expect(page.locator("#board .plot.drawn")).to_have_count(1)
        visit.see("#board", "Not answered yet: it would cost")
        assert explorer.ledger.spent == spent
        visit.picture("board")
        page.click("#saved a >> text=totals")
        visit.see("#sql-words", "Opened: ")
        expect(page.locator("#alpha")).to_have_value("30")
        page.click("#saved button >> nth=0")
        visit.count("#saved li", 1)
