"""The server: one process, two roles, no request to anywhere else.

    /            log in, then the page of one's role
    /api/...     the same without the page; OpenAPI schema at /api/openapi.json
    /health      whether it is well; /metrics counts what it does

Errors carry the rule and the way out, and never a word of the database: whatever was
not foreseen is "something went wrong" to the caller, and a type's name in the log.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from fastapi import FastAPI

from . import analyst_routes, curator_routes, operations, pages
from .access import Gate
from .error_responses import PROBLEMS, Problem, word_errors
from .http_guard import HttpGuard
from .rate_limits import RateLimit
from .workspace import Workspace


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
        What it serves.
    secure_cookies : bool
        Whether browsers reach it by https only.
    requests, logins, trusted_proxies
        See `Gate`.
    """
    app = FastAPI(
        title="blowfish_fast explorer",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses={code: {"model": Problem} for code in PROBLEMS},
    )
    app.state.gate = Gate(workspace, requests, logins, trusted_proxies)
    app.state.secure_cookies = secure_cookies
    app.include_router(analyst_routes.router)
    app.include_router(curator_routes.router)
    app.include_router(operations.router)
    pages.mount(app)
    word_errors(app, f"{workspace.folder.absolute()}{os.sep}")
    app.add_middleware(HttpGuard, gate=app.state.gate)
    return app
