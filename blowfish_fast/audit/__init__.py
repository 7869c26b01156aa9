"""Audits: every promise checked by running it."""

from __future__ import annotations

from blowfish_fast.audit.choices.search import audit_selector
from blowfish_fast.audit.neighbours.families import policy_families
from blowfish_fast.audit.random_pairs import (
    Observed,
    observe_choice,
    observe_measurement,
)
from blowfish_fast.audit.sampling.confidence import (
    Evidence,
    clopper_pearson,
    strongest_evidence,
)
from blowfish_fast.audit.sampling.noise_batches import audit_noise
from blowfish_fast.audit.sampling.selections import (
    Finding,
    audit_release,
)

from .invariants import Breach, audit_disclosure, audit_invariants
from .measurements import Price, audit_measurements, edge_cost
from .plan import LONG, QUICK, AuditPlan
from .progress_file import ProgressFile
from .report import Report, note_figures
from .verdicts import Verdict
from .walk import audit_everything

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
