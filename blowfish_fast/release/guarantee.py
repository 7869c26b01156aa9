"""What a release promises, to whom, as plain data and a plain sentence."""

from __future__ import annotations

import json
import math
import secrets
import weakref
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

from blowfish_fast._support.validation import float_above
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import (
    Budget,
    HasBudget,
    as_delta,
    epsilon_of,
    left_out,
    odds_exponent,
)
from blowfish_fast.policies import Policy

SEEDED_BEGINNING = (
    "An experiment that protects nobody: its noise was seeded. With secure noise and"
)

STRATEGIES = {
    "edge_noise": "edges",
    "ordered_hierarchy": "ordered_hierarchical",
    "prefix_sums": "ordered",
    "spanning_tree": "tree",
    "tree": "tuned_tree",
}
"""From the kind of a strategy to the name under which it is asked for."""


@dataclass(frozen=True, repr=False)
class Guarantee(HasBudget):
    """The promise of one release. ``str()`` gives it as a sentence.

    Attributes
    ----------
    budget : Budget
        Spent in all; `epsilon` and `rho` read it.
    policy : dict
        Plain data, which cannot be changed; `policies.from_dict` rebuilds it.
    meaning, neighbours : str
        What stays indistinguishable, and how the two databases differ.
    secure : bool
        Whether the noise came from the system's secure generator: whoever knows the
        seed of an experiment can remove its noise.
    notes : tuple of str
        How the mechanism was calibrated, where that is not plain.
    """

    budget: Budget
    policy: dict[str, Any]
    meaning: str
    neighbours: str
    secure: bool
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", Budget.of(self.budget))
        object.__setattr__(self, "policy", _freeze(self.policy))

    @classmethod
    def of(
        cls,
        policy: Policy,
        budget: Budget | Fraction,
        *,
        secure: bool,
        notes: tuple[str, ...],
    ) -> Guarantee:
        """State the guarantee of spending `budget` under `policy`.

        Parameters
        ----------
        policy : Policy
            What is secret.
        budget : Budget or Fraction
            What was spent.
        secure : bool
            Whether the noise came from the system's secure generator.
        notes : tuple[str, ...]
            How the mechanism was calibrated, where that is not plain.

        Returns
        -------
        Guarantee
            The guarantee.
        """
        return cls(
            Budget.of(budget),
            _policy_data(policy),
            policy.describe(Budget.of(budget)),
            policy.neighbours,
            secure,
            notes,
        )

    def epsilon_at(self, delta: Any) -> float:
        """Return the least epsilon that is proved at `delta`, rounded up.

        This delta is no probability that epsilon is exceeded.
        """
        as_delta(delta)
        if self.budget.power == 1:
            return float(self.budget.amount)
        return float_above(epsilon_of(self.budget.amount, delta))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON; epsilon or rho as an exact fraction in text."""
        return {**self._plain(), "policy": json.loads(json.dumps(self.policy))}

    def _plain(self) -> dict[str, Any]:
        return {
            **self.budget.to_dict(),
            "policy": self.policy,
            "meaning": self.meaning,
            "neighbours": self.neighbours,
            "secure": self.secure,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Guarantee:
        """Rebuild from `to_dict`."""
        budget = Budget.from_dict(data)
        texts = (data["meaning"], data["neighbours"], *data["notes"])
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f"a promise is made in words; received {texts!r}")
        return cls(
            budget,
            data["policy"],
            data["meaning"],
            data["neighbours"],
            bool(data["secure"]),
            tuple(data["notes"]),
        )

    def __repr__(self) -> str:
        """Say it in short: the policy as plain data lists every edge of its domain."""
        seeded = "" if self.secure else ", seeded: an experiment"
        kind = self.policy.get("kind", "policy")
        return f"Guarantee({self.spent}, {kind}{seeded})"

    @property
    def spent(self) -> str:
        """What was spent, as text: "eps = 0.1" or "rho = 0.01"."""
        return self.budget.in_short()

    def counted_records(self, period: str = "") -> str:
        """Say which records count, for sentences about true counts.

        Parameters
        ----------
        period : str, default ''
            During what the bound of a person holds, such as " in an epoch".

        Returns
        -------
        str
            A part of a sentence; nothing where all records count.
        """
        most = self.policy.get("at_most")
        if self.policy.get("kind") != "per_person" or most is None:
            return ""
        if self.policy.get("count") == "persons":
            return f" of persons (each counts once, by at most {most:,} of her records)"
        return f" of the records that count (at most {most:,} of each person{period})"

    def __str__(self) -> str:
        begin = "With" if self.secure else SEEDED_BEGINNING
        sentence = (
            f"{begin} {self.spent}: {self.meaning}. Two databases count "
            f"as neighbours when {self.neighbours}."
        )
        if self.budget.power == 2 and self.budget.amount > 0:
            sentence += f" {odds_sentence(self.budget)}"
        if self.notes:
            sentence += " " + " ".join(self.notes)
        return sentence


def new_identity(guarantee: Guarantee) -> str:
    """Return what tells draws of secure noise apart; "" for seeded noise."""
    return secrets.token_hex(16) if guarantee.secure else ""


def odds_sentence(budget: Budget) -> str:
    """Say what rho means for odds, at the stated delta or else at one in a billion."""
    delta = left_out(budget)
    exponent = odds_exponent(budget.amount, delta)
    factor = f"e^{exponent:g}"
    if exponent < 700:
        factor += f" = {math.ceil(math.exp(exponent) * 100) / 100:g}"
    return (
        "Whatever is released, the odds of one against the other change by more than a "
        f"factor {factor} with a probability of at most {float(delta):g}; values d "
        "steps apart in the policy count as rho d^2."
    )


def _refuse(self: object, *received: Any, **named: Any) -> NoReturn:
    raise InputError(
        "a promise does not change once it is made; Guarantee.to_dict gives a copy of "
        "one's own"
    )


class _FixedDict(dict[str, Any]):
    """Equal to a plain dictionary, and to JSON the same; nothing changes it."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return _FixedDict, (dict(self),)


class _FixedList(list[Any]):
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return _FixedList, (list(self),)


_SIMPLE = frozenset([str, int, float, bool, type(None)])


def _freeze(value: Any) -> Any:
    if isinstance(value, _FixedDict):
        return value
    if isinstance(value, dict):
        return _FixedDict({key: _freeze(part) for key, part in value.items()})
    if isinstance(value, list | tuple):
        if _SIMPLE.issuperset(map(type, value)):
            # Thousands of edges or levels, once per release: no call for each.
            return _FixedList(value)
        return _FixedList([_freeze(part) for part in value])
    if not isinstance(value, str | int | float | None):
        raise InputError("a policy is plain data", received=type(value).__name__)
    return value


def _policy_data(policy: Policy) -> Any:
    """Return the policy as plain data, written once for all releases under it."""
    key = id(policy)
    stated = _STATED.get(key)
    if stated is not None and stated[0]() is policy:
        return stated[1]
    plain = _freeze(policy.to_dict())
    _STATED[key] = weakref.ref(policy, lambda _: _STATED.pop(key, None)), plain
    return plain


_STATED: dict[int, tuple[weakref.ref[Policy], Any]] = {}


def recipe_name(release: Any) -> str:
    """Return the name under which the recipe of a release can be asked for again."""
    name = str(release.mechanism)
    return strategy_name(release.details) if name == "transformed" else name


def strategy_name(details: Any) -> str:
    """Return the name of the strategy that details of a release tell of."""
    kind = str(details.get("strategy", "transformed"))
    return STRATEGIES.get(kind, kind)
