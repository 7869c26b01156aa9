"""``blowfish policy``: what a policy promises, in words and as a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blowfish_fast.apps.cli.files.picture_files import write_picture
from blowfish_fast.apps.cli.parsing.words import parsed_domain, parsed_policy
from blowfish_fast.apps.cli.printing import counted, show, show_pairs, waiting
from blowfish_fast.errors import SizeError
from blowfish_fast.policies import Policy

LONGEST_JSON = 400
"""Characters of the JSON form that are shown to people."""


def run_describe(cells: Sequence[str], words: str, *, as_json: bool) -> None:
    """Say what stays indistinguishable, and how the graph is made."""
    policy = parsed_policy(words, parsed_domain(cells))
    with waiting("counting edges"):
        facts = policy_facts(policy)
    if as_json:
        show(facts)
        return
    text = json.dumps(facts["policy"])
    if len(text) > LONGEST_JSON:
        text = f"{len(text):,} characters; --json prints them"
    show_pairs(
        repr(policy),
        [
            ("promise", facts["promise"]),
            ("neighbours", f"two databases where {facts['neighbours']}"),
            ("cells", f"{facts['cells']:,}"),
            ("edges", _edges(facts["edges"])),
            ("at a cell", f"at most {_edges(facts['largest_degree'])}"),
            ("components", _components(facts)),
            ("as JSON", text),
        ],
    )


def run_draw(cells: Sequence[str], words: str, out: Path, *, as_json: bool) -> None:
    """Draw the graph, or a summary of a large one."""
    from blowfish_fast.plotting import policy_graph

    policy = parsed_policy(words, parsed_domain(cells))
    with waiting("drawing"):
        picture = write_picture(lambda: policy_graph(policy), out)
    if as_json:
        show({**policy_facts(policy), "picture": picture})
        return
    show(f"{policy.describe()}.")
    show(f"written: {picture}")


def policy_facts(policy: Policy) -> dict[str, Any]:
    """Return everything there is to say; None where it would take too long."""
    return {
        "promise": policy.describe(),
        "neighbours": policy.neighbours,
        "cells": policy.domain.size,
        "edges": _or_none(lambda: policy.edge_count),
        "largest_degree": _or_none(lambda: policy.max_degree),
        "components": _or_none(lambda: policy.components().count),
        "public_counts": _or_none(lambda: int((~policy.components().private).sum())),
        "presence_is_secret": policy.has_bottom,
        "policy": policy.to_dict(),
    }


def _or_none(count: Any) -> int | None:
    try:
        return int(count())
    except SizeError:
        return None


def _edges(number: int | None) -> str:
    return "too many to count" if number is None else counted(number, "edge")


def _components(facts: dict[str, Any]) -> str:
    if facts["components"] is None:
        return "too many to count"
    many = facts["components"]
    public = facts["public_counts"]
    parts = "1, all cells are connected" if many == 1 else f"{many:,}"
    if not public:
        return f"{parts}; no count is public"
    if many == 1:
        return f"{parts}; the number of people is public"
    where = "each" if public == many else f"{public:,} of them"
    return f"{parts}; the number of people in {where} is public"
