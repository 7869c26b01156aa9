"""How records were drawn from a population: the designs of ``release.sampled``.

``bf.sampling.Simple(population=48_842)`` and its neighbours are public statements about
a sample; what follows from them stands in the other files of this folder. ``rake``
makes published counts agree with known margins, ``round_weights`` puts weights into
public classes before they are counted.
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
from .raking import rake
from .weight_classes import round_weights

__all__ = [
    "Bernoulli",
    "Poisson",
    "SamplingDesign",
    "Simple",
    "Stratified",
    "Weighted",
    "rake",
    "round_weights",
]
__dir__ = sorted(__all__).copy
