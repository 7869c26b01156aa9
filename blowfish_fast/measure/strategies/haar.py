"""Measure sums and differences of halves: the Haar transform, on a line or a grid.

    counts          4   0   2   1

    total           4 + 0 + 2 + 1 = 7       row 0
    left - right   (4 + 0) - (2 + 1) = 1    row 1
                    4 - 0 = 4               row 2
                            2 - 1 = 1       row 3

A record is counted by one row per level and by the total; a move changes the row of the
node where its two cells part by two, those below by one each, and nothing above. On a
grid the rows of the axes are multiplied, and so are their numbers. Sides that are no
power of two have leaves of two depths: see Lemma PR7, ``docs/proofs/hierarchy.md``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import PrivacyError
from blowfish_fast.measure.linear_strategy import (
    LinearStrategy,
    StrategyNoise,
    known_noise,
)
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales, Spread
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Fractions, Implicit, Pieces
from blowfish_fast.workloads.base import as_pieces, form_matrix

if TYPE_CHECKING:
    from blowfish_fast.kernels.transform.haar_spread import HaarNoise


class Haar(LinearStrategy):
    """Sums and differences along every axis of a grid, of any sides; one for a line.

    >>> import numpy as np
    >>> Haar((4,)).rows(np.array([4, 0, 2, 1]))
    array([7, 1, 4, 1])
    """

    kind = "haar"

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    @property
    def cells(self) -> int:
        """Number of cells, and of rows."""
        return math.prod(self.shape)

    def rows(self, counts: IntArray) -> IntArray:
        """Return the products of sums and differences, in C order of the axes' rows."""
        self._refuse_other(counts, self.cells)
        return kernels.haar_rows(counts.reshape(self.shape)).reshape(-1)

    def weights(self) -> IntArray:
        """Return the products of the axes' weights, the largest as 2^30."""
        return _products([_axis_weights(cells) for cells in self.shape])

    def squared_weights(self) -> IntArray:
        """Return the weights of Gaussian noise, square roots by level: Lemma PR10."""
        return _products([_square_root_weights(cells) for cells in self.shape])

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the total where it is public; everything if nothing can move."""
        return self._total_exact(self.cells, policy)

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the heaviest cell, or the heaviest move between two cells: Lemma PR3.

        Exact under `AddRemove`, and under `Full` on a line; on a grid under `Full` see
        `worst_grid_move` and `_worst_square`. It is a bound above for sparser policies.

        Parameters
        ----------
        weights : ndarray of int64, shape (coefficients,)
            Whole weight of each coefficient.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum, or a bound above it.
        """
        paid = kernels.haar_path_sums(weights.reshape(self.shape))
        worst = int(paid.max()) if policy.has_bottom else 0
        if not policy.has_moves:
            return worst
        if len(self.shape) == 1:
            return max(worst, kernels.haar_worst_move(weights, power))
        if power == 2:
            return max(worst, self._worst_square(weights))
        return max(worst, worst_grid_move(weights.reshape(self.shape), paid))

    def _worst_square(self, weights: IntArray) -> int:
        """Return a bound on the largest sum of weights times squared moves on a grid.

        Lemma PR11: at most twice the heaviest cell under product weights, plus
        flooring; other weights stay below a multiple of these.
        """
        return min(
            self._covered(weights, own)
            for own in (self.weights(), self.squared_weights())
        )

    def _covered(self, weights: IntArray, own: IntArray) -> int:
        """Return the price of the least multiple of `own` that covers `weights`."""
        if (weights[own == 0] > 0).any():
            raise PrivacyError("a row that Haar does not weigh has no price")
        measured = (weights > 0) & (own > 0)
        if not measured.any():
            return 0
        bits = min(32, 62 - int(weights.max()).bit_length())
        times = int((-(-(weights[measured] << bits) // own[measured])).max())
        paid = int(kernels.haar_path_sums(own.reshape(self.shape)).max())
        # Equal weights were not rounded.
        floored = 0
        if own.min() < own.max():
            floored = math.prod(1 + (side - 1).bit_length() for side in self.shape)
        return -(-times * 2 * (paid + floored) >> bits)

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the only cells that have these rows: least squares. O(cells).

        Parameters
        ----------
        noisy : ndarray of int64, shape (coefficients,)
            The measured coefficients.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        return kernels.haar_cells(noisy.reshape(self.shape)).reshape(-1)

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        """Return the exact law: O(log cells) per range, the product of axes per box.

        Queries of very many pieces are transformed.
        """
        noise, least = law.tables
        pieces = as_pieces(form)
        if len(self.shape) == 1:
            pointers, starts, ends, values = pieces
            lows, highs = starts[:, None], ends[:, None]
        else:
            pointers, lows, highs, values = kernels.runs_to_boxes(*pieces, self.shape)
        limit = 2 * self.cells * len(self.shape)
        transformed: list[int] = []
        if noise.most * values.size > limit:
            boxes = np.diff(pointers)
            many = boxes * noise.most > limit
            transformed = np.flatnonzero(many).tolist()
            few = np.repeat(~many, boxes)
            pointers = np.append(0, np.cumsum(np.where(many, 0, boxes)))
            lows, highs, values = lows[few], highs[few], values[few]
        spread = Spread(
            *kernels.spread_boxes(noise, pointers, lows, highs, values), least
        )
        variances, widths = noise.rows.T
        for query in transformed:
            self._fill_from_transform(pieces, query, variances, widths, spread)
        return spread

    def noise_tables(self, scales: Scales) -> tuple[HaarNoise, float]:
        """Return the noise of coefficients by level and axis, and the least scale."""
        return kernels.haar_noise(*known_noise(scales), self.shape), scales.least

    def _fill_from_transform(
        self,
        pieces: Pieces,
        query: int,
        variances: FloatArray,
        widths: FloatArray,
        spread: Spread,
    ) -> None:
        """Fill in the spread of one query from a transform of all its cells."""
        own = slice(pieces.pointers[query], pieces.pointers[query + 1])
        alone = Pieces(
            np.array([0, own.stop - own.start]),
            pieces.starts[own],
            pieces.ends[own],
            pieces.values[own],
        )
        row = form_matrix(alone, self.cells, most=self.cells).toarray()
        parts = kernels.haar_coefficients(row.reshape(self.shape)).reshape(-1)
        reach = np.abs(parts) * widths
        spread.variance[query] = parts**2 @ variances
        spread.square[query] = reach @ reach
        loudest = int(reach.argmax())
        spread.largest[query] = reach[loudest]
        spread.steps[query] = parts**2 @ (widths > 0)
        spread.width[query] = widths[loudest]

    def _implicit_variance(self, form: Implicit, law: StrategyNoise) -> float:
        variances, _ = known_noise(law.scales)
        if form.kind == "total":
            return float(variances[0])
        if form.kind == "identity":
            # Each of m cells is 1/m of its bucket: m / m^2 of the bucket's variance.
            each = kernels.haar_cell_variances(variances.reshape(self.shape)).reshape(
                -1
            )
            return float((each / np.diff(form.edges)).sum())
        # Ranges are asked of one ordered attribute only.
        return kernels.haar_total_variance(variances, form.kind, form.edges)

    def pack(self) -> dict[str, Any]:
        """Return the shape."""
        return {"shape": list(self.shape)}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        shape = tuple(int(side) for side in data["shape"])
        if not shape or min(shape) < 1:
            raise ValueError("every axis has at least one cell")
        return cls(shape)


def _products(axes: list[FloatArray]) -> IntArray:
    """Return the products of the axes' weights, the largest as 2^30."""
    product = np.ones(1)
    for axis in axes:
        product = np.multiply.outer(product, axis / axis.max()).reshape(-1)
    weights: IntArray = np.floor(product * 2.0**WEIGHT_BITS).astype(np.int64)
    return weights


def _square_root_weights(cells: int) -> FloatArray:
    """Return the weight of each row of one axis for noise paid in rho: Lemma PR10.

    No row takes more than the rows above it together, which Lemma PR11 needs.
    """
    weights = _axis_weights(cells)
    fine = 2.0 if cells & (cells - 1) == 0 else 0.0
    above = np.ones(2 * cells)
    for level in range((cells - 1).bit_length()):
        rows = slice(2**level, min(2 ** (level + 1), cells))
        share = math.sqrt(1.0 + fine * (2**level / cells) ** 2 - 0.75 * 2.0**-level)
        weights[rows] = np.minimum(weights[rows] * share, above[rows])
        both = above[rows] + weights[rows]
        above[2 * rows.start : 2 * rows.stop] = np.repeat(both, 2)
    return weights


def _axis_weights(cells: int) -> FloatArray:
    """Return the weight of each row of one axis; all 1 for a power of two.

    What is left at a node is shared equally along its longest way down.
    """
    weights = np.ones(cells)
    depth = (cells - 1).bit_length()
    if cells == 2**depth:
        return weights
    left = np.zeros(2 * cells)
    left[1] = depth
    for level in range(depth):
        first, past = 2**level, min(2 ** (level + 1), cells)
        # The leftmost way is the longest; it ends in one of the deepest leaves or not.
        nodes = np.arange(first, past)
        longest = depth - level - (nodes << (depth - level) >= 2 * cells)
        weights[first:past] = left[first:past] / longest
        rest = left[first:past] - weights[first:past]
        left[2 * first : 2 * past : 2] = rest
        left[2 * first + 1 : 2 * past : 2] = rest
    return weights


STAYS_OR_CROSSES = np.array([[1, 1], [1, -1]])
"""The two ways of a move along one axis, a line each: it stays on its side of the
middle, or crosses it. The columns are the axis's total and its top difference. The sign
says whether the row counts both cells alike (1) or with opposite signs (-1).
"""
OF_THREE = np.array([[1, -1, 0], [1, -1, 0], [1, 1, 0], [1, 1, 1], [1, 1, -1]])
"""The five ways on an axis of three cells, {0, 1} on the left and {2} on the right:
from left to right, from right to left, to stay on the right, to stay in one cell of the
left, and to change between cells 0 and 1. The third column is the difference of cells 0
and 1; it is 0 where that row does not count both cells of the move.
"""
BEGINS = np.array([0, 1, 1, 0, 0])
"""On which side (left: 0, right: 1) each of the five ways begins."""
ENDS = np.array([1, 0, 1, 0, 0])
"""On which side each of them ends."""
MOST_WAYS = 2**20
"""Combinations of ways over all axes that are looked at one by one."""


def worst_grid_move(weights: IntArray, paid: IntArray) -> int:
    """Return the largest price of a move between two cells of a grid, or a bound above.

    Lemma PR3 tells, axis by axis, only whether a move crosses the middle; axes of three
    cells are looked at more closely. It is exact where weights are equal and all sides
    powers of two or 3; on other grids a move across all middles meets it, up to the
    rounding of the weights.

    Parameters
    ----------
    weights : ndarray of int64
        Weight of each row, in the shape of the grid.
    paid : ndarray of int64
        Sum of the weights over the rows that count each cell.

    Returns
    -------
    int
        The price.
    """
    close = _looked_at_closely(weights.shape)
    signed = weights[tuple(slice(3 if three else 2) for three in close)]
    common, begins, ends = signed, paid, paid
    for axis, three in enumerate(close):
        if three:
            signs = OF_THREE
            begins, ends = (
                np.maximum.reduceat(part, [0, 2], axis=axis).take(of_way, axis=axis)
                for part, of_way in ((begins, BEGINS), (ends, ENDS))
            )
        else:
            # An axis of one cell has the total alone, and no middle.
            top = signed.shape[axis]
            signs = STAYS_OR_CROSSES[:top, :top]
            begins = begins.max(axis=axis, keepdims=True)
            ends = ends.max(axis=axis, keepdims=True)
        signed = _along(signs, signed, axis)
        common = _along(np.abs(signs), common, axis)
    # Even less odd, and even plus odd: their sum is twice the even part.
    return int((begins + ends - (signed + common)).max())


def _along(signs: IntArray, rows: IntArray, axis: int) -> IntArray:
    """Replace the rows of one axis by their sums for each way of a move."""
    summed: IntArray = np.moveaxis(np.tensordot(signs, rows, (1, axis)), 0, axis)
    return summed


def _looked_at_closely(shape: tuple[int, ...]) -> list[bool]:
    """Mark the axes of three cells, or none if there are very many ways to move."""
    close = [side == 3 for side in shape]
    ways = 5 ** sum(close) * 2 ** sum(side > 1 and side != 3 for side in shape)
    return close if ways <= max(MOST_WAYS, math.prod(shape)) else [False] * len(shape)
