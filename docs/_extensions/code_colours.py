"""Colours of code on a light ground, dark enough for everybody to read.

The style is Pygments' ``friendly`` with the pale colours darkened: every kind of word
reaches a contrast of 4.5 with the ground, what the guidelines for accessible pages ask
of text (``tests/test_docs.py`` measures it).
"""

from __future__ import annotations

from pygments.styles.friendly import FriendlyStyle
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String


class ReadableStyle(FriendlyStyle):
    """Friendly colours, darkened."""

    styles = {  # noqa: RUF012 (Pygments asks for a plain attribute)
        **FriendlyStyle.styles,
        Comment: "italic #3a6470",
        Comment.Preproc: "noitalic #00602f",
        Comment.Special: "noitalic bg:#fff0f0",
        Generic.Deleted: "#900000",
        Generic.Error: "#b00000",
        Generic.Inserted: "#006000",
        Generic.Output: "#5a5a5a",
        Generic.Prompt: "bold #9a4600",
        Keyword.Pseudo: "nobold",
        Keyword.Type: "nobold #902000",
        Name.Attribute: "#2f5f93",
        Name.Builtin: "#006020",
        Name.Class: "bold #0a6287",
        Name.Constant: "#2f6068",
        Name.Decorator: "bold #4a4a4a",
        Name.Entity: "bold #9a3d1d",
        Name.Exception: "#006020",
        Name.Namespace: "bold #0a6287",
        Name.Variable: "#8a2fa8",
        Number: "#1d6b45",
        Operator: "#505050",
        String: "#2f5f93",
        String.Interpol: "italic #2f6496",
        String.Other: "#8a4a00",
        String.Symbol: "#3d5c9a",
    }
