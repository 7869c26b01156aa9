"""Cells of pairs of attributes in which no record can be, as everybody knows.

A man is not pregnant and a child of four has no job. The curator states such cells, and
the model of a survey puts nobody there. Which cells these are is public. A record that
lies there all the same, by a mistake in the data, is counted like every other record:
to refuse or to drop it would tell that it exists.

Neighbouring cells of an attribute are merged before pairs are measured. A merged cell
of a pair is impossible only if all its cells are, so cells that a mask tells apart are
not merged:

    mask      births 0  births 1  births 2         births 0  births 1-2
    sex M        .         x         x       sex M     .         x
    sex F        .         .         .       sex F     .         .
    label        0         1         1             births 1 and 2 may be merged
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from blowfish_fast._support.typing import BoolArray, IntArray
from blowfish_fast._support.validation import quoted
from blowfish_fast.data.domain import Attributes
from blowfish_fast.data.tables.merged_tables import Grouping
from blowfish_fast.errors import InputError
from blowfish_fast.measure.strategies.tables.residuals import AxisSet


class ImpossibleCells:
    """Which cells of some pairs no record can be in; public.

    Parameters
    ----------
    domain : Attributes
        All attributes.
    masks : mapping from pairs of attributes to arrays of bool
        One axis for each attribute, in the order of the pair; True where no record
        can be.

    Raises
    ------
    InputError
        If a mask is not of two attributes, of another shape or not of bool, if a pair
        is stated twice, or if no cell of it would be left.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.Domain((2, 3), names=["sex", "births"])
    >>> mask = np.array([[False, False], [True, False], [True, False]])
    >>> stated = ImpossibleCells(survey, {("births", "sex"): mask})
    >>> stated.patterns(1).tolist()    # rows for 1 and for 2 births are the same
    [0, 1, 1]

    Zeros and ones are refused: they might be meant as the possible cells.

    >>> ImpossibleCells(survey, {("births", "sex"): [[0, 0], [1, 0], [1, 0]]})
    Traceback (most recent call last):
    ...
    blowfish_fast.errors.InputError: ...
    """

    def __init__(self, domain: Attributes, masks: Mapping[Any, Any]) -> None:
        if not isinstance(masks, Mapping):
            raise InputError(
                "impossible is a mapping from pairs of attributes to masks",
                received=quoted(masks),
                way_out='Write {("sex", "births"): mask}',
            )
        self.sizes = domain.shape
        self.masks: dict[AxisSet, BoolArray] = {}
        for names, mask in masks.items():
            axes = domain.axes(names)
            values = np.asarray(mask)
            expected = tuple(self.sizes[axis] for axis in axes)
            if len(axes) != 2 or values.shape != expected or values.dtype != np.bool_:
                raise InputError(
                    "impossible cells are stated for two attributes, by an array of "
                    "bool with one axis for each",
                    received=f"{names!r} with shape {values.shape} of {values.dtype}",
                    way_out=f"Give an array of bool of shape {expected}",
                )
            first, second = sorted(axes)
            ordered = values if axes == (first, second) else values.T
            if (first, second) in self.masks or bool(ordered.all()):
                raise InputError(
                    "each pair is stated once, and some cell of it is possible",
                    received=repr(names),
                )
            self.masks[first, second] = ordered.copy()

    @property
    def pairs(self) -> list[AxisSet]:
        """The pairs that have impossible cells, in the order stated."""
        return [pair for pair, mask in self.masks.items() if mask.any()]

    def patterns(self, axis: int) -> IntArray:
        """Return a label for each cell of an attribute.

        Two cells have the same label if every mask has the same row for both, so that
        merging them loses nothing of what is impossible.
        """
        # The column of False gives an attribute without masks one label for all cells.
        rows = [np.zeros((self.sizes[axis], 1), dtype=np.bool_)]
        for pair in self.pairs:
            if axis in pair:
                mask = self.masks[pair]
                rows.append(mask if pair[0] == axis else mask.T)
        _, labels = np.unique(np.hstack(rows), axis=0, return_inverse=True)
        return labels.reshape(-1).astype(np.int64)

    def kept_apart(self, axis: int, grouping: Grouping) -> Grouping:
        """Return a grouping that merges only cells that masks do not tell apart.

        Parameters
        ----------
        axis : int
            The attribute.
        grouping : Grouping
            The merged cells of the attribute, as noisy counts chose them.

        Returns
        -------
        Grouping
            The same merged cells, each divided into one part for every pattern in it.
        """
        patterns = self.patterns(axis)
        # One number for each pair of a merged cell and a pattern.
        pair_codes = grouping.labels * (int(patterns.max()) + 1) + patterns
        _, labels = np.unique(pair_codes, return_inverse=True)
        return Grouping(labels.reshape(-1).astype(np.int64))

    def most_merged(self, axis: int, most: int) -> int:
        """Bound the number of merged cells that `kept_apart` returns.

        Every merged cell is divided into at most as many as there are `patterns`.

        Parameters
        ----------
        axis : int
            The attribute.
        most : int
            The most merged cells that a grouping has which goes into `kept_apart`.

        Returns
        -------
        int
            A bound that follows from masks and sizes, and not from the data.
        """
        return min(self.sizes[axis], most * (int(self.patterns(axis).max()) + 1))

    def merged(self, pair: AxisSet, groupings: Sequence[Grouping]) -> BoolArray:
        """Return which merged cells of a pair are impossible.

        A merged cell is impossible if every cell in it is.

        Parameters
        ----------
        pair : tuple of int
            One of `pairs`.
        groupings : sequence of Grouping
            The merged cells of the first and of the second attribute.

        Returns
        -------
        (merged cells, merged cells) bool
            True where no record can be.
        """
        possible: Any = (~self.masks[pair]).astype(np.int64)
        for at, grouping in enumerate(groupings):
            possible = grouping.sum(possible, at)
        return np.asarray(possible == 0)
