"""Counts by district as a map, in a real browser: described, asked, read by keys."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.release.places.map_classes import class_breaks, colour_classes

from .test_browser import SIZES, Visit, browser, expect, site  # noqa: F401  fixtures
from .test_districts import square
from .test_pages import violations

pytestmark = pytest.mark.browser

WARDS = {"north <1>": 900, "middle": 600, "south": 300, "harbour": 0}
"""How many records a ward has; the last one has none, and is hatched."""


def ward_files(folder):
    """Write records and the borders of their wards; return both files."""
    records, shapes = folder / "calls.csv", folder / "wards.geojson"
    lines = [f"{ward}\n" * count for ward, count in WARDS.items()]
    records.write_text("ward\n" + "".join(lines) + "at sea\n" * 5)
    features = [square(ward, at) for at, ward in enumerate(WARDS)]
    whole = {"type": "FeatureCollection", "features": features}
    shapes.write_text(json.dumps(whole))
    return records, shapes


def describe_wards(visit, folder):
    """Add the records and describe their column by a file of borders."""
    records, shapes = ward_files(folder)
    page = visit.page
    visit.drawn("#private")
    visit.tab("data")
    page.fill("#data-name", "calls")
    page.set_input_files("#data-file", records)
    page.click("#data-form button")
    visit.count("#columns tr:has-text('ward')", 1)
    page.select_option("[aria-label='kind of ward']", "districts")
    expect(page.locator("[aria-label='levels of ward']")).to_be_hidden()
    # Without a file there are no borders, and the box for it is marked.
    page.click("text=Add the table")
    visit.count("[aria-label^='borders of ward'][aria-invalid=true]", 1)
    visit.problems.clear()
    page.set_input_files("[aria-label^='borders of ward']", shapes)
    page.fill("[aria-label='property that holds ward']", "code")
    page.fill("#description-epsilon", "5")
    assert violations(page) == []
    with page.expect_navigation():
        page.click("text=Add the table")
    visit.listens()


@pytest.mark.parametrize("size", SIZES)
def test_wards_are_described_by_borders_and_counted_on_a_map(
    browser,  # noqa: F811
    site,  # noqa: F811
    tmp_path,
    size,
):
    with Visit(browser, site, CURATOR, size) as visit:
        describe_wards(visit, tmp_path)
        visit.tab("policy")
        visit.page.select_option("#table", "calls")
        # What analysts would see of it is a map, too.
        visit.count("#private.districts .district", len(WARDS))
    site.workspace.explorer("calls").ledger.allot("ann", 4)
    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        page.select_option("#table", "calls")
        page.fill("#alpha", "60")
        visit.priced()
        page.click("#ask")
        districts = page.locator("#answer.districts .district")
        expect(districts).to_have_count(len(WARDS))
        # Colours rise with counts, and only the empty ward is hatched.
        shades = [districts.nth(at).get_attribute("fill") for at in range(3)]
        assert len({*shades}) == 3
        visit.count("#answer .hatched", 1)
        visit.see("#answer .legend", "do not read these colours")
        north = page.locator("#answer [aria-label^='north <1>: ']")
        assert " and " in north.get_attribute("aria-label")
        north.hover()
        visit.see("#answer .told", "north <1>: ")
        # One stop for the tab key; arrows lead from district to district.
        visit.count("#answer .district[tabindex='0']", 1)
        districts.first.focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#answer [aria-label^='middle: ']")).to_be_focused()
        visit.see("#answer .told", "middle: ")
        page.keyboard.press("End")
        visit.see("#answer .told", "harbour: ")
        page.keyboard.press("ArrowRight")
        visit.see("#answer .told", "harbour: ")
        page.keyboard.press("Home")
        visit.see("#answer .told", "north <1>: ")
        visit.picture("district-map")
        assert violations(page) == []
        with page.expect_download() as saved:
            page.click("#save-png")
        assert saved.value.path().read_bytes().startswith(b"\x89PNG")
        # A district that is chosen becomes a filter of the next question.
        page.locator("#answer [aria-label^='middle: ']").focus()
        page.keyboard.press("Enter")
        visit.see("#notice", "only records where ward is middle")
        visit.priced()
        # The row for what is missing has no place, and is said beside the map.
        page.reload()
        visit.listens()
        page.select_option("#table", "calls")
        page.check("#missing")
        visit.priced()
        page.click("#ask")
        visit.see("#answer .lacking", "Not on the map: (missing): ")
        # What was a map makes room for bars, and the other way round.
        boxes = page.locator("#history input")
        expect(boxes).to_have_count(2)
        boxes.nth(0).check()
        boxes.nth(1).check()
        visit.count("#compared .districts > svg", 2)
        page.select_option("#table", "people")
        page.fill("#width", "16")
        visit.priced()
        visit.asked()
        visit.count("#answer .bars .point", 4)
        visit.count("#answer .district", 0)


NUMBERS = {
    "all apart": [3, 9, 15, 30, 95, 4, 12, 21, 0, 1],
    "many alike": [0, 0, 0, 0, 0, 0, 0, 4, 9, 15, 30, 95],
    "two numbers": [0, 0, 0, 5],
    "one number": [7, 7, 7],
    "one district": [7],
    "below 0": [-20.5, -3, -3, 0, 8],
    "largest alike": [1, 2, 9, 9, 9, 9, 9, 9],
}


def test_no_class_of_a_map_is_empty_and_files_have_the_same_ones(
    browser,  # noqa: F811
    site,  # noqa: F811
):
    with Visit(browser, site, CURATOR) as visit:
        for numbers in NUMBERS.values():
            ends, classes = visit.page.evaluate(
                """(numbers) => import("/static/districts.js").then((map) => {
                    const ends = map.classEnds(numbers);
                    return [ends, map.coloursOf(ends)];
                })""",
                numbers,
            )
            estimates = np.array(numbers, dtype=np.float64)
            assert ends == class_breaks(estimates).tolist()
            in_files = colour_classes(np.array(ends))
            assert [one["colour"] for one in classes] == [
                one.colour for one in in_files
            ]
            words = [one["words"] for one in classes]
            assert len({*words}) == len(words)
            places = np.searchsorted(ends[1:-1], estimates, side="right")
            assert {*places.tolist()} == {*range(len(classes))}
        # Ends that three digits do not tell apart have more of them.
        close = visit.page.evaluate(
            """() => import("/static/districts.js").then((map) =>
                map.coloursOf([0.12341, 0.12342, 0.2]).map((one) => one.words))"""
        )
        assert close == ["0.12341 to 0.12342", "0.12342 to 0.2"]
        # Pictures that share a scale have classes of one width, and one of no width.
        shared = visit.page.evaluate(
            """() => import("/static/districts.js").then((map) =>
                [map.classEnds([1], [-10, 40]), map.classEnds([3], [3, 3])])"""
        )
        assert shared == [[-10, 0, 10, 20, 30, 40], [3, 3]]


@pytest.mark.parametrize("size", SIZES)
def test_what_has_no_place_on_a_map_is_below_it_and_in_none_of_its_classes(
    browser,  # noqa: F811
    site,  # noqa: F811
    tmp_path,
    size,
):
    with Visit(browser, site, CURATOR) as visit:
        describe_wards(visit, tmp_path)
    site.workspace.explorer("calls").ledger.allot("ann", 4)
    with Visit(browser, site, "ann", size) as visit:
        page = visit.page
        page.select_option("#table", "calls")
        page.fill("#alpha", "60")
        page.check("#missing")
        visit.priced()
        page.click("#ask")
        visit.see("#answer .lacking", "Not on the map: (missing): ")
        # No words of the map lie over those below it.
        lowest = page.locator("#answer .lacking").bounding_box()
        below = page.locator("#answer-words").bounding_box()
        assert lowest["y"] + lowest["height"] <= below["y"]
        # Four wards, the empty one told apart: no more classes than districts.
        fills = {
            one.get_attribute("fill") for one in page.locator("#answer .district").all()
        }
        swatches = page.locator("#answer .legend li:not(:has-text('hatched')) rect")
        visit.count("#answer .legend li:not(:has-text('hatched')) rect", len(fills))
        assert {one.get_attribute("fill") for one in swatches.all()} == fills
