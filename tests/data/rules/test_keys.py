"""Words nobody listed: numbers, normal forms, counts, and thresholds by length."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.data.rules.keys import KeyRule, read_rule
from blowfish_fast.errors import DomainError, InputError
from tests.generated import example_count

WORDS = bf.KeyDomain("a-z", longest=14, name="word")
RULE = KeyRule("abc", 3, False)


def counted(column, **rules):
    data = bf.SparseHistogram.from_records(WORDS, {"word": column}, **rules)
    (attribute,) = data.domain.attributes
    named = {
        attribute.keys.word(int(key))
        if key < attribute.regular
        else attribute.extras[int(key) - attribute.regular]: int(count)
        for key, count in zip(data.keys, data.counts, strict=True)
    }
    return data, named


def test_every_word_has_a_number_of_its_own_in_order():
    words = [
        "".join(one) for n in range(4) for one in itertools.product("abc", repeat=n)
    ]
    assert [RULE.number(one) for one in words] == list(range(RULE.cells))
    assert [RULE.word(at) for at in range(RULE.cells)] == words
    assert [one.cells for one in RULE.classes()] == [1, 3, 9, 27]


@given(st.text("abcdefghijklmnopqrstuvwxyz", max_size=14))
@settings(max_examples=example_count(60), deadline=None)
def test_words_of_any_length_survive_their_number(word):
    number = WORDS.rule.number(word)
    assert number is not None
    assert 0 <= number < WORDS.size
    assert WORDS.rule.word(number) == word


@pytest.mark.long
@given(st.text(max_size=16))
@settings(max_examples=example_count(100), deadline=None)
def test_any_text_is_a_word_or_lies_outside(text):
    number = WORDS.rule.number(text)
    assert number is None or WORDS.rule.word(number) == WORDS.rule.normal(text)


def test_case_and_forms_of_unicode_are_one_word_before_all_else():
    data, named = counted(["Cat", "CAT", "cat", "ﬁsh"])
    assert named == {"cat": 3, "fish": 1}
    own = bf.KeyDomain("a-zA-Z", 3, "word", case=True)
    kept = bf.SparseHistogram.from_records(own, {"word": ["Cat", "cat"]})
    assert kept.counts.tolist() == [1, 1]
    composed = bf.KeyDomain("é", 2, "word")
    forms = bf.SparseHistogram.from_records(composed, {"word": ["é", "e\u0301", "É"]})
    assert forms.counts.tolist() == [3]
    assert data.keys.dtype == object
    assert kept.keys.dtype == np.int64


def test_strays_are_refused_or_have_cells_and_empty_words_are_words():
    _, named = counted(
        ["", "a", "ab cd", "x" * 15, None, 5, float("nan")],
        outside="cell",
        missing="cell",
    )
    assert named == {"": 1, "a": 1, "(outside)": 3, "(missing)": 2}
    with pytest.raises(InputError, match="none of its words"):
        counted(["ab cd"])
    with pytest.raises(InputError, match="missing values of word"):
        counted([None])
    with pytest.raises(InputError, match="no nearest cell"):
        counted(["a"], outside="clamp")


def test_columns_of_all_kinds_chunks_and_persons_are_counted():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"word": ["b", "a", "b"], "who": [1, 1, 2]})
    assert counted(frame["word"])[1] == {"a": 1, "b": 2}
    data = bf.SparseHistogram.from_records(WORDS, frame, person="who", at_most=1)
    assert int(data.counts.sum()) == 2
    chunks = iter([{"word": np.array(["a"])}, {"word": ["b", "a"]}])
    several = bf.SparseHistogram.from_records(WORDS, chunks)
    assert several.counts.tolist() == [2, 1]
    alone = bf.SparseHistogram.from_records(WORDS, ["a", "a"])
    assert alone.counts.tolist() == [2]
    with pytest.raises(InputError, match="one column"):
        bf.SparseHistogram.from_records(WORDS, np.array([["a"]]))


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        (("", 3), "symbols are a text"),
        ((5, 3), "symbols are a text"),
        (("z-a", 3), "goes forward"),
        (("A-Z", 3), "becomes 'a'"),
        (("a-z", 0), "longest"),
        (("a-z", 200), "512 bits"),
    ],
)
def test_rules_of_words_that_do_not_fit_are_refused(terms, why):
    with pytest.raises(InputError, match=why):
        bf.KeyDomain(*terms)


def test_symbols_are_read_in_runs():
    assert read_rule("a-c0-1-", 1, case=False).symbols == "abc01-"
    assert read_rule("aab", 1, case=False).symbols == "ab"


def test_a_domain_of_words_stands_alone_and_survives_files():
    assert bf.WideDomain.from_dict(WORDS.to_dict()) == WORDS
    assert pickle.loads(pickle.dumps(WORDS)) == WORDS
    extended = WORDS.with_extra_cells(outside=True)
    assert bf.WideDomain.from_dict(extended.to_dict()) == extended
    policy = bf.policies.AddRemove(WORDS)
    assert bf.policies.from_dict(policy.to_dict()) == policy
    for build in (
        lambda: bf.WideDomain.product(WORDS, bf.Domain(3)),
        lambda: bf.Domain.product(WORDS),
        lambda: bf.Dawa(policy, bf.workloads.Identity(WORDS), epsilon=1),
        lambda: WORDS.coarsened(word=[0, 5]),
    ):
        with pytest.raises(DomainError, match=r"word|merged"):
            build()
    plain = WORDS.to_dict()
    for keys in (["aa", 14, False], ["A", 14, False], ["ab", 600, False]):
        plain["attributes"][0]["keys"] = keys
        with pytest.raises(InputError, match=r"symbols|longest"):
            bf.WideDomain.from_dict(plain)
    plain["attributes"][0]["keys"] = ["abc", 3, False]
    with pytest.raises(DomainError, match="do not fit its size"):
        bf.WideDomain.from_dict(plain)


def test_ranges_of_words_are_refused_with_what_lists_them():
    for build in (
        lambda: bf.workloads.Ranges(WORDS, [0], [5]),
        lambda: bf.workloads.Ranges.between(WORDS, ["a"], ["b"]),
    ):
        with pytest.raises(InputError, match=r"length and symbols.*SparseLaplace"):
            build()


def test_words_of_a_series_in_a_database_are_refused():
    from blowfish_fast.data.histogram import Counting

    counting = Counting.read(WORDS)._replace(arrivals=())
    with pytest.raises(InputError, match="not by arrival"):
        bf.SparseHistogram._queried(counting, None)


def test_texts_that_a_collation_calls_equal_are_told_apart_in_a_database():
    ibis = pytest.importorskip("ibis")
    database = ibis.duckdb.connect()
    database.raw_sql("create table log (word varchar collate nocase, n integer)")
    database.raw_sql("insert into log values ('A', 1), ('a', 2), ('a', 3), (null, 4)")
    own = bf.KeyDomain("a-zA-Z", 3, "word", case=True)
    table = database.table("log")
    data = bf.SparseHistogram.from_ibis(own, table, missing="cell")
    plain = bf.SparseHistogram.from_records(
        own, {"word": ["A", "a", "a", None]}, missing="cell"
    )
    assert data.keys.tolist() == plain.keys.tolist()
    assert data.counts.tolist() == plain.counts.tolist() == [2, 1, 1]
    folded = bf.SparseHistogram.from_ibis(WORDS, table.filter(table.n < 4))
    assert folded.counts.tolist() == [3]
    with pytest.raises(InputError, match="missing values of word"):
        bf.SparseHistogram.from_ibis(WORDS, table)
    with pytest.raises(InputError, match="stated as a word"):
        bf.SparseHistogram.from_ibis(WORDS, table, columns={"word": "n"})


def released(rng=1, **terms):
    column = ["Weather"] * 800 + ["news"] * 60 + ["bus times"] * 40 + ["rare", None]
    data, _ = counted(column, outside="cell", missing="cell")
    policy = bf.policies.AddRemove(data.domain)
    stated = terms or {"epsilon": 1, "false_cells": "1e-9"}
    kind = bf.SparseGaussian if "rho" in stated else bf.SparseLaplace
    return kind(policy, **stated).release(data, rng)


def test_frequent_words_are_listed_with_intervals_of_the_truth():
    cells = released().cells()
    assert list(cells) == ["word", "word_cell", "count", "low", "high"]
    assert cells["word"].tolist() == ["news", "weather", ""]
    assert cells["word_cell"].tolist() == ["", "", "(outside)"]
    for low, true, high in zip(cells["low"], (60, 800, 40), cells["high"], strict=True):
        assert low <= true <= high
    at = released().at(["NEWS", "rare", "(outside)"])
    assert at["listed"].tolist() == [True, False, True]
    assert at["high"][1] < released().threshold + 10
    with pytest.raises(DomainError, match="words that could occur"):
        released().at(["bus times"])
    assert released().at({"word": "news"})["count"].tolist() == at["count"][:1].tolist()


def test_false_words_are_of_every_length_and_as_many_as_were_stated():
    release = released(rho="0.1", false_cells=400)
    lengths = [len(one) for one in release.cells()["word"]]
    assert max(lengths) == 14
    mean = release.expected_false_cells
    assert 50 < mean <= 400
    # Three cells are listed for their records.
    assert abs(len(lengths) - 3 - mean) < 5 * mean**0.5 + 3
    back = type(release).from_bytes(release.to_bytes())
    assert back.cells().to_dict() == release.cells().to_dict()
    assert back.to_dict() == release.to_dict()


def test_thresholds_grow_with_length_and_are_free_to_ask():
    mechanism = bf.SparseLaplace(
        bf.policies.AddRemove(WORDS), epsilon=1, false_cells="0.01"
    )
    each = mechanism.thresholds
    assert each["length"].tolist() == [str(at) for at in range(15)]
    assert each["threshold"].tolist()[6:13:6] == [27, 47]
    assert (np.diff(each["threshold"]) > 0).all()
    assert mechanism.threshold == 53
    assert mechanism.expected_false_cells <= Fraction(1, 100)
    stated = bf.SparseLaplace(bf.policies.AddRemove(WORDS), epsilon=1, threshold=60)
    assert set(stated.thresholds["threshold"].tolist()) == {60}
    line = bf.SparseLaplace(bf.policies.AddRemove(bf.Domain(9)), epsilon=1)
    assert line.thresholds["length"].tolist() == ["all"]
    with pytest.raises(InputError, match="Raise the threshold"):
        bf.SparseLaplace(bf.policies.AddRemove(WORDS), epsilon=1, threshold=5)


def test_lists_of_words_are_cut_in_their_order():
    column = ["a"] * 500 + ["b"] * 500 + ["abc"] * 500
    data, _ = counted(column)
    policy = bf.policies.AddRemove(WORDS)
    for most, words in ((1, ["a"]), (2, ["a", "b"]), (9, ["a", "b", "abc"])):
        mechanism = bf.SparseLaplace(
            policy, epsilon=1, false_cells="1e-6", most_listed=most
        )
        release = mechanism.release(data, rng=1)
        assert release.cells()["word"].tolist() == words
        assert release.complete == (most == 9)
        back = type(release).from_bytes(release.to_bytes())
        assert back.complete == release.complete
        assert np.isinf(release.at(["zzz"])["high"][0]) == (most < 9)


def test_a_ledger_pays_and_gives_the_same_list_again():
    data, _ = counted(["news"] * 900)
    policy = bf.policies.Full(WORDS)
    mechanism = bf.SparseLaplace(policy, epsilon=1, false_cells="1e-6")
    with bf.Ledger(epsilon=1, policy=policy) as ledger:
        first = ledger.release(mechanism, data, request="words")
        again = ledger.release(mechanism, data, request="words")
        assert float(ledger.remaining) == 0
    assert first.cells().to_dict() == again.cells().to_dict()
