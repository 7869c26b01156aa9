"""Privacy budgets: an amount of epsilon (power 1) or of rho (power 2).

An edge of the policy pays the sum over rows of rate_i * |move_i|^power / unit. Row i
has discrete Laplace noise of scale unit / rate_i, or discrete Gaussian noise of
variance unit / (2 rate_i). Proofs: ``docs/proofs/zcdp.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict

from blowfish_fast._support.validation import as_epsilon, as_fraction, malformed_as
from blowfish_fast.errors import BudgetError, EpsilonError

__all__ = ["Budget", "epsilon_of", "rho_of"]

SMALLEST_RHO = Fraction(1, 10**12)
LARGEST_RHO = Fraction(10**9)
# Conversions round rho down, and epsilon up, to whole numbers of these parts.
RHO_UNITS = 10**12
EPSILON_UNITS = 10**9
CHOICE_BITS = 40


class BudgetTerms(TypedDict, total=False):
    """How a budget is stated: `epsilon`, or `rho`, or `epsilon` with `delta`.

    Attributes
    ----------
    epsilon : number, str or Fraction
        The budget of pure differential privacy.
    rho : number, str or Fraction
        The budget of zero-concentrated differential privacy.
    delta : number, str or Fraction
        With `epsilon`: the two together are turned into the largest rho that implies
        them.
    """

    epsilon: Any
    rho: Any
    delta: Any


@dataclass(frozen=True, eq=False)
class Budget:
    """An amount of epsilon (power 1) or of rho (power 2).

    A budget in epsilon equals its number.

    Attributes
    ----------
    amount : Fraction
        How much, exactly.
    power : int, default 1
        1 for epsilon, 2 for rho.
    delta : Fraction, optional
        The delta that the budget was stated with. It only serves the words of a
        guarantee.

    Examples
    --------
    >>> whole = Budget.of(Fraction(1, 10))
    >>> whole / 2 == Fraction(1, 20), whole.over(2).amount
    (True, Fraction(1, 20))
    >>> Budget(Fraction(1, 10), 2).over(2).amount
    Fraction(1, 40)
    >>> Budget.stated(epsilon=1, delta="1e-9").rho
    Fraction(14973057673, 1000000000000)
    """

    amount: Fraction
    power: int = 1
    delta: Fraction | None = None

    @classmethod
    def of(cls, value: Budget | Fraction | int) -> Budget:
        """Return a budget; a plain number is an epsilon."""
        return value if isinstance(value, Budget) else cls(Fraction(value))

    @classmethod
    def stated(
        cls, *, epsilon: Any = None, rho: Any = None, delta: Any = None
    ) -> Budget:
        """Read a budget: epsilon alone, rho alone, or epsilon with delta.

        Parameters
        ----------
        epsilon : number, str, Fraction or Budget, optional
            Epsilon; a budget is returned as it is.
        rho : number, str or Fraction, optional
            Rho, alone.
        delta : number, str or Fraction, optional
            With `epsilon`: the rho of `rho_of` is taken.

        Returns
        -------
        Budget
            The budget.

        Raises
        ------
        EpsilonError
            If none is stated, if rho is stated beside another, or if a number is out of
            range.
        """
        if isinstance(epsilon, Budget):
            return epsilon
        if rho is not None:
            if epsilon is not None or delta is not None:
                raise EpsilonError(
                    "state rho alone, or epsilon, or epsilon with delta; received "
                    "rho beside another. Leave one out"
                )
            return cls(as_rho(rho), 2)
        if epsilon is None:
            raise EpsilonError(
                "state the budget: epsilon=..., rho=..., or epsilon=... with "
                "delta=...; received none"
            )
        if delta is None:
            return cls(as_epsilon(epsilon))
        below = as_delta(delta)
        return cls(rho_of(epsilon, below), 2, below)

    @property
    def currency(self) -> str:
        """The name of what is spent: "epsilon" or "rho"."""
        return "epsilon" if self.power == 1 else "rho"

    @property
    def epsilon(self) -> Fraction:
        """The amount of a budget in epsilon; a budget in rho has none."""
        if self.power != 1:
            raise EpsilonError(
                f"this budget is rho = {float(self.amount):g}; it has no epsilon of "
                "its own. Use guarantee.epsilon_at(delta), or budgets.epsilon_of"
            )
        return self.amount

    @property
    def rho(self) -> Fraction:
        """The rho that the budget implies: itself, or epsilon^2 / 2."""
        return self.amount if self.power == 2 else self.amount**2 / 2

    def over(self, group_size: int) -> Budget:
        """Return what each of several moves together may cost: epsilon/g, rho/g^2."""
        if group_size == 1:
            return self
        return self._with(self.amount / group_size**self.power)

    def at_distance(self, steps: int | Fraction) -> Budget:
        """Return what is paid over `steps` edges: epsilon * d, or rho * d^2."""
        if steps == 1:
            return self
        return self._with(self.amount * steps**self.power)

    def for_choice(
        self, loss_range: int = 2, parts: tuple[Fraction, ...] = ()
    ) -> Fraction:
        """Return the epsilon that a choice may use, rounded down: Lemma ZC7.

        Parameters
        ----------
        loss_range : int, default 2
            1 if weights move in one direction only when a record changes, else 2.
        parts : tuple[Fraction, ...], default ()
            The parts of epsilon of a choice that is made of several; empty for one.

        Returns
        -------
        Fraction
            The epsilon; the amount itself where the budget is one of epsilon.
        """
        if self.power == 1:
            return self.amount
        # Rho goes with the square of epsilon.
        square = self.amount / Budget(Fraction(1)).choice_rho(loss_range, parts)
        root = math.isqrt(math.floor(square * 4**CHOICE_BITS))
        return Fraction(root, 2**CHOICE_BITS)

    def choice_rho(self, loss_range: int, parts: tuple[Fraction, ...]) -> Fraction:
        """Return the rho that a choice at this epsilon costs: Lemma ZC7.

        Parameters
        ----------
        loss_range : int
            1 if weights move in one direction only when a record changes, else 2.
        parts : tuple[Fraction, ...]
            The parts of epsilon of a choice that is made of several; empty for one.

        Returns
        -------
        Fraction
            The rho.
        """
        shares = sum(part * part for part in parts) or Fraction(1)
        return (loss_range * self.epsilon) ** 2 * shares / 8

    def to_dict(self) -> dict[str, str]:
        """Return plain data, for JSON: the currency, and delta where it was stated."""
        plain = {self.currency: str(self.amount)}
        return plain if self.delta is None else {**plain, "delta": str(self.delta)}

    @classmethod
    @malformed_as(EpsilonError, "a budget is read from what its to_dict returned")
    def from_dict(cls, data: Mapping[str, Any]) -> Budget:
        """Rebuild from `to_dict`; an amount of 0 is possible."""
        power = 2 if "rho" in data else 1
        amount = as_fraction(data["rho" if power == 2 else "epsilon"], "amount")
        if ("epsilon" in data and power == 2) or not 0 <= amount <= LARGEST_RHO:
            raise EpsilonError(f"nobody spends a budget of {float(amount):g}")
        delta = None if "delta" not in data else as_delta(data["delta"])
        return cls(amount, power, delta if power == 2 else None)

    def words(self) -> str:
        """Return it as text, "epsilon = 0.1" or "rho = 0.01"."""
        return f"{self.currency} = {float(self.amount):g}"

    def in_short(self) -> str:
        """Return it as tables and messages say it, "eps = 0.1" or "rho = 0.01"."""
        return self.words().replace("epsilon", "eps")

    def _with(self, amount: Fraction) -> Budget:
        return Budget(amount, self.power, self.delta)

    def _same(self, other: Budget | Fraction | int) -> Fraction:
        """Return the other's amount; epsilon and rho do not mix."""
        amount = Budget.of(other)
        if amount.power != self.power and amount.amount != 0:
            raise BudgetError(
                f"{self.words()} and {amount.words()} are two currencies; neither adds "
                "to nor compares with the other"
            )
        return amount.amount

    def __add__(self, other: Budget | Fraction | int) -> Budget:
        return self._with(self.amount + self._same(other))

    __radd__ = __add__

    def __sub__(self, other: Budget | Fraction | int) -> Budget:
        return self._with(self.amount - self._same(other))

    def __mul__(self, share: Fraction | int) -> Budget:
        return self._with(self.amount * share)

    __rmul__ = __mul__

    def __truediv__(self, parts: Fraction | int) -> Budget:
        return self._with(self.amount / parts)

    def __float__(self) -> float:
        return float(self.amount)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Budget | Fraction | int | float):
            return NotImplemented
        if not isinstance(other, Budget):
            return self.power == 1 and self.amount == other
        return self.power == other.power and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount if self.power == 1 else (self.amount, self.power))

    def __lt__(self, other: Budget | Fraction | int) -> bool:
        return self.amount < self._same(other)

    def __le__(self, other: Budget | Fraction | int) -> bool:
        return self.amount <= self._same(other)

    def __gt__(self, other: Budget | Fraction | int) -> bool:
        return self.amount > self._same(other)

    def __ge__(self, other: Budget | Fraction | int) -> bool:
        return self.amount >= self._same(other)


