"""A public model of all attributes: a law of merged cells, and shares inside them.

    table of single cells = number of records * law(merged cells) * shares inside

The law is a junction tree of factors; inside a merged cell the attribute's own noisy
table decides, whatever the other attributes are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.data.tables.merged_tables import Grouping
from blowfish_fast.errors import ReleaseFileError
from blowfish_fast.measure.strategies.tables.merged_tables import packed_labels

from .junction_tree import AxisSet, Beliefs, JunctionTree, draw_columns, tree_cells

CellNumbers = npt.NDArray[np.int32]
"""Records as cells of each attribute, shape (attributes, records)."""

MODEL_CELLS = 2**17
"""Cells of all cliques of the junction tree together, where nobody states more."""

MOST_MODEL_CELLS = 2**20
"""What may be stated, and what a file may hold."""


class EntropyModel:
    """What is expected in every table, from factors on merged cells.

    Parameters
    ----------
    groupings : sequence of Grouping
        From single to merged cells, for each attribute.
    inside : sequence of float64 arrays
        The share of each single cell in its merged cell.
    factors : mapping from attributes to arrays
        Logarithms of factors over merged cells.
    total : float
        Number of records.

    Examples
    --------
    >>> halves = Grouping([0, 0, 1])
    >>> even = np.array([0.5, 0.5, 1.0])
    >>> model = EntropyModel([halves], [even], {(0,): np.log([0.8, 0.2])}, 10.0)
    >>> model.table((0,)).round(2).tolist()
    [4.0, 4.0, 2.0]
    """

    def __init__(
        self,
        groupings: Sequence[Grouping],
        inside: Sequence[FloatArray],
        factors: dict[AxisSet, FloatArray],
        total: float,
    ) -> None:
        self.groupings = tuple(groupings)
        self.inside = tuple(inside)
        self.factors = factors
        self.total = total

    @cached_property
    def tree(self) -> JunctionTree:
        """The junction tree of the factors."""
        sizes = [grouping.count for grouping in self.groupings]
        return JunctionTree(sizes, [axes for axes in self.factors if len(axes) > 1])

    @cached_property
    def beliefs(self) -> Beliefs:
        """The table of every clique."""
        tables = self.tree.beliefs(self.factors)
        if tables is None:
            raise ReleaseFileError("the factors of the model leave no cell possible")
        return tables

    def table(self, axes: AxisSet) -> FloatArray:
        """Return the expected counts of a table of single cells."""
        values = self.total * self.tree.table(self.beliefs, axes)
        for at, axis in enumerate(axes):
            wide = [-1 if other == at else 1 for other in range(len(axes))]
            values = values.take(self.groupings[axis].labels, axis=at)
            values *= self.inside[axis].reshape(wide)
        return values

    def cells(self, count: int, generator: np.random.Generator) -> CellNumbers:
        """Draw records as numbers of single cells, attribute by attribute.

        Parameters
        ----------
        count : int
            How many records.
        generator : numpy.random.Generator
            Public randomness: nothing here is private any more.

        Returns
        -------
        (attributes, count) int32
            The cell of every record along each attribute.
        """
        merged = self.tree.sample(self.beliefs, count, generator)
        single = np.zeros(merged.shape, dtype=np.int32)
        for axis, grouping in enumerate(self.groupings):
            shares = np.zeros((grouping.count, grouping.labels.size))
            shares[grouping.labels, np.arange(grouping.labels.size)] = self.inside[axis]
            single[axis] = draw_columns(shares, merged[axis], generator)
        return single

    def pack(self) -> dict[str, Any]:
        """Return plain values and arrays from which the model is rebuilt."""
        return {
            "labels": packed_labels(self.groupings),
            "inside": list(self.inside),
            "scopes": [list(axes) for axes in self.factors],
            "factors": list(self.factors.values()),
            "total": self.total,
        }

    @classmethod
    def unpack(cls, data: dict[str, Any], sizes: tuple[int, ...]) -> Self:
        """Rebuild a model from what `pack` returned.

        The values may come from a file that anybody wrote, so every part is checked.

        Parameters
        ----------
        data : dict
            The values and arrays.
        sizes : tuple of int
            Single cells along each attribute of the domain.

        Returns
        -------
        EntropyModel
            The model.

        Raises
        ------
        ReleaseFileError
            If the parts do not fit the domain or each other, if they hold impossible
            numbers, or if the model is larger than any that is written.
        """
        groupings = [Grouping(labels) for labels in data["labels"]]
        inside = [np.asarray(shares, dtype=np.float64) for shares in data["inside"]]
        if tuple(grouping.labels.size for grouping in groupings) != sizes:
            raise ReleaseFileError("merged cells do not fit the domain")
        if tuple(shares.size for shares in inside) != sizes or any(
            not ((shares >= 0) & (shares <= 1 + 1e-9)).all() for shares in inside
        ):
            raise ReleaseFileError("shares inside merged cells do not fit the domain")
        scopes = [tuple(int(axis) for axis in scope) for scope in data["scopes"]]
        attributes = set(range(len(sizes)))
        if any(list(axes) != sorted({*axes} & attributes) for axes in scopes):
            raise ReleaseFileError("a factor names attributes that are not there")
        counts = [grouping.count for grouping in groupings]
        if tree_cells(counts, scopes) > MOST_MODEL_CELLS:
            raise ReleaseFileError("the model is larger than any that is written")
        factors = {
            axes: np.asarray(factor, dtype=np.float64).reshape(
                [counts[a] for a in axes]
            )
            for axes, factor in zip(scopes, data["factors"], strict=True)
        }
        total = float(data["total"])
        if not 0.0 <= total < 2.0**63 or not all(
            np.isfinite(factor).all() for factor in factors.values()
        ):
            raise ReleaseFileError("the model holds impossible numbers")
        return cls(groupings, inside, factors, total)
