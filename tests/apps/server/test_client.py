"""The Python client does what the page does, and raises what the server raised."""

from __future__ import annotations

import json
from contextlib import closing

import httpx
import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.server.client import Client
from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.apps.server.workspace import Workspace
from blowfish_fast.errors import (
    BlowfishError,
    BudgetError,
    CatalogError,
    EngineError,
    FailedDrawError,
    InputError,
    LedgerError,
    QuestionError,
)
from blowfish_fast.mechanisms import Mechanism

from .serving import AGES, TOTALS


@pytest.fixture
def ann(own_server):
    with bf.connect(own_server.url, own_server.secrets["ann"]) as client:
        yield client


@pytest.fixture
def curator(own_server):
    with bf.connect(own_server.url, own_server.secrets[CURATOR]) as client:
        yield client


@pytest.mark.long
def test_an_analyst_works_without_the_page(ann):
    assert ann.who()["name"] == "ann"
    (table,) = ann.tables()
    told = ann.explain(AGES)
    answer = ann.ask(AGES)
    assert answer.values.shape == (16,)
    assert answer.intervals.shape == (16, 2)
    assert answer.remaining == pytest.approx(table["remaining"] - told["cost"])
    assert not answer.replayed
    kept = ann.answer("people", answer.request)
    assert (kept.values == answer.values).all()
    anew = ann.ask_anew(AGES)
    assert (anew.values != answer.values).any()
    first, second = ann.history("people")
    assert first["epsilon"] == second["epsilon"] == told["cost"]
    assert ann.history("people", last=1) == [second]
    assert ann.history("people", before=second["number"]) == [first]


@pytest.mark.long
def test_a_list_of_questions_is_paid_in_one_step(ann, own_server):
    first, second = ann.ask([AGES, TOTALS], request=["mine", None])
    assert first.values.shape == second.values.shape == (16,)
    assert first.remaining == second.remaining
    assert (ann.ask(TOTALS).values == second.values).all()
    assert (ann.ask(AGES, request="mine").values == first.values).all()
    assert [entry["request"] for entry in ann.history("people")] == [
        first.request,
        second.request,
    ]
    dear = [{**AGES, "width": width, "cost": {"epsilon": 40}} for width in (1, 2, 8)]
    with pytest.raises(BudgetError, match="3 answers cost"):
        ann.ask(dear)
    for names in (["a"], "ab"):
        with pytest.raises(InputError, match="a name for each"):
            ann.ask([AGES, TOTALS], request=names)
    with pytest.raises(InputError, match="about one table"):
        ann.ask([AGES, {**AGES, "table": "others"}])
    assert len(ann.history("people")) == 2
    log = own_server.workspace.folder / "logs" / "audit.log"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    asked = [line for line in lines if line.get("what") == "ask"]
    assert [line.get("refused") for line in asked].count("BudgetError") == 1
    assert sum(line.get("cost", 0) > 0 for line in asked) == 2


