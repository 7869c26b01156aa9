"""Learn a secret parity from a private histogram, bit by bit.

Records have some bits x and a label: the parity of those bits that a secret vector
selects, wrong now and then. A private release of all cells is still enough to learn the
vector, without ever seeing a record: rows are drawn from the released counts and added
modulo 2 until a single bit is left, whose label says whether the vector selects it.

    1 0 1 | 0        0 1 1 | 1        added: 1 1 0 | 1     labels add up, errors too

A label that is wrong with probability r is right after adding s of them with
probability 1/2 + (1 - 2r)^s / 2. With d - 1 bits, up to d - 1 rows are added: every
other bit takes one row to eliminate, and one row is left. (The appendix of the DPCube
paper counts one less, eliminates the wanted bit too, and reads the answer from that bit
in place of the label.) Many votes make up for the doubt in each.

Run it with ``python examples/parity_learning.py``.
"""

from __future__ import annotations

import numpy as np

import blowfish_fast as bf
from blowfish_fast.advice.usefulness import cells_error, parity_agreement

BITS = 6
RECORDS = 20_000
WRONG_LABELS = 0.05
EPSILON = 0.1
ROUNDS = 600
ROWS = 3 * BITS


def draw_records(secret: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the counts of all cells of records whose labels follow `secret`."""
    bits = rng.integers(0, 2, size=(RECORDS, BITS))
    labels = (bits @ secret + (rng.random(RECORDS) < WRONG_LABELS)) % 2
    cells = np.ravel_multi_index((*bits.T, labels), (2,) * (BITS + 1))
    return np.bincount(cells, minlength=2 ** (BITS + 1)).reshape((2,) * (BITS + 1))


def wrong_share(counts: np.ndarray, secret: np.ndarray) -> float:
    """Return the part of records whose label disagrees with `secret`."""
    cells = np.indices(counts.shape).reshape(BITS + 1, -1)
    wrong = (secret @ cells[:BITS] + cells[BITS]) % 2 == 1
    return float(counts.reshape(-1)[wrong].sum() / counts.sum())


def eliminate(rows: np.ndarray, wanted: int) -> list[tuple[int, int]]:
    """Add rows until only the bit `wanted` is left; return (label, rows added) pairs.

    Columns are the bits, the label, and which of the rows were added up.
    """
    rows = rows.copy()
    for bit in range(BITS):
        if bit == wanted:
            continue
        holding = np.flatnonzero(rows[:, bit])
        if holding.size == 0:
            continue
        pivot = rows[holding[0]]
        rows[holding[1:]] ^= pivot
        rows = np.delete(rows, holding[0], axis=0)
    left = rows[rows[:, wanted] == 1]
    return [(int(row[BITS]), int(row[BITS + 1 :].sum())) for row in left]


def learn(
    released: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
    """Return the learned vector and every vote: bit, label, rows added."""
    chances = np.maximum(released.reshape(-1), 0.0)
    chances /= chances.sum()
    votes = []
    for wanted in range(BITS):
        for _ in range(ROUNDS // BITS):
            cells = rng.choice(chances.size, size=ROWS, p=chances)
            drawn = np.stack(np.unravel_index(cells, released.shape), axis=1)
            rows = np.hstack([drawn, np.eye(ROWS, dtype=drawn.dtype)])
            for label, added in eliminate(rows, wanted)[:1]:
                votes.append((wanted, label, added))
    share = [
        np.mean([label for bit, label, _ in votes if bit == one]) for one in range(BITS)
    ]
    return (np.array(share) > 0.5).astype(np.int64), votes


def main() -> bool:
    """Release, learn, and hold the votes against the prediction."""
    rng = np.random.default_rng(10)
    secret = np.array([1, 0, 1, 1, 0, 1])
    counts = draw_records(secret, rng)
    domain = bf.Domain(counts.shape)
    mechanism = bf.KdTree(
        bf.policies.AddRemove(domain),
        bf.workloads.Identity(domain),
        epsilon=EPSILON,
        rule=None,
    )
    released = np.maximum(mechanism.release(counts, rng=1).estimate, 0.0)
    rate = wrong_share(released, secret)
    learned, votes = learn(released, rng)
    print(f"{domain.size} cells, {RECORDS:,} records, epsilon {EPSILON}")
    bound = cells_error(domain.size, epsilon=EPSILON, delta=0.05, discrete=True)
    print(f"all counts within {bound:,.0f} with probability 0.95 (Gamma law)")
    print(f"wrong labels: {wrong_share(counts, secret):.3f} before, {rate:.3f} after")
    print("rows added   votes   right   predicted")
    for added in sorted({one[2] for one in votes}):
        these = [(bit, label) for bit, label, rows in votes if rows == added]
        right = np.mean([secret[bit] == label for bit, label in these])
        predicted = parity_agreement(rate, added)
        print(f"{added:10d} {len(these):7d} {right:7.3f} {predicted:11.3f}")
    print(
        f"at most {BITS} rows: right with probability "
        f"{parity_agreement(rate, BITS):.3f} or more (the paper has "
        f"{parity_agreement(rate, BITS - 1):.3f})"
    )
    print(f"secret {secret}, learned {learned}")
    return bool((secret == learned).all())


if __name__ == "__main__":
    if not main():
        raise SystemExit("the secret was not learned")
