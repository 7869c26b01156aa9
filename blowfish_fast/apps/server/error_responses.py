"""Errors over HTTP: a status, and fields that a program can read.

    {"error": {"kind": "PolicyError", "code": "value_units_need_edges",
               "rule": ..., "received": ..., "way_out": ..., "message": ...}}

`message` is the whole sentence, for people. Fields hold neither records nor paths of
the server. Where the library's way out is Python, a table by code has that of the API.
"""

from __future__ import annotations

import logging
import sqlite3
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from blowfish_fast.apps.explorer.attributes import Model
from blowfish_fast.errors import (
    BlowfishError,
    BudgetError,
    CatalogError,
    EngineError,
    InputError,
    LedgerError,
    QuestionError,
    Wording,
)

log = logging.getLogger(__name__)

STATUS: list[tuple[type[BlowfishError], int]] = [
    (BudgetError, 402),
    (CatalogError, 404),
    (LedgerError, 409),
    (EngineError, 503),
    (InputError, 422),
]
"""Which status a deliberate error has; the first that fits."""

PROBLEMS = (400, 401, 402, 403, 404, 409, 413, 422, 429, 503)
"""Statuses of errors."""

WORDINGS = {
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
"""Ways out that can be sent, by the code of an error."""


FIELDS = {
    "alpha": "largest error (alpha)",
    "beta": "probability of more (beta)",
    "q": "parts",
    "width": "cells per bin",
    "granularity": "cells per bin",
    "ranges": "stretches",
    "rectangles": "boxes",
    "why": "the reason",
}
"""What people call a field, where its name is another."""


def _field(place: tuple[Any, ...]) -> str:
    """Return the field that a message is about: the last name on the way to it."""
    names = [str(step) for step in place[1:] if isinstance(step, str)]
    plain = [one for one in names if one == one.lower()]
    return plain[-1] if plain else ""


class ErrorFields(Model):
    """What went wrong: the rule, what came instead, and the way out."""

    kind: str | None = None
    code: str | None = None
    rule: str
    received: str | None = None
    way_out: str | None = None
    message: str
    fields: list[dict[str, str]] | None = None


class Problem(Model):
    """The body of every response that is an error."""

    error: ErrorFields


def error_body(problem: BlowfishError | str, hidden: str = "") -> dict[str, Any]:
    """Return the body of an error response; the text `hidden` is taken out of it.

    An error of the server itself is a plain sentence, without kind and code.
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
    """Answer every error of an application; no path below `folder` is told."""

    @app.exception_handler(BlowfishError)
    def answer_deliberate(_: Request, problem: BlowfishError) -> JSONResponse:
        if isinstance(problem.__cause__, sqlite3.Error):
            log.error("a ledger failed: %s", type(problem.__cause__).__name__)
            unusable = LedgerError("the ledger cannot be used now; tell the curator")
            return JSONResponse(error_body(unusable), 503)
        status = next((code for kind, code in STATUS if isinstance(problem, kind)), 400)
        return JSONResponse(error_body(problem, folder), status)

    @app.exception_handler(RequestValidationError)
    def answer_malformed(_: Request, problem: RequestValidationError) -> JSONResponse:
        fields = {_field(one["loc"]): one["msg"] for one in reversed(problem.errors())}
        told = [
            f"{FIELDS.get(name, name)}: {message}" if name else message
            for name, message in reversed(fields.items())
        ]
        body = error_body(QuestionError("; ".join(told), code="malformed_request"))
        body["error"]["fields"] = [
            {"field": name, "message": message} for name, message in fields.items()
        ]
        return JSONResponse(body, 422)

    @app.exception_handler(HTTPException)
    def answer_refusal(_: Request, problem: HTTPException) -> JSONResponse:
        response = JSONResponse(error_body(str(problem.detail)), problem.status_code)
        response.headers.update(problem.headers or {})
        return response