@pytest.mark.long
def test_a_draw_that_fails_in_a_list_is_told_and_the_others_stay(ann, monkeypatch):
    drawn, calls = Mechanism._drawn, []

    def failing(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("depends on the draw")
        return drawn(self, *arguments, **options)

    monkeypatch.setattr(Mechanism, "_drawn", failing)
    with pytest.raises(FailedDrawError):
        ann.ask([AGES, TOTALS])
    assert ann.ask(AGES).replayed


@pytest.mark.long
def test_a_question_in_sql_is_priced_before_it_is_asked(ann, curator):
    text = "SELECT sex, AVG(age) FROM people GROUP BY sex"
    priced = ann.sql(text, alpha=5, at_least=80)
    assert priced.question["kind"] == "mean"
    assert 0 < priced.cost == ann.explain(priced.question)["cost"]
    assert ann.history("people") == []
    answer = priced.ask()
    assert answer.what == "mean of age"
    assert answer.raw.shape == answer.values.shape == (2,)
    assert (answer.intervals[:, 0] < answer.intervals[:, 1]).all()
    # Without an accuracy or a budget: a twentieth of what remains.
    left = ann.tables()[0]["remaining"]
    small = ann.sql("SELECT sex, COUNT(*) FROM people GROUP BY sex")
    assert small.cost == pytest.approx(left / 20)
    with pytest.raises(QuestionError, match="declared by the curator"):
        ann.sql("SELECT COUNT(*) FROM people JOIN others USING (age)")
    with pytest.raises(InputError, match="not both"):
        ann.sql(text, alpha=5, epsilon=1)
    assert curator.sql(text, epsilon=0.5).cost == 0.5


@pytest.mark.long
def test_nothing_is_proposed_where_nothing_remains(own_server):
    text = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
    with (
        bf.connect(own_server.url, own_server.secrets["bob"]) as bob,
        pytest.raises(BudgetError, match="nothing remains"),
    ):
        bob.sql(text)


@pytest.mark.long
def test_an_answer_is_shared_with_whoever_asked_for_it(ann, own_server):
    answer = ann.ask(AGES)
    with bf.connect(own_server.url, own_server.secrets["bob"]) as bob:
        with pytest.raises(BlowfishError, match="no answer"):
            bob.answer("people", answer.request)
        # Bob has no allotment, and gets what was paid for.
        shared = bob.ask(AGES)
        assert shared.replayed
        assert (shared.values == answer.values).all()
        (line,) = bob.history("people")
        assert (line["request"], line["cost"]) == (answer.request, 0.0)
        assert line["question"]["attribute"] == "age"
        assert (bob.answer("people", line["request"]).values == answer.values).all()
        assert bob.ask(AGES).replayed
        assert len(bob.history("people")) == 1
    assert len(ann.history("people")) == 1


@pytest.mark.long
def test_what_earlier_answers_tell_is_free(ann, curator, own_server):
    first = ann.ask(TOTALS)
    left = first.remaining
    cost = {**TOTALS["cost"], "alpha": 2 * TOTALS["cost"]["alpha"] + 1}
    wide = {**TOTALS, "width": 2 * TOTALS["width"], "cost": cost}
    told = ann.explain(wide)
    assert (told["how"], told["cost"]) == ("read", 0.0)
    free = ann.ask(wide)
    assert free.remaining == left
    assert ann.answer("people", free.request).values.tolist() == free.values.tolist()
    with bf.connect(own_server.url, own_server.secrets["bob"]) as bob:
        # What others asked does not lower a price, unless the table says so.
        assert bob.explain({**wide, "width": TOTALS["width"]})["cost"] > 0
    metrics = curator._http.get("/metrics").text
    assert 'blowfish_questions_total{outcome="read"} 1' in metrics
    assert curator.publish("people", first.request) == {"published": first.request}
    with pytest.raises(CatalogError, match="no answer under this name"):
        curator.publish("people", "q-nothing")


@pytest.mark.long
def test_questions_are_registered_and_read_anew(ann, own_server):
    with pytest.raises(InputError, match="list of questions"):
        ann.register(7)
    with pytest.raises(BlowfishError, match="about one table"):
        ann.register([AGES, {**AGES, "table": "others"}])
    assert ann.register([AGES, {**TOTALS, "width": TOTALS["width"]}]) > 16
    with pytest.raises(InputError, match="of one question"):
        ann.ask([AGES], newest=True)
    with pytest.raises(QuestionError, match="leave request out"):
        ann.ask(AGES, request="mine", newest=True)
    shown = ann.ask(TOTALS)
    assert (shown.holds, shown.sources) == ("fresh", [])
    assert shown.cost == pytest.approx(ann.history("people", last=1)[0]["epsilon"])
    assert shown.as_of
    finer = ann.ask(
        {**TOTALS, "cost": {**TOTALS["cost"], "alpha": 12}}, request="finer"
    )
    newest = ann.ask(TOTALS, newest=True)
    assert newest.sources == [finer.request]
    assert (newest.cost, newest.remaining) == (0.0, finer.remaining)
    assert ann.ask(TOTALS).values.tolist() == shown.values.tolist()
    assert ann.answer("people", newest.request).values.tolist() == (
        newest.values.tolist()
    )


@pytest.mark.long
def test_a_curator_works_without_the_page(curator, tmp_path):
    shown = curator.preview(TOTALS, epsilon=0.5)
    assert np.shape(shown["truth"]) == (16,)
    assert curator.trade_off(TOTALS, [1, 8])[0]["theta"] == 1
    stated = curator.set_policies("people", {"age": {"kind": "line"}})
    assert stated["policies"]["age"]["kind"] == "line"
    assert curator.set_budget("people", 7)["epsilon"] == 7
    secret = curator.add_analyst("new one é")
    curator.allot("people", "new one é", 0.25)
    assert {one["name"] for one in curator.analysts()} == {"ann", "bob", "new one é"}
    with bf.connect(str(curator._http.base_url), secret) as fresh:
        assert fresh.tables()[0]["remaining"] == 0.25
        curator.revoke_analyst("new one é")
        with pytest.raises(BlowfishError, match="log in first"):
            fresh.tables()
    path = tmp_path / "cities.csv"
    path.write_text("city\nOslo\nRome\n")
    assert list(curator.add_csv("cities", path)) == ["city"]
    assert "cities" in curator.data_sets()
    levels = [{"name": "city", "levels": ["Oslo", "Rome"]}]
    curator.add_table({"name": "cities", "attributes": levels}, epsilon=1)
    assert len(curator.verify("cities")) == 64


@pytest.mark.long
def test_frequent_words_are_listed_without_the_page(ann, curator, tmp_path):
    path = tmp_path / "searches.csv"
    path.write_text("word\n" + 900 * "Weather\n" + 700 * "news\n" + 3 * "rare\n")
    curator.add_csv("searches", path)
    words = [{"name": "word", "words": {"symbols": "a-z", "longest": 12}}]
    curator.add_table({"name": "searches", "attributes": words}, epsilon=2)
    curator.allot("searches", "ann", 1)
    asked = {"kind": "frequent", "table": "searches", "attribute": "word"}
    asked |= {"false_values": 1e-6, "cost": {"epsilon": 0.5}}
    told = ann.explain(asked)
    assert "at length 5" in told["why"]
    assert ann.history("searches") == []
    answer = ann.ask(asked)
    assert answer.axes[0]["edges"] == ["news", "weather"]
    assert abs(answer.values - [700, 900]).max() < 200
    assert (answer.intervals[:, 1] > 600).all()
    assert answer.remaining == 0.5
    assert "may be missing" in answer.remarks[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ({**AGES, "table": "x"}, CatalogError),
        ({**AGES, "width": 100}, QuestionError),
        ({**AGES, "width": -1}, QuestionError),
        ({**AGES, "cost": {"epsilon": 4.5}}, BudgetError),
        ({**AGES, "cost": {"alpha": float("nan")}}, InputError),
    ],
)
def test_errors_keep_their_kind(ann, question, kind):
    with pytest.raises(kind):
        ann.ask(question)


