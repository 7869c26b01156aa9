"""The explorer: a curator's policies and budget in front of a real database.

Analysts ask with accuracy requirements until it is spent. Needs the extra ``sql``.
"""

from __future__ import annotations

from blowfish_fast._support.optional import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "answers_given": "Answer",
        "catalog": "AttributeSpec PolicySpec TableSpec",
        "engines": "Database",
        "exploration": "Explorer",
        "planning": "Plan",
        "questions": "read_question",
        "samples.population_answers": "population_answer",
    },
)
