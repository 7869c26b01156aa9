"""Cells that nobody lists, by a rule: steps of numbers and times, and words."""
