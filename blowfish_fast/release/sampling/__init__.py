"""How records were drawn from a population: the designs of ``release.sampled``.

``bf.sampling.Simple(population=48_842)`` and its neighbours are public statements about
a sample; what follows from them stands in the other files of this folder.
"""

from __future__ import annotations

from .designs import (
    Bernoulli,
    Poisson,
    SamplingDesign,
    Simple,
    Stratified,
    Weighted,
)

__all__ = [
    "Bernoulli",
    "Poisson",
    "SamplingDesign",
    "Simple",
    "Stratified",
    "Weighted",
]
__dir__ = sorted(__all__).copy
