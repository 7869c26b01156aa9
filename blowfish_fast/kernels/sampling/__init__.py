"""Exact noise and exact private choices."""
