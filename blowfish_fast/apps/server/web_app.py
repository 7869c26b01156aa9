"""The application that the server runs: its routes, its pages, and who may log in.

    /            the log-in; then the page of a curator or of an analyst
    /api/...     what the pages call; the OpenAPI schema is at /api/openapi.json
    /health      whether server and databases are well; needs no log-in
    /metrics     counters for Prometheus; needs a monitor's or a curator's secret

Beside its databases the process talks to no other server, and its pages load nothing
from elsewhere.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from pydantic import Field

from blowfish_fast.apps.description.frozen_model import Model
from blowfish_fast.apps.explorer.catalog import EXTRAS

from . import analyst_routes, curator_routes
from .access import COOKIE, Anyone, Gate, Operator
from .http_guard import PROBLEMS, HttpGuard, Problem, word_errors
from .keys import RateLimit
from .workspace import Workspace

HERE = Path(__file__).parent
YEAR = 365 * 24 * 3600
STYLE_ID = re.compile(
    r'getElementById\("([0-9a-f]{64})"\)\)\{var \w+=document\.createElement\("style"\)'
)
"""Plotly writes style sheets into the page, which the content security policy forbids.
It leaves out those whose ids the page has."""
SECONDS_KEPT = 5.0
"""How long an answer about the server's health is given again, in seconds, before the
databases are asked anew."""

router = APIRouter()


def make_app(
    workspace: Workspace,
    *,
    secure_cookies: bool = False,
    requests: RateLimit | None = None,
    logins: RateLimit | None = None,
    trusted_proxies: Sequence[str] = (),
) -> FastAPI:
    """Return the application over a workspace.

    Parameters
    ----------
    workspace : Workspace
        The state of the server.
    secure_cookies : bool
        Whether browsers send the session's cookie over HTTPS alone.
    requests : RateLimit, optional
        How often each person may ask; by default that of `Gate`.
    logins : RateLimit, optional
        How often each address may try wrong secrets; by default that of `Gate`.
    trusted_proxies : sequence of str
        Addresses or networks of proxies whose X-Forwarded-For is believed.

    Returns
    -------
    FastAPI
        The application, ready to be served.
    """
    app = FastAPI(
        title="blowfish_fast explorer",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses={code: {"model": Problem} for code in PROBLEMS},
        # Telemetry would send the words of errors to another machine, and these words
        # may quote records.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.gate = Gate(workspace, requests, logins, trusted_proxies)
    app.router.add_event_handler("shutdown", app.state.gate.prices.close)
    app.state.secure_cookies = secure_cookies
    app.include_router(analyst_routes.router)
    app.include_router(curator_routes.router)
    app.include_router(router)
    _mount_pages(app)
    word_errors(app, f"{workspace.folder.absolute()}{os.sep}")
    app.add_middleware(HttpGuard, gate=app.state.gate)
    return app


class LogIn(Model):
    """Somebody's secret."""

    secret: Annotated[str, Field(min_length=1, max_length=200)]
    """The secret that the curator made."""


@router.get("/health", tags=["operations"])
def health(request: Request, response: Response) -> dict[str, str]:
    """Say whether the server and its databases are well. Needs no log-in.

    Degraded: a database is away; stored answers are still given. Full, with status 503:
    nothing can be written where ledgers are, so no new question is answered.
    """
    state = request.app.state
    now = time.monotonic()
    checked_at, status = getattr(state, "health", (-SECONDS_KEPT, ""))
    if now - checked_at >= SECONDS_KEPT:
        work = state.gate.workspace
        status = "degraded" if work.away() else "ok"
        if not work.can_write():
            status = "full"
        state.health = now, status
    if status == "full":
        response.status_code = 503
    return {"status": status}


@router.get(
    "/metrics",
    tags=["operations"],
    response_model=None,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def show_metrics(visit: Operator) -> PlainTextResponse:
    """Return counters of requests, questions and budgets, as Prometheus reads them."""
    return PlainTextResponse(visit.gate.metrics.text(visit.work))


@router.post("/api/session", tags=["session"])
def log_in(credentials: LogIn, request: Request, response: Response) -> dict[str, str]:
    """Log in with a secret; sets the cookie of a session."""
    gate: Gate = request.app.state.gate
    identity = gate.identify_secret(credentials.secret, request)
    # A monitor reads /metrics with its secret, and has no page.
    if identity is None or identity.role == "monitor":
        raise HTTPException(401, "this secret is not known")
    gate.audit.write(who=identity.name, what="log in", origin=gate.address(request))
    cookie, session = gate.sessions.open(identity)
    response.set_cookie(
        COOKIE,
        cookie,
        httponly=True,
        samesite="strict",
        secure=request.app.state.secure_cookies,
        path="/",
    )
    return {"role": identity.role, "name": identity.name, "csrf": session.csrf}


@router.get("/api/session", tags=["session"])
def who_am_i(visit: Anyone, request: Request) -> dict[str, str | None]:
    """Say who is logged in, and the token that changes must carry."""
    session = visit.gate.session(request)
    token = None if session is None else session.csrf
    return {"role": visit.who.role, "name": visit.who.name, "csrf": token}


@router.delete("/api/session", status_code=204, tags=["session"])
def log_out(visit: Anyone, request: Request) -> Response:
    """End the session."""
    visit.gate.sessions.close(request.cookies.get(COOKIE))
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/")
    return response


def plotly_script() -> Path:
    """Return the script that plotly ships inside its package."""
    return Path(str(resources.files("plotly") / "package_data" / "plotly.min.js"))


@cache
def style_ids() -> list[str]:
    """Return the ids of plotly's style sheets.

    Pages have elements with these ids, so that plotly writes no style sheet into them.
    """
    return STYLE_ID.findall(plotly_script().read_text(encoding="utf-8"))


def _mount_pages(app: FastAPI) -> None:
    """Add the pages, their static files and plotly's script to an application."""
    templates = Jinja2Templates(HERE / "templates")
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")

    @app.get("/vendor/plotly.min.js", include_in_schema=False)
    def plotly() -> Response:
        headers = {"Cache-Control": f"public, max-age={YEAR}, immutable"}
        return FileResponse(plotly_script(), 200, headers, "text/javascript")

    @app.get("/", include_in_schema=False, response_class=HTMLResponse)
    def home(request: Request) -> Response:
        session = app.state.gate.session(request)
        if session is None:
            return templates.TemplateResponse(request, "login.html")
        return RedirectResponse(f"/{session.identity.role}", 303)

    def page(request: Request) -> Response:
        role = request.url.path.removeprefix("/")
        session = app.state.gate.session(request)
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

    for role in ("curator", "analyst"):
        app.get(f"/{role}", include_in_schema=False, response_class=HTMLResponse)(page)
