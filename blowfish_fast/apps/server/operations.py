"""For whoever runs the server: is it well, what has it done, who logs in.

GET /health     no log-in; ok, or degraded while a database is away
GET /metrics    Prometheus text, for a monitor's or a curator's secret
"""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import Field

from blowfish_fast.apps.explorer.attributes import Model

from .access import COOKIE, Anyone, TheGate, Work

router = APIRouter(tags=["operations"])

SECONDS_KEPT = 5.0
"""How long the health is told without asking the databases again."""


class LogIn(Model):
    """Somebody's secret."""

    secret: Annotated[str, Field(min_length=1, max_length=200)]


@router.get("/health")
def health(work: Work, request: Request, response: Response) -> dict[str, str]:
    """Say whether the server and its databases are well. Needs no log-in.

    Degraded: a database is away; stored answers are still given.
    """
    state = request.app.state
    now = time.monotonic()
    told_at, status = getattr(state, "health", (-SECONDS_KEPT, ""))
    if now - told_at >= SECONDS_KEPT:
        status = "degraded" if work.away() else "ok"
        state.health = now, status
    return {"status": status}


@router.get(
    "/metrics",
    response_model=None,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def show_metrics(who: Anyone, work: Work, gate: TheGate) -> PlainTextResponse:
    """Return counters of requests, questions and budgets, as Prometheus reads them."""
    if who.role == "analyst":
        raise HTTPException(403, "this is for monitors and curators")
    return PlainTextResponse(gate.metrics.text(work))


@router.post("/api/session", tags=["session"])
def log_in(
    given: LogIn, gate: TheGate, request: Request, response: Response
) -> dict[str, str]:
    """Log in with a secret; sets the cookie of a session."""
    identity = gate.known(given.secret, request)
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
def who_am_i(who: Anyone, gate: TheGate, request: Request) -> dict[str, str | None]:
    """Say who is logged in, and the token that changes must carry."""
    session = gate.sessions.find(request.cookies.get(COOKIE))
    return {
        "role": who.role,
        "name": who.name,
        "csrf": None if session is None else session.csrf,
    }


@router.delete("/api/session", status_code=204, tags=["session"])
def log_out(who: Anyone, gate: TheGate, request: Request) -> Response:
    """End the session."""
    gate.sessions.close(request.cookies.get(COOKIE))
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/")
    return response
