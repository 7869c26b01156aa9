"""What the curator does: previews, policies, budgets, analysts, data sets."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blowfish_fast.apps.explorer.catalog import PolicySpec, as_table
from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.apps.server.policy_pictures import policy_picture

from .serving import AGES, PEOPLE, TOTALS

CSV = b"age,city,day\n31,Oslo,2024-01-05\n47,Rome,2024-02-01\n,Oslo,2024-03-09\n"
CITIES = {
    "name": "travellers",
    "attributes": [
        {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}},
        {"name": "city", "levels": ["Oslo", "Rome"]},
    ],
}


@pytest.fixture
def curator(own_server):
    """The curator of a fresh server."""
    with own_server.client(CURATOR) as client:
        yield client


@pytest.fixture
def shared(served):
    """The curator of a server that several tests share and none changes."""
    with served.client(CURATOR) as client:
        yield client


def upload(client, name, content=CSV):
    return client.post(
        "/api/curator/data-sets", data={"name": name}, files={"file": content}
    )


@pytest.mark.long
def test_previews_show_the_truth_and_leave_no_trace(served, shared):
    ledger = served.workspace.explorer("people").ledger
    head = ledger.verify()
    body = {"question": AGES, "epsilon": 0.01}
    first = shared.post("/api/curator/preview", json=body).json()
    second = shared.post("/api/curator/preview", json=body).json()
    assert sum(first["truth"]) == PEOPLE
    assert first["private"]["values"] != second["private"]["values"]
    assert first["private"]["epsilon"] == 0.01
    assert ledger.verify() == head
    assert ledger.spent == 0
    assert not ledger.frozen


def test_previews_follow_the_policy_that_is_stated(shared):
    errors = []
    for theta in (1, 32):
        policies = {"age": {"kind": "threshold", "theta": theta}}
        body = {"question": TOTALS, "epsilon": 0.05, "policies": policies}
        found = [shared.post("/api/curator/preview", json=body).json() for _ in "ab"]
        widths = np.diff(found[0]["private"]["intervals"]).mean()
        errors.append(widths)
    assert errors[0] < errors[1]
    stated = [{"age": {"kind": "threshold", "theta": theta}} for theta in (1, 32)]
    body = {"question": TOTALS, "epsilon": 0.05, "compared": stated}
    beside = shared.post("/api/curator/preview", json=body).json()
    widths = [np.diff(one["intervals"]).mean() for one in beside["compared"]]
    assert widths[0] < widths[1]


def test_the_trade_off_rises_with_the_threshold(shared):
    body = {"question": TOTALS, "thetas": [1, 4, 16, 60]}
    sent = shared.post("/api/curator/trade-off", json=body).text
    rows = [json.loads(line) for line in sent.splitlines()]
    assert [one["theta"] for one in rows] == [None, 60, 16, 4, 1]
    costs = [one["cost"] for one in rows]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0] / 2
    body = {"question": {**AGES, "attribute": "sex", "width": 1}}
    assert shared.post("/api/curator/trade-off", json=body).status_code == 422


@pytest.mark.long
def test_policies_and_budgets_change_until_the_first_charge(own_server, curator):
    where = "/api/curator/tables/people"
    policies = {"age": {"kind": "threshold", "theta": 4}}
    stated = curator.put(f"{where}/policies", json=policies).json()
    assert stated["policies"]["age"]["theta"] == 4
    assert "4" in stated["promise"]
    default = curator.put(f"{where}/policies", json={}).json()
    assert default["policies"] == {}
    assert curator.put(f"{where}/budget", json={"epsilon": 3}).json()["epsilon"] == 3
    with own_server.client("ann") as ann:
        ann.post("/api/ask", json={"question": AGES}).raise_for_status()
    assert curator.put(f"{where}/policies", json=policies).status_code == 409
    frozen = curator.put(f"{where}/budget", json={"epsilon": 9})
    assert frozen.status_code == 409
    assert str(own_server.workspace.folder) not in frozen.text
    assert curator.get("/api/tables").json()[0]["frozen"]


@pytest.mark.parametrize(
    "policies",
    [
        {"nobody": {"kind": "line"}},
        {"age": {"kind": "threshold"}},
        {"age": {"kind": "threshold", "theta": 1.5}},
        {"age": {"kind": "blocks", "blocks": [[0]]}},
        {"sex": {"kind": "line"}},
        {"age": {"kind": "unknown"}},
    ],
    ids=str,
)
def test_policies_that_do_not_fit_are_refused(served, shared, policies):
    found = shared.put("/api/curator/tables/people/policies", json=policies)
    assert found.status_code in (404, 422)
    assert served.workspace.explorer("people").table.policies == {}
    assert shared.put("/api/curator/tables/x/policies", json={}).status_code == 404


@pytest.mark.long
def test_analysts_are_added_allotted_and_revoked(own_server, curator):
    made = curator.post("/api/curator/analysts/carl").json()
    where = "/api/curator/tables/people/allotments"
    share = curator.put(f"{where}/carl", json={"epsilon": 0.5}).json()
    assert share == {"epsilon": 0.5, "granted": 0.5, "spent": 0.0}
    own_server.secrets["carl"] = made["secret"]
    with own_server.client("carl") as carl:
        assert carl.get("/api/tables").json()[0]["granted"] == 0.5
        carl.post("/api/ask", json={"question": AGES}).raise_for_status()
    rows = {one["name"]: one for one in curator.get("/api/curator/analysts").json()}
    assert rows["carl"]["allotments"]["people"]["spent"] > 0
    assert rows["bob"]["allotments"] == {}
    # What was spent cannot be taken back, and strangers get nothing.
    assert curator.put(f"{where}/carl", json={"epsilon": 1e-6}).status_code == 402
    assert curator.put(f"{where}/dora", json={"epsilon": 1}).status_code == 404
    assert curator.post("/api/curator/analysts/curator").status_code == 422


@pytest.mark.long
def test_a_csv_file_becomes_a_table_that_can_be_asked(own_server, curator):
    columns = upload(curator, "travellers").json()["columns"]
    assert set(columns) == {"age", "city", "day"}
    assert "travellers" in curator.get("/api/curator/data-sets").json()
    made = curator.post("/api/curator/tables", json={"table": CITIES, "epsilon": 2})
    assert made.status_code == 201
    question = {
        "kind": "histogram",
        "table": "travellers",
        "attribute": "city",
        "cost": {"epsilon": 1},
    }
    body = {"question": question, "epsilon": 1}
    shown = curator.post("/api/curator/preview", json=body).json()
    assert shown["truth"] == [2, 1]
    assert upload(curator, "travellers").status_code == 422
    again = curator.post("/api/curator/tables", json={"table": CITIES, "epsilon": 2})
    assert again.status_code == 422


@pytest.mark.parametrize("name", ["", "../../etc", 'a"b', "a b", "1", "x" * 65, "a/b"])
def test_data_sets_have_plain_names(served, shared, name):
    assert upload(shared, name).status_code == 422
    if name == "a/b":
        assert "Name it 'a_b'" in upload(shared, name).text
    assert list((served.workspace.folder / "data").iterdir()) == []


@pytest.mark.long
def test_files_that_are_no_csv_are_refused_without_quoting_them(own_server, curator):
    found = upload(curator, "odd", b"\x00\xff\xfe" * 100 + b'"Mallory')
    assert found.status_code in (201, 422)
    assert "Mallory" not in found.text
    left = [path.suffix for path in (own_server.workspace.folder / "data").iterdir()]
    assert set(left) <= {".duckdb"}


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        {"name": "a b"},
        {"source": "nowhere"},
        {"attributes": []},
        {"attributes": [{"name": "age"}]},
        {"attributes": [{"name": "age", "levels": ["a"]}]},
        {"attributes": [{"name": "nobody", "edges": [0, 1]}]},
        {"attributes": [{"name": "sex", "levels": ["f"], "missing": "none"}]},
        {"attributes": [{"name": "age", "edges": [1, 0]}]},
        {"attributes": [{"name": "age", "edges": [0, 1]}] * 2},
        {"attributes": [{"name": "a", "cells": {"start": 0, "stop": 9, "width": 2}}]},
    ],
    ids=str,
)
def test_descriptions_that_do_not_fit_are_refused(served, shared, change):
    plain = {
        "name": "fresh",
        "source": "people",
        "attributes": [{"name": "age", "edges": [0, 32, 64]}],
    }
    body = {"table": {**plain, **change}, "epsilon": 1}
    found = shared.post("/api/curator/tables", json=body)
    assert found.status_code in (404, 422)
    assert "Mallory" not in found.text
    assert served.workspace.tables == ["people"]


def test_policies_are_drawn_with_their_edges(served, shared):
    where = {"table": "people", "attribute": "age"}
    threshold = {"kind": "threshold", "theta": 3}
    picture = shared.post("/api/policy-graph", params=where, json=threshold).json()
    assert picture["edge_count"] == 63 + 62 + 61
    # More cells than a circle holds: 32 squares by 32, of two cells each.
    assert (picture["cells"], picture["edges"]) == (64, [])
    assert len(picture["shares"]) == len(picture["labels"]) == 32
    assert picture["labels"][:3] == ["0", "2", "4"]
    assert picture["shares"][0][:4] == [1.0, 1.0, 0.25, 0.0]
    table = served.workspace.explorer("people").table
    sexes = policy_picture(table, "sex", None)
    assert sexes["labels"] == ["f", "m", "(outside)", "(missing)"]
    assert len(sexes["edges"]) == 6
    assert picture["words"] == "values that differ by at most 3"
    assert sexes["words"] == "any two values"


@pytest.mark.parametrize("cells", [25, 48, 49, 64, 500, 30_000])
def test_a_large_policy_is_a_matrix_that_follows_its_threshold(cells):
    stated = {"start": 0, "stop": cells, "width": 1}
    age = {"name": "age", "cells": stated, "missing": "none"}
    table = as_table({"name": "people", "attributes": [age]})
    darkness = []
    for theta in sorted({1, 2, 3, cells // 10, cells // 3, cells - 1}):
        threshold = PolicySpec(kind="threshold", theta=theta)
        picture = policy_picture(table, "age", threshold)
        shares = np.array(picture["shares"])
        assert np.array_equal(shares, shares.T)
        assert np.diagonal(shares, 1).min() > 0
        # Squares further apart than theta and a square share nothing.
        starts = np.array([float(label) for label in picture["labels"]])
        wide = -(-cells // len(starts))
        far = np.abs(starts[:, None] - starts) > theta + wide
        assert not shares[far].any()
        assert picture["edge_count"] == theta * cells - theta * (theta + 1) // 2
        darkness.append(shares.sum())
    # At the last threshold any two are joined, and no cell is joined to itself.
    assert shares[~np.eye(len(shares), dtype=bool)].min() == 1
    assert darkness == sorted(darkness)
    assert darkness[-1] > darkness[0]


def test_the_ledger_can_be_verified(served, shared):
    found = shared.post("/api/curator/tables/people/verify").json()
    assert found["head"] == served.workspace.explorer("people").ledger.verify()


def test_the_projected_graph_joins_bins_with_joined_values(shared):
    question = {**AGES, "filters": [{"attribute": "sex", "values": ["f"]}]}
    theta = {"age": {"kind": "threshold", "theta": 5}}
    body = {"question": question, "policies": theta}
    picture = shared.post("/api/curator/projected-graph", json=body).json()
    edges = {tuple(one) for one in picture["edges"]}
    # Bins of 4 years, and a threshold of 5: values of bins up to 2 apart are joined.
    near = {(one, two) for one in range(16) for two in range(one + 1, 16)}
    assert {one for one in edges if 16 not in one} == {
        one for one in near if 4 * (one[1] - one[0]) - 3 <= 5
    }
    # Any sex may become another: every bin is joined to what is filtered out.
    assert {(one, 16) for one in range(16)} <= edges
    assert picture["labels"][:2] + picture["labels"][-1:] == ["0", "4", "filtered out"]
    assert (picture["cells"], picture["shown"]) == (17, 17)
    assert picture["edge_count"] == len(edges)
    differ = "values that differ by at most 5"
    assert picture["words"] == f"in age, {differ}; in sex, any two values"


def test_bins_of_one_attribute_for_strays_have_names_of_their_own(shared):
    cost = {"alpha": 40, "beta": 0.05}
    sexes = {"kind": "histogram", "table": "people", "attribute": "sex", "cost": cost}
    body = {"question": sexes, "policies": {}}
    picture = shared.post("/api/curator/projected-graph", json=body).json()
    assert picture["labels"] == ["f", "m", "(outside)", "(missing)"]


def test_the_composed_graph_moves_one_attribute_at_a_time(shared):
    cost = {"alpha": 40, "beta": 0.05}
    question = {"kind": "histogram2d", "table": "people", "attributes": ["age", "sex"]}
    body = {
        "question": {**question, "cost": cost},
        "policies": {"age": {"kind": "line"}},
    }
    picture = shared.post("/api/curator/projected-graph", json=body).json()
    assert picture["labels"][:3] == ["0, f", "0, m", "1, f"]
    assert picture["sides"] == [["0", "1", "2", "3", "4"], ["f", "m"]]
    edges = picture["edges"]
    assert [0, 1] in edges
    assert [0, 2] in edges
    assert [0, 3] not in edges
    assert [0, 4] not in edges
    assert picture["shown"] < picture["cells"]
    assert picture["edge_count"] > len(edges)
