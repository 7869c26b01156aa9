"""Audits: every promise checked by running it."""

from __future__ import annotations

from .black_box import audit_noise, audit_release
from .choices import audit_selector
from .grey_box import audit_measurements, edge_cost
from .invariants import audit_invariants
from .neighbours import policy_families
from .plan import LONG, QUICK, AuditPlan
from .report import Report
from .subjects import Subject, SubjectReport, audit_subject
from .verdicts import Verdict
from .walk import audit_everything

__all__ = [
    "LONG",
    "QUICK",
    "AuditPlan",
    "Report",
    "Subject",
    "SubjectReport",
    "Verdict",
    "audit_everything",
    "audit_invariants",
    "audit_measurements",
    "audit_noise",
    "audit_release",
    "audit_selector",
    "audit_subject",
    "edge_cost",
    "policy_families",
]
__dir__ = sorted(__all__).copy