@pytest.mark.long
def test_conflicts_and_roles_are_told(ann, curator):
    ann.ask(AGES, request="one")
    with pytest.raises(LedgerError, match="another question"):
        ann.ask(TOTALS, request="one")
    with pytest.raises(LedgerError, match="frozen"):
        curator.set_budget("people", 9)
    with pytest.raises(BlowfishError, match="curator alone"):
        ann.preview(AGES, epsilon=1)


def test_a_server_that_does_not_answer_is_told():
    with (
        bf.connect("http://127.0.0.1:9", "x") as client,
        pytest.raises(EngineError, match="does not answer"),
    ):
        client.tables()


@pytest.mark.parametrize(
    ("url", "token"), [("localhost", "x"), ("http://a", ""), ("http://a", "x\ny")]
)
def test_odd_addresses_and_secrets_are_refused(url, token):
    with pytest.raises(InputError):
        bf.connect(url, token)


ANSWER = {
    "question": {},
    "axes": [],
    "values": [1.0],
    "intervals": None,
    "confidence": 0.95,
    "epsilon": 0.1,
    "mechanism": "laplace",
    "promise": "",
    "request": "r",
    "replayed": False,
}


def answering(content):
    """Return a client of something that answers everything alike."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
    return Client("http://elsewhere.example", "secret", transport=transport)


@pytest.mark.parametrize(
    "content",
    [
        b"<html>log in to the network</html>",
        b"null",
        b"17",
        b"[" * 100_000,
        json.dumps({**ANSWER, "values": ["many"]}).encode(),
        json.dumps({**ANSWER, "intervals": [[1], [2, 3]]}).encode(),
        json.dumps({"values": [1.0]}).encode(),
    ],
    ids=["page", "null", "number", "deep", "words", "ragged", "part"],
)
def test_what_is_no_explorer_is_told_in_words(content):
    with pytest.raises(EngineError, match="check the address"):
        answering(content).ask(AGES)


def test_a_newer_server_may_say_more():
    content = json.dumps({**ANSWER, "weather": "fine"}).encode()
    assert answering(content).ask(AGES).values.tolist() == [1.0]


def test_a_file_of_the_curator_beside_the_data_is_kept(tmp_path):
    with closing(Workspace(tmp_path)) as workspace:
        beside = tmp_path / "data" / "cities.csv"
        beside.write_text("mine")
        workspace.add_csv("cities", b"city\nOslo\nRome\n")
        with pytest.raises(InputError, match="header line: its first line must name"):
            workspace.add_csv("nothing", b"")
        assert beside.read_text() == "mine"
        held = sorted(one.name for one in beside.parent.iterdir())
        assert held == ["cities.csv", "cities.duckdb"]
