"""Around every request: how much may come in, which headers and words go out.

The body of a request is counted as it arrives, whatever its headers say. Errors hold
neither records nor paths of the server; of one that was not foreseen only the name of
its type is logged, and nothing is told.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import sqlite3
import time
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from blowfish_fast.apps.description.frozen_model import Model
from blowfish_fast.apps.explorer.wording import field_messages
from blowfish_fast.errors import (
    BlowfishError,
    BudgetError,
    CatalogError,
    EngineError,
    FailedDrawError,
    InputError,
    LedgerError,
    PlugInError,
    QuestionError,
    Wording,
)

from .access import SAFE_METHODS, Gate
from .workspace import MOST_UPLOADED

log = logging.getLogger(__name__)

MOST_BYTES = 2**23
"""Bytes of a request's body."""
UPLOADS = "/api/curator/data-sets"
"""Where files of records are sent, which may be larger."""
CURATORS = "/api/curator/"
"""Where the routes of curators begin; what they change is written to a log."""
ASKED_OFTEN = tuple(
    f"{CURATORS}{route}"
    for route in ("preview", "trade-off", "projected-graph", "all-tables")
)
"""What changes nothing, although it is posted."""
FORM_BYTES = 2**16
"""What a form adds to the bytes of a file."""

CACHED = ("/static/", "/vendor/")
"""Parts of pages, which are the same for everybody."""
OTHER_SITES = ("cross-site", "same-site")
"""What a browser says of a request that another site makes."""

# What plotly writes into elements when it draws maps of colours; nothing else may be.
PIXELS = "".join(
    f"image-rendering: {kind}; "
    for kind in [
        "optimizeSpeed",
        "-moz-crisp-edges",
        "-o-crisp-edges",
        "-webkit-optimize-contrast",
        "optimize-contrast",
        "crisp-edges",
        "pixelated",
    ]
)


