"""Strategies that measure totals of the nodes of a tree."""
