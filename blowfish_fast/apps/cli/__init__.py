"""The command line: words into calls."""
