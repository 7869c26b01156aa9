"""Who gets in: roles, secrets, sessions, second tokens, rates, sizes, headers."""

from __future__ import annotations

import json
import os
import socket
import stat
from urllib.parse import quote

import pytest

from blowfish_fast.apps.server.http_guard import HEADERS, MOST_BYTES
from blowfish_fast.apps.server.keys import CURATOR, Caller, Keys, Logins, RateLimit
from blowfish_fast.errors import InputError

from .serving import AGES, http_client, serving

CURATORS_ROUTES = [
    ("POST", "/api/curator/preview", {"question": AGES, "epsilon": 1}),
    ("POST", "/api/curator/trade-off", {"question": AGES}),
    ("POST", "/api/curator/projected-graph", {"question": AGES}),
    ("POST", "/api/curator/all-tables", {"table": "people", "columns": ["age"]}),
    ("PUT", "/api/curator/tables/people/policies", {}),
    ("POST", "/api/curator/tables/people/publish", {"request": "q-nothing"}),
    ("PUT", "/api/curator/tables/people/budget", {"epsilon": 100}),
    ("GET", "/api/curator/analysts", None),
    ("POST", "/api/curator/analysts/eve", None),
    ("DELETE", "/api/curator/analysts/ann", None),
    ("PUT", "/api/curator/tables/people/allotments/ann", {"epsilon": 5}),
    ("GET", "/api/curator/data-sets", None),
    ("POST", "/api/curator/tables", {"table": {}, "epsilon": 1}),
    ("POST", "/api/curator/tables/people/verify", None),
    ("GET", "/api/curator/tables/people/series", None),
    ("GET", "/api/curator/tables/people/lost-records", None),
    ("POST", "/api/curator/tables/people/lost-records", {"up_to": 9, "epsilon": 1}),
    ("POST", "/api/curator/tables/people/raise", {"epsilon": 9, "why": "more"}),
    ("POST", "/api/curator/tables/people/close", None),
    ("POST", "/api/curator/tables/people/open", None),
    ("POST", "/api/curator/tables/people/clone", {"name": "copy", "epsilon": 1}),
    ("DELETE", "/api/curator/tables/people", None),
    ("GET", "/api/curator/people", None),
    ("POST", "/api/curator/curators/eve", None),
    ("DELETE", "/api/curator/curators/ann", None),
    ("POST", "/api/curator/monitors/eve", None),
    ("DELETE", "/api/curator/monitors/ann", None),
]


def paths_of(schema, prefix):
    return {
        (method.upper(), path)
        for path, methods in schema["paths"].items()
        for method in methods
        if path.startswith(prefix)
    }


@pytest.mark.long
def test_the_schema_describes_every_parameter_and_field(served):
    with served.client(None) as nobody:
        schema = nobody.get("/api/openapi.json").json()
    silent = [
        f"{method} {path}: {parameter['name']}"
        for path, methods in schema["paths"].items()
        for method, route in methods.items()
        for parameter in route.get("parameters", [])
        if not parameter.get("description")
    ]
    silent += [
        f"{name}.{field}"
        for name, model in schema["components"]["schemas"].items()
        for field, about in model.get("properties", {}).items()
        if not about.get("description")
    ]
    assert silent == []


@pytest.mark.long
@pytest.mark.parametrize(("method", "path", "body"), CURATORS_ROUTES)
def test_an_analyst_reaches_no_route_of_the_curator(served, method, path, body):
    with served.client("ann") as ann, served.client(None) as nobody:
        assert ann.request(method, path, json=body).status_code == 403
        assert nobody.request(method, path, json=body).status_code == 401
    with served.logged_in("ann") as (page, token):
        assert page.request(method, path, json=body, headers=token).status_code == 403
    assert served.workspace.keys.names("analyst") == ["ann", "bob"]


def test_every_route_is_guarded(served):
    """No route of the schema answers somebody without a secret, log-in excepted."""
    with served.client(None) as nobody, served.client("ann") as ann:
        schema = nobody.get("/api/openapi.json").json()
        listed = {(method, path) for method, path, _ in CURATORS_ROUTES}
        for method, path in paths_of(schema, "/api"):
            named = {"people": "monitors", "state": "close"}
            plain = path.format(table="people", name="ann", **named)
            if (method, path) != ("POST", "/api/session"):
                assert nobody.request(method, plain).status_code in (401, 422)
            if path.startswith("/api/curator"):
                assert ann.request(method, plain).status_code in (403, 422)
                upload = (method, plain) == ("POST", "/api/curator/data-sets")
                known = {(m, p.replace("eve", "ann")) for m, p in listed}
                assert upload or (method, plain) in known


@pytest.mark.parametrize(
    "header",
    ["Bearer forged", "Bearer", "Basic YTpi", "bearer \xff", "Bearer " + "x" * 5000],
)
def test_forged_secrets_are_refused_alike(served, header):
    with served.client(None) as client:
        found = client.get(
            "/api/tables", headers={"Authorization": header.encode("latin-1")}
        )
    assert found.status_code == 401
    message = found.json()["error"]["message"]
    assert message == "log in first, or send a valid bearer secret"


