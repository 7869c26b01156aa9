"""Mechanisms compared over folders of data: tasks, rows, tables, verdicts."""
