"""Doors beyond readers: what is asked of policies, ledgers and releases, and settings.

    ASKED[name] = call, its arguments by name, each with a few valid values

One to three arguments are changed, or replaced by anything at all. Whatever comes in, a
refusal must leave the books as they were.
"""

from __future__ import annotations

import functools

import numpy as np

import blowfish_fast as bf

from .examples import domains, policies, releases
from .question_doors import ragged, workloads
from .values import anything, mutated

TABLE = bf.Domain((3, 4), names=["age", "kind"])
FULL = bf.policies.Full(TABLE)
CELLS = bf.workloads.Identity(TABLE)
COUNTS = np.arange(12).reshape(3, 4)
CALM = {"epsilon": ["0.1"], "rho": [None], "delta": [None]}


def _laplace(policy=FULL):
    return bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon="0.1")


@functools.cache
def published():
    """Return one release with names, of which anything may be asked."""
    return _laplace().release(COUNTS, rng=1)


def ledger():
    """Return a ledger in memory with one charge."""
    books = bf.Ledger(None, epsilon=1, policy=FULL)
    books.release(_laplace(), COUNTS, "first", rng=1)
    return books


def unchanged(call):
    """Return a call with a ledger of its own, which a refusal must not have charged."""

    def asked(**given):
        books = ledger()
        spent = books.spent
        try:
            return call(books, **given)
        except bf.BlowfishError:
            assert books.spent == spent, "a refusal was charged"
            raise

    return asked


def ask_policy(subject, method, **given):
    """Ask a policy for something; its edges are walked."""
    method, names = method
    found = getattr(subject, method)(*(given[name] for name in names))
    if method == "edges":
        list(found)


def ask_books(books, method, **given):
    """Ask a ledger for something."""
    ask_policy(books, method, **given)


BOOK_METHODS = [
    ("verify", ["text"]),
    ("entry", ["text"]),
    ("replay", ["text"]),
    ("remaining_for", ["text"]),
    ("preview", ["mechanism"]),
    ("allot", ["text", "amount"]),
]

POLICY_METHODS = [
    ("edges", ["whole"]),
    ("edges_up_to", ["whole"]),
    ("largest_change", ["lines"]),
    ("bandwidth", ["order"]),
    ("grid_moves", ["shape", "whole"]),
    ("project", ["labels"]),
    ("distance", ["cells", "whole"]),
    ("joins", ["cells", "order"]),
    ("implies", ["order"]),
]


def ask_release(where, question, name, **given):
    """Ask a release about some cells, and how sure the answer is."""
    chosen = published().where(where)
    if question == "quantile":
        answer = chosen.quantile(name, given["q"])
    elif question == "count":
        answer = chosen.count()
    else:
        answer = getattr(chosen, question)(name, given["values"])
    answer.interval(given["confidence"], of=given["of"])


def ask_groups(names, bins, values):
    """Group the answers of a release."""
    groups = published().group_by(names, **({} if bins is None else {"age": bins}))
    groups.sum("kind", values).to_table()


def ask_quantiles(q, confidence):
    """Ask for quantiles along a line."""
    line = releases()[0]
    line.quantile(q)
    line.quantile_intervals(q, confidence)


def series(books, column, every, level, epoch, data, vouched):
    """Release one epoch of a series."""
    made = bf.Series(books, column=column, every=every, level=level)
    made.release(epoch, _laplace(), data, vouched=vouched)
    made.total(epoch)


def tables_release(policy, tables, ways, weights, plan, data, **budget):
    """Count tables of a survey."""
    asked = bf.workloads.Tables(TABLE, tables, ways=ways, weights=weights)
    bf.Contingency(policy, asked, plan=plan, **budget).release(data, rng=1)


def union(weights, tables):
    """Ask several workloads at once."""
    asked = [bf.workloads.Tables(TABLE, tables), CELLS, bf.workloads.Total(TABLE)]
    bf.workloads.Union(*asked[: 2 + (weights is None)]).answer(COUNTS)


