"""P-HP: buckets by private bisection, then noise on each bucket.

Pieces: partition ``partitions.bisection`` with costs from ``kernels.bisection_costs``,
strategy ``strategies.cells``.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, Unpack

from blowfish_fast._support.validation import as_share
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.partitions import Bisection
from blowfish_fast.measure.strategies.counted_buckets import bucket_counts, mean_noise
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, stepped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

STOP_SHARE = Fraction(1, 4)
"""Part of the partition's epsilon that decides how many cuts are kept."""

PRICE = 1.75
"""Cost of a bucket in mean sizes of its noise.

The paper's are a half and 1; on the benchmark data fewer and larger buckets served
better.
"""


class Php(Mechanism):
    """Release ranges by private hierarchical bisection into buckets (P-HP).

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`. The workload changes nothing; one ordered attribute.
    levels : int, optional
        Levels of bisections; None for the binary logarithm of the number of cells.
    share : number in (0, 1), optional
        Part of epsilon spent on the buckets; by default 3/10, which served better on
        the benchmark data than the paper's half.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the buckets and their counts share epsilon
        (sequential composition, the second step on the quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: the cost of a bisection moves by at most 2 when a record is added or
        removed (a move counts as both); bucket counts as in `Laplace`.
    Error: the noise of each bucket, known once the buckets are, plus the deviation of
        the cells from their bucket's mean, which depends on the data.
    Complexity: O(n log^2 n) time, O(n) memory.
    Source: [1]_, section 5; proof in ``docs/proofs/php.md``.

    References
    ----------
    .. [1] G. Acs, C. Castelluccia, R. Chen. Differentially private histogram
       publishing through lossy compression. ICDM 2012.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> php = bf.mechanisms.Php(bf.policies.AddRemove(line), ranges, epsilon=2)
    >>> release = php.release([5] * 32 + [90] * 32, rng=1)
    >>> int(release.details["edges"][-1])
    64
    """

    name = "php"
    cell_bytes = 128
    example_case = Example(partial(stepped, steps=2, height=9))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        levels: int | None = None,
        share: Any = None,
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        self._require_one_attribute("bisects")
        self.partition = Bisection(levels, share=STOP_SHARE)
        self.share = as_share(share, "share", self.partition.default_share)

    def _run(self, private: Handle) -> Outcome:
        share = self.share * self.budget
        price = PRICE * mean_noise(self.policy, self.budget - share)
        buckets = private.select(self.partition.priced(price), budget=share)
        measurement = bucket_counts(private, buckets)
        details = {"edges": buckets.edges, "buckets": buckets.count}
        return Outcome.of(measurement, details)
