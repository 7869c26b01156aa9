"""Texts of any script that nobody listed: numbers, what has none, and lists of them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.data.rules.texts import TextRule, texts_of_bytes
from blowfish_fast.errors import InputError
from tests.generated import example_count

TEXTS = bf.KeyDomain("utf-8", longest=30, name="search")
AS_TYPED = TextRule(8, True)
STEERING = {"Cc", "Cs", "Zl", "Zp"}


def has_place(character):
    """Return whether a character is one that texts may hold, by its meaning."""
    code = ord(character)
    never = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    turns = 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
    return not never and not turns and unicodedata.category(character) not in STEERING


@pytest.mark.long
def test_every_character_has_a_place_of_its_own_in_the_order_of_bytes():
    rule = TextRule(4, True)
    numbers = {}
    for code in range(0x110000):
        character = chr(code)
        composed = unicodedata.normalize("NFC", character) == character
        if not has_place(character):
            assert rule.number(character) is None, hex(code)
        elif composed:
            numbers[character] = rule.number(character)
    words = sorted(numbers, key=lambda word: (len(word.encode()), word.encode()))
    places = [numbers[word] for word in words]
    assert None not in places
    assert places == sorted(set(places))
    assert all(rule.word(numbers[word]) == word for word in words[::97])


def test_short_texts_are_numbered_one_after_another():
    rule = TextRule(2, True)
    words = [rule.word(number) for number in range(rule.cells)]
    assert rule.cells == 1 + 95 + 95**2 + 1_888
    assert words == sorted(words, key=lambda word: (len(word.encode()), word.encode()))
    assert len(set(words)) == rule.cells
    assert [each.cells for each in rule.classes()] == [1, 95, 95**2 + 1_888]
    assert texts_of_bytes(-1) == 0


@given(st.text(max_size=10))
@settings(max_examples=example_count(200), deadline=None)
def test_any_text_comes_back_from_its_number_or_has_none(text):
    number = AS_TYPED.number(text)
    plain = unicodedata.normalize("NFC", text)
    if number is None:
        whole = all(map(has_place, plain))
        assert not whole or len(plain.encode()) > 8
    else:
        assert AS_TYPED.word(number) == plain
        assert 0 <= number < AS_TYPED.cells


@given(st.integers(0, AS_TYPED.cells - 1))
@settings(max_examples=example_count(200), deadline=None)
def test_every_number_is_a_text_that_can_be_shown(number):
    word = AS_TYPED.word(number)
    assert all(map(has_place, word))
    assert len(word.encode()) <= 8
    if unicodedata.normalize("NFC", word) == word:
        assert AS_TYPED.number(word) == number


def test_texts_are_listed_saved_and_asked_for(tmp_path):
    column = ["Zürich"] * 500 + ["ZÜRICH"] * 100 + ["東京 都"] * 300 + ["a\nb"] * 90
    data = bf.SparseHistogram.from_records(
        TEXTS, {"search": column}, outside="cell", missing="cell"
    )
    policy = bf.policies.AddRemove(data.domain)
    frequent = bf.SparseLaplace(policy, epsilon=1, false_cells="0.001")
    release = frequent.release(data, rng=1)
    with pytest.warns(UserWarning, match="seeded"):
        release.save(tmp_path / "texts.blowfish")
    again = bf.SparseRelease.load(tmp_path / "texts.blowfish")
    table = again.cells()
    assert table["search"].tolist() == ["zürich", "東京 都", ""]
    assert table["low"][0] <= 600 <= table["high"][0]
    assert again.at(["ZÜRICH"])["listed"].tolist() == [True]
    with pytest.raises(InputError, match="texts of up to 30 bytes"):
        again.at(["two\nlines"])


def test_too_long_texts_are_refused_and_others_are_another_domain():
    with pytest.raises(InputError, match="512 bits"):
        bf.KeyDomain("utf-8", longest=80)
    with pytest.raises(InputError, match="longest"):
        bf.KeyDomain("utf-8", longest=0)
    assert bf.KeyDomain("utf-8", longest=29, name="search") != TEXTS
    assert bf.KeyDomain("a-z", longest=30, name="search") != TEXTS
