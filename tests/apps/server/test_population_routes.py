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


@pytest.mark.long
def test_strata_are_added_up_for_whoever_asks_for_everybody(served):
    age = {"name": "age", "cells": {"start": 0, "stop": 64, "width": 16}}
    sex = {"name": "sex", "levels": ["f", "m"], "extras_joined": "apart"}
    held = {"sex": {"kind": "blocks", "blocks": [["f"], ["m"]]}}
    drawn = {"drawn": "stratified", "column": "sex"}
    drawn["population"] = {"f": 5_000, "m": 4_000}
    described = {"name": "strata", "source": "drawn", "attributes": [age, sex]}
    described |= {"policies": held, "sample": drawn}
    rows = [f"{at * 7 % 64},{'ffm'[at % 3]}" for at in range(600)]
    file = {"file": "\n".join(["age,sex", *rows, ""]).encode()}
    with served.client(CURATOR) as curator:
        form = {"name": "drawn"}
        curator.post("/api/curator/data-sets", data=form, files=file).raise_for_status()
        lacking = {**described, "sample": {**drawn, "population": {"f": 5_000}}}
        stated = {"table": lacking, "epsilon": 2}
        refused = curator.post("/api/curator/tables", json=stated)
        assert refused.status_code == 422
        assert "every level of 'sex' is a stratum" in refused.text
        stated = {"table": described, "epsilon": 2}
        added = curator.post("/api/curator/tables", json=stated)
        assert added.is_success, added.text
    served.workspace.explorer("strata").ledger.allot("ann", 2)
    with bf.connect(served.url, token=served.secrets["ann"]) as ann:
        words = {one["name"]: (one["sample"], one["strata"]) for one in ann.tables()}
        assert words["people"] == (None, None)
        assert words["strata"][1] == "sex"
        assert "2 strata by sex, 9,000 people in all" in words["strata"][0]
        about = {"kind": "marginal", "table": "strata", "attributes": ["age", "sex"]}
        answer = ann.ask({**about, "cost": {"epsilon": 1}})
        apart = ann.population("strata", answer.request)
        people = ann.population("strata", answer.request, together=True)
        assert apart.values.shape == (4, 2)
        assert people.values == pytest.approx(apart.values.sum(axis=1))
        assert people.intervals.shape == (4, 2)
        ages = {**AGES, "table": "strata", "width": 1, "cost": {"epsilon": 0.5}}
        plain = ann.ask(ages)
        with pytest.raises(IntervalError, match="that show each of them"):
            ann.population("strata", plain.request)
