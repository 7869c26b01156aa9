"""Both roles in a real browser: every control of the pages, on a desk and on a phone.

Nothing may be asked from elsewhere, and the content security policy must not have to
stop anything. Pictures are kept where BLOWFISH_SCREENSHOTS says.

What is asserted of a page is waited for (`see`, `count`, `value`, `expect`), because no
test knows when an answer comes. BLOWFISH_SLOW_BROWSER=6 makes the processor of every
page six times as slow and has each answer come up to 0.6 s late, so that answers
overtake each other; all tests must hold then too.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from blowfish_fast.apps.server.keys import CURATOR

from .serving import serving

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
INSTALL = "pip install 'blowfish_fast[browser]' and apt-get install chromium"
if CHROMIUM is None:
    pytest.skip(f"no chromium: {INSTALL}", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason=INSTALL)

SIZES = {"desk": (1280, 900), "phone": (390, 844)}
FIGURE = (
    "#table",
    "#attribute",
    "#graph",
    "#theta",
    "#trade-off",
    "#truth",
    "#private",
)
"""What a curator looks at together."""
PATIENCE = 60_000
"""Milliseconds that a page is waited for."""

SLOWNESS = float(os.environ.get("BLOWFISH_SLOW_BROWSER", "0"))
LATE = """
const soon = window.fetch;
window.fetch = async (...asked) => {
  const answer = await soon(...asked);
  await new Promise((done) => setTimeout(done, Math.random() * %d));
  return answer;
};
"""
expect = playwright.expect
expect.set_options(timeout=PATIENCE)


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
        if SLOWNESS:
            session = self.context.new_cdp_session(self.page)
            session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWNESS})
            self.page.add_init_script(LATE % (100 * SLOWNESS))

    def __enter__(self):
        self.page.goto(self.site.url)
        self.listens()
        self.picture("login")
        self.page.fill("#secret", self.site.secrets[self.name])
        self.page.click("text=Log in >> visible=true >> nth=-1")
        role = "curator" if self.name == CURATOR else "analyst"
        self.page.wait_for_url(f"**/{role}")
        self.listens()
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

    def listens(self):
        """Wait until the page's script listens: nothing could be pressed before."""
        expect(self.page.locator("main:not([inert])")).to_have_count(1)

    def tab(self, name):
        """Show a part of the curator's page by its address, and wait until it is there.

        The parts are `policy`, `all-tables`, `account`, `people` and `data`.
        """
        self.page.click(f".tabs a[href='#{name}']")
        expect(self.page.locator(f"#{name}")).to_be_visible()
        expect(self.page).to_have_url(re.compile(f"#{name}$"))

    def see(self, selector, words):
        """Wait until these words are somewhere in the one place of a selector."""
        expect(self.page.locator(selector)).to_contain_text(words)

    def count(self, selector, number):
        """Wait until a selector has so many places."""
        expect(self.page.locator(selector)).to_have_count(number)

    def value(self, selector, value):
        """Wait until a field holds a value."""
        expect(self.page.locator(selector)).to_have_value(value)

    def drawn(self, selector):
        """Wait until a picture is there."""
        expect(self.page.locator(f"{selector}.drawn .main-svg").first).to_be_attached()

    def text(self, selector):
        """Return what stands in a place by now: for places that were waited for."""
        return self.page.inner_text(selector)

    def told(self):
        """Wait until the form as it is now was priced or refused; return the words.

        Each edit marks the price as busy before the edit returns.
        """
        expect(self.page.locator("#cost:not([aria-busy])")).to_have_count(1)
        return self.text("#cost")

    def priced(self):
        """Wait until the question in the form can be asked; return its price."""
        words = self.told()
        expect(self.page.locator("#ask")).to_be_enabled()
        found = re.search(r"epsilon ([\d.]+)", words)
        assert found is not None, words
        return float(found[1])

    def asked(self):
        """Press Ask; wait for the answer, one more line of history, the next price."""
        rows = self.page.locator("#history tbody tr")
        before = rows.count()
        self.page.click("#ask")
        expect(rows).to_have_count(before + 1)
        self.drawn("#answer")
        self.told()

    def fits(self):
        """No table of words has to be pushed sideways to be read."""
        self.page.wait_for_function(
            """() => [...document.querySelectorAll(".scroll:has(.stacked)")].every(
                (one) => one.scrollWidth <= one.clientWidth + 1)"""
        )


