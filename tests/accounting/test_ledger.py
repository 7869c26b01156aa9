"""Ledgers charge before they measure, replay for free, and refuse without a trace.

Most tests run on a ledger in memory and on one on disk, which must behave alike. A
request is the name of a question: ``ledger.release(mechanism, counts, "ages")`` asks
one under the name "ages".
"""

from __future__ import annotations

import copy
import io
import os
import pickle
import threading
import traceback
import zipfile
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import ledger as ledger_module
from blowfish_fast.errors import (
    BlowfishError,
    BudgetError,
    CountsError,
    DomainError,
    EpsilonError,
    FailedDrawError,
    InputError,
    LedgerError,
    PolicyError,
    RandomnessError,
)
from blowfish_fast.measure.handle import Handle

LINE = bf.Domain(6)
CELLS = bf.workloads.Identity(LINE)
FULL = bf.policies.Full(LINE)
COUNTS = np.array([3, 1, 4, 1, 5, 9])


def laplace(epsilon=0.25, policy=FULL):
    asked = bf.workloads.Identity(policy.domain)
    return bf.Laplace(policy, asked, epsilon=epsilon)


@pytest.fixture(params=["memory", "disk"])
def ledger(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "x.ledger"
    with bf.Ledger(path, epsilon=1, policy=FULL) as opened:
        yield opened


@pytest.fixture
def path(tmp_path):
    return tmp_path / "y.ledger"


def refusing(ledger, error, match, *arguments, **options):
    """Check that a request fails before anything is charged or drawn."""
    before = ledger.spent, len(ledger.history())
    with pytest.raises(error, match=match):
        ledger.release(*arguments, **options)
    assert (ledger.spent, len(ledger.history())) == before


def test_a_release_is_charged_and_remembered(ledger):
    release = ledger.release(laplace(), COUNTS, "ages")
    assert release.private
    assert ledger.spent == Fraction(1, 4)
    assert ledger.remaining == Fraction(3, 4)
    assert ledger.epsilon == 1
    (entry,) = ledger.history()
    assert (entry.request, entry.mechanism, entry.state) == (
        "ages",
        "laplace",
        "stored",
    )
    assert entry.epsilon == Fraction(1, 4)
    assert entry.policy == FULL.describe()
    ledger.verify()


def test_a_release_knows_the_charge_that_it_was_drawn_under(ledger):
    release = ledger.release(laplace(0.25), COUNTS, "ages")
    # The entry is that of the moment of the draw, before the answer was stored.
    entry = ledger._entry_of(release)
    assert replace(entry, state="stored") == ledger.entry("ages")
    assert ledger._entry_of(laplace(0.25).release(COUNTS)) is None


def test_the_charge_is_made_before_counts_are_seen(ledger, monkeypatch):
    seen = []
    measure = Handle.measure

    def watched(self, strategy, *, budget):
        if not self.dry_run:
            seen.append((ledger.spent, ledger.history()[0].state))
        return measure(self, strategy, budget=budget)

    monkeypatch.setattr(Handle, "measure", watched)
    ledger.release(laplace(), COUNTS)
    assert seen == [(Fraction(1, 4), "reserved")]


def test_the_same_request_is_replayed_free_of_charge(ledger):
    first = ledger.release(laplace(), COUNTS, "ages")
    for data in (COUNTS, COUNTS * 100, [0] * 6, "no counts at all"):
        again = ledger.release(laplace(), data, "ages")
        assert (again.estimate == first.estimate).all()
        assert (again.intervals(CELLS) == first.intervals(CELLS)).all()
    assert ledger.spent == Fraction(1, 4)
    assert len(ledger.history()) == 1


def test_replays_are_identical_to_the_byte(path):
    with bf.Ledger(path, epsilon=1, policy=FULL) as ledger:
        release = ledger.release(laplace(), COUNTS, "ages")
        stored = ledger._journal.answers("ages")
    with bf.Ledger(path) as reopened:
        assert reopened._journal.answers("ages") == stored
        replayed = reopened.release(laplace(), COUNTS, "ages")
    assert (replayed.estimate == release.estimate).all()
    assert replayed.guarantee == release.guarantee


def test_other_requests_draw_afresh(ledger):
    first = ledger.release(laplace(0.01), COUNTS)
    second = ledger.release(laplace(0.01), COUNTS)
    assert (first.estimate != second.estimate).any()
    assert ledger.spent == Fraction(2, 100)
    assert len({entry.request for entry in ledger.history()}) == 2


def test_a_request_stands_for_one_question(ledger):
    ledger.release(laplace(), COUNTS, "ages")
    for other in (
        laplace(0.1),
        bf.Laplace(FULL, bf.workloads.Ranges(LINE, [0], [3]), epsilon=0.25),
        bf.Dawa(FULL, bf.workloads.Ranges(LINE, [0], [3]), epsilon=0.25),
    ):
        refusing(ledger, LedgerError, "another question", other, COUNTS, "ages")


def test_beyond_the_budget_nothing_happens(ledger):
    # Ledgers count in billionths and round up: 0.2500000005 is too much for a quarter.
    ledger.release(laplace(0.75), COUNTS)
    refusing(
        ledger,
        BudgetError,
        r"costs eps = 0\.250000001, and 0\.25 of 1 remains",
        laplace("0.2500000005"),
        COUNTS,
        "dear",
    )
    ledger.release(laplace(0.25), COUNTS, "dear")
    assert ledger.remaining == 0
    refusing(ledger, BudgetError, "0 of 1 remains", laplace(1e-9), COUNTS)


def test_tenths_add_up_exactly(ledger):
    for _ in range(10):
        ledger.release(laplace(0.1), COUNTS)
    assert ledger.spent == 1
    refusing(ledger, BudgetError, "remains", laplace(0.1), COUNTS)


def test_thirds_are_charged_rounded_up():
    third = Fraction(1, 3)
    with bf.Ledger(None, epsilon=1, policy=FULL) as ledger:
        ledger.release(laplace(third), COUNTS)
        assert ledger.spent == Fraction(333333334, 10**9)
        ledger.release(laplace(third), COUNTS)
        refusing(ledger, BudgetError, "0.333333332 of 1", laplace(third), COUNTS)


def test_previews_tell_what_would_happen(ledger):
    ledger.release(laplace(0.75), COUNTS)
    preview = ledger.preview(laplace(0.2))
    amounts = preview.cost, preview.before, preview.after
    assert amounts == (Fraction(1, 5), Fraction(1, 4), Fraction(1, 20))
    assert preview.accepted
    assert "0.05 would be left" in str(preview)
    assert not ledger.preview(laplace(0.3)).accepted
    of_another_policy = ledger.preview(laplace(0.1, bf.policies.Line(LINE)))
    assert not of_another_policy.accepted
    assert "neither the same" in of_another_policy.reason
    assert ledger.spent == Fraction(3, 4)
    with pytest.raises(InputError, match="releases mechanisms"):
        ledger.preview(0.3)


def test_policies_that_lack_an_edge_are_refused(ledger):
    line, absent = bf.policies.Line(LINE), bf.policies.AddRemove(LINE)
    refusing(ledger, PolicyError, "all its edges", laplace(0.1, line), COUNTS)
    refusing(ledger, PolicyError, "all its edges", laplace(0.1, absent), COUNTS)
    other = bf.policies.Full(bf.Domain(3))
    refusing(ledger, PolicyError, "all its edges", laplace(0.1, other), [1, 2, 3])


def test_projections_and_stronger_policies_are_accepted():
    line = bf.policies.Line(LINE)
    with bf.Ledger(None, epsilon=1, policy=line) as ledger:
        ledger.release(laplace(0.1, line.project([0, 0, 1, 1, 2, 2])), [4, 5, 14])
        ledger.release(laplace(0.1), COUNTS)
        assert ledger.spent == Fraction(1, 5)


def test_malformed_data_is_refused_before_the_charge(ledger):
    mechanism = laplace()
    refusing(ledger, CountsError, "shape", mechanism, [1, 2])
    refusing(ledger, CountsError, "negative", mechanism, -COUNTS)
    refusing(ledger, CountsError, "finite", mechanism, COUNTS + np.nan)
    refusing(ledger, CountsError, "whole", mechanism, COUNTS + 0.5)
    refusing(ledger, CountsError, "numbers", mechanism, list("abcdef"))
    histogram = bf.Histogram(bf.Domain(3), [1, 2, 3])
    refusing(ledger, DomainError, "one Domain", mechanism, histogram)
    refusing(ledger, InputError, "releases mechanisms", "laplace", COUNTS)
    refusing(ledger, InputError, "characters", mechanism, COUNTS, "")


def test_a_recipe_that_fails_publicly_fails_before_the_charge(ledger, monkeypatch):
    def impossible(self, private):
        raise InputError("this can never work")

    monkeypatch.setattr(bf.Laplace, "_run", impossible)
    refusing(ledger, InputError, "never work", laplace(), COUNTS)


def test_seeds_are_for_experiments(ledger):
    # A ledger on disk is about real people, and a seeded draw protects nobody.
    if ledger.path is not None:
        refusing(ledger, RandomnessError, "secret", laplace(), COUNTS, rng=1)
        generator = np.random.default_rng(1)
        refusing(ledger, RandomnessError, "secret", laplace(), COUNTS, rng=generator)
        return
    release = ledger.release(laplace(), COUNTS, rng=1)
    assert not release.private
    assert (release.estimate == laplace().release(COUNTS, rng=1).estimate).all()
    refusing(ledger, BlowfishError, "seed", laplace(), COUNTS, rng=-1)


class Broken(Exception):
    """What goes wrong inside a draw, or in a caller, in the tests below."""


def test_a_failed_draw_is_the_outcome_of_its_charge(ledger, monkeypatch):
    # Were the failure told, it would tell of the data; were the charge not settled, the
    # same request would draw again for free (hole 1 of `accounting/holes.py`).
    with monkeypatch.context() as patched:

        def fail(*_arguments, **_options):
            raise Broken("the rectangles cannot be drawn")

        patched.setattr(bf.Laplace, "_drawn", fail)
        with pytest.raises(FailedDrawError) as caught:
            ledger.release(laplace(), COUNTS, "ages")
    shown = "".join(traceback.format_exception(caught.value))
    assert "rectangles" not in shown
    assert "Broken" not in shown
    assert ledger.spent == Fraction(1, 4)
    assert ledger.history()[0].state == "stored"
    for ask in (
        lambda: ledger.release(laplace(), COUNTS, "ages"),
        lambda: ledger.replay("ages"),
    ):
        with pytest.raises(FailedDrawError, match="what it cost is spent"):
            ask()
    assert ledger.spent == Fraction(1, 4)
    ledger.verify()


@pytest.mark.parametrize("step", ["charged", "drawing"])
def test_who_breaks_off_before_the_draw_finishes_under_the_charge(ledger, step):
    # Whoever breaks off later, between two draws, must not get a second one for free
    # (hole 2 of `accounting/holes.py`); so progress is told before the draw only.
    def fail(told):
        if told == step:
            raise Broken("power cut")

    with pytest.raises(Broken) as caught:
        ledger.release(laplace(), COUNTS, "ages", progress=fail)
    assert "request='ages' finishes under this charge" in caught.value.__notes__[0]
    assert ledger.spent == Fraction(1, 4)
    assert ledger.history()[0].state == "reserved"
    refusing(ledger, CountsError, "shape", laplace(), [1], "ages")
    refusing(ledger, LedgerError, "another question", laplace(0.2), COUNTS, "ages")
    release = ledger.release(laplace(), COUNTS, "ages")
    assert ledger.spent == Fraction(1, 4)
    assert ledger.history()[0].state == "stored"
    again = ledger.release(laplace(), COUNTS, "ages")
    assert (again.estimate == release.estimate).all()


def test_a_failed_store_hands_nothing_out(path, monkeypatch):
    with bf.Ledger(path, epsilon=1, policy=FULL) as ledger:
        ledger.release(laplace(0.1), COUNTS)
        connection = ledger._journal._connection
        # The answer is a megabyte, and the file may grow by four pages only: there is
        # room for the charge, and none for the answer.
        monkeypatch.setattr(
            bf.HistogramRelease, "to_bytes", lambda _release: bytes(10**6)
        )
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(LedgerError, match="disk is full") as caught:
            ledger.release(laplace(), COUNTS, "ages")
        assert "request='ages'" in caught.value.__notes__[0]
        assert ledger.spent == Fraction(35, 100)
        monkeypatch.undo()
        connection.execute("PRAGMA max_page_count = 100000")
        ledger.release(laplace(), COUNTS, "ages")
        assert ledger.spent == Fraction(35, 100)
        ledger.verify()


def test_only_one_of_two_draws_ever_leaves(ledger, monkeypatch):
    # Both attempts find the charge reserved; the slower one must drop its draw.
    barrier = threading.Barrier(2, timeout=60)
    draw = bf.Laplace._drawn

    def together(self, *arguments, **options):
        drawn = draw(self, *arguments, **options)
        barrier.wait()
        return drawn

    monkeypatch.setattr(bf.Laplace, "_drawn", together)
    answers = []

    def ask():
        answers.append(ledger.release(laplace(0.01), COUNTS, "ages"))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (answers[0].estimate == answers[1].estimate).all()
    assert ledger.spent == Fraction(1, 100)
    ledger.verify()


def test_threads_never_overspend(ledger):
    outcomes = []

    def ask():
        for _ in range(4):
            try:
                ledger.release(laplace(0.07), COUNTS)
                outcomes.append("paid")
            except BudgetError:
                outcomes.append("refused")

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 14 times 0.07 is 0.98.
    assert outcomes.count("paid") == 14
    assert outcomes.count("refused") == 10
    assert ledger.spent == Fraction(98, 100)
    ledger.verify()


def test_unnamed_answers_are_recovered_from_disk_by_their_made_up_name(ledger):
    # A ledger in memory keeps answers of named requests only.
    release = ledger.release(laplace(), COUNTS)
    (entry,) = ledger.history()
    if ledger.path is None:
        assert entry.state == "returned"
        with pytest.raises(LedgerError, match="named by the caller"):
            ledger.release(laplace(), COUNTS, entry.request)
        return
    again = ledger.release(laplace(), COUNTS, entry.request)
    assert (again.estimate == release.estimate).all()


def test_several_ledgers_share_one_file(path):
    with bf.Ledger(path, epsilon=1, policy=FULL) as first, bf.Ledger(path) as second:
        first.release(laplace(0.6), COUNTS, "ages")
        assert second.spent == Fraction(6, 10)
        refusing(second, BudgetError, "0.4 of 1", laplace(0.6), COUNTS)
        second.release(laplace(0.4), COUNTS)
        assert first.remaining == 0
        assert second.policy == FULL


def test_reopening_takes_the_same_values_or_none(path):
    bf.Ledger(path, epsilon=1, policy=FULL).close()
    bf.Ledger(path, epsilon="1.0", policy=bf.policies.Full(bf.Domain(6))).close()
    bf.Ledger(str(path)).close()
    with pytest.raises(LedgerError, match="budget of eps = 1; received epsilon = 2"):
        bf.Ledger(path, epsilon=2, policy=FULL)
    with pytest.raises(LedgerError, match="is kept under Full"):
        bf.Ledger(path, epsilon=1, policy=bf.policies.Line(LINE))


@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.AddRemove(LINE),
        bf.policies.Line(LINE),
        bf.policies.Threshold(LINE, theta=2),
        bf.policies.Blocks(LINE, [0, 1, 0, 1, 2, 2]),
        bf.policies.Graph(LINE, [[0, 1], [2, -1]]),
        bf.policies.Threshold(LINE, theta=2).project([0, 0, 1, 2, 2, 3]),
        FULL.with_constraints(bf.policies.CountConstraints(LINE, [[1, 1, 0, 0, 0, 0]])),
    ],
    ids=lambda policy: policy.kind,
)
def test_every_policy_survives_on_disk(policy, path):
    with bf.Ledger(path, epsilon=1, policy=policy) as ledger:
        ledger.release(laplace(0.5, policy), np.arange(policy.domain.size))
    with bf.Ledger(path, epsilon=1, policy=policy) as again:
        assert again.policy == policy
        again.release(laplace(0.5, policy), np.arange(policy.domain.size))
        assert again.remaining == 0


