"""A curator sees which of all tables would be accurate, before anything is paid."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.server.keys import CURATOR

PATH = "/api/curator/all-tables"


@pytest.mark.long
def test_all_tables_are_predicted_and_nothing_is_charged(served):
    ledger = served.workspace.explorer("people").ledger
    head = ledger.verify()
    body = {"table": "people", "epsilon": 1, "records": 4000}
    with served.client(CURATOR) as client:
        found = client.post(PATH, json=body).json()
        pair = client.post(PATH, json={**body, "columns": ["age", "sex"]}).json()
        by_data = client.post(PATH, json={**body, "choose": "data"}).json()
    assert (found["decided"], by_data["decided"]) == ("plan", "data")
    assert found["columns"] == ["age", "sex", "pay"]
    assert len(found["tables"]) == 6
    assert len(pair["tables"]) == 3
    assert pair["tables"][2]["error"] < found["tables"][3]["error"]
    assert ledger.verify() == head


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"ways": 4}, 422),
        ({"columns": ["age", "age"]}, 422),
        ({"columns": ["height"]}, 404),
        ({"epsilon": 0}, 422),
        ({"choose": "oracle"}, 422),
    ],
)
def test_what_cannot_be_predicted_is_refused(served, change, status):
    body = {"table": "people", "epsilon": 1, **change}
    with served.client(CURATOR) as client:
        assert client.post(PATH, json=body).status_code == status


def test_analysts_have_the_means_of_analysts(served):
    with served.client("ann") as client:
        answer = client.post(PATH, json={"table": "people", "epsilon": 1})
    assert answer.status_code == 403
