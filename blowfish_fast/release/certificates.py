"""Certificates: statements about how far the answers of a release are off the truth.

    kind       the statement                                          whose intervals
    quantile   a fraction of exactly these answers is within X        these answers
    curve      the same, for workloads of which a record moves few    these answers
    all        every range, or rectangle, is within X                 any of them
    shape      no bucket is off even by more than K~ and noise        any range, each

Neither of the first two promises anything of a single answer.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import ReleaseFileError
from blowfish_fast.measure.noise import Scales, Spread, laplace_variance
from blowfish_fast.measure.strategies.error_statistics import PARTS
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.workloads import Identity, Ranges, Rectangles, Workload
from blowfish_fast.workloads.base import Fractions

from .file import Release, read_archive, read_scales, write_archive
from .guarantee import Guarantee

Kind = Literal["quantile", "curve", "all", "shape"]
KINDS: tuple[Kind, ...] = ("quantile", "curve", "all", "shape")
MEMBER = "certificate.json"


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Release):
    """What was found out about the errors of one release; ``str()`` says it.

    The proof is in ``docs/proofs/certificates.md``.

    Attributes
    ----------
    kind : {"quantile", "curve", "all", "shape"}
        What is claimed; see the head of ``release.certificates``.
    fraction, confidence : Fraction
        How many of the answers the claim is about, and how surely it is true.
    rows : tuple of dict
        For each class of answers: how many `queries`, and by how much more than
        their noise they may be off (`extra`, infinite where nothing can be claimed).
    guarantee : Guarantee
        What the certificate cost, and what that promises.
    release, workload : str
        Digests of the release and of the workload that the certificate is about. The
        second is empty where the claim is about every range.
    queries : int
        How many answers were checked; 0 where the claim is about every range.
    half : ndarray of int64, shape (queries,)
        Half-widths of the noise of each query, in sixteenths of a record; 0 where the
        claim does not use them.
    labels : ndarray of int64, shape (queries,)
        To which of `rows` each query belongs.
    edges : ndarray of int64, shape (buckets + 1,)
        Kind "shape": the buckets whose shapes were measured, as borders of cells.
    shapes : ndarray of int64, shape (buckets,)
        Kind "shape": the noisy shape of each bucket, in records.
    scales : Scales
        The noise of what was measured.
    version : str, default ""
        The version of the package that made the certificate.
    details : mapping
        Further public facts, such as the version of the data that was checked.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> cells, policy = bf.workloads.Identity(line), bf.policies.AddRemove(line)
    >>> counts = [0] * 30 + [40] * 4 + [0] * 30
    >>> ledger = bf.Ledger(epsilon=2, policy=policy)
    >>> release = ledger.release(bf.Dawa(policy, cells, epsilon=1), counts, rng=1)
    >>> found = ledger.certify(release, counts, cells, epsilon=1, rng=2)
    >>> release = release.certified(found)
    >>> release.intervals(cells, of="truth").shape, found.kind
    ((64, 2), 'quantile')
    >>> print(found)
    At least 95 % of these 64 answers lie within their intervals (+- ...) of the
    true counts. This statement is wrong with a probability of at most 5 %. The
    truth is that of the data handed over, as of ... It cost eps = 1. An
    experiment that protects nobody: its noise was seeded.
    """

    kind: Kind
    fraction: Fraction
    confidence: Fraction
    rows: tuple[Mapping[str, Any], ...]
    guarantee: Guarantee
    release: str
    workload: str
    queries: int
    half: IntArray
    labels: IntArray
    edges: IntArray
    shapes: IntArray
    scales: Scales
    version: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    mechanism: str = field(default="certifier", init=False)

    @property
    def extra(self) -> float:
        """By how much more than their noise answers may be off, at most."""
        return max((float(row["extra"]) for row in self.rows), default=0.0)

    @property
    def per_query(self) -> bool:
        """Whether something is promised of each single answer."""
        every = self.fraction * self.queries > self.queries - 1
        return self.kind in ("all", "shape") or (self.kind == "quantile" and every)

    def covers(self, workload: Workload) -> bool:
        """Return whether the claim is about these queries, or all of their kind."""
        if self.kind in ("quantile", "curve"):
            return (
                workload.queries == self.queries
                and workload_digest(workload) == self.workload
            )
        return whole_boxes(workload) is not None

    def half_widths(self, workload: Workload) -> FloatArray:
        """Return how far published answers may lie off: all kinds but "shape"."""
        if self.kind == "all":
            return np.full(workload.queries, self.extra)
        extra = np.array([float(row["extra"]) for row in self.rows])
        return np.asarray(np.maximum(self.half / PARTS + extra[self.labels], 0.0))

    def joint_half_widths(
        self, workload: Workload, spread: Spread, miss: float
    ) -> FloatArray:
        """Return how far linear answers to ranges may lie off, by the buckets they cut.

        The draws of shapes and answers are bounded together, which is narrower.

        Parameters
        ----------
        workload : Workload
            Ranges of whole cells.
        spread : Spread
            The law of the noise in the answers.
        miss : float
            The probability that an answer lies farther off.

        Returns
        -------
        ndarray of float64, shape (queries,)
            The half-widths.
        """
        ends = whole_boxes(workload)
        assert ends is not None
        low, high = (side.reshape(-1) for side in ends)
        top = self.edges.size - 2
        first, last = (
            np.clip(np.searchsorted(self.edges, side, side="right") - 1, 0, top)
            for side in (low, high)
        )
        cut = (self.edges[first] != low) * 1
        end = (self.edges[last] != high) & (high < self.edges[-1])
        same = (first == last) & (cut > 0) & end
        shape_bound = self.shapes[first] * cut + self.shapes[last] * end
        both = spread_with(spread, np.where(same, 4, cut + end), self.scales)
        return np.asarray(np.maximum(shape_bound + noise_half_widths(both, miss), 0.0))

    def __str__(self) -> str:
        paid = f"It cost {self.guarantee.spent}."
        if not self.private:
            paid += " An experiment that protects nobody: its noise was seeded."
        label = self.details.get("as_of")
        of = "" if label is None else f", as of {label}"
        counted = self.guarantee.counted_records()
        about = f"The truth is that{counted or ' of the data handed over'}{of}."
        return f"{self._claim()} {about} {paid}"

    def _claim(self) -> str:
        miss = f"{float(100 * (1 - self.confidence)):g} %"
        wrong = f"This statement is wrong with a probability of at most {miss}."
        if self.kind == "shape":
            return (
                "Each interval of a range that was chosen without looking at the "
                "release holds the true count with probability at least "
                f"{float(self.confidence):.15g}."
            )
        if not math.isfinite(self.extra):
            return (
                "Nothing can be claimed: the answers are too few, or off by too much."
            )
        if self.kind == "all":
            box = "range" if self.rows[0]["axes"] == 1 else "rectangle"
            return f"Every {box} lies within {self.extra:g} of its true count. {wrong}"
        part = "All" if self.per_query else f"At least {float(100 * self.fraction):g} %"
        if "answers" in self.details:
            about = f"All of these {self.details['answers']:,} intervals hold the true"
            return f"{about} answers. {wrong}"
        sign = "-" if self.extra < 0 else "+"
        room = f"noise {sign} {abs(self.extra):g}"
        if not self.half.any():
            room = f"+- {self.extra:g}"
        about = f"these {self.queries:,} answers"
        if len(self.rows) > 1:
            about = f"the answers of each of {len(self.rows)} classes of {about}"
            room = "noise and the extra of their class"
        return (
            f"{part} of {about} lie within their intervals ({room}) of the true "
            f"counts. {wrong}"
        )

    def __repr__(self) -> str:
        return f"Certificate({self.kind}, extra {self.extra:g}, {self.guarantee.spent})"

    def pack(self) -> dict[str, Any]:
        """Return plain data and arrays, for the file of a release."""
        plain = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.init
        }
        for name in ("fraction", "confidence"):
            plain[name] = str(plain[name])
        plain["guarantee"] = self.guarantee.to_dict()
        plain["scales"] = {**self.scales._asdict(), "unit": str(self.scales.unit)}
        return plain

    @classmethod
    def unpack(cls, plain: dict[str, Any]) -> Self:
        """Rebuild from `pack`; refuse what does not fit together."""
        fields_by_name = dict(plain)
        for name in ("fraction", "confidence"):
            fields_by_name[name] = Fraction(fields_by_name[name])
        fields_by_name["guarantee"] = Guarantee.from_dict(fields_by_name["guarantee"])
        fields_by_name["rows"] = tuple(fields_by_name["rows"])
        fields_by_name["scales"] = read_scales(fields_by_name["scales"])
        for name in ("half", "labels", "edges", "shapes"):
            fields_by_name[name] = np.asarray(fields_by_name[name], dtype=np.int64)
        certificate = cls(**fields_by_name)
        asked = certificate.queries if certificate.kind in ("quantile", "curve") else 0
        fits = certificate.half.shape == certificate.labels.shape == (asked,)
        fits &= certificate.shapes.size == max(certificate.edges.size - 1, 0)
        is_row = (certificate.labels >= 0) & (
            certificate.labels < len(certificate.rows)
        )
        if certificate.kind not in KINDS or not (fits and is_row.all()):
            raise ReleaseFileError("a certificate does not fit together")
        return certificate

    def to_bytes(self) -> bytes:
        """Return the certificate as the bytes of a file of its own."""
        return write_archive(MEMBER, {"format": 1, "certificate": self.pack()})

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read a certificate from `to_bytes`."""
        return read_archive(
            content, MEMBER, lambda members: cls.unpack(members["certificate"])
        )


