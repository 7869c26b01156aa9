"""The plan of an audit: mechanisms, domains, policy families, numbers of samples.

Nothing is audited by name: whatever is registered is visited.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from blowfish_fast.data.domain import Domain
from blowfish_fast.mechanisms.registry import (
    OWN,
    RHO_LIST_MECHANISMS,
    RHO_MECHANISMS,
    find_mechanism,
)
from blowfish_fast.policies import Policy

from .choices import selector_names
from .neighbours import policy_families

Shape = int | tuple[int, ...]

MOST_AUDITS = 4000
"""Sampled audits among which the confidence of the whole walk is shared."""


class AuditPlan(NamedTuple):
    """How thoroughly to walk.

    "Per side" means: for each of the two neighbouring data sets that are compared.

    Attributes
    ----------
    priced : tuple of Shape
        Domains on which every edge is priced and invariants are checked.
    sampled : tuple of Shape
        Domains on which black boxes are sampled.
    families : tuple of str, optional
        Families of policies under which black boxes are sampled; None for all.
    thorough : tuple of str
        Families under which choices get the whole `batch`, others a tenth. Choices see
        of a policy whether records come and go or move, and its connected parts.
    seeds : int
        Seeds of generated data, from 0 on; each mechanism is watched on the data of
        every seed.
    pairs : int
        Random neighbours priced at every stop, against the noise declared.
    steps : int
        Neighbours that are tried in search of a worse pair.
    batch : int
        Choices per side, in batches.
    noise : int
        Measurements per side, in batches; four times as many where power needs them.
    runs : int
        Choices per side that are made one by one.
    releases : int
        Whole releases per side.
    outside : int
        Whole releases of each of six data sets of which all but the answer is seen.
    trials : int
        Planted excesses per mechanism.
    excesses : int
        Planted excesses per selector, each seen in a whole batch or not.
    timing : int
        Batches of the timing audit; 0 for none.
    epsilons : tuple of Fraction
        At which selectors choose.
    confidence : float
        Of all statements together.

    Examples
    --------
    >>> QUICK.batch < LONG.batch, QUICK._replace(batch=1000).batch
    (True, 1000)
    """

    priced: tuple[Shape, ...] = (1, 2, 7, (3, 4))
    sampled: tuple[Shape, ...] = (4, (2, 2))
    families: tuple[str, ...] | None = None
    thorough: tuple[str, ...] = ("add_remove", "full")
    seeds: int = 3
    pairs: int = 200
    steps: int = 50
    batch: int = 10_000_000
    noise: int = 400_000
    runs: int = 1_000
    releases: int = 300
    outside: int = 40
    trials: int = 10
    excesses: int = 4
    timing: int = 10_000
    epsilons: tuple[Fraction, ...] = (Fraction(1), Fraction(1, 2), Fraction(2))
    confidence: float = 0.999

    def samples(self, family: str) -> bool:
        """Return whether black boxes are sampled under a policy family."""
        return self.families is None or family in self.families

    def batch_under(self, family: str) -> int:
        """Return how many choices are made per side under a policy family."""
        return self.batch if family in self.thorough else max(self.batch // 10, 1_000)

    @property
    def each(self) -> float:
        """Confidence of one audit, so that all together keep theirs (Bonferroni)."""
        return 1.0 - (1.0 - self.confidence) / MOST_AUDITS


LONG = AuditPlan()
"""The plan of ``blowfish audit``: every subject and family, up to an hour."""

QUICK = AuditPlan(
    families=("add_remove", "full", "line"),
    seeds=1,
    pairs=96,
    steps=8,
    batch=200_000,
    noise=40_000,
    runs=100,
    releases=100,
    outside=8,
    trials=0,
    excesses=0,
    timing=0,
    epsilons=(Fraction(1),),
)
"""The plan of ``blowfish audit --quick``: about a minute."""


class AuditTask(NamedTuple):
    """One stop of the walk.

    Attributes
    ----------
    kind : str
        What is visited: a mechanism or a selector.
    name : str
        Its name.
    shape : Shape
        The shape of the domain.
    family : str
        The family of policies.
    """

    kind: str
    name: str
    shape: Shape
    family: str

    @property
    def policy(self) -> Policy:
        """The policy of its family on its domain."""
        return policy_families(Domain(self.shape))[self.family]

    def __str__(self) -> str:
        return f"{self.name} under {self.family} on {Domain(self.shape)!r}"


def tasks(plan: AuditPlan, mechanisms: Iterable[str] | None = None) -> list[AuditTask]:
    """List every stop.

    Parameters
    ----------
    plan : AuditPlan
        How thoroughly to walk.
    mechanisms : Iterable[str], optional
        The names of those to visit; None for everything.

    Returns
    -------
    list[AuditTask]
        The stops.
    """
    every = sorted(OWN)
    chosen = every if mechanisms is None else list(mechanisms)
    for name in chosen:
        find_mechanism(name)
    listed: list[AuditTask] = []
    if mechanisms is None:
        # First, since they take longest.
        listed += [
            AuditTask("selector", name, shape, family)
            for name in selector_names()
            for shape in plan.sampled
            for family, policy in policy_families(Domain(shape)).items()
            if plan.samples(family) and not policy.has_constraints
        ]
    listed += [
        AuditTask("mechanism", name, shape, family)
        for name in chosen
        for shape in dict.fromkeys((*plan.sampled, *plan.priced))
        for family in policy_families(Domain(shape))
    ]
    if plan.trials:
        listed += [
            AuditTask("power", name, 4, "add_remove")
            for name in chosen
            if name not in {**RHO_MECHANISMS, **RHO_LIST_MECHANISMS}
        ]
    if plan.excesses and mechanisms is None:
        listed += [
            AuditTask("selector power", name, shape, family)
            for name in selector_names()
            for shape in plan.sampled
            for family in plan.thorough
        ]
    if plan.timing and mechanisms is None:
        listed.append(AuditTask("timing", "discrete noise", 1, "any"))
    return listed
