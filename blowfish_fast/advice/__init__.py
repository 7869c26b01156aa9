"""Advice: which mechanism, which epsilon, how accurate, how risky."""

from __future__ import annotations

from blowfish_fast._support.optional import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "accuracy": "translate",
        "comparison": "compare",
        "posterior_belief": "largest_epsilon risk",
        "recommendation": "recommend",
        "table_accuracy": "translate_tables",
        "usefulness": "",
    },
)
