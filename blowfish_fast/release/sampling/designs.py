"""How records were drawn from a population: public designs, stated by whoever drew.

A release speaks of the records at hand. ``release.sampled(design)`` adds how these were
drawn, so that ``of="population"`` asks for intervals of what holds in the population:
over the draw of the sample and the noise together. A design is the caller's word.
Nothing in a release can check it, nothing here reads data, and it costs no privacy.

Let M people of the population meet a condition. The design decides which law the number
of records that meet it has:

    design        how records were drawn                           law of that number
    Simple        n of N people without replacement                hypergeometric
                  with replacement, or of a superpopulation        binomial, n trials
    Bernoulli     everybody with one public chance                 binomial, M trials
    Poisson       nobody was drawn: events occur independently     Poisson
    Stratified    Simple in each stratum; its size is public       a sum over strata
    Weighted      everybody with the chance 1 / weight             a sum over classes
                  of a public class

``release.sample`` is another word: it makes synthetic records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, ClassVar

from blowfish_fast._support.validation import as_truth, as_whole, malformed_as, quoted
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError, ReleaseFileError

MOST_PEOPLE = 10**12
"""A population that can be stated, at most."""


@dataclass(frozen=True)
class SamplingDesign(ABC):
    """How records were drawn; the head of this file lists the designs."""

    kind: ClassVar[str]

    @abstractmethod
    def describe(self) -> str:
        """Say how the records are said to have been drawn, as a part of a sentence."""

    def check(self, domain: Domain) -> None:
        """Refuse a design that names attributes or levels that the domain has not.

        Most designs name none, and fit any domain.
        """
        return

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for a release file."""
        return {"kind": self.kind, **asdict(self)}

    @property
    def everybody(self) -> int | None:
        """How many people there are in all, where the design states it."""
        return None


@dataclass(frozen=True)
class Simple(SamplingDesign):
    """A simple random sample: each draw took every person with the same chance.

    Parameters
    ----------
    population : int, optional
        How many people there are in all. None for a superpopulation: one so large, or
        so imaginary, that no part of it was used up.
    replacement : bool, default False
        Whether a person could be drawn twice.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> bf.sampling.Simple(population=48_842).describe()
    'a simple random sample of 48,842 people'
    """

    population: int | None = None
    replacement: bool = False
    kind: ClassVar[str] = "simple"

    def __post_init__(self) -> None:
        if self.population is not None:
            people = as_whole(self.population, "population", least=1, most=MOST_PEOPLE)
            object.__setattr__(self, "population", people)
        drawn_again = as_truth(self.replacement, "replacement")
        object.__setattr__(self, "replacement", drawn_again)

    def describe(self) -> str:
        """Say it in words."""
        again = ", drawn with replacement" if self.replacement else ""
        if self.population is None:
            return f"a simple random sample of a superpopulation{again}"
        return f"a simple random sample of {self.population:,} people{again}"

    @property
    def everybody(self) -> int | None:
        """How many people there are in all, where that was stated."""
        return self.population


@dataclass(frozen=True)
class Bernoulli(SamplingDesign):
    """Everybody was drawn with one public chance, independently of everybody else.

    Parameters
    ----------
    rate : str, float, int or Fraction
        The chance, between 0 and 1; a text is taken as written.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> bf.sampling.Bernoulli(rate="0.05").describe()
    'a sample of everybody with the chance 1/20'
    """

    rate: Fraction
    kind: ClassVar[str] = "bernoulli"

    def __post_init__(self) -> None:
        with malformed_as(InputError, "a rate is a number between 0 and 1"):
            rate = Fraction(str(self.rate))
        if not 0 < rate < 1:
            raise InputError(
                "a rate lies between 0 and 1, both excluded",
                received=quoted(self.rate),
                way_out='If everybody is in the data, ask of="truth"',
            )
        object.__setattr__(self, "rate", rate)

    def describe(self) -> str:
        """Say it in words."""
        return f"a sample of everybody with the chance {self.rate}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for a release file."""
        return {"kind": self.kind, "rate": str(self.rate)}


@dataclass(frozen=True)
class Poisson(SamplingDesign):
    """Records are events that occur independently of each other, such as accidents.

    There is no population that they were drawn from: questions are about the number of
    events that was to be expected.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> bf.sampling.Poisson().describe()
    'events that occur independently of each other'
    """

    kind: ClassVar[str] = "poisson"

    def describe(self) -> str:
        """Say it in words."""
        return "events that occur independently of each other"


