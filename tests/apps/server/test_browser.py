"""Both roles in a real browser: every control of the pages, on a desk and on a phone.

Nothing may be asked from elsewhere, and the content security policy must not have to
stop anything. Pictures are kept where BLOWFISH_SCREENSHOTS says.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path

import pytest

from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.apps.server.workspace import Workspace

from .serving import Served, make_app, running, serving

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
INSTALL = "pip install 'blowfish_fast[browser]' and apt-get install chromium"
if CHROMIUM is None:
    pytest.skip(f"no chromium: {INSTALL}", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason=INSTALL)

SIZES = {"desk": (1280, 900), "phone": (390, 844)}
PATIENCE = 60_000


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


@pytest.fixture
def site(tmp_path):
    with serving(tmp_path) as found:
        yield found


class Visit:
    """One logged-in page, and everything that it complained about."""

    def __init__(self, browser, site, name, size="desk"):
        width, height = SIZES[size]
        phone = size == "phone"
        self.site, self.name, self.size = site, name, size
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            has_touch=phone,
            is_mobile=phone,
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.problems: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", self._requested)
        self.page.on("response", self._answered)

    def __enter__(self):
        self.page.goto(self.site.url)
        self.picture("login")
        self.page.fill("#secret", self.site.secrets[self.name])
        self.page.click("text=Log in >> visible=true >> nth=-1")
        role = "curator" if self.name == CURATOR else "analyst"
        self.page.wait_for_url(f"**/{role}")
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.picture("end")
            assert self.problems == []
            width = self.page.evaluate("document.documentElement.scrollWidth")
            assert width <= SIZES[self.size][0]
        self.context.close()

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _requested(self, request):
        if not request.url.startswith((self.site.url, "data:", "blob:")):
            self.problems.append(f"asked {request.url}")

    def _answered(self, response):
        if response.status >= 400:
            self.problems.append(f"{response.status} {response.url}")

    def picture(self, what):
        folder = os.environ.get("BLOWFISH_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            path = Path(folder) / f"{self.name}-{self.size}-{what}.png"
            self.page.screenshot(path=path, full_page=True)

    def text(self, selector):
        return self.page.inner_text(selector)

    def priced(self):
        """Wait until the price of the question in the form is known."""
        self.page.wait_for_selector("#ask:not([disabled])")
        found = re.search(r"epsilon ([\d.]+)", self.text("#cost"))
        assert found is not None
        return float(found[1])

    def asked(self):
        """Press Ask, and wait for the history to have one more line."""
        rows = self.page.locator("#history tbody tr")
        before = rows.count()
        self.page.click("#ask")
        rows.nth(before).wait_for()
        self.page.wait_for_selector("#answer.drawn .main-svg")


def lines(page, selector):
    return page.locator(selector).count()


def hidden_at_the_side(page):
    """Return how many tables of words have to be pushed sideways to be read."""
    return page.eval_on_selector_all(
        ".scroll:has(.stacked)",
        "all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length",
    )


@pytest.mark.parametrize("size", SIZES)
def test_an_analyst_asks_and_compares(browser, site, size):
    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        cheap = visit.priced()
        assert "would remain" in visit.text("#cost")
        page.fill("#alpha", "100")
        page.wait_for_selector("#ask[disabled]")
        assert visit.priced() > cheap
        page.fill("#width", "16")
        page.wait_for_selector("#ask[disabled]")
        visit.priced()
        visit.asked()
        assert "within 100" in visit.text("#answer-words")
        assert lines(page, "#answer .bars .point") == 4
        assert lines(page, "#answer .errorbar") == 4
        # The answer is brought into view, and read aloud.
        assert page.evaluate("document.activeElement.id") == "answer-title"
        playwright.expect(page.locator("#answer-title")).to_be_in_viewport()
        visit.picture("histogram")
        page.select_option("#kind", "cumulative")
        page.wait_for_selector("#ask[disabled]")
        visit.priced()
        visit.asked()
        remaining = visit.text("#budget")
        assert "of epsilon 4 remains" in remaining
        left = 4 - float(site.workspace.explorer("people").ledger.spent)
        assert 0 < left < 4
        assert float(remaining.split()[0]) == pytest.approx(left, rel=1e-2)
        shown = page.locator("#remaining").evaluate("bar => bar.value")
        assert shown == pytest.approx(left / 4)
        boxes = page.locator("#history input")
        boxes.nth(0).check()
        boxes.nth(1).check()
        terms = "of age, by 16 cells (±100, beta 0.05)"
        both = f"cumulative {terms} and histogram {terms}"
        page.wait_for_selector(f"#compared:has-text('{both}') .drawn .main-svg")
        assert lines(page, "#compared tbody tr") == 4 + 4
        assert visit.text("#compared").count("4 numbers; the smallest is") == 2
        page.locator("#all-mechanisms summary").click()
        assert "cells" in visit.text("#candidates")
        page.locator("#about summary").click()
        assert hidden_at_the_side(page) == 0
        # Once more the same: it is free.
        page.wait_for_selector("#cost:has-text('epsilon 0;')")


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_what_is_known_already_is_shown_and_read_for_nothing(browser, site, size):
    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        page.fill("#alpha", "60")
        page.wait_for_selector("#cost:has-text('costs')")
        visit.asked()
        spent = page.text_content("#budget")
        page.fill("#alpha", "20")
        # What the question before was told stands there until its price has come.
        page.wait_for_selector("#known:has-text('State that as the largest error')")
        assert "these numbers within" in page.text_content("#known")
        page.fill("#alpha", "61")
        page.wait_for_selector("#cost:has-text('free: earlier answers tell it')")
        visit.asked()
        assert page.text_content("#budget") == spent
        words = page.text_content("#answer-words")
        assert words.startswith("Read from an earlier answer, free")
        assert "however the question was chosen" in words
        page.check("#fixed")
        page.fill("#alpha", "62")
        page.wait_for_selector("#known:has-text('did not lead you')")
        visit.picture("known")


def test_an_analyst_asks_every_kind_of_question(browser, site):
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        visit.priced()
        page.fill("#alpha", "200")
        for kind, fill in (
            ("quantiles", {"#parts": "0.1, 0.9"}),
            ("ranges", {"#stretches": "0 to 16; 16 to 64"}),
            ("histogram2d", {}),
            ("rectangles", {"#stretches": "0 to 16 by 0 to 1000"}),
        ):
            page.select_option("#kind", kind)
            page.fill("#width", "1" if kind in ("ranges", "rectangles") else "16")
            if kind in ("histogram2d", "rectangles"):
                page.select_option("#second", "pay")
                page.fill("#second-width", "1")
            for selector, words in fill.items():
                page.fill(selector, words)
            page.wait_for_timeout(500)
            visit.priced()
            visit.asked()
            visit.picture(kind)
        page.select_option("#kind", "histogram")
        page.select_option("#filter", "sex")
        page.select_option("#filter-value", "m")
        page.wait_for_timeout(500)
        visit.priced()
        visit.asked()
        assert "sex = m" in visit.text("#answer-title")


def test_names_and_levels_are_only_letters_in_pictures(browser, site):
    link = '<a href="https://elsewhere.example/">f</a>'
    sex = {"name": "<b>sex</b>", "column": "sex", "levels": [link, "<18"]}
    marked = {"name": "marked", "source": "others", "attributes": [sex]}
    explorer = site.workspace.add_table(marked, epsilon=5)
    explorer.ledger.allot("ann", 4)
    with Visit(browser, site, "ann") as visit:
        # The first table by name.
        visit.priced()
        visit.asked()
        assert lines(visit.page, "#answer a") == 0
        shown = visit.page.locator("#answer .xaxislayer-above text").all_text_contents()
        assert shown == [link, "<18"]
        titles = visit.page.locator("#answer .xtitle").all_text_contents()
        assert titles == ["<b>sex</b>"]


def test_an_analyst_is_told_what_does_not_fit(browser, site):
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        visit.priced()
        page.fill("#alpha", "0.01")
        page.wait_for_selector("#cost.over")
        assert "only 4 remains" in visit.text("#cost")
        assert page.is_disabled("#ask")
        visit.problems.clear()
        page.fill("#beta", "2")
        page.wait_for_selector("#beta[aria-invalid=true]")
        assert "probability of more" in visit.text("#cost")
        visit.problems.clear()
        page.fill("#beta", "0.05")
        page.select_option("#kind", "ranges")
        page.fill("#stretches", "hello")
        page.wait_for_selector("#cost:has-text('no stretch')")


@pytest.mark.parametrize("size", SIZES)
def test_a_curator_explores_policies(browser, site, size):
    with Visit(browser, site, CURATOR, size) as visit:
        page = visit.page
        page.fill("#width", "2")
        page.fill("#epsilon", "0.2")
        page.fill("#thetas", "1, 5, 20")
        page.click("#preview")
        page.wait_for_selector("#thresholds > div:nth-child(3) .drawn .main-svg")
        assert lines(page, "#truth .bars .point") == 32
        assert lines(page, "#private .errorbar") == 32
        assert lines(page, "#preview-numbers tbody tr") == 32
        assert "threshold 20" in visit.text("#thresholds")
        # Each picture has its error in words, and a table with the truth beside it.
        assert lines(page, "#thresholds > div p:has-text('off by')") == 3
        assert lines(page, "#thresholds > div:nth-child(3) tbody tr") == 32
        assert page.text_content("#thresholds th:last-child >> nth=0") == "true"
        # The policy in force is drawn before any that may be chosen.
        assert page.input_value("#policy-kind") == "full"
        assert "Any two values" in visit.text("#graph-words")
        page.select_option("#policy-kind", "threshold")
        edges = []
        for theta in (2, 7, 12):
            # As a finger moves it: each place is followed.
            page.locator("#theta").fill(str(theta))
            page.wait_for_selector(f"#graph-words:has-text('at most {theta}.')")
            edges.append(int(page.get_attribute("#graph svg", "data-edges")))
        assert edges == [23 + 22, sum(24 - at for at in range(1, 8)), 24 * 12 - 78]
        page.select_option("#kind", "cumulative")
        page.click("#draw-trade-off")
        page.wait_for_selector("#draw-trade-off:not([disabled])")
        page.wait_for_selector("#trade-off.drawn .points path")
        first = page.locator("#trade-off .trace").nth(0).locator(".points path").nth(0)
        first.scroll_into_view_if_needed()
        spot = first.bounding_box()
        page.mouse.click(spot["x"] + spot["width"] / 2, spot["y"] + spot["height"] / 2)
        page.wait_for_selector("#private-title:has-text('up to 1 cells apart')")
        assert page.input_value("#theta") == "1"
        visit.picture("policies")
        page.click("#set-policy")
        page.wait_for_selector("#policy-state:has-text('at most 1 ')")
        explorer = site.workspace.explorer("people")
        assert explorer.table.policies["age"].theta == 1
        page.click("#reset-policy")
        page.wait_for_selector("#policy-state:has-text('any two records')")
        assert explorer.table.policies == {}
        page.fill("#total", "3.5")
        page.click("#set-budget")
        page.wait_for_selector("#budget:has-text('3.5')")
        assert float(explorer.ledger.epsilon) == 3.5


def test_blocks_of_a_category_are_drawn_and_set(browser, site):
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        page.wait_for_selector("#private.drawn .main-svg")
        page.select_option("#attribute", "sex")
        page.select_option("#policy-kind", "blocks")
        page.fill("#blocks", "f; m")
        page.wait_for_selector("#graph svg[data-edges='5']")
        page.click("#set-policy")
        page.wait_for_selector("#notice:has-text('policy is set')")
        explorer = site.workspace.explorer("people")
        assert explorer.table.policies["sex"].blocks == [["f"], ["m"]]


def test_a_frozen_table_cannot_be_changed(browser, site):
    from .serving import AGES

    with site.client("ann") as ann:
        ann.post("/api/ask", json={"question": AGES}).raise_for_status()
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        page.wait_for_selector("#policy-state:has-text('Frozen')")
        for control in ("#set-policy", "#reset-policy", "#set-budget", "#total"):
            assert page.is_disabled(control)
        page.wait_for_selector("#charges td:has-text('ann')")
        page.click("#verify")
        page.wait_for_selector("#head:has-text('Intact')")


@pytest.mark.parametrize("size", SIZES)
def test_what_is_wrong_with_a_description_is_marked(browser, site, size):
    with Visit(browser, site, CURATOR, size) as visit:
        page = visit.page
        page.wait_for_selector("#private.drawn .main-svg")
        page.select_option("#data-set", "others")
        if size == "phone":
            assert hidden_at_the_side(page) == 0
        page.fill("[aria-label='width of age']", "7")
        page.click("text=Add the table")
        marked = page.locator("#describe-form [aria-invalid=true]")
        playwright.expect(marked).to_have_count(2)
        labels = [one.get_attribute("aria-label") for one in marked.all()]
        assert labels == ["start of age", "levels of sex"]
        assert "0 to 100 is no" in marked.nth(0).get_attribute("title")
        assert page.evaluate("document.activeElement.ariaLabel") == "start of age"
        page.fill("[aria-label='width of age']", "0")
        page.fill("[aria-label='levels of sex']", "f, m")
        page.click("text=Add the table")
        marked = page.locator("[aria-label='width of age'][aria-invalid=true]")
        playwright.expect(marked).to_have_count(1)
        assert site.workspace.tables == ["people"]
        visit.problems.clear()


def test_a_curator_adds_people_and_data(browser, site, tmp_path):
    file = tmp_path / "visits.csv"
    file.write_text("age,ward\n31,east\n47,west\n,east\n")
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        page.wait_for_selector("#private.drawn .main-svg")
        page.fill("#analyst-name", "carla")
        page.fill("#analyst-epsilon", "0.75")
        page.click("text=Add, or change the allotment")
        page.wait_for_selector("#new-secret:visible")
        secret = visit.text("#new-secret").split()[-1]
        page.wait_for_selector("#analysts tr:has-text('carla'):has-text('0.75')")
        page.fill("#data-name", "visits")
        page.set_input_files("#data-file", file)
        page.click("#data-form button")
        page.wait_for_selector("#columns tr:has-text('ward')")
        page.fill("[aria-label='levels of ward']", "east, west")
        visit.picture("data")
        with page.expect_navigation():
            page.click("text=Add the table")
        page.select_option("#table", "visits")
        page.select_option("#attribute", "ward")
        page.fill("#epsilon", "5")
        page.click("#preview")
        playwright.expect(page.locator("#truth .bars .point")).to_have_count(2)
        page.click("#analysts tr:has-text('carla') button")
        page.click("#confirm button[value=no]")
        assert site.workspace.keys.identify(secret) is not None
        page.click("#analysts tr:has-text('carla') button")
        page.click("#confirm-yes")
        page.wait_for_selector("#analysts tr:has-text('carla')", state="detached")
    assert site.workspace.keys.identify(secret) is None
    assert site.workspace.tables == ["people", "visits"]


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


def test_from_a_parquet_file_to_the_first_answer(browser, tmp_path):
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
            page.wait_for_selector("#columns tr:has-text('department')")
            hand.type("[aria-label='start of age']", "16")
            hand.type("[aria-label='end of age']", "80")
            page.select_option("[aria-label='missing values of age']", "end")
            hand.type("[aria-label='levels of department']", "care, sales")
            hand.type("#snapshot", "November")
            hand.type("#description-epsilon", "2")
            with page.expect_navigation():
                hand.click("text=Add the table")
            page.wait_for_selector("#private.drawn .main-svg")
            hand.done("2 described")
            page.select_option("#policy-kind", "threshold")
            page.fill("#theta", "5")
            hand.click("#set-policy")
            page.wait_for_selector("#notice:has-text('policy is set')")
            assert "is frozen" in visit.text("#budget")
            hand.done("3 policy")
            hand.type("#analyst-name", "ann")
            hand.click("text=Add, or change the allotment")
            page.wait_for_selector("#new-secret:visible")
            secrets["ann"] = visit.text("#new-secret").split()[-1]
            hand.done("4 invited")
        with Visit(browser, site, "ann") as visit:
            hand = Hand(visit)
            hand.type("#alpha", "500")
            visit.priced()
            hand.done("5 priced")
            visit.asked()
            hand.done("6 answered")
            assert "within 500" in visit.text("#answer-words")
    assert work.explorer("salaries").ledger.spent > 0
    work.close()


def test_logging_out_returns_to_the_door(browser, site):
    with Visit(browser, site, "bob") as visit:
        page = visit.page
        page.wait_for_selector("#cost.over")
        page.click("#log-out")
        page.wait_for_selector("#secret")
        page.goto(f"{site.url}/analyst")
        assert page.is_visible("#secret")
