"""Executed notebooks as pages, shown as they are and never run again.

    docs/notebooks/salaries.md     <!-- notebook examples/notebooks/salaries.ipynb -->
                                   # Salaries

                                   [the notebook](../../examples/...)

                                   <!-- end of notebook -->
                                   <!-- picture: a rising line, dashed at its end -->

What stands between the first line and the end is for whoever reads the checkout, where
nothing is filled in. It is replaced by the cells: prose as it is, code as a block,
outputs below it (pictures and tables embedded, so that a page is one file). The others
say, picture by picture, what is to be seen, for readers who do not see it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

REQUEST = re.compile(
    r"^<!-- notebook ([\w/.]+\.ipynb) -->$.*?^<!-- end of notebook -->$",
    re.MULTILINE | re.DOTALL,
)
PICTURE = re.compile(r"^<!-- picture: (.+?) -->$", re.MULTILINE)
ROOT = Path(__file__).parent.parent.parent
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def page_of(notebook: dict[str, Any], pictures: Sequence[str] = ()) -> str:
    """Return the cells of a notebook as Markdown; `pictures` are told in words."""
    words = iter(pictures)
    parts: list[str] = []
    for cell in notebook["cells"]:
        source = _text(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source.strip():
            parts.append(f"````python\n{source}\n````")
            parts += [_output(one, words) for one in _joined(cell.get("outputs", []))]
    return "\n\n".join(part for part in parts if part)


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # One print after the other is one text, however the kernel sent them.
    joined: list[dict[str, Any]] = []
    for one in outputs:
        if one["output_type"] == "stream" and joined and "text" in joined[-1]:
            before = _text(joined[-1]["text"])
            joined[-1] = {**one, "text": before + _text(one["text"])}
        else:
            joined.append(one)
    return joined


def _output(output: dict[str, Any], pictures: Iterator[str]) -> str:
    if output["output_type"] == "stream":
        return _plain(_text(output["text"]))
    if output["output_type"] == "error":
        return _plain("\n".join(output["traceback"]))
    data = output.get("data", {})
    if "image/svg+xml" in data:
        return _raw(f'<div class="output">{_text(data["image/svg+xml"])}</div>')
    if "image/png" in data:
        words = escape(next(pictures, "picture"), quote=True)
        code = _text(data["image/png"]).replace("\n", "")
        picture = f'<img alt="{words}" src="data:image/png;base64,{code}">'
        return _raw(f'<div class="output">{picture}</div>')
    if "text/html" in data:
        return _raw(f'<div class="output">{_text(data["text/html"])}</div>')
    return _plain(_text(data.get("text/plain", "")))


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _plain(text: str) -> str:
    text = COLOUR.sub("", text).rstrip()
    return f"````{{code-block}} text\n:class: output\n\n{text}\n````" if text else ""


def _raw(html: str) -> str:
    return f"`````{{raw}} html\n{html}\n`````"


def _read(app: Any, docname: str, content: list[str]) -> None:
    def cells(asked: re.Match[str]) -> str:
        path = ROOT / asked[1]
        app.env.note_dependency(str(path))
        return page_of(json.loads(path.read_text()), PICTURE.findall(content[0]))

    page = REQUEST.sub(cells, content[0])
    content[0] = PICTURE.sub("", page) if page != content[0] else page


def setup(app: Any) -> dict[str, bool]:
    """Register the listener with Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