class HasBudget:
    """What has a `budget`, of which its `epsilon` and `rho` are read."""

    if TYPE_CHECKING:

        @property
        def budget(self) -> Budget:
            """What is, was or would be spent."""

    @property
    def epsilon(self) -> Fraction:
        """The budget where it is epsilon; refused where it is rho."""
        return self.budget.epsilon

    @property
    def rho(self) -> Fraction:
        """The budget in rho: as stated, or epsilon^2 / 2."""
        return self.budget.rho


def optional_budget(
    *, epsilon: Any = None, rho: Any = None, delta: Any = None
) -> Budget | None:
    """Read a budget as `Budget.stated` does; None where all three are left out.

    Parameters
    ----------
    epsilon : number, str, Fraction or Budget, optional
        Epsilon.
    rho : number, str or Fraction, optional
        Rho, alone.
    delta : number, str or Fraction, optional
        With `epsilon`.

    Returns
    -------
    Budget or None
        The budget, or None.

    Raises
    ------
    EpsilonError
        If rho is stated beside another, or if a number is out of range.
    """
    if epsilon is None and rho is None and delta is None:
        return None
    return Budget.stated(epsilon=epsilon, rho=rho, delta=delta)


def as_rho(value: Any, name: str = "rho") -> Fraction:
    """Read an amount of rho: a positive number from 1e-12 to 1e9.

    Parameters
    ----------
    value : number, str or Fraction
        What the caller gave.
    name : str, default 'rho'
        What the caller calls it, for the message.

    Returns
    -------
    Fraction
        The exact number.

    Raises
    ------
    EpsilonError
        If it is no number, or out of range.
    """
    rho = as_fraction(value, name)
    if not SMALLEST_RHO <= rho <= LARGEST_RHO:
        raise EpsilonError(
            f"{name} must lie between 1e-12 and 1e9; received {value!r}. Common "
            "choices lie between 0.0001 and 0.5"
        )
    return rho


