"""Names that people try first are answered with ours, and ours exist."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import pickle
import re

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast._support.near_misses import (
    NAMES_OF_QUESTIONS,
    OUR_NAMES,
    PACKAGES,
)
from blowfish_fast.errors import InputError


@pytest.fixture(scope="module")
def release():
    ages = bf.Domain.from_edges(range(0, 101, 5), name="age")
    laplace = bf.Laplace(bf.policies.AddRemove(ages), epsilon=1)
    return laplace.release(np.arange(20) * 1000, rng=1)


@pytest.mark.parametrize("name", OUR_NAMES)
def test_every_name_that_is_named_is_there(name, release):
    for meant in OUR_NAMES[name].split(", or "):
        if meant.startswith("`"):
            continue
        path = re.match(r"[\w.]+", meant).group().split(".")
        owner = {"release": release}.get(path[0]) or getattr(bf, path[0])
        for part in path[1:]:
            assert hasattr(owner, part), meant
            owner = getattr(owner, part)
        assert owner is not None
        asked = re.fullmatch(r"release\.where\(.*?\)\.(\w+)\(.*\)", meant)
        assert asked is None or hasattr(release.where(), asked.group(1)), meant


@pytest.mark.parametrize(
    ("owner", "name", "meant"),
    [
        (bf, "load", "Release.load"),
        (bf, "laplace", "'Laplace'"),
        (bf, "Line", "policies.Line"),
        (bf, "Identity", "workloads.Identity"),
        (bf, "OrderedHierarchical", "mechanisms.OrderedHierarchical"),
        (bf, "InputError", "errors.InputError"),
        (bf, "grid_map", "plotting.grid_map"),
        (bf.policies, "Ranges", "workloads.Ranges"),
        (bf.workloads, "Full", "policies.Full"),
        (bf.plotting, "heatmap", "plotting.grid_map"),
        (bf.policies, "Thresold", "'Threshold'"),
        (bf.workloads, "CDF", "workloads.Prefixes"),
        (bf.Domain, "from_categories", "Domain.from_levels"),
        (bf.Domain, "from_edge", "'from_edges'"),
        (bf.Release, "open", "Release.load"),
        (bf.Histogram, "from_frame", "Histogram.from_records"),
    ],
)
def test_a_missing_name_is_answered_with_the_right_one(owner, name, meant):
    with pytest.raises(AttributeError, match=re.escape(f"did you mean {meant}?")):
        getattr(owner, name)
    assert not hasattr(owner, name)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_that_are_named_have_these_public_names(package):
    place = importlib.import_module(f"blowfish_fast.{PACKAGES[package]}")
    assert getattr(bf, package) is place


def test_machinery_gets_no_hints(release):
    for owner in (bf, bf.plotting, bf.Domain):
        with pytest.raises(AttributeError) as problem:
            owner._from_levels  # noqa: B018
        assert "did you mean" not in str(problem.value)
    copy = pickle.loads(pickle.dumps(release))
    assert copy.to_bytes() == release.to_bytes()


def test_a_release_answers_with_its_own_names(release):
    with pytest.raises(AttributeError, match=r"did you mean release\.group_by\?"):
        release.groupby  # noqa: B018


def test_a_release_is_asked_and_not_indexed(release):
    with pytest.raises(TypeError, match=r"release\.group_by\('age'\)\.count\(\)"):
        release["age"]
    with pytest.raises(TypeError, match=r"received release\[3\]"):
        release[3]
    assert len(release) == 20
    assert release
    towns = bf.Domain.from_levels(["Orr", "Pim"], name="town")
    both = bf.Domain.product(towns, release.domain)
    table = bf.Laplace(bf.policies.Full(both), epsilon=1).release(np.ones((2, 20)))
    with pytest.raises(TypeError, match=r"release\.where\(\{'town': 'Orr'\}\)"):
        table["Orr"]
    for other in ("Quu", 0, slice(3), 2.5, ["Orr"]):
        with pytest.raises(TypeError, match=r"release\.group_by\('town'\)"):
            table[other]


def test_a_quantile_of_one_column_of_several(release):
    sexes = bf.Domain.from_levels(["f", "m"], name="sex")
    both = bf.Domain.product(release.domain, sexes)
    laplace = bf.Laplace(bf.policies.AddRemove(both), epsilon=1)
    table = laplace.release(np.ones((20, 2), int) * 500, rng=1)
    wanted = table.where().quantile("age", 0.25)
    assert table.quantile("age", 0.25) == table.quantile(0.25, "age") == wanted
    assert table.quantile("age") == table.where().quantile("age", 0.5)
    assert release.quantile() == release.quantile(0.5)


def test_a_file_is_kept_where_it_must_not_be_replaced(release, tmp_path):
    path = tmp_path / "ages.blowfish"
    for overwrite in (False, True, None):
        with pytest.warns(bf.errors.SeededWarning):
            release.save(path, overwrite=overwrite)
    with pytest.raises(bf.errors.ReleaseFileError, match="which is there"):
        release.save(path, overwrite=False)
    with pytest.raises(InputError, match="True or False"):
        release.save(path, overwrite="yes")


@pytest.mark.parametrize("advise", [bf.recommend, bf.compare])
def test_single_cells_are_what_is_asked_where_nothing_is_stated(advise):
    policy = bf.policies.Line(bf.Domain(16))
    stated = advise(policy, bf.workloads.Identity(policy.domain), epsilon=1)
    assert str(advise(policy, epsilon=1)) == str(stated)
    with pytest.raises(bf.errors.PolicyError, match="state the policy first"):
        advise("line", epsilon=1)


def test_a_pair_is_a_range_whatever_the_width_of_cells(release):
    ones = bf.Domain.from_edges(range(101), name="age")
    single = bf.Laplace(bf.policies.AddRemove(ones), epsilon=1)
    fine = single.release(np.arange(100), rng=1)
    months = bf.Domain.from_dates(
        np.arange("2024-01", "2025-01", dtype="datetime64[M]"), name="age"
    )
    dated = bf.Laplace(bf.policies.AddRemove(months), epsilon=1).release(
        np.arange(11), rng=1
    )
    for one, pair in (
        (release, (20, 30)),
        (release, (22, 29.5)),
        (fine, (20, 30)),
        (dated, ("2024-02", "2024-05")),
    ):
        wanted = one.where(age=slice(*pair)).count()
        assert one.where(age=pair).count() == wanted
    assert fine.where(age=(20, 30)).count() > fine.where(age=[20, 30]).count() > 0
    with pytest.raises(InputError, match=r"a range, \(low, high\); received \(1, 2, 3"):
        fine.where(age=(1, 2, 3))
    levels = bf.Domain.from_levels(["a", "b", "c"], name="kind")
    kinds = bf.Laplace(bf.policies.AddRemove(levels), epsilon=1).release([5, 6, 7])
    assert kinds.where(kind=("a", "c")).count() == kinds.where(kind=["a", "c"]).count()


def test_a_pair_of_a_wide_line_is_a_range_too():
    wide = bf.WideDomain.from_steps(cells=2**40, name="place")
    counts = bf.SparseHistogram.from_records(wide, {"place": [5, 5, 9, 2**39]})
    ranges = bf.workloads.Ranges.between(wide, [0], [2**39])
    dawa = bf.Dawa(bf.policies.AddRemove(wide), ranges, epsilon=5)
    release = dawa.release(counts, rng=1)
    half = (0, 2**39)
    wanted = release.where(place=slice(*half)).count()
    assert release.where(place=half).count() == wanted


def test_a_release_draws_itself_and_writes_itself(release, tmp_path):
    axes = release.plot()
    assert axes.get_xlabel() == "age"
    grid = bf.Domain((4, 5))
    laplace = bf.Laplace(bf.policies.AddRemove(grid), epsilon=1)
    assert laplace.release(np.ones((4, 5), int), rng=1).plot().images
    cube = bf.Domain((2, 2, 2))
    many = bf.Laplace(bf.policies.AddRemove(cube), epsilon=1)
    with pytest.raises(InputError, match="one or two attributes; received 3"):
        many.release(np.ones((2, 2, 2), int), rng=1).plot()
    release.to_csv(tmp_path / "ages.csv")
    first, second = (tmp_path / "ages.csv").read_text().splitlines()[:2]
    assert first.startswith("age")
    assert first.count(",") == second.count(",")
    assert "seeded" in second


def test_an_answer_says_what_makes_its_interval_wide(release):
    mean = release.where().mean("age")
    low, high = mean.interval()
    assert high - low > 5
    assert "Cells of age that are up to 5 wide make most" in mean.explain()
    assert "make most" not in release.where().count().explain()
    public = release.where().mean("age", values=np.arange(20.0))
    assert "Cells of age" not in public.explain()
    few = bf.Laplace(bf.policies.AddRemove(release.domain), epsilon="0.01")
    noisy = few.release(np.full(20, 3), rng=1).where().mean("age")
    assert "Noise makes most of its width" in noisy.explain(confidence=0.9)
    assert "at least 0.9." in noisy.explain(confidence=0.9)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("share", "relative_count()"),
        ("median", "quantile(name, 0.5)"),
        ("interval", "count().interval()"),
        ("groupby", "group_by"),
        ("varianc", "'variance'"),
    ],
)
def test_a_selection_answers_with_the_name_of_the_question(name, meant, release):
    for questions in (release.where(), release.group_by("age")):
        with pytest.raises(AttributeError, match=re.escape(f"did you mean {meant}?")):
            getattr(questions, name)


def test_every_name_of_a_question_is_there(release):
    for meant in NAMES_OF_QUESTIONS.values():
        assert hasattr(release.where(), re.match(r"\w+", meant).group()), meant


def test_a_selection_is_copied_without_hints(release):
    chosen = release.where(age=slice(0, 50))
    assert copy.copy(chosen).count() == chosen.count()


def test_the_only_attribute_need_not_be_named(release):
    chosen = release.where(age=slice(0, 50))
    assert chosen.mean() == chosen.mean("age")
    assert chosen.quantile(q=0.9) == chosen.quantile("age", 0.9)
    assert chosen.std() == chosen.std("age")
    with pytest.raises(InputError, match=r"Write quantile\('age', 0\.5\)"):
        chosen.quantile(0.5)


def test_of_several_attributes_one_is_named():
    table = bf.Domain((3, 2), names=["age", "sex"])
    release = bf.Laplace(bf.policies.Full(table), epsilon=1).release(
        np.ones((3, 2), dtype=int), rng=1
    )
    with pytest.raises(InputError, match="names its attribute where there are several"):
        release.where().mean()


def test_a_column_that_is_named_by_a_keyword_is_told_how():
    with pytest.raises(TypeError, match=r"write from_levels\(..., name='sex'\)\)"):
        bf.Domain.from_levels(sex=["f", "m"])
    with pytest.raises(TypeError, match=r"for each, and join them by Domain\.product"):
        bf.Domain.from_edges(age=[0, 1], pay=[0, 1])


WORDS = {
    "epsilons": ("Laplace", "did you mean 'epsilon'"),
    "eps": ("Dawa", "did you mean 'epsilon'"),
    "budget": ("Laplace", "did you mean 'epsilon'"),
    "seed": ("Laplace", r"state rng=... to release"),
    "rng": ("Hierarchy", r"state rng=... to release"),
    "trial": ("recommend", "did you mean 'trials'"),
    "mechanism": ("compare", "did you mean 'mechanisms'"),
}


@pytest.mark.parametrize("word", WORDS)
def test_a_wrong_keyword_is_answered_with_the_right_one(word):
    policy = bf.policies.AddRemove(bf.Domain(4))
    name, meant = WORDS[word]
    asked = bf.workloads.Identity(policy.domain)
    with pytest.raises(TypeError, match=meant) as told:
        getattr(bf, name)(policy, asked, **{word: 1})
    assert word in str(told.value)


def test_a_seed_is_called_rng_where_noise_is_drawn():
    policy = bf.policies.AddRemove(bf.Domain(4))
    laplace = bf.Laplace(policy, epsilon=1)
    for word in ("seed", "random_state"):
        with pytest.raises(TypeError, match="did you mean 'rng'"):
            laplace.release([1, 2, 3, 4], **{word: 1})


LINE = bf.Domain(4)
GRID = bf.Domain((2, 2), names=["a", "b"])
GUESSES = {
    "Ledger": (bf.Ledger, (), "eps", "did you mean 'epsilon'"),
    "Ledger, budget": (bf.Ledger, (), "budget", "did you mean 'epsilon'"),
    "Ledger, file": (bf.Ledger, (), "filename", "did you mean 'path'"),
    "Population": (bf.Population, ("p",), "persons", "did you mean 'person'"),
    "Series": (bf.Series, (None,), "period", "did you mean 'every'"),
    "Session": (bf.Session, (None,), "counts", "did you mean 'data'"),
    "Full": (bf.policies.Full, (LINE,), "theta", "takes domain"),
    "Threshold": (bf.policies.Threshold, (LINE,), "threshold", "mean 'theta'"),
    "Threshold, k": (
        bf.policies.Threshold,
        (LINE,),
        "k",
        "theta, unit, metric",
    ),
    "Blocks": (bf.policies.Blocks, (LINE,), "partition", "mean 'labels'"),
    "Graph": (bf.policies.Graph, (LINE,), "adjacency", "mean 'edges'"),
    "Ranges": (bf.workloads.Ranges, (LINE,), "lows", "mean 'starts'"),
    "Marginals": (bf.workloads.Marginals, (GRID,), "columns", "mean 'axes'"),
    "Linear": (bf.workloads.Linear, (LINE,), "queries", "mean 'matrix'"),
    "Sum": (bf.workloads.Sum, (LINE,), "values", "mean 'weights'"),
    "Domain": (bf.Domain, (), "size", "did you mean 'shape'"),
    "WideDomain": (bf.WideDomain, (4,), "name", "did you mean 'names'"),
    "from_edges": (bf.Domain.from_edges, (), "bins", "did you mean 'edges'"),
    "from_levels": (bf.Domain.from_levels, (), "categories", "mean 'levels'"),
    "Histogram": (bf.Histogram, (LINE,), "values", "did you mean 'counts'"),
    "from_records": (bf.Histogram.from_records, (LINE,), "data", "mean 'records'"),
    "strays": (bf.Histogram.from_records, (LINE, [1]), "clip", "mean 'outside'"),
    "risk": (bf.risk, (), "eps", "did you mean 'epsilon'"),
    "choose_at_most": (bf.choose_at_most, (), "eps", "did you mean 'epsilon'"),
}
"""What is called, what else is given, a keyword it has not got, and the answer."""


@pytest.mark.parametrize("name", GUESSES)
def test_public_callables_answer_a_guessed_keyword(name):
    call, given, word, meant = GUESSES[name]
    with pytest.raises(TypeError, match=meant) as told:
        call(*given, **{word: [1, 2]})
    # The class that was called is named, though it may inherit its constructor.
    assert str(told.value).startswith(f"{call.__qualname__}() got an unexpected")
    parameters = inspect.signature(call).parameters
    assert word not in parameters
    assert "self" not in parameters
    assert "arguments" not in parameters


def test_the_keyword_of_a_release_from_a_ledger_is_named_and_nothing_charged():
    policy = bf.policies.AddRemove(LINE)
    ledger = bf.Ledger(epsilon=1, policy=policy)
    with pytest.raises(TypeError, match="did you mean 'rng'"):
        ledger.release(bf.Laplace(policy, epsilon=1), [1, 2, 3, 4], random_state=1)
    with pytest.raises(TypeError, match="did you mean 'why'"):
        ledger.raise_budget(2, reason="the study was prolonged")
    with pytest.raises(TypeError, match="did you mean 'epsilon'"):
        ledger.certify(None, [1, 2, 3, 4], None, eps=1)
    assert ledger.spent == 0


def test_no_keyword_is_called_wrong_where_all_are_taken():
    class Takes(bf.Laplace):
        def __init__(self, policy, size, **budget):
            super().__init__(policy, **budget)

    policy = bf.policies.AddRemove(LINE)
    with pytest.raises(TypeError, match=r"positional argument: 'size'$"):
        Takes(policy, epsilon=1)
    # Parts have no keyword.
    with pytest.raises(TypeError, match=r"argument 'queries'$"):
        type(bf.workloads.Prefixes(LINE) | bf.workloads.Prefixes(LINE))(queries=1)


def test_a_constructor_that_is_no_function_is_left_alone():
    class Half(bf.Laplace):
        def named(self, policy, *, epsilon):
            bf.Laplace.__init__(self, policy, epsilon=epsilon)

        __init__ = functools.partialmethod(named, epsilon=0.5)

    assert Half(bf.policies.AddRemove(LINE)).budget.epsilon == 0.5


def test_guarded_classes_are_still_copied_and_pickled():
    policy = bf.policies.Threshold(LINE, theta=2)
    for value in (policy, LINE, bf.workloads.Prefixes(LINE)):
        again = pickle.loads(pickle.dumps(value))
        assert repr(again) == repr(value) == repr(copy.deepcopy(value))
    assert [*inspect.signature(bf.Domain).parameters] == ["shape", "names"]


def test_a_type_error_of_a_recipe_or_of_a_caller_stays_what_it_is():
    class Fails(bf.Laplace):
        def __init__(self, policy, **budget):
            super().__init__(policy, **budget)
            len(self.no_such_thing or 3)

        no_such_thing = None

    policy = bf.policies.AddRemove(bf.Domain(4))
    with pytest.raises(TypeError, match=r"has no len\(\)$"):
        Fails(policy, epsilon=1)
    assert "epsilon" in inspect.signature(bf.Laplace).parameters


def test_domains_and_histograms_say_how_they_are_asked():
    domain = bf.Domain(4)
    counts = bf.Histogram(domain, [71, 72, 73, 74])
    with pytest.raises(TypeError, match=r"domain\[0\]. Write domain.attributes"):
        domain[0]
    with pytest.raises(TypeError, match=r"histogram\[3\]. Write mechanism") as told:
        counts[3]
    assert "74" not in str(told.value)
    with pytest.raises(TypeError):
        list(counts)
    assert bool(domain)
    assert np.asarray(counts).shape == ()