@dataclass(frozen=True)
class Stratified(SamplingDesign):
    """A simple random sample of each stratum; how many people a stratum has is public.

    How many records were drawn of each stratum must be public too. It is, if no edge of
    the policy leads from one stratum to another, or to "absent".

    Parameters
    ----------
    attribute : str
        The attribute whose levels are the strata.
    population : Mapping[str, int]
        From each level to the number of people in that stratum.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> sizes = {"north": 12_000, "south": 36_842}
    >>> bf.sampling.Stratified("region", population=sizes).describe()
    'simple random samples of 2 strata by region, 48,842 people in all'
    """

    attribute: str
    population: Mapping[Any, int]
    kind: ClassVar[str] = "stratified"

    def __post_init__(self) -> None:
        if not isinstance(self.population, Mapping) or not self.population:
            raise InputError(
                "strata have a number of people each: population={level: people}",
                received=quoted(self.population),
            )
        sizes = {
            level: as_whole(people, f"population of {level!r}", 1, MOST_PEOPLE)
            for level, people in self.population.items()
        }
        object.__setattr__(self, "population", sizes)

    def describe(self) -> str:
        """Say it in words."""
        return (
            f"simple random samples of {len(self.population)} strata by "
            f"{self.attribute}, {self.everybody:,} people in all"
        )

    def check(self, domain: Domain) -> None:
        """Refuse strata that are no levels of the domain, or leave some out."""
        levels = _levels_of(domain, self.attribute, "strata")
        if set(levels) != set(self.population):
            raise InputError(
                f"every level of {self.attribute} is a stratum with its people",
                received=f"{sorted(map(str, self.population))}",
                way_out=f"State all of {list(map(str, levels))}",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for a release file."""
        sizes = [[level, people] for level, people in self.population.items()]
        return {"kind": self.kind, "attribute": self.attribute, "population": sizes}

    @property
    def everybody(self) -> int:
        """How many people there are in all."""
        return sum(self.population.values())


@dataclass(frozen=True)
class Weighted(SamplingDesign):
    """Everybody was drawn with the chance 1 / weight; classes of weights are public.

    The weight is an attribute of the domain, one level for each class. Weights must be
    fixed by public facts: a weight that was raked or calibrated on the sample depends
    on all records, and one record then changes all of them.

    Parameters
    ----------
    attribute : str
        The attribute whose cells are the classes.
    values : sequence of float
        The weight of each class, in the order of its cells, 1 or more.
    trimmed : float or sequence of float, optional
        Cuts: at the lower end of an interval of a number of people, weights above a cut
        count as the cut. So few heavy records bring less noise, and less of the chance
        of the draw, into that end. The upper end counts the weights as they are. Cuts
        must be fixed before the release, by an earlier wave or by the design: a cut
        that is chosen after a look at the release voids the interval. Several cuts
        share the chance with which an interval may miss, and the best one is taken.
    people : sequence of int, optional
        How many people of the population are in each class, at most, where a public
        frame says so. Then cuts serve at the upper end too: there the part 1 - cut /
        weight of these people is added for what the cut leaves away.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> bf.sampling.Weighted("weight", values=[64, 32, 16, 8, 4]).describe()
    'a sample with the chance 1 / weight, in 5 classes from 4 to 64'
    >>> design = bf.sampling.Weighted("weight", values=[64, 32, 4], trimmed=32)
    >>> print(design.describe().partition(", ")[2])
    in 3 classes from 4 to 64, trimmed at 32, which was fixed before the release
    """

    attribute: str
    values: tuple[float, ...]
    trimmed: tuple[float, ...] = ()
    people: tuple[int, ...] | None = None
    kind: ClassVar[str] = "weighted"

    def __post_init__(self) -> None:
        with malformed_as(InputError, "weights are numbers of 1 or more"):
            weights = tuple(float(weight) for weight in self.values)
        if not weights or not all(1.0 <= weight <= MOST_PEOPLE for weight in weights):
            raise InputError(
                "weights are numbers of 1 or more: nobody stands for less than herself",
                received=quoted(self.values),
            )
        object.__setattr__(self, "values", weights)
        self._read_cuts()

    def _read_cuts(self) -> None:
        """Check `trimmed` and `people`, and hold both as tuples."""
        stated: Any = self.trimmed
        with malformed_as(InputError, "cuts of weights are numbers"):
            plain = isinstance(stated, int | float) and not isinstance(stated, bool)
            cuts = tuple(float(cut) for cut in ((stated,) if plain else stated))
        heaviest = max(self.values)
        if not all(0.0 < cut <= heaviest for cut in cuts) or len({*cuts}) < len(cuts):
            raise InputError(
                "a cut lies between 0 and the largest weight, and is stated once",
                received=quoted(stated),
                way_out=f"At {heaviest:g} nothing is trimmed",
            )
        object.__setattr__(self, "trimmed", cuts)
        if self.people is None:
            return
        with malformed_as(InputError, "people of classes are whole numbers"):
            people = tuple(
                as_whole(number, "people", 0, MOST_PEOPLE) for number in self.people
            )
        if len(people) != len(self.values) or not cuts:
            raise InputError(
                "people are those of each class of weights, and serve where weights "
                "are trimmed",
                received=f"{len(people)} numbers, {len(self.values)} weights and "
                f"{len(cuts)} cuts",
            )
        object.__setattr__(self, "people", people)

    def describe(self) -> str:
        """Say it in words."""
        low, high = min(self.values), max(self.values)
        classes = (
            f"a sample with the chance 1 / weight, in {len(self.values)} classes from "
            f"{low:g} to {high:g}"
        )
        if not self.trimmed:
            return classes
        listed = " and ".join(f"{cut:g}" for cut in self.trimmed)
        which = "which was" if len(self.trimmed) == 1 else "all of which were"
        return f"{classes}, trimmed at {listed}, {which} fixed before the release"

    def check(self, domain: Domain) -> None:
        """Refuse classes that are not those of the domain."""
        size = domain.shape[domain.axis(self.attribute)]
        if size != len(self.values):
            raise InputError(
                f"there is one weight for each of the {size} cells of {self.attribute}",
                received=f"{len(self.values)} weights",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for a release file."""
        plain = {
            "kind": self.kind,
            "attribute": self.attribute,
            "values": list(self.values),
        }
        if self.trimmed:
            plain["trimmed"] = list(self.trimmed)
        if self.people is not None:
            plain["people"] = list(self.people)
        return plain


DESIGNS: dict[str, type[SamplingDesign]] = {
    design.kind: design for design in (Simple, Bernoulli, Poisson, Stratified, Weighted)
}
"""Every design by its name in files."""


CLUSTERED = (
    "people of one household, school or village are alike, so such a sample varies by "
    "its clusters, and no law of single records is right for it"
)
ADJUSTED = (
    "weights that were raked, calibrated or adjusted for nonresponse depend on all "
    "records, so one record changes everybody's weight, and no class of weights is "
    "public"
)
CHOSEN = "nobody knows with which chance a person came into such a sample"
NO_LAW: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("cluster", "clusters", "multistage", "multi_stage", "two_stage", "households"),
        (CLUSTERED, "Release counts of clusters, one record each, as a simple sample"),
    ),
    **dict.fromkeys(
        ("raked", "raking", "calibrated", "calibration", "post_stratified"),
        (
            ADJUSTED,
            "Release counts without these weights, and adjust the noisy counts "
            "afterwards, which is free",
        ),
    ),
    **dict.fromkeys(
        ("quota", "convenience", "snowball", "volunteers"),
        (CHOSEN, 'Ask of="truth", which speaks of these records alone'),
    ),
}
"""Designs that are refused, by their usual names: the reason, and the way out."""


