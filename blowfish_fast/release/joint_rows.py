"""Queries with whole coefficients that stand for answers: what a certificate is about.

A mean is a sum over a count, and a median a list of running totals. Each such answer
has several rows, and an interval of it comes from intervals of all its rows:

    mean of group 0     counts of 0    least sums of 0    largest sums of 0
    mean of group 1     counts of 1    ...

Proved in docs/proofs/certificates.md, Lemma CE7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.workloads import Workload

from .certificates import Certificate
from .quantiles import SelectedQuantiles
from .query_grid import GridAnswers, SparseRows, product_rows

BITS = 12
"""Coefficients of a row are whole numbers up to two to this power."""


Parts = dict[GridAnswers, FloatArray]


class JointRows(SparseRows):
    """Whole-numbered rows; `owners` gives the answer that each is a part of.

    A row of counts has coefficients of `unit`.
    """

    unit = 2 ** (BITS - 1)

    def __init__(self, domain: Domain, matrix: Any, owners: IntArray) -> None:
        super().__init__(domain, matrix)
        self.owners = owners


class JointParts(NamedTuple):
    """The linear answers that others are made of, group by group, and their release."""

    release: Any
    answers: Sequence[GridAnswers | SelectedQuantiles]
    groups: int

    @property
    def parts(self) -> list[GridAnswers]:
        """The linear answers, in the order in which their rows are listed."""
        return [part for one in self.answers for part in one.parts()]

    def asked(self) -> Workload:
        """Return what is certified: the counts themselves, or rows of all parts."""
        from scipy import sparse

        parts = self.parts
        first = parts[0]
        if len(parts) == 1 and first.ends is None and first.owners is None:
            return first.workload
        chosen, owners = [], []
        for part in parts:
            at, whose = self._owners(part)
            for rows, sign in _signed(part):
                chosen.append(whole_rows(rows, sign)[0][at])
                owners.append(whose)
        together = np.concatenate(owners)
        return JointRows(first.grid.domain, sparse.vstack(chosen), together)

    def held(self, confidence: float) -> tuple[Certificate, Parts] | None:
        """Return the certificate that knows these answers, and intervals of the parts.

        One of every range or rectangle knows all counts of boxes at once.
        """
        if not getattr(self.release, "certificates", ()):
            return None
        asked = self.asked()
        found = self.release._certificate_for(asked, confidence)
        if found is None:
            return self._boxes(confidence)
        bounds = self.release.intervals(asked, confidence, of="truth")
        if not isinstance(asked, JointRows):
            return found, dict.fromkeys(self.parts, bounds)
        held, start = {}, 0
        for part in self.parts:
            ends, (at, whose) = [], self._owners(part)
            for rows, sign in _signed(part):
                mine = bounds[start : start + whose.size]
                start += whose.size
                each = np.empty((rows.shape[0], 2))
                each[at] = mine / whole_rows(rows, sign)[1][at, None]
                ends.append(each)
            held[part] = np.stack([ends[0][:, 0], ends[-1][:, 1]], axis=-1)
        return found, held

    def _boxes(self, confidence: float) -> tuple[Certificate, Parts] | None:
        parts = self.parts
        asked = [one.workload for one in parts if one.boxes and one.ends is None]
        for one in self.release.certificates:
            known = one.kind == "all" and float(one.confidence) == confidence
            if known and len(asked) == len(parts) and all(map(one.covers, asked)):
                near = (self.release._answers(each).reshape(-1, 1) for each in asked)
                off = one.extra * np.array([-1.0, 1.0])
                bounds = [np.maximum(each + off, 0.0) for each in near]
                return one, dict(zip(parts, bounds, strict=True))
        return None

    def _owners(self, part: GridAnswers) -> tuple[IntArray, IntArray]:
        """Return rows of a part, and the group that each belongs to."""
        if part.owners is not None:
            return np.arange(part.owners.size), part.owners
        groups = np.arange(self.groups)
        # One row may stand for all groups, as the whole does that parts are taken of.
        single = part.queries < self.groups
        return (np.zeros_like(groups) if single else groups), groups


def whole_rows(rows: Any, sign: int) -> tuple[Any, FloatArray]:
    """Return rows times a power of two each, rounded down (sign -1) or up; the powers.

    Counts are never negative, so that answers of the new rows lie below, or above.
    """
    peaks = np.asarray(abs(rows).max(axis=1).toarray()).reshape(-1)
    sizes = np.maximum(np.frexp(peaks)[1], -1000)
    powers = np.where(peaks > 0.0, np.ldexp(1.0, BITS - sizes), 1.0)
    whole = rows.copy()
    scaled = whole.data * np.repeat(powers, np.diff(whole.indptr))
    whole.data = np.floor(scaled) if sign < 0 else np.ceil(scaled)
    return whole, powers


def _signed(part: GridAnswers) -> list[tuple[Any, int]]:
    """Return the rows of a part: of counts once, else those below and above."""
    if part.ends is None:
        return [(product_rows(part.rows), 1)]
    below, above = part.ends
    return [(below.matrix, -1), (above.matrix, 1)]
