"""Cells that nobody lists, where they are counted: words in databases, maps."""
