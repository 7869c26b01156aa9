r"""A kd-tree built from the private quantiles of one cumulative release.

People live in districts along a road and have an income. Districts are public, incomes
are not: nobody may learn which of two neighbouring incomes a person has. Laid out
district by district, the table is one line of cells, and the policy joins neighbouring
incomes inside each district:

    district 0            district 1            ...
    o-o-o-...-o-o         o-o-o-...-o-o             incomes, joined one to the next

So the number of people of a district is public, and one `Ordered` release gives every
quantile of every district. The index splits districts at the median person, then
incomes at private medians, until its leaves hold about the same number of people:

                 districts 0 .. 15
               /                   \
       districts 0 .. 6         districts 7 .. 15         top levels: by district
           ...                    /        \
                          incomes < 412    incomes >= 412  below: by income

Run it with ``python examples/quantile_index.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import blowfish_fast as bf

DISTRICTS = 16
INCOMES = 1024
PEOPLE = 40_000
EPSILON = 0.2
INCOME_LEVELS = 4


@dataclass
class Node:
    """A rectangle of districts and incomes, split in two or a leaf."""

    districts: range
    incomes: range
    below: tuple[Node, Node] | None = None

    def leaf_of(self, district: int, income: int) -> Node:
        """Return the leaf that holds a person."""
        node = self
        while node.below is not None:
            left, right = node.below
            inside = district in left.districts and income in left.incomes
            node = left if inside else right
        return node

    def leaves(self) -> list[Node]:
        """Return all leaves from left to right."""
        if self.below is None:
            return [self]
        return [leaf for node in self.below for leaf in node.leaves()]


def policy_over(line: bf.Domain) -> bf.policies.Policy:
    """Join neighbouring incomes of one district."""
    cells = np.arange(line.size).reshape(DISTRICTS, INCOMES)
    return bf.policies.Graph(
        line, np.stack([cells[:, :-1], cells[:, 1:]], axis=-1).reshape(-1, 2)
    )


def build(release: bf.Release) -> Node:
    """Build the index; it reads the release only, so it costs no privacy."""
    ends = np.append(0.0, release.cdf()[INCOMES - 1 :: INCOMES])

    def by_district(districts: range) -> Node:
        node = Node(districts, range(INCOMES))
        first, past = districts.start, districts.stop
        if len(districts) == 1:
            return by_income(node, INCOME_LEVELS, ends[first], ends[past])
        split = int(np.searchsorted(ends, 0.5 * (ends[first] + ends[past])))
        split = min(max(split, first + 1), past - 1)
        node.below = (by_district(range(first, split)), by_district(range(split, past)))
        return node

    def by_income(node: Node, levels: int, before: float, upto: float) -> Node:
        low, high = node.incomes.start, node.incomes.stop
        if levels == 0 or high - low == 1:
            return node
        # The part of all people at which half of this node's are passed.
        middle = 0.5 * (before + upto)
        cell = int(release.quantile(middle)) % INCOMES
        split = min(max(cell + 1, low + 1), high - 1)
        left = Node(node.districts, range(low, split))
        right = Node(node.districts, range(split, high))
        node.below = (
            by_income(left, levels - 1, before, middle),
            by_income(right, levels - 1, middle, upto),
        )
        return node

    return by_district(range(DISTRICTS))


def occupancy(index: Node, table: np.ndarray) -> np.ndarray:
    """Return what leaves of populous districts truly hold, over their even share."""
    held = []
    for leaf in index.leaves():
        (district,) = leaf.districts
        share = table[district].sum() / 2**INCOME_LEVELS
        if share > 100:
            incomes = slice(leaf.incomes.start, leaf.incomes.stop)
            held.append(table[district, incomes].sum() / share)
    return np.array(held)


def main() -> dict[str, float]:
    """Build the index under two policies and say how even its leaves are."""
    rng = np.random.default_rng(7)
    district = rng.binomial(DISTRICTS - 1, 0.4, PEOPLE)
    income = np.minimum(rng.lognormal(5.5, 0.6, PEOPLE), INCOMES - 1).astype(int)
    line = bf.Domain(DISTRICTS * INCOMES)
    counts = np.bincount(district * INCOMES + income, minlength=line.size)
    table = counts.reshape(DISTRICTS, INCOMES)
    asked = bf.workloads.Prefixes(line)
    results = {}
    for name, mechanism in (
        (
            "neighbouring incomes are secret",
            bf.Ordered(policy_over(line), asked, epsilon=EPSILON),
        ),
        (
            "income and district are secret",
            bf.mechanisms.OrderedHierarchical(
                bf.policies.Full(line), asked, epsilon=EPSILON, fit="isotonic"
            ),
        ),
    ):
        release = mechanism.release(counts, rng=1)
        index = build(release)
        even = occupancy(index, table)
        low, high = release.quantile_intervals(0.5)
        leaf = index.leaf_of(6, 300)
        results[name] = float(np.abs(even - 1).mean())
        print(
            f"{name} ({mechanism.name}): {len(index.leaves())} leaves, off their even "
            f"share by {results[name]:.1%} on average, {np.abs(even - 1).max():.0%} at "
            f"most\n  the median person is in district {low // INCOMES}, income "
            f"{low % INCOMES} .. district {high // INCOMES}, income {high % INCOMES} "
            f"(holds the truth, 95 %)\n  district 6, income 300: the leaf of incomes "
            f"{leaf.incomes.start} to {leaf.incomes.stop - 1}"
        )
    return results


if __name__ == "__main__":
    main()
