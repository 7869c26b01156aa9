"""The estimators under scikit-learn's own checks, clones, pipelines and searches."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.interop import PrivateHistogram, PrivateKMeans

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

# Checks hand over data of up to ten columns without bounds, so a word for the policy,
# two bins per column and clamping stand in for what a curator would state.
ESTIMATORS = {
    "histogram": PrivateHistogram(
        "full", mechanism="laplace", epsilon=5, bounds=(-10, 10), bins=2,
        outside="clamp", random_state=0,
    ),
    "k-means": PrivateKMeans(
        "full", n_clusters=3, epsilon=100, bounds=(-10, 10), bins=2,
        outside="clamp", random_state=0,
    ),
}  # fmt: skip

NOT_MEANINGFUL = {
    "check_array_api_input": "records are read as numpy arrays; needs SCIPY_ARRAY_API",
}
"""Checks of scikit-learn that do not apply, and why."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learns_checks_pass(name):
    failures = {}
    ran = 0
    for estimator, check in estimator_checks_generator(ESTIMATORS[name]):
        title = getattr(check, "func", check).__name__
        if title in NOT_MEANINGFUL:
            continue
        ran += 1
        try:
            check(estimator)
        except Exception as problem:
            failures[title] = problem
    assert failures == {}
    assert ran > 35


def test_clones_share_the_ledger_and_nothing_learned():
    policy = bf.policies.Full(bf.Domain.from_edges(range(0, 101, 10)))
    ledger = bf.Ledger(None, epsilon=1, policy=policy)
    model = PrivateHistogram(policy, epsilon=0.5, ledger=ledger)
    model.fit([[3.0], [40.0]])
    twin = clone(model)
    assert twin.ledger is ledger
    assert not hasattr(twin, "counts_")
    twin.fit([[3.0], [40.0]])
    assert ledger.spent == 1


def test_a_pipeline_ends_in_a_private_estimator():
    ages = np.random.default_rng(1).uniform(0, 99, size=(500, 1))
    half = FunctionTransformer(lambda x: x / 2)
    model = ESTIMATORS["histogram"].set_params(bounds=(0, 50), bins=10)
    pipeline = make_pipeline(half, clone(model)).fit(ages)
    np.testing.assert_array_equal(
        pipeline.predict(ages), pipeline[-1].predict(ages / 2)
    )
    assert pipeline.score_samples(ages).shape == (500,)


def test_a_search_charges_every_fit_to_the_shared_ledger():
    ages = np.random.default_rng(1).uniform(0, 99, size=(400, 1))
    policy = bf.policies.Full(bf.Domain.from_edges(range(0, 101, 10)))
    ledger = bf.Ledger(None, epsilon=10, policy=policy)
    model = PrivateHistogram(policy, mechanism="laplace", epsilon=1, ledger=ledger)
    search = GridSearchCV(model, {"mechanism": ["laplace", "hierarchy"]}, cv=2)
    search.fit(ages)
    assert ledger.spent == 2 * 2 + 1


def test_the_error_before_a_fit_is_scikit_learns_too():
    with pytest.raises(NotFittedError):
        clone(ESTIMATORS["k-means"]).predict([[1.0]])
