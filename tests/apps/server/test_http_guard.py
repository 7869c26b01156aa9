"""What is sent when an application fails, before and after its answer has begun."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from blowfish_fast.apps.server.http_guard import STATUS, HttpGuard, error_body
from blowfish_fast.errors import PlugInError
from blowfish_fast.mechanisms.base import blamed_on

SCOPE = {"type": "http", "method": "GET", "path": "/api/tables", "headers": []}


@pytest.mark.parametrize(
    ("begun", "statuses"), [(False, [500]), (True, [200])], ids=["before", "after"]
)
def test_an_answer_that_has_begun_is_not_followed_by_another(begun, statuses):
    sent, noted = [], []

    async def app(scope, receive, send):
        if begun:
            start = {"type": "http.response.start", "status": 200, "headers": []}
            await send(start)
        raise ValueError("a record")

    async def send(message):
        sent.append(message)

    gate = SimpleNamespace(
        metrics=SimpleNamespace(
            add=lambda *_, **__: None, observe=lambda *_, **__: None
        ),
        access=SimpleNamespace(write=lambda **said: noted.append(said)),
        address=lambda request: "here",
    )
    asyncio.run(HttpGuard(app, gate)(dict(SCOPE), None, send))
    assert [one["status"] for one in sent if "status" in one] == statuses
    assert len(noted) == 1
    assert not any(b"a record" in one.get("body", b"") for one in sent)


def test_a_fault_of_a_plug_in_is_named_without_its_own_words():
    with pytest.raises(PlugInError) as fault, blamed_on(lambda: ["mine:Widths"]):
        raise KeyError("/home/curator/secret")
    told = error_body(fault.value)["error"]
    assert told["rule"] == "mine:Widths, defined outside blowfish_fast, failed"
    assert told["received"] is None
    assert "tell the curator" in told["message"]
    assert "secret" not in str(told)
    assert next(code for kind, code in STATUS if isinstance(fault.value, kind)) == 503