def test_a_budget_is_not_taken_for_a_path():
    with pytest.raises(InputError, match=r"received 1\.0 as the path"):
        bf.Ledger(1.0, policy=FULL)


def test_a_new_ledger_needs_budget_and_policy(path):
    for arguments in ({}, {"epsilon": 1}, {"policy": FULL}):
        with pytest.raises(InputError, match="needs a budget and a policy"):
            bf.Ledger(path, **arguments)
        with pytest.raises(InputError, match="needs a budget and a policy"):
            bf.Ledger(None, **arguments)
    for epsilon in (0, -1, float("nan"), "much", 1e10):
        with pytest.raises(EpsilonError):
            bf.Ledger(path, epsilon=epsilon, policy=FULL)
    with pytest.raises(PolicyError, match="state the policy"):
        bf.Ledger(path, epsilon=1, policy="full")
    assert not path.exists()


def test_files_that_are_no_ledgers_are_refused(tmp_path):
    release = laplace().release(COUNTS)
    release.save(tmp_path / "a.release")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    for name in ("a.release", "empty", "folder"):
        with pytest.raises(LedgerError):
            bf.Ledger(tmp_path / name, epsilon=1, policy=FULL)
    with pytest.raises(LedgerError, match="no ledger can be made"):
        bf.Ledger(tmp_path / "nowhere" / "x", epsilon=1, policy=FULL)


def test_the_policy_is_free_until_the_first_charge(path):
    line = bf.policies.Line(LINE)
    with bf.Ledger(path, epsilon=1, policy=FULL) as first, bf.Ledger(path) as second:
        first.amend(policy=line)
        first.amend(epsilon=2)
        assert (second.policy, second.epsilon) == (line, 2)
        second.release(laplace(0.5, line), COUNTS)
        for change in ({"policy": FULL}, {"epsilon": 3}):
            with pytest.raises(LedgerError, match="frozen"):
                first.amend(**change)
        assert (first.policy, first.epsilon) == (line, 2)
        with pytest.raises(PolicyError, match="state the policy"):
            first.amend(policy="line")
        first.verify()


def test_a_policy_that_changes_during_the_checks_is_noticed(path, monkeypatch):
    line = bf.policies.Line(LINE)
    with bf.Ledger(path, epsilon=1, policy=line) as first, bf.Ledger(path) as second:
        check = ledger_module.check_room

        def meanwhile(parts):
            second.amend(policy=FULL)
            check(parts)

        monkeypatch.setattr(ledger_module, "check_room", meanwhile)
        refusing(first, LedgerError, "terms", laplace(0.1, line), COUNTS)
        monkeypatch.undo()
        refusing(first, PolicyError, "edges", laplace(0.1, line), COUNTS)


