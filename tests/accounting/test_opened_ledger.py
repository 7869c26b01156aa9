"""A ledger that can be opened later: every altered number is noticed."""

from __future__ import annotations

import json
import os
import sqlite3

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import make_recipient_keys, opened_ledger, verify_opened
from blowfish_fast.accounting.opened_ledger import FAILED_DRAW, _against_noise, _plain
from blowfish_fast.accounting.recipients import (
    DrawSecret,
    OpenedKeys,
    Recipient,
    commitment_of,
    read_public_key,
)
from blowfish_fast.accounting.series import EpochBlocks
from blowfish_fast.errors import InputError, LedgerError, RandomnessError
from blowfish_fast.measure.randomness import DrawKey, Randomness
from blowfish_fast.mechanisms.registry import MECHANISMS, find_mechanism
from blowfish_fast.release.release import HistogramRelease
from tests.apps.cli.asking import run, told

LINE = bf.Domain(8)
POLICY = bf.policies.Full(LINE)
COUNTS = np.array([3, 0, 2, 5, 1, 1, 9, 4])
LAPLACE = bf.Laplace(POLICY, bf.workloads.Identity(LINE), epsilon=0.5)
TREE = bf.Hierarchy(POLICY, bf.workloads.AllRanges(LINE), epsilon=0.5)
DAWA = bf.Dawa(POLICY, bf.workloads.AllRanges(LINE), epsilon=0.5)


@pytest.fixture
def desk(tmp_path):
    """A folder with a recipient's keys, a ledger, and what the auditor asks."""
    return Desk(tmp_path)


class Desk:
    def __init__(self, folder):
        self.folder = folder
        self.private, self.public = folder / "private.pem", folder / "public.pem"
        make_recipient_keys(self.private, self.public)
        self.path = folder / "study.ledger"
        self.keys = folder / "study.ledger.keys"
        self.ledger = self.opened()

    def opened(self, auditor=True):
        named = self.public if auditor else None
        return bf.Ledger(self.path, epsilon=20, policy=POLICY, auditor=named)

    def verify(self, **questions):
        return verify_opened(self.ledger, self.keys, self.private, questions)


def alter_stored(monkeypatch, change):
    """Let whatever is stored from now on be changed before."""
    plain = HistogramRelease.to_bytes
    monkeypatch.setattr(
        HistogramRelease, "to_bytes", lambda release: plain(change(release))
    )


def with_row(release, row, by):
    (measured,) = release.measurements
    noisy = measured.noisy.copy()
    noisy[row] += by
    fields = vars(release) | {"measurements": (measured._replace(noisy=noisy),)}
    return HistogramRelease(**fields)


def test_answers_that_are_as_promised_pass(desk):
    for name, asked in (("cells", LAPLACE), ("tree", TREE), ("choice", DAWA)):
        desk.ledger.release(asked, COUNTS, request=name)
    assert [(one.checked, one.passed) for one in desk.verify()] == [
        ("rows", True),
        ("rows", True),
        ("key", True),
    ]
    given = {"cells": (LAPLACE, COUNTS), "tree": (TREE, COUNTS)}
    found = desk.verify(**given, choice=(DAWA, COUNTS))
    assert [(one.checked, one.passed) for one in found] == [("data", True)] * 3


@pytest.mark.parametrize("row", range(9))
def test_each_single_altered_number_is_noticed_with_the_data(desk, monkeypatch, row):
    alter_stored(monkeypatch, lambda release: with_row(release, row, 1))
    desk.ledger.release(LAPLACE, COUNTS, request="cells")
    monkeypatch.undo()
    (found,) = desk.verify(cells=(LAPLACE, COUNTS))
    assert any(f"noisy[{row}]" in one for one in found.problems)


def test_each_single_altered_estimate_is_noticed_with_the_data(desk, monkeypatch):
    def change(release):
        estimate = release.estimate.copy()
        estimate[number] += 0.25
        return HistogramRelease(**(vars(release) | {"estimate": estimate}))

    for number in range(8):
        alter_stored(monkeypatch, change)
        desk.ledger.release(DAWA, COUNTS, request=f"r{number}")
        monkeypatch.undo()
    found = desk.verify(**{f"r{number}": (DAWA, COUNTS) for number in range(8)})
    for number, one in enumerate(found):
        assert f"estimate[{number}]" in one.problems[0]


