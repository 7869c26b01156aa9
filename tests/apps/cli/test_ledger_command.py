"""``blowfish ledger``: what a ledger says, and whether it still says it."""

from __future__ import annotations

import json
import sqlite3

import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import LedgerError

RUN = CliRunner()


@pytest.fixture
def path(tmp_path):
    line = bf.Domain(4)
    policy = bf.policies.Full(line)
    found = tmp_path / "some.ledger"
    with bf.Ledger(found, epsilon=1, policy=policy) as ledger:
        ledger.allot("ann", 0.5)
        laplace = bf.Laplace(policy, bf.workloads.Identity(line), epsilon=0.25)
        ledger.release(laplace, [3, 0, 2, 5], "first", analyst="ann")
    return found


def run(*words):
    return RUN.invoke(application, ["ledger", *map(str, words)], env={"COLUMNS": "200"})


def test_an_intact_ledger_shows_its_head(path):
    done = run("verify", path)
    assert done.exit_code == 0, done.output
    assert "intact: 1 charge, eps = 0.25 of 1 spent" in done.output
    found = json.loads(run("verify", path, "--json").output)
    assert found["intact"]
    assert found["head"] in done.output
    assert run("verify", path, "--head", found["head"]).exit_code == 0


def test_a_head_that_is_gone_and_a_changed_entry_are_told(path):
    done = run("verify", path, "--head", "00" * 32)
    assert done.exit_code == 1
    assert "cut off" in " ".join(done.output.split())
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER log_is_fixed")
    connection.execute("UPDATE log SET cost = 1 WHERE kind = 'charge'")
    connection.commit()
    connection.close()
    done = run("verify", path, "--json")
    assert done.exit_code == 1
    assert not json.loads(done.output)["intact"]


def test_a_file_that_is_none_is_told(tmp_path):
    assert run("verify", tmp_path / "nothing").exit_code == 1
    (tmp_path / "text").write_text("no ledger")
    done = run("verify", tmp_path / "text")
    assert done.exit_code == 1
    assert not (tmp_path / "nothing").exists()


def test_the_history_lists_every_charge(path):
    done = run("history", path)
    assert done.exit_code == 0, done.output
    for word in ("laplace", "ann", "0.25", "stored", "first"):
        assert word in done.output
    (charge,) = json.loads(run("history", path, "--json").output)["charges"]
    assert charge["request"] == "first"