def as_delta(value: Any) -> Fraction:
    """Read a delta: above 0 and below 1."""
    delta = as_fraction(value, "delta")
    if not Fraction(1, 10**300) <= delta < 1:
        raise EpsilonError(
            f"delta must lie above 0 and below 1; received {value!r}. Take far less "
            "than one over the number of records, such as 1e-9"
        )
    return delta


def left_out(budget: Budget) -> Fraction:
    """Return the probability that sentences about rho leave out, named in them."""
    return Fraction(1, 10**9) if budget.delta is None else budget.delta


def equal_noise_epsilon(budget: Budget | Fraction) -> float:
    """Return the epsilon whose Laplace noise varies as much; not about privacy."""
    price = Budget.of(budget)
    amount = float(price.amount)
    return amount if price.power == 1 else 2.0 * math.sqrt(amount)


def rho_of(epsilon: Any, delta: Any) -> Fraction:
    """Return the largest rho that certainly implies (epsilon, delta): Lemma ZC9.

    There is no converse. The bound is proposition 12 of C. Canonne, G. Kamath, T.
    Steinke. The discrete Gaussian for differential privacy. NeurIPS 2020.

    Parameters
    ----------
    epsilon : number, str or Fraction
        Epsilon.
    delta : number, str or Fraction
        Delta.

    Returns
    -------
    Fraction
        Rho in units of 10^-12, rounded down.

    Raises
    ------
    EpsilonError
        If no rho of 1e-12 or more implies it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> float(bf.budgets.rho_of(epsilon=1, delta="1e-9"))
    0.014973057673
    """
    goal, chance = as_epsilon(epsilon), as_delta(delta)
    rho = _largest_rho(goal, chance)
    if rho == 0:
        raise EpsilonError(
            f"no rho of 1e-12 or more implies epsilon = {float(goal):g} at delta = "
            f"{float(chance):g}; raise epsilon or delta"
        )
    return rho