def refused_design(name: str) -> InputError | None:
    """Return why a design is not offered; None for a name that nobody refuses.

    Parameters
    ----------
    name : str
        What somebody calls the design.

    Returns
    -------
    InputError or None
        The error to raise, with its reason and a way out.

    Examples
    --------
    >>> print(refused_design("snowball").way_out)
    Ask of="truth", which speaks of these records alone
    """
    reason = NO_LAW.get(name.strip().lower().replace("-", "_").replace(" ", "_"))
    if reason is None:
        return None
    why, way_out = reason
    return InputError(why, received=quoted(name), way_out=way_out)


def design_from_dict(plain: Mapping[str, Any]) -> SamplingDesign:
    """Rebuild a design from `SamplingDesign.to_dict`; refuse what is none."""
    content = dict(plain)
    kind = content.pop("kind", None)
    if kind not in DESIGNS:
        raise ReleaseFileError(f"the design {kind!r} of a sample is unknown here")
    if kind == Stratified.kind:
        content["population"] = dict(content["population"])
    return DESIGNS[kind](**content)


def as_design(design: Any, domain: Domain) -> SamplingDesign:
    """Return a design that fits a domain; refuse anything else.

    Parameters
    ----------
    design : object
        What was stated.
    domain : Domain
        The cells of the release.

    Returns
    -------
    SamplingDesign
        The design.

    Raises
    ------
    InputError
        If it is no design, or names what the domain has not.
    """
    if not isinstance(design, SamplingDesign):
        refusal = refused_design(design) if isinstance(design, str) else None
        raise refusal or InputError(
            "say how the records were drawn by one of bf.sampling",
            received=quoted(design),
            way_out="Say release.sampled(bf.sampling.Simple(population=48_842))",
        )
    design.check(domain)
    return design


def _levels_of(domain: Domain, name: str, what: str) -> Sequence[Any]:
    """Return the levels of an attribute that has levels alone; refuse any other.

    Parameters
    ----------
    domain : Domain
        The cells of the release.
    name : str
        The name of the attribute.
    what : str
        What its levels stand for, for the message, such as "strata".

    Returns
    -------
    sequence
        The levels.
    """
    attribute = domain.attributes[domain.axis(name)]
    if attribute.levels is not None and attribute.extras:
        own = " and ".join(attribute.extras)
        raise InputError(
            f"{what} are the levels of an attribute, and every record has one of them; "
            f"{name} has a cell for {own}",
            way_out=f"Spell {name} alike in all records before they are counted, or "
            "make what is left over a level of its own, with its number of people; "
            "state outside and missing for the other columns by name",
        )
    if attribute.levels is None:
        raise InputError(
            f"{what} are the levels of an attribute, all of them stated; {name} has "
            "cells of another kind",
            way_out="Release an attribute made by Domain.from_levels",
        )
    levels: Sequence[Any] = attribute.levels
    return levels
