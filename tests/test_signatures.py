"""Signatures tell the truth: what may be stated is written in them, and documented."""

from __future__ import annotations

import inspect
import types

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.mechanisms.around_releases.contribution_choice import (
    ContributionChoice,
)
from blowfish_fast.mechanisms.certifier import Certifier
from blowfish_fast.mechanisms.registry import OWN

BUDGET = ("epsilon", "rho", "delta")

MECHANISMS = [*OWN.values(), Certifier, ContributionChoice]

NAMES_AS_KEYWORDS = {
    "where": "conditions by names of attributes",
    "group_by": "bins by names of attributes",
    "coarsened": "groups by names of attributes",
    "from_box": "sides by names of attributes",
    "workload": "importance by names of levels",
    "known": "conditions by names of attributes",
    "noisy_count": "conditions by names of attributes",
    "noisy_sum": "conditions by names of attributes",
    "partition": "conditions by names of attributes",
    "set_params": "parameters by name, as scikit-learn calls it",
    "Engine": "options of the mechanism that is named",
    "dpbench": "options of the mechanism that is named",
}
"""Callables whose keywords are names that nobody knows beforehand, and which names."""


def public_callables():
    """Yield every public class, function and method with its name."""
    for place in [bf, *(getattr(bf, name) for name in bf.__all__)]:
        if isinstance(place, types.ModuleType) and place is not bf.kernels:
            for name in getattr(place, "__all__", ()):
                yield from with_methods(name, getattr(place, name))


def with_methods(name, value):
    if inspect.isclass(value) and not issubclass(value, BaseException):
        yield name, value
        for member in dir(value):
            method = getattr(value, member)
            ours = str(getattr(method, "__module__", "")).startswith(bf.__name__)
            if not member.startswith("_") and callable(method) and ours:
                yield f"{name}.{member}", method
    elif inspect.isfunction(value):
        yield name, value


def test_no_public_callable_hides_words_that_it_knows():
    hidden = set()
    for name, value in public_callables():
        try:
            signature = inspect.signature(value)
        except ValueError:  # A class of the standard library.
            continue
        for one in signature.parameters.values():
            refused = one.name.startswith("_")  # Whatever is stated is refused.
            if one.kind is one.VAR_KEYWORD and one.name != "kwargs" and not refused:
                hidden.add((name.rpartition(".")[2], one.name))
    assert hidden
    assert {name for name, _ in hidden} <= set(NAMES_AS_KEYWORDS)


@pytest.mark.parametrize("kind", MECHANISMS, ids=lambda kind: kind.__name__)
def test_a_mechanism_states_and_documents_its_budget_and_all_its_options(kind):
    stated = inspect.signature(kind).parameters
    assert set(BUDGET) <= set(stated)
    assert all(stated[name].kind is inspect.Parameter.KEYWORD_ONLY for name in BUDGET)
    section = (inspect.getdoc(kind) or "").partition("Parameters\n----------\n")[2]
    section = section.partition("\n\n")[0]
    documented = {
        name.strip()
        for line in section.splitlines()
        if line and not line.startswith(" ")
        for name in line.partition(" : ")[0].split(",")
    }
    assert documented == set(stated)


@pytest.mark.parametrize(
    "call",
    [
        bf.Ledger,
        bf.Ledger.certify,
        bf.Ledger.amend,
        bf.Population,
        bf.Session.noisy_count,
        bf.Session.noisy_sum,
        bf.recommend,
        bf.compare,
        bf.choose_at_most,
        bf.truncation_loss,
        bf.risk,
    ],
    ids=lambda call: call.__qualname__,
)
def test_whatever_is_paid_for_says_how_the_price_is_stated(call):
    assert set(BUDGET) <= set(inspect.signature(call).parameters)


@pytest.mark.parametrize("kind", [bf.Histogram, bf.SparseHistogram, bf.TableCounts])
@pytest.mark.parametrize("method", ["from_records", "from_ibis"])
def test_whoever_counts_records_says_what_happens_to_strays_and_persons(kind, method):
    words = {"outside", "missing", "person", "record", "at_most", "count", "key"}
    assert words <= set(inspect.signature(getattr(kind, method)).parameters)


def test_a_wrong_word_is_answered_by_the_function_with_the_nearest_right_one():
    line = bf.Domain(4)
    with pytest.raises(TypeError, match=r"from_records\(\).*'outsid'.*'outside'"):
        bf.Histogram.from_records(line, [1, 2], outsid="clamp")
    with pytest.raises(TypeError, match=r"KMeans.*'n_clusters'"):
        bf.KMeans(bf.policies.Full(line), n_clusters=3, epsilon=1)
    with pytest.raises(TypeError, match=r"Dawa.*'epsilom'"):
        bf.Dawa(bf.policies.Full(line), bf.workloads.Identity(line), epsilom=1)


def test_records_that_are_none_are_still_what_is_blamed():
    with pytest.raises(bf.errors.InputError, match="records are columns of values"):
        bf.Histogram.from_records(bf.Domain(4), object())


def test_single_cells_are_asked_where_that_is_what_a_mechanism_is_for():
    policy = bf.policies.AddRemove(bf.Domain(8))
    for kind in OWN.values():
        if "workload" not in inspect.signature(kind).parameters:
            continue
        budget = {"rho": 1} if kind is bf.Gaussian else {"epsilon": 1}
        if kind.cells_by_default:
            assert isinstance(kind(policy, **budget).workload, bf.workloads.Identity)
        else:
            with pytest.raises(TypeError, match="workload"):
                kind(policy, **budget)
            with pytest.raises(bf.errors.WorkloadError):
                kind(policy, None, **budget)
    assert bf.Laplace.cells_by_default
    assert not bf.Dawa.cells_by_default


def test_a_ledger_without_a_path_is_kept_in_memory():
    ledger = bf.Ledger(epsilon=1, policy=bf.policies.Full(bf.Domain(4)))
    assert ledger.path is None


def test_an_array_of_records_has_one_record_per_row():
    grid = bf.Domain((2, 3))
    rows = [[0, 2], [0, 2], [1, 0]]
    counted = bf.Histogram.from_records(grid, np.array(rows))
    by_column = bf.Histogram.from_records(grid, [[0, 0, 1], [2, 2, 0]])
    assert (
        counted.counts.tolist() == by_column.counts.tolist() == [[0, 0, 2], [1, 0, 0]]
    )
    # Two records of two attributes are read as any other number of them.
    square = bf.Histogram.from_records(grid, np.array([[0, 2], [0, 1]]))
    assert square.counts.tolist() == [[0, 1, 1], [0, 0, 0]]
    with pytest.raises(bf.errors.InputError, match="one record per row"):
        bf.Histogram.from_records(grid, np.array(rows).T)