@pytest.mark.parametrize("size", SIZES)
def test_an_analyst_asks_and_compares(browser, site, size):
    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        cheap = visit.priced()
        assert "would remain" in visit.told()
        page.fill("#alpha", "100")
        assert visit.priced() > cheap
        page.fill("#width", "16")
        visit.priced()
        # The words for the interval are the same before and after.
        promised = "All numbers are within 100 of the true ones, but for a probability"
        visit.see("#why", promised)
        visit.asked()
        visit.see("#answer-words", promised)
        visit.count("#answer .bars .point", 4)
        visit.count("#answer .errorbar", 4)
        # The answer is brought into view, and read aloud.
        expect(page.locator("#answer-title")).to_be_focused()
        expect(page.locator("#answer-title")).to_be_in_viewport()
        visit.picture("histogram")
        # What is protected stands on the page once, one press away.
        visit.see("#promise", "What is protected: nobody can tell")
        page.locator("#answer-words a").click()
        expect(page.locator("#promise-in-full")).to_be_visible()
        visit.see("#promise-in-full", "the number of people is public")
        page.locator("#about summary").click()
        page.select_option("#kind", "cumulative")
        visit.priced()
        visit.asked()
        visit.see("#budget", "of epsilon 4 remains")
        remaining = visit.text("#budget")
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
        visit.count("#compared tbody tr", 4 + 4)
        visit.count("#compared p:has-text('4 numbers; the smallest is')", 2)
        page.locator("#all-mechanisms summary").click()
        visit.see("#candidates", "cells")
        page.locator("#about summary").click()
        visit.fits()
        # Once more the same: it is free, and beside its error stands what it cost.
        visit.see("#cost", "epsilon 0;")
        page.fill("#alpha", "50")
        other = visit.priced()
        page.fill("#alpha", "100")
        visit.see("#cost", "epsilon 0;")
        assert 0 < float(page.input_value("#spend")) < 0.9 * other


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_what_is_known_already_is_shown_and_read_for_nothing(browser, site, size):
    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        page.fill("#alpha", "60")
        assert "costs" in visit.told()
        visit.asked()
        spent = visit.text("#budget")
        page.fill("#alpha", "20")
        visit.told()
        visit.see("#known", "State that as the largest error")
        visit.see("#known", "these numbers within")
        page.fill("#alpha", "61")
        assert "free: earlier answers tell it" in visit.told()
        visit.asked()
        assert visit.text("#budget") == spent
        words = visit.text("#answer-words")
        assert words.startswith("Read from an earlier answer, free")
        assert "however the question was chosen" in words
        page.check("#fixed")
        page.fill("#alpha", "62")
        visit.see("#known", "did not lead you")
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
            visit.priced()
            visit.asked()
            visit.picture(kind)
        page.select_option("#kind", "histogram")
        page.select_option("#filter", "sex")
        page.select_option("#filter-value", "m")
        visit.priced()
        visit.asked()
        visit.see("#answer-title", "sex = m")


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
        ticks = visit.page.locator("#answer .xaxislayer-above text")
        expect(ticks).to_have_text([link, "<18"])
        expect(visit.page.locator("#answer .xtitle")).to_have_text(["<b>sex</b>"])
        visit.count("#answer a", 0)


def test_an_analyst_is_told_what_does_not_fit(browser, site):
    with Visit(browser, site, "ann") as visit:
        page = visit.page
        visit.priced()
        page.fill("#alpha", "0.01")
        dear = visit.told()
        assert "only 4 remains, which would buy a largest error of" in dear
        bought = float(dear.split()[-1])
        page.fill("#alpha", str(1.01 * bought))
        assert visit.priced() <= 4
        page.fill("#alpha", "0.01")
        assert "only 4 remains" in visit.told()
        visit.count("#cost.over", 1)
        expect(page.locator("#ask")).to_be_disabled()
        visit.problems.clear()
        page.fill("#beta", "2")
        assert "probability of more" in visit.told()
        visit.count("#beta[aria-invalid=true]", 1)
        visit.problems.clear()
        page.fill("#beta", "0.05")
        page.select_option("#kind", "ranges")
        page.fill("#stretches", "hello")
        assert "no stretch" in visit.told()


