"""The server: one process, two roles, no request to anywhere else.

    /            log in, then the page of one's role
    /api/...     the same without the page; OpenAPI schema at /api/openapi.json

Errors carry the rule and the way out, and never a word of the database: whatever was
not foreseen is "something went wrong" to the caller, and a type's name in the log.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import Field

from blowfish_fast.apps.explorer.attributes import Model

from . import analyst_routes, curator_routes, pages
from .access import COOKIE, Anyone, Gate, TheGate, log_in_limit
from .error_responses import PROBLEMS, Problem, word_errors
from .http_guard import HttpGuard
from .rate_limits import RateLimit
from .workspace import Workspace


class LogIn(Model):
    """Somebody's secret."""

    secret: Annotated[str, Field(min_length=1, max_length=200)]


def make_app(
    workspace: Workspace,
    *,
    secure_cookies: bool = False,
    requests: RateLimit | None = None,
    logins: RateLimit | None = None,
) -> FastAPI:
    """Return the application over a workspace.

    Parameters
    ----------
    workspace : Workspace
        What it serves.
    secure_cookies : bool
        Whether browsers reach it by https only.
    requests, logins : RateLimit, optional
        See `Gate`.
    """
    app = FastAPI(
        title="blowfish_fast explorer",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses={code: {"model": Problem} for code in PROBLEMS},
    )
    app.state.gate = Gate(workspace, requests, logins)
    app.state.secure_cookies = secure_cookies
    app.include_router(analyst_routes.router)
    app.include_router(curator_routes.router)
    app.include_router(_sessions())
    pages.mount(app)
    word_errors(app, f"{workspace.folder.absolute()}{os.sep}")
    app.add_middleware(HttpGuard, gate=app.state.gate)
    return app


def _sessions() -> Any:
    from fastapi import APIRouter, Depends

    router = APIRouter(prefix="/api", tags=["session"])

    @router.post("/session", dependencies=[Depends(log_in_limit)])
    def log_in(
        given: LogIn, gate: TheGate, request: Request, response: Response
    ) -> dict[str, str]:
        """Log in with a secret; sets the cookie of a session."""
        identity = gate.workspace.keys.identify(given.secret)
        if identity is None:
            raise HTTPException(401, "this secret is not known")
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

    @router.get("/session")
    def who_am_i(who: Anyone, gate: TheGate, request: Request) -> dict[str, str | None]:
        """Say who is logged in, and the token that changes must carry."""
        session = gate.sessions.find(request.cookies.get(COOKIE))
        return {
            "role": who.role,
            "name": who.name,
            "csrf": None if session is None else session.csrf,
        }

    @router.delete("/session", status_code=204)
    def log_out(who: Anyone, gate: TheGate, request: Request) -> Response:
        """End the session."""
        gate.sessions.close(request.cookies.get(COOKIE))
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, path="/")
        return response

    return router
