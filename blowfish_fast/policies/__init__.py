"""Policies: which values must stay indistinguishable."""

from __future__ import annotations

from typing import Any

from ..domain import Domain
from ..errors import PolicyError
from .add_remove import AddRemove
from .base import ABSENT, Components, Policy
from .full import Full

POLICIES: dict[str, type[Policy]] = {
    policy.kind: policy for policy in (AddRemove, Full)
}


def from_dict(data: dict[str, Any]) -> Policy:
    """Rebuild a policy from ``Policy.to_dict``."""
    kind = data.get("kind")
    if kind not in POLICIES:
        raise PolicyError(
            f"there is no policy of kind {kind!r}; known kinds: {sorted(POLICIES)}"
        )
    return POLICIES[kind]._from_parameters(Domain.from_dict(data["domain"]), data)


__all__ = [
    "ABSENT",
    "POLICIES",
    "AddRemove",
    "Components",
    "Full",
    "Policy",
    "from_dict",
]
