"""Strata of a sample: how many people each has, and how many of them were drawn.

    stratum     people N    drawn n    a record stands for
    north       12,000      400        30 people
    south       36,842      600        61.4 people

Both numbers are public: the first by the design, the second by the policy, under which
nobody moves from one stratum to another. Lemmas PN7 and PN15.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError, IntervalError
from blowfish_fast.release.query_grid import SparseRows

from .sampled_release import Sampled


class Strata(NamedTuple):
    """Strata of a sample: what a record of each cell stands for, and the sizes.

    Attributes
    ----------
    labels : ndarray of int64, shape (cells,)
        The stratum of each cell.
    people : ndarray of float64, shape (strata,)
        How many people each has.
    drawn : ndarray of float64, shape (strata,)
        How many of them were drawn.
    """

    labels: IntArray
    people: FloatArray
    drawn: FloatArray

    @property
    def weights(self) -> FloatArray:
        """What a record of each cell stands for."""
        each: FloatArray = self.people / np.maximum(self.drawn, 1.0)
        return each[self.labels]

    @property
    def unknown(self) -> BoolArray:
        """Strata of which a single record was drawn, and others were not."""
        return np.asarray((self.drawn == 1.0) & (self.people > 1.0))

    @property
    def variances(self) -> FloatArray:
        """What the square of a record's value, from its stratum's mean, varies by."""
        return self.squares_count[self.labels]

    @property
    def squares_count(self) -> FloatArray:
        """The same of each stratum, by the sample's own variance: Lemma PN15.

        The sum of squares from the sample's mean is n - 1 times what is expected of
        n; of a single record it says nothing, and 0 stands here.
        """
        left = (self.people - self.drawn) / self.people
        freed = self.drawn / np.maximum(self.drawn - 1.0, 1.0)
        each = (self.people / np.maximum(self.drawn, 1.0)) ** 2
        return np.where(self.drawn > 1.0, each * left * freed, 0.0)


def strata_of(source: Sampled) -> Strata:
    """Return the strata; refuse those whose sizes in the sample are not public.

    Raises `IntervalError` where sizes carry noise, `InputError` where a stratum has
    more records than people.
    """
    from scipy import sparse

    design, domain = source.design, source.release.domain
    labels, levels = source.classes
    ones = np.ones(domain.size)
    shape = (len(levels) + source.classes.some_have_none, domain.size)
    rows = sparse.csr_array((ones, (labels, np.arange(domain.size))), shape=shape)
    drawn, _, public = source.sizes(SparseRows(domain, rows), source.miss)
    if not public:
        raise IntervalError(
            "sizes of strata in the sample must be public, and carry noise here",
            way_out=f"Release under a policy that holds {design.attribute}: "
            "bf.policies.Blocks with a block for each stratum",
        )
    people = np.array([float(design.population[level]) for level in levels])
    if source.classes.some_have_none:
        # Records of no stratum stand for themselves, as if all of them were drawn.
        people = np.append(people, max(drawn[-1], 1.0))
    if (drawn > people).any():
        raise InputError(
            "more records were drawn of a stratum than it has people",
            way_out="State the population that they were drawn from",
        )
    return Strata(labels, people, drawn)
