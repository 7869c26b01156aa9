"""The curator's page draws the running total of a table that grows."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.server.keys import CURATOR

from .test_browser import Visit, browser, site  # noqa: F401  fixtures of that file

pytestmark = pytest.mark.browser


def release_weeks(ledger, count):
    """Release some weeks of a series from a ledger of the server."""
    policy = ledger.policy.through(["sex"])
    weeks = bf.Series(ledger, column="received", every="week", totals=True)
    mechanism = bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon="0.5")
    counts = np.full(policy.domain.shape, 3)
    for number in range(1, count + 1):
        weeks.release(f"2026-W{number:02}", mechanism, [counts] * number)
    return weeks


def test_a_series_is_drawn_with_its_band(browser, site):  # noqa: F811
    ledger = site.workspace.explorer("people").ledger
    weeks = release_weeks(ledger, 3)
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        visit.tab("account")
        page.wait_for_selector("#series .plot.drawn .scatterlayer .js-line")
        drawn = page.evaluate(
            """() => document.querySelector("#series .plot").data.map(
                (one) => ({name: one.name, x: [...one.x], y: [...one.y]}))"""
        )
        by_name = {one["name"]: one for one in drawn}
        assert by_name["running total"]["x"] == ["2026-W01", "2026-W02", "2026-W03"]
        total = weeks.total("2026-W03").where().count()
        assert by_name["running total"]["y"][-1] == pytest.approx(float(total))
        low, high = by_name["low"]["y"][-1], by_name["high"]["y"][-1]
        assert low <= float(total) <= high
        visit.see("#series", "noise only")
        visit.see("#charges", "2026-W03 of a series")
        visit.picture("series")
