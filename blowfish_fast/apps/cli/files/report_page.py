"""One HTML page about a release, for whoever has to decide about its publication.

    what was released, what is promised       as `blowfish explain` says it
    picture                                   drawn into the page
    table                                     the first cells, with their intervals
    how to cite it

The page is one file without scripts and without addresses to load from.
"""

from __future__ import annotations

import hashlib
import io
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from blowfish_fast.apps.cli.explanations import Section, explain_release
from blowfish_fast.apps.cli.printing import column_texts, plain
from blowfish_fast.data.frames import Table
from blowfish_fast.release.recipe_names import recipe_name
from blowfish_fast.release.release import Release
from blowfish_fast.release.tables.tables_release import TablesRelease

from .written_files import release_axes, write_picture

MOST_ROWS = 50
"""Lines of a table on the page."""
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; line-height: 1.2 } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; margin: .5rem 0 }
th, td { padding: .15rem .8rem .15rem 0; text-align: left;
  border-bottom: 1px solid #bbb }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
.warning { border-left: 4px solid #b00020; padding-left: .8rem }
figure { margin: 1rem 0 } svg { max-width: 100%; max-height: 26rem }
@media print { body { margin: 0 } h2 { break-after: avoid } }
"""


def write_report(
    release: Release, path: Path, confidence: float, *, name: str, table: Table | None
) -> None:
    """Write the page of a release, which it calls by `name`.

    `table` has a line per cell, and is None where there are many tables; `confidence`
    is that of the intervals in the picture.
    """
    _, sections = explain_release(release, name)
    title = f"Counts by {' and '.join(release.domain.column_names)}"
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(str(release.guarantee))}</p>"]
    if not release.private:
        parts.append(
            '<p class="warning">An experiment: its noise was seeded, and it protects '
            "nobody. Do not publish it as a private release.</p>"
        )
    parts.append(_figure(release, confidence, title))
    parts += [_section(one) for one in sections]
    if table is not None:
        parts.append(_numbers(table))
    parts.append(_section(_citation(release, title, name)))
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
    page = f"{head}<main>\n{chr(10).join(parts)}\n</main>\n</body>\n</html>\n"
    path.write_text(page, encoding="utf-8")


def _figure(release: Release, confidence: float, title: str) -> str:
    """Return the picture as part of the page; nothing where none can be drawn."""
    drawn = release.domain.ndim <= 2 or isinstance(release, TablesRelease)
    if not drawn or find_spec("matplotlib") is None:
        return ""
    stream = io.BytesIO()
    write_picture(lambda: release_axes(release, confidence), stream)
    svg = stream.getvalue().decode("utf-8")
    svg = svg[svg.index("<svg") :].replace(
        "<svg ", f'<svg role="img" aria-label="{escape(title)}, drawn" ', 1
    )
    return f"<figure>{svg}</figure>"


def _section(section: Section) -> str:
    lines = [f"<h2>{escape(section.heading)}</h2>"]
    lines += [f"<p>{escape(one)}</p>" for one in section.sentences]
    if section.rows:
        names, *rows = section.rows
        lines.append(_table(list(names), [list(row) for row in rows], section.heading))
    return "\n".join(lines)


def _numbers(table: Table) -> str:
    """Return the first lines of a table of cells."""
    names = [name.replace("_", " ") for name in table]
    texts = [column_texts(plain(one[:MOST_ROWS])) for one in table.columns.values()]
    rows = [list(row) for row in zip(*texts, strict=True)]
    more = len(table) - len(rows)
    rest = f"<p>And {more:,} more cells, in the release.</p>" if more > 0 else ""
    heading = "The numbers"
    return f"<h2>{heading}</h2>\n{_table(names, rows, heading)}\n{rest}"


def _table(names: list[str], rows: list[list[str]], label: str) -> str:
    kinds = [
        "number" if all(_is_figure(row[at]) for row in rows) else "text"
        for at in range(len(names))
    ]
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(name)}</th>'
        for name, kind in zip(names, kinds, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}">{escape(one)}</td>'
            for one, kind in zip(row, kinds, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<table aria-label="{escape(label)}">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>"
    )


def _is_figure(text: str) -> bool:
    return not text or text[0] in "-.0123456789"


def _citation(release: Release, title: str, name: str) -> Section:
    digest = hashlib.sha256(release.to_bytes()).hexdigest()
    shown: list[Any] = [
        f"{title}. Released by {recipe_name(release)} at {release.guarantee.spent} "
        f"with blowfish_fast {release.version}; file {Path(name).name}, SHA-256 "
        f"{digest}.",
        "State the promise above with every number that is taken from here, and the "
        "interval beside it.",
    ]
    return Section("How to cite it", shown)