@pytest.mark.parametrize("size", SIZES)
def test_a_curator_explores_policies(browser, site, size):
    with Visit(browser, site, CURATOR, size) as visit:
        page = visit.page
        page.fill("#width", "2")
        page.fill("#epsilon", "0.2")
        page.fill("#thetas", "1, 5, 20")
        page.click("#preview")
        # Pictures of a preview that the page made by itself may be there before.
        visit.see("#thresholds > div:nth-child(3) h3", "threshold 20")
        visit.drawn("#thresholds > div:nth-child(3) .plot")
        visit.count("#truth .bars .point", 32)
        visit.count("#private .errorbar", 32)
        visit.count("#preview-numbers tbody tr", 32)
        # Each picture has its error in words, and a table with the truth beside it.
        visit.count("#thresholds > div p:has-text('off by')", 3)
        visit.count("#thresholds > div:nth-child(3) tbody tr", 32)
        expect(page.locator("#thresholds th:last-child").first).to_have_text("true")
        # The policy in force is drawn before any that may be chosen.
        visit.value("#policy-kind", "full")
        visit.see("#graph-words", "Any two values")
        page.select_option("#policy-kind", "threshold")
        places = {2: 63 + 62, 7: sum(64 - at for at in range(1, 8)), 12: 64 * 12 - 78}
        for theta, edges in places.items():
            # As a finger moves it: each place is followed.
            page.locator("#theta").fill(str(theta))
            visit.see("#graph-words", f"at most {theta}.")
            visit.count(f"#graph svg.matrix[data-edges='{edges}']", 1)
        # Both sides of a matrix say what they are.
        for title in ("a value", "another value"):
            expect(page.locator("#graph svg text", has_text=title).last).to_be_visible()
        page.select_option("#kind", "cumulative")
        # Thresholds of the curator's own choice, or some of all sizes.
        page.fill("#curve-thetas", "3, 20")
        page.click("#draw-trade-off")
        expect(page.locator("#draw-trade-off")).to_be_enabled()
        curve = page.locator("#trade-off-table tbody td:first-child")
        expect(curve).to_have_text(["3", "20", "whole records"])
        page.fill("#curve-thetas", "")
        page.click("#draw-trade-off")
        expect(page.locator("#draw-trade-off")).to_be_enabled()
        visit.drawn("#trade-off")
        # A line of the table does what its point does.
        page.click("[aria-label='preview under threshold 2']")
        visit.see("#private-title", "up to 2 cells apart")
        visit.value("#theta", "2")
        pressed_point(visit, "#trade-off", "#private-title", "up to 1 cells apart")
        visit.value("#theta", "1")
        visit.picture("policies")
        if size == "desk":
            # Data, policy, threshold, curve, truth and private answer on one screen.
            page.evaluate("() => window.scrollTo(0, 0)")
            for part in FIGURE:
                expect(page.locator(part)).to_be_in_viewport(ratio=1)
        page.click("#set-policy")
        visit.see("#policy-state", "at most 1 ")
        explorer = site.workspace.explorer("people")
        assert explorer.table.policies["age"].theta == 1
        page.click("#reset-policy")
        visit.see("#policy-state", "any two records")
        assert explorer.table.policies == {}
        visit.tab("account")
        page.fill("#total", "3.5")
        page.click("#set-budget")
        visit.see("#budget", "of epsilon 3.5 is spent")
        assert float(explorer.ledger.epsilon) == 3.5


def pressed_point(visit, curve, place, words):
    """Press the first point of a curve, as a person does: again if it was moving.

    A picture is laid out anew while the page around it grows, and a press then lands
    beside the point. Pressing a point twice does what pressing it once does.
    """
    point = visit.page.locator(f"{curve} .trace").first.locator(".points path").first
    for patience in (3_000, 10_000, PATIENCE):
        # Plotly's layer that takes the mouse lies above the point.
        point.click(force=True)
        try:
            expect(visit.page.locator(place)).to_contain_text(words, timeout=patience)
        except AssertionError:
            if patience == PATIENCE:
                raise
        else:
            return


def test_blocks_of_a_category_are_drawn_and_set(browser, site):
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        visit.drawn("#private")
        page.select_option("#attribute", "sex")
        page.select_option("#policy-kind", "blocks")
        page.fill("#blocks", "f; m")
        visit.count("#graph svg[data-edges='5']", 1)
        page.click("#set-policy")
        visit.see("#notice", "policy is set")
        explorer = site.workspace.explorer("people")
        assert explorer.table.policies["sex"].blocks == [["f"], ["m"]]


