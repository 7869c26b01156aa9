"""``blowfish policy``: what a policy promises, in words and as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import blowfish_fast as bf
from blowfish_fast.apps.cli.options import Cells, Json, Overwrite, PolicyWords
from blowfish_fast.apps.cli.printing import plural, show, show_pairs, spinner
from blowfish_fast.errors import SizeError

LONGEST_JSON = 400
UNCOUNTED = "too many to count"

policy = typer.Typer(
    help="Say or draw what a policy keeps indistinguishable.",
    no_args_is_help=True,
    add_completion=False,
)


@policy.command()
def describe(cells: Cells, words: PolicyWords, as_json: Json = False) -> None:
    """Say what a policy promises, and how its graph is made."""
    stated = _stated_policy(cells, words)
    with spinner("counting edges"):
        facts = policy_facts(stated)
    if as_json:
        show(facts)
        return
    text, edges = json.dumps(facts["policy"]), facts["edges"]
    if len(text) > LONGEST_JSON:
        text = f"{len(text):,} characters; --json prints them"
    show_pairs(
        repr(stated),
        [
            ("promise", facts["promise"]),
            ("neighbours", f"two databases where {facts['neighbours']}"),
            ("cells", f"{facts['cells']:,}"),
            ("edges", UNCOUNTED if edges is None else plural(edges, "edge")),
            ("components", _components(facts)),
            ("as JSON", text),
        ],
    )


@policy.command("draw")
def draw_policy(
    cells: Cells,
    words: PolicyWords,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The picture: .png, .svg or .pdf.")
    ] = Path("policy.png"),
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw the graph of a policy; a large one is summarised."""
    from blowfish_fast.apps.cli.files.outputs import check_file, write_picture

    stated = _stated_policy(cells, words)
    check_file("picture", out, overwrite=overwrite)
    with spinner("drawing"):
        picture = write_picture(lambda: bf.plotting.policy_graph(stated), out)
    if as_json:
        show({**policy_facts(stated), "picture": picture})
        return
    show(f"{stated.describe()}.")
    show(f"written: {picture}")


def _stated_policy(cells: list[str], words: str) -> bf.policies.Policy:
    from blowfish_fast.apps.cli.parsing.domain import parse_domain
    from blowfish_fast.apps.cli.parsing.policy import parse_policy

    return parse_policy(words, parse_domain(cells))


def policy_facts(policy: bf.policies.Policy) -> dict[str, Any]:
    """Return everything there is to say; None where it would take too long."""
    return {
        "promise": policy.describe(),
        "neighbours": policy.neighbours,
        "cells": policy.domain.size,
        "edges": _or_none(lambda: policy.edge_count),
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


def _components(facts: dict[str, Any]) -> str:
    many, public = facts["components"], facts["public_counts"]
    if many is None:
        return UNCOUNTED
    parts = "1, all cells are connected" if many == 1 else f"{many:,}"
    if not public:
        return f"{parts}; no count is public"
    if many == 1:
        return f"{parts}; the number of people is public"
    where = "each" if public == many else f"{public:,} of them"
    return f"{parts}; the number of people in {where} is public"
