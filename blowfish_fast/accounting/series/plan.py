"""What epochs of a series may cost, and how they are best counted; no data is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_number, quoted
from blowfish_fast.errors import InputError

from .blocks import EpochBlocks, best_block
from .weights import EXPONENTS, Weights

TOTAL: Mapping[str, float] = MappingProxyType({"total": 1.0})


@dataclass(frozen=True)
class SeriesPlan:
    """What each epoch may cost, and the variance of what is asked of one cell.

    Attributes
    ----------
    each : Fraction
        What every epoch may cost, in the ledger's currency.
    block : int
        Epochs per block where two levels err less (in epsilon), else 1.
    exponent : Fraction or None
        The exponent of the weights that err least (in rho); None in epsilon.
    band : int
        After how many epochs records count no more; 1 without weights.
    variance : float
        The mean variance of a running total of one cell.
    variances : mapping from str to float
        For each thing that was wanted, such as "epoch", "last 4" and "total", the
        variance of one cell, on average over the epochs.
    final : mapping from str to float
        The same after the last epoch.
    sentence : str
        The plan in words.
    """

    each: Fraction
    block: int
    variance: float
    sentence: str
    exponent: Fraction | None = None
    band: int = 1
    variances: Mapping[str, float] = field(default_factory=dict)
    final: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned:
    """A way to count epochs, and its variances at a budget of 1 after each of them.

    Parameters
    ----------
    scheme : Weights or EpochBlocks
        How epochs are counted.
    curves : Mapping[str, ndarray of float64]
        By what is wanted: a variance after each epoch.
    """

    scheme: Weights | EpochBlocks
    curves: Mapping[str, FloatArray]

    def cost(self, wanted: Mapping[str, float]) -> float:
        """Return the summed mean variance of all that is wanted."""
        return sum(
            importance * float(self.curves[name].mean())
            for name, importance in wanted.items()
        )


def read_wanted(wanted: Any) -> dict[str, float]:
    """Read what will be asked of a series, and how much each of it matters.

    Parameters
    ----------
    wanted : mapping from str to number, or None
        Keys are "epoch", "last N" and "total"; None is the running total alone.

    Returns
    -------
    dict from str to float
        The importance of each question.

    Raises
    ------
    InputError
        For another key, or an importance that is not above 0.
    """
    if wanted is None:
        return dict(TOTAL)
    if not isinstance(wanted, Mapping) or not wanted:
        raise InputError(
            'wanted says how much each question matters, such as {"epoch": 1, '
            '"last 4": 1, "total": 1}',
            received=quoted(wanted),
        )
    for name in wanted:
        window_of(name)
    return {
        str(name): as_number(importance, f"wanted[{name!r}]", 0)
        for name, importance in wanted.items()
    }


def window_of(name: Any) -> int | None:
    """Return how many epochs a question adds up; None for the running total."""
    if isinstance(name, str):
        if name == "total":
            return None
        if name == "epoch":
            return 1
        match = re.fullmatch(r"last ([1-9]\d{0,5})", name, re.ASCII)
        if match is not None:
            return int(match[1])
    raise InputError(
        'of a series "epoch", "last 4" (or another number) and "total" are asked',
        received=quoted(name),
    )


def planned_weights(
    weights: Weights, epochs: int, power: int, names: Any, epochs_at_most: int
) -> Planned:
    """Return the variances of weights, for everything that is asked.

    Parameters
    ----------
    weights : Weights
        How much records of each age count in a release.
    epochs : int
        How many epochs there are.
    power : {1, 2}
        The budget is epsilon = 1, or rho = 1.
    names : iterable of str
        What is asked: "epoch", "last N" or "total".
    epochs_at_most : int
        In how many epochs the protected person has records.

    Returns
    -------
    Planned
        The weights, and the variance of one cell after each epoch, by name. That of
        the running total is always there.
    """
    curves = {
        name: weights.variances(
            epochs, power, last=window_of(name), epochs_at_most=epochs_at_most
        )
        for name in dict.fromkeys([*names, "total"])
    }
    return Planned(weights, curves)


def planned_blocks(blocks: EpochBlocks, epochs: int, power: int, names: Any) -> Planned:
    """Return the variances of two levels, for everything that is asked.

    Parameters
    ----------
    blocks : EpochBlocks
        How many epochs are released together as a block.
    epochs : int
        How many epochs there are.
    power : {1, 2}
        The budget is epsilon = 1, or rho = 1.
    names : iterable of str
        What is asked: "epoch", "last N" or "total".

    Returns
    -------
    Planned
        The blocks, and the variance of one cell after each epoch, by name.
    """
    curves = {
        name: blocks.variances(epochs, power, window_of(name))
        for name in dict.fromkeys([*names, "total"])
    }
    return Planned(blocks, curves)


def least_weights(
    epochs: int, wanted: Mapping[str, float], band: int, epochs_at_most: int
) -> Planned:
    """Return the weights of least summed variance among the known exponents, in rho.

    Parameters
    ----------
    epochs : int
        How many epochs there are.
    wanted : mapping from str to float
        How much each question matters: see `read_wanted`.
    band : int
        After how many epochs records count no more.
    epochs_at_most : int
        In how many epochs the protected person has records.

    Returns
    -------
    Planned
        The best weights, and their variances at rho = 1.
    """
    plans = [
        planned_weights(
            Weights.falling(exponent, band), epochs, 2, wanted, epochs_at_most
        )
        for exponent in EXPONENTS
    ]
    return min(plans, key=lambda plan: plan.cost(wanted))


def least_blocks(
    epochs: int, wanted: Mapping[str, float], epochs_at_most: int
) -> Planned:
    """Return single epochs or the two levels of least summed variance, in epsilon.

    Parameters
    ----------
    epochs : int
        How many epochs there are.
    wanted : mapping from str to float
        How much each question matters: see `read_wanted`.
    epochs_at_most : int
        In how many epochs the protected person has records. Blocks are planned only
        where it is 1.

    Returns
    -------
    Planned
        The better of both, and its variances at epsilon = 1.
    """
    single = planned_weights(Weights((1,)), epochs, 1, wanted, epochs_at_most)
    size, _ = best_block(epochs)
    if size == 1 or epochs_at_most > 1:
        return single
    # Averaging both levels shifts the best size a little.
    near = range(max(size - 2, 2), size + 2)
    double = [planned_blocks(EpochBlocks(length), epochs, 1, wanted) for length in near]
    return min([single, *double], key=lambda plan: plan.cost(wanted))


def scaled(curves: Mapping[str, FloatArray], amount: Fraction, power: int) -> Any:
    """Return mean and last variances at a budget of `amount`, by name.

    Parameters
    ----------
    curves : mapping from str to float64 (epochs,)
        Variances after each epoch at a budget of 1.
    amount : Fraction
        The budget; without any the variances are infinite.
    power : {1, 2}
        The budget is epsilon, whose square divides a variance, or rho, which divides
        it.

    Returns
    -------
    pair of mappings from str to float
        The mean over all epochs, and the value after the last one.
    """
    factor = float(amount) ** (power - 3) if amount else np.inf
    means = {name: float(curve.mean() * factor) for name, curve in curves.items()}
    last = {name: float(curve[-1] * factor) for name, curve in curves.items()}
    return MappingProxyType(means), MappingProxyType(last)
