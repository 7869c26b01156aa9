"""Numbers of the population over HTTP: asked for, free, refused with the reason."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.errors import IntervalError

from .serving import AGES

DRAWN = {"drawn": "simple", "population": 9_000}


@pytest.mark.long
def test_an_analyst_asks_for_the_population_and_is_told_on_whose_word(served):
    age = {"name": "age", "cells": {"start": 0, "stop": 64, "width": 1}}
    described = {"name": "survey", "source": "others", "attributes": [age]}
    described["sample"] = DRAWN
    with served.client(CURATOR) as curator:
        stated = {"table": described, "epsilon": 2}
        added = curator.post("/api/curator/tables", json=stated)
        assert added.is_success, added.text
    served.workspace.explorer("survey").ledger.allot("ann", 1)
    with bf.connect(served.url, token=served.secrets["ann"]) as ann:
        words = {one["name"]: one["sample"] for one in ann.tables()}
        assert words["people"] is None
        assert words["survey"] == "a simple random sample of 9,000 people"
        answer = ann.ask({**AGES, "table": "survey"})
        assert answer.what == "records"
        left = ann.tables()[-1]["remaining"]
        people = ann.population("survey", answer.request)
        assert people.intervals_hold == "population"
        assert people.what == "people"
        assert people.intervals.shape == (*answer.values.shape, 2)
        assert "Nothing here can check that" in people.promise
        normal = ann.population(
            "survey", answer.request, confidence=0.9, method="normal"
        )
        assert normal.confidence == 0.9
        assert ann.tables()[-1]["remaining"] == left
        plain = ann.ask(AGES)
        with pytest.raises(IntervalError, match="does not say how its records"):
            ann.population("people", plain.request)
    # What is another's is not there.
    where = {"table": "survey", "request": answer.request}
    with served.client("bob") as bob:
        assert bob.get("/api/population", params=where).status_code == 404
