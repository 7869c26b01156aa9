"""What is certified of tables that a model answers: how many records they misplace."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from blowfish_fast.errors import ReleaseFileError
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.tails import one_sided_margin

NAMES = {"tables", "noisy", "rates", "unit", "power", "parts", "rounding"}
"""What a release's file holds of the measurement behind a certificate."""


class TablesCertificate(NamedTuple):
    """Bounds on how far a model's tables are off the truth, false with 1 - confidence.

    Attributes
    ----------
    confidence : float
        Both bounds hold together with this probability, over the noise that was drawn.
    worst : float
        Records that lie in a wrong cell of any one table, at most: half the sum of
        absolute differences between the model's table and the true one.
    mean : float
        The same, mean over the tables.
    records : float
        The model's number of records, which bounds are shares of.
    tables : int
        How many tables the certificate is about.
    """

    confidence: float
    worst: float
    mean: float
    records: float
    tables: int

    @property
    def worst_share(self) -> float:
        """The bound for any one table, as a share of the model's records."""
        return self.worst / self.records

    @property
    def mean_share(self) -> float:
        """The bound for the mean over tables, as a share of the model's records."""
        return self.mean / self.records

    def __str__(self) -> str:
        return (
            f"Of {self.records:,.0f} records at most {self.mean:,.0f} "
            f"({self.mean_share:.2%}) are in a wrong cell of a table, in the mean over "
            f"{self.tables:,} tables, and at most {self.worst:,.0f} "
            f"({self.worst_share:.2%}) in any of them. This is false with a "
            f"probability of at most {1.0 - self.confidence:.3g}; it is about fitted "
            "tables, and not about made-up records"
        )

    @classmethod
    def read(cls, data: Any, records: float, confidence: float) -> Self:
        """Return what the measurement of a release says at some confidence.

        Parameters
        ----------
        data : dict
            The noisy distances, the law of their noise, and what rounding may add.
        records : float
            The model's number of records.
        confidence : float
            Between 0 and 1.

        Returns
        -------
        TablesCertificate
            Both bounds; a union bound makes them hold together.
        """
        largest, mean = certified_distances(data, confidence)
        return cls(
            confidence,
            max(largest, 0.0) / 2.0,
            max(mean, 0.0) / 2.0,
            max(records, 1.0),
            len(data["tables"]),
        )


def certified_distances(data: Any, confidence: float) -> tuple[float, float]:
    """Return upper bounds on the largest and the mean distance, in records.

    Parameters
    ----------
    data : dict
        As for `TablesCertificate.read`.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    tuple of float
        Each is exceeded with at most half of the probability that is left.
    """
    scales = Scales(
        np.array(data["rates"], dtype=np.int64),
        int(data["unit"]),
        np.zeros(2, dtype=bool),
        int(data["power"]),
    )
    margin = one_sided_margin(scales, (1.0 - confidence) / 2.0)
    noisy, rounding = np.array(data["noisy"]), np.array(data["rounding"])
    # The mean was rounded down: one part more.
    bounds = (noisy + margin + [0, 1]) / int(data["parts"]) + rounding
    # A mean exceeds no maximum, and both bounds hold together.
    return float(bounds[0]), float(bounds.min())


def check_certificate(data: Any) -> None:
    """Refuse what a file holds in place of a certificate.

    Raises
    ------
    ReleaseFileError
        If a part is missing, or holds impossible numbers.
    """
    whole = isinstance(data, dict) and set(data) == NAMES
    if not whole or any(len(data[name]) != 2 for name in ("noisy", "rates")):
        raise ReleaseFileError("the certificate of the tables lacks a part")
    if min(data["rates"]) < 1 or min(data["unit"], data["parts"]) < 1:
        raise ReleaseFileError("the certificate of the tables has impossible scales")
    if len(data["rounding"]) != 2 or data["power"] not in (1, 2) or not data["tables"]:
        raise ReleaseFileError("the certificate of the tables has impossible numbers")