def per_person(subject, at_most, person, count, held):
    """State a policy of persons, and count data for it."""
    stated = subject.per_person(at_most, person=person, count=count)
    counted = bf.Histogram(
        subject.domain, np.ones(subject.domain.shape, int), at_most=held
    )
    _laplace(stated).release(counted, rng=1)


def translate(policy, workload, **given):
    """Find the price of an accuracy."""
    bf.translate(policy, workload, samples=0, **given)


def settings(method, **given):
    """Build a partition, or a rule of kd-trees, from settings."""
    made, names = method
    getattr(bf.partitions, made)(**{name: given[name] for name in names})


SETTINGS = [
    ("LeastCost", ["lengths", "offset"]),
    ("NoisySort", ["largest"]),
    ("ThresholdedSort", ["threshold"]),
    ("MatchingPairs", ["window", "rounds"]),
    ("Bisection", ["levels", "share"]),
    ("KBuckets", ["buckets", "largest_count"]),
    ("DyadicTree", ["price", "query_cells", "dimensions"]),
    ("DyadicRectangles", ["price", "query_cells"]),
    ("GainRule", ["price", "caution"]),
    ("UniformityRule", ["thresholds", "count"]),
    ("cost_bound", ["cells", "candidates", "delta", "epsilon"]),
]

PLAIN = {
    "offset": [4.0],
    "threshold": [0.35],
    "share": ["1/2"],
    "price": [0.5],
    "query_cells": [1.0, 9],
    "caution": [1.3],
    "count": [0.01],
    "delta": [0.05],
    "epsilon": [1],
    "lengths": ["powers"],
    "thresholds": ["or"],
} | {
    name: [1, 2]
    for name in (
        *("largest", "window", "rounds", "levels", "buckets", "largest_count"),
        *("dimensions", "cells", "candidates"),
    )
}

WORDS = {"request": [None, "second"], "rng": [1]}

