"""One small policy of every family, for audits that walk the registry."""

from __future__ import annotations

import numpy as np

from blowfish_fast import policies
from blowfish_fast.data.domain import Domain
from blowfish_fast.policies import Policy


def policy_families(domain: Domain) -> dict[str, Policy]:
    """Return policies of every built-in family that fit a small `domain`.

    Examples
    --------
    >>> sorted(policy_families(Domain(4)))[:4]
    ['add_remove', 'blocks', 'constrained', 'full']
    """
    cells = domain.size
    ring = np.column_stack([np.arange(cells), (np.arange(cells) + 1) % cells])
    found: dict[str, Policy] = {
        "add_remove": policies.AddRemove(domain),
        "full": policies.Full(domain),
        "blocks": policies.Blocks(domain, np.arange(cells) // 3),
    }
    if cells > 2:
        found["graph"] = policies.Graph(domain, ring)
        leaving = np.column_stack([np.arange(0, cells, 2), np.full(-(-cells // 2), -1)])
        found["graph_absent"] = policies.Graph(domain, np.concatenate([ring, leaving]))
        found["threshold_absent"] = _threshold_with_absent(domain)
    if cells > 3:
        half = (np.arange(cells) < cells // 2).reshape(domain.shape)
        known = policies.CountConstraints(domain, [half])
        found["constrained"] = policies.Full(domain).with_constraints(known)
    if domain.ndim == 1:
        found["line"] = policies.Line(domain)
        found["threshold"] = policies.Threshold(domain, theta=min(3, max(cells - 1, 1)))
    else:
        found["attribute"] = policies.Attribute(domain)
        found["threshold_l1"] = policies.Threshold(domain, theta=1, metric="l1")
        found["threshold_linf"] = policies.Threshold(domain, theta=1, metric="linf")
        if domain == Domain(domain.shape):
            lines = [policies.Line(Domain(size)) for size in domain.shape]
            found["product"] = policies.Product(*lines)
    return found


def _threshold_with_absent(domain: Domain) -> Policy:
    """Join cells that lie near each other, and every cell to "absent"."""
    near = policies.Threshold(domain, theta=2 if domain.ndim == 1 else 1, metric="l1")
    leaving = [[cell, policies.ABSENT] for cell in range(domain.size)]
    return policies.Graph(domain, np.concatenate([*near.edges(), leaving]))
