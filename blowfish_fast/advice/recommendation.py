"""Which mechanism to use, from public facts alone, and why.

Mechanisms that draw the same noise whatever the data have a *predicted* error, exact.
Those that choose from the data have a *typical* one: the error on generated histograms
of the same domain and about as many records (``reference_shapes``), all of them seeded.

    mechanism      error          on data like
    dawa            38.1  typical   even 9, bells 41, steps 30, spikes 52 ...
    hierarchy      158.0  predicted
    laplace        432.2  predicted

Errors are root mean squares over all queries, in records.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any, Unpack
from weakref import WeakKeyDictionary

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_whole
from blowfish_fast.advice.side_by_side import (
    both_budgets,
    currency_mark,
    heading_of,
)
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.budgets import Budget, BudgetTerms
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.plugins import MechanismName
from blowfish_fast.mechanisms.registry import MECHANISMS
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .comparison import Comparison, Prediction, compare
from .ranking import LEAST_ERROR, Advice, Recommendation, shorten_reason
from .shapes import reference_shapes
from .typical_error import typical_errors

FITTED = {
    "noise_first": "noise_first",
    "ordered": "ordered_fitted",
    "transformed": "transformed",
}
"""Mechanisms whose fit or partition improves on what is predicted for their noise."""

MANY_CELLS = 2**14
TRIALS = 3
MOST_KEPT = 256

Progress = Callable[[int, int, str], None]


def recommend(
    policy: Policy,
    workload: Workload,
    *,
    records: int | None = None,
    mechanisms: Sequence[MechanismName] | None = None,
    trials: int | None = None,
    rng: int | None = None,
    progress: Progress | None = None,
    **budget: Unpack[BudgetTerms],
) -> Recommendation:
    """Rank mechanisms for a task by predicted or typical error, and say why.

    Free: no data is read.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable.
    workload : Workload
        What will be asked.
    epsilon, rho, delta : number
        What one release may spend. With `epsilon` and `delta` both currencies stand
        side by side: Laplace noise at epsilon, without delta, and Gaussian noise at the
        largest rho that implies (epsilon, delta), marked "(rho)". Laplace noise goes
        first where they are close.
    records : int, optional
        Roughly how many records there are; a public guess. Left out, mechanisms that
        adapt to the data are not tried.
    mechanisms : sequence of str or class, optional
        What to rank, instead of everything in the package; see `compare`. A mechanism
        defined outside the package is ranked like any other.
    trials : int, optional
        Releases per generated histogram; 3, or 1 on more than 2^14 cells.
    rng : int, optional
        Seed of the noise on the generated histograms, which are always the same. Left
        out, one is drawn; the typical errors are then kept while the workload lives.
    progress : callable, optional
        Called with steps done, steps in all and what comes next.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(256)
    >>> asked = bf.workloads.Ranges.random(line, 200, rng=1)
    >>> policy = bf.policies.AddRemove(line)
    >>> advice = bf.recommend(policy, asked, epsilon=0.1, records=5000, trials=1, rng=1)
    >>> advice["vertex"].kind, advice["dawa"].kind
    ('predicted', 'typical')
    >>> advice.best.error < advice["vertex"].error
    True
    """
    granted = Budget.stated(**budget)
    if records is None:
        return _from_predictions(policy, workload, granted, budget, mechanisms)
    guessed = as_whole(records, "records")
    if trials is None:
        trials = TRIALS if policy.domain.size <= MANY_CELLS else 1
    repeats = as_whole(trials, "trials", 1)
    shapes = reference_shapes(policy.domain, guessed)
    simulated: dict[str, Mechanism] = {}
    found: list[Advice] = []
    for one in both_budgets(granted, budget):
        predictions = compare(policy, workload, epsilon=one, mechanisms=mechanisms)
        fitted = FITTED
        if mechanisms is not None:
            fitted = {
                each.name: each.name for each in predictions if each.name in FITTED
            }
        mark = currency_mark(one, granted)
        drawn = _data_dependent(predictions, policy, workload, one, fitted)
        simulated |= {f"{name}{mark}": each for name, each in drawn.items()}
        found += [
            _predicted_advice(each, mark)
            for each in predictions
            if each.name not in drawn
        ]
    for number, (name, mechanism) in enumerate(simulated.items()):
        if progress is not None:
            progress(number, len(simulated), name)
        found.append(_typical_advice(name, mechanism, shapes, repeats, rng))
    if progress is not None:
        progress(len(simulated), len(simulated), "done")
    heading = (
        f"{heading_of(policy, workload, granted, budget)}, about {guessed:,} records"
    )
    return Recommendation(found, shapes, heading, granted.delta)


def _from_predictions(
    policy: Policy,
    workload: Workload,
    granted: Budget,
    terms: BudgetTerms,
    mechanisms: Sequence[MechanismName] | None,
) -> Recommendation:
    """Rank by what holds for any data, where nothing is known of their number."""
    found = [
        _predicted_advice(each, currency_mark(one, granted))
        for one in both_budgets(granted, terms)
        for each in compare(policy, workload, epsilon=one, mechanisms=mechanisms)
    ]
    heading = heading_of(policy, workload, granted, terms)
    return Recommendation(found, {}, heading, granted.delta)


def _data_dependent(
    predictions: Comparison,
    policy: Policy,
    workload: Workload,
    budget: Budget,
    fitted: dict[str, str],
) -> dict[str, Mechanism]:
    """Return the mechanisms whose error only a release shows, by name."""
    found = {
        one.name: one.mechanism
        for one in predictions
        if one.data_dependent and one.mechanism is not None
    }
    for name, shown in fitted.items():
        # A mechanism that refuses this policy or domain is left out: its strategies
        # are among the predictions, with the reason.
        with contextlib.suppress(BlowfishError):
            found[shown] = MECHANISMS[name](policy, workload, epsilon=budget)
    return found


def _predicted_advice(one: Prediction, mark: str = "") -> Advice:
    name = f"{one.name}{mark}"
    if one.admissible:
        error = math.sqrt(max(one.mean, 0.0))
        return Advice(name, "predicted", error, {}, one.mechanism, "")
    return Advice(name, "refused", math.inf, {}, None, shorten_reason(one.reason))


_KNOWN: WeakKeyDictionary[Workload, dict[Any, dict[str, float]]] = WeakKeyDictionary()
"""Errors found before, for as long as their workload lives: a few floats each."""


def _typical_advice(
    name: str,
    mechanism: Mechanism,
    shapes: dict[str, IntArray],
    trials: int,
    rng: int | None,
) -> Advice:
    # Every name stands for one mechanism with its defaults, so this tells questions
    # apart.
    records = int(next(iter(shapes.values())).sum())
    key = (
        name,
        type(mechanism),
        mechanism.policy,
        mechanism.budget,
        records,
        trials,
        rng,
    )
    known = _KNOWN.setdefault(mechanism.workload, {})
    if key not in known:
        try:
            errors = typical_errors(mechanism, shapes, trials=trials, rng=rng)
        except BlowfishError as problem:
            return Advice(
                name, "refused", math.inf, {}, None, shorten_reason(str(problem))
            )
        if len(known) >= MOST_KEPT:
            known.clear()
        known[key] = errors
    errors = dict(known[key])
    logs = [math.log(max(one, LEAST_ERROR)) for one in errors.values()]
    typical = math.exp(sum(logs) / len(logs))
    return Advice(name, "typical", typical, errors, mechanism, "")
