"""Running it: health, metrics, logs, the lock, proxies, accounts, tables, backups."""

from __future__ import annotations

import json

import pytest

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.apps.server import backups
from blowfish_fast.apps.server import workspace as workspace_module
from blowfish_fast.apps.server.access import Gate
from blowfish_fast.apps.server.keys import CURATOR, RateLimit
from blowfish_fast.apps.server.workspace import Workspace
from blowfish_fast.errors import InputError

from .serving import (
    AGES,
    PEOPLE,
    SECRET_VALUE,
    TABLE,
    TOTALS,
    make_database,
    make_workspace,
    serving,
)


def lines(workspace, name):
    text = (workspace.folder / "logs" / name).read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.long
def test_health_needs_no_log_in_and_tells_no_names(served):
    with served.client(None) as anybody:
        found = anybody.get("/health")
    assert found.json() == {"status": "ok"}


@pytest.mark.long
def test_health_knows_a_full_disk(own_server, monkeypatch):
    def full(_number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(workspace_module.os, "fsync", full)
    with own_server.client(None) as anybody:
        found = anybody.get("/health")
    assert found.status_code == 503
    assert found.json() == {"status": "full"}


@pytest.mark.long
def test_metrics_are_for_monitors_and_curators(own_server):
    with own_server.client(CURATOR) as curator, own_server.client("ann") as ann:
        made = curator.post("/api/curator/monitors/prometheus").json()
        own_server.secrets["prometheus"] = made["secret"]
        ann.post("/api/ask", json={"question": AGES})
        ann.post("/api/ask", json={"question": AGES})
        assert ann.get("/metrics").status_code == 403
    with own_server.client("prometheus") as monitor:
        text = monitor.get("/metrics").text
        assert 'blowfish_questions_total{outcome="charged"} 1' in text
        assert 'blowfish_questions_total{outcome="replayed"} 1' in text
        assert 'blowfish_budget{table="people",currency="epsilon"} 5' in text
        assert "# TYPE blowfish_requests_total counter" in text
        assert "# TYPE blowfish_request_seconds histogram" in text
        ask = [line for line in text.splitlines() if 'route="/api/ask"' in line]
        within = [int(line.split()[-1]) for line in ask if "_bucket" in line]
        assert within == sorted(within)
        assert within[-1] == 2
        assert 'blowfish_request_seconds_count{route="/api/ask"} 2' in ask
        assert 'le="+Inf"' in ask[len(within) - 1]
        assert "blowfish_disk_free_bytes" in text
        # A monitor sees numbers and nothing else.
        assert monitor.get("/api/tables").status_code == 403
        assert monitor.post("/api/explain", json={"question": AGES}).status_code == 403
        assert monitor.get("/api/curator/people").status_code == 403
        secret = {"secret": own_server.secrets["prometheus"]}
        assert monitor.post("/api/session", json=secret).status_code == 401
    with own_server.client(None) as anybody:
        assert anybody.get("/metrics").status_code == 401


@pytest.mark.long
def test_logs_say_who_asked_what_at_which_cost_and_never_data(own_server):
    with own_server.client("ann") as ann, own_server.client(CURATOR) as curator:
        cost = ann.post("/api/ask", json={"question": AGES}).json()["epsilon"]
        ann.post("/api/ask", json={"question": {**AGES, "cost": {"epsilon": 999}}})
        curator.post("/api/curator/preview", json={"question": AGES, "epsilon": 0.1})
        curator.put("/api/curator/tables/people/allotments/bob", json={"epsilon": 1})
    audit = lines(own_server.workspace, "audit.log")
    asked = [one for one in audit if one["what"] == "ask"]
    assert asked[0]["who"] == "ann"
    assert asked[0]["cost"] == cost
    assert asked[1]["refused"] == "BudgetError"
    assert "remains; nothing was charged" in asked[1]["reason"]
    assert {"who": CURATOR, "what": "PUT tables/people/allotments/bob"}.items() <= (
        audit[-1].items()
    )
    access = lines(own_server.workspace, "access.log")
    assert [one["status"] for one in access] == [200, 402, 200, 200]
    assert access[0]["who"] == "ann"
    kept = "".join(
        (own_server.workspace.folder / "logs" / name).read_text()
        for name in ("audit.log", "access.log")
    )
    assert SECRET_VALUE not in kept
    assert "values" not in kept
    mode = (own_server.workspace.folder / "logs" / "audit.log").stat().st_mode
    assert mode & 0o077 == 0


def test_two_servers_never_share_a_folder(tmp_path):
    first = make_workspace(tmp_path)
    with pytest.raises(InputError, match="another server uses the folder"):
        make_workspace(tmp_path)
    first.close()
    make_workspace(tmp_path).close()


class _Request:
    def __init__(self, host, forwarded=""):
        self.client = type("Client", (), {"host": host})()
        self.headers = {"x-forwarded-for": forwarded}


@pytest.mark.long
@pytest.mark.parametrize(
    ("host", "forwarded", "found"),
    [
        # Nobody is believed who is not trusted.
        ("203.0.113.9", "10.1.1.1", "203.0.113.9"),
        ("10.0.0.5", "198.51.100.7", "198.51.100.7"),
        # What stands before the nearest stranger was written by the stranger.
        ("10.0.0.5", "1.2.3.4, 198.51.100.7", "198.51.100.7"),
        ("10.0.0.5", "198.51.100.7, 10.0.0.6", "198.51.100.7"),
        ("10.0.0.5", "", "10.0.0.5"),
        ("10.0.0.5", "nonsense, 198.51.100.7", "198.51.100.7"),
    ],
)
def test_only_trusted_proxies_say_who_is_behind_them(tmp_path, host, forwarded, found):
    workspace = make_workspace(tmp_path)
    gate = Gate(workspace, trusted_proxies=["10.0.0.0/24"])
    assert gate.address(_Request(host, forwarded)) == found
    workspace.close()


@pytest.mark.long
def test_whoever_guesses_behind_an_address_locks_nobody_out(tmp_path):
    strict = RateLimit(capacity=3, per_second=0.001)
    with serving(tmp_path, logins=strict) as served:
        with served.client(None) as anybody:
            guesses = [
                anybody.post("/api/session", json={"secret": "guess"}).status_code
                for _ in range(5)
            ]
        assert guesses == [401, 401, 401, 429, 429]
        with served.logged_in("ann") as (ann, _):
            assert ann.get("/api/session").json()["name"] == "ann"


@pytest.mark.long
def test_curators_are_several_and_one_stays(own_server):
    with own_server.client(CURATOR) as curator:
        made = curator.post("/api/curator/curators/cleo").json()
        own_server.secrets["cleo"] = made["secret"]
        refused = curator.post("/api/curator/analysts/cleo")
        assert refused.status_code == 422
    with own_server.client("cleo") as cleo:
        assert cleo.get("/api/curator/people").json()["curator"] == ["cleo", CURATOR]
        assert cleo.delete(f"/api/curator/curators/{CURATOR}").status_code == 204
        last = cleo.delete("/api/curator/curators/cleo")
        assert last.status_code == 422
        assert "only curator" in last.json()["error"]["message"]


@pytest.mark.long
def test_a_closed_table_gives_stored_answers_only(own_server):
    with own_server.client("ann") as ann, own_server.client(CURATOR) as curator:
        first = ann.post("/api/ask", json={"question": AGES}).json()
        told = curator.post("/api/curator/tables/people/close").json()
        assert told["closed"]
        again = ann.post("/api/ask", json={"question": AGES}).json()
        assert again["values"] == first["values"]
        refused = ann.post("/api/ask", json={"question": TOTALS})
        assert refused.status_code == 409
        assert "was closed" in refused.json()["error"]["message"]
        curator.post("/api/curator/tables/people/open")
        assert ann.post("/api/ask", json={"question": TOTALS}).status_code == 200


@pytest.mark.long
def test_a_clone_has_other_policies_and_tells_what_was_spent_before(own_server):
    with own_server.client("ann") as ann, own_server.client(CURATOR) as curator:
        spent = ann.post("/api/ask", json={"question": AGES}).json()["epsilon"]
        second = {**TABLE, "name": "people2", "source": "people"}
        refused = curator.post(
            "/api/curator/tables", json={"table": second, "epsilon": 1}
        )
        assert "would add up" in refused.json()["error"]["message"]
        stated = {"age": {"kind": "threshold", "theta": 2}}
        body = {"name": "people2", "policies": stated, "epsilon": 1}
        made = curator.post("/api/curator/tables/people/clone", json=body).json()
        assert made["clone_of"] == "people"
        assert made["spent_before"] == spent
        assert made["policies"]["age"]["theta"] == 2
        by_name = {one["name"]: one for one in curator.get("/api/tables").json()}
        assert by_name["people"]["closed"]
        assert not by_name["people2"]["closed"]


@pytest.mark.long
def test_what_a_deleted_table_spent_stays_spent(own_server):
    with own_server.client("ann") as ann, own_server.client(CURATOR) as curator:
        ann.post("/api/ask", json={"question": AGES})
        assert curator.delete("/api/curator/tables/people").status_code == 204
        assert curator.get("/api/tables").json() == []
        again = curator.post("/api/curator/tables", json={"table": TABLE, "epsilon": 1})
        assert again.status_code == 422
        assert "stays spent" in again.json()["error"]["message"]
    (kept,) = (own_server.workspace.folder / "deleted").glob("*.ledger")
    with Ledger(kept) as ledger:
        assert ledger.spent > 0
        ledger.verify()


@pytest.mark.long
def test_a_budget_is_raised_with_a_record(own_server):
    where = "/api/curator/tables/people/raise"
    with own_server.client("ann") as ann, own_server.client(CURATOR) as curator:
        ann.post("/api/ask", json={"question": AGES})
        told = curator.post(where, json={"epsilon": 6, "why": "a second wave"}).json()
        assert told["budget"] == 6
        assert told["raises"][0]["why"] == "a second wave"
        assert told["raises"][0]["by"] == CURATOR
        lower = curator.post(where, json={"epsilon": 2, "why": "less"})
        assert lower.status_code == 409
        assert curator.post(where, json={"epsilon": 7}).status_code == 422
        assert curator.post("/api/curator/tables/people/verify").status_code == 200


@pytest.mark.long
def test_stored_answers_are_served_while_the_database_is_away(tmp_path):
    workspace = make_workspace(tmp_path)
    given = workspace.explorer("people").ask(AGES)
    workspace.close()
    (tmp_path / "people.duckdb").rename(tmp_path / "away.duckdb")
    (tmp_path / "people.duckdb").write_bytes(b"not a database any more")
    with serving(tmp_path) as served, served.client("ann") as ann:
        with served.client(None) as anybody:
            assert anybody.get("/health").json() == {"status": "degraded"}
        again = ann.post("/api/ask", json={"question": AGES}).json()
        assert again["replayed"]
        assert again["values"] == given.values.tolist()
        fresh = ann.post("/api/ask", json={"question": TOTALS})
        assert fresh.status_code == 503
        assert served.workspace.explorer("people").ledger.spent == given.epsilon
        (tmp_path / "people.duckdb").unlink()
        (tmp_path / "away.duckdb").rename(tmp_path / "people.duckdb")
        assert ann.post("/api/ask", json={"question": TOTALS}).status_code == 200


@pytest.mark.long
def test_a_backup_is_whole_and_restored_tables_are_closed(tmp_path, capsys):
    workspace = make_workspace(tmp_path)
    explorer = workspace.explorer("people")
    given = explorer.ask(AGES)
    state, backup, back = tmp_path / "state", tmp_path / "backup", tmp_path / "back"
    # While the server has the ledger open.
    assert run_command(["backup", str(state), str(backup)]) == 0
    explorer.ask(TOTALS)
    workspace.close()
    assert run_command(["restore", str(backup), str(back)]) == 0
    assert "tables are closed" in capsys.readouterr().err
    restored = Workspace(back, database=tmp_path / "people.duckdb", samples=0)
    found = restored.explorer("people")
    assert found.ledger.spent == given.epsilon
    assert found.ask(AGES).values.tolist() == given.values.tolist()
    assert found.closed
    found.ledger.verify()
    restored.close()
    open_again = tmp_path / "open"
    words = ["restore", str(backup), str(open_again), "--nothing-since"]
    assert run_command(words) == 0
    kept = json.loads((open_again / "tables.json").read_text())
    assert not kept["tables"]["people"]["closed"]


def test_a_backup_of_a_relative_folder_is_whole_or_not_there(
    tmp_path, capsys, monkeypatch
):
    make_workspace(tmp_path).close()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for target in ("backup", "empty", "deep/er"):
        assert run_command(["backup", "state", target]) == 0
        assert (tmp_path / target / "backup.json").is_file()

    def broken(*_):
        raise OSError(28, "No space left on device")

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(backups, "_digest", broken)
    with pytest.raises(OSError, match="No space left"):
        backups.back_up(tmp_path / "state", tmp_path / "half")
    assert sorted(tmp_path.iterdir()) == before
    capsys.readouterr()


def test_backups_that_were_changed_or_are_none_are_refused(tmp_path, capsys):
    workspace = make_workspace(tmp_path)
    workspace.explorer("people").ask(AGES)
    workspace.close()
    state, backup = tmp_path / "state", tmp_path / "backup"
    assert run_command(["backup", str(tmp_path / "nothing"), str(backup)]) != 0
    assert run_command(["backup", str(state), str(backup)]) == 0
    assert run_command(["backup", str(state), str(backup)]) != 0
    assert "nothing is overwritten" in capsys.readouterr().err
    # What was spent since the backup would be forgotten.
    assert run_command(["restore", str(backup), str(state)]) != 0
    assert "the restored server needs a new or an empty" in capsys.readouterr().err
    (backup / "keys.json").write_text("{}") if (backup / "keys.json").exists() else (
        backup / "tables.json"
    ).write_text("{}")
    assert run_command(["restore", str(backup), str(tmp_path / "back")]) != 0
    assert "not the file that was backed up" in capsys.readouterr().err
    assert not (tmp_path / "back").exists()


@pytest.mark.long
def test_several_databases_are_told_apart(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        make_database(tmp_path / name / "people.duckdb")
    named = {name: tmp_path / name / "people.duckdb" for name in ("one", "two")}
    workspace = Workspace(tmp_path / "state", database=named, samples=0)
    assert {"one:people", "two:people"} <= set(workspace.data_sets())
    first = workspace.add_table({**TABLE, "source": "one:people"}, epsilon=1)
    second = {**TABLE, "name": "others2", "source": "people", "database": "two"}
    workspace.add_table(second, epsilon=1)
    everybody = {**AGES, "kind": "ranges", "ranges": [[0, 64]], "width": 1}
    assert first.ask(everybody).values.tolist() == [PEOPLE]
    workspace.close()
