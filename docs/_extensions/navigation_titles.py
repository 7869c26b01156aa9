"""The navigation of every page, made from titles alone.

The theme asks, for each page of the site, for the tree of all pages by their titles.
Sphinx copies the headings and entries of every page for that, thousands of nodes, and
then leaves out all but titles. What is left out on every page is left out once, here:

    contents of a page    title -> part, part -> entry, ...     pages below it
    what is copied        title ->                              pages below it

The tree is the same to the byte (``tests/test_docs.py``). All trees together took 45 of
the 135 CPU seconds of the site, and take 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docutils import nodes
from sphinx import addnodes


def titles_of(contents: Any) -> Any:
    """Return the contents of a page without the headings below its title.

    Lists that lead to other pages stay where they are, however deep, so that Sphinx
    finds them at the depth, and under the conditions, at which they were written.

    Parameters
    ----------
    contents : docutils.nodes.bullet_list
        The contents as Sphinx collected them; they stay as they are.

    Returns
    -------
    docutils.nodes.bullet_list
        A copy with the titles and the lists of pages below them.
    """
    titles = contents.deepcopy()
    for item in titles:
        # An item holds its title and, where there is any, a list of what is below it.
        if isinstance(item, nodes.list_item) and len(item) == 2:
            if _leads_to_pages(item):
                _leave_out_headings(item[1])
            else:
                item.pop(1)
    return titles


def _leads_to_pages(node: Any) -> bool:
    return next(iter(node.findall(addnodes.toctree)), None) is not None


def _leave_out_headings(below: Any) -> None:
    """Remove, in place, whatever leads to no other page."""
    for node in list(below.children):
        if isinstance(node, addnodes.toctree):
            continue
        if _leads_to_pages(node):
            _leave_out_headings(node)
        else:
            below.remove(node)


def _with_titles_alone(app: Any, tree_of: Callable[..., str]) -> Callable[..., str]:
    def toctree(**options: Any) -> str:
        if not options.get("titles_only"):
            return tree_of(**options)
        if not hasattr(app, "_contents_by_title"):
            app._contents_by_title = {
                page: titles_of(contents) for page, contents in app.env.tocs.items()
            }
        whole = app.env.tocs
        app.env.tocs = app._contents_by_title
        try:
            return tree_of(**options)
        finally:
            app.env.tocs = whole

    return toctree


def _offer(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    if "toctree" in context:
        context["toctree"] = _with_titles_alone(app, context["toctree"])


def setup(app: Any) -> dict[str, bool]:
    """Register the listener with Sphinx, before that of the theme."""
    app.connect("html-page-context", _offer, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