def test_a_policy_of_an_unknown_kind_is_a_clear_error(path):
    from blowfish_fast.accounting.journal import Journal

    Journal(path, 10**9, {"policy": {"kind": "from the future"}}).close()
    with pytest.raises(LedgerError, match="newer version"):
        bf.Ledger(path)


def test_copies_share_the_file_or_are_refused(ledger):
    if ledger.path is None:
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(LedgerError, match="cannot be copied"):
                attempt(ledger)
        return
    with pickle.loads(pickle.dumps(ledger)) as other:
        other.release(laplace(), COUNTS)
    assert ledger.spent == Fraction(1, 4)


def test_a_relative_path_stays_the_same_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with bf.Ledger("here.ledger", epsilon=1, policy=FULL) as ledger:
        os.chdir("/")
        ledger.release(laplace(), COUNTS)
        assert ledger.path == tmp_path / "here.ledger"


def test_a_ledger_prints_its_budget_and_no_data(ledger):
    ledger.release(laplace(), COUNTS)
    assert "eps = 1, spent 0.25)" in repr(ledger)
    ledger.close()
    assert "closed" in repr(ledger)
    with pytest.raises(LedgerError, match="open it again"):
        ledger.release(laplace(), COUNTS)


def test_the_file_holds_no_true_counts(path):
    counts = np.array([10**12 + 7, 10**12 + 77, 5, 5, 5, 10**12 + 777])
    with bf.Ledger(path, epsilon=0.5, policy=FULL) as ledger:
        # Noise of 0 in a cell, once in 10^9, would leave its count as it is.
        ledger.release(laplace(1e-9), counts, "ages")
        (answer,) = ledger._journal.answers("ages")
    with zipfile.ZipFile(io.BytesIO(answer)) as archive:
        content = [path.read_bytes(), *map(archive.read, archive.namelist())]
    # The large counts, as bytes of a whole number, of a double, and as digits.
    for count in counts[counts > 5].tolist():
        as_integer, as_double = count.to_bytes(8, "little"), np.float64(count).tobytes()
        for form in (as_integer, as_double, str(count).encode()):
            assert not any(form in part for part in content)


def test_progress_tells_public_steps_and_nothing_while_it_draws(ledger):
    steps = []
    ledger.release(laplace(), COUNTS, progress=steps.append)
    assert steps == ["checking", "charged", "drawing", "stored"]
