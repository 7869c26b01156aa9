"""From a file to the first answer in a real browser, with the seconds of each step."""

from __future__ import annotations

import os
import sys
import time

import pytest

from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.apps.server.workspace import Workspace

from .serving import Served, make_app, running
from .test_browser import Visit, browser  # noqa: F401  a fixture of that file

pytestmark = pytest.mark.browser


class Hand:
    """Fills in a page at a person's pace, and says how long each step took."""

    def __init__(self, visit):
        self.visit, self.since = visit, time.monotonic()
        self.pace = float(os.environ.get("BLOWFISH_PACE", "0"))

    def type(self, selector, text):
        """Look for a field, and write into it key by key."""
        time.sleep(self.pace)
        self.visit.page.fill(selector, "")
        self.visit.page.type(selector, text, delay=60 * self.pace)

    def click(self, selector):
        """Look for a button, and press it."""
        time.sleep(self.pace)
        self.visit.page.click(selector)

    def done(self, step):
        """Keep a picture of the page, and print the seconds of this step."""
        took = time.monotonic() - self.since
        sys.stdout.write(f"{step}: {took:.0f} s\n")
        self.visit.picture(step)
        self.since = time.monotonic()


def test_from_a_parquet_file_to_the_first_answer(browser, tmp_path):  # noqa: F811
    """BLOWFISH_ROWS=10000000 BLOWFISH_PACE=2 is the long form; -s prints seconds."""
    import duckdb

    rows = int(os.environ.get("BLOWFISH_ROWS", "10000"))
    file = tmp_path / "salaries.parquet"
    duckdb.sql(
        f"SELECT 16 + i % 64 AS age, ['care', 'sales'][1 + i % 2] AS department "
        f"FROM range({rows}) AS t(i)"
    ).write_parquet(str(file))
    work = Workspace(tmp_path / "state", database=file)
    secrets = {CURATOR: work.keys.make("curator", CURATOR)}
    with running(make_app(work)) as url:
        site = Served(url, work, secrets)
        with Visit(browser, site, CURATOR) as visit:
            page, hand = visit.page, Hand(visit)
            hand.done("1 logged in")
            visit.count("#columns tr:has-text('department')", 1)
            hand.type("[aria-label='start of age']", "16")
            hand.type("[aria-label='end of age']", "80")
            page.select_option("[aria-label='missing values of age']", "end")
            hand.type("[aria-label='levels of department']", "care, sales")
            hand.type("#snapshot", "November")
            hand.type("#description-epsilon", "2")
            with page.expect_navigation():
                hand.click("text=Add the table")
            visit.listens()
            visit.tab("policy")
            visit.drawn("#private")
            hand.done("2 described")
            page.select_option("#policy-kind", "threshold")
            page.fill("#theta", "5")
            hand.click("#set-policy")
            visit.see("#notice", "policy is set")
            visit.see("#budget", "is frozen")
            hand.done("3 policy")
            visit.tab("people")
            hand.type("#analyst-name", "ann")
            hand.click("text=Add, or change the allotment")
            visit.see("#new-secret", "Secret of ann")
            secrets["ann"] = visit.text("#new-secret").split()[-1]
            hand.done("4 invited")
        with Visit(browser, site, "ann") as visit:
            hand = Hand(visit)
            hand.type("#alpha", "500")
            visit.priced()
            # What is typed on the way, 5 and 50, may be refused where it is priced.
            visit.problems.clear()
            hand.done("5 priced")
            visit.asked()
            hand.done("6 answered")
            visit.see("#answer-words", "within 500")
    assert work.explorer("salaries").ledger.spent > 0
    work.close()
