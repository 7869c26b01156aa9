"""Estimators: scikit-learn's conventions, with and without it, and what a fit costs."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps import interop
from blowfish_fast.apps.interop import (
    Engine,
    NotFittedError,
    PrivateHistogram,
    PrivateKMeans,
    RepeatedFitWarning,
)
from blowfish_fast.apps.interop.private_estimators import cell_volumes
from blowfish_fast.errors import (
    BlowfishError,
    BudgetError,
    EpsilonError,
    InputError,
    PolicyError,
    PrivacyError,
)
from blowfish_fast.mechanisms.registry import MECHANISMS

AGES = np.random.default_rng(3).normal(40, 12, size=(3000, 1)).clip(0, 99)
POINTS = np.random.default_rng(4).normal(0, 0.4, size=(600, 2)).clip(-2, 2)
POINTS[300:] += 5


def histogram(**changes):
    given = {"mechanism": "laplace", "epsilon": 1, "bounds": (0, 100), "bins": 20}
    return PrivateHistogram("full", **{**given, "random_state": 1, **changes})


def clusters(**changes):
    given = {"n_clusters": 2, "epsilon": 5, "bounds": (-3, 8), "random_state": 1}
    return PrivateKMeans("full", **{**given, **changes})


def test_counts_are_those_of_the_mechanism_on_the_same_histogram():
    model = histogram().fit(AGES)
    domain = bf.Domain.from_edges(np.linspace(0, 100, 21))
    data = bf.Histogram.from_records(domain, AGES[:, 0])
    laplace = bf.Laplace(
        bf.policies.Full(domain), bf.workloads.AllRanges(domain), epsilon=1
    )
    assert model.policy_ == bf.policies.Full(domain)
    np.testing.assert_array_equal(model.counts_, laplace.release(data, 1).estimate)
    assert model.release_.guarantee.epsilon == 1
    assert not model.release_.private
    assert histogram(random_state=None).fit(AGES).release_.private


def test_the_density_integrates_to_one_and_is_what_samples_score():
    model = histogram().fit(AGES)
    volumes = cell_volumes(model.policy_.domain)
    assert np.isclose((model.density_ * volumes).sum(), 1)
    assert (model.density_ >= 0).all()
    cells = (AGES[:, 0] // 5).astype(int)
    np.testing.assert_array_equal(model.predict(AGES), model.counts_[cells])
    with np.errstate(divide="ignore"):
        expected = np.log(model.density_[cells])
    np.testing.assert_array_equal(model.score_samples(AGES), expected)
    assert model.score(AGES[:5]) == expected[:5].sum()


def test_samples_look_like_the_release():
    model = histogram(epsilon=50).fit(AGES)
    drawn = model.sample(20_000, random_state=2)
    assert drawn.shape == (20_000, 1)
    assert abs(drawn.mean() - AGES.mean()) < 0.5


def test_a_histogram_of_nothing_but_noise_still_has_a_density():
    empty = histogram(bounds=(0, 1), bins=1, epsilon=0.01)
    empty.set_params(policy="add_remove")
    densities = [
        empty.set_params(random_state=seed).__sklearn_clone__().fit([[0.5]]).density_
        for seed in range(8)
    ]
    assert all(np.isclose(one.sum(), 1) for one in densities)


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"kmeans"}))
def test_every_mechanism_serves(name):
    grid = PrivateHistogram(
        "full", mechanism=name, epsilon=2, bounds=(-3, 8), bins=4, random_state=1
    )
    line = bf.Domain.from_edges(np.linspace(-3, 8, 17))
    one = PrivateHistogram(
        bf.policies.Full(line), mechanism=name, epsilon=2, random_state=1
    )
    shapes = []
    for model, records in ((grid, POINTS), (one, POINTS[:, :1])):
        try:
            shapes.append(model.fit(records).counts_.shape)
        except BlowfishError:
            shapes.append(None)
    assert shapes[0] == (4, 4) or shapes[1] == (16,)
    assert {*shapes} <= {(4, 4), (16,), None}


def test_centres_are_found_and_points_assigned():
    model = clusters().fit(POINTS)
    centres = np.sort(model.cluster_centers_, axis=0)
    np.testing.assert_allclose(centres, [[0, 0], [5, 5]], atol=1)
    labels = model.predict(POINTS)
    assert len(set(labels[:300])) == len(set(labels[300:])) == 1
    distances = model.transform(POINTS)
    np.testing.assert_allclose(
        distances[0], np.linalg.norm(POINTS[0] - model.cluster_centers_, axis=1)
    )
    assert model.score(POINTS) == pytest.approx(-(distances.min(axis=1) ** 2).sum())
    assert not hasattr(model, "labels_")
    assert not hasattr(model, "inertia_")
    np.testing.assert_array_equal(clusters().fit_predict(POINTS), labels)
    np.testing.assert_array_equal(clusters().fit_transform(POINTS), distances)


def test_stray_points_are_refused_or_clamped():
    far = np.vstack([POINTS, [[90.0, 90.0]]])
    for model in (histogram(bounds=(-3, 8)), clusters()):
        with pytest.raises(BlowfishError):
            model.fit(far)
        assert not model.__sklearn_is_fitted__()
        fitted = model.set_params(outside="clamp").fit(far)
        assert len(fitted.predict(far)) == len(far)
        with pytest.raises(InputError, match="outside"):
            model.set_params(outside="drop").fit(far)


def test_each_fit_charges_the_ledger_and_the_second_says_so():
    domain = bf.Domain.from_edges(np.linspace(0, 100, 21))
    policy = bf.policies.Full(domain)
    ledger = bf.Ledger(None, epsilon=1, policy=policy)
    model = PrivateHistogram(policy, mechanism="laplace", epsilon=0.4, ledger=ledger)
    model.fit(AGES)
    assert ledger.spent == Fraction(2, 5)
    with pytest.warns(RepeatedFitWarning, match=r"2 times.*0.8 in all.*ledger"):
        model.fit(AGES)
    assert (model.n_fits_, model.epsilon_spent_) == (2, Fraction(4, 5))
    before = model.counts_
    with pytest.raises(BudgetError):
        model.fit(AGES)
    assert model.counts_ is before
    # A clone shares the ledger, and what it spent.
    with pytest.raises(BudgetError):
        model.__sklearn_clone__().fit(AGES)
    assert ledger.spent == Fraction(4, 5)


def test_a_ledger_is_never_copied():
    policy = bf.policies.Full(bf.Domain.from_edges([0, 50, 100]))
    ledger = bf.Ledger(None, epsilon=1, policy=policy)
    model = PrivateHistogram(policy, epsilon=0.4, ledger=ledger)
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="ledger"):
            copier(model)


def test_fitted_estimators_survive_a_pickle():
    for model, records in ((histogram(), AGES), (clusters(), POINTS)):
        back = pickle.loads(pickle.dumps(model.fit(records)))
        np.testing.assert_array_equal(back.predict(records), model.predict(records))
        assert back.release_.guarantee == model.release_.guarantee


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"policy": None}, PolicyError),
        ({"policy": "everything"}, PolicyError),
        ({"epsilon": None}, EpsilonError),
        ({"epsilon": -1}, EpsilonError),
        ({"bounds": None}, InputError),
        ({"bounds": [(0, 1), (0, 1)]}, InputError),
        ({"mechanism": "kmeans"}, InputError),
        ({"mechanism": "magic"}, InputError),
        ({"policy": bf.policies.Full(bf.Domain((2, 2)))}, InputError),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_nothing_is_guessed(changes, error):
    with pytest.raises(error):
        histogram().set_params(**changes).fit(AGES)


@pytest.mark.parametrize(
    "records",
    [
        [1.0, 2.0],
        [[np.nan]],
        [[np.inf]],
        [["a"]],
        [[1j]],
        np.empty((0, 1)),
        np.empty((3, 0)),
        [[{}]],
    ],
    ids=["flat", "nan", "inf", "text", "complex", "empty", "narrow", "objects"],
)
def test_malformed_records_are_refused(records):
    with pytest.raises(InputError):
        histogram().fit(records)


def test_a_text_among_the_records_is_not_quoted():
    with pytest.raises(InputError, match="must be numbers") as caught:
        histogram().fit(np.array([["secret"], [3]], dtype=object))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_asking_before_the_fit_is_refused():
    for model in (histogram(), clusters()):
        with pytest.raises(NotFittedError):
            model.predict(AGES)
    with pytest.raises(NotFittedError):
        histogram().sample()


def test_parameters_can_be_read_and_set():
    model = histogram()
    assert model.get_params()["bins"] == 20
    assert model.set_params(bins=5).bins == 5
    with pytest.raises(InputError, match="Invalid parameter"):
        model.set_params(colour="red")
    assert repr(PrivateKMeans("full", 3, epsilon=1)) == (
        "PrivateKMeans(policy='full', n_clusters=3, epsilon=1)"
    )


def test_column_names_are_kept_and_compared():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(POINTS, columns=["x", "y"])
    model = clusters().fit(frame)
    assert list(model.feature_names_in_) == ["x", "y"]
    with pytest.raises(InputError, match="feature names"):
        model.predict(frame[["y", "x"]])
    with pytest.raises(InputError, match="expecting 2 features"):
        model.predict(frame[["x"]])


@pytest.mark.long
def test_scikit_learn_is_not_needed():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import numpy as np\n"
        "from blowfish_fast.apps.interop import PrivateHistogram, PrivateKMeans\n"
        "X = np.arange(100.0)[:, None]\n"
        "model = PrivateHistogram('full', mechanism='laplace', epsilon=1,"
        " bounds=(0, 100), bins=4)\n"
        "print(model.fit(X).predict(X).shape)\n"
        "try: PrivateKMeans('full').predict(X)\n"
        "except ValueError as problem: print(type(problem).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["(100,)", "NotFittedError"]


def test_columns_in_another_order_than_the_attributes_are_refused_uncharged():
    pandas = pytest.importorskip("pandas")
    sides = range(0, 101, 10)
    domain = bf.Domain.product(
        bf.Domain.from_edges(sides, name="age"), bf.Domain.from_edges(sides, name="pay")
    )
    policy = bf.policies.Full(domain)
    ledger = bf.Ledger(None, epsilon=2, policy=policy)
    model = PrivateHistogram(policy, mechanism="laplace", epsilon=1, ledger=ledger)
    table = pandas.DataFrame({"pay": [95.0] * 50, "age": [5.0] * 50})
    with pytest.raises(InputError, match=r"X\[\['age', 'pay'\]\]"):
        model.fit(table)
    assert ledger.remaining == 2
    assert model.fit(table[["age", "pay"]]).release_.domain == domain
    other = pandas.DataFrame({"years": [5.0] * 50, "income": [95.0] * 50})
    again = PrivateHistogram(policy, mechanism="laplace", epsilon=1, ledger=ledger)
    assert again.fit(other).n_features_in_ == 2


BOX = (0, 9)
BAD = {
    "objects": np.array([1, None, 3, "x"], dtype=object),
    "complex": np.array([1j, 2, 3, 4]),
    "texts": np.array(list("abcd")),
    "dates": np.array(["2024-01-01"] * 4, dtype="datetime64[D]"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize(
    "call",
    [
        lambda bad: Engine.dpbench("laplace").Run(np.eye(4), bad, 1.0),
        lambda bad: Engine.dpbench("laplace").Run(np.tile(bad, (4, 1)), [1] * 4, 1.0),
        lambda bad: interop.as_measurement(
            bf.Laplace(
                bf.policies.Full(bf.Domain(4)),
                bf.workloads.Identity(bf.Domain(4)),
                epsilon=1,
            )
        )(bad),
        lambda bad: PrivateHistogram("full", epsilon=1, bounds=(0, 9)).fit(
            bad[:, None]
        ),
        lambda bad: PrivateHistogram("full", epsilon=1, bounds=bad[:2]).fit([[1.0]]),
        lambda bad: PrivateKMeans("full", 2, epsilon=1, bounds=(0, 9)).fit(
            bad[:, None]
        ),
        lambda bad: PrivateKMeans(
            "full", 4, epsilon=1, bounds=BOX, init=bad[:, None]
        ).fit([[1.0]]),
    ],
    ids=["counts", "queries", "measurement", "records", "bounds", "points", "init"],
)
def test_what_is_no_number_is_refused_by_every_adapter(call, kind):
    with pytest.raises(InputError):
        call(BAD[kind])