def test_a_wrong_secret_opens_no_session(served):
    with served.client(None) as client:
        assert client.post("/api/session", json={"secret": "no"}).status_code == 401
        assert client.post("/api/session", content=b'{"secret": "\\ud800"}').is_error
        assert client.cookies.get("blowfish_session") is None


def test_a_forged_cookie_is_refused(served):
    cookies = {"blowfish_session": "forged"}
    with http_client(served.url, cookies=cookies) as client:
        assert client.get("/api/tables").status_code == 401
        assert client.get("/curator").headers["location"] == "/"


def test_changes_need_the_second_token_of_the_session(served):
    ann, bob = served.logged_in("ann"), served.logged_in("bob")
    with ann as (client, right), bob as (_, wrong):
        body = {"question": AGES}
        assert client.post("/api/explain", json=body).status_code == 403
        assert client.post("/api/explain", json=body, headers=wrong).status_code == 403
        assert client.post("/api/explain", json=body, headers=right).status_code == 200
        assert client.get("/api/tables").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_that_another_site_makes_are_refused(served, site):
    with served.client("ann") as client:
        body = {"question": AGES}
        headers = {"Sec-Fetch-Site": site}
        assert client.post("/api/ask", json=body, headers=headers).status_code == 403
        secret = {"secret": served.secrets["ann"]}
        found = client.post("/api/session", json=secret, headers=headers)
        assert found.status_code == 403


def test_cookies_are_kept_from_scripts_and_other_sites(served):
    with served.client(None) as client:
        secret = {"secret": served.secrets["ann"]}
        cookie = client.post("/api/session", json=secret).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


@pytest.mark.long
def test_logging_out_ends_the_session_and_revoking_ends_all(own_server):
    first, other = own_server.logged_in("ann"), own_server.logged_in("ann")
    boss = own_server.client(CURATOR)
    with first as (client, token), other as (second, _), boss as curator:
        assert client.delete("/api/session", headers=token).status_code == 204
        assert client.get("/api/tables").status_code == 401
        assert second.get("/api/tables").status_code == 200
        assert curator.delete("/api/curator/analysts/ann").status_code == 204
        assert second.get("/api/tables").status_code == 401
    with own_server.client("ann") as bearer:
        assert bearer.get("/api/tables").status_code == 401


@pytest.mark.long
def test_a_new_secret_ends_the_old_one(own_server):
    before = own_server.logged_in("bob")
    with before as (session, _), own_server.client(CURATOR) as curator:
        made = curator.post("/api/curator/analysts/bob").json()
        assert session.get("/api/tables").status_code == 401
    with own_server.client("bob") as old:
        assert old.get("/api/tables").status_code == 401
        old.headers["Authorization"] = f"Bearer {made['secret']}"
        assert old.get("/api/session").json()["name"] == "bob"


@pytest.mark.long
def test_whoever_asks_too_often_has_to_wait(tmp_path):
    slow = RateLimit(capacity=3, per_second=0.001)
    logins = RateLimit(capacity=4, per_second=0.001)
    with serving(tmp_path, requests=slow, logins=logins) as served:
        with served.client("ann") as ann, served.client("bob") as bob:
            found = [ann.get("/api/tables").status_code for _ in range(4)]
            assert found == [200, 200, 200, 429]
            assert int(ann.get("/api/tables").headers["retry-after"]) > 1
            assert bob.get("/api/tables").status_code == 200
        with served.client(None) as client:
            tries = [
                client.post("/api/session", json={"secret": "no"}).status_code
                for _ in range(5)
            ]
            assert tries == [401, 401, 401, 401, 429]
            headers = {"Authorization": "Bearer forged"}
            assert client.get("/api/tables", headers=headers).status_code == 429


def test_tokens_come_back_at_a_steady_rate(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    limit = RateLimit(capacity=2, per_second=2)
    assert [limit.wait("a"), limit.wait("a")] == [0, 0]
    assert limit.wait("a") == pytest.approx(0.5)
    now[0] = 0.5
    assert limit.wait("a") == 0
    assert limit.wait("a") > 0


@pytest.mark.parametrize("path", ["/", "/api/tables", "/static/api.js", "/nowhere"])
def test_every_answer_carries_the_headers(served, path):
    with served.client(None) as client:
        found = client.get(path)
    for name, value in HEADERS.items():
        assert found.headers[name] == value
    policy = found.headers["content-security-policy"]
    assert "unsafe-inline" not in policy
    assert "unsafe-eval" not in policy
    assert "default-src 'none'" in policy
    stored = "no-store" in found.headers.get("cache-control", "")
    assert stored != path.startswith("/static")


def test_large_bodies_are_refused_whatever_the_headers_say(served):
    def pieces():
        for _ in range(MOST_BYTES // 2**16 + 2):
            yield b" " * 2**16

    with served.client("ann") as client:
        found = client.post("/api/ask", content=b" " * (MOST_BYTES + 1))
        assert found.status_code == 413
        assert client.post("/api/ask", content=pieces()).status_code == 413
        form = {"name": "big"}
        files = {"file": b"x" * (MOST_BYTES + 1)}
        sent = client.post("/api/curator/data-sets", data=form, files=files)
        assert sent.status_code == 413


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000]
)
def test_malformed_bodies_are_refused(served, body):
    with served.client("ann") as client:
        found = client.post("/api/ask", content=body)
        assert found.status_code in (400, 422)
        assert found.json()["error"]["message"]


