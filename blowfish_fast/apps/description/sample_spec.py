"""How the records of a table were drawn, as its description says it.

drawn         beside it
simple        population, replacement
bernoulli     rate
poisson       nothing
stratified    column, population by level
weighted      column, weights of its cells; trimmed, people
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from blowfish_fast.data.axes import Axis
from blowfish_fast.errors import InputError

from .frozen_model import Model, Name

if TYPE_CHECKING:
    from blowfish_fast.release.sampling.designs import SamplingDesign

TAKEN: dict[str, tuple[str, ...]] = {
    "simple": ("population", "replacement"),
    "bernoulli": ("rate",),
    "poisson": (),
    "stratified": ("column", "population"),
    "weighted": ("column", "weights", "trimmed", "people"),
}
"""What a sample states beside how it was drawn."""
NEEDED = {"rate", "column", "weights"}
"""What it cannot do without, where it takes it; strata need their population, too."""


class SampleSpec(Model):
    """How the records were drawn from a population, as [sample] of a job file has it.

    Nothing here can check it. Whoever asks for intervals of the population gets them on
    the curator's word; see `bf.sampling`.

    Examples
    --------
    >>> SampleSpec(drawn="simple", population=48_842).design().describe()
    'a simple random sample of 48,842 people'
    """

    drawn: Annotated[str, Field(min_length=1, max_length=40)]
    """How: simple, bernoulli, poisson, stratified or weighted."""
    population: Annotated[int, Field(ge=1)] | dict[str, int] | None = None
    """How many people there are in all; of a simple sample, unless it is one of a
    superpopulation. Of strata how many each has, by its level.
    """
    replacement: bool = False
    """Whether a person could be drawn twice; of a simple sample."""
    rate: Annotated[str, Field(max_length=40)] | float | None = None
    """The chance with which everybody was drawn; of a Bernoulli sample."""
    column: Name | None = None
    """The attribute whose levels are the strata, or whose cells are the classes of
    weights. A question that shows it has intervals of the population.
    """
    weights: list[float] | None = None
    """What a record of each class stands for, in the order of the cells of the column:
    everybody was drawn with the chance 1 / weight; of a weighted sample.
    """
    trimmed: list[float] | None = None
    """Cuts above which weights count as the cut; see `bf.sampling.Weighted`."""
    people: list[int] | None = None
    """How many people each class of weights has, at most, where weights are trimmed."""

    @model_validator(mode="after")
    def _a_design_with_a_law(self) -> Self:
        try:
            self.design()
        except InputError as problem:
            raise ValueError(str(problem)) from None
        return self

    def design(self) -> SamplingDesign:
        """Return the design.

        Returns
        -------
        SamplingDesign
            What ``release.sampled`` takes.

        Raises
        ------
        InputError
            If it has no law here, or other fields belong to it.
        """
        # Samples are asked for by few: a server that has none does not load their laws.
        from blowfish_fast.release.sampling.designs import (
            Bernoulli,
            Poisson,
            Simple,
            Stratified,
            Weighted,
            refused_design,
        )

        refusal = refused_design(self.drawn)
        if refusal is not None:
            raise refusal
        if self.drawn not in TAKEN:
            raise InputError(
                f"a table was drawn as one of {', '.join(TAKEN)}",
                received=repr(self.drawn),
            )
        stated = {*self.model_dump(exclude_defaults=True)} - {"drawn"}
        needed = NEEDED & {*TAKEN[self.drawn]}
        by_level = isinstance(self.population, dict)
        fits = needed <= stated <= {*TAKEN[self.drawn]}
        if self.population is not None and by_level != (self.drawn == "stratified"):
            raise InputError(
                "population is a mapping from levels to people where strata were "
                "drawn, and one number otherwise",
                received=repr(self.population),
            )
        if not fits or (self.drawn == "stratified" and self.population is None):
            raise InputError(
                f"a sample that was drawn as {self.drawn} takes "
                f"{' and '.join(TAKEN[self.drawn]) or 'nothing else'}",
                received=", ".join(sorted(stated)) or "nothing else",
            )
        if self.drawn == "poisson":
            return Poisson()
        if self.drawn == "bernoulli":
            # A text is taken as written.
            return Bernoulli(rate=self.rate)  # type: ignore[arg-type]
        if isinstance(self.population, dict):
            return Stratified(self.column or "", self.population)
        if self.drawn == "weighted":
            return Weighted(
                self.column or "",
                tuple(self.weights or ()),
                trimmed=tuple(self.trimmed or ()),
                people=None if self.people is None else tuple(self.people),
            )
        return Simple(self.population, replacement=self.replacement)

    def check(self, axis: Axis, kind: str) -> None:
        """Refuse strata that are no levels of their column, and weights of others.

        Parameters
        ----------
        axis : Axis
            The cells of the attribute that `column` names.
        kind : str
            What its values are.

        Raises
        ------
        ValueError
            If a level has no people, or a cell no weight; the message names them.
        """
        if kind == "words":
            raise ValueError(f"{axis.name!r} holds words, which nobody listed")
        if self.drawn == "weighted":
            if len(self.weights or ()) != axis.regular:
                raise ValueError(
                    f"there is one weight for each of the {axis.regular} cells of "
                    f"{axis.name!r}; received {len(self.weights or ())}"
                )
            return
        if axis.levels is None:
            raise ValueError(
                f"strata are the levels of a category; {axis.name!r} is a {kind}"
            )
        levels = [str(level) for level in axis.levels[: axis.regular]]
        stated = [*self.population] if isinstance(self.population, dict) else []
        if {*stated} != {*levels} or len({*levels}) < len(levels):
            raise ValueError(
                f"every level of {axis.name!r} is a stratum with its people: "
                f"{', '.join(levels)}; received {', '.join(stated)}"
            )
