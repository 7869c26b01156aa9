"""``blowfish serve``: a workspace that opens again, and a server that answers."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.commands.serve import (
    _by_name,
    open_workspace,
    run_serve,
)
from blowfish_fast.errors import BlowfishError, InputError
from tests.apps.server.serving import TABLE, make_database


def opened(folder, **chosen):
    plain = {"demo": False, "database": None, "tables": None, "budget": {}}
    return open_workspace(folder, **{**plain, **chosen})


@pytest.mark.long
def test_secrets_are_made_once_and_renewed_on_demand(tmp_path):
    make_database(tmp_path / "people.duckdb")
    tables = tmp_path / "tables.json"
    tables.write_text(json.dumps([TABLE]))
    chosen = {"database": str(tmp_path / "people.duckdb"), "tables": tables}
    workspace, secrets = opened(tmp_path / "state", **chosen)
    assert workspace.tables == ["people"]
    assert list(secrets) == ["the curator"]
    assert workspace.explorer("people").ledger.epsilon == 2
    workspace.close()
    terms = {"budget": {"epsilon": 1, "delta": "1e-9"}}
    workspace, _ = opened(tmp_path / "in rho", **chosen, **terms)
    assert float(workspace.explorer("people").ledger.rho) == 0.014973057673
    workspace.close()
    workspace, none = opened(tmp_path / "state", **chosen)
    assert none == {}
    assert workspace.keys.identify(secrets["the curator"]).role == "curator"
    workspace.close()
    workspace, renewed = opened(tmp_path / "state", new_secret=True, **chosen)
    assert workspace.keys.identify(secrets["the curator"]) is None
    assert workspace.keys.identify(renewed["the curator"]).role == "curator"
    workspace.close()


@pytest.mark.parametrize("content", ["{", "{}", "3"])
def test_descriptions_that_cannot_be_read_are_told(tmp_path, content):
    tables = tmp_path / "tables.json"
    tables.write_text(content)
    with pytest.raises(InputError, match=r"tables\.json"):
        opened(tmp_path / "state", tables=tables)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"database": "mysql://root@db/clinic"}, "a database is"),
        ({"database": "people.xls"}, "a database is"),
        ({"database": "people.xlsx"}, "there is no file"),
        ({"database": "nothing/*.parquet"}, "Parquet files"),
        ({"database": "postgres://reader@db"}, "names a database"),
        ({"database": "nothing.duckdb"}, "there is no database"),
        ({"database": "damaged.duckdb"}, "could not be opened"),
        ({"tables": [{**TABLE, "name": "no such"}]}, "named by a letter"),
        ({"tables": [{**TABLE, "source": "nobody"}]}, "no database has a table"),
        ({"tables": [{"name": "people"}]}, "attributes"),
        ({"budget": {"epsilon": -1}}, "epsilon"),
        ({"budget": {"rho": 0}}, "rho must lie"),
    ],
)
def test_everything_is_checked_before_a_secret_is_made(
    tmp_path, monkeypatch, change, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged.duckdb").write_text("no database")
    make_database(tmp_path / "people.duckdb")
    chosen = {"database": str(tmp_path / "people.duckdb"), **change}
    if isinstance(chosen.get("tables"), list):
        path = tmp_path / "tables.json"
        path.write_text(json.dumps(chosen["tables"]))
        chosen["tables"] = path
    with pytest.raises(BlowfishError, match=words):
        opened(tmp_path / "state", **chosen)
    assert not (tmp_path / "state" / "keys.json").exists()


def test_a_password_is_never_on_the_command_line():
    from blowfish_fast.apps.cli.commands.serve import LOG_LINES, _by_name
    from blowfish_fast.errors import InputError

    with pytest.raises(InputError, match="PGPASSFILE") as refused:
        _by_name(["main=postgres://reader:hush@host/clinic"])
    assert "hush" not in str(refused.value)
    assert _by_name(["postgres://reader@host/clinic"])
    assert "%(asctime)s" in LOG_LINES["formatters"]["timed"]["format"]


def test_databases_are_named_where_there_are_several():
    assert _by_name(["a.duckdb"]) == {"main": "a.duckdb"}
    assert _by_name(["one=a.csv", "two=postgres://x@y/z?a=b"]) == {
        "one": "a.csv",
        "two": "postgres://x@y/z?a=b",
    }
    with pytest.raises(InputError, match="have names"):
        _by_name(["a.csv", "b.csv"])


def test_a_proxy_is_an_address(tmp_path, monkeypatch):
    monkeypatch.setenv("BLOWFISH_TRUSTED_PROXIES", "10.0.0.1, proxy.example")
    chosen = {"database": None, "tables": None, "epsilon": 2.0, "https": False}
    chosen |= {"host": "127.0.0.1", "port": 0, "new_secret": False}
    with pytest.raises(InputError, match="addresses or networks"):
        run_serve(folder=tmp_path / "x", demo=True, **chosen)
    assert not (tmp_path / "x").exists()


def test_a_server_needs_a_folder():
    with pytest.raises(InputError, match="--folder"):
        opened(None)


@pytest.mark.parametrize("port", [-1, 65536, "taken"])
def test_no_secret_is_made_where_nobody_can_listen(port, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        if port == "taken":
            port = other.getsockname()[1]
        chosen = {"database": None, "tables": None, "epsilon": 2.0, "https": False}
        chosen |= {"host": "127.0.0.1", "port": port, "new_secret": False}
        with pytest.raises(InputError, match="port"):
            run_serve(folder=tmp_path / "demo", demo=True, **chosen)
    assert not (tmp_path / "demo").exists()


@pytest.mark.long
def test_address_and_secrets_are_told_as_json(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, sockets: sockets[0].close())
    # The server's way with threads would outlive this test.
    monkeypatch.setattr("sys.setswitchinterval", lambda _: None)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    chosen = {"database": None, "tables": None, "epsilon": 2.0, "host": "127.0.0.1"}
    chosen |= {"port": 0, "https": False, "new_secret": False, "as_json": True}
    run_serve(folder=tmp_path / "demo", demo=True, **chosen)
    found = json.loads(capsys.readouterr().out)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", found["address"])
    assert set(found["secrets"]) == {"curator", "ann"}


ONE_THREAD = """
import os, sys
from blowfish_fast.apps.cli.commands.serve import run_serve
from blowfish_fast.errors import InputError
assert "numpy" not in sys.modules
try:
    run_serve(port=0)
