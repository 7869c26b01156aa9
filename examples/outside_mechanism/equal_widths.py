"""A mechanism outside the package: equal buckets; compared with DAWA when run."""

from functools import partial

import numpy as np

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, stepped


class EqualWidths(Mechanism):
    """Release a histogram by equal buckets, each spread evenly over its cells."""

    name = "equal_widths"
    example_case = Example(partial(stepped, steps=4, height=20), cells=True)

    def __init__(self, policy, workload, *, buckets=32, **budget):
        super().__init__(policy, workload, **budget)
        self.buckets = buckets

    def _run(self, private):
        private.refuse_dry_run("what even buckets lose depends on the data")
        edges = np.linspace(0, self.domain.size, self.buckets + 1).astype(np.int64)
        along = private.coarsened(Buckets(np.unique(edges)))
        noisy = along.measure(Cells.under(along.policy), budget=private.remaining)
        return Outcome.of(noisy)


if __name__ == "__main__":
    line = bf.Domain(256)
    policy, ranges = bf.policies.AddRemove(line), bf.workloads.AllRanges(line)
    table = bf.recommend(
        policy, ranges, epsilon=0.1, records=5000, mechanisms=[EqualWidths, "dawa"]
    )
    print(table)