def test_each_single_altered_row_of_a_tree_is_noticed_without_the_data():
    secret = DrawSecret.new("tree")
    release = TREE.release(COUNTS, DrawKey(secret.part(0)))
    assert _against_noise(release, secret.part(0)) == []
    measured = np.flatnonzero(release.measurements[0].scales.measured)
    assert release.measurements[0].noisy.size > LINE.size
    for row in measured.tolist():
        for by in (-1, 1, 40):
            problems = _against_noise(with_row(release, row, by), secret.part(0))
            assert "no rows of whole counts" in problems[0]


def test_cells_alone_cannot_tell_other_counts_from_altered_ones():
    # Honest about what is not shown: other data would give these very numbers.
    asked = bf.Laplace(
        bf.policies.AddRemove(LINE), bf.workloads.Identity(LINE), epsilon=0.5
    )
    secret = DrawSecret.new("cells")
    release = asked.release(COUNTS, DrawKey(secret.part(0)))
    assert _against_noise(with_row(release, 3, 1), secret.part(0)) == []
    (problem,) = _against_noise(with_row(release, 1, -1), secret.part(0))
    assert problem == "cell 1 would hold -1 records: below 0"


def test_an_altered_scale_is_noticed(desk, monkeypatch):
    def change(release):
        (measured,) = release.measurements
        scales = measured.scales._replace(rates=measured.scales.rates // 2)
        fields = {"measurements": (measured.with_scales(scales),)}
        return HistogramRelease(**(vars(release) | fields))

    alter_stored(monkeypatch, change)
    desk.ledger.release(TREE, COUNTS, request="tree")
    monkeypatch.undo()
    assert not desk.verify()[0].passed
    assert "rates" in " ".join(desk.verify(tree=(TREE, COUNTS))[0].problems)


def test_a_swapped_answer_is_noticed(desk, monkeypatch):
    other = TREE.release(COUNTS)
    alter_stored(monkeypatch, lambda release: other)
    desk.ledger.release(TREE, COUNTS, request="tree")
    monkeypatch.undo()
    assert not desk.verify()[0].passed
    assert not desk.verify(tree=(TREE, COUNTS))[0].passed


def test_other_data_do_not_fit(desk):
    desk.ledger.release(DAWA, COUNTS, request="choice")
    (found,) = desk.verify(choice=(DAWA, COUNTS + 1))
    assert not found.passed


def test_another_question_is_refused(desk):
    desk.ledger.release(TREE, COUNTS, request="tree")
    with pytest.raises(LedgerError, match="another question"):
        desk.verify(tree=(LAPLACE, COUNTS))
    with pytest.raises(InputError, match="those of stored answers"):
        desk.verify(other=(LAPLACE, COUNTS))
    with pytest.raises(InputError, match=r"a question is \(mechanism, data\)"):
        desk.verify(tree=3)


def test_the_ledger_and_the_file_do_not_hold_the_key(desk, monkeypatch):
    keys = []
    plain = DrawSecret.new.__func__

    def note(cls, request):
        keys.append(plain(cls, request))
        return keys[-1]

    monkeypatch.setattr(DrawSecret, "new", classmethod(note))
    desk.ledger.release(LAPLACE, COUNTS, request="cells")
    desk.ledger.close()
    (secret,) = keys
    held = b"".join(path.read_bytes() for path in desk.folder.iterdir())
    for form in (secret.key, secret.key.hex().encode(), secret.part(0)):
        assert form not in held
    assert secret.commitment.encode() in held
    assert secret.key.hex() not in repr(secret)


def test_another_private_key_opens_nothing(desk):
    desk.ledger.release(LAPLACE, COUNTS, request="cells")
    make_recipient_keys(desk.folder / "other.pem", desk.folder / "other_public.pem")
    (found,) = verify_opened(desk.ledger, desk.keys, desk.folder / "other.pem")
    assert found.problems == (
        "the key of the answer was not sealed for this recipient",
    )


def test_a_sealed_key_of_another_draw_does_not_fit(desk):
    for name in ("one", "two"):
        desk.ledger.release(LAPLACE, COUNTS, request=name)
    lines = [json.loads(one) for one in desk.keys.read_text().splitlines()]
    lines[0]["sealed"] = lines[1]["sealed"]
    desk.keys.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    first, second = desk.verify()
    assert "not sealed for this recipient" in first.problems[0]
    assert second.passed
    desk.keys.write_text(f"{json.dumps(lines[1])}\n")
    assert "holds no key" in desk.verify()[0].problems[0]


def test_a_recipient_who_seals_another_key_is_noticed(desk):
    desk.ledger.release(LAPLACE, COUNTS, request="cells")
    (line,) = map(json.loads, desk.keys.read_text().splitlines())
    desk.keys.unlink()
    false = DrawSecret(os.urandom(32), line["commitment"])
    Recipient(read_public_key(desk.public), desk.keys).seal(false, "cells")
    assert "not the one that was committed to" in desk.verify()[0].problems[0]


def test_a_retry_has_its_own_key_and_its_own_commitment(desk, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(bf.Ledger, "_draw", fail)
    with pytest.raises(KeyboardInterrupt):
        desk.ledger.release(TREE, COUNTS, request="tree", snapshot="yesterday")
    monkeypatch.undo()
    desk.ledger.release(TREE, COUNTS, request="tree", snapshot="today")
    committed = [one["sha256"] for one in desk.ledger._journal.commitments("tree")]
    assert len({*committed}) == 2
    assert desk.ledger._journal.drawn_under() == {"tree": committed[1]}
    assert desk.verify(tree=(TREE, COUNTS))[0].passed
    keys = OpenedKeys(desk.keys, desk.private)
    assert len({keys.open(one) for one in committed}) == 2


def test_the_commitment_stands_in_the_ledger_before_the_draw(desk, monkeypatch):
    plain = bf.Ledger._draw

    def look(ledger, *arguments):
        with sqlite3.connect(desk.path) as other:
            rows = other.execute("SELECT content FROM log WHERE kind = 'charge'")
            committed.append(json.loads(rows.fetchone()[0])["commitment"]["sha256"])
        other.close()
        sealed.append(desk.keys.read_text())
        return plain(ledger, *arguments)

    committed, sealed = [], []
    monkeypatch.setattr(bf.Ledger, "_draw", look)
    desk.ledger.release(LAPLACE, COUNTS, request="cells")
    assert desk.ledger._journal.drawn_under() == {"cells": committed[0]}
    assert committed[0] in sealed[0]


def test_answers_without_a_key_are_named_once_an_auditor_was(desk, monkeypatch):
    def release(name, *, key):
        # As a version that knows no auditor would, or a curator's own code.
        with monkeypatch.context() as changed:
            if not key:
                changed.setattr(bf.Ledger, "_recipient", lambda _: None)
            desk.ledger.release(LAPLACE, COUNTS, request=name)

    release("before", key=False)
    release("with", key=True)
    release("after", key=False)
    found = desk.verify()
    assert [one.request for one in found] == ["with", "after"]
    assert "names no key" in found[1].problems[0]


def test_a_ledger_remembers_its_auditor_whoever_opens_it(desk):
    public = desk.ledger.auditor
    assert public == read_public_key(desk.public).hex()
    with bf.Ledger(desk.path) as again:
        assert again.auditor == public
        again.release(LAPLACE, COUNTS, request="cells")
        make_recipient_keys(desk.folder / "b.pem", desk.folder / "b_public.pem")
        # Named by one object, and followed by all others from the next draw on.
        again.name_auditor(desk.folder / "b_public.pem")
        assert desk.ledger.auditor != public
    desk.ledger.release(LAPLACE, COUNTS, request="later")
    by_first = desk.verify(cells=(LAPLACE, COUNTS))
    assert [one.passed for one in by_first] == [True, False]
    by_second = verify_opened(desk.ledger, desk.keys, desk.folder / "b.pem")
    assert [one.passed for one in by_second] == [False, True]
    with bf.Ledger(epsilon=1, policy=POLICY) as memory:
        assert memory.auditor is None
        with pytest.raises(InputError, match="in memory"):
            memory.name_auditor(desk.public)


def test_who_was_named_cannot_be_struck_out(desk):
    with sqlite3.connect(desk.path) as other:
        for change in ("DELETE FROM recipient", "UPDATE recipient SET time = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="recipients"):
                other.execute(change)
    other.close()


def test_epochs_of_a_series_are_drawn_again(desk, monkeypatch):
    plain = bf.policies.AddRemove(LINE)
    asked = bf.Laplace(plain, bf.workloads.Identity(LINE), epsilon=1)
    blocks = EpochBlocks(2)
    days = ["2026-11-01", "2026-11-02", "2026-11-03"]
    counts = [COUNTS, COUNTS + 1, COUNTS]
    with bf.Ledger(
        desk.folder / "days", epsilon=9, policy=plain, auditor=desk.public
    ) as ledger:
        for totals in (False, blocks):
            series = bf.Series(ledger, column="day", every="day", totals=totals)
            questions = {}
            for number, day in enumerate(days, 1):
                given = counts[number - 1] if totals is False else counts[:number]
                series.release(day, asked, given)
                questions |= series.questions(day, asked, given)
            keys = desk.folder / "days.keys"
            found = verify_opened(ledger, keys, desk.private, questions)
            told = {one.request: (one.checked, one.passed) for one in found}
            assert {told[name] for name in questions} == {("data", True)}
        assert len(questions) == 4
        alter_stored(monkeypatch, lambda release: with_row(release, 2, 1))
        series.release("2026-11-04", asked, [*counts, COUNTS])
        monkeypatch.undo()
        questions = series.questions("2026-11-04", asked, [*counts, COUNTS])
        found = verify_opened(ledger, keys, desk.private, questions)
        altered = [one for one in found if one.request in questions]
        assert [one.passed for one in altered] == [False, False]


def test_parts_have_keys_of_their_own(desk):
    parts = [(LAPLACE, COUNTS), (TREE, COUNTS)]
    desk.ledger.release_disjoint(parts, request="both")
    assert desk.verify()[0].passed
    (found,) = desk.verify(both=parts)
    assert (found.checked, found.passed) == ("data", True)
    secret = DrawSecret.new("both")
    assert secret.part(0) != secret.part(1)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_mechanism_is_drawn_again_to_the_last_digit(name):
    try:
        asked, data = find_mechanism(name).example(LINE, POLICY, 1)
    except bf.BlowfishError:
        asked, data = find_mechanism(name).example(
            bf.Domain((4, 4)), bf.policies.Full(bf.Domain((4, 4))), 1
        )
    key = os.urandom(32)
    first, second = (asked.release(data, DrawKey(key)) for _ in range(2))
    assert repr(_plain(first.to_bytes())) == repr(_plain(second.to_bytes()))
    assert first.private


def test_no_auditor_unless_one_is_named(desk, tmp_path):
    ledger = bf.Ledger(tmp_path / "plain.ledger", epsilon=1, policy=POLICY)
    ledger.release(LAPLACE, COUNTS, request="cells")
    assert not (tmp_path / "plain.ledger.keys").exists()
    assert ledger._journal.commitments("cells") == []
    assert ledger._journal.drawn_under() == {"cells": None}


def test_bad_auditors_are_refused(desk, tmp_path):
    with pytest.raises(InputError, match="in memory cannot be opened"):
        bf.Ledger(None, epsilon=1, policy=POLICY, auditor=desk.public)
    for wrong in (tmp_path / "none.pem", desk.private):
        with pytest.raises(InputError, match="a public key"):
            bf.Ledger(tmp_path / "new", epsilon=1, policy=POLICY, auditor=wrong)
    with pytest.raises(InputError, match="the file of a public key"):
        bf.Ledger(tmp_path / "new", epsilon=1, policy=POLICY, auditor=3)
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match="never written over"):
        make_recipient_keys(desk.private, tmp_path / "x")
    with pytest.raises(InputError, match="two files"):
        make_recipient_keys(tmp_path / "x", tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(InputError, match="a private key"):
        verify_opened(desk.ledger, desk.keys, desk.public)
    with pytest.raises(InputError, match="cannot be read"):
        verify_opened(desk.ledger, tmp_path / "nothing", desk.private)


def test_a_line_that_a_crash_cut_off_is_no_draw(desk):
    desk.ledger.release(LAPLACE, COUNTS, request="cells")
    with desk.keys.open("a") as file:
        file.write('{"request": "ne')
    assert desk.verify()[0].passed
    # The next key begins a line of its own; both would be lost in one.
    desk.ledger.release(LAPLACE, COUNTS, request="next")
    assert [answer.passed for answer in desk.verify()] == [True, True]


def test_keys_are_for_their_owner_only(desk):
    assert desk.private.stat().st_mode & 0o077 == 0
    desk.ledger.release(LAPLACE, COUNTS)
    assert desk.keys.stat().st_mode & 0o077 == 0


def test_keys_of_draws_are_not_copied():
    import pickle

    with pytest.raises(InputError, match="32 bytes"):
        DrawKey(b"short")
    with pytest.raises(RandomnessError, match="cannot be copied"):
        pickle.dumps(DrawKey(bytes(32)))
    assert Randomness(DrawKey(bytes(32))).secure
    assert commitment_of(bytes(32), "a") != commitment_of(bytes(32), "b")


def test_the_command_line_makes_keys_and_opens_a_ledger(desk, monkeypatch, tmp_path):
    private, public = tmp_path / "mine.pem", tmp_path / "yours.pem"
    assert "stays with the recipient" in run(
        "ledger", "keys", str(private), str(public)
    )
    ledger = bf.Ledger(tmp_path / "l", epsilon=5, policy=POLICY, auditor=public)
    ledger.release(TREE, COUNTS, request="tree")
    words = ["ledger", "verify", str(tmp_path / "l")]
    words += ["--opened", f"{tmp_path / 'l'}.keys", "--key", str(private)]
    assert "tree (hierarchy): as promised, by its rows" in run(*words)
    alter_stored(monkeypatch, lambda release: with_row(release, 1, 1))
    ledger.release(TREE, COUNTS, request="altered")
    monkeypatch.undo()
    found = told(*words, code=1)["opened"]
    assert [bool(one["problems"]) for one in found] == [False, True]


def test_a_key_that_was_not_committed_to_or_is_used_twice_is_noticed(desk, monkeypatch):
    desk.ledger.release(LAPLACE, COUNTS, request="cells")
    assert opened_ledger._committed(desk.ledger, "cells", "another") == {}
    (charge,) = desk.ledger._journal.history()
    (commitment,) = desk.ledger._journal.drawn_under().values()
    keys = OpenedKeys(desk.keys, desk.private)
    given = (desk.ledger, charge, commitment, keys)
    assert opened_ledger._secret_of(*given, {commitment})[1] == (
        "two answers were drawn with one key"
    )
    monkeypatch.setattr(opened_ledger, "_committed", lambda *_: {})
    assert "not committed to" in opened_ledger._secret_of(*given, set())[1]


def test_answers_whose_rows_leave_counts_open_are_checked_by_their_key(
    desk, monkeypatch
):
    desk.ledger.release(LAPLACE, COUNTS, request="cells")
    monkeypatch.setattr(opened_ledger, "_tell_apart", lambda _: False)
    assert [(one.checked, one.passed) for one in desk.verify()] == [("key", True)]
    # What is no histogram has no rows to compare.
    monkeypatch.setattr(opened_ledger, "read_release", lambda _: object())
    assert [(one.checked, one.passed) for one in desk.verify()] == [("key", True)]


def test_buckets_of_several_cells_leave_counts_open():
    square = bf.Domain((4, 4))
    grid = bf.mechanisms.UniformGrid(
        bf.policies.Full(square),
        bf.workloads.Rectangles.random(square, 5, rng=1),
        epsilon=0.1,
    )
    measured = grid.release(np.ones((4, 4), dtype=int), rng=1).measurements[-1]
    assert not measured.buckets.are_single_cells
    assert not opened_ledger._tell_apart(measured)


def test_data_that_cannot_be_drawn_from_are_named(desk, monkeypatch):
    desk.ledger.release(LAPLACE, COUNTS, request="cells")
    (found,) = desk.verify(cells=(LAPLACE, [1, 2]))
    assert "cannot be drawn from these data" in found.problems[0]
    (charge,) = desk.ledger._journal.history()
    secret = DrawSecret(bytes(32), "x")
    failed = [FAILED_DRAW]
    given = (desk.ledger, charge, secret, failed, (LAPLACE, [1, 2]))
    assert list(opened_ledger._against_data(*given)) == []


def test_answers_of_another_length_differ():
    (told,) = opened_ledger._differences([1], [1, 2], "rows")
    assert told == "rows has 1 entries, and 2 were drawn"


def test_a_key_that_cannot_be_written_ends_the_draw(desk, monkeypatch):
    monkeypatch.setattr(os, "write", lambda handle, text: 1)
    with pytest.raises(LedgerError, match="the key could not be written"):
        desk.ledger.release(LAPLACE, COUNTS, request="cells")


def test_a_damaged_line_of_the_recipients_file_is_named(desk):
    desk.ledger.release(LAPLACE, COUNTS, request="cells")
    line = desk.keys.read_text()
    desk.keys.write_text("{}\n" + line)
    with pytest.raises(InputError, match="line 1 of the recipient's file"):
        desk.verify()


def test_keys_of_another_kind_are_refused(desk, tmp_path):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    other = tmp_path / "other.pem"
    other.write_bytes(
        Ed25519PrivateKey.generate()
        .public_key()
        .public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    with pytest.raises(InputError, match="one of X25519"):
        bf.Ledger(tmp_path / "new", epsilon=1, policy=POLICY, auditor=other)