def test_what_is_not_http_is_survived(served):
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(b"\x16\x03\x01 not http\r\n\r\n")
        assert b"400" in raw.recv(4096)
    with served.client("ann") as client:
        assert client.get("/api/tables").status_code == 200


def test_pages_belong_to_their_role(served):
    with served.logged_in("ann") as (client, _):
        assert client.get("/").headers["location"] == "/analyst"
        assert client.get("/curator").headers["location"] == "/"
        page = client.get("/analyst")
        assert page.status_code == 200
        assert "http://" not in page.text
        assert "https://" not in page.text
        assert served.secrets["ann"] not in page.text


def test_keys_are_kept_as_hashes_that_only_the_owner_reads(tmp_path):
    keys = Keys(tmp_path / "keys.json")
    secret = keys.make("analyst", "ann")
    assert secret not in (tmp_path / "keys.json").read_text()
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600
    again = Keys(tmp_path / "keys.json")
    assert again.identify(secret) == Caller("analyst", "ann")
    # A secret that was right is remembered until somebody's changes.
    assert again.identify(secret) == ("analyst", "ann")
    assert again.identify(secret) == ("analyst", "ann")
    new = again.make("analyst", "ann")
    assert again.identify(secret) is None
    assert again.identify(new) == ("analyst", "ann")
    again.revoke("analyst", "ann")
    assert again.identify(new) is None
    assert Keys(tmp_path / "keys.json").identify(secret) is None
    assert json.loads((tmp_path / "keys.json").read_text())["analyst"] == {}


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", " a", CURATOR])
def test_odd_names_get_no_secret(tmp_path, name):
    with pytest.raises(InputError):
        Keys(tmp_path / "keys.json").make("analyst", name)


@pytest.mark.long
def test_a_name_with_a_slash_is_a_name(own_server):
    names = ["ward a/b", "ward a%2Fb", "../ward", "x/close"]
    with own_server.client(CURATOR) as curator:
        for name in names:
            where = quote(name, safe="")
            made = curator.post(f"/api/curator/analysts/{where}")
            assert made.status_code == 201, made.text
            assert made.json()["name"] == name
            own_server.secrets[name] = made.json()["secret"]
            allot = f"/api/curator/tables/people/allotments/{where}"
            shared = curator.put(allot, json={"epsilon": 0.5})
            assert shared.json()["granted"] == 0.5
    # What one of them calls "1" is nobody else's, however the names are written.
    asked = set()
    for name in names[:2]:
        with own_server.client(name) as analyst:
            body = {"question": AGES, "request": "1"}
            answer = analyst.post("/api/ask", json=body).json()
            where = {"table": "people", "request": answer["request"]}
            assert analyst.get("/api/answer", params=where).status_code == 200
            asked.add(answer["request"])
    assert asked == {"r-ward a%2Fb/1", "r-ward a%252Fb/1"}
    with own_server.client(CURATOR) as curator:
        listed = {one["name"] for one in curator.get("/api/curator/analysts").json()}
        assert listed == {"ann", "bob", *names}
        for name in names:
            gone = curator.delete(f"/api/curator/analysts/{quote(name, safe='')}")
            assert gone.status_code == 204
        assert len(curator.get("/api/curator/analysts").json()) == 2
    assert own_server.workspace.tables == ["people"]


def test_sessions_end_by_themselves(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    sessions = Logins()
    cookie, session = sessions.open(Caller("analyst", "ann"))
    assert sessions.find(cookie) is session
    assert sessions.find("forged") is None
    now[0] = 9 * 3600.0
    assert sessions.find(cookie) is None
    sessions.open(Caller("analyst", "bob"))
    assert len(sessions._sessions) == 1


def test_a_revoked_secret_is_gone_from_the_disk_before_it_is_confirmed(
    tmp_path, monkeypatch
):
    keys = Keys(tmp_path / "keys.json")
    keys.make("analyst", "ann")
    flushed = []
    flush = os.fsync

    def note(number):
        flushed.append(stat.S_ISDIR(os.fstat(number).st_mode))
        flush(number)

    monkeypatch.setattr(os, "fsync", note)
    keys.revoke("analyst", "ann")
    # First the file, then the folder that names it.
    assert flushed == [False, True]
