"""Questions saved under names: one's own, checked, kept, and never charged."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.server import workspace
from blowfish_fast.apps.server.keys import CURATOR

from .serving import AGES, TOTALS, make_workspace


def names(client):
    return [saved["name"] for saved in client.get("/api/saved").json()]


@pytest.mark.long
def test_questions_are_saved_by_name_for_whoever_saved_them(own_server, tmp_path):
    with (
        own_server.client("ann") as ann,
        own_server.client("bob") as bob,
        own_server.client(CURATOR) as curator,
    ):
        assert names(ann) == []
        for name, question in (("ages / all", AGES), ("totals", TOTALS)):
            body = {"name": name, "question": question}
            assert ann.put("/api/saved", json=body).json() == {"name": name}
        assert names(ann) == ["ages / all", "totals"]
        assert names(bob) == names(curator) == []
        # Under the same name the later question stands.
        ann.put("/api/saved", json={"name": "totals", "question": AGES})
        listed = ann.get("/api/saved").json()
        assert [saved["question"]["kind"] for saved in listed] == ["histogram"] * 2
        gone = ann.delete("/api/saved", params={"name": "ages / all"})
        assert gone.status_code == 204
        assert names(ann) == ["totals"]
        assert ann.delete("/api/saved", params={"name": "no"}).status_code == 204
    assert own_server.workspace.explorer("people").ledger.spent == 0


def test_saved_questions_outlive_the_server(tmp_path):
    first = make_workspace(tmp_path)
    first.save_question("analyst ann", "ages", AGES)
    first.close()
    again = make_workspace(tmp_path)
    assert again.saved_questions("analyst ann") == {"ages": AGES}
    again.close()


@pytest.mark.long
def test_what_does_not_fit_or_is_too_much_is_refused(own_server, monkeypatch):
    monkeypatch.setattr(workspace, "MOST_SAVED", 1)
    with own_server.client("ann") as ann:
        strange = {"name": "x", "question": {**AGES, "attribute": "height"}}
        assert ann.put("/api/saved", json=strange).status_code == 404
        missing = {"name": "x", "question": {**AGES, "table": "nothing"}}
        assert ann.put("/api/saved", json=missing).status_code == 404
        ann.put("/api/saved", json={"name": "a", "question": AGES})
        more = ann.put("/api/saved", json={"name": "b", "question": AGES})
        assert more.status_code == 422
        assert "Remove one of them first" in more.text
        assert names(ann) == ["a"]
