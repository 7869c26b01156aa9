"""Estimates under constraints: monotone, non-negative, smooth, shrunk."""
