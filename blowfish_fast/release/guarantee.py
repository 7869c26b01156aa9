"""What a release promises, to whom, as plain data and a plain sentence."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

from blowfish_fast._support.validation import LARGEST_EPSILON, as_fraction
from blowfish_fast.errors import EpsilonError, InputError
from blowfish_fast.policies import Policy


@dataclass(frozen=True, repr=False)
class Guarantee:
    """The promise of one release. ``str()`` gives it as a sentence.

    Attributes
    ----------
    epsilon : Fraction
        Spent in all.
    policy : dict
        The policy as plain data, which cannot be changed; `policies.from_dict`
        rebuilds it.
    meaning : str
        What stays indistinguishable.
    neighbours : str
        How two databases differ that the release cannot tell apart.
    secure : bool
        Whether the noise came from the system's secure generator. A seeded release
        is an experiment: whoever knows the seed can remove the noise.
    notes : tuple of str
        How the mechanism was calibrated, where that is not plain.
    """

    epsilon: Fraction
    policy: dict[str, Any]
    meaning: str
    neighbours: str
    secure: bool
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Keep a copy of the policy that nobody can change in place."""
        object.__setattr__(self, "policy", _fixed(self.policy))

    @classmethod
    def of(
        cls, policy: Policy, epsilon: Fraction, *, secure: bool, notes: tuple[str, ...]
    ) -> Guarantee:
        """State the guarantee of spending `epsilon` under `policy`."""
        return cls(
            epsilon,
            _stated(policy),
            policy.describe(),
            policy.neighbours,
            secure,
            notes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON; epsilon as an exact fraction in text."""
        return {
            "epsilon": str(self.epsilon),
            "policy": _plain(self.policy),
            "meaning": self.meaning,
            "neighbours": self.neighbours,
            "secure": self.secure,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Guarantee:
        """Rebuild from `to_dict`."""
        epsilon = as_fraction(data["epsilon"], "epsilon")
        if not 0 <= epsilon <= LARGEST_EPSILON:
            raise EpsilonError(f"nobody spends an epsilon of {data['epsilon']!r}")
        texts = (data["meaning"], data["neighbours"], *data["notes"])
        if not all(isinstance(one, str) for one in texts):
            raise InputError(f"a promise is made in words; received {texts!r}")
        return cls(
            epsilon,
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
        return f"Guarantee(eps = {float(self.epsilon):g}, {kind}{seeded})"

    def __str__(self) -> str:
        sentence = (
            f"With eps = {float(self.epsilon):g}: {self.meaning}. Two databases count "
            f"as neighbours when {self.neighbours}."
        )
        if self.notes:
            sentence += " " + " ".join(self.notes)
        if not self.secure:
            sentence += (
                " The noise was seeded, so this release protects nobody: "
                "it is an experiment."
            )
        return sentence


def _refuse(self: object, *given: Any, **named: Any) -> NoReturn:
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
    """Equal to a plain list, and to JSON the same; nothing changes it."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return _FixedList, (list(self),)


_SIMPLE = frozenset([str, int, float, bool, type(None)])


def _fixed(value: Any) -> Any:
    """Copy nested plain data into what cannot be changed."""
    if isinstance(value, _FixedDict):
        return value
    if isinstance(value, dict):
        return _FixedDict({key: _fixed(one) for key, one in value.items()})
    if isinstance(value, list | tuple):
        if _SIMPLE.issuperset(map(type, value)):
            # Thousands of edges or levels, once per release: no call for each.
            return _FixedList(value)
        return _FixedList([_fixed(one) for one in value])
    return value


def _stated(policy: Policy) -> Any:
    """Return the policy as plain data, written once for all releases under it."""
    key = id(policy)
    known = _STATED.get(key)
    if known is not None and known[0]() is policy:
        return known[1]
    plain = _fixed(policy.to_dict())
    _STATED[key] = weakref.ref(policy, lambda _: _STATED.pop(key, None)), plain
    return plain


_STATED: dict[int, tuple[weakref.ref[Policy], Any]] = {}


def _plain(value: Any) -> Any:
    """Copy it back into dictionaries and lists of one's own."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        if _SIMPLE.issuperset(map(type, value)):
            return list(value)
        return [_plain(one) for one in value]
    return value
