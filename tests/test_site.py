"""Everybody can use the site: axe finds nothing on a desk, on a phone, in the dark.

Looks at what the part docs of `.ci/run` has built, which runs this after it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

SITE = Path(__file__).parent.parent / "build" / "docs"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WAYS = {
    "desk": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}
if not os.environ.get("BLOWFISH_NOTHING_SKIPPED"):
    if CHROMIUM is None or not SITE.is_dir():
        pytest.skip("no chromium, or no site in build/docs", allow_module_level=True)
    pytest.importorskip("axe_playwright_python")


def pages() -> list[Path]:
    """Return every page for newcomers, and one of each other kind."""
    first = [SITE / f"{name}.html" for name in ("index", "tutorial", "command_line")]
    others = [SITE / "search.html", SITE / "genindex.html", SITE / "tables.html"]
    kinds = ("mechanisms", "proofs", "reference", "notebooks", "explanation", "project")
    return [
        *first,
        *sorted(SITE.glob("howto/*.html")),
        *others,
        SITE / "mechanisms" / "index.html",
        *(sorted(SITE.glob(f"{kind}/*.html"))[0] for kind in kinds),
    ]


@pytest.mark.parametrize("way", WAYS)
def test_axe_finds_nothing_on_the_site(way):
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    found = []
    # The places where a rule held are not listed, a third of axe's time.
    options = {"resultTypes": ["violations"]}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(**WAYS[way])
        for one in pages():
            page.goto(one.as_uri())
            found += [
                (str(one.relative_to(SITE)), rule["id"], rule["nodes"][0]["target"])
                for rule in Axe().run(page, options=options).response["violations"]
            ]
        browser.close()
    assert found == []
