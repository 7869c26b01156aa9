"""Every command of ``blowfish``: each group registers its own when it is imported."""

from __future__ import annotations

from blowfish_fast.apps.cli.commands import (
    answering_group,
    budget_group,
    choosing_group,
    release_group,
    tools_group,
    trust_group,
)

from .main import application

__all__ = [
    "answering_group",
    "application",
    "budget_group",
    "choosing_group",
    "release_group",
    "tools_group",
    "trust_group",
]