def spread_with(spread: Spread, squares: IntArray, scales: Scales) -> Spread:
    """Return the law of answers and shapes together.

    Parameters
    ----------
    spread : Spread
        The law of the noise in the answers.
    squares : ndarray of int64, shape (queries,)
        Sums 1 for each bucket that is cut, 4 for one cut at both ends.
    scales : Scales
        The noise of the shapes.

    Returns
    -------
    Spread
        The joint law.
    """
    width = float(scales.widths.max(initial=0.0))
    variance = float(laplace_variance(width)) if width and scales.power == 1 else 0.0
    each = np.where(squares == 4, 2.0, (squares > 0) * 1.0) * width
    return Spread(
        spread.variance + squares * (variance or width**2),
        spread.square + squares * width**2,
        np.maximum(spread.largest, each),
        spread.steps + squares,
        np.where(squares > 0, np.nan, spread.width),
        min(spread.least or width, width or spread.least),
        spread.gaussian_rows + (2 if scales.power == 2 else 0),
    )


def whole_boxes(workload: Workload) -> tuple[IntArray, IntArray] | None:
    """Return both ends of queries that are all boxes of whole cells, or None."""
    domain = workload.domain
    if domain.ndim <= 2 and isinstance(workload, Rectangles) and workload.whole_cells:
        return workload.starts.astype(np.int64), workload.ends.astype(np.int64)
    if domain.ndim == 2 and isinstance(workload, Identity):
        lows = np.stack(np.unravel_index(np.arange(domain.size), domain.shape), axis=-1)
        return lows, lows + 1
    if domain.ndim != 1:
        return None
    form = workload.explicit_form(Buckets.single_cells(domain.size))
    if not isinstance(form, Fractions):
        return None
    alone = form.first == form.last
    whole = (form.first_fraction == 1.0) & (alone | (form.last_fraction == 1.0))
    return (form.first, form.last + 1) if whole.all() else None


def workload_digest(workload: Workload) -> str:
    """Return a digest of the queries as they stand over single cells."""
    if workload.domain.ndim == 1 and isinstance(workload, Rectangles):
        # The same ranges have the same digest, whoever asked for them.
        ends = whole_boxes(workload)
        if ends is not None:
            workload = Ranges(workload.domain, *(corners[:, 0] for corners in ends))
    form = workload.explicit_form(Buckets.single_cells(workload.domain.size))
    total = hashlib.sha256(json.dumps(workload.domain.to_dict()).encode())
    for array in form:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def release_digest(estimate: FloatArray, guarantee: Guarantee) -> str:
    """Return a digest of what a release says and promises.

    Parameters
    ----------
    estimate : ndarray of float64
        The estimated cells.
    guarantee : Guarantee
        The promise.

    Returns
    -------
    str
        The digest, in hexadecimal.
    """
    total = hashlib.sha256(json.dumps(guarantee.to_dict(), sort_keys=True).encode())
    total.update(np.ascontiguousarray(estimate).tobytes())
    return total.hexdigest()
