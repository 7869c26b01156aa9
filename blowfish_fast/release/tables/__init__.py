"""Releases of many contingency tables: answers, fits, synthetic records, files."""
