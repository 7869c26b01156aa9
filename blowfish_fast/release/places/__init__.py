"""Answers by district, and files of them that open on a map."""
