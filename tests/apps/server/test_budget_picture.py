"""The curator's page draws what was spent, by whom, against the budget."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.server.keys import CURATOR

from .serving import AGES, TOTALS
from .test_browser import Visit, browser, expect, site  # noqa: F401  fixtures of that file

pytestmark = pytest.mark.browser


def traces(page):
    return page.evaluate(
        """() => document.getElementById("budget-plot").data.map(
            (one) => ({name: one.name, x: [...one.x], y: [...one.y]}))"""
    )


def test_an_untouched_budget_has_no_picture(browser, site):  # noqa: F811
    with Visit(browser, site, CURATOR) as visit:
        # The last of what the page asks for by itself.
        visit.drawn("#private")
        visit.count("#budget-plot.drawn", 0)


def test_every_charge_is_a_step_and_every_analyst_a_line(browser, site):  # noqa: F811
    site.workspace.explorer("people").ledger.allot("bob", 2)
    prices = {}
    # The same question twice would be answered once, and charged once.
    for name, question in (("ann", AGES), ("bob", TOTALS)):
        with site.client(name) as analyst:
            analyst.post("/api/ask", json={"question": question}).raise_for_status()
            (row,) = analyst.get("/api/history", params={"table": "people"}).json()
            prices[name] = row["epsilon"]
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        visit.tab("account")
        page.wait_for_selector("#budget-plot.drawn .scatterlayer .js-line")
        drawn = {one["name"]: one for one in traces(page)}
        assert set(drawn) == {"spent", "ann", "bob", "budget"}
        total = prices["ann"] + prices["bob"]
        assert drawn["spent"]["y"] == pytest.approx([0, prices["ann"], total, total])
        assert drawn["spent"]["x"] == [0, 1, 2, 3]
        assert drawn["bob"]["y"] == pytest.approx([0, prices["bob"], prices["bob"]])
        budget = float(site.workspace.explorer("people").ledger.epsilon)
        assert set(drawn["budget"]["y"]) == {budget}
        expect(page.locator("#budget-plot .ytitle")).to_have_text("epsilon spent")
        visit.picture("budget")
