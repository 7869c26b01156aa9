"""A stored release made finer: the same rows of the same counts with less noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from blowfish_fast.errors import InputError, PrivacyError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.noise import Scales, rates_at_common_unit
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.policies import Policy
from blowfish_fast.policies import from_dict as policy_from_dict
from blowfish_fast.release.file import Release
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.workloads import Identity


class Refiner(Mechanism):
    """Lower the noise of a release that was published before, given that noise.

    *Guarantee*: the earlier release and the finer one are together private at the
    epsilon of this mechanism (Lemma RF3). *Neighbours* and *sensitivity* are those of
    the earlier release. *Error*: the finer release has the noise of a single
    measurement at this epsilon. *Complexity*: linear in the rows. *Source*: F.
    Koufogiannis et al. 2016, in integers; ``docs/proofs/refinement.md``.

    Both hold for the very counts of the earlier release only: `Ledger.refine` sees to
    that, and charges the difference. By itself it must not be released. The finer
    noise is not fresh where earlier numbers led to the wish for it, so its intervals
    are of the noise alone.

    Parameters
    ----------
    release : Release
        A release of a histogram by one measurement of single cells, in epsilon.
    epsilon : number
        What both releases cost together, more than the first.
    policy : Policy, optional
        What must stay indistinguishable; None takes the policy of the release.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.AddRemove(bf.Domain(3))
    >>> rough = bf.Laplace(policy, epsilon="0.1").release([50, 40, 30], rng=1)
    >>> refiner = Refiner(rough, epsilon=1)
    >>> finer = refiner.release([50, 40, 30], rng=2)
    >>> finer.guarantee.budget.epsilon, finer.fresh
    (Fraction(1, 1), False)
    """

    name: ClassVar[str] = "refiner"

    def __init__(
        self, release: Release, *, epsilon: Any, policy: Policy | None = None
    ) -> None:
        if not isinstance(release, HistogramRelease):
            raise InputError(
                "noise is lowered of a release of a histogram",
                received=type(release).__name__,
            )
        stated = policy or policy_from_dict(dict(release.guarantee.to_dict()["policy"]))
        super().__init__(stated, Identity(release.domain), epsilon=epsilon)
        linear = release.interval_scope == "noise" and len(release.measurements) == 1
        # One that was made finer before is not fresh, and its rows are known as well.
        if not linear or not (release.fresh or release.mechanism == self.name):
            raise PrivacyError(
                "noise is lowered of one measurement, whose rows nobody chose by "
                f"looking at others; a release by {release.mechanism} is none. Nothing "
                "was drawn"
            )
        self.about = release.digest
        self._release = release

    @property
    def measurement(self) -> Measurement:
        """What was published before."""
        return self._release.measurements[0]

    @property
    def release_details(self) -> Mapping[str, Any]:
        """What the earlier release says of itself."""
        return self._release.details

    @property
    def measured_cost(self) -> Fraction:
        """What the noise of the earlier release costs on the worst edge."""
        measurement, policy = self.measurement, self.policy
        edge = measurement.strategy.cost(policy.unconstrained, measurement.scales)
        return Budget(edge).at_distance(policy.group_size).amount

    @property
    def law(self) -> Measurement:
        """The rows with the noise that they would have; their values are nobody's."""
        (measured,) = self._dry_run.published
        return measured

    @property
    def is_level(self) -> bool:
        """Whether each row would have the rate of a single release at this epsilon.

        Then the law of the noise does not depend on which levels it went through
        (Lemma RF5). Rates that were rounded up before would stay as they are.
        """
        _, (drawn, alone) = rates_at_common_unit(
            [self.law.scales, self._wanted(self.policy.unconstrained)]
        )
        return bool((drawn == alone).all())

    def _wanted(self, policy: Policy) -> Scales:
        """Return the noise of a single release at this epsilon."""
        each = self.budget.over(self.policy.group_size)
        return self.measurement.strategy.scales(policy, each)

    def _run(self, private: Handle) -> Outcome:
        measurement = self.measurement
        private.resume(measurement, paid=Budget(self.measured_cost))
        wanted = self._wanted(private.policy)
        return Outcome.of(private.refine(measurement, wanted, budget=self.budget))

    def _published(self, outcome: Outcome, guarantee: Guarantee) -> Release:
        finer = super()._published(outcome, guarantee)
        assert isinstance(finer, HistogramRelease)
        return replace(finer, fresh=False)