ASKED = {
    "a policy asked for anything": (
        ask_policy,
        {
            "subject": policies,
            "method": POLICY_METHODS,
            "whole": [1, 3],
            "lines": [np.ones((1, 8))],
            "order": [np.arange(8)[::-1], None],
            "shape": [(8,), (3, 4)],
            "labels": [np.arange(8) // 2],
            "cells": [[0, 1], 3],
        },
    ),
    "partitions with any settings": (settings, {"method": SETTINGS} | PLAIN),
    "release.where(...).interval": (
        ask_release,
        {
            "where": [{"age": slice(0, 2)}, {}, {"kind": [1, 2]}],
            "question": ["count", "sum", "mean", "std", "quantile"],
            "name": ["age", 1],
            "values": [None, [1.0, 2.0, 3.0, 4.0]],
            "q": [0.5],
            "confidence": [0.9],
            "of": [None, "noise"],
        },
    ),
    "release.group_by": (
        ask_groups,
        {
            "names": ["age", ["age", "kind"]],
            "bins": [None, [0, 2, 3]],
            "values": [None],
        },
    ),
    "release.quantile": (ask_quantiles, {"q": [0.5, [0.1, 0.9]], "confidence": [0.9]}),
    "bf.Series": (
        unchanged(series),
        {
            "column": ["day"],
            "every": ["day", "month"],
            "level": ["event"],
            "epoch": ["2024-03-01", "2024-03"],
            "data": [COUNTS],
            "vouched": [False],
        },
    ),
    "bf.Contingency": (
        tables_release,
        {
            "policy": [FULL, bf.policies.Attribute(TABLE)],
            "tables": [[("age",), ("age", "kind")], None],
            "ways": [None, 1],
            "weights": [None],
            "plan": ["best"],
            "data": [bf.Histogram(TABLE, COUNTS)],
        }
        | CALM,
    ),
    "workloads.Union of tables": (
        union,
        {"tables": [[("age",)], [(0,), (0, 1)]], "weights": [None, 1]},
    ),
    "policy.per_person": (
        per_person,
        {
            "subject": [FULL, bf.policies.AddRemove(TABLE)],
            "at_most": [1, 3],
            "person": [None, "patient"],
            "count": ["records"],
            "held": [1, 3],
        },
    ),
    "bf.translate": (
        translate,
        {
            "policy": lambda: [bf.policies.Full(domains()[0]), *policies()[1:2]],
            "workload": lambda: workloads()[:5],
            "alpha": [5.0],
            "beta": [0.05],
            "scope": ["simultaneous", "per_query"],
            "currency": ["epsilon", "rho"],
        },
    ),
    "bf.risk": (
        lambda **given: bf.risk(**given),
        {"prior": [0.1, [0.2, 0.5]], "epsilon": [1], "queries": [1, 3]},
    ),
    "bf.truncation_loss": (
        unchanged(lambda books, **given: bf.truncation_loss(ledger=books, **given)),
        {
            "records_per_person": [[1, 2, 9], np.array([3, 3])],
            "at_most": [[1, 3], 2],
            "up_to": [5],
            "epsilon": ["0.1"],
            "confidence": [0.9],
        }
        | WORDS,
    ),
    "bf.choose_at_most": (
        unchanged(lambda books, **given: bf.choose_at_most(ledger=books, **given)),
        {
            "records_per_person": [[1, 2, 9], np.array([3, 3])],
            "cells": [16],
            "epsilon": ["0.1"],
            "then": ["0.2"],
        }
        | WORDS,
    ),
    "ledger.certify": (
        unchanged(
            lambda books, **given: books.certify(
                given.pop("release"), given.pop("data"), given.pop("workload"), **given
            )
        ),
        {
            "release": lambda: [published()],
            "data": [COUNTS],
            "workload": [CELLS],
            "fraction": [0.9],
            "confidence": [0.9],
            "kind": [None],
            "analyst": [None],
        }
        | CALM
        | WORDS,
    ),
    "ledger.release, its words": (
        unchanged(
            lambda books, **given: books.release(_laplace(), given.pop("data"), **given)
        ),
        {
            "data": [COUNTS],
            "analyst": [None],
            "note": [None, {"why": "a test"}],
            "vouched": [False, True],
            "snapshot": [None, "monday"],
        }
        | WORDS,
    ),
    "ledger, its books": (
        unchanged(ask_books),
        {
            "method": BOOK_METHODS,
            "text": [None, "first", "ann"],
            "amount": ["0.1"],
            "mechanism": [_laplace()],
        },
    ),
    "ledger.release_disjoint": (
        unchanged(lambda books, parts, **given: books.release_disjoint(parts, **given)),
        {
            "parts": [[(_laplace(), COUNTS), (_laplace(), COUNTS + 1)]],
            "by": ["ids"],
            "scoped": [False],
            "vouched": [False],
        }
        | WORDS,
    ),
    "bf.Session": (
        unchanged(
            lambda books, data, where, **given: bf.Session(books, data).noisy_count(
                where, **given
            )
        ),
        {"data": [COUNTS], "where": [{"age": 1}, {}], "epsilon": ["0.1"]} | WORDS,
    ),
}


def _arguments(offered, rng):
    given = {}
    for name, values in offered.items():
        given[name] = rng.choice(values() if callable(values) else values)
    for name in rng.sample(sorted(given), min(len(given), rng.randrange(4))):
        if name in ("subject", "method", "question"):
            continue
        kind = rng.randrange(4)
        if kind == 0:
            given[name] = ragged(rng)
        else:
            given[name] = mutated(rng, given[name]) if kind == 1 else anything(rng)
    return [], given


def asked():
    """Return each door's call, and the function that makes its arguments."""
    return {
        name: (call, functools.partial(_arguments, offered))
        for name, (call, offered) in ASKED.items()
    }
