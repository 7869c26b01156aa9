"""What is seen of a release from outside, besides its answer.

Whoever runs a release sees more than its answer: whether it failed and in which words,
the texts of its progress, and how many steps it took. No budget was charged for these,
and they are outputs, too:

    seen = (texts of progress, kind and words of the failure, calls of the handle)

Texts and failures must be the same for all data and all draws. The number of calls,
which a clock may guess, is compared between neighbours like any other output.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast.data.histogram import Histogram
from blowfish_fast.measure.handle import Account, Handle
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.example_data import data_for
from blowfish_fast.policies import Policy

from .confidence import Evidence, Finding, strongest_evidence
from .invariants import Breach
from .neighbours import Pair

ANSWERED = "answered"
"""The ending of a release that did not fail."""

MANY = 20_000
"""Records in a cell, enough for every private test to tell something at epsilon 1."""


class Seen(NamedTuple):
    """What one release showed besides its answer.

    Parameters
    ----------
    texts : tuple[str, ...]
        The texts of its progress, in order.
    ending : str
        "answered", or the kind and the words of the failure.
    calls : int
        Charges on the account: steps that were asked of the handle.
    """

    texts: tuple[str, ...]
    ending: str
    calls: int


class Outside(NamedTuple):
    """What the releases of two neighbours showed besides their answers.

    Parameters
    ----------
    breaches : list[Breach]
        Texts and failures that some releases showed and others did not.
    finding : Finding
        How far the numbers of calls tell neighbours apart.
    """

    breaches: list[Breach]
    finding: Finding


def audit_outside(
    mechanism: Mechanism,
    pairs: Sequence[tuple[Any, Any]],
    *,
    samples: int,
    seed: int = 0,
    confidence: float = 0.999,
) -> Outside:
    """Release neighbours many times and look at everything but the answers.

    Parameters
    ----------
    mechanism : Mechanism
        What is released; `Mechanism.check_feasible` has found nothing against it.
    pairs : sequence of two data sets each
        Neighbours under its policy, on several backgrounds.
    samples : int
        Releases of each data set, each from a seed of its own: a seeded release shows
        its failures as they are.
    seed : int
        The first of these seeds.
    confidence : float
        Of the statement about the numbers of calls.

    Returns
    -------
    Outside
        A breach for every text and every failure that some releases show and others do
        not, and for a release that fails always though it was accepted; and how far
        the numbers of calls tell neighbours apart, on the most telling pair.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(2)
    >>> mechanism, _ = bf.Laplace.example(line, bf.policies.AddRemove(line), 1)
    >>> seen = audit_outside(mechanism, [([3, 0], [2, 0])], samples=20)
    >>> seen.breaches, seen.finding.passed
    ([], True)
    """
    # Every pair is a test of its own. By the union bound, all of them together err no
    # more often than `confidence` states.
    pair_confidence = 1.0 - (1.0 - confidence) / len(pairs)
    looks: list[Seen] = []
    strongest = Evidence(0.0, None, 0)
    for pair in pairs:
        calls: list[list[int]] = []
        for data in pair:
            first = seed + len(looks)
            side = [_look(mechanism, data, first + number) for number in range(samples)]
            calls.append([look.calls for look in side])
            looks += side
        evidence = strongest_evidence(*calls, confidence=pair_confidence)
        if evidence.log_ratio >= strongest.log_ratio:
            strongest = evidence
    endings = Counter(look.ending for look in looks)
    breaches = _breaches(
        "progress tells nothing", Counter(" / ".join(look.texts) for look in looks)
    )
    breaches += _breaches("failures tell nothing", endings)
    if ANSWERED not in endings:
        listed = ", ".join(endings)
        breaches.append(Breach("what is accepted does not fail", listed))
    finding = Finding(
        f"{mechanism.name}: number of calls",
        mechanism.epsilon,
        strongest,
        samples,
        len(pairs),
    )
    return Outside(breaches, finding)


def backgrounds(policy: Policy, edge: tuple[int, int]) -> list[tuple[Any, Any]]:
    """Return neighbours along `edge` on few records, on many alike, and on a spike.

    Private tests tell these apart, so recipes take different branches on them.

    Parameters
    ----------
    policy : Policy
        Under which they are neighbours.
    edge : tuple of two cells
        Between which one record moves; -1 is "absent".

    Returns
    -------
    list of pairs of Histogram
        A pair for each background.
    """
    domain, cells = policy.domain, np.arange(policy.domain.size)
    few_in_the_upper_half = 4 * (2 * cells >= domain.size)
    many_everywhere = np.full_like(cells, MANY)
    spike_in_the_first_cell = MANY * (cells == 0)
    pairs = []
    for counts in (few_in_the_upper_half, many_everywhere, spike_in_the_first_cell):
        sides = [
            data_for(policy, Histogram(domain, side.reshape(domain.shape)))
            for side in Pair(tuple(counts.tolist()), edge).sides
        ]
        pairs.append((sides[0], sides[1]))
    return pairs


def _breaches(rule: str, seen: Counter[str]) -> list[Breach]:
    """Return a breach if there is more than one thing to be seen."""
    if len(seen) < 2:
        return []
    listed = ", ".join(f"{often} times {text!r}" for text, often in seen.most_common())
    return [Breach(rule, f"releases of one mechanism showed {listed}")]


def _look(mechanism: Mechanism, data: Any, seed: int) -> Seen:
    """Release once and note everything but the answer."""
    # A copy, whose handle notes the account of every run that draws.
    watched = copy.copy(mechanism)
    accounts: list[Account] = []
    texts: list[str] = []

    def noted(counts: Any, account: Account, source: Randomness | None) -> Handle:
        if source is not None:
            accounts.append(account)
        return mechanism._handle(counts, account, source)

    watched.__dict__["_handle"] = noted
    try:
        watched.release(data, rng=seed, progress=texts.append)
        ending = ANSWERED
    except Exception as problem:
        # Whatever it is: it would have been seen.
        ending = f"{type(problem).__name__}: {problem}"
    return Seen(tuple(texts), ending, sum(len(account.calls) for account in accounts))