def _hash(style: str) -> str:
    digest = hashlib.sha256(style.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        f"style-src-attr 'unsafe-hashes' {_hash('')} {_hash(PIXELS)}; "
        "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
SENT = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
"""The same as the web server takes them: names and values in bytes."""
NOT_KEPT = (b"cache-control", b"no-store")
"""Added to every answer but the parts of pages: no browser stores numbers."""


class HttpGuard:
    """What stands between the network and the application.

    It limits the bytes of a request, refuses changes that another site asks for, adds
    the headers, counts and logs.

    Parameters
    ----------
    app : ASGI application
        What answers the requests.
    gate : Gate
        It holds the counters and the logs.
    """

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self.app, self.gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its response back."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = str(scope["path"])
        request = Request(scope)
        started, since = False, time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                # Before anything is sent: whoever has an answer finds it in the log.
                seconds = time.perf_counter() - since
                status: Any = getattr(request.state, "noted_as", message["status"])
                self._note(request, path, int(status), seconds)
                guards = SENT if path.startswith(CACHED) else [*SENT, NOT_KEPT]
                message["headers"] = [*message["headers"], *guards]
            await send(message)

        try:
            sender = request.headers.get("sec-fetch-site")
            if scope["method"] not in SAFE_METHODS and sender in OTHER_SITES:
                refusal = error_body("another site sent this request")
                await JSONResponse(refusal, 403)(scope, receive, send_with_headers)
                return
            await self.app(scope, self._limit_body(scope, receive), send_with_headers)
        except Exception as problem:
            # The message of an unforeseen error could quote records.
            log.error("%s %r: %s", scope["method"], path, type(problem).__name__)
            # Where half an answer is out, the connection ends without the error.
            if not started:
                apology = error_body("something went wrong; it was noted")
                await JSONResponse(apology, 500)(scope, receive, send_with_headers)

    def _note(self, request: Request, path: str, status: int, seconds: float) -> None:
        """Count a request, and log it unless it asks for a part of a page."""
        self.gate.metrics.add("blowfish_requests_total", status=str(status))
        # The pattern of a route, never the path: names of tables stay out.
        route = str(getattr(request.scope.get("route"), "path", "") or "other")
        self.gate.metrics.observe("blowfish_request_seconds", seconds, route=route)
        if path.startswith((*CACHED, "/health", "/metrics")):
            return
        who = getattr(request.state, "who", None)
        changes = request.method not in SAFE_METHODS and path not in ASKED_OFTEN
        if path.startswith(CURATORS) and changes and status < 400:
            what = f"{request.method} {path.removeprefix(CURATORS)}"
            self.gate.audit.write(who=who, what=what)
        self.gate.access.write(
            who=who,
            origin=self.gate.address(request),
            method=request.method,
            path=path,
            status=status,
            ms=round(1000 * seconds, 1),
        )

    def _limit_body(self, scope: Scope, receive: Receive) -> Receive:
        limit = MOST_BYTES
        if scope["path"] == UPLOADS and self.gate.is_curator(Request(scope)):
            limit = MOST_UPLOADED + FORM_BYTES
        arrived_bytes = 0

        async def counted() -> Message:
            nonlocal arrived_bytes
            message = await receive()
            arrived_bytes += len(message.get("body", b""))
            if arrived_bytes > limit:
                raise HTTPException(413, f"a request has at most {limit:,} bytes")
            return message

        return counted


STATUS: list[tuple[type[BlowfishError], int]] = [
    (BudgetError, 402),
    (CatalogError, 404),
    (LedgerError, 409),
    (EngineError, 503),
    (PlugInError, 503),
    (InputError, 422),
    (BlowfishError, 400),
]
"""Which status a deliberate error has; the first that fits."""
PROBLEMS = (400, 401, 402, 403, 404, 409, 413, 422, 429, 503)
"""Statuses of errors."""
WORDINGS = {
    # Words of somebody else's exception are for the curator, who finds them by asking
    # the same from Python.
    "plug_in_failed": Wording(
        received="",
        way_out="It is no fault of the question, and nothing was charged: tell the "
        "curator",
    ),
    "policy_needs_one_attribute": Wording(
        way_out="State a policy for each attribute by its name"
    ),
    "value_units_need_edges": Wording(
        way_out='Give the attribute edges, or state theta in cells: "unit": "cells"'
    ),
    "theta_below_one_cell": Wording(
        way_out='Below that no two cells are joined; "unit": "value" measures by the '
        "edges of the attribute"
    ),
    "too_many_edges_for_extra_cells": Wording(
        way_out='Use coarser cells, "kind": "full", or "extras_joined": "end"'
    ),
}
"""Ways out that can be sent, by the code of an error, where the library's is Python."""


class ErrorFields(Model):
    """What went wrong: the rule, what came instead, and the way out."""

    kind: str | None = None
    """The kind of error, by the name of its class."""
    code: str | None = None
    """A word for programs; it never changes."""
    rule: str
    """What is required."""
    received: str | None = None
    """What came instead."""
    way_out: str | None = None
    """What to do."""
    message: str
    """All of it in one sentence."""
    fields: list[dict[str, str]] | None = None
    """Each field of the request that is wrong, with a sentence."""


class Problem(Model):
    """The body of every response that is an error."""

    error: ErrorFields
    """What went wrong."""


def error_body(problem: BlowfishError | str, hidden: str = "") -> dict[str, Any]:
    """Return the body of an error response; the text `hidden` is taken out of it.

    Parameters
    ----------
    problem : BlowfishError or str
        An error with its parts, or a plain sentence.
    hidden : str
        A text that is taken out of every part: the path of the server's folder.

    Returns
    -------
    dict
        The JSON object with all fields of `ErrorFields` under "error".
    """
    if isinstance(problem, str):
        return {"error": ErrorFields(rule=problem, message=problem).model_dump()}
    fields = problem.to_dict(WORDINGS)
    if hidden:
        fields = {
            name: None if text is None else text.replace(hidden, "")
            for name, text in fields.items()
        }
    return {"error": fields}


def word_errors(app: FastAPI, folder: str) -> None:
    """Answer every error of an application; no path below `folder` is told.

    Parameters
    ----------
    app : FastAPI
        It gets a handler for each kind of error.
    folder : str
        The path of the server's folder, which no message tells.
    """

    @app.exception_handler(BlowfishError)
    def answer_deliberate(request: Request, problem: BlowfishError) -> JSONResponse:
        if isinstance(problem, FailedDrawError):
            # What a charge has come to: only whoever asked is told that it failed.
            request.state.noted_as = 200
        if isinstance(problem.__cause__, sqlite3.Error):
            # SQLite's words: "database or disk is full", "database is locked".
            log.error(
                "a ledger failed at %s %s: %s",
                request.method,
                request.url.path,
                problem.__cause__,
            )
            unusable = LedgerError("the ledger cannot be used now; tell the curator")
            return JSONResponse(error_body(unusable), 503)
        status = next(code for kind, code in STATUS if isinstance(problem, kind))
        return JSONResponse(error_body(problem, folder), status)

    @app.exception_handler(RequestValidationError)
    def answer_malformed(_: Request, problem: RequestValidationError) -> JSONResponse:
        fields = field_messages(problem.errors(), problem.body)
        sentences = dict.fromkeys(message["message"] for message in fields)
        refusal = QuestionError("; ".join(sentences), code="malformed_request")
        body = error_body(refusal)
        body["error"]["fields"] = fields
        return JSONResponse(body, 422)

    @app.exception_handler(AnyHTTPException)
    def answer_refusal(_: Request, problem: AnyHTTPException) -> JSONResponse:
        response = JSONResponse(error_body(str(problem.detail)), problem.status_code)
        response.headers.update(problem.headers or {})
        return response
