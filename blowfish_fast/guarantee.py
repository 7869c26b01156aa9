"""What a release promises, to whom, as plain data and a plain sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ._validation import LARGEST_EPSILON, as_fraction
from .errors import EpsilonError, InputError
from .policies import Policy


@dataclass(frozen=True)
class Guarantee:
    """The promise of one release. ``str()`` gives it as a sentence.

    Attributes
    ----------
    epsilon : Fraction
        Spent in all.
    policy : dict
        The policy as plain data; `policies.from_dict` rebuilds it.
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

    @classmethod
    def of(
        cls, policy: Policy, epsilon: Fraction, *, secure: bool, notes: tuple[str, ...]
    ) -> Guarantee:
        """State the guarantee of spending `epsilon` under `policy`."""
        return cls(
            epsilon,
            policy.to_dict(),
            policy.describe(),
            policy.neighbours,
            secure,
            notes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON; epsilon as an exact fraction in text."""
        return {
            "epsilon": str(self.epsilon),
            "policy": self.policy,
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