def epsilon_of(rho: Any, delta: Any) -> Fraction:
    """Return the least epsilon that rho certainly implies at `delta`: Lemma ZC9.

    Parameters
    ----------
    rho : number, str or Fraction
        Rho.
    delta : number, str or Fraction
        Delta.

    Returns
    -------
    Fraction
        Epsilon in units of 10^-9, rounded up; the same bound as `rho_of`.

    Raises
    ------
    EpsilonError
        If a number is out of range.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> float(bf.budgets.epsilon_of(rho="0.01", delta="1e-9"))
    0.810174468
    """
    return _least_epsilon(as_rho(rho), as_delta(delta))


def odds_exponent(rho: Fraction, delta: Fraction, digits: int = 2) -> float:
    """Return how far odds may change, but for a probability of `delta`.

    Odds change by more than e^t with at most that probability. The bound (1 + e^-t)
    exp(-(t - rho)^2 / (4 rho)) holds for both tails of the loss.

    Parameters
    ----------
    rho : Fraction
        The budget.
    delta : Fraction
        The probability.
    digits : int, default 2
        How many digits t has.

    Returns
    -------
    float
        The exponent t, rounded up.
    """
    amount, goal = float(rho), math.log(float(delta))

    def holds(t: float) -> bool:
        return math.log1p(math.exp(-t)) - (t - amount) ** 2 / (4 * amount) <= goal

    # There the square is 1 - goal, and the logarithm is at most that of 2: it holds.
    low, high = amount, amount + 2 * math.sqrt(amount * (1 - goal)) + 1e-300
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    places = digits - 1 - math.floor(math.log10(high))
    return round(math.ceil(high * (1 + 1e-9) * 10.0**places) / 10.0**places, places)


@lru_cache(maxsize=256)
def _largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    def holds_not(units: int) -> bool:
        return not _implies(Fraction(units, RHO_UNITS), epsilon, delta)

    most = math.ceil((epsilon + 1) * RHO_UNITS)
    return Fraction(_first(holds_not, most) - 1, RHO_UNITS)


@lru_cache(maxsize=256)
def _least_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    def holds(units: int) -> bool:
        return _implies(rho, Fraction(units, EPSILON_UNITS), delta)

    # The classical bound exp(-(epsilon - rho)^2 / (4 rho)) is delta there, and that of
    # Lemma ZC9 lies below it.
    most = float(rho) + 2 * math.sqrt(float(rho) * -math.log(float(delta)))
    high = math.ceil(most * EPSILON_UNITS) + 1
    return Fraction(_first(holds, high), EPSILON_UNITS)


def _first(holds: Callable[[int], bool], high: int) -> int:
    """Return the first whole number above 0 that holds, if `high` does: bisection."""
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _implies(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Return whether the bound at one order certainly stays at or below `delta`."""
    down = _context(ROUND_FLOOR)
    goal = down.ln(_decimal(delta, down))
    # ln is rounded to nearest: one unit of its last place.
    goal = down.next_minus(goal)
    return _log_delta(rho, epsilon, _order(float(rho), float(epsilon))) <= goal


def _log_delta(rho: Fraction, epsilon: Fraction, order: Fraction) -> Decimal:
    """Return the logarithm of the bound at one order, rounded up."""
    up, down = _context(ROUND_CEILING), _context(ROUND_FLOOR)
    head = _decimal((order - 1) * (order * rho - epsilon), up)
    above = down.ln(_decimal(order - 1, down)).copy_negate()
    below = up.multiply(_decimal(order, down), up.ln(_decimal(1 - 1 / order, up)))
    size = up.add(up.add(head.copy_abs(), _decimal(order, up)), Decimal(100))
    slack = up.multiply(size, Decimal(1).scaleb(8 - up.prec, up))
    return up.add(up.add(head, above), up.add(below, slack))


def _order(rho: float, epsilon: float) -> Fraction:
    """Return a good order of the Renyi divergence; any above 1 would be valid."""

    def bound(order: float) -> float:
        return (
            (order - 1) * (order * rho - epsilon)
            - math.log(order - 1)
            + order * math.log1p(-1 / order)
        )

    low, high = math.log(1e-9), math.log(1e12)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(150):
        first, second = high - golden * (high - low), low + golden * (high - low)
        if bound(1 + math.exp(first)) < bound(1 + math.exp(second)):
            high = second
        else:
            low = first
    return Fraction(1 + math.exp(low))


def _context(rounding: str) -> Context:
    """Return a context of 50 digits of our own: operators would read the caller's."""
    return Context(prec=50, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def __dir__() -> list[str]:
    return sorted(__all__)
