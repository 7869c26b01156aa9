"""How many records of a person to count, chosen privately from a profile of persons."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from blowfish_fast._support.validation import as_whole
from blowfish_fast.data.domain import Domain
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.selections import FirstBelow
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import data_for, stepped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Identity


class ContributionChoice(Mechanism):
    """Choose how many records of a person to count, by the sparse vector technique.

    Parameters
    ----------
    policy : Policy
        It lies over the profile, one cell per candidate and one for more, in which a
        person lies by her number of records.
    bar : int
        How many persons may have more records than are counted.
    epsilon, rho, delta : number
        The budget that the choice spends; see `Mechanism`.

    Notes
    -----
    Guarantee: epsilon for one person, whatever happens to her records.
    Neighbours: those of the policy; her records may also appear one by one.
    Sensitivity: a person changes every number of persons above k by 0 or 1, all in one
        direction (`FirstBelow`).
    Error: see `choose_at_most`.
    Complexity: O(persons).
    Source: Lyu, Su and Li 2017 (sparse vector, monotone queries); the bar is
        Amin, Kulesza, Munoz and Vassilvitskii 2019, for mean absolute error per cell.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> profile = bf.Domain(4)
    >>> choice = ContributionChoice(bf.policies.AddRemove(profile), bar=10, epsilon=9)
    >>> choice.release([900, 90, 9, 1], rng=1).details["place"]
    1
    """

    name = "choose_at_most"

    def __init__(
        self,
        policy: Policy,
        *,
        bar: int,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
    ) -> None:
        super().__init__(
            policy, Identity(policy.domain), epsilon=epsilon, rho=rho, delta=delta
        )
        self.bar = as_whole(bar, "bar", 0)

    def _run(self, private: Handle) -> Outcome:
        place = private.select(FirstBelow(self.bar), budget=private.remaining)
        chosen = np.zeros(self.domain.size)
        chosen[place] = 1.0
        return Outcome(chosen, [], {"place": place}, interval_scope="nothing")

    @classmethod
    def example(cls, domain: Domain, policy: Policy, epsilon: Any) -> tuple[Self, Any]:
        """Return a choice on a profile that rises in steps.

        Parameters
        ----------
        domain : Domain
            The cells.
        policy : Policy
            What is secret.
        epsilon : number, str or Fraction
            The budget.

        Returns
        -------
        mechanism : Self
            The choice.
        data : Histogram
            Made-up counts.
        """
        data = data_for(policy, stepped(domain, 2, height=5))
        return cls(policy, bar=3, epsilon=epsilon), data
