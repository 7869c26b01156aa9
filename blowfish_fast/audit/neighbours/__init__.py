"""Neighbouring databases to try a promise on."""
