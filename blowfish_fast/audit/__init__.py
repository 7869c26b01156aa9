"""Audits: every promise checked by running it."""

from __future__ import annotations

from .black_box import audit_noise, audit_release
from .choices import audit_selector
from .confidence import Evidence, Finding, clopper_pearson, strongest_evidence
from .grey_box import (
    Observed,
    Price,
    audit_measurements,
    edge_cost,
    observe_choice,
    observe_measurement,
)
from .invariants import Breach, audit_disclosure, audit_invariants
from .neighbours import policy_families
from .plan import LONG, QUICK, AuditPlan
from .report import Report, note_figures
from .verdicts import Verdict
from .walk import ProgressFile, audit_everything

__all__ = [
    "LONG",
    "QUICK",
    "AuditPlan",
    "Breach",
    "Evidence",
    "Finding",
    "Observed",
    "Price",
    "ProgressFile",
    "Report",
    "Verdict",
    "audit_disclosure",
    "audit_everything",
    "audit_invariants",
    "audit_measurements",
    "audit_noise",
    "audit_release",
    "audit_selector",
    "clopper_pearson",
    "edge_cost",
    "note_figures",
    "observe_choice",
    "observe_measurement",
    "policy_families",
    "strongest_evidence",
]


def __dir__() -> list[str]:
    return sorted(__all__)