def test_a_frozen_table_cannot_be_changed(browser, site):
    from .serving import AGES

    with site.client("ann") as ann:
        ann.post("/api/ask", json={"question": AGES}).raise_for_status()
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        visit.see("#policy-state", "Frozen")
        for control in ("#set-policy", "#reset-policy", "#set-budget", "#total"):
            expect(page.locator(control)).to_be_disabled()
        visit.tab("account")
        visit.count("#charges td:has-text('ann')", 1)
        page.click("#verify")
        visit.see("#head", "Intact")


@pytest.mark.parametrize("size", SIZES)
def test_what_is_wrong_with_a_description_is_marked(browser, site, size):
    with Visit(browser, site, CURATOR, size) as visit:
        page = visit.page
        visit.drawn("#private")
        visit.tab("data")
        page.select_option("#data-set", "others")
        if size == "phone":
            visit.fits()
        # No range is proposed: one that is not stated is asked for.
        expect(page.locator("[aria-label='end of age']")).to_have_value("")
        for column, (low, high) in {"age": (0, 100), 'pay "net"': (0, 5000)}.items():
            for end, value in (("start", low), ("end", high)):
                box = page.get_by_label(f"{end} of {column}", exact=True)
                if box.count():
                    box.fill(str(value))
        page.fill("[aria-label='width of age']", "7")
        page.click("text=Add the table")
        marked = page.locator("#describe-form [aria-invalid=true]")
        expect(marked).to_have_count(2)
        for at, label in enumerate(["start of age", "levels of sex"]):
            expect(marked.nth(at)).to_have_attribute("aria-label", label)
        expect(marked.first).to_have_attribute("title", re.compile("0 to 100 is no"))
        expect(marked.first).to_be_focused()
        page.fill("[aria-label='width of age']", "0")
        page.fill("[aria-label='levels of sex']", "f, m")
        page.click("text=Add the table")
        marked = page.locator("[aria-label='width of age'][aria-invalid=true]")
        expect(marked).to_have_count(1)
        assert site.workspace.tables == ["people"]
        visit.problems.clear()


def test_a_curator_adds_people_and_data(browser, site, tmp_path):
    file = tmp_path / "visits.csv"
    file.write_text("age,ward\n31,east\n47,west\n,east\n")
    with Visit(browser, site, CURATOR) as visit:
        page = visit.page
        visit.drawn("#private")
        visit.tab("people")
        page.fill("#analyst-name", "carla")
        page.fill("#analyst-epsilon", "0.75")
        page.click("text=Add, or change the allotment")
        visit.see("#new-secret", "Secret of carla")
        secret = visit.text("#new-secret").split()[-1]
        visit.count("#analysts tr:has-text('carla'):has-text('0.75')", 1)
        visit.tab("data")
        page.fill("#data-name", "visits")
        page.set_input_files("#data-file", file)
        page.click("#data-form button")
        visit.count("#columns tr:has-text('ward')", 1)
        page.fill("[aria-label='levels of ward']", "east, west")
        page.fill("[aria-label='start of age']", "0")
        page.fill("[aria-label='end of age']", "100")
        visit.picture("data")
        with page.expect_navigation():
            page.click("text=Add the table")
        visit.listens()
        # The address is that of the part, also after the page was loaded again.
        expect(page.locator("#data")).to_be_visible()
        page.select_option("#table", "visits")
        visit.tab("policy")
        page.select_option("#attribute", "ward")
        page.fill("#epsilon", "5")
        page.click("#preview")
        expect(page.locator("#truth .bars .point")).to_have_count(2)
        visit.tab("people")
        page.click("#analysts tr:has-text('carla') button")
        page.click("#confirm button[value=no]")
        assert site.workspace.keys.identify(secret) is not None
        page.click("#analysts tr:has-text('carla') button")
        page.click("#confirm-yes")
        visit.count("#analysts tr:has-text('carla')", 0)
    assert site.workspace.keys.identify(secret) is None
    assert site.workspace.tables == ["people", "visits"]


def test_logging_out_returns_to_the_door(browser, site):
    with Visit(browser, site, "bob") as visit:
        page = visit.page
        visit.told()
        visit.count("#cost.over", 1)
        page.click("#log-out")
        expect(page.locator("#secret")).to_be_visible()
        page.goto(f"{site.url}/analyst")
        expect(page.locator("#secret")).to_be_visible()
