"""Noise on the edges of a grid, joined along the lines between its rows and columns.

A rectangle cuts four runs of parallel edges and pays, with a Haar transform along each
line (Lemma ST3), for a few draws per level. What leaves the handle is each cell with
its noise, exactly: a whole number, and a remainder in units of 1 / 2^top.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.errors import (
    EpsilonError,
    InputError,
    PolicyError,
    PrivacyError,
    SizeError,
)
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.linear_strategy import (
    LinearStrategy,
    StrategyNoise,
    WeighedRows,
)
from blowfish_fast.measure.noise import Scales, Spread, integer_weights
from blowfish_fast.policies import Policy, Threshold
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces

from .edge_cuts import as_runs

LEAST_WEIGHT = 1.0 / 64.0
"""Weight of a level that the declared queries do not see, against the heaviest."""

AXES = (0, 1)


class PlannedQueries(NamedTuple):
    """The queries that a strategy was planned for, and what was worked out of them.

    Attributes
    ----------
    form : Form
        The queries over the cells.
    energies : list
        Of each axis, how much of every query each level of blocks carries.
    """

    form: Form
    energies: list[Any]


class EdgeLines(LinearStrategy):
    """Haar noise along the lines of edges of a grid of rows and columns.

    Parameters
    ----------
    shape : tuple[int, int]
        Rows and columns.
    level_weights : tuple[ndarray of float64, ndarray of float64]
        An array for the edges that step along either axis: relative rates, in [0, 1],
        of the draws of whole blocks, then of the differences of halves of 1, 2, 4 ...
        edges. ``2 ** (size - 1)`` edges form a block.
    planned : PlannedQueries, optional
        The queries that the weights were chosen for, which are not worked out again.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Threshold(bf.Domain((8, 8)), theta=1)
    >>> asked = bf.workloads.Rectangles.random(policy.domain, 50, rng=1)
    >>> release = bf.Transformed(
    ...     policy, asked, epsilon=1, partition=None, strategy="edge_lines"
    ... ).release([[3] * 8] * 8, rng=1)
    >>> release.measurements[0].strategy.kind
    'edge_lines'
    """

    kind = "edge_lines"

    def __init__(
        self,
        shape: tuple[int, int],
        level_weights: tuple[FloatArray, FloatArray],
        *,
        planned: PlannedQueries | None = None,
    ) -> None:
        self.shape, self.cells = shape, shape[0] * shape[1]
        self.level_weights = level_weights
        self.tops = tuple(weights.size - 1 for weights in level_weights)
        for across, weights in zip(AXES, level_weights, strict=True):
            most = kernels.line_levels(shape[1 - across])
            if weights.ndim != 1 or not 1 <= weights.size <= most:
                raise InputError(
                    f"lines of {shape[1 - across]} edges have 1 to {most} levels of "
                    f"blocks; received weights of shape {weights.shape}"
                )
        self._planned = planned

    @classmethod
    def under(cls, policy: Policy, form: Form, power: int = 1) -> Self:
        """Choose block sizes and weights of least predicted error for `form`.

        Rates follow cube roots of the energies, or square roots if paid in rho.

        Parameters
        ----------
        policy : Policy
            A policy whose edges join neighbouring cells of a grid.
        form : Form
            The queries over the cells.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        Self
            The strategy.
        """
        shape = grid_shape(policy)
        energies = [_energies(form, shape, across) for across in AXES]
        chosen = tuple(
            _best_weights(
                energy.sums.sum(axis=0), energy.differences.sum(axis=0), power
            )
            for energy in energies
        )
        planned = PlannedQueries(form, energies)
        return cls(shape, (chosen[0], chosen[1]), planned=planned)

    def _layout(self, across: int) -> tuple[int, int, int]:
        """Return lines, blocks of a line, and draws of a block."""
        size = 2 ** self.tops[across]
        length = self.shape[1 - across]
        return max(self.shape[across] - 1, 0), -(-length // size), size

    def _split(self, draws: AnyArray) -> list[AnyArray]:
        """Return the draws of both axes, by line, block and place."""
        layouts = [self._layout(across) for across in AXES]
        middle = int(np.prod(layouts[0]))
        parts = (draws[:middle], draws[middle:])
        return [
            part.reshape(layout) for part, layout in zip(parts, layouts, strict=True)
        ]

    def rows(self, counts: IntArray) -> IntArray:
        """Return the cells themselves."""
        self._refuse_other(counts, self.cells)
        return counts.copy()

    def weights(self) -> IntArray:
        """Give all draws of one level the same weight."""
        parts = []
        for across in AXES:
            lines, blocks, _ = self._layout(across)
            weights = integer_weights(self.level_weights[across])
            # The whole block first, then differences from the largest halves down.
            levels = np.arange(self.tops[across], 0, -1)
            inside = np.repeat(weights[levels], 2 ** (self.tops[across] - levels))
            parts.append(np.tile(np.append(weights[0], inside), lines * blocks))
        return np.concatenate(parts)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """No draw is left out."""
        return np.zeros(self.weights().size, dtype=np.bool_)

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest sum of weights over the draws of one edge: Lemma ST3.

        Exact where the policy joins all neighbouring cells; otherwise a bound above.

        Parameters
        ----------
        weights : ndarray of int64, shape (draws,)
            Whole weight of the draw of each edge of the lines.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum, or a bound above it.
        """
        grid_shape(policy)
        worst = 0
        for across, draws in zip(AXES, self._split(weights), strict=True):
            along = _synthesise(draws, signed=False)
            worst = max(worst, int(along[:, : self.shape[1 - across]].max(initial=0)))
        return worst

    def scales_at(self, weighed: WeighedRows, budget: Budget) -> Scales:
        """Return scales whose worst policy edge costs at most `budget`.

        Parameters
        ----------
        weighed : WeighedRows
            What `weigh` returned, in the currency of the budget.
        budget : Budget
            What the measurement may cost on any edge.

        Returns
        -------
        Scales
            A scale for the draw of each edge of the lines.

        Raises
        ------
        EpsilonError
            If the budget leaves nothing for a draw.
        """
        scales = super().scales_at(weighed, budget)
        # A draw without noise would publish its level as it is.
        loudest = float(scales.widths.max(initial=0.0))
        if not scales.measured.all() or loudest * 2.0 ** max(self.tops) >= 2.0**48:
            raise EpsilonError(
                f"{budget.words()} leaves noise too large for 64 bits along "
                "the lines of this grid; raise it, or measure cells instead"
            )
        return scales

    def published(self, rows: IntArray, noise: IntArray, scales: Scales) -> IntArray:
        """Add the noise of its edges to each cell: whole numbers, then remainders.

        Parameters
        ----------
        rows : ndarray of int64, shape (cells,)
            True cells.
        noise : ndarray of int64, shape (draws,)
            A draw for each edge of the lines.
        scales : Scales
            Which draws were made.

        Returns
        -------
        ndarray of int64, shape (2 cells,)
            What leaves the handle: the whole number of each cell, then its remainder.

        Raises
        ------
        PrivacyError
            If a draw is missing.
        """
        if not scales.measured.all():
            raise PrivacyError("every level of an edge needs its draw")
        fine = max(self.tops)
        cells = np.zeros(self.shape, dtype=np.int64)
        for across, draws in zip(AXES, self._split(noise), strict=True):
            along = _synthesise(draws, signed=True)[:, : self.shape[1 - across]]
            along <<= fine - self.tops[across]
            if across == 0:
                cells[:-1] += along
                cells[1:] -= along
            else:
                cells[:, :-1] += along.T
                cells[:, 1:] -= along.T
        moved = cells.reshape(-1)
        return np.concatenate([rows + (moved >> fine), moved & (2**fine - 1)])

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the noisy cells.

        Parameters
        ----------
        noisy : ndarray of int64, shape (2 cells,)
            Whole numbers of the cells, then their remainders, as `published` has them.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        whole, rest = noisy[: self.cells], noisy[self.cells :]
        estimate: FloatArray = whole + rest / float(2 ** max(self.tops))
        return estimate

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        parts, scales = [], law.scales
        for across, energies in zip(AXES, self._line_energies(form), strict=True):
            widths = self._per_level(scales.widths, across)
            levels = (self._per_level(scales.variances, across), widths**2)
            sums = energies.sums, energies.differences
            moments = [
                _weigh_levels(*sums, per_level)
                for per_level in (*levels, np.sign(widths))
            ]
            top = widths.size - 1
            inner = energies.largest_difference[:, 1 : top + 1] * widths[1:]
            whole = energies.largest_sum[:, top] * widths[0]
            loudest = np.maximum(whole, inner.max(axis=1, initial=0.0))
            parts.append((*moments, loudest))
        rows_part, columns_part = parts
        variance, square, steps = (rows_part[at] + columns_part[at] for at in range(3))
        largest = np.maximum(rows_part[3], columns_part[3])
        # Which row is the largest is not followed, unless all have one scale.
        least, most = scales.least, float(scales.widths.max(initial=0.0))
        width = np.full(variance.size, most if most == least else np.nan)
        return Spread(variance, square, largest, steps, width, least)

    def _total_variance(self, form: Form, law: StrategyNoise) -> float:
        total = 0.0
        for across, energies in zip(AXES, self._line_energies(form), strict=True):
            variances = self._per_level(law.scales.variances, across)
            sums, turns = energies.sums.sum(axis=0), energies.differences.sum(axis=0)
            total += float(_weigh_levels(sums[None], turns[None], variances)[0])
        return total

    def _per_level(self, values: FloatArray, across: int) -> FloatArray:
        """Return a value per level from one per draw: whole blocks, then halves."""
        lines, _, size = self._layout(across)
        if lines == 0:
            return np.zeros(self.tops[across] + 1)
        block = self._split(values)[across][0, 0]
        levels = np.arange(1, self.tops[across] + 1)
        return np.append(block[0], block[size >> levels])

    def _line_energies(self, form: Form) -> list[Any]:
        if self._planned is not None and self._planned.form is form:
            return self._planned.energies
        return [_energies(form, self.shape, across) for across in AXES]

    def pack(self) -> dict[str, Any]:
        """Return the grid and the weights of its levels."""
        return {
            "rows": self.shape[0],
            "columns": self.shape[1],
            "weights_0": self.level_weights[0],
            "weights_1": self.level_weights[1],
        }

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        weights = [np.asarray(data[f"weights_{axis}"], np.float64) for axis in AXES]
        return cls((int(data["rows"]), int(data["columns"])), (weights[0], weights[1]))


