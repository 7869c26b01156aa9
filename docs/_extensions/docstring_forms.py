"""Docstrings as Sphinx wants them, where they read better otherwise in the source.

    Guarantee: epsilon-Blowfish ...       a list of six labels     (Notes of mechanisms)
    [1]_, section 4                       plain marks, and a numbered list below
    docs/proofs/dawa.md                   a link to that page
    |x|                                   bars, not a substitution
    IntArray in a signature               that name, not what numpy makes of it

The listener runs before napoleon, which turns numpydoc sections into fields.
"""

from __future__ import annotations

import re
from typing import Any

LABELS = "Guarantee|Neighbours|Sensitivity|Error|Complexity|Source"
LABEL = re.compile(rf"({LABELS}): (.*)")
MARK = re.compile(r"\[(\d+)\]_")
FOOTNOTE = re.compile(r"^( *)\.\. \[(\d+)\]")
ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
# What numpy makes of the names of arrays inside other types, and Sphinx of modules.
ARRAY = re.compile(r"ndarray\[(?:tuple\[Any, \.\.\.\]|Any), dtype\[(\w+)\]\]")
MODULE = re.compile(r"~(?:\w+\.)+(?=\w)|\b(?:numpy|typing)\.(?=\w)")
ARRAYS = {
    "float64": "FloatArray",
    "int64": "IntArray",
    "int8": "ByteArray",
    "uint64": "WordArray",
    "bool": "BoolArray",
    "bool_": "BoolArray",
}
QUOTED = re.compile(r"(``.*?``|`.*?`)")
BARS = re.compile(r"\|(?=\S)([^|]*)\|")
PAGE = re.compile(r"``docs/([\w/]+)\.md``")


def rewritten(lines: list[str]) -> list[str]:
    """Return the lines of a docstring, ready for napoleon."""
    out: list[str] = []
    in_example = in_label = False
    for line in lines:
        in_example = bool(line.strip()) and (
            in_example or line.lstrip().startswith(">>>")
        )
        label = LABEL.match(line)
        if in_example:
            out.append(line)
        elif label:
            out += [f"**{label[1]}**", f"    {_marked(label[2])}"]
        else:
            # Lines below a label belong to it, indented or not.
            flush = in_label and bool(line) and not line.startswith(" ")
            out.append(_marked(f"    {line}" if flush else line))
        in_label = bool(label) or (in_label and bool(line))
    return out


def _marked(line: str) -> str:
    # A numbered list keeps the indentation that the lines of a footnote have.
    line = FOOTNOTE.sub(r"\1\2.", MARK.sub(r"[\1]", line))
    parts = QUOTED.split(line)
    parts[::2] = [BARS.sub(r"\\|\1\\|", part) for part in parts[::2]]
    line = "".join(parts)
    return PAGE.sub(r":doc:`/\1`", line)


def _rewrite(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = rewritten(lines)
    if what in ("property", "attribute", "data"):
        # Napoleon takes words before a colon in the first line for a type; here they
        # are a sentence, so an empty comment goes before it.
        lines[:0] = ["..", ""]


def _sign(
    app: Any, what: str, name: str, obj: Any, options: Any, sign: str, returns: str
) -> tuple[str | None, str | None]:
    # A model that validates itself: its fields are listed below, in plainer words.
    if sign and "Annotated[" in sign:
        return "(**fields)", returns
    return sign and readable(sign), returns and readable(returns)


def readable(sign: str) -> str:
    """Return a signature with the short names that its source uses."""
    # Sphinx leaves its own wrapper around an alias that is part of a union.
    sign = MODULE.sub("", ALIAS.sub(r"\1", sign)).replace("<factory>", "...")
    return ARRAY.sub(lambda found: ARRAYS.get(found[1], found[0]), sign)


def _skip(
    app: Any, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    # Fields of named tuples are listed by the class; their own text says nothing.
    if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number"):
        return True
    return None


def setup(app: Any) -> dict[str, bool]:
    """Register the listeners with Sphinx."""
    app.connect("autodoc-process-docstring", _rewrite, priority=400)
    app.connect("autodoc-process-signature", _sign)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
