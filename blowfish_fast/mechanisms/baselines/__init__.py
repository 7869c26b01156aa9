"""Mechanisms of other papers, to compare with."""