def grid_shape(policy: Policy) -> tuple[int, int]:
    """Return the shape of the grid; refuse policies with other edges than its own."""
    domain = policy.domain
    if (
        domain.ndim != 2
        or policy.has_bottom
        or not Threshold(domain, theta=1).implies(policy)
    ):
        raise PolicyError(
            "edge lines need a grid of two attributes whose neighbouring cells are "
            f"joined and no others; this policy: {policy.neighbours}"
        )
    return domain.shape[0], domain.shape[1]


def _synthesise(draws: IntArray, *, signed: bool) -> IntArray:
    """Return the noise of each edge, in 1 / block size; unsigned, the sum of draws."""
    lines, blocks, size = draws.shape
    along = draws[:, :, :1].copy()
    unit = 1
    while unit < size:
        half = draws[:, :, unit : 2 * unit]
        wider = np.empty((lines, blocks, 2 * unit), dtype=np.int64)
        if signed:
            wider[:, :, ::2] = along + unit * half
            wider[:, :, 1::2] = along - unit * half
        else:
            wider[:, :, ::2] = wider[:, :, 1::2] = along + half
        along, unit = wider, 2 * unit
    return along.reshape(lines, blocks * size)


def _energies(form: Form, shape: tuple[int, int], across: int) -> Any:
    if not isinstance(form, Implicit):
        return kernels.line_energies(*as_runs(form), shape, across)
    edges = max(shape[across] - 1, 0) * shape[1 - across]
    levels = np.arange(kernels.line_levels(shape[1 - across]), dtype=np.float64)
    if form.kind == "total":
        seen = np.zeros((1, levels.size))
    elif form.kind == "identity":
        # Both ends of an edge see it, once, and no other edge of its line.
        seen = (2.0 * edges * 0.25**levels)[None]
    else:
        raise SizeError(f"the total over {form.kind} has no closed form on a grid")
    turns = seen.copy()
    turns[:, 0] = 0.0
    return kernels.Energies(seen, turns, np.sqrt(seen), np.sqrt(turns))


def _best_weights(sums: FloatArray, turns: FloatArray, power: int) -> FloatArray:
    """Return the weights of whole blocks and of differences that lose least."""
    root = np.cbrt if power == 1 else np.sqrt
    inner = np.cumsum(root(turns))
    top = int(np.argmin(root(sums) + inner))
    roots = root(np.append(sums[top], turns[1 : top + 1]))
    if not roots.any():
        roots = np.ones(top + 1)
    raised_roots = np.maximum(roots, LEAST_WEIGHT * roots.max())
    weights: FloatArray = raised_roots / raised_roots.sum()
    return weights


def _weigh_levels(
    sums: FloatArray, turns: FloatArray, levels: FloatArray
) -> FloatArray:
    """Return, per query, the energies weighed by a number per level."""
    top = levels.size - 1
    weighed: FloatArray = sums[:, top] * levels[0] + turns[:, 1 : top + 1] @ levels[1:]
    return weighed
