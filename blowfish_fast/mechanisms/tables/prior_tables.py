"""Tables of another survey, which everybody knows, as a first guess of dependences.

    public tables of pairs -> log ratios -> the strongest pairs that form a forest

Last year's release, a census or a survey of another country says which attributes
depend on each other, and how. The model begins there in place of independence, and the
private choice then looks for what *differs*. Shares of single attributes always come
from the data. Where the other survey is wrong, a chosen pair says so and replaces it.
Lemma DC9 says why nothing of this costs budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import quoted
from blowfish_fast.data.domain import Attributes
from blowfish_fast.data.tables.merged_tables import Grouping
from blowfish_fast.errors import InputError
from blowfish_fast.measure.strategies.tables.residuals import AxisSet
from blowfish_fast.release.entropy.junction_tree import tree_cells

LEAST_MISPLACED = 0.02
"""Pairs are taken that independence misplaces by this share of records and more.

Weaker ones would fill the model, and keep out pairs that the data choose.
"""


@runtime_checkable
class PublishedTables(Protocol):
    """What a release of tables offers, by which it can serve as a prior."""

    @property
    def domain(self) -> Any:
        """The attributes."""
        ...

    @property
    def asked(self) -> Any:
        """The names of the attributes of each table that it answers."""
        ...

    def fitted(self, *names: Any, whole: bool = False) -> Any:
        """Return one table without negative counts.

        Parameters
        ----------
        *names : str or int
            The attributes of the table.
        whole : bool, default False
            Whether counts are whole.

        Returns
        -------
        HistogramRelease
            The table.
        """
        ...


class PriorTables:
    """Public tables of pairs, from a release or from counts: Lemma DC9.

    Parameters
    ----------
    domain : Attributes
        All attributes of the survey that is to be released.
    pairs : sequence of pairs of int
        The pairs that may be used.
    source : release of tables, or mapping from pairs of attributes to counts
        A release over the same attributes, of which those `pairs` are read that it
        answers; or arrays of
        counts with one axis for each attribute, in the order of the pair.

    Raises
    ------
    InputError
        If the source is neither, if attributes or shapes differ, if a pair is stated
        twice, or if counts are negative, not finite or all 0.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.Domain((2, 2), names=["sex", "smokes"])
    >>> prior = PriorTables(survey, [(0, 1)], {("sex", "smokes"): [[30, 10], [10, 50]]})
    >>> whole = [Grouping.single_cells(2)] * 2
    >>> np.exp(prior.log_ratios(whole, 100)[0, 1]).round(2).tolist()
    [[1.84, 0.44], [0.44, 1.37]]
    """

    def __init__(
        self, domain: Attributes, pairs: Sequence[AxisSet], source: Any
    ) -> None:
        if isinstance(source, Mapping):
            self.tables = _stated_tables(domain, source)
        elif isinstance(source, PublishedTables):
            self.tables = _released_tables(domain, pairs, source)
        else:
            raise InputError(
                "prior is a release of tables, or a mapping from pairs of attributes "
                "to counts",
                received=quoted(source),
                way_out='Write bf.load("last_year.blowfish"), or {("age", "sex"): '
                "counts}",
            )

    def log_ratios(
        self, groupings: Sequence[Grouping], most_cells: int
    ) -> dict[AxisSet, FloatArray]:
        """Return the strongest dependences that form a forest, at merged cells.

        On a forest the law with these ratios is known at once, without a fit: the
        product of single shares and of one ratio for each edge (Chow and Liu).

        Parameters
        ----------
        groupings : sequence of Grouping
            From single to merged cells, for each attribute of the domain.
        most_cells : int
            Cells of the model that they may take.

        Returns
        -------
        dict from pairs to float64 arrays
            The logarithm of how much more often merged cells meet than if the two
            attributes were independent.
        """
        options = []
        for pair, table in self.tables.items():
            ratios, misplaced = _ratios(table, [groupings[axis] for axis in pair])
            if misplaced >= LEAST_MISPLACED:
                options.append((-misplaced, pair, ratios))
        options.sort(key=lambda option: option[:2])
        sizes = [grouping.count for grouping in groupings]
        component = list(range(len(sizes)))
        edges: dict[AxisSet, FloatArray] = {}
        for _, pair, ratios in options:
            first, second = (component[axis] for axis in pair)
            if first != second and tree_cells(sizes, [*edges, pair]) <= most_cells:
                edges[pair] = np.log(ratios)
                component = [first if each == second else each for each in component]
        return edges


def _stated_tables(
    domain: Attributes, stated: Mapping[Any, Any]
) -> dict[AxisSet, FloatArray]:
    tables: dict[AxisSet, FloatArray] = {}
    for names, counts in stated.items():
        axes = domain.axes(names)
        expected = tuple(domain.shape[axis] for axis in axes)
        try:
            values = np.asarray(counts, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.zeros(0)
        if len(axes) != 2 or values.shape != expected:
            raise InputError(
                "tables of a prior hold counts of two attributes, with one axis for "
                "each",
                received=f"{names!r} with shape {values.shape}",
                way_out=f"Give an array of shape {expected}",
            )
        if not np.isfinite(values).all() or values.min() < 0 or values.sum() <= 0:
            raise InputError(
                "counts of a prior are 0 and more, and some of them more",
                received=f"{names!r} with a sum of {float(values.sum()):g}",
            )
        first, second = sorted(axes)
        if (first, second) in tables:
            raise InputError(
                "each pair of a prior is stated once", received=repr(names)
            )
        tables[first, second] = values if axes == (first, second) else values.T
    return tables


def _released_tables(
    domain: Attributes, pairs: Sequence[AxisSet], release: PublishedTables
) -> dict[AxisSet, FloatArray]:
    if release.domain.attributes != domain.attributes:
        raise InputError(
            "a release that serves as a prior has the same attributes and cells",
            received=repr(release.domain),
            way_out="Sum its tables to the cells of this survey, and state them as a "
            "mapping from pairs to counts",
        )
    answered = [{*domain.axes(names)} for names in release.asked]
    tables = {}
    for pair in pairs:
        if any(table.issuperset(pair) for table in answered):
            shape = tuple(domain.shape[axis] for axis in pair)
            counts = np.asarray(release.fitted(*pair).estimate).reshape(shape)
            # A release may hold nobody at all; it then says nothing.
            if counts.sum() > 0:
                tables[pair] = counts
    return tables


def _ratios(
    table: FloatArray, groupings: Sequence[Grouping]
) -> tuple[FloatArray, float]:
    """Return ratios to independence at merged cells, and what independence misplaces.

    One record for each merged cell is added, spread as if independent: a pair that few
    records show is drawn towards independence, and no ratio is 0.
    """
    merged = table
    for at, grouping in enumerate(groupings):
        merged = grouping.sum(merged, at)
    records = float(merged.sum())
    apart = np.outer(merged.sum(axis=1), merged.sum(axis=0)) / records
    # Cells that hold nobody there say nothing of who meets whom.
    floor = 1e-9 * records / merged.size
    smooth = (merged * records + apart * merged.size) / (records + merged.size)
    ratios = (smooth + floor) / (apart + floor)
    return ratios, float(0.5 * np.abs(smooth - apart).sum() / records)
