"""How much work a price may take, worked out from public numbers before it is done.

    bins      cells of the question, those that are not shown included
    queries   numbers that are asked for
    covered   bins that all queries hold together
    pieces    runs of neighbouring bins that boxes are made of
    edges     pairs of bins that the policy joins, bounded from its factors

Nothing here looks at records, and nothing decides what is protected: a mechanism that
is not tried is one that would not have been cheaper, or one that nobody can wait for.
What is chosen keeps the policy of the table all the same.

*Single bins.* A histogram asks for each bin once. Noise on the bins has variance 8 /
epsilon^2 there, since a record that moves changes two of them. Noise on edges has 2 /
epsilon^2 for each edge that meets a bin, so it gains below four edges a bin only. A
spanning tree along which an edge is a detour of two has no less than noise on the bins,
and neither have running totals of which one edge changes two. So beyond `FEW_BINS`
bins, where bins have `DENSE` neighbours on average, noise on the bins alone is weighed,
and no edge is listed.

*Other questions.* Noise along edges is weighed where edges times queries are few
(`MOST_FOLLOWED`), and noise is drawn to sharpen a price as often as `MOST_DRAWN`
allows. Where the policy has more than `MOST_LISTED` edges that would have to be listed,
the question is priced as if whole records were secret; that is its price without a
policy too, and it is not worked out twice. A tree is tuned to boxes by going through
their pieces again and again, so it is weighed for `MOST_TUNED` of them; what boxes cost
otherwise grows with their pieces too, which are at most `MOST_PIECES`.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from blowfish_fast.errors import SizeError
from blowfish_fast.policies import Graph, PerPerson, Policy, Product, WithAbsent
from blowfish_fast.policies.projection import Projection

from .layout import Layout
from .questions import (
    AmountQuestion,
    HistogramQuestion,
    MarginalQuestion,
    Question,
    RangesQuestion,
    RectanglesQuestion,
    ShareQuestion,
)

FEW_BINS = 2**9
"""Up to so many bins every mechanism is weighed, whatever the policy."""
MANY_BINS = 2**13
"""Single bins beyond which only noise on them and on edges is weighed."""
DENSE = 4.0
"""Neighbours of a bin, on average, from which single bins gain nothing by edges."""
MOST_SINGLE_BINS = 2**18
"""Bins of a question that asks for single bins."""
MOST_NUMBERS = 5 * 2**11
"""Bins and numbers, together, of a question for totals, stretches or boxes."""
MOST_ADDED_BINS = 2**15
"""Bins of a question for sums, means or shares."""
MOST_COVERED = 2**19
"""Bins that the boxes of a question hold together."""
MOST_PIECES = 2**14
"""Runs of neighbouring bins that the boxes of a question are made of, together."""
MOST_TUNED = 2**12
"""Runs of neighbouring bins up to which a tree is tuned to boxes."""
MOST_HELD = 2**22
"""Bins times numbers of a question for sums, means or shares."""
MOST_LISTED = 2**17
"""Edges that are listed for a question other than one for single bins."""
MOST_FOLLOWED = 2**23
"""Edges times queries up to which noise along edges is weighed."""
MOST_COMPARED = 2**18
"""Bins times boxes up to which noise on the boxes themselves is weighed."""
MOST_MOVED = 2**27
"""Moves times queries, in rho, up to which noise on the queries themselves is weighed:
how far a move changes all of them at once is searched move by move there."""
MOST_DRAWN = 3 * 2**18
"""Numbers that are worked out from drawn noise in one simulation."""

SMALL = 2**8
"""Bins and what queries hold, together, up to which a price takes a moment."""
MIDDLING = 2**11
"""Bins and what queries hold, together, of prices that do not wait for larger ones."""

SINGLE_BINS = ("cells",)
"""What is weighed for single bins."""
SPARSE_BINS = ("edges", "cells")
"""What is weighed for many single bins that have few neighbours."""
AMOUNTS = ("queries",)
"""What is weighed for sums, means and shares: noise on their own two numbers."""
ALONG_EDGES = ("edges", "tree")
"""What follows every query along edges."""
OTHER_QUERIES = (
    "ordered",
    "edges",
    "tree",
    "cells",
    "ordered_hierarchical",
    "h_theta",
    "edge_lines",
    "tuned_tree",
    "queries",
    "hierarchy",
    "privelet",
    "quad_tree",
)
"""What is weighed for totals, stretches and boxes, but for what takes too long."""


Effort = Literal["small", "middling", "large"]
"""How long a price takes, by the public size of its question."""


class Work(NamedTuple):
    """What a price would have to work through; all of it is public.

    Attributes
    ----------
    bins : int
        Bins of the question, those that are not shown included.
    queries : int
        Numbers that are asked for.
    covered : int
        Bins that all listed boxes hold together; the queries themselves where stretches
        of one attribute are answered from running totals.
    edges : int
        No fewer than the pairs of bins that the policy joins.
    single : bool
        Whether each query is one bin.
    amounts : bool
        Whether values are added up.
    pieces : int
        Runs of neighbouring bins that the listed boxes are made of, together; 0 for
        other questions.
    power : int
        1 for a ledger in epsilon, 2 for one in rho.
    """

    bins: int
    queries: int
    covered: int
    edges: int
    single: bool
    amounts: bool = False
    pieces: int = 0
    power: int = 1

    @property
    def tried(self) -> tuple[str, ...] | None:
        """The mechanisms that are weighed; None for all of them."""
        if self.amounts:
            return AMOUNTS
        if self.single:
            if self.bins > FEW_BINS and self.degree >= DENSE:
                return SINGLE_BINS
            return SPARSE_BINS if self.bins > MANY_BINS else None
        left_out = set[str]()
        if self.covered > self.queries and self.bins * self.queries > MOST_COMPARED:
            left_out |= {*ALONG_EDGES, "queries"}
        if self.pieces > MOST_TUNED:
            left_out.add("tuned_tree")
        if self.edges * self.queries > MOST_FOLLOWED:
            left_out |= {*ALONG_EDGES}
        # Bins between the same ends move alike: there are two ends to a query.
        moves = min(self.edges, 2 * (self.queries + 1) ** 2)
        if self.power == 2 and moves * self.queries > MOST_MOVED:
            left_out.add("queries")
        if not left_out:
            return None
        return tuple(name for name in OTHER_QUERIES if name not in left_out)

    @property
    def degree(self) -> float:
        """Neighbours of a bin, on average."""
        return 2.0 * self.edges / self.bins

    @property
    def effort(self) -> Effort:
        """How long a price takes: a moment, less than most, or long."""
        if self.bins + self.covered <= SMALL:
            return "small"
        return "middling" if self.bins + self.covered <= MIDDLING else "large"

    def samples(self, wanted: int) -> int:
        """Return how often noise may be drawn to sharpen a price, up to `wanted`."""
        if self.tried == SINGLE_BINS:
            # Independent draws of one scale: the bound is as good as the law.
            return 0
        return min(wanted, MOST_DRAWN // (self.bins + self.covered))


def weigh(layout: Layout, policy: Policy | None, power: int = 1) -> Work:
    """Return how much work the price of a question would be.

    Parameters
    ----------
    layout : Layout
        The bins of the question.
    policy : Policy or None
        The policy over them; None where its edges do not matter yet.
    power : int
        1 for a ledger in epsilon, 2 for one in rho.

    Returns
    -------
    Work
        Its size; no edge of a policy over several attributes is listed for it.
    """
    question, queries = layout.question, math.prod(layout.asked_shape)
    covered, pieces = queries, 0
    if isinstance(question, RangesQuestion):
        queries = covered = len(question.ranges)
    elif isinstance(question, RectanglesQuestion):
        lows, highs = layout.boxes()
        sides = highs - lows
        queries, covered = len(lows), int(sides.prod(axis=1).sum())
        pieces = int(sides[:, :-1].prod(axis=1).sum())
    amounts = isinstance(question, AmountQuestion | ShareQuestion)
    if amounts:
        # Two numbers for each group, held against every bin.
        queries *= 2
        covered = queries * layout.bins
    return Work(
        bins=layout.bins,
        queries=queries,
        covered=covered,
        edges=0 if policy is None else most_edges(policy),
        single=asks_for_single_bins(question),
        amounts=amounts,
        pieces=pieces,
        power=power,
    )


def asks_for_single_bins(question: Question) -> bool:
    """Return whether each number of an answer is the count of one bin."""
    if isinstance(question, RectanglesQuestion):
        return False
    shown = HistogramQuestion | MarginalQuestion
    return isinstance(question, shown) and question.kind != "cumulative"


def most_edges(policy: Policy) -> int:
    """Bound the edges of a policy over bins, without listing those of a product.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.policies.Line(bf.Domain(10))
    >>> table = bf.policies.Product(ages, bf.policies.Full(bf.Domain(4)))
    >>> halves = table.project([cell % 20 for cell in range(40)])
    >>> most_edges(table), most_edges(halves), halves.edge_count
    (96, 96, 50)
    """
    if isinstance(policy, PerPerson | WithAbsent):
        return most_edges(policy.base) + policy.domain.size
    pairs = policy.domain.size * (policy.domain.size - 1) // 2
    if isinstance(policy, Projection) and isinstance(policy.source, Product):
        return min(pairs, policy.source.edge_count)
    return policy.edge_count


def lists_edges(policy: Policy) -> bool:
    """Return whether mechanisms would list the edges of a policy, one by one."""
    if isinstance(policy, PerPerson | WithAbsent):
        return lists_edges(policy.base)
    return isinstance(policy, Graph)


def refuse_too_much(layout: Layout, work: Work) -> None:
    """Refuse a question whose price nobody could wait for, and name one that fits.

    Parameters
    ----------
    layout : Layout
        The bins of the question.
    work : Work
        Its size.

    Raises
    ------
    SizeError
        If the question has too many bins, or if its boxes hold too many.
    """
    if work.single or work.amounts:
        most = MOST_SINGLE_BINS if work.single else MOST_ADDED_BINS
        if work.bins > most:
            what = "single bins" if work.single else "sums, means or shares"
            raise SizeError(
                f"a question for {what} is priced on up to {most:,} bins",
                received=f"{work.bins:,} bins",
                way_out=_coarser_words(layout, most),
                code="price_takes_too_long",
            )
    elif work.bins + work.queries > MOST_NUMBERS:
        raise SizeError(
            "a question for totals, stretches or boxes is priced on up to "
            f"{MOST_NUMBERS:,} bins and numbers together",
            received=f"{work.bins:,} bins, {work.queries:,} numbers",
            way_out=_fewer_words(layout, work),
            code="price_takes_too_long",
        )
    if work.amounts and work.covered > MOST_HELD:
        raise SizeError(
            "bins times groups of a priced sum, mean or share are at most "
            f"{MOST_HELD // 2:,}",
            received=f"{work.bins:,} bins, {work.queries // 2:,} groups",
            way_out=_coarser_words(layout, work.bins * MOST_HELD // work.covered),
            code="price_takes_too_long",
        )
    if not work.amounts and work.covered > MOST_COVERED:
        boxes = work.queries * MOST_COVERED // work.covered
        raise SizeError(
            f"the boxes of a priced question hold up to {MOST_COVERED:,} bins together",
            received=f"{work.covered:,} bins in {work.queries:,} boxes",
            way_out=f"Ask for {max(1, boxes):,} boxes at a time, or use wider bins",
            code="price_takes_too_long",
        )
    if work.pieces > MOST_PIECES:
        boxes = work.queries * MOST_PIECES // work.pieces
        raise SizeError(
            f"the boxes of a priced question are made of up to {MOST_PIECES:,} runs of "
            "neighbouring bins together",
            received=f"{work.pieces:,} runs in {work.queries:,} boxes",
            way_out=f"Ask for {max(1, boxes):,} boxes at a time, or use wider bins",
            code="price_takes_too_long",
        )


def _fewer_words(layout: Layout, work: Work) -> str:
    """Name what a question for totals, stretches or boxes would fit with."""
    if not isinstance(layout.question, RangesQuestion | RectanglesQuestion):
        # As many running totals as bins.
        return _coarser_words(layout, MOST_NUMBERS // 2)
    beside = MOST_NUMBERS - work.queries
    if beside >= MOST_NUMBERS // 2:
        return _coarser_words(layout, beside)
    return f"Ask for {MOST_NUMBERS // 2:,} stretches or boxes at a time"


def _coarser_words(layout: Layout, most: int) -> str:
    """Name widths of bins at which a question would fit."""
    question = layout.question
    if isinstance(question, AmountQuestion):
        # A few bins are not shown: somewhat more than the plain ratio.
        wider = question.width * math.ceil(1.25 * layout.bins / most)
        return f'Use coarser values: "width": {wider}'
    if isinstance(question, ShareQuestion):
        return "Use fewer groups"
    widths = coarser_widths(layout, most)
    if widths is None:
        return "Leave out an attribute, or a filter"
    if isinstance(layout.question, MarginalQuestion):
        return f'Use wider bins: "granularity": {widths}'
    return f'Use wider bins: "width": {widths[0]}'


def coarser_widths(layout: Layout, most: int) -> list[int] | None:
    """Return cells per bin, attribute by attribute, at which a question has few bins.

    The attribute of the most bins is made coarser first, by doubling.

    Parameters
    ----------
    layout : Layout
        The bins of the question.
    most : int
        How many bins there may be.

    Returns
    -------
    list of int or None
        The widths. None where attributes without an order have too many levels.
    """
    widths = list(layout.question.widths)
    asked = list(layout.asked_shape)
    beside = [axis.bins - axis.asked for axis in layout.axes[: layout.shown]]
    filtered = math.prod(axis.bins for axis in layout.axes[layout.shown :])
    cells = [number * width for number, width in zip(asked, widths, strict=True)]
    ordered = [
        at
        for at, axis in enumerate(layout.axes[: layout.shown])
        if axis.spec.kind != "category"
    ]
    while True:
        shape = [number + more for number, more in zip(asked, beside, strict=True)]
        if math.prod(shape) * filtered <= most:
            return widths
        wide = [at for at in ordered if asked[at] > 1]
        if not wide:
            return None
        at = max(wide, key=lambda axis: asked[axis])
        widths[at] *= 2
        asked[at] = -(-cells[at] // widths[at])
