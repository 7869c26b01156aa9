"""A stored answer with less noise, for the difference of the prices: Lemma PA8.

A question at a better accuracy is held against what is stored of the same records. The
noise of one answer is lowered, given what it is (``ledger.refine``), to the first level
of a public grid at which it tells the question:

    stored    running totals          epsilon .15       level 0
    asked     the same within half    epsilon .30       level 4: .15 more, not .30 more

Levels are 2^(1/4) apart. Which answer is made finer, to which level and at which price
follows from the log and the question. Content is compared when it is paid for.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from blowfish_fast.accounting.statements import Entry
from blowfish_fast.apps.explorer.layout import Layout, lay_out
from blowfish_fast.apps.explorer.past_answers import (
    KnownAnswer,
    PastAnswers,
    PastRelease,
    may_tell,
    refined_as,
    whole_price,
)
from blowfish_fast.apps.explorer.questions import (
    Accuracy,
    FrequentQuestion,
    Question,
    adds_up,
)
from blowfish_fast.errors import BlowfishError, LedgerError
from blowfish_fast.mechanisms.around_releases.refiner import Refiner
from blowfish_fast.policies import Policy

STEPS = (Fraction(1), Fraction("1.1892"), Fraction("1.4142"), Fraction("1.6818"))
"""Within a factor of 2: the powers of 2^(1/4), to four digits."""
HIGHEST = 40
"""The last level: noise is lowered to a thousandth of the first at most."""
MOST_TRIED = 4
"""Answers that are held against one question: those that cost most come first."""
MOST_BINS = 2**14
"""Bins of an answer that is made finer: each level that is tried is priced anew."""
KEPT_POLICIES = 64
"""Answers of which it is remembered whether they can be made finer."""


class Chain(NamedTuple):
    """An answer and those that were made of it.

    Attributes
    ----------
    root : Entry
        The first charge.
    last : Entry
        The last one that was answered.
    unfinished : Entry or None
        One that was charged after it and not answered yet.
    place : int
        The place of the root among the sources.
    """

    root: Entry
    last: Entry
    unfinished: Entry | None
    place: int

    @property
    def level(self) -> int:
        """The level that was paid for last."""
        paid = self.unfinished or self.last
        return int(refined_as(paid).get("level", 0))


class FinerAnswer(NamedTuple):
    """How a question would be told by a stored answer with less noise; all public.

    Attributes
    ----------
    chain : Chain
        What is made finer.
    source : PastRelease
        The stored release.
    policy : Policy
        What its mechanism protects.
    level : int
        Up to which level.
    cost : Fraction
        What that costs now.
    alpha : float
        How far the numbers would be off at most.
    """

    chain: Chain
    source: PastRelease
    policy: Policy
    level: int
    cost: Fraction
    alpha: float

    @property
    def name(self) -> str:
        """The name of the charge."""
        return level_name(self.chain.root, self.level)


def level_price(root: Entry, level: int) -> Fraction:
    """Return what a chain costs up to a level, in billionths.

    Parameters
    ----------
    root : Entry
        The first charge of the chain.
    level : int
        How many steps of 2^(1/4) above it.

    Returns
    -------
    Fraction
        An amount of epsilon.
    """
    stated = root.budget.amount * 2 ** (level // 4) * STEPS[level % 4]
    return Fraction(math.ceil(stated * 10**9), 10**9)


def level_name(root: Entry, level: int) -> str:
    """Return the name under which a level of a chain is stored.

    Parameters
    ----------
    root : Entry
        The first charge of the chain.
    level : int
        The level.

    Returns
    -------
    str
        A name that no question has: "f-" and a hash of both.
    """
    text = json.dumps([root.request, level])
    return "f-" + hashlib.sha256(text.encode()).hexdigest()[:40]


def refusal(explorer: Any) -> str | None:
    """Say why no answer of a table is made finer; None where it can be.

    Parameters
    ----------
    explorer : Explorer
        The table.

    Returns
    -------
    str or None
        A sentence about public facts.
    """
    table = explorer.table
    if explorer.ledger.currency.power != 1:
        return "a ledger in rho charges no differences: a better answer is drawn anew"
    if explorer.people is not None:
        return "tables that share a budget have no answers that are made finer"
    if table.person is not None:
        return "the records of a person are chosen anew for each answer"
    if table.snapshot is None:
        return (
            "the table is no frozen snapshot: nobody promises that its records are the "
            "same as before"
        )
    if not explorer.engine.has_content:
        return "its database tells no version of the content; files do"
    if explorer.ledger._recipient() is not None:
        return "an auditor may open the noise of this ledger, which is drawn by keys"
    return None


class Refining:
    """Makes stored answers of one table finer.

    Parameters
    ----------
    explorer : Explorer
        The table.
    past : PastAnswers
        Its stored answers.
    """

    def __init__(self, explorer: Any, past: PastAnswers) -> None:
        self._explorer, self._past = explorer, past
        self._policies: OrderedDict[str, Policy | None] = OrderedDict()
        self._lock = threading.Lock()

    def plan(self, form: Question, analyst: str | None) -> FinerAnswer | None:
        """Return the cheapest way to tell a question by a finer answer. Free; no data.

        Parameters
        ----------
        form : Question
            The question in its canonical form.
        analyst : str or None
            Who asks: the `share` of the table says whose answers count.

        Returns
        -------
        FinerAnswer or None
            None where no stored answer would tell it.
        """
        cost, table = form.cost, self._explorer.table
        if not isinstance(cost, Accuracy) or isinstance(form, FrequentQuestion):
            return None
        if adds_up(form) or refusal(self._explorer) is not None:
            return None
        touched = {*form.axes, *(stated.attribute for stated in form.filters)}
        chains = sorted(
            (
                chain
                for chain in self._chains(analyst)
                if may_tell(table, chain.root, touched)
            ),
            key=lambda chain: (-whole_price(chain.last), chain.place),
        )
        asked = lay_out(table, form)
        plans = [self._needed(chain, asked, cost) for chain in chains[:MOST_TRIED]]
        telling = (finer for finer in plans if finer is not None)
        return min(telling, key=lambda finer: finer.cost, default=None)

    def _chains(self, analyst: str | None) -> Iterator[Chain]:
        """Yield the chains over the content that the latest answer had."""
        placed = self._past.readable(self._explorer.table, analyst)
        entries = [entry for entry, _ in placed]
        after = {
            refined_as(entry)["of"]: entry for entry in entries if refined_as(entry)
        }
        label = next((entry.version for entry in entries[::-1] if entry.version), "")
        for root, place in placed:
            if refined_as(root) or not label or root.version != label:
                continue
            last, unfinished = root, None
            while last.request in after and unfinished is None:
                following = after[last.request]
                if following.state == "reserved":
                    unfinished = following
                else:
                    last = following
            yield Chain(root, last, unfinished, place)

    def _policy(self, chain: Chain) -> Policy | None:
        """Return what the mechanism of a chain protects; None if it stays as it is."""
        name = chain.root.request
        with self._lock:
            if name in self._policies:
                return self._policies[name]
        policy = self._judged(chain)
        with self._lock:
            self._policies[name] = policy
            while len(self._policies) > KEPT_POLICIES:
                self._policies.popitem(last=False)
        return policy

    def _judged(self, chain: Chain) -> Policy | None:
        explorer, root = self._explorer, chain.root
        source = self._past.source(explorer.table, root)
        if source is None or source.layout.bins > MOST_BINS:
            return None
        question = source.layout.question
        policy: Policy = explorer.planner.shape(
            explorer.table, question, limited=False
        ).policy
        try:
            explorer.ledger.price_of_refinement(
                root.request,
                epsilon=level_price(root, 1),
                version=root.version,
                policy=policy,
            )
        except BlowfishError:
            # Its noise lies on edges, or a part of its price was for something else.
            return None
        return policy

    def _needed(
        self, chain: Chain, asked: Layout, cost: Accuracy
    ) -> FinerAnswer | None:
        """Return the first level at which a chain tells a question, and its price."""
        policy = self._policy(chain)
        source = self._past.source(self._explorer.table, chain.last)
        if policy is None or source is None:
            return None

        alphas = dict[int, float]()

        def alpha_at(level: int) -> float:
            if level not in alphas:
                reached = _at_level(chain, source, policy, level, chosen=cost.chosen)
                reading = reached.read(asked, cost, chain.place)
                alphas[level] = math.inf if reading is None else reading.alpha
            return alphas[level]

        # One that was charged and not answered is finished for nothing.
        level = chain.level if chain.unfinished else chain.level + 1
        last, step = level, 1
        while last <= HIGHEST and alpha_at(last) > cost.alpha:
            level, last, step = last + 1, last + step, 2 * step
        if last > HIGHEST:
            return None
        while level < last:
            middle = (level + last) // 2
            if alpha_at(middle) <= cost.alpha:
                last = middle
            else:
                level = middle + 1
        for passed in {level, chain.level} - {0}:
            # Its law must not depend on the levels that were visited: Lemma RF5.
            price = level_price(chain.root, passed)
            if not Refiner(source.release, epsilon=price, policy=policy).is_level:
                return None
        paid = level_price(chain.root, chain.level)
        due = level_price(chain.root, level) - paid
        return FinerAnswer(chain, source, policy, level, due, alpha_at(level))

    def buy(
        self, finer: FinerAnswer, asked: Layout, analyst: str | None
    ) -> KnownAnswer:
        """Pay for a level, draw it and read it; what was charged before comes first.

        Parameters
        ----------
        finer : FinerAnswer
            What `plan` returned.
        asked : Layout
            The question, which states an accuracy.
        analyst : str or None
            Whose allotment pays.

        Returns
        -------
        KnownAnswer
            The numbers.

        Raises
        ------
        LedgerError
            If the records are others by now, or somebody was faster.
        BudgetError
            If it is more than what is left; nothing is charged.
        FailedDrawError
            If the draw failed: that is what the charge has come to.
        """
        chain, explorer, cost = finer.chain, self._explorer, asked.question.cost
        assert isinstance(cost, Accuracy), "only an accuracy is planned"
        explorer._check_affordable({finer.name: finer.cost}, analyst)
        last = chain.last
        begun = chain.unfinished
        if begun is not None:
            led = bool(refined_as(begun)["chosen"])
            last = self._drawn(finer, last, chain.level, begun.analyst, chosen=led)
        if last.request != finer.name:
            last = self._drawn(finer, last, finer.level, analyst, chosen=cost.chosen)
        source = self._past.source(explorer.table, last)
        assert source is not None, "it was drawn a line above"
        reading = source.read(asked, cost, chain.place)
        assert reading is not None, "its level was chosen so that it tells these"
        return reading

    def _drawn(
        self,
        finer: FinerAnswer,
        of: Entry,
        level: int,
        analyst: str | None,
        *,
        chosen: bool,
    ) -> Entry:
        """Count, compare the content, charge the difference and draw one level."""
        explorer, root = self._explorer, finer.chain.root
        layout, table = finer.source.layout, explorer.table
        explorer._check_unchanged()
        explorer._check_columns(table)
        before = explorer.content_label()
        counts = explorer.engine.counts(layout)
        if not before == explorer.content_label() == root.version:
            raise LedgerError(
                f"the records of {table.name!r} are no longer those that the answer "
                "was drawn from, so that it cannot be made finer; nothing was charged. "
                "Ask under a name of your own for fresh noise"
            )
        price, name = level_price(root, level), level_name(root, level)
        refined = {
            "root": root.request,
            "of": of.request,
            "level": level,
            "chosen": chosen or bool(refined_as(of).get("chosen", False)),
            "epsilon": str(price),
            "question": (root.note or {})["question"],
        }
        explorer.ledger.refine(
            of.request,
            table.bounded(counts, finer.policy.domain),
            epsilon=price,
            version=root.version,
            name=name,
            policy=finer.policy,
            analyst=analyst,
            note={"refined": refined},
            snapshot=table.snapshot,
        )
        entry: Entry | None = explorer.ledger.entry(name)
        assert entry is not None, "a release without a charge"
        return entry


def _at_level(
    chain: Chain, source: PastRelease, policy: Policy, level: int, *, chosen: bool
) -> PastRelease:
    """Return a source as it would be at a level; its numbers are not those."""
    price = level_price(chain.root, level)
    refiner = Refiner(source.release, epsilon=price, policy=policy)
    release = replace(source.release, measurements=(refiner.law,))
    begun = chain.unfinished
    if begun is not None:
        chosen = bool(refined_as(begun)["chosen"]) or (chosen and level > chain.level)
    led = chosen or source.level_chosen
    return replace(source, release=release, level=level, level_chosen=led)
