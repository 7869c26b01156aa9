"""Names in the prose lead to their entry, and paths to their page.

    `bf.recommend`  `Cells.worst_edge`       the entry in the reference
    `docs/proofs/dawa.md`                    the page
    `blowfish_fast/measure/handle.py`                the source, as the site shows it
    `Mechanism` in a docstring               the entry, wherever it is
    ## <a id="x"></a>Title                   a heading that [links](#x) find

A short name leads somewhere only if exactly one entry ends in it, or one is a policy;
anything else stays plain code. Pages are written for people who read them as files
too, so they hold ordinary backticks and no roles.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

ROOT = "blowfish_fast"
NAME = re.compile(rf"(?:bf\.|{ROOT}\.)?([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?")
PAGE = re.compile(r"docs/([\w/]+)\.md")
SOURCE = re.compile(r"(blowfish_fast/[\w/]+)\.py")
ANCHOR = re.compile(r'^(#+) <a id="([\w-]+)"></a>', re.MULTILINE)
# Words of every day, which are also names somewhere.
PLAIN = {"epsilon", "policy", "domain", "counts", "noisy", "estimate", "name", "cells"}


def entry_of(text: str, endings: dict[str, set[str]]) -> str | None:
    """Return the full name of the one entry that a name can mean."""
    match = NAME.fullmatch(text)
    if not match or match[1] in PLAIN:
        return None
    found = endings.get(match[1], set())
    if (exact := f"{ROOT}.{match[1]}") in found:
        return exact
    # `Attribute` is the policy, which pages speak of, rather than the explorer's.
    found = {name for name in found if name == f"{ROOT}.policies.{match[1]}"} or found
    # One word in small letters is rather an argument than a method.
    if "." not in match[1] and match[1].islower():
        found = {name for name in found if name.rsplit(".", 2)[-2].islower()}
    return next(iter(found)) if len(found) == 1 else None


def endings_of(names: dict[str, str]) -> dict[str, set[str]]:
    """Return every ending of dotted names, with the entries that it can mean.

    `names` gives for each name its entry, which is another one for a class under the
    name of the module that defines it: its methods are found under that name too.
    """
    members: dict[str, list[str]] = {}
    for name in names:
        owner, _, member = name.rpartition(".")
        members.setdefault(owner, []).append(member)
    every = dict(names)
    for name, entry in names.items():
        if name != entry:
            for member in members.get(entry, []):
                every[f"{name}.{member}"] = f"{entry}.{member}"
    endings: dict[str, set[str]] = {}
    for name, entry in every.items():
        parts = name.split(".")
        for start in range(len(parts)):
            endings.setdefault(".".join(parts[start:]), set()).add(entry)
    return endings


def _objects(env: Any) -> dict[str, Any]:
    return dict(env.domains.python_domain.objects)


def _endings(app: Any) -> dict[str, set[str]]:
    if not hasattr(app, "_code_link_endings"):
        found = {name: one.node_id for name, one in _objects(app.env).items()}
        app._code_link_endings = endings_of(found)
    return app._code_link_endings


def _link(app: Any, doctree: Any, docname: str) -> None:
    endings = _endings(app)
    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext()
        # A word alone is a command, or an argument, as often as a function.
        is_word = text.isalpha() and text.islower()
        above = literal.parent
        while isinstance(above, nodes.inline):
            above = above.parent
        if is_word or isinstance(above, nodes.reference | nodes.title):
            continue
        page = PAGE.fullmatch(text)
        if page and page[1] in app.env.found_docs:
            target = app.builder.get_relative_uri(docname, page[1])
        elif (source := SOURCE.fullmatch(text)) and _is_shown(app, source[1]):
            target = app.builder.get_relative_uri(docname, f"_modules/{source[1]}")
        elif entry := entry_of(text, endings):
            place = _objects(app.env)[entry]
            target = app.builder.get_relative_uri(docname, place.docname)
            target += f"#{place.node_id}"
        else:
            continue
        link = nodes.reference("", "", internal=True, refuri=target)
        link["classes"].append("code-link")
        literal.replace_self(link)
        link += literal


def _is_shown(app: Any, path: str) -> bool:
    # The pages of `sphinx.ext.viewcode`: modules that define something entered.
    return bool(getattr(app.env, "_viewcode_modules", {}).get(path.replace("/", ".")))


def _anchor(app: Any, docname: str, content: list[str]) -> None:
    content[0] = ANCHOR.sub(r"(\2)=\n\1 ", content[0])


def _tidy(app: Any, doctree: Any) -> None:
    # Blocks that pytest runs end in a blank line, which needs no room on the page.
    for block in doctree.findall(nodes.literal_block):
        if len(block.children) == 1 and block.astext().endswith("\n"):
            block.rawsource = text = block.astext().rstrip("\n")
            block[:] = [nodes.Text(text)]
    # Sphinx would complain of a word, in a list of parameters, that several entries
    # end in; `_missing` takes the one that is meant, or none.
    for node in doctree.findall(addnodes.pending_xref):
        if node.get("refdomain") == "py":
            node.attributes.pop("refspecific", None)


def _missing(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    if node.get("refdomain") != "py":
        return None
    entry = entry_of(node["reftarget"], _endings(app))
    if entry is None:
        return None
    place = _objects(env)[entry]
    target = app.builder.get_relative_uri(node["refdoc"], place.docname)
    link = nodes.reference("", "", internal=True, refuri=f"{target}#{place.node_id}")
    link += contnode
    return link


def setup(app: Any) -> dict[str, bool]:
    """Register the listeners with Sphinx."""
    app.connect("source-read", _anchor)
    app.connect("doctree-read", _tidy)
    app.connect("doctree-resolved", _link)
    app.connect("missing-reference", _missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