except InputError:
    print(os.environ["OPENBLAS_NUM_THREADS"])
"""


@pytest.mark.long
@pytest.mark.parametrize("stated", ["", "2"])
def test_products_of_matrices_take_one_thread_unless_stated(stated):
    plain = {one: os.environ[one] for one in os.environ if "NUM_THREADS" not in one}
    about = plain | ({"OPENBLAS_NUM_THREADS": stated} if stated else {})
    command = [sys.executable, "-c", ONE_THREAD]
    told = subprocess.run(command, env=about, capture_output=True, text=True)
    assert told.stdout.strip() == (stated or "1"), told.stderr


@pytest.mark.long
def test_the_demo_starts_and_answers(tmp_path):
    command = [
        *(sys.executable, "-m", "blowfish_fast", "serve", "--demo"),
        *("--port", "0", "--folder", str(tmp_path / "demo")),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        secrets = dict(re.findall(r"secret of (.*): (\S+)", "".join(lines)))
        url = re.search(r"http://\S+", lines[2])[0]
        for _ in range(200):
            try:
                httpx.get(url, timeout=5)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        with bf.connect(url, secrets["the analyst ann"]) as ann:
            salaries, tests, visits = ann.tables()
            assert (salaries["name"], visits["name"]) == ("salaries", "visits")
            assert salaries["remaining"] == 1.0
            assert "with all her records" in visits["promise"]
            assert visits["shares_with"] == [tests["name"]] == ["tests"]
        with bf.connect(url, secrets["the curator"]) as curator:
            question = {
                "kind": "histogram",
                "table": "salaries",
                "attribute": "department",
                "cost": {"epsilon": 1},
            }
            assert sum(curator.preview(question, epsilon=1)["truth"]) < 50_000
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()
