"""Tables on a page of HTML."""

from __future__ import annotations

from html import escape

from blowfish_fast.apps.cli.printing import as_texts, plural, reads_as_number
from blowfish_fast.data.frames import Table


def numbers_html(table: Table, label: str, most: int) -> str:
    """Return the first lines of a table, and how many more there are.

    Parameters
    ----------
    table : Table
        The numbers.
    label : str
        What a reader of the page is told that it is.
    most : int
        How many lines are shown.

    Returns
    -------
    str
        HTML.
    """
    names, rows = as_texts(table.columns, most)
    more = len(table) - len(rows)
    rest = f"\n<p>And {plural(more, 'more cell')}, in the release.</p>"
    return table_html(names, rows, label) + (rest if more > 0 else "")


def table_html(names: list[str], rows: list[list[str]], label: str) -> str:
    """Return a table of texts.

    Parameters
    ----------
    names : list of str
        The heads of its columns.
    rows : list of lists of str
        Its lines.
    label : str
        What a reader of the page is told that it is.

    Returns
    -------
    str
        HTML.
    """
    kinds = [
        "number" if all(reads_as_number(row[at]) for row in rows) else "text"
        for at in range(len(names))
    ]

    def line(tag: str, texts: list[str]) -> str:
        cells = [
            f'<{tag} class="{kind}">{escape(text)}</{tag[:2]}>'
            for text, kind in zip(texts, kinds, strict=True)
        ]
        return f"<tr>{''.join(cells)}</tr>"

    head = line('th scope="col"', names)
    body = "\n".join(line("td", row) for row in rows)
    return (
        f'<div class="wide" role="group" aria-label="{escape(label)}" tabindex="0">'
        f'<table aria-label="{escape(label)}">\n<thead>{head}</thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )
