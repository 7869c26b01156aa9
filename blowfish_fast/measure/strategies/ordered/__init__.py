"""Strategies that measure running totals along a line."""
