"""Two levels: every epoch is released, and so is the sum of every finished block.

::

    epochs   x0 x1 x2 x3 | x4 x5 x6 x7 | x8 x9        half of the budget
    blocks   [ x0..x3  ]   [ x4..x7  ]                the other half

    total after x9  =  block 0 + block 1 + x8 + x9    4 draws in place of 10

A record lies in one epoch and in one block, so each level is a series whose dearest
release is paid once, and the two halves add up. A finished block of s epochs is known
twice, by its own draw (variance v) and by the sum of s draws (s v). The average of
least variance takes s / (s + 1) of the first and 1 / (s + 1) of the second, and has
variance v s / (s + 1). This is post-processing, so it costs nothing (Lemma SR2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_whole

from .weights import NOISE

TYPICAL_EPOCHS = {"day": 365, "week": 52, "month": 36, "quarter": 40, "year": 30}
"""For how many epochs blocks are chosen where nobody states their size."""


class BlockShares(NamedTuple):
    """With what share draws of epochs and of blocks enter an answer, oldest first.

    Parameters
    ----------
    epochs : ndarray of float64
        The share of the draw of each epoch.
    blocks : ndarray of float64
        The share of the draw of each block.
    """

    epochs: FloatArray
    blocks: FloatArray


@dataclass(frozen=True)
class EpochBlocks:
    """Epochs, and blocks of so many of them: the plan of totals in epsilon.

    Parameters
    ----------
    size : int
        Epochs in a block, counted from the first epoch of the series; at least 2.

    Examples
    --------
    >>> EpochBlocks(4).total_shares(10).blocks.tolist()
    [0.8, 0.8]
    >>> EpochBlocks(4).total_shares(10).epochs.round(2).tolist()
    [0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 1.0, 1.0]
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", as_whole(self.size, "size", 2))

    def window_shares(self, epochs: int, last: int) -> BlockShares:
        """Return the shares of the last so many of `epochs`, with least variance.

        Parameters
        ----------
        epochs : int
            How many epochs were released.
        last : int
            How many of them are added up; all of them give the running total.

        Returns
        -------
        BlockShares
            float64 (epochs,) and float64 (finished blocks,). Only blocks that lie in
            the window as a whole are used.
        """
        finished = epochs // self.size
        first = max(epochs - last, 0)
        of_epochs = (np.arange(epochs) >= first).astype(np.float64)
        inside = np.arange(finished) * self.size >= first
        of_blocks = inside.astype(np.float64) * (self.size / (self.size + 1))
        for block in np.flatnonzero(inside).tolist():
            of_epochs[block * self.size : (block + 1) * self.size] = 1 / (self.size + 1)
        return BlockShares(of_epochs, of_blocks)

    def total_shares(self, epochs: int) -> BlockShares:
        """Return the shares of the running total after so many epochs."""
        return self.window_shares(epochs, epochs)

    def variances(self, epochs: int, power: int, last: int | None = None) -> FloatArray:
        """Return the variance of one cell after each epoch, at a budget of 1 in all.

        Parameters
        ----------
        epochs : int
            How many epochs there are.
        power : {1, 2}
            The budget is epsilon = 1, or rho = 1.
        last : int, optional
            Of the last so many epochs together; left out, of the running total.

        Returns
        -------
        float64 (epochs,)
            The variance after the first epoch, after the second, and so on.
        """
        # Half of epsilon errs four times as much, half of rho twice.
        half = NOISE[power] * 2 ** (3 - power)
        squares: FloatArray = np.empty(epochs)
        for count in range(1, epochs + 1):
            window = count if last is None else min(last, count)
            shares = self.window_shares(count, window)
            squares[count - 1] = (shares.epochs**2).sum() + (shares.blocks**2).sum()
        return np.asarray(half * squares)


def best_block(epochs: int, power: int = 1) -> tuple[int, float]:
    """Return the epochs per block that err least, and their variance at a budget of 1.

    Blocks are added up as they are, without the average of both levels: the size and
    the variance are those of the literature.

    Parameters
    ----------
    epochs : int
        How many running totals are asked for.
    power : {1, 2}
        The budget is epsilon, or rho: half of it errs 4 or 2 times as much.

    Returns
    -------
    tuple of int and float
        1 where no blocks are better, and the mean variance of the running totals.
    """
    upto = np.arange(1, epochs + 1)
    best = 1, float((NOISE[power] * upto).mean())
    half = NOISE[power] * 2 ** (3 - power)
    for size in range(2, 3 * int(epochs**0.5) + 2):
        mean = float((half * (upto // size + upto % size)).mean())
        best = (size, mean) if mean < best[1] else best
    return best


def typical_blocks(every: str) -> EpochBlocks:
    """Return the blocks for a typical number of epochs of a length."""
    size, _ = best_block(TYPICAL_EPOCHS[every])
    return EpochBlocks(max(size, 2))
