"""Exact laws of private choices on tiny domains."""