def test_the_budget_over_time_is_drawn(path, tmp_path):
    picture = tmp_path / "budget.png"
    done = run("history", path, "--picture", picture, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["picture"] == str(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    done = run("history", path, "--picture", picture)
    assert "exists already" in str(done.exception)
    done = run("history", path, "--picture", picture, "--overwrite")
    assert "written:" in done.stderr


def test_a_ledger_is_made_allotted_and_shown(tmp_path):
    made = tmp_path / "new.ledger"
    terms = ("--epsilon", "1.5", "--cells", "age=0:100:5", "--policy", "threshold:2")
    done = run("create", made, *terms)
    assert done.exit_code == 0, done.output
    assert "eps = 1.5" in done.output
    assert "may change" in done.output
    assert "nothing was charged" in run("history", made).output
    run("allot", made, "ann", "--epsilon", "0.5")
    found = json.loads(run("status", made, "--json").output)
    assert found["remaining"] == 1.5
    assert found["frozen"] is False
    assert found["allotments"]["ann"]["remaining"] == 0.5
    with bf.Ledger(made) as ledger:
        ages = bf.Domain.from_edges(range(0, 101, 5), name="age")
        assert ledger.policy == bf.policies.Threshold(ages, theta=2)


def test_categories_are_shown_as_they_are_typed(tmp_path):
    """What the status shows makes the same ledger again."""
    typed = 'town=categories:"Bern, Stadt",Chur,"a=b",earth science,"5"" pipe, new"'
    terms = ("--epsilon", "1", "--policy", "full", "--cells")
    first, again = tmp_path / "first.ledger", tmp_path / "again.ledger"
    assert run("create", first, *terms, typed).exit_code == 0
    (shown,) = json.loads(run("status", first, "--json").output)["cells"].values()
    assert '"Bern, Stadt", Chur' in shown
    done = run("create", again, *terms, f"town=categories:{shown}")
    assert done.exit_code == 0, done.output
    with bf.Ledger(first) as one, bf.Ledger(again) as other:
        assert one.policy == other.policy


def test_the_status_tells_what_was_spent(path):
    done = run("status", path)
    for words in ("0.25, in 1 charge", "0.75", "fixed", "ann"):
        assert words in done.output
    assert json.loads(run("status", path, "--json").output)["frozen"] is True


def test_ledgers_are_never_overwritten_or_made_by_looking(path, tmp_path):
    terms = ("--epsilon", "1", "--cells", "4", "--policy", "full")
    done = run("create", path, *terms)
    assert isinstance(done.exception, LedgerError)
    assert "never overwritten" in str(done.exception)
    done = run("status", tmp_path / "nothing")
    assert "ledger create" in str(done.exception)
    assert not (tmp_path / "nothing").exists()


def test_the_history_says_who_changed_the_terms_and_why(tmp_path):
    age = bf.Domain.from_edges(range(0, 101, 10), name="age")
    wide = bf.Domain.from_edges([0, 50, 100], name="age")
    sex = bf.Domain.from_levels(["f", "m"], name="sex")
    full, path = bf.policies.Full, tmp_path / "people.ledger"
    with bf.Ledger(path, epsilon=1, policy=full(wide)) as ledger:
        ledger.amend(policy=full(age), epsilon=2)
        ledger.amend(about={"office": "B"})
        ledger.amend(policy=bf.policies.AddRemove(age))
        ledger.amend(policy=full(age), about={})
        ledger.release(bf.Laplace(full(age), epsilon=0.5), [3] * 10)
        ledger.add_columns(
            full(bf.Domain.product(age, sex)), why="a second sheet came", by="ann"
        )
        ledger.raise_budget(3, why="a second wave", by="bea")
    decided = json.loads(run("history", path, "--json").output)["decisions"]
    changed = [decision["changed"] for decision in decided]
    assert changed[0] == "age with other cells; budget 2 in place of 1"
    assert changed[1] == "what is noted"
    assert changed[2].startswith("policy: ")
    assert changed[4:] == ["sex added", "budget 3 in place of 2"]
    assert [decision["by"] for decision in decided[4:]] == ["ann", "bea"]
    numbers = [decision["number"] for decision in decided]
    assert numbers == sorted({*numbers})
    printed = " ".join(run("history", path).output.split())
    for words in ("sex added", "a second sheet came", "ann", "a second wave", "bea"):
        assert words in printed


def test_a_budget_is_raised_with_its_reason(path):
    done = run("raise", path, "--epsilon", "2", "--why", "a second wave", "--by", "ann")
    assert done.exit_code == 0, done.output
    assert "eps = 2" in done.output
    with bf.Ledger(path) as ledger:
        (raised,) = ledger.raises()
    assert (raised["why"], raised["by"], raised["amount"]) == (
        "a second wave",
        "ann",
        2,
    )
    less = run("raise", path, "--epsilon", "1", "--why", "less")
    assert isinstance(less.exception, LedgerError)
    assert "raised to more than it is, 2" in str(less.exception)
    other = run("raise", path, "--rho", "1", "--why", "other")
    assert "counts epsilon; received rho = 1" in str(other.exception)
    unsaid = run("raise", path, "--epsilon", "3", "--why", " ")
    assert "say why the budget is raised" in str(unsaid.exception)


def test_a_ledger_without_charges_is_amended(tmp_path):
    made = tmp_path / "new.ledger"
    run("create", made, "--domain", "kind=categories:a,b", "--policy", "full",
        "--epsilon", "1")  # fmt: skip
    done = run("amend", made, "--domain", "kind=categories:a,b,c", "--domain",
               "age=0:100:10", "--missing", "age=cell", "--policy", "add_remove",
               "--epsilon", "2")  # fmt: skip
    assert done.exit_code == 0, done.output
    with bf.Ledger(made) as ledger:
        assert ledger.policy.domain.shape == (3, 11)
        assert "unbounded differential privacy" in ledger.policy.describe()
        assert float(ledger.budget) == 2
    run("amend", made, "--policy", "full")
    with bf.Ledger(made) as ledger:
        assert "bounded differential privacy" in ledger.policy.describe()
        assert ledger.policy.domain.shape == (3, 11)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "nothing is to be changed"),
        (["--domain", "age=0:9:1"], "need the policy said again"),
        (["--missing", "age=cell", "--policy", "full"], "need the policy said again"),
        (["--rho", "1"], "counts epsilon; received rho = 1"),
    ],
)
def test_what_cannot_be_amended_is_refused(tmp_path, words, reason):
    made = tmp_path / "new.ledger"
    run("create", made, "--domain", "age=0:9:3", "--policy", "full", "--epsilon", "1")
    before = made.read_bytes()
    assert reason in str(run("amend", made, *words).exception)
    assert made.read_bytes() == before


