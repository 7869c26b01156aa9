"""Public sums undo plain noise; the policy that knows about them resists.

A table has one attribute with many values, and it is public how many records have
value 1 or 2, how many have 2 or 3, and so on. None of these sums gives away a count,
but each noisy count now estimates all the others:

    c_1 = c_1        = a_1 - c_2     = a_1 - a_2 + c_3     = ...

An attacker who averages these estimates removes the noise. Under a policy that states
the sums as constraints, the noise grows with the number of records that they tie
together, and the average stays as uncertain as eps says.

Run it with ``python examples/averaging_attack.py``.
"""

from __future__ import annotations

import numpy as np

import blowfish_fast as bf
from blowfish_fast.errors import PolicyError

VALUES = 256
EPSILON = 0.5
TRIALS = 200


def attack(noisy: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return all counts, reconstructed from noisy ones and the public sums."""
    # c_i = offset_i + sign_i * c_1, with the offsets known from the sums.
    offsets = np.zeros(noisy.size)
    for place, total in enumerate(sums):
        offsets[place + 1] = total - offsets[place]
    signs = np.where(np.arange(noisy.size) % 2 == 0, 1.0, -1.0)
    first = np.mean(signs * (noisy - offsets))
    return offsets + signs * first


def try_out(name: str, policy: bf.policies.Policy, counts: np.ndarray) -> float:
    """Attack releases under `policy`, print what comes out, return the success rate."""
    sums = counts[:-1] + counts[1:]
    mechanism = bf.Laplace(
        policy, bf.workloads.Identity(policy.domain), epsilon=EPSILON
    )
    errors = np.empty(TRIALS)
    for trial in range(TRIALS):
        estimate = mechanism.release(counts, rng=trial).estimate
        errors[trial] = attack(estimate, sums)[0] - counts[0]
    exactly_right = float(np.mean(np.abs(errors) < 0.5))
    print(
        f"{name:28s} error of the averaged count: variance {errors.var():9.3f}   "
        f"whole table recovered in {exactly_right:4.0%} of {TRIALS} releases"
    )
    return exactly_right


def main() -> dict[str, float]:
    """Run the attack against plain noise and against the constrained policy."""
    domain = bf.Domain(VALUES)
    counts = np.random.default_rng(32).poisson(40, VALUES)
    pairs = [np.isin(np.arange(VALUES), (i, i + 1)) for i in range(VALUES - 1)]
    known = bf.policies.CountConstraints(domain, pairs)

    plain = bf.policies.AddRemove(domain)
    print(f"{VALUES} counts, eps = {EPSILON}; theory for plain noise of scale 1/eps:")
    print(f"variance 2 / (k eps^2) = {2 / (VALUES * EPSILON**2):.4f}\n")
    try:
        plain.with_constraints(known)
    except PolicyError as refusal:
        print(f"Refused, as it should be: {refusal}.\n")
    line = bf.policies.Line(domain)
    guarded = line.with_constraints(known)
    results = {
        "plain": try_out("plain noise (add, remove)", plain, counts),
        "line": try_out("plain noise (line)", line, counts),
        "constrained": try_out("line with constraints", guarded, counts),
    }
    print(
        f"\nThe sums tie up to {guarded.group_size} records together, so the "
        f"constrained policy draws its noise at eps / {guarded.group_size}."
    )
    return results


if __name__ == "__main__":
    main()
