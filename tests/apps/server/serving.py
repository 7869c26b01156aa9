"""A real server on a port of its own, over a small table with awkward values."""

from __future__ import annotations

import ssl
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from blowfish_fast.apps.server.keys import CURATOR, RateLimit
from blowfish_fast.apps.server.web_app import make_app
from blowfish_fast.apps.server.workspace import Workspace
from tests.apps.duckdb_tables import insert_rows

PATIENCE = 300
"""Seconds: a first question may have to wait until kernels are compiled."""
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Servers here speak plain HTTP; without it every client reads all authorities."""
PEOPLE = 400
SECRET_VALUE = "Mallory'); DROP TABLE people; --"
"""A value of the data that must not show up in any error or log."""

TABLE = {
    "name": "people",
    "attributes": [
        {
            "name": "age",
            "cells": {"start": 0, "stop": 64, "width": 1},
            "missing": "none",
        },
        {"name": "sex", "levels": ["f", "m"]},
        {"name": "pay", "column": 'pay "net"', "edges": [0, 1000, 2000, 4000]},
    ],
}
AGES = {
    "kind": "histogram",
    "table": "people",
    "attribute": "age",
    "width": 4,
    "cost": {"alpha": 40, "beta": 0.05},
}
TOTALS = {**AGES, "kind": "cumulative"}


def make_database(path: Path) -> None:
    import duckdb

    connection = duckdb.connect(str(path))
    connection.execute(
        'CREATE TABLE people (age DOUBLE NOT NULL, sex TEXT, "pay ""net""" DOUBLE)'
    )
    rows = [
        (
            float(at * 7 % 64),
            [None, "f", "m", SECRET_VALUE][at % 4],
            None if at % 5 == 0 else float(at * 37 % 5000) - 300.0,
        )
        for at in range(PEOPLE)
    ]
    insert_rows(connection, "people", rows)
    # Other people: a table of its own, so that it may have a budget of its own.
    connection.execute("CREATE TABLE others AS SELECT * FROM people")
    connection.close()


def http_client(url: str, **given) -> httpx.Client:
    """Return a client of a server here."""
    return httpx.Client(base_url=url, timeout=PATIENCE, verify=NO_CERTIFICATES, **given)


@dataclass
class Served:
    """A running server and the secrets of its people."""

    url: str
    workspace: Workspace
    secrets: dict[str, str]

    def client(self, name: str | None) -> httpx.Client:
        """Return an HTTP client with someone's bearer secret, or with none."""
        headers = {}
        if name is not None:
            headers["Authorization"] = f"Bearer {self.secrets[name]}"
        return http_client(self.url, headers=headers)

    @contextmanager
    def logged_in(self, name: str):
        """Lend a client with a session's cookie, and the session's second token."""
        with http_client(self.url) as client:
            found = client.post("/api/session", json={"secret": self.secrets[name]})
            assert found.status_code == 200, found.text
            yield client, {"X-CSRF-Token": found.json()["csrf"]}


def make_workspace(folder: Path, *, epsilon: float = 5.0) -> Workspace:
    """Return a workspace with the table; made on the first call for a folder."""
    database = folder / "people.duckdb"
    fresh = not database.exists()
    if fresh:
        make_database(database)
    workspace = Workspace(folder / "state", database=database, samples=0)
    if fresh:
        workspace.add_table(TABLE, epsilon=epsilon)
    return workspace


@contextmanager
def running(app):
    """Serve an application on a free port."""
    import uvicorn

    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_level="critical", ws="none", http="h11"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


@contextmanager
def serving(folder: Path, *, epsilon: float = 5.0, requests=None, logins=None):
    """Serve the table with a curator, and analysts ann (0.8 of it) and bob (none)."""
    workspace = make_workspace(folder, epsilon=epsilon)
    free = RateLimit(capacity=1e9, per_second=1e9)
    app = make_app(workspace, requests=requests or free, logins=logins or free)
    secrets = {
        CURATOR: workspace.keys.make("curator", CURATOR),
        "ann": workspace.keys.make("analyst", "ann"),
        "bob": workspace.keys.make("analyst", "bob"),
    }
    workspace.explorer("people").ledger.allot("ann", 0.8 * epsilon)
    try:
        with running(app) as url:
            yield Served(url, workspace, secrets)
    finally:
        workspace.close()
