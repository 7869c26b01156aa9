"""Errors of nested districts on a made-up country, by what is said to matter.

python examples/nested_districts.py [blocks]      (30,000 unless told)

51 states, counties, tracts, groups and blocks whose families are large and small
(lognormal); 35 % of the blocks are empty. Standard errors by level at epsilon 1, known
before anything is paid, and the CPU seconds of a release.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise

import numpy as np

import blowfish_fast as bf

LEVELS = ["nation", "state", "county", "tract", "group", "block"]
WANTED = {
    "all levels alike": dict.fromkeys(LEVELS, 1.0),
    "tracts and above": dict.fromkeys(LEVELS, 1.0) | {"group": 0.02, "block": 0.02},
    "blocks and counties": {"block": 1.0, "county": 1.0},
}


def country(
    blocks: int, rng: np.random.Generator
) -> tuple[bf.Nesting, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return made-up districts, and how many people live in each block.

    Parameters
    ----------
    blocks : int
        How many blocks.
    rng : numpy.random.Generator
        Makes it up.

    Returns
    -------
    nest : Nesting
        The districts.
    counts : ndarray of int64, shape (blocks,)
        People by block.
    """
    shares = (330, 13, 4)
    sizes = [1, 51, *(max(60, blocks // share) for share in shares), blocks]
    parents = [np.array([-1])]
    first = 0
    for above, many in pairwise(sizes):
        # Every district has at least one part; the rest falls on large and small ones.
        weights = rng.lognormal(0, 0.9, above)
        extra = rng.multinomial(many - above, weights / weights.sum())
        parents.append(np.repeat(np.arange(above) + first, extra + 1))
        first += above
    people = rng.lognormal(3.2, 1.1, blocks)
    counts = np.where(rng.random(blocks) < 0.35, 0, people).astype(np.int64)
    return bf.Nesting.of_parents(np.concatenate(parents), names=LEVELS), counts


def main(blocks: int = 30_000) -> None:
    """Print a line of errors for each statement of what matters."""
    nest, counts = country(blocks, np.random.default_rng(1))
    print(nest)
    policies = {
        "AddRemove": bf.policies.AddRemove(nest.domain),
        "Blocks by county": bf.policies.Blocks(nest.domain, nest.labels("county")),
    }
    print(f"| policy | what matters | {' | '.join(LEVELS)} | release, CPU s |")
    print("|---" * (len(LEVELS) + 3) + "|")
    for policy_name, policy in policies.items():
        for what, importance in WANTED.items():
            mechanism = bf.Nested(policy, nest.workload(**importance), epsilon=1)
            errors = mechanism.errors_by_level()
            mechanism.release(counts)
            begin = time.process_time()
            mechanism.release(counts)
            spent = time.process_time() - begin
            cells = " | ".join(f"{errors[level]:.2f}" for level in LEVELS)
            print(f"| {policy_name} | {what} | {cells} | {spent:.2f} |", flush=True)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
