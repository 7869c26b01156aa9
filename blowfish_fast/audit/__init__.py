"""Audits: every promise checked by running it."""

from __future__ import annotations

from .confidence import Evidence, clopper_pearson, strongest_evidence
from .enumeration import audit_least_cost, least_cost_choices
from .families import policy_families
from .measurements import Price, audit_measurements, edge_cost
from .selections import Finding, audit_partition, audit_release

__all__ = [
    "Evidence",
    "Finding",
    "Price",
    "audit_least_cost",
    "audit_measurements",
    "audit_partition",
    "audit_release",
    "clopper_pearson",
    "edge_cost",
    "least_cost_choices",
    "policy_families",
    "strongest_evidence",
]
