"""The explorer: policies and budgets in front of a real database.

A curator describes a table and chooses policies and a budget; analysts ask questions
with accuracy requirements until the budget is spent. Needs the extra ``sql``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers_given import Answer
    from .attributes import AttributeSpec, PolicySpec
    from .catalog import Catalog, TableSpec
    from .engines import Engine
    from .exploration import Explorer, Plan
    from .questions import read_question

_HOMES = {
    "Answer": "answers_given",
    "AttributeSpec": "attributes",
    "Catalog": "catalog",
    "Engine": "engines",
    "Explorer": "exploration",
    "Plan": "exploration",
    "PolicySpec": "attributes",
    "TableSpec": "catalog",
    "read_question": "questions",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "Answer",
    "AttributeSpec",
    "Catalog",
    "Engine",
    "Explorer",
    "Plan",
    "PolicySpec",
    "TableSpec",
    "read_question",
]
