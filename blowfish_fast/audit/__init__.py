"""Audits: every promise checked by running it."""

from __future__ import annotations

from .choices import audit_selector
from .confidence import Evidence, clopper_pearson, strongest_evidence
from .enumeration import audit_least_cost, least_cost_choices
from .families import policy_families
from .invariants import Breach, audit_disclosure, audit_invariants
from .measurements import Price, audit_measurements, edge_cost
from .noise_batches import audit_noise
from .plan import LONG, QUICK, Plan
from .progress_file import ProgressFile
from .random_pairs import Observed, observe_choice, observe_measurement
from .report import Report
from .selections import Finding, audit_partition, audit_release
from .trust_table import figures_table, note_figures
from .verdicts import Verdict
from .walk import audit_everything

__all__ = [
    "LONG",
    "QUICK",
    "Breach",
    "Evidence",
    "Finding",
    "Observed",
    "Plan",
    "Price",
    "ProgressFile",
    "Report",
    "Verdict",
    "audit_disclosure",
    "audit_everything",
    "audit_invariants",
    "audit_least_cost",
    "audit_measurements",
    "audit_noise",
    "audit_partition",
    "audit_release",
    "audit_selector",
    "clopper_pearson",
    "edge_cost",
    "figures_table",
    "least_cost_choices",
    "note_figures",
    "observe_choice",
    "observe_measurement",
    "policy_families",
    "strongest_evidence",
]


def __dir__() -> list[str]:
    return sorted(__all__)
