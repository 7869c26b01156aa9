"""Around every request: how much may come in, which headers and words go out.

    request --limit--> application --headers--> response
                            |
                            +-- unforeseen error: a type's name in the log, no words

The body of a request is counted as it arrives, whatever its headers say. Only a known
curator may send the many bytes of a data set.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fastapi import HTTPException, Request
from starlette.datastructures import MutableHeaders

from .access import SAFE_METHODS, Gate
from .error_responses import error_body
from .workspace import MOST_UPLOADED

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BYTES = 2**23
"""Bytes of a request's body."""

UPLOADS = "/api/curator/data-sets"
CURATORS = "/api/curator/"
ASKED_OFTEN = tuple(
    f"{CURATORS}{one}" for one in ("preview", "trade-off", "projected-graph")
)
"""What changes nothing, although it is posted."""
FORM_BYTES = 2**16
"""What a form adds to the bytes of a file."""

CACHED = ("/static/", "/vendor/")

# What plotly writes into elements when it draws maps of colours; nothing else may be.
PIXELS = "".join(
    f"image-rendering: {kind}; "
    for kind in (
        "optimizeSpeed",
        "-moz-crisp-edges",
        "-o-crisp-edges",
        "-webkit-optimize-contrast",
        "optimize-contrast",
        "crisp-edges",
        "pixelated",
    )
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


class HttpGuard:
    """What stands between the network and the application."""

    def __init__(self, app: Application, gate: Gate) -> None:
        self.app, self.gate = app, gate

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
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
                self._note(request, path, int(message["status"]), seconds)
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if not path.startswith(CACHED):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        try:
            if self._from_elsewhere(scope):
                await _refuse(send_with_headers, 403, "another site sent this request")
                return
            await self.app(scope, self._limit_body(scope, receive), send_with_headers)
        except Exception as problem:
            # The message of an unforeseen error could quote records.
            log.error("%s %r: %s", scope["method"], path, type(problem).__name__)
            # Where half an answer is out, the connection ends without the error.
            if not started:
                await _refuse(
                    send_with_headers, 500, "something went wrong; it was noted"
                )

    def _note(self, request: Request, path: str, status: int, seconds: float) -> None:
        """Count a request, and log it unless it asks for a part of a page."""
        self.gate.metrics.add("blowfish_requests_total", status=str(status))
        self.gate.metrics.add("blowfish_request_seconds_sum", seconds)
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

    def _from_elsewhere(self, scope: Message) -> bool:
        """Return whether a browser says that another site makes the request."""
        if scope["method"] in SAFE_METHODS:
            return False
        headers = dict(scope["headers"])
        return headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site")

    def _limit_body(self, scope: Message, receive: Receive) -> Receive:
        limit = MOST_BYTES
        if scope["path"] == UPLOADS and self.gate.is_curator(Request(scope)):
            limit = MOST_UPLOADED + FORM_BYTES
        came = 0

        async def counted() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > limit:
                raise HTTPException(413, f"a request has at most {limit:,} bytes")
            return message

        return counted


async def _refuse(send: Send, status: int, words: str) -> None:
    body = json.dumps(error_body(words)).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