def test_after_a_charge_terms_are_fixed(path):
    done = run("amend", path, "--policy", "add_remove", "--why", "we hoped")
    assert isinstance(done.exception, LedgerError)
    assert "columns without names" in str(done.exception)
    done = run("amend", path, "--policy", "full", "--epsilon", "9", "--why", "more")
    assert "frozen" in str(done.exception)


def test_after_a_charge_columns_are_added_with_a_reason(tmp_path):
    made = tmp_path / "new.ledger"
    columns = ["--domain", "age=0:9:3"]
    run("create", made, *columns, "--policy", "full", "--epsilon", "1")
    with bf.Ledger(made) as ledger:
        ledger.release(bf.Laplace(ledger.policy, epsilon="0.25"), [1, 2, 3])
    columns = ["--add", "sex=categories:f,m", "--policy", "full"]
    both = run("amend", made, *columns, "--domain", "age=0:9:3", "--why", "x")
    assert "or --add for those that come" in str(both.exception)
    assert "say why" in str(run("amend", made, *columns).exception)
    done = run("amend", made, *columns, "--why", "a second sheet", "--by", "ann")
    assert done.exit_code == 0, done.output
    with bf.Ledger(made) as ledger:
        assert ledger.policy.domain.names == ("age", "sex")
        assert float(ledger.spent) == 0.25
        sexes = bf.Domain.from_levels(["f", "m"], name="sex")
        ledger.release(bf.Laplace(bf.policies.Full(sexes), epsilon="0.25"), [1, 2])
        ledger.verify()
    other = ["--domain", "age=0:9:1", "--domain", "sex=categories:f,x"]
    done = run("amend", made, *other, "--policy", "full", "--why", "a misprint")
    assert "something was released of age, sex, at prices" in str(done.exception)


def test_people_stay_protected_with_all_their_records_when_columns_come(tmp_path):
    made = tmp_path / "new.ledger"
    columns = ["--domain", "age=0:9:3", "--policy", "full"]
    whole = bf.policies.Full(bf.Domain.from_edges([0, 3, 6, 9], name="age"))
    bf.Ledger(made, epsilon=1, policy=whole.per_person(2, person="id")).close()
    assert run("amend", made, *columns, "--domain", "sex=categories:f,m").exit_code == 0
    with bf.Ledger(made) as ledger:
        assert (ledger.policy.at_most, ledger.policy.person) == (2, "id")
        assert ledger.policy.domain.names == ("age", "sex")
