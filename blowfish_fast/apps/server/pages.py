"""The pages and what they load: templates, scripts, styles, plotly from its package.

Plotly writes style sheets into the page, which the content security policy forbids. It
leaves them out where an element carries the id that it would use: the page has them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata, resources
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates

from blowfish_fast.apps.explorer.attributes import EXTRAS

from .access import COOKIE, gate_of

HERE = Path(__file__).parent
YEAR = 365 * 24 * 3600
PAGES = ("curator", "analyst")
STYLE_ID = re.compile(
    r'getElementById\("([0-9a-f]{64})"\)\)\{var \w+=document\.createElement\("style"\)'
)


def plotly_script() -> Path:
    """Return the script that plotly ships inside its package."""
    return Path(str(resources.files("plotly") / "package_data" / "plotly.min.js"))


@cache
def style_ids() -> list[str]:
    """Return the ids under which plotly would write style sheets of its own."""
    return STYLE_ID.findall(plotly_script().read_text(encoding="utf-8"))


def mount(app: FastAPI) -> None:
    """Add the pages to an application."""
    templates = Jinja2Templates(HERE / "templates")
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")

    @app.get("/vendor/plotly.min.js", include_in_schema=False)
    def plotly() -> Response:
        headers = {"Cache-Control": f"public, max-age={YEAR}, immutable"}
        return FileResponse(
            plotly_script(), media_type="text/javascript", headers=headers
        )

    @app.get("/", include_in_schema=False, response_class=HTMLResponse)
    def home(request: Request) -> Response:
        session = gate_of(request).sessions.find(request.cookies.get(COOKIE))
        if session is None:
            return templates.TemplateResponse(request, "login.html")
        return RedirectResponse(f"/{session.identity.role}", 303)

    def page(request: Request) -> Response:
        role = request.url.path.removeprefix("/")
        session = gate_of(request).sessions.find(request.cookies.get(COOKIE))
        if session is None or session.identity.role != role:
            return RedirectResponse("/", 303)
        return templates.TemplateResponse(
            request,
            f"{role}.html",
            {
                "name": session.identity.name,
                "csrf": session.csrf,
                "extras": EXTRAS,
                "taken_ids": style_ids(),
                "plotly_version": metadata.version("plotly"),
            },
        )

    for role in PAGES:
        app.get(f"/{role}", include_in_schema=False, response_class=HTMLResponse)(page)
