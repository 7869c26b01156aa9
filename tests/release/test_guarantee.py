"""A promise stays as it was made, whoever gets hold of it."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from fractions import Fraction

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.release.guarantee import Guarantee

BLOCKS = bf.policies.Blocks(bf.Domain(6), [0, 0, 1, 1, 2, 2])


@pytest.fixture
def promise():
    return Guarantee.of(BLOCKS, Fraction(1, 3), secure=True, notes=("A note.",))


@pytest.mark.parametrize(
    "change",
    [
        lambda policy: policy.update(kind="full"),
        lambda policy: policy.__setitem__("kind", "full"),
        lambda policy: policy.pop("kind"),
        lambda policy: policy["labels"].__setitem__(0, 7),
        lambda policy: policy["labels"].append(7),
        lambda policy: policy["labels"].sort(),
        lambda policy: policy["domain"].clear(),
    ],
    ids=["update", "set", "pop", "label", "append", "sort", "clear"],
)
def test_the_policy_that_is_handed_out_cannot_be_changed(promise, change):
    with pytest.raises(InputError, match="does not change once it is made"):
        change(promise.policy)
    assert bf.policies.from_dict(promise.policy) == BLOCKS


def test_what_it_was_made_from_may_change_afterwards():
    plain = BLOCKS.to_dict()
    promise = Guarantee(Fraction(1), plain, "meaning", "neighbours", True)
    plain["labels"][0] = 7
    assert bf.policies.from_dict(promise.policy) == BLOCKS


def test_plain_data_is_a_copy_of_ones_own(promise):
    plain = promise.to_dict()
    assert type(plain["policy"]) is dict
    assert type(plain["policy"]["labels"]) is list
    plain["policy"]["labels"][0] = 7
    assert bf.policies.from_dict(promise.policy) == BLOCKS


def test_it_equals_plain_data_and_survives_copies(promise):
    assert promise.policy == BLOCKS.to_dict()
    assert json.dumps(promise.policy) == json.dumps(BLOCKS.to_dict())
    assert Guarantee.from_dict(json.loads(json.dumps(promise.to_dict()))) == promise
    for same in (
        copy.copy(promise),
        copy.deepcopy(promise),
        pickle.loads(pickle.dumps(promise)),
    ):
        assert same == promise
        with pytest.raises(InputError):
            same.policy["kind"] = "full"


@pytest.mark.long
def test_a_policy_is_written_once_and_forgotten_with_it():
    from blowfish_fast.release import guarantee

    def stated(policy):
        return Guarantee.of(policy, Fraction(1), secure=True, notes=())

    policy = bf.policies.Line(bf.Domain.from_edges(range(5), name="age"))
    first, second = stated(policy), stated(policy)
    assert first.policy is second.policy
    assert first.policy == policy.to_dict()
    other = bf.policies.Full(bf.Domain(4))
    assert stated(other).policy == other.to_dict()
    key = id(policy)
    assert key in guarantee._STATED
    del policy
    gc.collect()
    assert key not in guarantee._STATED


@pytest.mark.parametrize(
    ("length", "steps"), [(1, ""), (3, ", which counts as 3 steps")]
)
def test_presence_that_lies_further_away_is_told_in_the_currency(length, steps):
    policy = bf.policies.WithAbsent(bf.policies.Line(bf.Domain(4)), length)
    laws = {"epsilon": ["e^eps", "e^(3*eps)"], "rho": ["what rho allows", "9 rho"]}
    for currency, factors in laws.items():
        budget = Budget.stated(**{currency: "0.5"})
        told = str(Guarantee.of(policy, budget, secure=True, notes=()))
        assert f"or is added or removed{steps}." in told
        limit = told.partition("cannot be told beyond ")[2].partition(", and")[0]
        assert limit.removeprefix("a factor ") == factors[length > 1]
        assert currency == "epsilon" or "*eps" not in told
    only = bf.policies.TablePolicy(bf.Domain(4, names=["age"]), presence="only")
    told = Guarantee.of(only, Budget(Fraction(1), 2), secure=True, notes=()).meaning
    assert "nor, beyond 4 rho, which of any two records she has" in told
