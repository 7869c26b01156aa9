"""Every mechanism by name: the command line, audits and benchmarks walk this table."""

from __future__ import annotations

from blowfish_fast import mechanisms

from .base import Mechanism
from .contingency import Contingency
from .gaussian import Gaussian

TABLE_MECHANISMS: dict[str, type[Mechanism]] = {Contingency.name: Contingency}
"""Mechanisms of many tables: who wants one histogram does not walk them."""

RHO_MECHANISMS: dict[str, type[Mechanism]] = {Gaussian.name: Gaussian}
"""Mechanisms that take no epsilon alone; all others take either currency."""

MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (getattr(mechanisms, name) for name in mechanisms.__all__)
    if issubclass(kind, Mechanism) and kind not in (Mechanism, Contingency, Gaussian)
}
