"""Adapters: mechanisms in the clothes of OpenDP, scikit-learn, DPBench and ektelo."""

from __future__ import annotations

from .estimator import NotFittedError, RepeatedFitWarning
from .other_libraries import Engine, OpenDPMeasurement, as_measurement, as_opendp
from .private_estimators import PrivateHistogram, PrivateKMeans

__all__ = [
    "Engine",
    "NotFittedError",
    "OpenDPMeasurement",
    "PrivateHistogram",
    "PrivateKMeans",
    "RepeatedFitWarning",
    "as_measurement",
    "as_opendp",
]
__dir__ = sorted(__all__).copy
