"""Strategies that put noise on the edges of the policy."""
